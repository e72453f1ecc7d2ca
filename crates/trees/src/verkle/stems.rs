//! Stems of many names at once.

use arbor_ipa::Committer;
use rayon::prelude::*;

pub(super) use arbor_verify::verkle::{Stem, StemName, Stems};

/// Names that are hashed together.
const TOGETHER: usize = 1024;

/// The stems of names, computed in batches by the threads of the current pool and not remembered.
pub(super) fn hashed(committer: &Committer, names: &[StemName]) -> Vec<Stem> {
    let stems = names.par_chunks(TOGETHER).flat_map_iter(|names| {
        let key = |name: &StemName| (name.address.into_word().0, name.index.to_le_bytes::<32>());
        committer.stems(&names.iter().map(key).collect::<Vec<_>>())
    });
    stems.collect()
}
