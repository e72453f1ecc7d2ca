//! What a check of a range of first bytes leaves to the join of all ranges.

use std::collections::BTreeMap;

use alloy_primitives::Bytes;
use serde::{Deserialize, Serialize};

/// What a tree has found in a range of first bytes, and needs when the ranges are joined.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckedPart {
    /// The subtree of each first byte, ascending, as the tree writes it.
    pub subtrees: Vec<Bytes>,
    /// Numbers that are added up over all ranges, by name.
    pub sums: BTreeMap<String, u64>,
    /// Anything else that is compared over all ranges, as the tree writes it.
    pub rest: Bytes,
    /// The Merkle-Patricia trie of the flat tables.
    pub account_trie: AccountTrie,
}

/// The Merkle-Patricia trie of the flat tables, as far as a range has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AccountTrie {
    /// The subtree of each first byte of hashed addresses, ascending. None if the tree is that trie itself.
    Subtrees(Vec<Bytes>),
    /// There is none: records of the range cannot be read, and are reported.
    Unreadable,
    /// There is none. The fault may lie in any range, and is reported by the join.
    Fault(String),
}

impl Default for AccountTrie {
    fn default() -> Self {
        Self::Subtrees(Vec::new())
    }
}

impl CheckedPart {
    /// Adds up the numbers of all parts that have a name. The sum wraps around.
    pub fn sum(parts: &[Self], name: &str) -> u64 {
        let numbers = parts.iter().filter_map(|part| part.sums.get(name));
        numbers.fold(0, |sum, number| sum.wrapping_add(*number))
    }

    /// Returns the subtrees of all parts, ascending.
    pub fn all_subtrees(parts: &[Self]) -> impl Iterator<Item = &Bytes> {
        parts.iter().flat_map(|part| &part.subtrees)
    }
}
