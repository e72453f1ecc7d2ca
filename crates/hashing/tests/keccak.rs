//! Keccak-256 against published digests, against another library, and backends against each other.

use alloy_primitives::{Address, B256, keccak256 as oracle};
use arbor_hashing::{
    Backend, Digest, Keccak, KeccakBatch, keccak256, keccak256_batch, keccak256_fixed,
};
use proptest::prelude::*;

fn backends() -> impl Iterator<Item = Keccak> {
    Backend::available().map(|backend| Keccak::on(backend).expect("it is available"))
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251 + len) as u8).collect()
}

fn oracles(messages: &[Vec<u8>]) -> Vec<Digest> {
    messages.iter().map(|message| oracle(message).0).collect()
}

/// The empty string's digest is the code hash of an account without code (Yellow Paper, section 4.1);
/// "abc" is in the Keccak team's test vectors for r = 1088, c = 512.
#[test]
fn published_digests() {
    let cases: [(&[u8], &str); 3] = [
        (
            b"",
            "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
        ),
        (
            b"abc",
            "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45",
        ),
        // The root of the empty trie: the digest of RLP's empty string.
        (
            b"\x80",
            "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421",
        ),
    ];
    for keccak in backends() {
        for (message, digest) in cases {
            assert_eq!(hex::encode(keccak.hash(message)), digest);
        }
    }
}

/// 135 bytes leave one byte for both ends of the padding; 136 and 272 need a block of nothing else.
#[test]
fn every_length_of_up_to_four_blocks_and_a_long_message() {
    let mut messages: Vec<_> = (0..600).map(bytes).collect();
    messages.push(bytes(100_003));
    let expected = oracles(&messages);
    for keccak in backends() {
        for (message, digest) in messages.iter().zip(&expected) {
            assert_eq!(
                keccak.hash(message),
                *digest,
                "{} bytes, {keccak:?}",
                message.len()
            );
        }
        let mut digests = vec![[0; 32]; messages.len()];
        keccak.hash_batch(&messages, &mut digests);
        assert_eq!(digests, expected, "{keccak:?}");
    }
}

/// Any number of messages around the number of lanes, so that some lanes stay empty from the first or become so.
#[test]
fn ragged_batches() {
    for keccak in backends() {
        for count in 0..20 {
            for len in [0, 31, 135, 136, 532] {
                let messages: Vec<_> = (0..count).map(|i| bytes(len + i * 37 % 100)).collect();
                let mut digests = vec![[0; 32]; count];
                keccak.hash_batch(&messages, &mut digests);
                assert_eq!(
                    digests,
                    oracles(&messages),
                    "{count} from {len} bytes, {keccak:?}"
                );
            }
        }
    }
}

fn check_fixed<const LEN: usize>() {
    for keccak in backends() {
        for count in 0..20 {
            let messages: Vec<[u8; LEN]> = (0..count)
                .map(|i| std::array::from_fn(|j| (i * 31 + j * 7) as u8))
                .collect();
            let expected: Vec<_> = messages.iter().map(|message| oracle(message).0).collect();
            let mut digests = vec![[0; 32]; count];
            keccak.hash_fixed(&messages, &mut digests);
            assert_eq!(digests, expected, "{count} of {LEN} bytes, {keccak:?}");
        }
    }
}

#[test]
fn fixed_lengths() {
    check_fixed::<0>();
    check_fixed::<7>();
    check_fixed::<20>();
    check_fixed::<32>();
    check_fixed::<64>();
    check_fixed::<135>();
    check_fixed::<136>();
    check_fixed::<300>();
}

#[test]
fn the_functions_without_a_backend_hash_too() {
    let addresses = [Address::repeat_byte(1), Address::repeat_byte(2)];
    let slots = [B256::repeat_byte(3), B256::repeat_byte(4)];
    let mut digests = [[0; 32]; 2];
    keccak256_fixed::<20, _>(&addresses, &mut digests);
    assert_eq!(digests, addresses.map(|address| oracle(address).0));
    keccak256_fixed::<32, _>(&slots, &mut digests);
    assert_eq!(digests, slots.map(|slot| oracle(slot).0));
    keccak256_batch(&addresses, &mut digests);
    assert_eq!(digests[1], keccak256(addresses[1].as_slice()));
    assert_eq!(digests[1], oracle(addresses[1]).0);
}

/// Parents hold the digests of their children, so a batch is finished once for each height.
#[test]
fn a_batch_is_finished_in_steps_and_used_again() {
    let on = backends().map(KeccakBatch::on);
    // With too little room it grows.
    for mut batch in on.chain([KeccakBatch::with_capacity(2, 100)]) {
        for round in 0..3 {
            assert!(batch.is_empty());
            let leaves: Vec<_> = (0..9).map(|i| bytes(60 + i + round)).collect();
            let positions: Vec<_> = leaves.iter().map(|leaf| batch.push(leaf)).collect();
            assert_eq!(positions, (0..9).collect::<Vec<_>>());
            assert!(batch.digests().is_empty());
            let digests = batch.finish().to_vec();
            assert_eq!(digests, oracles(&leaves));
            let parent = batch.push_with(|node| node.extend_from_slice(digests.as_flattened()));
            assert_eq!(batch.finish()[parent], oracle(digests.as_flattened()).0);
            assert_eq!(batch.finish()[..9], digests);
            assert_eq!(batch.message(parent), digests.as_flattened());
            assert_eq!(batch.message(8), leaves[8]);
            assert_eq!(batch.len(), 10);
            batch.clear();
        }
    }
}

#[test]
#[should_panic(expected = "one digest for each message")]
fn digests_of_another_number_than_messages_are_refused() {
    keccak256_batch(&[b"one", b"two"], &mut [[0; 32]]);
}

proptest! {
    #[test]
    fn mixes_of_lengths(
        lengths in prop::collection::vec(
            prop_oneof![20 => 0..150usize, 10 => 500..560usize, 1 => 0..5000usize],
            0..60,
        ),
        seed in any::<u64>(),
    ) {
        let messages: Vec<Vec<u8>> = lengths
            .iter()
            .enumerate()
            .map(|(i, &len)| {
                let mut word = seed ^ i as u64;
                let mut next = || {
                    word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    (word >> 56) as u8
                };
                (0..len).map(|_| next()).collect()
            })
            .collect();
        let expected = oracles(&messages);
        for keccak in backends() {
            let mut digests = vec![[0; 32]; messages.len()];
            keccak.hash_batch(&messages, &mut digests);
            prop_assert_eq!(&digests, &expected);
            let mut batch = KeccakBatch::on(keccak);
            for message in &messages {
                batch.push(message);
            }
            prop_assert_eq!(batch.finish(), &expected[..]);
        }
    }
}
