//! Published commitments, transcripts and proofs, byte for byte; from ../shared/vectors, whose entries name their sources.

use arbor_ipa::{
    Committer, Fr, InnerProductProof, Multiproof, Opening, Point, ProofError, Query, Transcript,
    WIDTH, points,
};
use num_bigint::BigUint;
use serde_json::Value;
use std::sync::LazyLock;

static VECTORS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../testdata/vectors.json")).expect("JSON"));

/// Small tables, to be quick; what they compute does not depend on their sizes.
static COMMITTER: LazyLock<Committer> = LazyLock::new(|| Committer::within(6_000_000));

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn list(value: &Value) -> &[Value] {
    let list = value.as_array().expect("a list");
    assert!(!list.is_empty());
    list
}

fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(text(value).trim_start_matches("0x")).expect("hexadecimal")
}

fn point(value: &Value) -> Point {
    Point::from_bytes(&bytes(value)).expect("a point")
}

fn scalar(decimal: &str) -> Fr {
    let number: BigUint = decimal.parse().expect("a number");
    let mut bytes = number.to_bytes_le();
    bytes.resize(32, 0);
    Fr::from_le_bytes(&bytes.try_into().expect("32 bytes")).expect("reduced")
}

fn little_endian(value: &Value) -> Fr {
    Fr::from_le_bytes(&bytes(value).try_into().expect("32 bytes")).expect("reduced")
}

fn polynomial(value: impl Fn(u64) -> u64) -> [Fr; WIDTH] {
    std::array::from_fn(|i| Fr::from(value(i as u64)))
}

#[test]
fn reference_string() {
    let crs = &VECTORS["crs"];
    let expected = list(&crs["points_compressed_be"]);
    assert_eq!(expected.len(), WIDTH);
    let found = Point::to_bytes_batch(points());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.to_vec(), bytes(expected));
    }
}

#[test]
fn commitments() {
    for case in list(&VECTORS["commitments"]["cases"]) {
        let values = match text(&case["scalars"]) {
            "[1..32] repeated 8 times" => polynomial(|i| i % 32 + 1),
            "[0..255]" => polynomial(|i| i),
            "[1..256]" => polynomial(|i| i + 1),
            other => panic!("{other}"),
        };
        assert_eq!(
            COMMITTER.commit(&values).to_bytes().to_vec(),
            bytes(&case["commitment"])
        );
    }
    let case = &VECTORS["jsign"]["001_vector_commitment"];
    let values: Vec<Fr> = list(&case["scalars"])
        .iter()
        .map(|s| scalar(text(s)))
        .collect();
    let commitment = COMMITTER.commit(&values.try_into().expect("256 scalars"));
    let expected = case
        .as_object()
        .expect("an object")
        .iter()
        .find(|(name, _)| name.to_lowercase().contains("commitment"))
        .expect("a commitment");
    assert_eq!(commitment.to_bytes().to_vec(), bytes(expected.1));
}

#[test]
fn transcripts() {
    let vectors = &VECTORS["transcript"];
    for case in list(&vectors["cases"]) {
        let mut transcript = Transcript::new(text(&vectors["label"]).as_bytes());
        for step in case["ops"].as_array().expect("a list") {
            let argument = |i: usize| text(&step[i]);
            match argument(0) {
                "append_scalar" => {
                    let scalar = match argument(1) {
                        "-1 mod n" => -Fr::ONE,
                        number => scalar(number),
                    };
                    transcript.append_scalar(argument(2).as_bytes(), scalar);
                }
                "domain_sep" => transcript.domain_separator(argument(1).as_bytes()),
                "append_point" => {
                    assert_eq!(argument(1), "generator");
                    transcript.append_point(argument(2).as_bytes(), &Point::generator());
                }
                other => panic!("{other}"),
            }
        }
        let challenge = transcript.challenge(text(&vectors["challenge_label"]).as_bytes());
        assert_eq!(challenge, little_endian(&case["challenge"]));
    }
}

