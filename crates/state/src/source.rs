//! A version of a database as a stream of accounts, from which other trees are loaded.

use std::path::Path;

use alloy_primitives::{B256, Bytes};
use arbor_state_tree::{
    AccountOrder, AccountSource, Arranged, FullAccount, FullAccounts, KeyedAccounts, ReadError,
    StateError, StateView,
};

use crate::Historical;

impl Historical<'_> {
    /// Reads all accounts with their slots, in the order of the
    /// [tree](arbor_state_tree::StateTree::order).
    ///
    /// # Errors
    /// The store's errors, and records that cannot be read. An error may also come in place of an
    /// account.
    pub fn full_accounts(
        &self,
    ) -> Result<impl Iterator<Item = Result<FullAccount, ReadError>> + '_, ReadError> {
        self.listed(None)
    }

    /// Makes the state ready to be read as a whole: values that lie in another order than accounts are listed in are put into that order once,
    /// through unnamed files in a folder, in up to `bytes` of memory. Under most trees there is nothing to do.
    ///
    /// # Errors
    /// The store's errors, records that cannot be read, and files that cannot be written.
    pub fn arranged(&self, folder: &Path, bytes: usize) -> Result<ArrangedState<'_>, StateError> {
        let arranged = self.tree().records().arrange(self, folder, bytes)?;
        Ok(ArrangedState {
            state: self,
            arranged,
        })
    }

    /// The order in which accounts are listed: that of the tree, and of a state that has moved to another one that of the other.
    pub fn order(&self) -> &'static AccountOrder {
        let tree = self.tree();
        let Some(moves) = tree.moves() else {
            return tree.order();
        };
        // What cannot be read here cannot be listed either.
        let moved = moves.moved(self).ok().flatten();
        match moved.is_some_and(|moved| moved.last_block.is_some()) {
            true => moves.target().order(),
            false => tree.order(),
        }
    }

    fn listed(
        &self,
        first: Option<u8>,
    ) -> Result<impl Iterator<Item = Result<FullAccount, ReadError>> + '_, ReadError> {
        let accounts = self.tree().records().listing(self, first)?;
        Ok(accounts.map(|account| Ok(account?.into())))
    }
}

impl AccountSource for Historical<'_> {
    fn order(&self) -> &'static AccountOrder {
        Historical::order(self)
    }

    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
        Ok(Historical::order(self).keyed(self.listed(first)?))
    }

    fn full(&self, first: Option<u8>) -> Result<FullAccounts<'_>, ReadError> {
        Ok(Box::new(self.listed(first)?))
    }

    fn arrange(
        &self,
        folder: &Path,
        bytes: usize,
    ) -> Result<Option<Box<dyn AccountSource + '_>>, ReadError> {
        let state = self.arranged(folder, bytes)?;
        Ok(match state.arranged {
            Some(_) => Some(Box::new(state)),
            None => None,
        })
    }

    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        StateView::code(self, code_hash)
    }
}

/// A version of a database that is [ready](Historical::arranged) to be read as a whole.
pub struct ArrangedState<'a> {
    state: &'a Historical<'a>,
    arranged: Option<Box<dyn Arranged + 'a>>,
}

impl ArrangedState<'_> {
    fn listed(
        &self,
        first: Option<u8>,
    ) -> Result<impl Iterator<Item = Result<FullAccount, ReadError>> + '_, ReadError> {
        let accounts = match &self.arranged {
            Some(arranged) => arranged.listing(first)?,
            None => self.state.tree().records().listing(self.state, first)?,
        };
        Ok(accounts.map(|account| Ok(account?.into())))
    }

    /// Computes the Merkle-Patricia root of this version, which must be the latest, as [`Head::flat_root`](crate::Head::flat_root) does.
    ///
    /// # Errors
    /// The store's errors, and the first record that is not what its table promises.
    pub fn flat_root(&self) -> Result<B256, StateError> {
        match &self.arranged {
            Some(arranged) => arranged.root(self.state.tree().sort_bytes()),
            None => self.state.head().flat_root(),
        }
    }
}

impl AccountSource for ArrangedState<'_> {
    fn order(&self) -> &'static AccountOrder {
        self.state.order()
    }

    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
        Ok(self.order().keyed(self.listed(first)?))
    }

    fn full(&self, first: Option<u8>) -> Result<FullAccounts<'_>, ReadError> {
        Ok(Box::new(self.listed(first)?))
    }

    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        StateView::code(self.state, code_hash)
    }
}
