//! Checking proofs.

use arbor_hashing::keccak256;
use arbor_tree::{Hash, Path, nibble_of};

use crate::EMPTY_ROOT;
use crate::node::{NodeError, Reference, RlpNode};

/// What a well-formed proof says about a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The key has this value.
    Present(Vec<u8>),
    /// The key is not in the trie.
    Absent,
    /// Nothing: the node at this index of the proof does not have the hash that is demanded there.
    False(usize),
}

/// Why bytes are not a proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProofError {
    /// A node is malformed.
    #[error("proof node {index}: {error}")]
    Node {
        /// Index in the proof.
        index: usize,
        /// What is wrong.
        error: NodeError,
    },
    /// The proof ends before it reaches the key's value or its absence.
    #[error("the proof ends after {0} nodes, before it says anything about the key")]
    Incomplete(usize),
    /// The proof goes on after all is said.
    #[error("the proof has {0} nodes more than it needs")]
    Spare(usize),
}

/// Checks a proof in the form of EIP-1186 for a key of a trie with the given root.
///
/// For an empty trie the proof is empty, or the one node `0x80` that some clients send.
///
/// # Errors
/// When the proof is malformed. A proof that is well-formed but not of this root is
/// [`Verdict::False`].
pub fn verify(root: &Hash, key: &Hash, proof: &[Vec<u8>]) -> Result<Verdict, ProofError> {
    if *root == EMPTY_ROOT {
        return match proof {
            [] => Ok(Verdict::Absent),
            [node] if node == &[0x80] => Ok(Verdict::Absent),
            _ => Err(ProofError::Spare(proof.len())),
        };
    }
    let mut nodes = proof.iter().enumerate();
    let mut depth = 0;
    let mut current = Reference::hash(*root);
    let verdict = loop {
        let used = proof.len() - nodes.len();
        let rlp = match current.as_inline() {
            Some(rlp) => rlp.to_vec(),
            None => {
                let (_, node) = nodes.next().ok_or(ProofError::Incomplete(proof.len()))?;
                node.clone()
            }
        };
        let index = match current.as_hash() {
            Some(_) => used,
            None => used.saturating_sub(1),
        };
        let node = RlpNode::parse(&rlp).map_err(|error| ProofError::Node { index, error })?;
        if current
            .as_hash()
            .is_some_and(|hash| keccak256(&rlp) != hash)
        {
            return Ok(Verdict::False(index));
        }
        match follow(&node, key, &mut depth) {
            Ok(Next::Child(child)) => current = child,
            Ok(Next::End(verdict)) => break verdict,
            Err(error) => return Err(ProofError::Node { index, error }),
        }
    };
    match nodes.len() {
        0 => Ok(verdict),
        spare => Err(ProofError::Spare(spare)),
    }
}

/// Checks that a proof shows a key to have a value, or (`None`) to be absent.
///
/// # Errors
/// When the proof is malformed; a false one is `Ok(false)`.
pub fn verify_value(
    root: &Hash,
    key: &Hash,
    proof: &[Vec<u8>],
    value: Option<&[u8]>,
) -> Result<bool, ProofError> {
    Ok(match verify(root, key, proof)? {
        Verdict::Present(proven) => Some(proven.as_slice()) == value,
        Verdict::Absent => value.is_none(),
        Verdict::False(_) => false,
    })
}

enum Next {
    Child(Reference),
    End(Verdict),
}

/// Follows a key through one node and moves `depth` on.
fn follow(node: &RlpNode<'_>, key: &Hash, depth: &mut usize) -> Result<Next, NodeError> {
    let left = Path::MAX - *depth;
    match node {
        RlpNode::Leaf(suffix, _) if suffix.len() != left => Err(NodeError::TooDeep),
        RlpNode::Leaf(suffix, value) => Ok(Next::End(
            if suffix.shared_with_key(key, *depth) == suffix.len() {
                Verdict::Present(value.to_vec())
            } else {
                Verdict::Absent
            },
        )),
        RlpNode::Extension(prefix, _) if prefix.len() >= left => Err(NodeError::TooDeep),
        RlpNode::Extension(prefix, child) => {
            if prefix.shared_with_key(key, *depth) < prefix.len() {
                return Ok(Next::End(Verdict::Absent));
            }
            *depth += prefix.len();
            Ok(Next::Child(*child))
        }
        RlpNode::Branch(_) if left == 0 => Err(NodeError::TooDeep),
        RlpNode::Branch(children) => {
            let child = children[usize::from(nibble_of(key, *depth))];
            *depth += 1;
            if child.is_none() {
                return Ok(Next::End(Verdict::Absent));
            }
            Ok(Next::Child(child))
        }
    }
}
