//! Genesis files against the hashes of the networks and the blocks of the chains that they belong to.

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, keccak256};
use arbor_chain::genesis::{
    Activation, ChainSpec, Fork, Genesis, GenesisError, Network, naive_state_root,
};
use arbor_chain::source::open_sources;
use arbor_state::{State, StateView};
use arbor_store::MemoryStore;
use arbor_testdata::{find as shared, whole};
use arbor_trees::MPT;
use arbor_trees::ar16mt::AR16MT;
use revm::primitives::hardfork::SpecId;

fn spec_of(config: &str) -> Result<ChainSpec, GenesisError> {
    genesis_with(config).map(|genesis| genesis.spec)
}

fn genesis_with(config: &str) -> Result<Genesis, GenesisError> {
    let text = format!(
        r#"{{"config": {config}, "difficulty": "0x20000", "gasLimit": "0x1388", "alloc": {{}}}}"#
    );
    Genesis::from_json(&text)
}

#[test]
fn public_networks_have_their_hashes() {
    for network in Network::ALL {
        let name = format!("vectors/genesis/{}.json", network.name());
        let Some(file) = shared("public_networks_have_their_hashes", &name) else {
            continue;
        };
        let genesis = Genesis::from_file(&file).expect("sound genesis");
        assert_eq!(genesis.hash, network.genesis_hash(), "{}", network.name());
        assert_eq!(genesis.network(), Some(network));
        assert_eq!(genesis.spec.chain_id(), network.chain_id());
    }
}

#[test]
fn mainnet_genesis_equals_the_published_vector() {
    let test = "mainnet_genesis_equals_the_published_vector";
    let Some(vector) = shared(test, "vectors/mpt_ethereum_tests/genesishashestest.json") else {
        return;
    };
    let Some(file) = shared(test, "data/chains/mainnet-0-16383/genesis.json") else {
        return;
    };
    let vector: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(vector).expect("readable")).expect("JSON");
    let expected = |name: &str| vector[name].as_str().expect("a string").to_owned();
    let genesis = Genesis::from_file(&file).expect("sound genesis");
    assert_eq!(hex::encode(genesis.hash), expected("genesis_hash"));
    assert_eq!(
        hex::encode(genesis.header.state_root),
        expected("genesis_state_root")
    );
    let block: alloy_consensus::Block<arbor_chain::source::Transaction> =
        alloy_consensus::Block::new(genesis.header, Default::default());
    assert_eq!(
        hex::encode(alloy_rlp::encode(block)),
        expected("genesis_rlp_hex")
    );
}

/// A preset's schedule is the one that geth writes into the network's genesis.
#[test]
fn presets_agree_with_geths_genesis_files() {
    for (network, file) in [
        (Network::Mainnet, "data/chains/mainnet-0-16383/genesis.json"),
        (Network::Sepolia, "data/chains/sepolia-0-40959/genesis.json"),
    ] {
        let Some(file) = shared("presets_agree_with_geths_genesis_files", file) else {
            return;
        };
        let genesis = Genesis::from_file(&file).expect("sound genesis");
        assert_eq!(genesis.hash, network.genesis_hash());
        assert_eq!(genesis.warnings, Vec::<String>::new());
        let preset = network.spec();
        assert_eq!(
            genesis.spec.forks().collect::<Vec<_>>(),
            preset.forks().collect::<Vec<_>>()
        );
        assert_eq!(
            genesis.spec.terminal_total_difficulty(),
            preset.terminal_total_difficulty()
        );
        assert_eq!(genesis.spec.deposit_contract(), preset.deposit_contract());
        for time in [
            1_700_000_000,
            1_750_000_000,
            1_764_900_000,
            1_766_000_000,
            1_800_000_000,
        ] {
            assert_eq!(
                genesis.spec.blob_params_at(time),
                preset.blob_params_at(time)
            );
        }
    }
}

