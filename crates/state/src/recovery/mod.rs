//! A state as a list in a file, and a state from such a list.
//!
//! The file ([`EntriesWriter`], [`EntriesReader`]) has one version of a state, code, and what a replay asks of the last
//! blocks. For a tree with leaves by key the version is its leaves, in any order, and the names that lead to them. For
//! any other tree it is a stream of accounts with their slots, which other trees can be made of, too
//! ([`AccountsFile`]). [`Recovery`] makes a database of it, chunk by chunk: each is a version, whose record says how many are in, so that whatever ends the process, the
//! chunks that were flushed need not come again.

mod account_entry;
mod accounts_file;
mod export;
mod file;
mod import;
mod marker;

use std::num::NonZeroUsize;

use alloy_primitives::{B256, Bytes};
use serde::{Deserialize, Serialize};

use crate::{Network, Registry, Settings, StateError, Tree};

pub use account_entry::AccountEntry;
pub use accounts_file::AccountsFile;
pub use file::{EntriesReader, EntriesWriter, Place, Totals};
pub use import::Recovery;
pub(crate) use marker::check_recovered;
pub use marker::is_recovering;

use arbor_state_tree::LeafWrite;

/// The most entries of a chunk: what is taken in at a time is in memory at once.
pub const MOST_TOGETHER: usize = 1 << 21;

/// Bytes of code from which on a chunk is not added to.
const CODE_BYTES: usize = 4 << 20;

/// The order in which leaves are written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Ascending by key.
    #[default]
    Key,
    /// Ascending by index: as they came, which is at random among the keys. Takes 72 bytes of memory for each.
    Index,
}

/// What is at the beginning of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntriesHead {
    /// The tree, its revision and its hash function, as the database's identity has them.
    pub tree: String,
    /// As above.
    pub revision: String,
    /// As above.
    pub hash: String,
    /// The chain id; 0 of a state that belongs to no chain.
    pub chain_id: u64,
    /// The hash of block 0.
    pub genesis: B256,
    /// The text that the database was made from, if it was.
    #[serde(default)]
    pub genesis_json: Option<String>,
    /// The rules of the blocks beyond the genesis, as a record of whoever made the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<serde_json::Value>,
    /// The order of the leaves.
    pub order: Order,
    /// How many leaves, or accounts and slots, are in a chunk at most.
    pub together: NonZeroUsize,
    /// The blocks up to the one whose state this is, ascending, as many as are remembered.
    pub blocks: Vec<EntriesBlock>,
}

/// A block, as a version's record has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntriesBlock {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// The tree's root after it.
    pub root: B256,
    /// What is kept of its header.
    pub record: Bytes,
}

impl EntriesHead {
    /// The chain that the state belongs to.
    #[must_use]
    pub fn network(&self) -> Network {
        Network {
            chain_id: self.chain_id,
            genesis_hash: self.genesis,
        }
    }

    /// The root that all leaves together have.
    ///
    /// # Errors
    /// There is no block at all.
    pub fn root(&self) -> Result<B256, RecoveryError> {
        let last = self.blocks.last().ok_or(RecoveryError::NoBlock)?;
        Ok(last.root)
    }

    /// The tree that the state is in.
    ///
    /// # Errors
    /// One that is not known.
    pub fn tree(&self, known: &Registry) -> Result<Tree, RecoveryError> {
        let identity = arbor_versions::Identity {
            tree: self.tree.clone(),
            revision: self.revision.clone(),
            hash: self.hash.clone(),
            layout: 0,
            chain_id: self.chain_id,
            genesis: self.genesis.0,
            space: 0,
            moves_to: None,
            since: None,
        };
        let settings = Settings {
            hash: Some(self.hash.clone()),
            ..Settings::default()
        };
        let row = known.of_identity(&identity);
        let tree = row.and_then(|row| (row.make)(&settings).ok());
        tree.ok_or_else(|| RecoveryError::Tree {
            tree: self.tree.clone(),
            revision: self.revision.clone(),
            hash: self.hash.clone(),
        })
    }
}

/// Some of a state, to be taken in together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// Leaves.
    Leaves(Vec<LeafWrite>),
    /// Names of accounts (20 bytes) and slots (52) that have leaves.
    Names(Vec<Vec<u8>>),
    /// Code.
    Codes(Vec<Bytes>),
    /// Accounts and slots of the state, in the order of the tree. An account with many slots may go on in the next
    /// chunk.
    Accounts(Vec<AccountEntry>),
    /// Accounts and slots that the state once had. They come before the accounts of the state, which remove them or
    /// set them to zero again, so that a tree that forgets no leaf gets the leaves that it had.
    Past(Vec<AccountEntry>),
}

/// Why there is no list, or no state of it.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The file cannot be read, or written.
    #[error("at byte {offset}: {error}")]
    File {
        /// Bytes before.
        offset: u64,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not one, or is damaged.
    #[error("at byte {offset}: {why}")]
    Malformed {
        /// Where what is wrong begins.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// The file has fewer or more than it says at its end.
    #[error("it ends with {found}, but says that it has {said}")]
    Totals {
        /// What it says.
        said: Totals,
        /// What came.
        found: Totals,
    },
    /// A tree that cannot be made of leaves here.
    #[error(
        "its tree is {tree:.40?} of revision {revision:.40?} with hash {hash:.40?}, which cannot be recovered here"
    )]
    Tree {
        /// The tree.
        tree: String,
        /// Its revision.
        revision: String,
        /// Its hash function.
        hash: String,
    },
    /// A database whose leaves cannot be listed by key.
    #[error("the tree {0} has no leaves by key alone, which the list is made of")]
    NoLeaves(&'static str),
    /// An account that cannot be set as a list says.
    #[error("account {address:#x} {why}")]
    Account {
        /// The account.
        address: alloy_primitives::Address,
        /// What is wrong.
        why: &'static str,
    },
    /// A list of leaves, where one of accounts is needed.
    #[error(
        "it has leaves of the tree {0}, which do not name accounts: make a database of it with arbor recover, and give that"
    )]
    OfLeaves(&'static str),
    /// A list of no version.
    #[error("it names no block")]
    NoBlock,
    /// A block whose hash is what marks a recovery that is under way.
    #[error("block {0} has a hash that no block has")]
    Hash(u64),
    /// The database has a state already.
    #[error("the database has the state of block {block} already")]
    NotEmpty {
        /// The block.
        block: u64,
    },
    /// The database was begun with another file.
    #[error(
        "the database is being recovered from another file, of which {0} chunks are in: go on with that one, or remove the database and begin anew"
    )]
    OtherFile(u64),
    /// A leaf that came before.
    #[error("leaf {0} comes twice")]
    Twice(B256),
    /// Two leaves of one index.
    #[error("index {0} is that of two leaves")]
    IndexTwice(u64),
    /// An index beyond the number of leaves.
    #[error("a leaf has index {index}, where there are no more than {leaves} leaves")]
    IndexBeyond {
        /// The index.
        index: u64,
        /// Leaves in all, or that there can be in a file of this length.
        leaves: u64,
    },
    /// A name that is not one.
    #[error("0x{} is the name of neither an account nor a slot", alloy_primitives::hex::encode(.0))]
    Name(Vec<u8>),
    /// The entries are not those of the root.
    #[error("its entries have the root {actual}, but the root of its block is {expected}")]
    Root {
        /// What the file says.
        expected: B256,
        /// What the entries come to.
        actual: B256,
    },
}
