//! BLAKE3 against published digests, against a plain reading of its paper, and backends against
//! each other.

use arbor_hashing::{Backend, Blake3, Blake3Batch, Digest};
use proptest::prelude::*;

fn backends() -> impl Iterator<Item = Blake3> {
    Backend::available().map(|backend| Blake3::on(backend).expect("it is available"))
}

/// One chunk, as sections 2.1 to 2.4 of the paper describe it: one word at a time, the message
/// permuted after each round.
fn naive(message: &[u8]) -> Digest {
    const IV: [u32; 8] = [
        0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB,
        0x5BE0CD19,
    ];
    const PERMUTATION: [usize; 16] = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
    let mut blocks: Vec<&[u8]> = message.chunks(64).collect();
    if blocks.is_empty() {
        blocks.push(&[]);
    }
    let mut value = IV;
    for (i, bytes) in blocks.iter().enumerate() {
        let mut block = [0; 64];
        block[..bytes.len()].copy_from_slice(bytes);
        let mut m: Vec<u32> = block
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().expect("its length")))
            .collect();
        let first = if i == 0 { 1 } else { 0 };
        let last = if i + 1 == blocks.len() { 2 | 8 } else { 0 };
        let mut v = [0; 16];
        v[..8].copy_from_slice(&value);
        v[8..12].copy_from_slice(&IV[..4]);
        v[14] = bytes.len() as u32;
        v[15] = first | last;
        for _ in 0..7 {
            let mut g = |a: usize, b: usize, c: usize, d: usize, at: usize| {
                for (word, right_d, right_b) in [(m[at], 16, 12), (m[at + 1], 8, 7)] {
                    v[a] = v[a].wrapping_add(v[b]).wrapping_add(word);
                    v[d] = (v[d] ^ v[a]).rotate_right(right_d);
                    v[c] = v[c].wrapping_add(v[d]);
                    v[b] = (v[b] ^ v[c]).rotate_right(right_b);
                }
            };
            for i in 0..4 {
                g(i, 4 + i, 8 + i, 12 + i, 2 * i);
            }
            for i in 0..4 {
                let (b, c, d) = (4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
                g(i, b, c, d, 8 + 2 * i);
            }
            m = PERMUTATION.iter().map(|from| m[*from]).collect();
        }
        value = std::array::from_fn(|i| v[i] ^ v[8 + i]);
    }
    let bytes: Vec<u8> = value.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.try_into().expect("its length")
}

/// Digests of the bytes 0, 1, ..., 250, 0, ... from the list of test vectors of BLAKE3's reference
/// implementation.
#[test]
fn published_digests() {
    let cases = [
        (
            0,
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
        ),
        (
            1,
            "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
        ),
        (
            1024,
            "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
        ),
    ];
    for (length, digest) in cases {
        let message: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        assert_eq!(hex::encode(naive(&message)), digest, "{length} bytes");
        for blake3 in backends() {
            assert_eq!(
                hex::encode(blake3.hash(&message)),
                digest,
                "{length} bytes, {blake3:?}"
            );
        }
    }
}

/// A block is taken as the last one only when nothing follows, so lengths of whole blocks are the
/// delicate ones.
#[test]
fn every_length_of_up_to_four_blocks() {
    let bytes: Vec<u8> = (0..260).map(|i| (i * 7 + i / 251) as u8).collect();
    for len in 0..=bytes.len() {
        let message = &bytes[..len];
        for blake3 in backends() {
            assert_eq!(blake3.hash(message), naive(message), "{len} bytes");
        }
    }
}

#[test]
#[should_panic(expected = "a message of 1025 bytes")]
fn a_message_of_more_than_a_chunk_is_refused() {
    let _ = Blake3::new().hash(&[0; 1025]);
}

fn check_fixed<const LEN: usize>(seed: u8) {
    for blake3 in backends() {
        for count in 0..36 {
            let messages: Vec<[u8; LEN]> = (0..count)
                .map(|i| std::array::from_fn(|j| (i * 31 + j * 7) as u8 ^ seed))
                .collect();
            let expected: Vec<_> = messages.iter().map(|message| naive(message)).collect();
            let mut digests = vec![[0; 32]; count];
            blake3.hash_fixed(&messages, &mut digests);
            assert_eq!(digests, expected, "{count} of {LEN} bytes, {blake3:?}");
        }
    }
}

/// Any number of messages around the numbers of lanes, so that some lanes are idle: names, leaves
/// and nodes.
#[test]
fn fixed_lengths() {
    check_fixed::<32>(1);
    check_fixed::<64>(2);
    check_fixed::<67>(3);
    check_fixed::<99>(4);
}

proptest! {
    #[test]
    fn batches_of_any_lengths(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..70)) {
        let expected: Vec<_> = messages.iter().map(|message| naive(message)).collect();
        for blake3 in backends() {
            let mut batch = Blake3Batch::on(blake3);
            for message in &messages {
                batch.push(message);
            }
            prop_assert_eq!(batch.finish(), &expected[..], "{:?}", blake3);
        }
    }
}
