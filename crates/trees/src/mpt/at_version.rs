//! The tries of an older version.

use std::sync::Arc;

use alloy_primitives::{Address, U256};
use arbor_tree::{Hash, Leaf, NodeReader, NodeRequest, ReadError as NodeError};
use arbor_tree_mpt::Over;

use super::AtHead;
use super::prove::Provable;
use super::reader::{account_record, slot_value};
use super::records::AccountRecord;
use super::undo::Undone;
use arbor_state_tree::{ReadError, StateError, Then, own};
use arbor_verify::mpt::Base;

/// The tries of an older version.
#[derive(Clone, Copy)]
pub(crate) struct AtVersion<'t>(pub(crate) &'t dyn Then);

impl<'t> AtVersion<'t> {
    fn nodes(&self) -> Result<Over<'t, AtHead<'t>>, StateError> {
        Ok(own::<Undone>(self.0.nodes()?)
            .laid
            .over(AtHead(self.0.view())))
    }
}

impl Base for AtVersion<'_> {
    fn root(&self) -> Hash {
        self.0.meta().root
    }

    fn account_record(&self, _: Address, key: &Hash) -> Result<Option<AccountRecord>, ReadError> {
        Ok(account_record(self.0, key)?)
    }
}

impl Provable for AtVersion<'_> {
    fn slot_value(&self, account: &Hash, slot: U256) -> Result<U256, StateError> {
        slot_value(self.0, account, slot)
    }
}

impl NodeReader for AtVersion<'_> {
    fn nodes(&self, requests: &[NodeRequest]) -> Result<Vec<Option<Arc<[u8]>>>, NodeError> {
        AtVersion::nodes(self)?.nodes(requests)
    }

    fn leaf(&self, request: &NodeRequest) -> Result<Option<Leaf>, NodeError> {
        AtVersion::nodes(self)?.leaf(request)
    }
}
