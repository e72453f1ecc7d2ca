//! How blocks are replayed.

use std::num::NonZeroU64;

use arbor_state::StateSnapshot;
use rayon::ThreadPool;

/// Which state roots are computed and compared. All else of every block is always verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verify {
    /// That of every block.
    Every,
    /// That of the last of so many blocks, as long as they lie before `each_from`; of every block from there on. The
    /// database then remembers blocks in between, but has no versions of them.
    Last {
        /// Blocks whose root is computed once for all.
        blocks: usize,
        /// From which block on every root is computed, so that every block is a version.
        each_from: u64,
    },
}

impl Verify {
    /// How many blocks are settled together, the first of which is `number`.
    pub(super) fn blocks_at(self, number: u64) -> usize {
        match self {
            Self::Last { blocks, each_from } => {
                let before =
                    usize::try_from(each_from.saturating_sub(number)).unwrap_or(usize::MAX);
                blocks.min(before).max(1)
            }
            Self::Every => 1,
        }
    }

    pub(super) fn most(self) -> usize {
        match self {
            Self::Last { blocks, .. } => blocks.max(1),
            Self::Every => 1,
        }
    }
}

/// Where state roots are computed.
#[derive(Clone, Copy, Debug)]
pub enum Roots<'a> {
    /// On the thread that executes, after each block.
    Here,
    /// On a thread of their own, beside execution; what is shared in computing them, with rayon's global pool.
    Beside,
    /// The same, and those of large changes on all threads of a pool.
    Spread(&'a ThreadPool),
}

/// How blocks are replayed.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Roots to compute.
    pub verify: Verify,
    /// Where to compute them.
    pub roots: Roots<'a>,
    /// After every block whose number is a multiple of this, the Merkle-Patricia root is computed from the flat tables alone and
    /// compared with the header before the block is committed. That takes time in proportion to the whole state. Such a block is the last of those that get one
    /// root or are committed together.
    pub check_every: Option<NonZeroU64>,
}

/// Takes versions of a running replay as they are committed, for whoever reads next to it.
pub trait Publish: Send + Sync {
    /// Returns whether the version that was committed just now is wanted. An older one is then out of date.
    fn is_wanted(&self) -> bool;

    /// Takes the version that was committed just now. It is kept from pruning as long as the snapshot is there.
    fn publish(&self, snapshot: StateSnapshot);
}
