//! The counts of permutations and compressions; in a process of its own, since the counters are the process's.

use arbor_hashing::{Backend, Blake2s, Blake3, Chain, Keccak, KeccakBatch, Sha256};
use arbor_metrics::{
    BLAKE2S_COMPRESSIONS, BLAKE3_COMPRESSIONS, KECCAK_PERMUTATIONS, SHA256_COMPRESSIONS,
};

#[test]
fn each_block_of_each_padded_message_is_counted_once_on_every_backend() {
    for backend in Backend::available() {
        let keccak = Keccak::on(backend).expect("it is available");
        let mut digests = [[0; 32]; 5];
        let count = |job: &mut dyn FnMut()| {
            let before = KECCAK_PERMUTATIONS.get();
            job();
            KECCAK_PERMUTATIONS.get() - before
        };
        assert_eq!(count(&mut || _ = keccak.hash(&[0; 135])), 1);
        assert_eq!(count(&mut || _ = keccak.hash(&[0; 136])), 2);
        let messages = [vec![0; 532], vec![0; 70], vec![], vec![0; 272], vec![0; 20]];
        assert_eq!(
            count(&mut || keccak.hash_batch(&messages, &mut digests)),
            4 + 1 + 1 + 3 + 1
        );
        assert_eq!(
            count(&mut || keccak.hash_fixed(&[[0; 32]; 5], &mut digests)),
            5
        );
        assert_eq!(
            count(&mut || keccak.hash_fixed(&[[0; 136]; 5], &mut digests)),
            10
        );
        let mut batch = KeccakBatch::on(keccak);
        batch.push(&[0; 532]);
        assert_eq!(count(&mut || _ = batch.finish()), 4);
        assert_eq!(count(&mut || _ = batch.finish()), 0);
    }
}

#[test]
fn each_compression_is_counted_once_on_every_backend() {
    for backend in Backend::available() {
        let blake2s = Blake2s::on(backend).expect("it is available");
        let count = |job: &mut dyn FnMut()| {
            let before = BLAKE2S_COMPRESSIONS.get();
            job();
            BLAKE2S_COMPRESSIONS.get() - before
        };
        assert_eq!(count(&mut || _ = blake2s.hash(&[0; 64])), 1);
        assert_eq!(count(&mut || _ = blake2s.hash(&[0; 65])), 2);
        assert_eq!(count(&mut || _ = blake2s.hash(&[])), 1);
        let mut digests = [[0; 32]; 5];
        let mut pairs = || blake2s.hash_pairs(&[[[0; 32]; 2]; 5], &mut digests);
        assert_eq!(count(&mut pairs), 5);
        let chain = |to| Chain {
            key: [1; 32],
            hash: [2; 32],
            to,
        };
        let mut chains = [chain(10), chain(3), chain(7)];
        let mut fold = || blake2s.fold(&[[3; 32]; 10], 3, &mut chains);
        assert_eq!(count(&mut fold), 7 + 4);
    }
}

/// SHA-256 pads with at least nine bytes, BLAKE3 not at all: an empty message is one block.
#[test]
fn sha256_and_blake3_count_each_block_once_on_every_backend() {
    /// Messages of one length, and of five lengths.
    const LENGTHS: [usize; 5] = [0, 55, 56, 64, 65];
    let messages = LENGTHS.map(|length| vec![7; length]);
    let mut digests = [[0; 32]; 5];
    for backend in Backend::available() {
        let sha256 = Sha256::on(backend).expect("it is available");
        let blake3 = Blake3::on(backend).expect("it is available");
        for (counter, blocks, hash, batch, fixed) in [
            (
                &SHA256_COMPRESSIONS,
                [1, 1, 2, 2, 2],
                &(|message: &[u8]| _ = sha256.hash(message)) as &dyn Fn(&[u8]),
                &(|digests: &mut [[u8; 32]]| sha256.hash_batch(&messages, digests))
                    as &dyn Fn(&mut [[u8; 32]]),
                &(|digests: &mut [[u8; 32]]| sha256.hash_fixed(&[[0; 64]; 5], digests))
                    as &dyn Fn(&mut [[u8; 32]]),
            ),
            (
                &BLAKE3_COMPRESSIONS,
                [1, 1, 1, 1, 2],
                &|message| _ = blake3.hash(message),
                &|digests| blake3.hash_batch(&messages, digests),
                &|digests| blake3.hash_fixed(&[[0; 64]; 5], digests),
            ),
        ] {
            let mut before = counter.get();
            let mut counted = || {
                let now = counter.get();
                now - std::mem::replace(&mut before, now)
            };
            let each = messages.each_ref().map(|message| {
                hash(message);
                counted()
            });
            assert_eq!(each, blocks, "{backend:?}");
            batch(&mut digests);
            assert_eq!(counted(), blocks.iter().sum::<u64>(), "{backend:?}");
            fixed(&mut digests);
            assert_eq!(counted(), 5 * blocks[3], "{backend:?}");
        }
    }
}
