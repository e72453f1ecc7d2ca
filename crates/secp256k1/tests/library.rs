//! Every method gives exactly what libsecp256k1 gives.

use arbor_secp256k1::{Key, Method, Signed, addresses};
use num_bigint::BigUint;
use proptest::prelude::*;
use secp256k1::{Message, PublicKey, SecretKey, ecdsa::RecoverableSignature};
use sha2::{Digest, Sha256};

fn number(hex: &str) -> BigUint {
    BigUint::parse_bytes(hex.as_bytes(), 16).expect("hexadecimal")
}

fn order() -> BigUint {
    number("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
}

fn prime() -> BigUint {
    (BigUint::from(1u8) << 256) - (BigUint::from(1u8) << 32) - 977u32
}

fn bytes(n: &BigUint) -> [u8; 32] {
    let digits = n.to_bytes_be();
    let mut bytes = [0; 32];
    bytes[32 - digits.len()..].copy_from_slice(&digits);
    bytes
}

/// A sound signature, by the library, and its key.
fn signed(secret: [u8; 32], digest: [u8; 32]) -> Option<(Signed, Key)> {
    let secret = SecretKey::from_secret_bytes(secret).ok()?;
    let message = Message::from_digest(digest);
    let signature = RecoverableSignature::sign_ecdsa_recoverable(message, &secret);
    let (id, compact) = signature.serialize_compact();
    let (halves, _) = compact.as_chunks::<32>();
    let id = id as i32;
    let [_, key @ ..] = PublicKey::from_secret_key(&secret).serialize_uncompressed();
    let signed = Signed {
        digest,
        r: halves[0],
        s: halves[1],
        y_is_odd: id & 1 == 1,
        x_is_large: id & 2 == 2,
    };
    Some((signed, key))
}

fn nth(n: u32) -> (Signed, Key) {
    let hash = |kind: u8| Sha256::digest([&[kind][..], &n.to_be_bytes()].concat()).into();
    signed(hash(0), hash(1)).expect("a secret")
}

/// All methods recover the same, and so do they in batches of any size.
fn agree(all: &[Signed]) {
    let expected = Method::LIBRARY.recover(all);
    for method in Method::available() {
        let found = method.recover(all);
        for ((found, expected), signed) in found.iter().zip(&expected).zip(all) {
            assert_eq!(found, expected, "{}: {signed:?}", method.name());
        }
        assert_eq!(found.len(), expected.len());
    }
}

/// Batches of every size up to two vectors and some beyond: whole vectors, odd ends, several chunks.
#[test]
fn sound_signatures_in_batches_of_many_sizes() {
    let all: Vec<_> = (0..133).map(nth).collect();
    let signatures: Vec<_> = all.iter().map(|one| one.0).collect();
    for method in Method::available() {
        for count in (0..=17).chain([31, 33, 64, 65, 66, 133]) {
            let found = method.recover(&signatures[..count]);
            assert_eq!(found.len(), count);
            for (found, (_, key)) in found.iter().zip(&all) {
                assert_eq!(found.as_ref(), Ok(key), "{} {count}", method.name());
            }
        }
    }
}

/// r and s at their edges, in all recovery ids, with digests at theirs: every combination.
#[test]
fn edges_of_every_number() {
    let (n, p, one) = (order(), prime(), BigUint::from(1u8));
    let half: BigUint = &n >> 1;
    let top: BigUint = (&one << 256) - 1u8;
    let large = &p - &n;
    let r = [
        BigUint::ZERO,
        one.clone(),
        BigUint::from(2u8),
        BigUint::from(4u8),
        BigUint::from(5u8),
        &large - 2u8,
        &large - 1u8,
        large.clone(),
        &large + 1u8,
        &n - 1u8,
        n.clone(),
        &n + 1u8,
        &p - 1u8,
        p.clone(),
        top.clone(),
    ];
    let s = [
        BigUint::ZERO,
        one.clone(),
        half.clone(),
        &half + 1u8,
        &n - 1u8,
        n.clone(),
        top.clone(),
    ];
    let digests = [BigUint::ZERO, one, &n - 1u8, n.clone(), &n + 1u8, top];
    let mut all = Vec::new();
    for r in &r {
        for s in &s {
            for digest in &digests {
                for id in 0..4 {
                    all.push(Signed {
                        digest: bytes(digest),
                        r: bytes(r),
                        s: bytes(s),
                        y_is_odd: id & 1 == 1,
                        x_is_large: id & 2 == 2,
                    });
                }
            }
        }
    }
    agree(&all);
    // Both kinds are among them, also with r plus the order.
    let found = Method::LIBRARY.recover(&all);
    let large = |at: usize| all[at].x_is_large;
    assert!((0..all.len()).any(|at| large(at) && found[at].is_ok()));
    assert!((0..all.len()).any(|at| !large(at) && found[at].is_ok()));
}

/// The key would be infinity: z = s m for the point m G.
#[test]
fn keys_at_infinity_among_sound_ones() {
    let n = order();
    let mut all = Vec::new();
    for m in 1u32..=40 {
        let secret = SecretKey::from_secret_bytes(bytes(&BigUint::from(m))).expect("a secret");
        let point = PublicKey::from_secret_key(&secret).serialize_uncompressed();
        let s = BigUint::from(m) * 0x1234_5678_9abc_def1u64 + 7u8;
        all.push(Signed {
            digest: bytes(&(&s * m % &n)),
            r: bytes(&(BigUint::from_bytes_be(&point[1..33]) % &n)),
            s: bytes(&s),
            y_is_odd: point[64] & 1 == 1,
            x_is_large: false,
        });
        all.push(nth(m).0);
    }
    agree(&all);
    let found = Method::LIBRARY.recover(&all);
    for (at, found) in found.iter().enumerate() {
        assert_eq!(found.is_ok(), at % 2 == 1);
    }
}

/// Small multiples of the generator as the signer's point: its table meets the generator's.
#[test]
fn points_that_are_small_multiples_of_the_generator() {
    let n = order();
    let mut all = Vec::new();
    for m in 1u32..=64 {
        let secret = SecretKey::from_secret_bytes(bytes(&BigUint::from(m))).expect("a secret");
        let point = PublicKey::from_secret_key(&secret).serialize_uncompressed();
        let r = BigUint::from_bytes_be(&point[1..33]) % &n;
        for (u1, u2) in [
            (1u32, 1u32),
            (2, 1),
            (1, 2),
            (31, 32),
            (0, 1),
            (m, 1),
            (33, m),
            (0, m),
        ] {
            all.push(Signed {
                digest: bytes(&((&n - &r * u1 % &n) % &n)),
                r: bytes(&r),
                s: bytes(&(&r * u2 % &n)),
                y_is_odd: point[64] & 1 == 1,
                x_is_large: false,
            });
        }
    }
    agree(&all);
}

#[test]
fn addresses_are_hashes_of_keys() {
    // The key 1's address.
    let mut secret = [0; 32];
    secret[31] = 1;
    let (_, key) = signed(secret, [1; 32]).expect("sound");
    let expected = number("7e5f4552091a69125d5dfcb7b8c2659029395bdf").to_bytes_be();
    assert_eq!(addresses(&[key; 9]), vec![expected.as_slice(); 9]);
}

/// Checks that all methods accept the same.
fn agree_on_validity(signatures: &[Signed], keys: &[Key]) -> Vec<bool> {
    let expected = Method::LIBRARY.verify(signatures, keys);
    for method in Method::available() {
        let found = method.verify(signatures, keys);
        for at in 0..expected.len() {
            let context = (method.name(), &signatures[at]);
            assert_eq!(found[at], expected[at], "{context:?} {:?}", keys[at]);
        }
    }
    expected
}

/// Sound signatures, high ones, wrong keys, digests and numbers, and keys off the curve or not reduced.
#[test]
fn verification_accepts_what_the_library_accepts() {
    let n = order();
    let (mut signatures, mut keys) = (Vec::new(), Vec::new());
    for at in 0..40 {
        let (mut one, mut key) = nth(at);
        match at % 8 {
            1 => one.digest[at as usize % 32] ^= 1,
            2 => key = nth(at + 1).1,
            3 => key[63] ^= 1,
            4 => one.s = bytes(&(&n - BigUint::from_bytes_be(&one.s))),
            5 => one.r = bytes(&(BigUint::from_bytes_be(&one.r) + 1u8)),
            6 => key[..32].copy_from_slice(&[0xff; 32]),
            7 => one.s = if at % 16 == 7 { [0; 32] } else { bytes(&n) },
            _ => (),
        }
        signatures.push(one);
        keys.push(key);
    }
    let valid = agree_on_validity(&signatures, &keys);
    for (at, valid) in valid.iter().enumerate() {
        assert_eq!(*valid, at % 8 == 0, "{at}");
    }
}

/// Wycheproof's signatures over SHA-256, verified against their keys, and as signatures to recover from.
#[test]
fn wycheproof_s_vectors() {
    use wycheproof::ecdsa::{TestName, TestSet};
    let set = TestSet::load(TestName::EcdsaSecp256k1Sha256P1363).expect("vectors");
    let (mut signatures, mut keys, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for group in &set.test_groups {
        let key = &group.key.key;
        for test in &group.tests {
            // Other lengths are no numbers of 32 bytes: not this crate's to read.
            let Ok(compact) = <[u8; 64]>::try_from(test.sig.as_slice()) else {
                continue;
            };
            let (halves, _) = compact.as_chunks::<32>();
            for id in 0..4 {
                signatures.push(Signed {
                    digest: Sha256::digest(&test.msg).into(),
                    r: halves[0],
                    s: halves[1],
                    y_is_odd: id & 1 == 1,
                    x_is_large: id & 2 == 2,
                });
                keys.push(<Key>::try_from(&key[1..]).expect("an uncompressed key"));
                valid.push(!test.result.must_fail());
            }
        }
    }
    assert!(signatures.len() > 400, "{} signatures", signatures.len());
    agree(&signatures);
    // A high s is valid to Wycheproof, and not to the library.
    let half: BigUint = order() >> 1;
    let expected = agree_on_validity(&signatures, &keys);
    for ((valid, expected), signed) in valid.iter().zip(expected).zip(&signatures) {
        let is_low = BigUint::from_bytes_be(&signed.s) <= half;
        assert_eq!(*valid && is_low, expected, "{signed:?}");
    }
    // A valid one is among those of its four recovery ids whose key is the signer's.
    let found = Method::LIBRARY.recover(&signatures);
    for at in (0..found.len()).step_by(4).filter(|at| valid[*at]) {
        assert!((at..at + 4).any(|id| found[id].as_ref() == Ok(&keys[at])));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// Sound signatures, some with a bit flipped or whole numbers replaced, mixed in one batch.
    #[test]
    fn hostile_and_sound_ones_in_one_batch(
        from in any::<u32>(),
        changes in prop::collection::vec((0usize..6, any::<u16>()), 1..80),
    ) {
        let all: Vec<Signed> = changes.iter().enumerate().map(|(at, (change, bit))| {
            let mut one = nth(from.wrapping_add(at as u32)).0;
            let (byte, bit) = (usize::from(bit / 8 % 32), 1 << (bit % 8));
            match change {
                0 => one.r[byte] ^= bit,
                1 => one.s[byte] ^= bit,
                2 => one.digest[byte] ^= bit,
                3 => one.y_is_odd ^= true,
                4 => one.x_is_large ^= true,
                _ => (),
            }
            one
        }).collect();
        agree(&all);
    }
}