#[test]
fn inner_product_proof() {
    let vectors = &VECTORS["ipa"];
    let values = polynomial(|i| i % 32 + 1);
    let commitment = COMMITTER.commit(&values);
    assert_eq!(commitment, point(&vectors["commitment"]));
    let at = Fr::from(vectors["input_point"].as_u64().expect("a number"));
    let mut transcript = Transcript::new(b"test");
    let (proof, value) =
        InnerProductProof::prove(&COMMITTER, &mut transcript, &commitment, &values, at);
    assert_eq!(value, little_endian(&vectors["output_point_le"]));
    assert_eq!(proof.to_bytes(), bytes(&vectors["proof_544_bytes"]));
    let state = transcript.challenge(b"state");
    assert_eq!(state, little_endian(&vectors["challenge_state_after_le"]));

    let decoded = InnerProductProof::from_bytes(&proof.to_bytes()).expect("decodes");
    assert_eq!(decoded, proof);
    let mut transcript = Transcript::new(b"test");
    assert!(decoded.verify(&COMMITTER, &mut transcript, &commitment, at, value));
    assert_eq!(transcript.challenge(b"state"), state);
    let mut transcript = Transcript::new(b"test");
    assert!(!decoded.verify(
        &COMMITTER,
        &mut transcript,
        &commitment,
        at,
        value + Fr::ONE
    ));
}

fn two_openings() -> ([[Fr; WIDTH]; 2], Vec<Query>) {
    let vectors = list(&VECTORS["multiproof"]["queries"]);
    let polynomials = [polynomial(|i| i % 32 + 1), polynomial(|i| 32 - i % 32)];
    let queries = vectors.iter().map(|query| Query {
        commitment: point(&query["commitment"]),
        point: query["z"].as_u64().expect("a number") as u8,
        value: Fr::from(query["y"].as_u64().expect("a number")),
    });
    (polynomials, queries.collect())
}

#[test]
fn multiproof() {
    let vectors = &VECTORS["multiproof"];
    let (polynomials, queries) = two_openings();
    let openings: Vec<_> = queries
        .iter()
        .zip(&polynomials)
        .map(|(query, polynomial)| Opening {
            commitment: COMMITTER.commit(polynomial),
            polynomial,
            point: query.point,
        })
        .collect();
    let mut transcript = Transcript::new(b"test");
    let proof = Multiproof::prove(&COMMITTER, &mut transcript, &openings);
    assert_eq!(proof.to_bytes(), bytes(&vectors["proof_576_bytes"]));
    let state = transcript.challenge(b"state");
    assert_eq!(state, little_endian(&vectors["challenge_state_after_le"]));

    let mut transcript = Transcript::new(b"test");
    assert!(proof.verify(&COMMITTER, &mut transcript, &queries));
    assert_eq!(transcript.challenge(b"state"), state);
}

/// Each byte of the published proof changed in turn: an error of decoding, or false.
#[test]
fn tampered_multiproofs_are_rejected() {
    let (_, queries) = two_openings();
    let proof = bytes(&VECTORS["multiproof"]["proof_576_bytes"]);
    let mut decoded = 0;
    for i in 0..proof.len() {
        let mut tampered = proof.clone();
        tampered[i] ^= 1 << (i % 8);
        if let Ok(tampered) = Multiproof::from_bytes(&tampered) {
            decoded += 1;
            let mut transcript = Transcript::new(b"test");
            assert!(
                !tampered.verify(&COMMITTER, &mut transcript, &queries),
                "byte {i}"
            );
        }
    }
    assert!(
        decoded > 50,
        "a quarter of all strings are points: {decoded}"
    );
}

#[test]
fn malformed_proofs() {
    let case = &VECTORS["jsign"]["009_deserialize_proof_invalid_final_scalar"];
    let found = Multiproof::from_bytes(&bytes(&case["serializedProof"]));
    let inner = InnerProductProof::from_bytes(&bytes(&case["serializedProof"]));
    assert!(
        found == Err(ProofError::Scalar) || inner == Err(ProofError::Scalar),
        "{found:?} {inner:?}"
    );
    let case = &VECTORS["jsign"]["010_deserialize_proof_wrong_length"];
    for proof in list(&case["serializedProofs"]) {
        let proof = bytes(proof);
        let expected = |expected| ProofError::Length {
            expected,
            found: proof.len(),
        };
        assert_eq!(Multiproof::from_bytes(&proof), Err(expected(576)));
        assert_eq!(InnerProductProof::from_bytes(&proof), Err(expected(544)));
    }
}

fn big_endian(value: &Value) -> Fr {
    let mut bytes: [u8; 32] = bytes(value).try_into().expect("32 bytes");
    bytes.reverse();
    Fr::from_le_bytes(&bytes).expect("reduced")
}

