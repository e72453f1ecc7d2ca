//! A witness of a block without what follows from the rest.

use arbor_verify::{CompactWitness, IsChunk, VerifyKind};

use super::{MptWitness, NamedTree, WitnessProblem};

/// The tree of the headers, and its one hash function.
const OF_HEADERS: (&str, &str) = ("mpt", "keccak256");

impl MptWitness {
    /// The tree of the nodes, and the name of its hash function.
    fn named_tree(&self) -> Result<(&'static VerifyKind, &str), WitnessProblem> {
        let (name, hash) = match &self.tree {
            Some(NamedTree { name, hash }) => (&**name, &**hash),
            None => OF_HEADERS,
        };
        let kind = arbor_verify::standard().find(name);
        let kind = kind.ok_or_else(|| WitnessProblem::UnknownTree {
            name: name.to_owned(),
            hash: hash.to_owned(),
        })?;
        Ok((kind, hash))
    }

    /// Writes nodes and codes in compact form. `is_chunk` says which keys are those of chunks of code.
    ///
    /// # Errors
    /// Nodes that no witness of the tree has.
    pub fn to_compact(&self, is_chunk: IsChunk<'_>) -> Result<CompactWitness, WitnessProblem> {
        let (kind, hash) = self.named_tree()?;
        Ok(kind.compact(&self.parts(hash), is_chunk)?)
    }

    /// Returns the witness with the nodes and codes of a compact form in place of its own. Block, headers and roots are
    /// the same.
    ///
    /// # Errors
    /// Bytes that are no compact form of the tree's nodes, or lead to another root than that before the block.
    pub fn with_compact(&self, bytes: &[u8]) -> Result<Self, WitnessProblem> {
        let (kind, hash) = self.named_tree()?;
        let expanded = kind.expand(hash, self.pre_state_root, bytes)?;
        Ok(Self {
            state_nodes: expanded.nodes,
            codes: expanded.codes,
            ..self.clone()
        })
    }
}
