//! What can go wrong with a node.

use alloy_primitives::{Address, B256};
use arbor_chain::executor::ExecutionError;
use arbor_chain::prepare::InputError;
use arbor_chain::source::SourceError;
use arbor_chain::witness::WitnessProblem;
use arbor_chain::witness::stateless::StatelessError;
use arbor_state::ReadError;

/// The longest path for which names are tried, some 4 billion of them. Branches of the largest tries
/// hang as deep.
pub(crate) const TRIED_NIBBLES: usize = 8;

/// Why a node does not give what is asked of it.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The address is none that this client can ask.
    #[error(
        "{0}: not an address of HTTP. This program has no TLS: for https, ask through a local proxy or tunnel, as http://127.0.0.1:PORT"
    )]
    Address(String),
    /// The request failed, or the answer did not come.
    #[error("{url}: {method}: {source}")]
    Http {
        /// The node.
        url: String,
        /// The method that was called.
        method: String,
        /// The reason.
        source: Box<ureq::Error>,
    },
    /// The node, or a proxy before it, cannot answer at the moment.
    #[error("{url}: {method}: the status {status}")]
    Busy {
        /// The node.
        url: String,
        /// The method that was called.
        method: String,
        /// The status of HTTP.
        status: u16,
    },
    /// The answer is not what the method answers.
    #[error("{url}: {method}: not an answer of JSON-RPC: {why}")]
    Answer {
        /// The node.
        url: String,
        /// The method that was called.
        method: String,
        /// What is wrong with it.
        why: String,
    },
    /// The node answered with an error.
    #[error("{url}: {method}: {message} (code {code})")]
    Refused {
        /// The node.
        url: String,
        /// The method that was called.
        method: String,
        /// The code of JSON-RPC.
        code: i64,
        /// The node's message.
        message: String,
    },
    /// The node has no block of this number or hash.
    #[error("the node has no block {0}")]
    NoBlock(String),
    /// The node's state is in another tree than the headers' roots are of.
    #[error(
        "{url}: the node's state is in a tree {tree}. This command needs Merkle-Patricia proofs (mpt): ask another node"
    )]
    OtherTree {
        /// The node.
        url: String,
        /// The name of the tree.
        tree: String,
    },
    /// A block or header is another one than was asked for.
    #[error("the node gave {what} {actual}, expected {expected}")]
    Other {
        /// What was compared.
        what: &'static str,
        /// What was asked for.
        expected: String,
        /// What came.
        actual: String,
    },
    /// A block cannot be decoded.
    #[error(transparent)]
    Block(#[from] SourceError),
    /// A signature is not valid.
    #[error(transparent)]
    Signature(#[from] InputError),
    /// The block breaks a rule, or something that it reads cannot be fetched.
    #[error(transparent)]
    Execution(#[from] ExecutionError),
    /// A proof does not lead to what it is about.
    #[error("eth_getProof of {address:#x} does not hold at the state root {root}: {error}")]
    Proof {
        /// The account.
        address: Address,
        /// The state root.
        root: B256,
        /// What is missing or malformed.
        error: ReadError,
    },
    /// A node of a trie cannot be fetched by any proof.
    #[error(
        "the witness of block {block} needs the node {hash} at {position}, a sibling that joins when its branch collapses. No proof of a name of the block has it, and no other name below it was found. A node with debug_executionWitness has it"
    )]
    Sibling {
        /// The block.
        block: u64,
        /// The hash of the trie node.
        hash: B256,
        /// Where it hangs.
        position: String,
    },
    /// A node of a trie hangs so deep that no name below it is found by trying.
    #[error(
        "the witness of block {block} needs the node {hash} at {position}, a sibling that joins when its branch collapses. No proof of a name of the block has it. Its path has {nibbles} nibbles, and other names below it are tried for paths of at most {tried}. A node with debug_executionWitness has it: do without --from-proofs, or ask another node",
        tried = TRIED_NIBBLES
    )]
    DeepSibling {
        /// The block.
        block: u64,
        /// The hash of the trie node.
        hash: B256,
        /// Where it hangs.
        position: String,
        /// The length of its path.
        nibbles: usize,
    },
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] ReadError),
    /// The witness cannot be used.
    #[error(transparent)]
    Witness(#[from] WitnessProblem),
    /// The block does not hold over the witness.
    #[error("the witness was made, but the block cannot be executed over it: {0}")]
    Stateless(#[from] StatelessError),
}

impl RemoteError {
    /// Whether the node does not have the method that was called.
    #[must_use]
    pub fn is_unknown_method(&self) -> bool {
        const UNKNOWN: i64 = -32_601;
        matches!(self, Self::Refused { code: UNKNOWN, .. })
    }

    /// Whether the same question may be answered later: the node was not reached, is busy, does not
    /// have the block yet, or went back from it in between.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        /// Invalid requests, unknown methods, invalid parameters (JSON-RPC 2.0, section 5.1), and
        /// history that is not kept (execution-apis).
        const LASTING: [i64; 4] = [-32_600, -32_601, -32_602, 4_444];
        match self {
            Self::Http { .. } | Self::Busy { .. } | Self::NoBlock(_) => true,
            Self::Refused { code, .. } => !LASTING.contains(code),
            _ => false,
        }
    }
}
