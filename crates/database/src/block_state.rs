//! The state after a block: reading, proving, and calls on top of it.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Instant;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, U256};
use arbor_chain::executor::{
    Ancestor, Ancestors, Call, CallError, CallOutcome, CallPlace, RecentBlocks, Rules,
};
use arbor_chain::replay::{ReplayError, kept_header, recent_blocks};
use arbor_state::{Head, Historical, ReadError, StateError, StateView};
use arbor_verify::Proof;
use arbor_versions::{Meta, Version, VersionsError};

use crate::chain_context::ChainContext;
use crate::overrides::{BlockOverride, Overridden, Overrides};

/// Why the state after a block cannot be read, or a call on it not be made.
#[derive(Debug, thiserror::Error)]
pub enum BlockStateError {
    /// The database has no version.
    #[error("the database is empty: replay a chain into it first")]
    Empty,
    /// The block is in the past, and its state is not kept.
    #[error(
        "the state of block {number} is not kept: those of blocks {oldest} to {newest} are. `arbor replay --retain N` keeps more"
    )]
    NotKept {
        /// The block.
        number: u64,
        /// The oldest block whose state is kept.
        oldest: u64,
        /// The latest block.
        newest: u64,
    },
    /// The block is after the latest one.
    #[error("block {number} is not in the database: its latest block is {newest}")]
    AboveHead {
        /// The block.
        number: u64,
        /// The latest block.
        newest: u64,
    },
    /// What the database keeps of a block cannot be read.
    #[error(transparent)]
    Block(#[from] ReplayError),
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// A call was not made to its end.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl From<VersionsError> for BlockStateError {
    fn from(error: VersionsError) -> Self {
        Self::State(error.into())
    }
}

impl From<ReadError> for BlockStateError {
    fn from(error: ReadError) -> Self {
        Self::State(error.into())
    }
}

/// Returns the numbers of the oldest and the latest block whose states are kept.
///
/// # Errors
/// [`BlockStateError::Empty`]; the store's errors.
pub fn kept_blocks(head: Head<'_>) -> Result<(u64, u64), BlockStateError> {
    let newest = head.meta().ok_or(BlockStateError::Empty)?;
    let oldest = match head.view().oldest() {
        Some(version) if version != newest.version => head.view().meta(version)?,
        _ => None,
    };
    let oldest = oldest.map_or(newest.block_number, |meta| meta.block_number);
    Ok((oldest, newest.block_number))
}

/// The state after a block of a database. All that is asked of it is of one version.
pub struct BlockState<'a> {
    head: Head<'a>,
    chain: &'a ChainContext,
    meta: Cow<'a, Meta>,
    /// The version among older ones, made when it is needed: at the head only proofs need it.
    then: OnceLock<Historical<'a>>,
    /// What calls see instead.
    overridden: Option<Overridden<'a>>,
    block: BlockOverride,
}

impl<'a> BlockState<'a> {
    /// Returns the state after the latest block.
    ///
    /// # Errors
    /// [`BlockStateError::Empty`].
    pub fn latest(head: Head<'a>, chain: &'a ChainContext) -> Result<Self, BlockStateError> {
        let meta = head.meta().ok_or(BlockStateError::Empty)?;
        Ok(Self {
            head,
            chain,
            meta: Cow::Borrowed(meta),
            then: OnceLock::new(),
            overridden: None,
            block: BlockOverride::default(),
        })
    }

    /// Returns the state after a block.
    ///
    /// # Errors
    /// [`BlockStateError::NotKept`] and [`BlockStateError::AboveHead`], with the blocks that are
    /// there; the store's errors.
    pub fn after_block(
        head: Head<'a>,
        chain: &'a ChainContext,
        number: u64,
    ) -> Result<Self, BlockStateError> {
        let latest = Self::latest(head, chain)?;
        let newest = latest.meta.block_number;
        if number == newest {
            return Ok(latest);
        }
        if number > newest {
            return Err(BlockStateError::AboveHead { number, newest });
        }
        let version = head.view().version_of_block(number)?;
        match version.map(|version| Self::of_version(head, chain, version)) {
            Some(Ok(state)) => Ok(state),
            Some(Err(BlockStateError::State(StateError::Versions(error))))
                if matches!(*error, VersionsError::NotRetained { .. }) =>
            {
                let (oldest, newest) = kept_blocks(head)?;
                Err(BlockStateError::NotKept {
                    number,
                    oldest,
                    newest,
                })
            }
            Some(Err(error)) => Err(error),
            None => {
                let (oldest, newest) = kept_blocks(head)?;
                Err(BlockStateError::NotKept {
                    number,
                    oldest,
                    newest,
                })
            }
        }
    }

    /// Returns the state of a kept version.
    ///
    /// # Errors
    /// A version that is not kept; the store's errors.
    pub fn of_version(
        head: Head<'a>,
        chain: &'a ChainContext,
        version: Version,
    ) -> Result<Self, BlockStateError> {
        let then = head.at(version)?;
        Ok(Self {
            head,
            chain,
            meta: Cow::Owned(then.meta().clone()),
            then: OnceLock::from(then),
            overridden: None,
            block: BlockOverride::default(),
        })
    }

