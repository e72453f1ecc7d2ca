//! The cases of ethereum/execution-apis, each with the exact answer of go-ethereum.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{Served, call, post};
use arbor_serve::{Access, Limits};
use serde_json::{Value, json};

/// Methods whose cases are left out: receipts, logs, traces and simulations.
const NOT_SERVED: [&str; 8] = [
    "debug_getRawReceipts",
    "debug_traceBlockByHash",
    "debug_traceBlockByNumber",
    "debug_traceTransaction",
    "eth_getBlockReceipts",
    "eth_getLogs",
    "eth_getTransactionReceipt",
    "eth_simulateV1",
];

/// Cases that are there; fewer would mean that they are not found.
const CASES: usize = 59;

/// A request, and what is to be answered.
struct Case {
    name: String,
    /// Whether only the shape of the answer is fixed.
    by_shape: bool,
    exchanges: Vec<(String, Value)>,
}

impl Case {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("a case");
        let mut exchanges = Vec::new();
        let mut sent = None;
        for line in text.lines() {
            if let Some(request) = line.strip_prefix(">> ") {
                sent = Some(request.to_owned());
            } else if let Some(answer) = line.strip_prefix("<< ") {
                let request = sent.take().expect("a request comes first");
                exchanges.push((request, serde_json::from_str(answer).expect("JSON")));
            }
        }
        Self {
            name: file.display().to_string(),
            by_shape: text.contains("\n// speconly:") || text.starts_with("// speconly:"),
            exchanges,
        }
    }
}

/// The kind of a JSON value; hexadecimal text is one of its own.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(text) if text.starts_with("0x") => "hex",
        Value::String(_) => "text",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Says where an answer has another shape: a field that is not among the wanted ones, or one of
/// another kind.
fn other_shape(place: &str, wanted: &Value, found: &Value) -> Option<String> {
    if kind(wanted) != kind(found) {
        return Some(format!("{place}: {found} instead of {wanted}"));
    }
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => found.iter().find_map(|(name, value)| {
            let place = format!("{place}.{name}");
            match wanted.get(name) {
                Some(wanted) => other_shape(&place, wanted, value),
                None => Some(format!("{place} is unknown")),
            }
        }),
        (Value::Array(wanted), Value::Array(found)) => {
            let first = wanted.first()?;
            let mut found = found.iter();
            found.find_map(|value| other_shape(&format!("{place}[]"), first, value))
        }
        _ => None,
    }
}