/// Every chain's genesis is the block 0, or the parent of the block 1, that its blocks show.
#[test]
fn every_chain_begins_at_its_genesis() {
    let test = "every_chain_begins_at_its_genesis";
    let Some(chains) = whole(test, "data/chains") else {
        return;
    };
    let mut seen = 0;
    for entry in std::fs::read_dir(chains).expect("readable") {
        let folder = entry.expect("entry").path();
        let chain = open_sources(std::slice::from_ref(&folder)).expect("sound chain");
        let file = chain.genesis_file().expect("each folder has one").clone();
        let genesis = Genesis::from_file(&file).expect("sound genesis");
        assert!(chain.first().number <= 1, "{}", folder.display());
        genesis
            .check_chain(&chain)
            .expect("genesis of the same chain");
        seen += 1;
    }
    assert_eq!(seen, 8);
}

#[test]
fn a_foreign_genesis_is_named() {
    let Some(folder) = shared("a_foreign_genesis_is_named", "data/chains/mainnet-0-16383") else {
        return;
    };
    let chain = open_sources(&[folder]).expect("sound chain");
    let sepolia = Genesis::preset(Network::Sepolia).expect("built in");
    let message = sepolia
        .check_chain(&chain)
        .expect_err("another network")
        .to_string();
    assert!(
        message.starts_with("this is sepolia's genesis"),
        "{message}"
    );
    assert!(
        message.contains("the chain holds mainnet blocks"),
        "{message}"
    );
}

#[test]
fn classic_is_mapped_with_its_own_rules() {
    let test = "classic_is_mapped_with_its_own_rules";
    let file = "data/chains/coregeth-classic-condense/genesis.coregeth.json";
    let Some(file) = shared(test, file) else {
        return;
    };
    let Genesis { spec, warnings, .. } = Genesis::from_file(&file).expect("sound genesis");
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(spec.limitations(), []);
    let spec_id = |number| spec.fork_at(number, 0, false).spec_id();
    assert_eq!(
        (spec_id(114), spec_id(115)),
        (SpecId::FRONTIER, SpecId::HOMESTEAD)
    );
    assert_eq!(
        (spec_id(250), spec_id(876)),
        (SpecId::TANGERINE, SpecId::TANGERINE)
    );
    assert_eq!(
        (spec_id(877), spec_id(957)),
        (SpecId::BYZANTIUM, SpecId::PETERSBURG)
    );
    assert_eq!(spec_id(1050), SpecId::ISTANBUL);
    assert_eq!(spec.exp_byte_gas_override(299), None);
    assert_eq!(spec.exp_byte_gas_override(300), Some(50));
    assert_eq!(spec.exp_byte_gas_override(877), None);
    assert!(spec.is_eip155_active(300) && !spec.is_eip155_active(299));
    let ether = U256::from(1_000_000_000_000_000_000u64);
    assert_eq!(spec.block_reward(500), ether * U256::from(5));
    assert_eq!(spec.block_reward(501), ether * U256::from(4));
    assert_eq!(
        spec.block_reward(1001),
        ether * U256::from(16) / U256::from(5)
    );
}

#[test]
fn parts_of_a_fork_are_a_limitation() {
    let spec = spec_of(r#"{"chainId": 61, "eip2FBlock": 5, "eip7FBlock": 9, "eip3529FBlock": 20}"#)
        .expect("sound");
    let said: Vec<String> = spec.limitations().iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "blocks 5 to 8: Homestead in parts (eip2FBlock 5) is not supported: revm has it only as a whole",
            "from block 20: EIP-3529 without EIP-1559 (Mystique) is not supported: revm has it only in a fork with EIP-1559",
        ]
    );
    assert_eq!(spec.activation(Fork::Homestead), Some(Activation::Block(9)));
}