    /// Lays changes over the state and the block, for calls. Proofs do not see them.
    ///
    /// # Errors
    /// Those of [`then`](Self::then).
    pub fn with_overrides(self, overrides: Overrides) -> Result<Self, BlockStateError> {
        let Overrides { accounts, block } = overrides;
        let overridden = match accounts.is_empty() {
            true => None,
            false => {
                let base: Box<dyn StateView + 'a> = match self.is_latest() {
                    true => Box::new(self.head),
                    false => Box::new(self.head.at(self.meta.version)?),
                };
                Some(Overridden::new(base, accounts))
            }
        };
        Ok(Self {
            overridden,
            block,
            ..self
        })
    }

    /// The block's number and hash, and the root.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The chain of the database.
    #[must_use]
    pub fn chain(&self) -> &'a ChainContext {
        self.chain
    }

    /// Reads the block's header.
    ///
    /// # Errors
    /// A database that has no header of it, or a damaged one.
    pub fn header(&self) -> Result<Header, BlockStateError> {
        Ok(kept_header(&self.meta)?)
    }

    /// Accounts, slots and code, under the changes of [`with_overrides`](Self::with_overrides).
    ///
    /// # Errors
    /// Those of [`then`](Self::then).
    pub fn view(&self) -> Result<&dyn StateView, BlockStateError> {
        if let Some(overridden) = &self.overridden {
            return Ok(overridden);
        }
        if self.is_latest() {
            return Ok(&self.head);
        }
        Ok(self.then()?)
    }

    fn is_latest(&self) -> bool {
        self.head.meta().map(|head| head.version) == Some(self.meta.version)
    }

    /// The version, for what is asked of its tree: proofs, witnesses, lists of accounts.
    ///
    /// # Errors
    /// The store's errors.
    pub fn then(&self) -> Result<&Historical<'a>, BlockStateError> {
        if let Some(then) = self.then.get() {
            return Ok(then);
        }
        let then = self.head.at(self.meta.version)?;
        Ok(self.then.get_or_init(|| then))
    }

    /// Proves an account and slots of it, present or absent, in the form of the database's tree.
    ///
    /// # Errors
    /// The store's errors; nodes that do not lead to the version's root.
    pub fn prove(
        &self,
        address: Address,
        slots: &[U256],
    ) -> Result<Box<dyn Proof>, BlockStateError> {
        Ok(self.then()?.prove(address, slots)?)
    }

    /// Makes a call by the rules of the block, and gives it up at the deadline.
    ///
    /// # Errors
    /// [`CallError`]; those of [`header`](Self::header) and [`view`](Self::view).
    pub fn call(
        &self,
        call: &Call,
        deadline: Option<Instant>,
    ) -> Result<CallOutcome, BlockStateError> {
        let (header, rules) = self.rules()?;
        let hashes = KeptHashes {
            head: self.head,
            block: self.meta.block_number,
        };
        let place = CallPlace {
            rules: &rules,
            header: &header,
            chain: &hashes,
            blob_base_fee: self.block.blob_base_fee,
            deadline,
        };
        let view = self.view()?;
        let outcome = self
            .chain
            .with_executor(|executor| executor.call(place, call, view));
        Ok(outcome?)
    }

    /// Returns the block's header and the rules in force, under the changes of
    /// [`with_overrides`](Self::with_overrides).
    ///
    /// # Errors
    /// Those of [`header`](Self::header).
    pub fn rules(&self) -> Result<(Header, Rules), BlockStateError> {
        let mut header = self.header()?;
        self.block.apply(&mut header);
        let parent = self.meta.version.0.checked_sub(1);
        let parent = parent.map(|version| self.head.view().meta(Version(version)));
        // Without the parent, only what a call does not see is unknown.
        let parent = parent.transpose()?.flatten();
        let parent = parent.map(|meta| kept_header(&meta)).transpose()?;
        let spec = &self.chain.genesis().spec;
        let rules = Rules::at(spec, &header, parent.as_ref().unwrap_or(&header), None);
        Ok((header, rules))
    }
}

impl BlockState<'_> {
    /// Reads the blocks up to this one, for whoever executes the next one.
    ///
    /// # Errors
    /// Those of [`header`](Self::header), for any of the 256 blocks.
    pub fn recent_blocks(&self) -> Result<RecentBlocks, BlockStateError> {
        Ok(recent_blocks(self.head, self.meta.version)?)
    }
}

/// The hashes of the blocks that a database remembers, for `BLOCKHASH` in a call.
struct KeptHashes<'a> {
    head: Head<'a>,
    /// The block after which the call is made.
    block: u64,
}

impl Ancestors for KeptHashes<'_> {
    /// Only a call whose block has another number asks for its own block and later ones, which are
    /// not among its ancestors. Their hashes are zero, as in go-ethereum.
    fn block_hash(&self, number: u64) -> Result<B256, ReadError> {
        if number >= self.block {
            return Ok(B256::ZERO);
        }
        let view = self.head.view();
        let version = view.version_of_block(number).map_err(ReadError::below)?;
        let meta = version.map(|version| view.meta(version)).transpose();
        match meta.map_err(ReadError::below)?.flatten() {
            Some(meta) => Ok(meta.block_hash.into()),
            None => Err(ReadError::new(format!(
                "the hash of block {number} is not kept, which BLOCKHASH asks for"
            ))),
        }
    }

    fn ancestor(&self, _: u64) -> Option<&Ancestor> {
        None
    }
}
