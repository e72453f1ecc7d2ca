//! The rules behind the fixtures' names of networks.

use arbor_chain::genesis::ChainSpec;

use super::fixture::Fixture;

/// Forks in order: the fixtures' name, and the fields of a geth configuration that say when it begins.
const FORKS: [(&str, &[&str]); 17] = [
    ("Frontier", &[]),
    ("Homestead", &["homesteadBlock"]),
    ("EIP150", &["eip150Block"]),
    ("EIP158", &["eip155Block", "eip158Block"]),
    ("Byzantium", &["byzantiumBlock"]),
    ("Constantinople", &["constantinopleBlock"]),
    ("ConstantinopleFix", &["petersburgBlock"]),
    ("Istanbul", &["istanbulBlock"]),
    ("Berlin", &["muirGlacierBlock", "berlinBlock"]),
    ("London", &["londonBlock"]),
    ("ArrowGlacier", &["arrowGlacierBlock"]),
    ("Paris", &["grayGlacierBlock", "terminalTotalDifficulty"]),
    ("Shanghai", &["shanghaiTime"]),
    ("Cancun", &["cancunTime"]),
    ("Prague", &["pragueTime"]),
    ("Osaka", &["osakaTime"]),
    ("BPO1", &["bpo1Time"]),
];

/// Mainnet's deposit contract, which the fixtures' networks have (EIP-6110).
const DEPOSIT_CONTRACT: &str = "0x00000000219ab540356cbb839cbe05303d7705fa";

/// The rules of a network: of one fork from block 0 on, or of two, as in `BerlinToLondonAt5`, `ParisToShanghaiAtTime15k`
/// and `ArrowGlacierToParisAtDiffC0000`.
pub(crate) fn rules(fixture: &Fixture) -> Result<ChainSpec, String> {
    let network = &fixture.network;
    let config = config(fixture).ok_or_else(|| format!("network {network} is not known"))?;
    let (spec, warnings) = ChainSpec::from_json(&config).map_err(|error| error.to_string())?;
    match warnings.first() {
        Some(warning) => Err(warning.clone()),
        None => Ok(spec),
    }
}

fn config(fixture: &Fixture) -> Option<String> {
    let network = fixture.network.as_str();
    let (first, last, start) = match network.split_once("To") {
        None => (network, network, 0),
        Some((first, rest)) => {
            let (last, start) = rest.split_once("At")?;
            (first, last, number(start)?)
        }
    };
    let place = |fork| FORKS.iter().position(|(name, _)| *name == fork);
    let mut fields = vec![r#""chainId":1"#.to_owned()];
    let last = if last == "Dao" {
        fields.push(format!(r#""daoForkBlock":{start},"daoForkSupport":true"#));
        first
    } else {
        last
    };
    let (first, last) = (place(first)?, place(last)?);
    for (index, (_, names)) in FORKS[..=last].iter().enumerate() {
        let at = if index <= first { 0 } else { start };
        fields.extend(names.iter().map(|name| format!(r#""{name}":{at}"#)));
    }
    if FORKS[last].0 == "Constantinople" {
        // Left out it would begin with Constantinople.
        fields.push(format!(r#""petersburgBlock":{}"#, u64::MAX));
    }
    let blobs = fixture.config.blob_schedule.iter().map(|(fork, blobs)| {
        let (target, max) = (blobs.target, blobs.max);
        let (fork, fraction) = (fork.to_lowercase(), blobs.base_fee_update_fraction);
        format!(r#""{fork}":{{"target":{target},"max":{max},"baseFeeUpdateFraction":{fraction}}}"#)
    });
    let blobs: Vec<String> = blobs.collect();
    if !blobs.is_empty() {
        fields.push(format!(r#""blobSchedule":{{{}}}"#, blobs.join(",")));
    }
    if FORKS[..=last].iter().any(|(name, _)| *name == "Prague") {
        fields.push(format!(r#""depositContractAddress":"{DEPOSIT_CONTRACT}""#));
    }
    Some(format!("{{{}}}", fields.join(",")))
}

/// Reads `5`, `Time15k` and `DiffC0000`.
fn number(start: &str) -> Option<u64> {
    if let Some(digits) = start.strip_prefix("Diff") {
        return u64::from_str_radix(digits, 16).ok();
    }
    match start.strip_prefix("Time") {
        Some(time) => Some(time.strip_suffix('k')?.parse::<u64>().ok()? * 1000),
        None => start.parse().ok(),
    }
}
