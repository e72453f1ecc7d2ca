//! Proofs of a state on its way: one of each tree, and where each name is.

use arbor_state_tree::{AccountSlots, Cursor, Moved, Moves, StateError, Then};
use arbor_verify::Proof;
use arbor_verify::two_trees::{Held, OneOfTwo, Place, TwoTrees};

use super::units::{account_key, slot_key};
use super::{Moving, since};

impl Moving {
    /// Puts the proofs of source and target together.
    pub(super) fn together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
        moved: &Moved,
        (source, target): (Box<dyn Proof>, Box<dyn Proof>),
    ) -> Result<Box<dyn Proof>, StateError> {
        let names = accounts.iter().map(|of| self.held(then, of, moved));
        let names: Vec<Held> = names.collect::<Result<_, StateError>>()?;
        let one = |tree: &arbor_state_tree::Tree, root, proof| OneOfTwo {
            tree: tree.kind().name.to_owned(),
            root,
            proof,
        };
        Ok(Box::new(TwoTrees {
            source: one(self.source(), moved.source_root, source),
            target: one(self.target(), moved.target_root, target),
            names,
        }))
    }

    /// Where an account and some of its slots are at a version.
    fn held(&self, then: &dyn Then, of: &AccountSlots, moved: &Moved) -> Result<Held, StateError> {
        let order = self.source().order();
        let key = account_key(order, of.address);
        let cursor = moved.cursor.map(|Cursor { address, slot }| {
            let slot = slot.map(|slot| slot_key(order, slot));
            (account_key(order, address), slot)
        });
        let place = |is_there| match is_there {
            true => Place::Target,
            false => Place::Source,
        };
        let written = since::account(then, order, of.address)?;
        let is_passed = cursor.is_some_and(|(at, _)| key <= at);
        let mut slots = Vec::with_capacity(of.slots.len());
        for slot in &of.slots {
            let place_of = (key, Some(slot_key(order, *slot)));
            let is_there = cursor.is_some_and(|cursor| place_of <= cursor)
                || written.is_some_and(|since| since.cleared || since.account.is_none())
                || since::slot(then, order, of.address, *slot)?.is_some();
            slots.push((*slot, place(is_there)));
        }
        Ok(Held {
            address: of.address,
            account: place(is_passed || written.is_some()),
            slots,
        })
    }
}
