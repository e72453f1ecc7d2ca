//! Signatures: the lanes against libsecp256k1.

use arbor_secp256k1::{Method, Signed};

/// Bytes of a digest, both numbers and the recovery id.
const ONE: usize = 97;

/// Signatures one after another, recovered and verified by every method: all give the same.
pub(super) fn senders(bytes: &[u8]) {
    let (whole, _) = bytes.as_chunks::<ONE>();
    let mut signed: Vec<_> = whole.iter().take(40).map(read).collect();
    // A single one would go to the library anyway.
    if let [one] = signed[..] {
        signed.push(one);
    }
    let expected = Method::LIBRARY.recover(&signed);
    // A signature without a key is checked against an x and y that are hardly a point.
    let keys: Vec<_> = expected
        .iter()
        .zip(&signed)
        .map(|(key, signed)| key.unwrap_or_else(|_| array(&[signed.r, signed.digest].concat())))
        .collect();
    let valid = Method::LIBRARY.verify(&signed, &keys);
    for method in Method::available() {
        let found = method.recover(&signed);
        assert_eq!(found, expected, "{} recovers other keys", method.name());
        let found = method.verify(&signed, &keys);
        assert_eq!(found, valid, "{} accepts others", method.name());
    }
}

fn read(bytes: &[u8; ONE]) -> Signed {
    Signed {
        digest: array(&bytes[..32]),
        r: array(&bytes[32..64]),
        s: array(&bytes[64..96]),
        y_is_odd: bytes[96] & 1 == 1,
        x_is_large: bytes[96] & 2 == 2,
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("so many bytes")
}

/// Signatures with small numbers, and with the generator's x coordinate as `r`.
pub(crate) fn sender_seeds() -> Vec<(&'static str, Vec<u8>)> {
    const GENERATOR_X: [u8; 32] = [
        0x79, 0xbe, 0x66, 0x7e, 0xf9, 0xdc, 0xbb, 0xac, 0x55, 0xa0, 0x62, 0x95, 0xce, 0x87, 0x0b,
        0x07, 0x02, 0x9b, 0xfc, 0xdb, 0x2d, 0xce, 0x28, 0xd9, 0x59, 0xf2, 0x81, 0x5b, 0x16, 0xf8,
        0x17, 0x98,
    ];
    let mut seed = Vec::new();
    for id in 0..10u8 {
        let small = |n: u8| {
            let mut number = [0; 32];
            number[31] = n;
            number
        };
        let r = if id < 4 { small(id) } else { GENERATOR_X };
        let s = if id < 8 { small(id) } else { GENERATOR_X };
        for part in [small(id / 2), r, s] {
            seed.extend_from_slice(&part);
        }
        seed.push(id % 4);
    }
    vec![("senders", seed[..ONE].to_vec()), ("senders", seed)]
}
