//! SHA-256 against published digests, against a plain reading of FIPS 180-4, and backends against
//! each other.

use arbor_hashing::{Backend, Digest, Sha256, Sha256Batch};
use proptest::prelude::*;

fn backends() -> impl Iterator<Item = Sha256> {
    Backend::available().map(|backend| Sha256::on(backend).expect("it is available"))
}

/// The first 32 bits of the fractional part of the cube root of each of the first 64 primes (FIPS
/// 180-4, section 4.2.2), computed.
fn constants() -> Vec<u32> {
    let is_prime = |n: &u128| {
        (2..*n)
            .take_while(|d| d * d <= *n)
            .all(|d| !n.is_multiple_of(d))
    };
    let constant = |prime: u128| {
        // The cube root of the prime times 2^96 is the prime's times 2^32.
        let mut root = 0u128;
        for bit in (0..36).rev() {
            let larger = root | 1 << bit;
            if larger.pow(3) <= prime << 96 {
                root = larger;
            }
        }
        root as u32
    };
    (2..).filter(is_prime).take(64).map(constant).collect()
}

/// FIPS 180-4, section 6.2: the whole schedule first, one word at a time.
fn naive(k: &[u32], message: &[u8]) -> Digest {
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((8 * message.len() as u64).to_be_bytes());
    let mut h: [u32; 8] = [
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
        0x5be0cd19,
    ];
    for block in padded.chunks(64) {
        let mut w: Vec<u32> = block
            .chunks(4)
            .map(|word| u32::from_be_bytes(word.try_into().expect("its length")))
            .collect();
        for t in 16..64 {
            let (x, y) = (w[t - 15], w[t - 2]);
            let s0 = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
            let s1 = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
            w.push(
                s1.wrapping_add(w[t - 7])
                    .wrapping_add(s0)
                    .wrapping_add(w[t - 16]),
            );
        }
        let mut v = h;
        for t in 0..64 {
            let [a, b, c, d, e, f, g, last] = v;
            let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = e & f ^ !e & g;
            let first = [s1, choice, k[t], w[t]]
                .into_iter()
                .fold(last, u32::wrapping_add);
            let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = a & b ^ a & c ^ b & c;
            let second = s0.wrapping_add(majority);
            v = [
                first.wrapping_add(second),
                a,
                b,
                c,
                d.wrapping_add(first),
                e,
                f,
                g,
            ];
        }
        h = std::array::from_fn(|i| h[i].wrapping_add(v[i]));
    }
    let bytes: Vec<u8> = h.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.try_into().expect("its length")
}

/// The examples of NIST's "SHA-256" page of example values, and the empty message.
#[test]
fn published_digests() {
    let cases: [(&[u8], &str); 3] = [
        (
            b"abc",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (
            b"",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        ),
    ];
    for (message, digest) in cases {
        assert_eq!(hex::encode(naive(&constants(), message)), digest);
        for sha256 in backends() {
            assert_eq!(hex::encode(sha256.hash(message)), digest, "{sha256:?}");
        }
    }
}

/// The padding takes a block of its own if nine bytes do not fit, so lengths near whole blocks are
/// the delicate ones.
#[test]
fn every_length_of_up_to_four_blocks() {
    let k = constants();
    let bytes: Vec<u8> = (0..260).map(|i| (i * 7 + i / 251) as u8).collect();
    for len in 0..=bytes.len() {
        let message = &bytes[..len];
        for sha256 in backends() {
            assert_eq!(sha256.hash(message), naive(&k, message), "{len} bytes");
        }
    }
}

fn check_fixed<const LEN: usize>(seed: u8) {
    let k = constants();
    for sha256 in backends() {
        for count in 0..36 {
            let messages: Vec<[u8; LEN]> = (0..count)
                .map(|i| std::array::from_fn(|j| (i * 31 + j * 7) as u8 ^ seed))
                .collect();
            let expected: Vec<_> = messages.iter().map(|message| naive(&k, message)).collect();
            let mut digests = vec![[0; 32]; count];
            sha256.hash_fixed(&messages, &mut digests);
            assert_eq!(digests, expected, "{count} of {LEN} bytes, {sha256:?}");
        }
    }
}

/// Any number of messages around the numbers of lanes, so that some lanes are idle: names, pairs,
/// leaves and nodes.
#[test]
fn fixed_lengths() {
    check_fixed::<32>(1);
    check_fixed::<55>(5);
    check_fixed::<64>(2);
    check_fixed::<67>(3);
    check_fixed::<99>(4);
}

proptest! {
    #[test]
    fn batches_of_any_lengths(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..70)) {
        let k = constants();
        let expected: Vec<_> = messages.iter().map(|message| naive(&k, message)).collect();
        for sha256 in backends() {
            let mut batch = Sha256Batch::on(sha256);
            for message in &messages {
                batch.push(message);
            }
            prop_assert_eq!(batch.finish(), &expected[..], "{:?}", sha256);
        }
    }
}
