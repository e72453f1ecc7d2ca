//! Verkle witnesses verified by contracts: the vectors of other implementations and what `arbor_ipa` proves, true and false.

use crate::common::{CODE_LIMIT, run_in, run_with, vectors_object};
use arbor_evm384::{End, Interface, Outcome};
use arbor_evm384_programs::bls12_381::Goal;
use arbor_evm384_programs::verkle::{
    GROUP_ORDER, Statement, point_calldata, proof_calldata, reference_string, verifier,
};
use arbor_evm384_programs::{BuiltIn, REFERENCE_STRING};
use arbor_field::{Fp, sqrt};
use arbor_ipa::{Committer, Fr, Multiproof, Opening, Transcript, WIDTH};
use revm::primitives::{Address, U256};
use serde_json::Value;
use std::sync::LazyLock;

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(value.as_str().expect("a string")).expect("hex")
}

fn point(value: &Value) -> Vec<u8> {
    let compressed: [u8; 32] = bytes(value).try_into().expect("32 bytes");
    point_calldata(&compressed).expect("a point")
}

fn code(statement: Statement, label: &[u8], interface: Interface) -> Vec<u8> {
    verifier(statement, label, REFERENCE_STRING, interface, Goal::Time).code
}

/// What code of the reference string's contract there is, made once.
static OTHERS: LazyLock<[(Address, Vec<u8>); 1]> =
    LazyLock::new(|| [(REFERENCE_STRING, reference_string())]);

fn call(interface: Interface, code: &[u8], calldata: Vec<u8>) -> Outcome {
    run_in(true, interface, code, &*OTHERS, calldata)
}

/// What the contract says; nothing if it reverts.
fn verdict(outcome: &Outcome) -> Option<bool> {
    match &outcome.end {
        End::Returned(word) => {
            assert_eq!((word.len(), &word[..31]), (32, &[0; 31][..]));
            Some(word[31] == 1)
        }
        End::Reverted(_) => None,
        End::Halted(reason) => panic!("{reason:?}"),
    }
}

/// True, and then false or refused with any byte changed that is asked for.
fn is_bound(statement: Statement, label: &[u8], calldata: &[u8], changes: &[usize]) {
    for interface in Interface::ON_MEMORY {
        let code = code(statement, label, interface);
        assert_eq!(
            verdict(&run_with(interface, &code, &*OTHERS, calldata.to_vec())),
            Some(true)
        );
    }
    let code = code(statement, label, Interface::V7);
    for &change in changes {
        let mut changed = calldata.to_vec();
        changed[change] ^= 1;
        let verdict = verdict(&call(Interface::V7, &code, changed));
        assert_ne!(verdict, Some(true), "{statement:?}: byte {change}");
    }
    for length in [0, calldata.len() - 1, calldata.len() - 32] {
        let outcome = call(Interface::V7, &code, calldata[..length].to_vec());
        assert_eq!(verdict(&outcome), None, "{statement:?}: {length} bytes");
    }
}

#[test]
fn published_commitments_are_verified() {
    let vectors = vectors_object("small/commitments.json");
    let scalars: [&dyn Fn(u64) -> u64; 3] = [&|i| i % 32 + 1, &|i| i, &|i| i + 1];
    let cases = vectors["cases"].as_array().into_iter().flatten();
    for (case, scalar) in cases.zip(scalars) {
        let scalars = (0..256).flat_map(|i| U256::from(scalar(i)).to_be_bytes_vec());
        let calldata: Vec<u8> = point(&case["commitment"])
            .into_iter()
            .chain(scalars)
            .collect();
        is_bound(
            Statement::Commitment,
            b"vt",
            &calldata,
            &[31, 63, 95, 127, calldata.len() - 1],
        );
    }
}

#[test]
fn scalars_must_be_reduced() {
    let mut calldata = BuiltIn::InnerProduct(Statement::Commitment).sample();
    let scalar: &mut [u8] = &mut calldata[96..128];
    let value = U256::from_be_slice(scalar);
    scalar.copy_from_slice(&(value + GROUP_ORDER).to_be_bytes::<32>());
    let code = code(Statement::Commitment, b"vt", Interface::V7);
    assert_eq!(verdict(&call(Interface::V7, &code, calldata)), None);
}

