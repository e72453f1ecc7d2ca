//! Vectors, and calls whose outcome does not depend on who executes.

use arbor_evm384::{GasSchedule, Interface, Machine, Outcome, Setup};
use arbor_evm384_programs::AMPLE_GAS;
use revm::primitives::Address;
use serde_json::Value;

/// EIP-170.
pub(crate) const CODE_LIMIT: usize = 24_576;

/// The cases in this file of the test data, or nothing, which is said, where the data is absent.
pub(crate) fn vectors(file: &str) -> Vec<Value> {
    let value = vectors_object(file);
    let cases = value.get("cases").unwrap_or(&value).as_array();
    assert!(
        cases.is_some() || value.is_null(),
        "{file}: no array of cases"
    );
    cases.cloned().unwrap_or_default()
}

/// What this file of the test data holds, or null, which is said, where the data is absent.
pub(crate) fn vectors_object(file: &str) -> Value {
    let test = std::thread::current().name().unwrap_or(file).to_owned();
    let Some(path) = arbor_testdata::find(&test, &format!("vectors/{file}")) else {
        return Value::Null;
    };
    let text = std::fs::read_to_string(path).expect("readable");
    serde_json::from_str(&text).expect("JSON")
}

pub(crate) fn bytes(case: &Value, key: &str) -> Vec<u8> {
    hex::decode(
        case[key]
            .as_str()
            .expect("a string")
            .trim_start_matches("0x"),
    )
    .expect("hex")
}

/// The outcome, which does not depend on who executes, with other contracts beside the one that is called.
pub(crate) fn run_with(
    interface: Interface,
    code: &[u8],
    others: &[(Address, Vec<u8>)],
    calldata: Vec<u8>,
) -> Outcome {
    let plain = run_in(false, interface, code, others, calldata.clone());
    let engine = run_in(true, interface, code, others, calldata);
    assert_eq!(plain, engine);
    engine
}

/// The outcome in the engine, or in revm's interpreter.
pub(crate) fn run_in(
    engine: bool,
    interface: Interface,
    code: &[u8],
    others: &[(Address, Vec<u8>)],
    calldata: Vec<u8>,
) -> Outcome {
    let setup = Setup {
        engine,
        ..Setup::new(interface, GasSchedule::MODEL_A)
    };
    let mut machine = Machine::with_others(setup, code.to_vec(), others);
    let outcome = machine.call(calldata.into(), AMPLE_GAS);
    outcome.expect("an ordinary call")
}

/// The same of one contract alone.
pub(crate) fn run(interface: Interface, code: &[u8], calldata: Vec<u8>) -> Outcome {
    run_with(interface, code, &[], calldata)
}

/// What must have been returned, in a form whose difference can be read.
pub(crate) fn returned(outcome: &Outcome) -> String {
    match outcome.output() {
        Some(output) => hex::encode(output),
        None => format!("{:?}", outcome.end),
    }
}

pub(crate) fn expected(case: &Value, key: &str) -> String {
    hex::encode(bytes(case, key))
}