#[test]
fn answers_are_those_of_go_ethereum() {
    let test = "answers_are_those_of_go_ethereum";
    let found = (
        arbor_testdata::whole(test, "vectors/execution_apis_io"),
        arbor_testdata::whole(test, "data/chains/execution-apis"),
    );
    let (Some(cases), Some(chain)) = found else {
        return;
    };
    let served = Served::replay("mpt", &chain);
    let server = served.serve(true, Limits::default(), Access::default());
    let mut files = Vec::new();
    let mut left_out = BTreeSet::new();
    for folder in std::fs::read_dir(cases).expect("a folder") {
        let folder = folder.expect("listed").path();
        let method = folder
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        if let Some(name) = NOT_SERVED.iter().find(|name| **name == method) {
            left_out.insert(*name);
            continue;
        }
        let of_method = std::fs::read_dir(&folder).expect("a folder");
        files.extend(of_method.map(|file| file.expect("listed").path()));
    }
    files.sort();
    assert!(files.len() >= CASES, "{} cases", files.len());
    let mut wrong = Vec::new();
    for case in files.iter().map(|file| Case::read(file)) {
        assert!(!case.exchanges.is_empty(), "{} has no request", case.name);
        for (request, wanted) in &case.exchanges {
            let found = post(server.address(), request);
            let differs = match case.by_shape {
                true => other_shape("", wanted, &found),
                false => (found != *wanted).then(|| format!("{found}\n  instead of {wanted}")),
            };
            wrong.extend(differs.map(|how| format!("{}: {how}", case.name)));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        files.len(),
        wrong.join("\n")
    );
    println!("{} cases hold; not served: {left_out:?}", files.len());
}

/// The headers of seven ancestors, among which ommers are looked for, were in the witness too.
#[test]
fn a_witness_has_no_header_that_only_ommers_need() {
    let test = "a_witness_has_no_header_that_only_ommers_need";
    let Some(chain) = arbor_testdata::whole(test, "data/chains/execution-apis") else {
        return;
    };
    let served = Served::replay("mpt", &chain);
    let server = served.serve(true, Limits::default(), Access::default());
    let ask = |method: &str, params: Value| call(server.address(), method, &params);
    let (mut number, mut with_ommers) = (1, 0);
    loop {
        let name = format!("{number:#x}");
        let ommers = ask("eth_getUncleCountByBlockNumber", json!([name]));
        if ommers["result"].is_null() {
            break;
        }
        if ommers["result"] != "0x0" {
            let witness = ask("debug_executionWitness", json!([name]));
            let headers = witness["result"]["headers"].as_array().expect("a list");
            assert_eq!(headers.len(), 1, "block {number}");
            with_ommers += 1;
        }
        number += 1;
    }
    assert!(with_ommers > 0, "{number} blocks");
}

/// What geth 1.17.7 answers over this chain, which has all forks up to Osaka.
#[test]
fn calls_before_their_fork_and_prices_are_answered_like_go_ethereum() {
    let test = "calls_before_their_fork_and_prices_are_answered_like_go_ethereum";
    let Some(chain) = arbor_testdata::whole(test, "data/chains/execution-apis") else {
        return;
    };
    let served = Served::replay("mpt", &chain);
    let server = served.serve(true, Limits::default(), Access::default());
    let ask = |method: &str, params: Value| call(server.address(), method, &params);
    assert_eq!(ask("eth_gasPrice", json!([]))["result"], "0x1b155d7");
    let tip = ask("eth_maxPriorityFeePerGas", json!([]));
    assert_eq!(tip["result"], "0xf4240");
    let with = |name: &str, value: Value| {
        json!({"from": "0x0c2c51a0990aee1d73c1228de158688341557508",
            "to": "0x7dcd17433742f4c0ca53122ab541d0ba67fc27df", "gas": "0x186a0", name: value})
    };
    let blob = format!("0x01{}", "00".repeat(31));
    let delegation = json!({"chainId": "0x0", "address": format!("{:#042x}", 1), "nonce": "0x0",
        "yParity": "0x0", "r": "0x1", "s": "0x1"});
    let fee = |fee: &str| with("maxFeePerGas", json!(fee));
    let sender = "sender 0x0c2c51a0990AeE1d73C1228de158688341557508";
    let early = |of: &str| format!("transaction type not supported: {of} ({sender})");
    for (fields, block, why) in [
        (with("blobVersionedHashes", json!([blob])), "0x22", early("blob tx")),
        (with("authorizationList", json!([delegation])), "0x22", early("setcode tx")),
        (
            fee("0x1"),
            "latest",
            "max fee per gas less than block base fee: address 0x0c2c51a0990AeE1d73C1228de158688341557508, maxFeePerGas: 1, baseFee: 27399063".to_owned(),
        ),
    ] {
        let refused = ask("eth_call", json!([fields, block]));
        let wanted = format!("err: {why} (supplied gas 100000)");
        assert_eq!(refused["error"]["message"], wanted);
    }
    let refused = ask(
        "eth_estimateGas",
        json!([with("blobVersionedHashes", json!([]))]),
    );
    let wanted = "failed with 100000 gas: blob transaction missing blob hashes";
    assert_eq!(refused["error"]["message"], wanted);
    for (fields, block) in [
        (with("blobVersionedHashes", json!([blob])), "latest"),
        (with("authorizationList", json!([delegation])), "latest"),
        (fee("0x174876e800"), "0x1a"),
        (fee("0x174876e800"), "0x20"),
    ] {
        let called = ask("eth_call", json!([fields, block]));
        assert_eq!(called["result"], "0x", "{called}");
    }
    let early = ask("eth_createAccessList", json!([fee("0x1"), "0x1"]));
    let wanted = "maxFeePerGas and maxPriorityFeePerGas are not valid before London is active";
    assert_eq!(early["error"]["message"], wanted);
}