#[test]
fn outside_inner_product_proof_inside_the_domain() {
    let case = &VECTORS["jsign"]["012_in_domain_ipa_proof_verification"];
    let proof = bytes(&case["ipaSerializedProof"]);
    let proof = InnerProductProof::from_bytes(&proof).expect("decodes");
    let commitment = point(&case["pedersenCommitment"]);
    let verify = |at: u64| {
        let mut transcript = Transcript::new(b"ipa");
        let value = big_endian(&case["evaluationResultFr"]);
        proof.verify(
            &COMMITTER,
            &mut transcript,
            &commitment,
            Fr::from(at),
            value,
        )
    };
    let at = case["evaluationPoint"].as_u64().expect("a number");
    assert!(verify(at));
    assert!(!verify(at + 1));
}

/// One proof that is right for one point only.
#[test]
fn outside_multiproof_at_all_points() {
    let case = &VECTORS["jsign"]["011_range_proof_verification"]["forgedEvaluationResult"];
    let proof = Multiproof::from_bytes(&bytes(&case["serializedProof"])).expect("decodes");
    let at = case["evaluationPoint"].as_u64().expect("a number");
    let commitment = point(&case["pedersenCommitment"]);
    let value = big_endian(&case["evaluationResultFr"]);
    for point in 0..=255 {
        let query = Query {
            commitment,
            point,
            value,
        };
        let verified = proof.verify(&COMMITTER, &mut Transcript::new(b"multiproof"), &[query]);
        assert_eq!(verified, u64::from(point) == at, "point {point}");
    }
}

#[test]
fn pedersen_hashes_and_tree_keys() {
    let vectors = &VECTORS["pedersen_and_tree_keys"];
    for case in list(&vectors["pedersen_hash"]) {
        let hash = COMMITTER.pedersen_hash(&bytes(&case["input"]));
        assert_eq!(hash.to_vec(), bytes(&case["output"]));
    }
    // (index, sub-index) of what is asked for: EIP-6800, "Tree embedding".
    let storage = |slot: BigUint| {
        let position = if slot < 64u32.into() {
            slot + 64u32
        } else {
            (BigUint::from(1u32) << 248u32) + slot
        };
        (&position >> 8u32, (position % 256u32).to_bytes_le()[0])
    };
    let mut seen = 0;
    for case in list(&vectors["tree_keys"]) {
        let what = text(&case["what"]);
        let number = |prefix: &str| {
            what.strip_prefix(prefix)
                .map(|number| match number.strip_prefix("0x") {
                    Some(digits) => {
                        BigUint::parse_bytes(digits.as_bytes(), 16).expect("hexadecimal")
                    }
                    None => number.parse().expect("a number"),
                })
        };
        let (index, sub) = if what == "basic_data" {
            (0u32.into(), 0)
        } else if what == "code_hash" {
            (0u32.into(), 1)
        } else if let Some(chunk) = number("code chunk ") {
            let position = chunk + 128u32;
            let sub = (&position % 256u32)
                .to_u32_digits()
                .first()
                .copied()
                .unwrap_or(0) as u8;
            (position >> 8u32, sub)
        } else {
            storage(number("storage slot ").expect("a kind of key"))
        };
        let mut address = [0; 32];
        address[12..].copy_from_slice(&bytes(&case["address"]));
        let mut index_bytes = index.to_bytes_le();
        index_bytes.resize(32, 0);
        let index: [u8; 32] = index_bytes.try_into().expect("32 bytes");
        let stem = COMMITTER.stems(&[(address, index)])[0];
        let kept = COMMITTER.address_commitments(&[address])[0];
        assert_eq!(COMMITTER.stems_of_addresses(&[(kept, index)]), [stem]);
        assert_eq!([&stem[..], &[sub]].concat(), bytes(&case["key"]), "{what}");
        seen += 1;
    }
    assert_eq!(seen, 7);
    let case = &vectors["tree_key_32byte_address"];
    let mut index: [u8; 32] = bytes(&case["tree_index_bytes"])
        .try_into()
        .expect("32 bytes");
    index.reverse();
    let address = bytes(&case["address32"]).try_into().expect("32 bytes");
    let stem = COMMITTER.stems(&[(address, index)])[0];
    assert_eq!(stem.to_vec(), bytes(&case["key"])[..31]);
}
