//! Witnesses in compact form: without anything that follows from the rest.
//!
//! The bytes are the length of the tree's part (4, big-endian), the tree's part in the tree's own form, and the codes, each
//! after its length (3, big-endian). Nodes and codes come back from them, except values after the block, which follow
//! from executing it.

use alloy_primitives::{B256, Bytes};

use crate::witness_parts::WitnessParts;

/// The way in which a tree writes the nodes of a witness in compact form.
#[derive(Clone, Copy, Debug)]
pub struct CompactForm {
    /// Writes the nodes of a witness. The function says which keys are those of chunks of code.
    pub(crate) encode: EncodeNodes,
    /// Reads them for a hash function and a root.
    pub(crate) decode: DecodeNodes,
}

pub(crate) type EncodeNodes =
    fn(&WitnessParts<'_>, IsChunk<'_>) -> Result<(Vec<u8>, CompactSizes), NotCompact>;

pub(crate) type DecodeNodes = fn(&str, B256, &[u8]) -> Result<Vec<Bytes>, NotCompact>;

/// Whether a key of 32 bytes is that of a chunk of code.
pub type IsChunk<'a> = &'a dyn Fn(&[u8; 32]) -> bool;

/// The bytes of a compact witness by part. Their sum is its length.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CompactSizes {
    /// Keys of leaves, as far as they do not follow from the place of a leaf.
    pub keys: u64,
    /// Values of leaves, without chunks of code.
    pub values: u64,
    /// Hashes of nodes that are not shown.
    pub siblings: u64,
    /// Codes, whole or in chunks.
    pub codes: u64,
    /// Commitments to vectors.
    pub commitments: u64,
    /// The proof that commitments are opened to values.
    pub proof: u64,
    /// Kinds of nodes, lengths and prefixes.
    pub structure: u64,
}

impl CompactSizes {
    /// Lists the parts by their names.
    pub fn parts(&self) -> [(&'static str, u64); 7] {
        let Self {
            keys,
            values,
            siblings,
            codes,
            commitments,
            proof,
            structure,
        } = *self;
        [
            ("keys", keys),
            ("values", values),
            ("siblings", siblings),
            ("codes", codes),
            ("commitments", commitments),
            ("proof", proof),
            ("structure", structure),
        ]
    }

    /// Sums up all parts.
    pub fn total(&self) -> u64 {
        self.parts().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// A witness in compact form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactWitness {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The bytes by part.
    pub sizes: CompactSizes,
}

/// Nodes and codes that a compact witness has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpandedWitness {
    /// The nodes, as witnesses of the tree have them.
    pub nodes: Vec<Bytes>,
    /// The codes, in the order in which they were given.
    pub codes: Vec<Bytes>,
}

/// Why a witness has no compact form, or bytes are no compact witness.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotCompact {
    /// A tree whose witnesses have no compact form.
    #[error("witnesses of the tree {0} have no compact form")]
    Tree(&'static str),
    /// A hash function that the tree does not have.
    #[error("the tree has no hash function {0:.40?}")]
    Hash(String),
    /// The tree's part is malformed, or nodes cannot be written.
    #[error("the compact witness: {0}")]
    Malformed(String),
    /// It leads to another root.
    #[error("the compact witness leads to root {actual}, expected {expected}")]
    Root {
        /// The root before the block.
        expected: B256,
        /// Where it leads.
        actual: B256,
    },
    /// Another number of nodes than the tree's witnesses have.
    #[error("the witness has {0} nodes, and its tree puts everything into one")]
    Count(usize),
    /// The bytes end within the tree's part or a code.
    #[error("the compact witness is cut short at byte {0}")]
    Short(usize),
    /// A code that is longer than any.
    #[error("a code of {0} bytes is too long for a compact witness")]
    Code(usize),
}

/// Bytes of a length before a code.
const CODE_LENGTH: usize = 3;

impl CompactForm {
    /// Writes the nodes and codes of a witness in compact form. `is_chunk` says which keys are those of chunks of code,
    /// which are measured with the codes; it is asked by trees with chunks among the leaves of their witnesses.
    ///
    /// # Errors
    /// Nodes that no witness of the tree has.
    pub fn write(
        &self,
        parts: &WitnessParts<'_>,
        is_chunk: IsChunk<'_>,
    ) -> Result<CompactWitness, NotCompact> {
        let (tree, mut sizes) = (self.encode)(parts, is_chunk)?;
        let length = u32::try_from(tree.len()).map_err(|_| NotCompact::Code(tree.len()))?;
        let mut bytes = length.to_be_bytes().to_vec();
        sizes.structure += bytes.len() as u64;
        bytes.extend(tree);
        for code in parts.codes {
            let length = code.len();
            if length >> (8 * CODE_LENGTH) != 0 {
                return Err(NotCompact::Code(length));
            }
            bytes.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
            bytes.extend_from_slice(code);
            sizes.structure += CODE_LENGTH as u64;
            sizes.codes += length as u64;
        }
        Ok(CompactWitness { bytes, sizes })
    }

    /// Reads a compact witness at a root. A tree whose nodes have hashes compares the root; the proof of another tree is
    /// checked when its witness is used.
    ///
    /// # Errors
    /// Bytes that are no compact witness of the tree, or one of another root.
    pub fn read(
        &self,
        hash: &str,
        root: B256,
        bytes: &[u8],
    ) -> Result<ExpandedWitness, NotCompact> {
        let short = NotCompact::Short(bytes.len());
        let mut rest = bytes;
        let length = take(&mut rest, 4).ok_or(short.clone())?;
        let tree = take(&mut rest, number(length)).ok_or(short.clone())?;
        let nodes = (self.decode)(hash, root, tree)?;
        let mut codes = Vec::new();
        while !rest.is_empty() {
            let length = take(&mut rest, CODE_LENGTH).ok_or(short.clone())?;
            let code = take(&mut rest, number(length)).ok_or(short.clone())?;
            codes.push(Bytes::copy_from_slice(code));
        }
        Ok(ExpandedWitness { nodes, codes })
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    rest.split_off(..count)
}

fn number(bytes: &[u8]) -> usize {
    let bytes = bytes.iter();
    bytes.fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// The one node of a witness whose tree puts everything into one, or none.
pub(crate) fn one_node<'a>(parts: &WitnessParts<'a>) -> Result<Option<&'a [u8]>, NotCompact> {
    match parts.nodes {
        [] => Ok(None),
        [node] => Ok(Some(node)),
        nodes => Err(NotCompact::Count(nodes.len())),
    }
}

/// Compares the root that nodes lead to.
pub(crate) fn check_root(expected: B256, actual: [u8; 32]) -> Result<(), NotCompact> {
    let actual = B256::from(actual);
    match expected == actual {
        true => Ok(()),
        false => Err(NotCompact::Root { expected, actual }),
    }
}
