//! One proof of several keys without accounts.

use alloy_primitives::{B256, Bytes};
use arbor_tree_ar16mt::{Blake2s, Multiproof, MultiproofError};
use serde::{Deserialize, Serialize};

use crate::proof::ProvenLeaf;

/// Several keys, present or absent, with one proof of what they hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysProof {
    /// The keys, what they hold and the hashes beside their ways, as [`Multiproof::encode`] writes
    /// them.
    pub multiproof: Bytes,
}

impl KeysProof {
    /// Returns what the keys hold under a root, ascending by key; `None` if the proof does not lead
    /// to the root. A proof of no keys leads to none.
    ///
    /// # Errors
    /// Bytes that are no multiproof.
    pub fn verify(&self, root: B256) -> Result<Option<Vec<ProvenLeaf>>, MultiproofError> {
        let proof = Multiproof::decode(&self.multiproof)?;
        if !proof.verify(Blake2s::new(), &root.0)? {
            return Ok(None);
        }
        let leaves = proof.entries().map(|(key, entry)| ProvenLeaf {
            key: key.into(),
            index: entry.map(|entry| entry.index),
            value: entry.map(|entry| entry.value.into()),
        });
        Ok(Some(leaves.collect()))
    }
}
