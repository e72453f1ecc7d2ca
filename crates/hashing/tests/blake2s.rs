//! BLAKE2s-256 against published digests, against a plain reading of RFC 7693, and backends against each other.

use arbor_hashing::{Backend, Blake2s, Chain, Digest};
use proptest::prelude::*;

fn backends() -> impl Iterator<Item = Blake2s> {
    Backend::available().map(|backend| Blake2s::on(backend).expect("it is available"))
}

/// The function as RFC 7693, appendix D, writes it: one word at a time, state and message in arrays.
fn naive(message: &[u8]) -> Digest {
    const IV: [u32; 8] = [
        0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB,
        0x5BE0CD19,
    ];
    const SIGMA: [&str; 10] = [
        "0123456789abcdef",
        "ea489fd61c02b753",
        "b8c052fdae367194",
        "7931dcbe265a40f8",
        "905724afe1bc683d",
        "2c6a0b834d75fe19",
        "c51fed4a0763928b",
        "db7ec13950f4862a",
        "6fe9b308c2d714a5",
        "a2847615fb9e3cd0",
    ];
    let mut h = IV;
    h[0] ^= 0x0101_0000 ^ 32;
    let mut blocks: Vec<&[u8]> = message.chunks(64).collect();
    if blocks.is_empty() {
        blocks.push(&[]);
    }
    let mut length = 0;
    for (i, bytes) in blocks.iter().enumerate() {
        length += bytes.len() as u64;
        let mut block = [0; 64];
        block[..bytes.len()].copy_from_slice(bytes);
        let word =
            |i: usize| u32::from_le_bytes(block[4 * i..4 * i + 4].try_into().expect("its length"));
        let mut v = [h, IV].concat();
        v[12] ^= length as u32;
        v[13] ^= (length >> 32) as u32;
        if i + 1 == blocks.len() {
            v[14] = !v[14];
        }
        for order in SIGMA {
            let at = |i: usize| word(usize::from_str_radix(&order[i..=i], 16).expect("a digit"));
            let mut g = |a: usize, b: usize, c: usize, d: usize, x: u32, y: u32| {
                for (m, right_d, right_b) in [(x, 16, 12), (y, 8, 7)] {
                    v[a] = v[a].wrapping_add(v[b]).wrapping_add(m);
                    v[d] = (v[d] ^ v[a]).rotate_right(right_d);
                    v[c] = v[c].wrapping_add(v[d]);
                    v[b] = (v[b] ^ v[c]).rotate_right(right_b);
                }
            };
            for i in 0..4 {
                g(i, 4 + i, 8 + i, 12 + i, at(2 * i), at(2 * i + 1));
            }
            for i in 0..4 {
                let (b, c, d) = (4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
                g(i, b, c, d, at(8 + 2 * i), at(9 + 2 * i));
            }
        }
        h = std::array::from_fn(|i| h[i] ^ v[i] ^ v[8 + i]);
    }
    let bytes: Vec<u8> = h.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.try_into().expect("its length")
}

/// "abc": RFC 7693, appendix B. Nothing: the reference implementation's test vectors, and every list of such digests.
#[test]
fn published_digests() {
    let cases: [(&[u8], &str); 2] = [
        (
            b"abc",
            "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982",
        ),
        (
            b"",
            "69217a3079908094e11121d042354a7c1f55b6482ca1a51e1b250dfd1ed0eef9",
        ),
    ];
    for (message, digest) in cases {
        assert_eq!(hex::encode(naive(message)), digest);
        for blake2s in backends() {
            assert_eq!(hex::encode(blake2s.hash(message)), digest);
        }
    }
}

/// A block is taken as the last one only when nothing follows, so lengths of whole blocks are the delicate ones.
#[test]
fn every_length_of_up_to_four_blocks() {
    let bytes: Vec<u8> = (0..260).map(|i| (i * 7 + i / 251) as u8).collect();
    for len in 0..=bytes.len() {
        let message = &bytes[..len];
        for blake2s in backends() {
            assert_eq!(blake2s.hash(message), naive(message), "{len} bytes");
        }
    }
}

fn check_fixed<const LEN: usize>(seed: u8) {
    for blake2s in backends() {
        for count in 0..36 {
            let messages: Vec<[u8; LEN]> = (0..count)
                .map(|i| std::array::from_fn(|j| (i * 31 + j * 7) as u8 ^ seed))
                .collect();
            let expected: Vec<_> = messages.iter().map(|message| naive(message)).collect();
            let mut digests = vec![[0; 32]; count];
            blake2s.hash_fixed(&messages, &mut digests);
            assert_eq!(digests, expected, "{count} of {LEN} bytes, {blake2s:?}");
        }
    }
}

/// Any number of messages around the numbers of lanes, so that some lanes are idle.
#[test]
fn fixed_lengths() {
    check_fixed::<0>(1);
    check_fixed::<31>(2);
    check_fixed::<40>(3);
    check_fixed::<64>(4);
}

#[test]
#[should_panic(expected = "a sibling at each height of a chain")]
fn a_chain_beyond_the_siblings_is_refused() {
    let chain = Chain {
        key: [0; 32],
        hash: [0; 32],
        to: 4,
    };
    Blake2s::new().fold(&[[0; 32]; 3], 0, &mut [chain]);
}

/// One chain, one hash at a time.
fn climb(siblings: &[Digest], from: usize, chain: &Chain) -> Digest {
    (from..chain.to).fold(chain.hash, |hash, height| {
        let right = chain.key[31 - height / 8] >> (height % 8) & 1 == 1;
        let (left, right) = if right {
            (siblings[height], hash)
        } else {
            (hash, siblings[height])
        };
        naive([left, right].as_flattened())
    })
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>()
}

proptest! {
    #[test]
    fn pairs(pairs in prop::collection::vec([digest(), digest()], 0..40)) {
        let expected: Vec<_> = pairs.iter().map(|pair| naive(pair.as_flattened())).collect();
        for blake2s in backends() {
            let mut digests = vec![[0; 32]; pairs.len()];
            blake2s.hash_pairs(&pairs, &mut digests);
            prop_assert_eq!(&digests, &expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Chains of any lengths in any order: those of one group end at heights of their own, some before they start.
    #[test]
    fn chains(
        seed in digest(),
        from in 0usize..256,
        chains in prop::collection::vec((digest(), digest(), 0usize..=256), 0..70),
    ) {
        let siblings: Vec<Digest> = (0..=255u8).map(|i| seed.map(|byte| byte ^ i)).collect();
        let chains: Vec<Chain> = chains
            .into_iter()
            .map(|(key, hash, to)| Chain { key, hash, to })
            .collect();
        let expected: Vec<_> = chains.iter().map(|chain| climb(&siblings, from, chain)).collect();
        for blake2s in backends() {
            let mut chains = chains.clone();
            blake2s.fold(&siblings, from, &mut chains);
            let folded: Vec<_> = chains.iter().map(|chain| chain.hash).collect();
            prop_assert_eq!(folded, &expected[..], "{:?}", blake2s);
        }
    }
}
