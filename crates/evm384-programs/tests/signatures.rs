//! The map and the hash to G2, and signatures, against vectors and blst.

use crate::common::{CODE_LIMIT, bytes, expected, returned, run, run_with, vectors};
use arbor_evm384::{End, Interface};
use arbor_evm384_programs::BuiltIn;
use arbor_evm384_programs::bls12_381::{
    Goal, Group, ORDER, SIGNATURE_DOMAIN, hash_to_g2, map_to_g2,
};
use blst::{blst_fp, blst_p1_affine, blst_p2, blst_p2_affine, blst_scalar};

const RFC_DOMAIN: &[u8] = b"QUUX-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_";

fn variants() -> impl Iterator<Item = (Interface, Goal)> {
    Interface::ON_MEMORY
        .into_iter()
        .flat_map(|interface| [Goal::Time, Goal::Gas].map(|goal| (interface, goal)))
}

/// As EIP-2537 has residues.
fn encoded<'a>(residues: impl IntoIterator<Item = &'a blst_fp>) -> Vec<u8> {
    let encoded = residues.into_iter().map(|residue| {
        let mut bytes = [0; 64];
        // SAFETY: blst writes 48 bytes.
        unsafe { blst::blst_bendian_from_fp(bytes[16..].as_mut_ptr(), residue) };
        bytes
    });
    encoded.flatten().collect()
}

fn encoded_g2(point: &blst_p2) -> Vec<u8> {
    let mut affine = blst_p2_affine::default();
    // SAFETY: both pointers are to values of their types.
    unsafe { blst::blst_p2_to_affine(&mut affine, point) };
    encoded(affine.x.fp.iter().chain(&affine.y.fp))
}

fn hashed(message: &[u8], domain: &[u8]) -> blst_p2 {
    let mut point = blst_p2::default();
    // SAFETY: pointers and lengths are those of slices; there is no augmentation.
    unsafe {
        blst::blst_hash_to_g2(
            &mut point,
            message.as_ptr(),
            message.len(),
            domain.as_ptr(),
            domain.len(),
            std::ptr::null(),
            0,
        );
    }
    point
}

/// A key pair's public part and its signature of a message, as EIP-2537's points.
fn signed(secret: u64, message: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut scalar = blst_scalar::default();
    let mut key = blst_p1_affine::default();
    let mut signature = blst_p2::default();
    let words = [secret, 0, 0, 0];
    // SAFETY: all pointers are to values of their types; the words are those of a scalar.
    unsafe {
        blst::blst_scalar_from_uint64(&mut scalar, words.as_ptr());
        blst::blst_sk_to_pk2_in_g1(std::ptr::null_mut(), &mut key, &scalar);
        blst::blst_sign_pk_in_g1(&mut signature, &hashed(message, SIGNATURE_DOMAIN), &scalar);
    }
    (encoded([&key.x, &key.y]), encoded_g2(&signature))
}

#[test]
fn the_map_passes_the_vectors_of_eip_2537() {
    for (interface, goal) in variants() {
        let code = map_to_g2(interface, goal).code;
        for case in vectors("eip-2537/map_fp2_to_G2_bls.json") {
            let outcome = run(interface, &code, bytes(&case, "Input"));
            assert_eq!(
                returned(&outcome),
                expected(&case, "Expected"),
                "{}",
                case["Name"]
            );
        }
        for case in vectors("eip-2537/fail-map_fp2_to_G2_bls.json") {
            let outcome = run(interface, &code, bytes(&case, "Input"));
            assert!(matches!(outcome.end, End::Reverted(_)), "{}", case["Name"]);
        }
    }
}

/// u = 0 is where the map's denominator is zero; the others lie in Fp or on the imaginary axis.
#[test]
fn the_map_holds_where_values_vanish() {
    let code = map_to_g2(Interface::V7, Goal::Time).code;
    for (real, imaginary) in [(0, 0), (1, 0), (0, 1), (5, 0), (0, 5), (7, 7)] {
        let mut calldata = vec![0; 128];
        (calldata[63], calldata[127]) = (real, imaginary);
        let outcome = run(Interface::V7, &code, calldata.clone());
        let precompile = revm::precompile::bls12_381::map_fp2_to_g2::map_fp2_to_g2;
        let judge = precompile(&calldata, u64::MAX).expect("valid").bytes;
        assert_eq!(outcome.output(), Some(&judge), "{real} + {imaginary} i");
    }
}