#[test]
fn forks_follow_numbers_the_merge_and_times() {
    let spec = Network::Mainnet.spec();
    let fork = |number, time, merged| spec.fork_at(number, time, merged);
    assert_eq!(fork(1_149_999, 0, false), Fork::Frontier);
    assert_eq!(fork(1_150_000, 0, false), Fork::Homestead);
    assert_eq!(fork(15_537_393, 1_663_224_162, false), Fork::GrayGlacier);
    assert_eq!(fork(15_537_394, 1_663_224_179, true), Fork::Paris);
    assert_eq!(fork(17_034_870, 1_681_338_455, true), Fork::Shanghai);
    assert_eq!(
        fork(23_935_694, 1_764_798_551, true).spec_id(),
        SpecId::OSAKA
    );
    assert!(spec.is_dao_fork_block(1_920_000) && !spec.is_dao_fork_block(1_920_001));
    assert_eq!(spec.blob_params_at(1_710_338_134), None);
    let blobs = |time| {
        spec.blob_params_at(time)
            .map(|p| (p.target_blob_count, p.max_blob_count))
    };
    assert_eq!(blobs(1_710_338_135), Some((3, 6)));
    assert_eq!(blobs(1_746_612_311), Some((6, 9)));
    assert_eq!(blobs(1_767_747_671), Some((14, 21)));
    assert_eq!(spec.limitations(), []);
}

#[test]
fn constantinople_may_come_without_petersburg() {
    let Some(file) = shared(
        "constantinople_may_come_without_petersburg",
        "data/chains/execution-apis/genesis.json",
    ) else {
        return;
    };
    let genesis = Genesis::from_file(&file).expect("sound genesis");
    assert_eq!(genesis.spec.fork_at(14, 0, false), Fork::Constantinople);
    assert_eq!(genesis.spec.fork_at(15, 0, false), Fork::Petersburg);
    assert_eq!(genesis.spec.limitations(), []);
    assert_eq!(genesis.spec.fork_at(36, 480, true), Fork::Osaka);
    assert_eq!(genesis.spec.fork_at(36, 540, true), Fork::Bpo2);
}

