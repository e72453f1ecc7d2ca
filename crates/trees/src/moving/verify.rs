//! Checking a database that moves: each tree by itself, and that what was moved or written is in the target, and nothing else.

use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_state_tree::{
    Account, Ahead, Check, CheckedPart, Cursor, Moved, StateError, VerifyReport, corrupt,
};
use arbor_verify::two_trees::Log;
use serde::{Deserialize, Serialize};

use super::since::{SinceAccount, SinceSlot, since_slot_key};
use super::then::Side;
use super::units::{Unit, Units, account_key, slot_key};
use super::{Moving, SINCE_ACCOUNTS, SINCE_SLOTS, progress, since};

/// Units that are compared together.
const TOGETHER: usize = 1 << 12;

/// What a tree has found in a range of first bytes.
#[derive(Serialize, Deserialize)]
struct OnePart {
    part: CheckedPart,
    /// Nodes that were compared.
    nodes: u64,
}

impl Moving {
    /// Checks one tree in a range of first bytes.
    fn part(
        &self,
        check: &Check<'_>,
        side: Side,
        firsts: &[u8],
        are_read: bool,
    ) -> Result<OnePart, StateError> {
        let tree = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        let one = check.of_tree(side.view(check.view), tree.kind().tables, 0);
        let part = tree.check_part(&one, firsts)?;
        let nodes = one.counts.nodes.load(Ordering::Relaxed);
        check.enter(one, are_read);
        Ok(OnePart { part, nodes })
    }