/// RFC 9380, J.10.1, for the empty message; blst for all.
#[test]
fn hashes_are_those_of_rfc_9380() {
    let empty = [
        "0141ebfbdca40eb85b87142e130ab689c673cf60f1a3e98d69335266f30d9b8d4ac44c1038e9dcdd5393faf5c41fb78a",
        "05cb8437535e20ecffaef7752baddf98034139c38452458baeefab379ba13dff5bf5dd71b72418717047f5b0f37da03d",
        "0503921d7f6a12805e72940b963c0cf3471c7b2a524950ca195d11062ee75ec076daf2d4bc358c4b190c0c98064fdd92",
        "12424ac32561493f3fe3c260708a12b7c620e7be00099a974e259ddc7d1f6395c3c811cdd19f1e8dbf3e9ecfdcbab8d6",
    ];
    let zeros = "0".repeat(32);
    let empty: String = empty.iter().map(|part| zeros.clone() + part).collect();
    let of_blst = |message: &[u8], domain| hex::encode(encoded_g2(&hashed(message, domain)));
    assert_eq!(of_blst(b"", RFC_DOMAIN), empty);
    let long = b"0123456789abcdef".repeat(33);
    let messages: [&[u8]; 6] = [
        b"",
        b"abc",
        b"abcdef0123456789",
        &long[..31],
        &long[..64],
        &long,
    ];
    for (interface, goal) in variants() {
        for domain in [RFC_DOMAIN, SIGNATURE_DOMAIN, &[7; 31], &[9; 255]] {
            let code = hash_to_g2(domain, interface, goal).code;
            for message in messages {
                let outcome = run(interface, &code, message.to_vec());
                assert_eq!(returned(&outcome), of_blst(message, domain));
            }
        }
    }
}

fn verified(interface: Interface, goal: Goal, calldata: Vec<u8>) -> bool {
    let contract = BuiltIn::VerifySignature;
    let code = contract.program(interface, goal).code;
    let others = contract.others(interface, goal);
    let outcome = run_with(interface, &code, &others, calldata);
    let output = outcome.output().expect("it returns").to_vec();
    assert_eq!((output.len(), &output[..31]), (32, &[0; 31][..]));
    output[31] == 1
}

#[test]
fn signatures_are_verified() {
    let message = b"the words that are signed";
    let (key, signature) = signed(0x1234_5678_9abc_def1, message);
    let (other_key, other_signature) = signed(0x1234_5678_9abc_def3, message);
    let calldata =
        |key: &[u8], signature: &[u8], message: &[u8]| [key, signature, message].concat();
    for (interface, goal) in variants() {
        let check = |key: &[u8], signature: &[u8], message: &[u8]| {
            verified(interface, goal, calldata(key, signature, message))
        };
        assert!(check(&key, &signature, message));
        assert!(check(&other_key, &other_signature, message));
        assert!(!check(&other_key, &signature, message));
        assert!(!check(&key, &other_signature, message));
        assert!(!check(&key, &signature, b"the words that are not signed"));
        assert!(!check(&key, &signature, b""));
    }
}

/// The sample was no signature of its message, and the first call of the contract returned 0.
#[test]
fn the_sample_is_a_true_signature() {
    let (key, signature) = signed(0x1234_5678_9abc_def1, b"message");
    let sample = BuiltIn::VerifySignature.sample();
    assert_eq!(sample, [&key[..], &signature, b"message"].concat());
    for (interface, goal) in variants() {
        assert!(verified(interface, goal, sample.clone()));
    }
}

/// A zero key with a zero signature satisfies the equation for every message.
#[test]
fn what_is_no_key_or_signature_is_refused() {
    let message = b"message";
    let (key, signature) = signed(77, message);
    let not_in_subgroup = vectors("eip-2537/fail-mul_G2_bls.json")
        .iter()
        .find(|case| {
            case["Name"]
                .as_str()
                .is_some_and(|name| name.contains("subgroup"))
        })
        .map(|case| bytes(case, "Input")[..256].to_vec());
    let mut off_curve = signature.clone();
    off_curve[255] ^= 1;
    let mut too_large = key.clone();
    too_large[..16].fill(0xff);
    let zero = [vec![0; 128], vec![0; 256]];
    for (interface, goal) in variants() {
        let check = |key: &[u8], signature: &[u8]| {
            verified(interface, goal, [key, signature, message].concat())
        };
        assert!(!check(&zero[0], &zero[1]));
        assert!(!check(&zero[0], &signature));
        assert!(!check(&key, &zero[1]));
        assert!(!check(&key, &off_curve));
        assert!(!check(&too_large, &signature));
        if let Some(point) = &not_in_subgroup {
            assert!(!check(&key, point));
        }
        let code = BuiltIn::VerifySignature.program(interface, goal).code;
        let short = run(interface, &code, vec![0; 383]);
        assert!(matches!(short.end, End::Reverted(_)));
    }
}

#[test]
fn contracts_fit_the_code_size_limit() {
    for (interface, goal) in variants() {
        for contract in [BuiltIn::MapToG2, BuiltIn::VerifySignature] {
            let size = contract.program(interface, goal).code.len();
            assert!(
                size <= CODE_LIMIT,
                "{contract:?}, {interface}, {goal:?}: {size}"
            );
        }
    }
}

#[test]
fn the_order_is_that_of_the_generators() {
    let code = BuiltIn::Multiples(Group::G2)
        .program(Interface::V7, Goal::Time)
        .code;
    let less: [u8; 32] = (ORDER - ORDER / ORDER).to_be_bytes();
    let outcome = run(
        Interface::V7,
        &code,
        [&Group::G2.generator()[..], &less].concat(),
    );
    assert_eq!(
        returned(&outcome),
        hex::encode(Group::G2.opposite_generator())
    );
}