#[test]
fn contradictory_forks_are_named() {
    let error = spec_of(r#"{"homesteadBlock": 5, "eip150Block": 3}"#).expect_err("out of order");
    assert_eq!(
        error.to_string(),
        "genesis config: TangerineWhistle starts at block 3, but Homestead, which it builds on, at block 5"
    );
    let error =
        spec_of(r#"{"homesteadBlock": 0, "byzantiumBlock": 0}"#).expect_err("a fork is missing");
    assert_eq!(
        error.to_string(),
        "genesis config: Byzantium starts at block 0, but SpuriousDragon, which it builds on, never"
    );
    let merged = r#""homesteadBlock":0,"eip150Block":0,"eip155Block":0,"eip158Block":0,"byzantiumBlock":0,
        "constantinopleBlock":0,"petersburgBlock":0,"istanbulBlock":0,"berlinBlock":0,"londonBlock":0,
        "terminalTotalDifficulty":0,"shanghaiTime":5"#;
    let error = spec_of(&format!("{{{merged}, \"cancunTime\": 4}}")).expect_err("out of order");
    assert!(
        matches!(
            error,
            GenesisError::ForkOrder {
                earlier: Fork::Shanghai,
                later: Fork::Cancun,
                ..
            }
        ),
        "{error}"
    );
    assert!(spec_of(&format!("{{{merged}, \"cancunTime\": 5}}")).is_ok());
}

#[test]
fn unknown_fields_are_reported() {
    let genesis = genesis_with(r#"{"chainId": 7, "frobBlock": 3, "ethash": {}}"#).expect("sound");
    assert_eq!(
        genesis.warnings,
        ["config.frobBlock is not known and has no effect"]
    );
}

#[test]
fn wrong_values_are_named() {
    let error = spec_of(r#"{"chainId": 1, "homesteadBlock": "soon"}"#).expect_err("not a number");
    assert_eq!(
        error.to_string(),
        "genesis: config.homesteadBlock is \"soon\": expected a number below 2^64"
    );
    // The last one was taken.
    for field in ["chainId", "pragueTime", "terminalTotalDifficulty"] {
        let text = format!("{{\"chainId\": 1, \"{field}\": 1, \"{field}\": 2}}");
        let error = spec_of(&text).expect_err("there twice").to_string();
        let wanted = format!("field `{field}` is there twice");
        assert!(error.contains(&wanted), "{error}");
    }
    // So was the last of these, within.
    let twice = r#"{"blobSchedule": {"cancun": {"target": 3, "max": 6, "max": 9, "baseFeeUpdateFraction": 1}}}"#;
    let error = spec_of(twice).expect_err("there twice").to_string();
    assert!(error.contains("field `max` is there twice"), "{error}");
    let listed = |storage: &str| {
        let account = format!(r#"{{"balance": "0x1", "nonce": "0x1", "storage": {storage}}}"#);
        let text = format!(
            r#"{{"config": {{}}, "gasLimit": 1, "difficulty": 1, "alloc": {{"{:040x}": {account}}}}}"#,
            0xaa
        );
        Genesis::from_json(&text).map(|genesis| genesis.alloc.get(0).storage)
    };
    let word = |last: u8| B256::with_last_byte(last);
    assert_eq!(
        listed(r#"{"0x02": "0x05", "0x": "0x", "0x0001": "0x07"}"#).expect("sound"),
        [(word(1), U256::from(7)), (word(2), U256::from(5))]
    );
    for (storage, wrong) in [
        (r#"{"0x02": "0x05", "0x0002": "0x06"}"#, "slot 0x0000"),
        (r#"{"0x02": "0x05", "0x02": "0x05"}"#, "0002 is there twice"),
        (
            &format!(r#"{{"0x02": "0x{}"}}"#, "00".repeat(33)),
            "up to 32 bytes",
        ),
    ] {
        let error = listed(storage).expect_err("refused").to_string();
        assert!(error.contains(wrong), "{error}");
    }
    // It was taken for 5.
    for number in ["+5", "0x+5", "-0", "0x", "", " 5"] {
        let error = spec_of(&format!(r#"{{"chainId": "{number}"}}"#)).expect_err("no number");
        assert!(error.to_string().contains("chainId"), "{error}");
    }
    let twice = r#"{"config": {}, "gasLimit": 1, "difficulty": 1, "alloc": {"00000000000000000000000000000000000000aa": {"balance": "1"},
        "0x00000000000000000000000000000000000000Aa": {"balance": "2"}}}"#;
    let error = Genesis::from_json(twice).expect_err("listed twice");
    assert!(
        matches!(error, GenesisError::DuplicateAccount(_)),
        "{error}"
    );
    let stated = r#"{"config": {}, "gasLimit": 1, "difficulty": 1, "alloc": {}, "stateRoot":
        "0x0100000000000000000000000000000000000000000000000000000000000000"}"#;
    let error = Genesis::from_json(stated).expect_err("another root");
    assert!(matches!(error, GenesisError::StateRoot { .. }), "{error}");
    let error = Genesis::from_json(r#"{"gasLimit": 1, "difficulty": 1, "alloc": {}}"#)
        .expect_err("no config");
    assert!(matches!(error, GenesisError::NoConfig(_)), "{error}");
}

#[test]
fn great_total_difficulties_are_exact() {
    let spec = spec_of(r#"{"terminalTotalDifficulty": 58750000000000000000001}"#).expect("sound");
    assert_eq!(
        spec.terminal_total_difficulty(),
        Some(U256::from(58_750_000_000_000_000_000_001u128))
    );
}

#[test]
fn networks_are_known_by_name() {
    for network in Network::ALL {
        let genesis = Genesis::load(network.name()).expect("built in");
        assert_eq!(genesis.hash, network.genesis_hash(), "{}", network.name());
        assert!(genesis.warnings.is_empty(), "{:?}", genesis.warnings);
    }
    let error = Genesis::load("mainet").expect_err("misspelt");
    assert!(matches!(error, GenesisError::UnknownPreset(_)), "{error}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let named = folder.path().to_str().expect("text");
    let error = Genesis::load(named).expect_err("a folder");
    assert!(matches!(error, GenesisError::Folder(_)), "{error}");
}

/// Every proof-of-work block of the real chains has the difficulty that the rules give it.
#[test]
fn difficulties_follow_the_rules() {
    let test = "difficulties_follow_the_rules";
    let chains = [
        "mainnet-0-16383",
        "sepolia-0-40959",
        "coregeth-foundation-condense-2",
        "coregeth-classic-condense",
    ];
    for name in chains {
        let Some(folder) = shared(test, &format!("data/chains/{name}")) else {
            return;
        };
        let mut chain = open_sources(&[folder]).expect("sound chain");
        let genesis = Genesis::from_file(chain.genesis_file().expect("beside it")).expect("sound");
        let mut parent = genesis.header.clone();
        while let Some(block) = chain.next_raw().expect("sound block") {
            if block.header.number == 0 {
                continue;
            }
            let expected = genesis
                .spec
                .next_difficulty(&parent, block.header.timestamp);
            assert_eq!(
                block.header.difficulty, expected,
                "{name}, block {}",
                block.header.number
            );
            parent = block.header;
        }
    }
}

/// One genesis in the forms that geth reads; go-ethereum 1.17.7 makes the same block 0 of all of them.
#[test]
fn forms_that_geth_reads_are_one_genesis() {
    let genesis = |text: &str| {
        let genesis = Genesis::from_json(text);
        genesis.unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let plain = r#"{"config": {"chainId": 5, "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0,
        "byzantiumBlock": 0, "constantinopleBlock": 0, "petersburgBlock": 0, "istanbulBlock": 0, "berlinBlock": 0,
        "londonBlock": 0, "terminalTotalDifficulty": 7}, "nonce": "0x9",
        "timestamp": "0x10", "extraData": "0x0102", "gasLimit": "0x1388", "difficulty": "0x20000",
        "mixHash": "0x0000000000000000000000000000000000000000000000000000000000000007",
        "coinbase": "0x00000000000000000000000000000000000000bb",
        "alloc": {"00000000000000000000000000000000000000aa": {"balance": "0xde0b6b3a764000000",
            "nonce": "0x2", "code": "0x6001", "storage": {
            "0x0000000000000000000000000000000000000000000000000000000000000001":
            "0x00000000000000000000000000000000000000000000000000000000000000ff"}}}}"#;
    let wanted = genesis(plain);
    for (from, to) in [
        // Numbers without quotes, of any size; decimal, and with another prefix.
        ("\"0xde0b6b3a764000000\"", "256000000000000000000"),
        ("\"0xde0b6b3a764000000\"", "\"256000000000000000000\""),
        ("\"0xde0b6b3a764000000\"", "\"0X0DE0B6B3A764000000\""),
        ("\"0x9\"", "9"),
        ("\"0x20000\"", "131072"),
        ("\"0x1388\"", "\"5000\""),
        ("\"0x1388\"", "\"0x0000000000000000000000001388\""),
        // Names in another case.
        ("chainId", "chainID"),
        ("londonBlock", "londonblock"),
        ("gasLimit", "gaslimit"),
        ("mixHash", "MIXHASH"),
        ("balance", "Balance"),
        ("code", "CODE"),
        // Addresses with a prefix, slots and values without one and without leading zeros.
        (
            "\"00000000000000000000000000000000000000aa\"",
            "\"0x00000000000000000000000000000000000000AA\"",
        ),
        (
            "\"00000000000000000000000000000000000000aa\"",
            "\"0X00000000000000000000000000000000000000aa\"",
        ),
        (
            "\"0x0000000000000000000000000000000000000000000000000000000000000001\"",
            "\"01\"",
        ),
        (
            "\"0x00000000000000000000000000000000000000000000000000000000000000ff\"",
            "\"0xFF\"",
        ),
        // Null is as if the field were not there.
        (
            "\"nonce\": \"0x9\"",
            "\"baseFeePerGas\": null, \"nonce\": \"0x9\"",
        ),
        (
            "\"londonBlock\": 0",
            "\"londonBlock\": 0, \"shanghaiTime\": null",
        ),
        ("\n", "\r\n"),
    ] {
        assert!(plain.contains(from), "{from}");
        let found = genesis(&plain.replace(from, to));
        assert_eq!(found.hash, wanted.hash, "{to}");
        assert_eq!(found.spec.chain_id(), 5, "{to}");
        assert_eq!(found.warnings, Vec::<String>::new(), "{to}");
    }
    let also = plain.replace(
        "\"nonce\": \"0x2\"",
        "\"nonce\": \"0x2\", \"comment\": {}, \"secretKey\": \"0x01\"",
    );
    let found = genesis(&also);
    assert_eq!(found.hash, wanted.hash);
    let unknown =
        "alloc.00000000000000000000000000000000000000aa.comment is not known and has no effect";
    assert_eq!(found.warnings, [unknown]);
}

#[test]
fn what_is_no_genesis_is_refused_with_its_field() {
    let plain = r#"{"config": {"chainId": 5}, "gasLimit": "0x1388", "difficulty": "0x20000", "alloc":
        {"00000000000000000000000000000000000000aa": {"balance": "0x1", "storage": {"0x01": "0x02"}}}}"#;
    assert!(Genesis::from_json(plain).is_ok());
    for (from, to, wanted) in [
        ("\"gasLimit\": \"0x1388\", ", "", "genesis has no gasLimit"),
        (
            "\"difficulty\": \"0x20000\", ",
            "",
            "genesis has no difficulty",
        ),
        ("\"0x1388\"", "null", "genesis has no gasLimit"),
        (
            "\"0x1388\"",
            "\"0x10000000000000000\"",
            "gasLimit is \"0x10000000000000000\": expected a number below 2^64",
        ),
        ("\"0x1388\"", "1.5", "gasLimit is 1.5: expected a number"),
        ("\"0x1388\"", "\"-1\"", "expected a number below 2^64"),
        (
            "\"0x1388\"",
            "\"0x1388\", \"GasLimit\": 1",
            "also as `gasLimit`",
        ),
        (
            "\"0x1\"",
            "\"0x1z\"",
            "alloc.00000000000000000000000000000000000000aa.balance is",
        ),
        ("\"balance\": \"0x1\", ", "", "expected a balance in it"),
        ("\"0x02\"", "\"0x2\"", "aa.storage.0x01 is"),
        ("00aa\"", "00ag\"", "expected an address instead of"),
        (
            "{\"chainId\": 5}",
            "{\"chainId\": \"five\"}",
            "config.chainId is",
        ),
        ("{\"chainId\": 5}", "[]", "config is []"),
    ] {
        assert!(plain.contains(from), "{from}");
        let text = plain.replace(from, to);
        let error = Genesis::from_json(&text).expect_err(to);
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let parity = r#"{"name": "Foo", "engine": {"Ethash": {}}, "params": {"networkID": "0x1"},
        "genesis": {"difficulty": "0x1"}, "accounts": {}}"#;
    let error = Genesis::from_json(parity).expect_err("a chainspec");
    assert!(
        error
            .to_string()
            .contains("chainspec in Nethermind's or Parity's form"),
        "{error}"
    );
}

/// The largest total difficulty was refused, and rules of other clients passed for names without a meaning.
#[test]
fn configurations_are_exact_and_say_what_is_missing() {
    let most = U256::MAX.to_string();
    let spec = spec_of(&format!(r#"{{"terminalTotalDifficulty": {most}}}"#)).expect("sound");
    assert_eq!(spec.terminal_total_difficulty(), Some(U256::MAX));
    let above = format!(r#"{{"terminalTotalDifficulty": {most}0}}"#);
    assert!(spec_of(&above).is_err());
    let with = |config: &str| genesis_with(config).expect("sound").warnings;
    let warnings = with(r#"{"chainId": 5, "contractSizeLimit": 49152}"#);
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}")
    };
    let wanted = "config.contractSizeLimit = 49152 changes rules and is not supported";
    assert!(warning.starts_with(wanted), "{warning}");
    let warnings = with(r#"{"chainId": 5, "futureTime": 1, "ethash": {}}"#);
    assert_eq!(
        warnings,
        ["config.futureTime is not known and has no effect"]
    );
}

/// A genesis of so many accounts, of which some have code and slots.
fn crowded(accounts: u64) -> String {
    let account = |number: u64| {
        let address = Address::from_word(keccak256(number.to_be_bytes()));
        let more = match number % 5 {
            0 => format!(r#", "code": "0x60{:02x}""#, number % 256),
            1 => format!(
                r#", "nonce": {number}, "storage": {{"0x{number:064x}": "0x{:02x}", "0xff00": "0x00"}}"#,
                number % 255 + 1
            ),
            _ => String::new(),
        };
        format!(r#""{address:x}": {{"balance": "{}"{more}}}"#, number << 50)
    };
    let accounts: Vec<String> = (0..accounts).map(account).collect();
    let accounts = accounts.join(",\n");
    format!(
        r#"{{"config": {{"chainId": 7}}, "difficulty": 1, "gasLimit": 1, "alloc": {{{accounts}}}}}"#
    )
}

/// A genesis of 300,000 accounts with ether took 656 MB: all of its accounts were one change, whose
/// nodes were computed at once.
#[test]
fn many_accounts_are_loaded_and_few_are_committed() {
    for (accounts, is_loaded) in [(0, false), (1, false), (500, false), (20_000, true)] {
        let text = crowded(accounts);
        let genesis = Genesis::from_json(&text).expect("sound");
        assert_eq!(genesis.is_loaded(), is_loaded);
        assert_eq!(naive_state_root(&genesis.alloc), genesis.header.state_root);
        let network = arbor_state::Network {
            chain_id: 7,
            genesis_hash: genesis.hash,
        };
        for tree in [MPT.tree(), AR16MT.tree()] {
            let store = Arc::new(MemoryStore::default());
            let open = || {
                State::open(
                    store.clone(),
                    None,
                    tree.clone(),
                    network,
                    Default::default(),
                )
            };
            let mut state = open().expect("opens");
            genesis.commit(&mut state, &|_, _| ()).expect("committed");
            state.flush().expect("flushed");
            drop(state);
            let state = open().expect("opens again");
            assert_eq!(genesis.alloc.len() as u64, accounts);
            for account in genesis.alloc.iter() {
                let found = state.account(account.address).expect("readable");
                let found = found.expect("it is there");
                assert_eq!(
                    (found.nonce, found.balance),
                    (account.nonce, account.balance)
                );
                if !account.code.is_empty() {
                    let code = state.code(found.code_hash).expect("readable");
                    assert_eq!(code, account.code);
                }
                for (slot, value) in account.storage {
                    let slot = U256::from_be_bytes(slot.0);
                    let found = state.storage(account.address, slot).expect("readable");
                    assert_eq!(found, value);
                }
            }
        }
    }
}

/// Each name took 200 bytes, those of a 10 MB file 1 GB; and each account's unknown names were a
/// warning.
#[test]
fn names_are_bounded() {
    let names: Vec<String> = (0..2_000).map(|name| format!(r#""a{name}": 1"#)).collect();
    let names = names.join(", ");
    let error = spec_of(&format!("{{{names}}}")).expect_err("too many");
    assert!(
        error.to_string().contains("more than 1024 fields"),
        "{error}"
    );
    let accounts: Vec<String> = (0..50)
        .map(|number| format!(r#""{number:040x}": {{"balance": 1, "comment": 1}}"#))
        .collect();
    let text = format!(
        r#"{{"config": {{}}, "difficulty": 1, "gasLimit": 1, "alloc": {{{}}}}}"#,
        accounts.join(", ")
    );
    let genesis = Genesis::from_json(&text).expect("sound");
    let named = genesis.warnings.iter();
    assert_eq!(named.filter(|name| name.contains(".comment ")).count(), 20);
    assert_eq!(
        genesis.warnings[20],
        "30 more names are not known and have no effect"
    );
}

/// A witness of a database whose genesis has `Config` had no configuration.
#[test]
fn the_configuration_is_found_in_any_case_and_exact() {
    let total = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    let text = format!(
        r#"{{"Config": {{"chainID": 5, "TerminalTotalDifficulty": {total}}}, "alloc": {{}}}}"#
    );
    let config = Genesis::config_of(&text).expect("JSON");
    assert_eq!(config["chainID"], 5);
    assert_eq!(config["TerminalTotalDifficulty"], total);
    assert!(Genesis::config_of("{}").expect("JSON").is_null());
}
