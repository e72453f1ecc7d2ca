//! All leaves of a state with their names, for whoever asks what a root is made of.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, U256};
use arbor_accounts::Account;

/// A leaf, and what it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedLeaf {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: B256,
    /// What it stands for.
    pub origin: Origin,
}

/// What a leaf stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A field of an account.
    Field {
        /// The account.
        address: Address,
        /// The field, as the tree's specification names it.
        field: &'static str,
    },
    /// A slot.
    Slot {
        /// The account.
        address: Address,
        /// Its number.
        slot: U256,
    },
    /// A chunk of an account's code, which is the account's alone.
    AccountChunk {
        /// The account.
        address: Address,
        /// Its number.
        chunk: u32,
    },
    /// A chunk of a code, which accounts with this code share.
    Chunk {
        /// Keccak-256 of the code.
        code_hash: B256,
        /// Its number.
        chunk: u32,
    },
}

/// An account with all that its leaves follow from.
#[derive(Clone, Copy, Debug)]
pub struct WholeAccount<'a> {
    /// Its address.
    pub address: Address,
    /// Its fields. `None` if the account is gone, and its tree keeps the leaves as zeros.
    pub account: Option<Account>,
    /// Its code.
    pub code: &'a [u8],
    /// The number of chunks of code that have leaves, if it is more than the code has. `None` under a tree that
    /// forgets what is gone.
    pub past_chunks: Option<u32>,
    /// Its slots. Under a tree that keeps what is gone, also those that are zero again.
    pub slots: &'a [(U256, U256)],
}

/// Leaves by their keys.
pub type LeafValues = BTreeMap<Vec<u8>, B256>;

/// Returns the leaves of an account under a hash function; the inner error says what has no leaf.
pub type LeavesOf = fn(&str, WholeAccount<'_>) -> Option<Result<Vec<NamedLeaf>, String>>;

/// How the leaves of a tree follow from accounts, and the root from leaves. `None` for a hash
/// function that the tree does not have.
#[derive(Clone, Copy, Debug)]
pub struct NamedLeaves {
    /// The leaves of an account and of its code.
    pub of: LeavesOf,
    /// The root of leaves, from nothing but these.
    pub root: fn(hash: &str, leaves: &LeafValues) -> Option<Result<B256, String>>,
}
