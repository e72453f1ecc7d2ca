//! The log of what is gone: names that the source has, and that a block since the beginning of the
//! move deleted, cleared or set to zero.
//!
//! Without the log a root amid the move would not tell a name that is gone from one that is not
//! moved yet: in either case the source has it and the target does not. With it one rule gives what
//! each name is ([`two_trees`]). The rule holds because of these cases, in which "the source has
//! it" is meant of the tree that stands still.
//!
//! - *A name that no block wrote since the move began.* The log does not have it. If it was moved,
//!   the target has it; a slot with a value and an account are never moved as nothing. If not, it
//!   is as the source has it.
//! - *An account that blocks wrote.* If it exists, the target has it. If it does not exist, the
//!   block that deleted it logged it if the source has it, moved or not.
//! - *A slot that blocks wrote.* If it has a value, the target has it. If it is zero and its
//!   account was not cleared since, the first block that set it to zero logged it if the source has
//!   it, moved or not. A tree that keeps zeros has a zero there, which counts as nothing.
//! - *A slot of an account that was deleted or lost its storage.* The account is logged if the
//!   source has it. Blocks may write the account again: the target then has it and the slots with
//!   values that were written since, and no slot of the source counts. Deleting it again adds
//!   nothing.
//! - *A slot of an account that the source does not have.* The source has no slot of it either.
//!
//! A name that is logged may have a value again later: the target has it then, and the log does not
//! matter. Therefore each name is logged once, however often it comes and goes. A block knows that
//! from the records of what was written since: an account's says whether it was ever cleared, a
//! slot's whether it is logged. So what a block does for the log is bounded by its own changes. A
//! change of an account's code, for example a delegation (EIP-7702), makes nothing gone.

use alloy_primitives::Address;
use arbor_state_tree::{Check, Flat, Moved, StateError, corrupt};
use arbor_verify::two_trees::{self, Gone, Log};

use super::since::{self, SinceAccount, SinceSlot};
use super::{GONE, Moving};

fn decode(key: &[u8], bytes: &[u8]) -> Result<Vec<Gone>, StateError> {
    let entries = two_trees::decode(bytes);
    entries.map_err(|_| corrupt("gone", key, "not what a block adds to the log"))
}

/// Reads the log at a version: the entries of each block that has any, in the blocks' order.
pub(super) fn read(flat: &dyn Flat) -> Result<Vec<Vec<Gone>>, StateError> {
    let blocks = flat.entries(GONE, &[])?.map(|entry| {
        let (key, bytes) = entry?;
        decode(&key, &bytes)
    });
    blocks.collect()
}

impl Moving {
    /// Reads the log to check it: it has the hash that the record of the move says, and names only
    /// what is gone.
    pub(super) fn checked_log(&self, check: &Check<'_>, moved: &Moved) -> Result<Log, StateError> {
        let log = self.read_log(check)?;
        if log.hash() != moved.gone {
            check.tell_fault(format!(
                "the log of what is gone has the hash {}, and the record of the move {}",
                log.hash(),
                moved.gone
            ));
        }
        self.check_logged(check, &log)?;
        Ok(log)
    }

    fn read_log(&self, check: &Check<'_>) -> Result<Log, StateError> {
        let head = check.view.head().map_or(0, |head| head.block_number);
        let mut log = Log::default();
        for entry in check.scan(GONE, &[], &[])? {
            let (key, bytes) = entry?;
            let wrong = |why| corrupt("gone", &key, why);
            let block = key.first_chunk().filter(|_| key.len() == 8);
            let block = block.map(|block| u64::from_be_bytes(*block));
            if !block.is_some_and(|block| (self.at..=head).contains(&block)) {
                return Err(wrong("not the number of a block that moves something"));
            }
            let added = log.add(&decode(&key, &bytes)?);
            added.map_err(|_| wrong("the log has one of its names already"))?;
        }
        Ok(log)
    }

    /// Checks that all that is logged is gone.
    fn check_logged(&self, check: &Check<'_>, log: &Log) -> Result<(), StateError> {
        let (view, order, source) = (check.view, self.source.order(), self.source.records());
        let fault = |name: &str| {
            check.tell_fault(format!(
                "{name}: the log says that it is gone, and no block made it so"
            ));
        };
        for address in log.accounts() {
            let since = since::account(&view, order, address)?;
            let is_cleared = since.is_some_and(|since| since.cleared);
            if !is_cleared || source.account(&view, address)?.is_none() {
                fault(&format!("account {address}"));
            }
        }
        for (address, slot) in log.slots() {
            let of = since::account(&view, order, address)?;
            let since = since::slot(&view, order, address, slot)?;
            let is_gone =
                of.is_some_and(|of| of.cleared) || since.is_some_and(|since| since.is_logged);
            if !is_gone || source.storage(&view, address, slot)?.is_zero() {
                fault(&format!("slot {slot:#x} of account {address}"));
            }
        }
        Ok(())
    }

    /// Checks that the log has an account that was written since, if nothing that the source has of
    /// it counts any more.
    pub(super) fn check_account_logged(
        &self,
        check: &Check<'_>,
        log: &Log,
        of: &SinceAccount,
    ) -> Result<(), StateError> {
        let (view, address) = (check.view, of.address);
        let is_missing = of.cleared && !log.has_account(address);
        if is_missing && self.source.records().account(&view, address)?.is_some() {
            tell_unlogged(check, &format!("account {address}"));
        }
        Ok(())
    }

    /// Checks that the log has a slot that was written since, if it is gone.
    pub(super) fn check_slot_logged(
        &self,
        check: &Check<'_>,
        log: &Log,
        (address, of): (Address, &SinceSlot),
    ) -> Result<(), StateError> {
        if (of.is_logged || of.value.is_zero()) && !log.has_slot(address, of.slot) {
            let source = self.source.records();
            if of.is_logged || !source.storage(&check.view, address, of.slot)?.is_zero() {
                tell_unlogged(check, &format!("slot {:#x} of account {address}", of.slot));
            }
        }
        Ok(())
    }
}

fn tell_unlogged(check: &Check<'_>, name: &str) {
    check.tell_fault(format!("{name}: it is gone, and the log does not say so"));
}
