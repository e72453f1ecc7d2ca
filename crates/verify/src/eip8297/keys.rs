//! One proof of several keys without accounts.

use alloy_primitives::{B256, Bytes};
use arbor_tree_eip8297::{Hasher, Multiproof, MultiproofError, Path, PathError, Shown};
use serde::{Deserialize, Serialize};

use crate::hash_name::HashName;
use crate::proof::ProvenLeaf;

/// Several keys of 32 bytes, present or absent, with one proof of what they hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysProof {
    /// The hash function of the tree.
    #[serde(default)]
    pub hash: HashName,
    /// What it proves.
    pub keys: Vec<B256>,
    /// The proof of the leaves, as [`Multiproof::encode`] writes it.
    pub multiproof: Bytes,
}

/// Why something is no proof of several keys.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedKeys {
    /// Bytes that are no multiproof.
    #[error(transparent)]
    Bytes(#[from] MultiproofError),
    /// A proof without keys.
    #[error("it names no key")]
    Nothing,
    /// A key that no tree has.
    #[error(transparent)]
    Key(#[from] PathError),
}

/// What does not hold of a well-formed proof.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FalseKeys {
    /// The proof leads to another root.
    #[error("its hashes lead to root {0}")]
    Root(B256),
    /// A key of which the proof says nothing.
    #[error("it says nothing of key {0}")]
    Unsaid(B256),
}

impl KeysProof {
    /// Returns what the keys hold under a root, in their order. The inner error says what is not
    /// proven.
    ///
    /// # Errors
    /// What is no proof of them.
    pub fn verify(&self, root: B256) -> Result<Result<Vec<ProvenLeaf>, FalseKeys>, MalformedKeys> {
        if self.keys.is_empty() {
            return Err(MalformedKeys::Nothing);
        }
        let proof = Multiproof::decode(&self.multiproof)?;
        let found = proof.root(Hasher(self.hash.function()));
        if found != root.0 {
            return Ok(Err(FalseKeys::Root(found.into())));
        }
        let mut leaves = Vec::with_capacity(self.keys.len());
        for key in &self.keys {
            let value = match proof.show(&Path::of_key(key.as_slice())?) {
                Some(Shown::Value(value)) => Some(value.into()),
                Some(Shown::Absent) => None,
                None => return Ok(Err(FalseKeys::Unsaid(*key))),
            };
            leaves.push(ProvenLeaf {
                key: *key,
                index: None,
                value,
            });
        }
        Ok(Ok(leaves))
    }
}
