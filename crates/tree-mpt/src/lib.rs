//! The Merkle-Patricia trie: incremental, batched, provable.

mod apply;
mod build;
mod commit;
mod edit;
mod error;
mod forest;
mod lanes;
mod load;
mod node;
mod ordered;
mod overlay;
mod prove;
mod record;
mod rlp;
mod settle;
mod update;
mod verify;
mod witness;

pub use apply::apply;
pub use build::build;
pub use error::TreeError;
pub use node::NodeError;
pub use ordered::{ordered_root, trie_root};
pub use overlay::Overlay;
pub use prove::{prove, prove_many};
pub use record::{Record, RecordError};
pub use rlp::RlpError;
pub use update::{ApplyStats, InnerUpdate, LeafTemplate, OuterUpdate, TreeUpdate};
pub use verify::{ProofError, Verdict, verify, verify_value};
pub use witness::{Access, WitnessError, WitnessNodes, witness};

/// Root of a trie without leaves: Keccak-256 of the RLP of the empty string.
pub const EMPTY_ROOT: [u8; 32] = [
    0x56, 0xe8, 0x1f, 0x17, 0x1b, 0xcc, 0x55, 0xa6, 0xff, 0x83, 0x45, 0xe6, 0x92, 0xc0, 0xf8, 0x6e,
    0x5b, 0x48, 0xe0, 0x1b, 0x99, 0x6c, 0xad, 0xc0, 0x01, 0x62, 0x2f, 0xb5, 0xe3, 0x63, 0xb4, 0x21,
];
