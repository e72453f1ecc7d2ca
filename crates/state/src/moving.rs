//! A state on its way from one tree to another: how far it is, and when it has arrived.

use arbor_state_tree::{Moved, Moves, RootPlace, Tree};

use crate::head::Head;
use crate::{State, StateError};

impl<'a> Head<'a> {
    /// How far the state has moved to another tree; `None` if it does not move, or not yet.
    ///
    /// # Errors
    /// The store's errors; a record that is not what its table promises.
    pub fn moved(self) -> Result<Option<(&'a dyn Moves, Moved)>, StateError> {
        let Some(moves) = self.tree().moves() else {
            return Ok(None);
        };
        let moved = moves.moved(&self.view())?;
        Ok(moved.map(|moved| (moves, moved)))
    }
}

impl State {
    /// Where the root of the next block is found besides the database: in its header, if the state has the tree that headers mean.
    ///
    /// # Errors
    /// The store's errors.
    pub fn next_root(&self) -> Result<RootPlace, StateError> {
        self.tree().root_place(self.versions().view())
    }

    /// The tree that the state has moved to, once no version is retained in which the tree before has something: then the database can be
    /// [opened again](Self::open_again) with that tree alone.
    ///
    /// # Errors
    /// The store's errors.
    pub fn arrived(&self) -> Result<Option<Tree>, StateError> {
        let Some((moves, moved)) = self.reader().moved()? else {
            return Ok(None);
        };
        let Some(last) = moved.last_block else {
            return Ok(None);
        };
        let view = self.versions().view();
        let oldest = match view.oldest() {
            Some(oldest) => view.meta(oldest)?,
            None => None,
        };
        let is_behind = oldest.is_some_and(|oldest| oldest.block_number >= last);
        Ok(is_behind.then(|| moves.target().clone()))
    }
}