#[test]
fn the_published_argument_is_verified() {
    let vector = vectors_object("small/ipa.json");
    if vector.is_null() {
        return;
    }
    let mut input = U256::from(vector["input_point"].as_u64().expect("a number")).to_be_bytes_vec();
    input.reverse();
    let proof = proof_calldata(&bytes(&vector["proof_544_bytes"])).expect("a proof");
    let output = bytes(&vector["output_point_le"]);
    let calldata = [point(&vector["commitment"]), input, output, proof].concat();
    // Commitment, its hints, the point, the value, L, R, the scalar.
    let changes = [
        31,
        63,
        95,
        96,
        128,
        191,
        255,
        160 + 8 * 96 + 31,
        calldata.len() - 32,
    ];
    is_bound(Statement::Opening, b"test", &calldata, &changes);
    let other = code(Statement::Opening, b"vt", Interface::V7);
    assert_eq!(verdict(&call(Interface::V7, &other, calldata)), Some(false));
}

#[test]
fn the_published_multiproof_is_verified() {
    let vector = vectors_object("small/multiproof.json");
    if vector.is_null() {
        return;
    }
    let mut calldata = proof_calldata(&bytes(&vector["proof_576_bytes"])).expect("a proof");
    for query in vector["queries"].as_array().expect("queries") {
        calldata.extend(point(&query["commitment"]));
        let number = |key: &str| U256::from(query[key].as_u64().expect("a number"));
        calldata.extend(number("z").to_be_bytes::<32>());
        calldata.extend(number("y").to_le_bytes::<32>());
    }
    // D, L, R, the scalar; of the queries the commitment, the point, the value.
    let queries = calldata.len() - 320;
    let changes = [
        31,
        127,
        9 * 96 + 31,
        queries - 32,
        queries + 31,
        queries + 127,
        queries + 128,
    ];
    is_bound(Statement::Openings, b"test", &calldata, &changes);
}

/// More commitments than the narrow windows are for.
#[test]
fn a_multiproof_of_many_commitments_is_verified() {
    let committer = Committer::within(6_000_000);
    let polynomials: Vec<[Fr; WIDTH]> = (0..40u64)
        .map(|k| std::array::from_fn(|i| Fr::from((i as u64 + 7 * k).pow(3))))
        .collect();
    let openings: Vec<Opening<'_>> = polynomials
        .iter()
        .enumerate()
        .map(|(k, polynomial)| Opening {
            commitment: committer.commit(polynomial),
            polynomial,
            point: (k * 6) as u8,
        })
        .collect();
    let proof = Multiproof::prove(&committer, &mut Transcript::new(b"vt"), &openings);
    let mut calldata = proof_calldata(&proof.to_bytes()).expect("a proof");
    for opening in &openings {
        let at = usize::from(opening.point);
        calldata.extend(point_calldata(&opening.commitment.to_bytes()).expect("a point"));
        calldata.extend(U256::from(at).to_be_bytes::<32>());
        calldata.extend(opening.polynomial[at].to_le_bytes());
    }
    let last = calldata.len() - 1;
    is_bound(
        Statement::Openings,
        b"vt",
        &calldata,
        &[last - 31, last - 32],
    );
}

/// Published x of points of the curve that are in no subgroup: with their y, 1 + 5 x^2 has no root that could be given.
#[test]
fn points_outside_the_subgroup_are_refused() {
    let vectors = vectors_object("small/banderwagon.json");
    let sample = BuiltIn::InnerProduct(Statement::Commitment).sample();
    let code = code(Statement::Commitment, b"vt", Interface::V7);
    let d = "6389c12633c267cbc66e3bf86be3b6d8cb66677177e54f92b369f2f5188d58e7";
    let number =
        |bytes: Vec<u8>| Fp::from_be_bytes(&bytes.try_into().expect("32 bytes")).expect("reduced");
    let d = number(hex::decode(d).expect("hex"));
    let outside = vectors["decode_must_fail_not_in_subgroup"].as_array();
    let mut tried = 0;
    for x in outside.into_iter().flatten() {
        let x = number(bytes(x));
        let other = Fp::ONE + x * x * Fp::from(5u64);
        let yy = other * (Fp::ONE - d * x * x).inverse();
        assert!(sqrt(other).is_none(), "it is in the subgroup");
        let Some(y) = sqrt(yy) else { continue };
        tried += 1;
        for y in [y, -y] {
            for root in [Fp::ONE, other, y] {
                let point = [x, y, root].map(Fp::to_be_bytes).concat();
                let calldata = [&point[..], &sample[96..]].concat();
                assert_eq!(verdict(&call(Interface::V7, &code, calldata)), None);
            }
        }
    }
    assert!(tried > 0 || vectors.is_null());
}

#[test]
fn contracts_fit_the_code_size_limit() {
    assert!(reference_string().len() <= CODE_LIMIT);
    for interface in Interface::ON_MEMORY {
        for statement in [
            Statement::Commitment,
            Statement::Opening,
            Statement::Openings,
        ] {
            let size = code(statement, b"vt", interface).len();
            assert!(size <= CODE_LIMIT, "{statement:?}, {interface}: {size}");
        }
    }
}
