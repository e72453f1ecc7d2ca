//! The cases of ethereum/execution-apis, each with the exact answer of go-ethereum.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{Served, post};
use arbor_serve::{Access, Limits};
use serde_json::Value;

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
