//! A state that moves from one tree to another while blocks go on.

use alloy_primitives::{Address, B256, U256};
use arbor_verify::two_trees;
use arbor_versions::MovesTo;

use super::{Then, Tree};
use crate::{Flat, StateError};

/// The move of a state to another tree: from a block on the tree so far stands still, each block moves some accounts and slots, and what blocks write goes to
/// the other tree (EIP-7612 and EIP-7748 have this for Verkle).
pub trait Moves: Send + Sync {
    /// The tree that the state moves from.
    fn source(&self) -> &Tree;

    /// The tree that it moves to.
    fn target(&self) -> &Tree;

    /// The first block that moves something.
    fn at(&self) -> u64;

    /// Accounts and slots that a block moves. An account comes with its code.
    fn stride(&self) -> u64;

    /// How far the move is at a version; `None` before its first block.
    ///
    /// # Errors
    /// The store's errors; a record that is not what its table promises.
    fn moved(&self, flat: &dyn Flat) -> Result<Option<Moved>, StateError>;

    /// The tree that alone has the state at a version and after the next block, with the version as that tree reads it: the source until the move
    /// begins, the target once all is moved; `None` amid the move.
    ///
    /// # Errors
    /// The store's errors; a record that is not what its table promises.
    fn alone<'a>(&'a self, then: &'a dyn Then) -> Result<Option<OfOneTree<'a>>, StateError>;

    /// About which part of the source is moved, 0 to 1; `None` if its order does not tell: only hashed keys are spread evenly.
    fn part(&self, moved: &Moved) -> Option<f64>;

    /// What a database says of the move.
    fn identity(&self) -> MovesTo;
}

/// A tree, and a version as that tree reads it.
pub type OfOneTree<'a> = (&'a Tree, Box<dyn Then + 'a>);

/// How far a move is at a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The source's root, which stands still.
    pub source_root: B256,
    /// The target's root.
    pub target_root: B256,
    /// The hash of the [log](two_trees::Log) of names that the source has and that blocks since the
    /// move began made gone.
    pub gone: B256,
    /// Accounts and slots that the blocks have gone through.
    pub units: u64,
    /// The last account, by its key in the source's order, and the last of its slots that were gone through; `None` before the first.
    pub cursor: Option<Cursor>,
    /// The block that moved the last of them, if all are moved.
    pub last_block: Option<u64>,
}

impl Moved {
    /// The root of a version at which the move is on its way, which is of both roots and of the log
    /// of what is gone ([`two_trees::root`]). When all is moved it is the target's.
    pub fn root(&self) -> B256 {
        match self.last_block {
            Some(_) => self.target_root,
            None => two_trees::root(self.source_root, self.target_root, self.gone),
        }
    }
}

/// A place among a source's accounts and slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The account.
    pub address: Address,
    /// The last of its slots; `None` before the first.
    pub slot: Option<U256>,
}
