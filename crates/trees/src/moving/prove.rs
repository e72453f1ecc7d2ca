//! Proofs of a state on its way: one of each tree, and the log of what is gone.

use arbor_state_tree::{AccountSlots, Flat, Moved, Moves, StateError, Tree};
use arbor_verify::Proof;
use arbor_verify::two_trees::{OneOfTwo, TwoTrees};

use super::{Moving, gone};

impl Moving {
    /// Puts the proofs of source and target together.
    pub(super) fn together(
        &self,
        flat: &dyn Flat,
        accounts: &[AccountSlots],
        moved: &Moved,
        (source, target): (Box<dyn Proof>, Box<dyn Proof>),
    ) -> Result<Box<dyn Proof>, StateError> {
        let one = |tree: &Tree, root, proof| OneOfTwo {
            tree: tree.kind().name.to_owned(),
            root,
            proof,
        };
        Ok(Box::new(TwoTrees {
            source: one(self.source(), moved.source_root, source),
            target: Some(one(self.target(), moved.target_root, target)),
            names: accounts.to_vec(),
            gone: gone::read(flat)?,
        }))
    }
}
