//! The count of permutations; in a process of its own, since the counter is the process's.

use arbor_hashing::{Backend, Keccak, KeccakBatch};
use arbor_metrics::KECCAK_PERMUTATIONS;

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
