//! The naive tree that every suite compares a tree with.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256};

use crate::{Account, StateTree};

/// A state in plain maps: accounts, each with its slots that are not zero.
pub type Contents = BTreeMap<Address, (Account, BTreeMap<U256, U256>)>;

/// Codes by their hashes.
pub type Codes = BTreeMap<B256, Bytes>;

/// Makes the naive tree that is like a tree.
pub type ModelOf = fn(&dyn StateTree) -> Box<dyn Model>;

/// A tree as plainly as it can be written: from the whole contents after each block.
pub trait Model {
    /// The root after a block that leaves these contents; blocks follow each other.
    fn after(&mut self, contents: &Contents, codes: &Codes) -> B256;
}