    /// Joins the parts of one tree.
    fn join(&self, check: &Check<'_>, side: Side, parts: Vec<OnePart>) -> Result<B256, StateError> {
        let tree = match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        };
        let nodes = parts.iter().map(|part| part.nodes).sum();
        let one = check.of_tree(side.view(check.view), tree.kind().tables, nodes);
        let root = tree.check_join(&one, parts.into_iter().map(|part| part.part).collect())?;
        check.enter(one, false);
        Ok(root)
    }

    pub(super) fn check_trees(
        &self,
        check: &Check<'_>,
        firsts: &[u8],
    ) -> Result<CheckedPart, StateError> {
        let Some(moved) = progress::read(&check.view)? else {
            return self.source.check_part(check, firsts);
        };
        let is_over = moved.last_block.is_some();
        let target = self.part(check, Side::Target, firsts, is_over)?;
        let source = match is_over {
            true => None,
            false => Some(self.part(check, Side::Source, firsts, false)?),
        };
        let rest = serde_json::to_vec(&(target, source));
        let rest = rest.expect("invariant: maps have text as keys");
        Ok(CheckedPart {
            subtrees: vec![Bytes::new(); firsts.len()],
            rest: rest.into(),
            ..CheckedPart::default()
        })
    }

    pub(super) fn join_trees(
        &self,
        check: &Check<'_>,
        parts: Vec<CheckedPart>,
    ) -> Result<B256, StateError> {
        let Some(moved) = progress::read(&check.view)? else {
            return self.source.check_join(check, parts);
        };
        let (mut targets, mut sources) = (Vec::new(), Vec::new());
        for part in parts {
            let both: Result<(OnePart, Option<OnePart>), _> = serde_json::from_slice(&part.rest);
            let (target, source) =
                both.map_err(|_| corrupt("parts", &part.rest, "not of two trees"))?;
            targets.push(target);
            sources.extend(source);
        }
        let root = self.join(check, Side::Target, targets)?;
        if moved.last_block.is_some() {
            return Ok(root);
        }
        self.join(check, Side::Source, sources)?;
        let log = self.checked_log(check, &moved)?;
        self.check_moved(check, &moved, &log)?;
        // What is read is neither tree's: accounts and slots are counted as their root is computed.
        let (accounts, slots) = (AtomicU64::new(0), AtomicU64::new(0));
        let bytes = self.source.sort_bytes().max(self.target.sort_bytes());
        let root = self.root_of_both(&Ahead::of(check.view), bytes, &|of_account| {
            accounts.fetch_add(1, Ordering::Relaxed);
            slots.fetch_add(of_account as u64, Ordering::Relaxed);
        })?;
        let found = VerifyReport {
            accounts: accounts.into_inner(),
            slots: slots.into_inner(),
            ..VerifyReport::default()
        };
        check.add(&found, 0);
        Ok(root)
    }

    /// Compares what was moved or written with the target and with the log of what is gone, and
    /// counts what the target has.
    fn check_moved(&self, check: &Check<'_>, moved: &Moved, log: &Log) -> Result<(), StateError> {
        let view = check.view;
        let there = view.in_other_space();
        let (order, target) = (self.source.order(), self.target.records());
        let mut wanted = Counts::default();
        let account = |address: Address, wanted: Option<Account>| -> Result<(), StateError> {
            if target.account(&there, address)? != wanted {
                check.tell_fault(format!(
                    "account {address}: the tree that the state moves to has another one"
                ));
            }
            Ok(())
        };
        let slot = |address: Address, slot: U256, wanted: U256| -> Result<(), StateError> {
            if target.storage(&there, address, slot)? != wanted {
                check.tell_fault(format!(
                    "slot {slot:#x} of account {address}: the tree that the state moves to has another value"
                ));
            }
            Ok(())
        };
        let mut owner: Option<([u8; 32], Address)> = None;
        for entry in check.scan(SINCE_ACCOUNTS, &[], &[])? {
            let (key, bytes) = entry?;
            let since = SinceAccount::decode(&key, &bytes)?;
            if account_key(order, since.address)[..] != key[..] {
                return Err(corrupt(
                    "accounts since",
                    &key,
                    "its address has another key",
                ));
            }
            account(since.address, since.account)?;
            self.check_account_logged(check, log, &since)?;
            wanted.accounts += u64::from(since.account.is_some());
        }
        for entry in check.scan(SINCE_SLOTS, &[], &[])? {
            let (key, bytes) = entry?;
            let since = SinceSlot::decode(&key, &bytes)?;
            let (number, value) = (since.slot, since.value);
            let wrong = |why| corrupt("slots since", &key, why);
            let of = key
                .first_chunk::<32>()
                .ok_or_else(|| wrong("key of another length"))?;
            let address = match owner.filter(|(key, _)| key == of) {
                Some((_, address)) => address,
                None => {
                    let record = view.get(SINCE_ACCOUNTS, of)?;
                    let written = since::decoded(of, record)?;
                    written
                        .ok_or_else(|| wrong("its account was not written"))?
                        .address
                }
            };
            owner = Some((*of, address));
            if since_slot_key(order, address, number)[..] != key[..] {
                return Err(wrong("its number has another key"));
            }
            slot(address, number, value)?;
            self.check_slot_logged(check, log, (address, &since))?;
            wanted.slots += u64::from(!value.is_zero());
        }
        let (mut cursor, mut units) = (None, 0);
        'units: while units < moved.units {
            let most = usize::try_from(moved.units - units)
                .unwrap_or(TOGETHER)
                .min(TOGETHER);
            let next = Units::read(self.source.records(), view, cursor, most)?;
            if next.units.is_empty() {
                break 'units;
            }
            units += next.units.len() as u64;
            cursor = next.cursor;
            for unit in next.units {
                match unit {
                    Unit::Account(address, now) => {
                        if since::account(&view, order, address)?.is_none() {
                            account(address, Some(now))?;
                            wanted.accounts += 1;
                        }
                    }
                    Unit::Slot(address, number, value) => {
                        let of = since::account(&view, order, address)?;
                        let is_gone = of.is_some_and(|of| of.cleared || of.account.is_none());
                        if !is_gone && since::slot(&view, order, address, number)?.is_none() {
                            slot(address, number, value)?;
                            wanted.slots += 1;
                        }
                    }
                }
            }
        }
        let place = |cursor: Option<Cursor>| {
            cursor.map(|at| {
                (
                    account_key(order, at.address),
                    at.slot.map(|slot| slot_key(order, slot)),
                )
            })
        };
        // The place may lie on records behind the last unit that stand for nothing any more.
        let next = Units::read(self.source.records(), view, cursor, 1)?;
        let next = next.units.first().map(|unit| Cursor {
            address: unit.address(),
            slot: unit.slot().map(|(_, slot)| slot),
        });
        let is_before = next.is_none() || place(next) > place(moved.cursor);
        if units != moved.units || place(cursor) > place(moved.cursor) || !is_before {
            check.tell_fault(
                "the record of the move: so many accounts and slots do not lead to its place"
                    .into(),
            );
        }
        let mut found = Counts::default();
        for account in target.listing(&there, None)? {
            found.accounts += 1;
            found.slots += account?.slots.len() as u64;
        }
        if found != wanted {
            check.tell_fault(format!(
                "the tree that the state moves to has {} accounts and {} slots, and {} and {} were moved or written",
                found.accounts, found.slots, wanted.accounts, wanted.slots
            ));
        }
        Ok(())
    }
}

#[derive(PartialEq, Eq, Default)]
struct Counts {
    accounts: u64,
    slots: u64,
}
