//! What revm executes a block in.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, U256};
use arbor_evm384::engine::{FramesContext, Runner};
use arbor_state::StateView;
use revm::MainnetEvm;

use super::CodeReads;
use super::access_events::AccessEvents;
use super::accesses::TransactionAccess;
use super::overlay::Overlay;

/// What revm executes in.
pub(super) type BlockContext<'a, S> = FramesContext<Overlay<'a, S>>;

/// revm set up for one block.
pub(super) struct BlockEvm<'a, S: StateView + ?Sized> {
    pub(super) evm: MainnetEvm<BlockContext<'a, S>>,
    /// Where to record what is read of code, if that is wanted.
    pub(super) code_reads: Option<&'a mut CodeReads>,
    /// Where to record what each transaction reads and writes, if that is wanted.
    pub(super) accesses: Option<&'a mut Vec<TransactionAccess>>,
    /// Where to record the slots that are read without asking the state, if that is wanted.
    pub(super) new_slots: Option<&'a mut BTreeMap<Address, BTreeSet<U256>>>,
    /// What transactions touch and pay for, where they do.
    pub(super) access_events: Option<AccessEvents>,
    /// What EVM384 does with frames, if the chain has it.
    pub(super) runner: Option<&'a mut Runner>,
    /// Whether a frame has asked for more memory than there is, which ends the block.
    pub(super) memory_exceeded: bool,
    /// Whether the current transaction has touched an empty 0x3 without value: see `ripemd`.
    pub(super) ripemd_touched: bool,
}
