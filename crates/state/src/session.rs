//! Blocks that are not committed, on top of each other.

use std::fmt;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{Computed, StateWitness, Touched, check_consistent};
use arbor_verify::Proof;
use arbor_versions::{Meta, Version};

use crate::block_ref::{BlockRef, block_meta};
use crate::head::Head;
use crate::history::way_back;
use crate::recovery::check_recovered;
use crate::snapshot::StateSnapshot;
use crate::{HeadId, StateChanges, StateError, roots};

/// The state after blocks that are not committed: a snapshot with a stack of blocks on top.
///
/// [`apply`](Self::apply) returns the session after one more block and leaves this one as it is, so that several blocks can follow the same
/// parent. Every session has its root, its proofs and its reads. [`State::commit_session`](crate::State::commit_session) makes the blocks
/// of one session the latest versions; a session that is dropped leaves no trace. Sessions need no access to the [`State`](crate::State)
/// while they are made and read, and cross threads.
///
/// A session reads the store through a snapshot, past the cache of the writer.
#[derive(Clone)]
pub struct Session {
    state: StateSnapshot,
    /// The blocks that are not committed, oldest first.
    steps: Vec<Arc<Step>>,
}

/// A block that is not committed.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The version that it follows; `None`: the empty database.
    pub(crate) on: Option<HeadId>,
    pub(crate) block: BlockRef,
    pub(crate) computed: Computed,
}

impl StateSnapshot {
    /// Begins a session on top of the snapshot. It can be committed if a [`State`](crate::State) made the snapshot, to that state alone: the
    /// session of a snapshot that was opened for reading is never committed.
    ///
    /// # Errors
    /// A database whose recovery did not finish.
    pub fn session(&self) -> Result<Session, StateError> {
        check_recovered(self.reader().meta())?;
        Ok(Session {
            state: self.clone(),
            steps: Vec::new(),
        })
    }

    /// Begins a session on top of a retained version, as if the later ones were rolled back: for the blocks of a reorganisation. To
    /// commit the session, [roll back](crate::State::rollback) to that version first.
    ///
    /// # Errors
    /// A version that is not retained; those of [`session`](Self::session); the store's errors.
    pub fn session_at(&self, version: Version) -> Result<Session, StateError> {
        let mut session = self.session()?;
        if self.reader().meta().map(|meta| meta.version) != Some(version) {
            let (flat, nodes) = way_back(self.reader(), version)?;
            session.state.rewinds = None;
            session.state.versions = self.versions.rolled_back(version, flat, nodes)?;
        }
        Ok(session)
    }
}

impl Session {
    /// Computes what changes make of this state, and returns the session after the block. Spreads large changes over the caller's rayon
    /// pool, like [`State::compute`](crate::State::compute).
    ///
    /// # Errors
    /// Those of [`State::compute`](crate::State::compute); a block whose number is below its parent's.
    pub fn apply(&self, block: &BlockRef, changes: &StateChanges) -> Result<Self, StateError> {
        let (head, tree) = (self.reader(), &self.state.tree);
        check_consistent(head.view(), &[changes])?;
        let mut computed = tree.compute(head.view(), &[changes])?;
        let mut computed = computed.pop().expect("invariant: one for each");
        let root = computed.root();
        if roots::are_written(tree, head.view())? {
            roots::put(&mut computed.changes, block.number, root);
        }
        let on = head.meta().map(HeadId::of);
        let version = on.map_or(0, |on| on.version.0 + 1);
        let meta = block_meta(version, block.clone(), root);
        let versions = &self.state.versions;
        let versions = versions.with_version(meta, computed.changes.clone())?;
        let step = Step {
            on,
            block: block.clone(),
            computed,
        };
        let steps = self.steps.iter().cloned().chain([Arc::new(step)]);
        Ok(Self {
            steps: steps.collect(),
            state: StateSnapshot {
                versions,
                tree: tree.clone(),
                rewinds: None,
            },
        })
    }

    /// The state after the last block, and the retained versions before it.
    pub fn reader(&self) -> Head<'_> {
        self.state.reader()
    }

    /// The last block and the root after it; `None` before genesis.
    pub fn meta(&self) -> Option<&Meta> {
        self.reader().meta()
    }

    /// The root after the last block; that of the empty tree before genesis.
    pub fn root(&self) -> B256 {
        self.reader().root()
    }

    /// The number of blocks that were applied since the session began.
    pub fn depth(&self) -> usize {
        self.steps.len()
    }

    /// Proves an account and some of its slots, present or absent, after the last block.
    ///
    /// # Errors
    /// A state without any version; the store's errors.
    pub fn prove(&self, address: Address, slots: &[U256]) -> Result<Box<dyn Proof>, StateError> {
        self.reader().latest()?.prove(address, slots)
    }

    /// Returns what a block on top of this session touches, proven; `None` for a tree without witnesses.
    ///
    /// # Errors
    /// A state without any version; the store's errors.
    pub fn witness(&self, touched: Touched<'_>) -> Result<Option<StateWitness>, StateError> {
        self.reader().latest()?.witness(touched).transpose()
    }

    /// The blocks that are to be committed on top of a head; `None` if the session does not lead there.
    pub(crate) fn steps_on(self, head: Option<HeadId>) -> Option<Vec<Step>> {
        let reached = self.meta().map(HeadId::of);
        let Self { state, mut steps } = self;
        // Its layers are not needed any more, and the last steps of a session are then owned by nobody else.
        drop(state);
        let steps = match steps.iter().position(|step| step.on == head) {
            Some(first) => steps.split_off(first),
            None if reached == head => Vec::new(),
            None => return None,
        };
        Some(steps.into_iter().map(Arc::unwrap_or_clone).collect())
    }

    /// The version that the session began on.
    pub(crate) fn base(&self) -> Option<HeadId> {
        match self.steps.first() {
            Some(first) => first.on,
            None => self.meta().map(HeadId::of),
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("state", &self.reader())
            .field("depth", &self.depth())
            .finish()
    }
}
