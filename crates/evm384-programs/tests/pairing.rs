//! The pairing contracts against vectors: those of the 2020 project, and EIP-2537's.

use arbor_evm384::{End, Interface, Outcome};
use arbor_evm384_programs::bls12_381::{Goal, Pairing, Part};
use serde_json::Value;

use crate::common::{self, CODE_LIMIT, bytes, expected, returned, vectors};

fn run(pairing: Pairing, calldata: Vec<u8>) -> Outcome {
    common::run(pairing.interface, &pairing.program().code, calldata)
}

fn variants(part: Part) -> impl Iterator<Item = Pairing> {
    Interface::ON_MEMORY.into_iter().flat_map(move |interface| {
        [Goal::Time, Goal::Gas].map(|goal| Pairing {
            part,
            interface,
            goal,
        })
    })
}

fn run_of_words(part: Part, calldata: Vec<u8>) -> Outcome {
    common::run(Interface::V7, &part.of_words().code, calldata)
}

fn cases(op: &str) -> Vec<Value> {
    let all = vectors("evm384/pairing_parts.json");
    all.into_iter().filter(|case| case["op"] == op).collect()
}

#[test]
fn the_final_exponentiation_is_that_of_2020() {
    for case in cases("final_exponentiation") {
        for pairing in variants(Part::FinalExponentiation) {
            let outcome = run(pairing, bytes(&case, "input"));
            assert_eq!(returned(&outcome), expected(&case, "output"), "{pairing:?}");
        }
    }
}

/// Our lines differ from those of 2020 by factors that the final exponentiation takes away, where the points are on their curves: those of the
/// second case are not.
#[test]
fn pairings_are_those_of_2020() {
    let points = cases("miller_loop");
    let results = cases("final_exponentiation");
    for (case, result) in points.iter().zip(&results).take(1) {
        for pairing in variants(Part::Pairing) {
            let outcome = run(pairing, bytes(case, "input"));
            assert_eq!(
                returned(&outcome),
                expected(result, "output"),
                "{pairing:?}"
            );
        }
        let unpacked = Pairing {
            part: Part::Pairing,
            interface: Interface::Stack,
            goal: Goal::Gas,
        };
        let outcome = run(unpacked, bytes(case, "input"));
        assert_eq!(returned(&outcome), expected(result, "output"), "v2");
        let outcome = run_of_words(Part::Pairing, bytes(case, "input"));
        assert_eq!(returned(&outcome), expected(result, "output"), "of words");
    }
}

/// Each takes some 30 ms in an optimised build.
#[test]
fn the_check_of_words_decides_as_the_precompile_does() {
    for case in vectors("eip-2537/pairing_check_bls.json").iter().take(8) {
        let outcome = run_of_words(Part::Check, bytes(case, "Input"));
        assert_eq!(
            returned(&outcome),
            expected(case, "Expected"),
            "{}",
            case["Name"]
        );
    }
    for case in vectors("eip-2537/fail-pairing_check_bls.json") {
        let outcome = run_of_words(Part::Check, bytes(&case, "Input"));
        assert!(
            matches!(outcome.end, End::Reverted(_)),
            "{}: {:?}",
            case["Name"],
            outcome.end
        );
    }
}

#[test]
fn the_check_passes_the_vectors_of_eip_2537() {
    for case in vectors("eip-2537/pairing_check_bls.json") {
        for pairing in variants(Part::Check) {
            let outcome = run(pairing, bytes(&case, "Input"));
            let name = &case["Name"];
            assert_eq!(
                returned(&outcome),
                expected(&case, "Expected"),
                "{name}, {pairing:?}"
            );
        }
    }
}

#[test]
fn the_check_reverts_where_the_precompile_fails() {
    for case in vectors("eip-2537/fail-pairing_check_bls.json") {
        for pairing in variants(Part::Check) {
            let outcome = run(pairing, bytes(&case, "Input"));
            let name = &case["Name"];
            assert!(
                matches!(outcome.end, End::Reverted(_)),
                "{name}, {pairing:?}: {:?}",
                outcome.end
            );
        }
    }
}

#[test]
fn contracts_fit_the_code_size_limit() {
    for part in [
        Part::MillerLoop,
        Part::FinalExponentiation,
        Part::Pairing,
        Part::Check,
    ] {
        for pairing in variants(part) {
            let size = pairing.program().code.len();
            assert!(size <= CODE_LIMIT, "{pairing:?}: {size}");
        }
        let size = part.of_words().code.len();
        assert!(size <= CODE_LIMIT, "{part:?} of words: {size}");
    }
}

/// The aims of the project for gas model A; the contract of 2020 took 528,772, and 298,292 in the immediate form.
#[test]
fn a_pairing_costs_less_gas_than_in_2020() {
    let limit = |interface| match interface {
        Interface::V7 => 400_000,
        _ => 200_000,
    };
    for case in cases("miller_loop").iter().take(1) {
        for interface in Interface::ON_MEMORY {
            let pairing = Pairing {
                part: Part::Pairing,
                interface,
                goal: Goal::Gas,
            };
            let gas = run(pairing, bytes(case, "input")).gas_used;
            eprintln!("{interface}: {gas}");
            assert!(gas <= limit(interface), "{interface}: {gas}");
        }
    }
}
