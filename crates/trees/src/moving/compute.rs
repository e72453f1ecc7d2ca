//! What a block makes of a state that moves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{
    AccountChange, Computed, Moved, RootPlace, SlotChange, StateChanges, StateError,
    check_old_account, check_old_slot,
};
use arbor_store::{Table, Value};
use arbor_verify::two_trees::{self, Gone};
use arbor_versions::{Change, Changes, View};

use super::since::{SinceAccount, SinceSlot, decoded, since_slot_key};
use super::units::{Unit, Units, account_key, slot_key};
use super::{GONE, Moving, PROGRESS, SINCE_ACCOUNTS, SINCE_SLOTS, progress};

/// Which tree the block after a view's latest one is of.
pub(super) enum Phase {
    /// The source's.
    Before,
    /// It moves something. None: it is the first that does.
    Moving(Option<Moved>),
    /// The target's.
    Over,
}

impl Moving {
    pub(super) fn phase(&self, view: View<'_>) -> Result<Phase, StateError> {
        let moved = progress::read(&view)?;
        let is_over = moved
            .as_ref()
            .is_some_and(|moved| moved.last_block.is_some());
        self.is_over.store(is_over, Ordering::Relaxed);
        Ok(match moved {
            None if next_block(view) < self.at || view.head().is_none() => Phase::Before,
            Some(_) if is_over => Phase::Over,
            moved => Phase::Moving(moved),
        })
    }

    /// Where the root after the next block is found besides the database.
    pub(super) fn next_root(&self, view: View<'_>) -> Result<RootPlace, StateError> {
        Ok(match self.phase(view)? {
            Phase::Before => self.source.root_place(view)?,
            Phase::Moving(_) => RootPlace::Apart,
            Phase::Over => self.target.root_place(view.in_other_space())?,
        })
    }

    /// Computes one block.
    pub(super) fn compute_one(
        &self,
        view: View<'_>,
        changes: &StateChanges,
    ) -> Result<Computed, StateError> {
        match self.phase(view)? {
            Phase::Before => only(self.source.compute(view, &[changes])?),
            Phase::Over => self.of_target(view, changes, None),
            Phase::Moving(moved) => self.step(view, changes, moved),
        }
    }

    /// What changes make of the target, in its own space.
    fn of_target(
        &self,
        view: View<'_>,
        changes: &StateChanges,
        root: Option<B256>,
    ) -> Result<Computed, StateError> {
        let there = view.in_other_space();
        let there = root.map_or(there, |root| there.with_root(root.0));
        let mut computed = only(self.target.compute(there, &[changes])?)?;
        computed.changes = std::mem::take(&mut computed.changes).in_other_space();
        Ok(computed)
    }

    fn step(
        &self,
        view: View<'_>,
        changes: &StateChanges,
        moved: Option<Moved>,
    ) -> Result<Computed, StateError> {
        let root = view
            .head()
            .map_or(self.source.empty_root(), |head| head.root.into());
        let before = moved.as_ref().map(progress::encode);
        let moved = moved.unwrap_or(Moved {
            source_root: root,
            target_root: self.target.empty_root(),
            gone: B256::ZERO,
            units: 0,
            cursor: None,
            last_block: None,
        });
        let mut step = Step {
            moving: self,
            view,
            of_target: StateChanges {
                codes: changes.codes.clone(),
                ..StateChanges::default()
            },
            since: BTreeMap::new(),
            gone: Vec::new(),
        };
        for (address, change) in &changes.accounts {
            step.written(*address, change)?;
        }
        let most = usize::try_from(self.stride).unwrap_or(usize::MAX);
        let next = Units::read(self.source.records(), view, moved.cursor, most)?;
        step.moved(&next.units, changes)?;
        let Step {
            of_target,
            since,
            gone,
            ..
        } = step;
        let gone = (!gone.is_empty()).then(|| two_trees::encode(&gone));
        let computed = self.of_target(view, &of_target, Some(moved.target_root))?;
        let after = Moved {
            target_root: computed.root(),
            gone: match &gone {
                Some(entries) => two_trees::chained(moved.gone, entries),
                None => moved.gone,
            },
            units: moved.units + next.units.len() as u64,
            cursor: next.cursor,
            last_block: next.are_all.then(|| next_block(view)),
            ..moved
        };
        let mut written = Changes::default();
        for ((table, key), (old, new)) in &since {
            written.put_flat(Change {
                table: *table,
                key,
                old: old.as_deref(),
                new: new.as_deref(),
            });
        }
        written.put_flat(Change {
            table: PROGRESS,
            key: progress::KEY,
            old: before.as_deref(),
            new: Some(&progress::encode(&after)),
        });
        if let Some(entries) = &gone {
            written.put_flat(Change {
                table: GONE,
                key: &next_block(view).to_be_bytes(),
                old: None,
                new: Some(entries),
            });
        }
        let Computed {
            mut changes,
            timings,
            work,
            ..
        } = computed;
        changes.append(written);
        let mut computed = Computed::on_head(view, after.root(), changes);
        (computed.timings, computed.work) = (timings, work);
        Ok(computed)
    }
}

fn only(computed: Vec<Computed>) -> Result<Computed, StateError> {
    let mut computed = computed;
    let one = computed.pop().filter(|_| computed.is_empty());
    one.ok_or_else(|| StateError::Read("a block was computed as another number of them".into()))
}

fn next_block(view: View<'_>) -> u64 {
    view.head()
        .map_or(0, |head| head.block_number.saturating_add(1))
}

/// What a record is before a block and after it.
type BeforeAndAfter = (Option<Value>, Option<Value>);

/// A block that moves something.
struct Step<'a> {
    moving: &'a Moving,
    view: View<'a>,
    /// What the target is to change.
    of_target: StateChanges,
    /// Records of what was written since: before and after.
    since: BTreeMap<(Table, Vec<u8>), BeforeAndAfter>,
    /// What the block adds to the log of what is gone, by addresses.
    gone: Vec<Gone>,
}

impl Step<'_> {
    fn put(&mut self, table: Table, key: Vec<u8>, old: Option<Value>, new: Option<Value>) {
        self.since.insert((table, key), (old, new));
    }

    /// The block's own change of an account.
    fn written(&mut self, address: Address, change: &AccountChange) -> Result<(), StateError> {
        let (source, order) = (self.moving.source.records(), self.moving.source.order());
        let (view, target) = (self.view, self.moving.target.records());
        let key = account_key(order, address);
        let record = view.get(SINCE_ACCOUNTS, &key)?;
        let since = decoded(&key, record.clone())?;
        let now = match since {
            Some(since) => since.account,
            None => source.account(&view, address)?,
        };
        check_old_account(address, change.old, now)?;
        let clears = change.storage_cleared || change.new.is_none();
        let was_cleared = since.is_some_and(|since| since.cleared);
        let mut gone_slots = Vec::new();
        if clears && !was_cleared {
            let of_source = match since {
                Some(_) => source.account(&view, address)?,
                None => now,
            };
            if of_source.is_some() {
                let slots = Vec::new();
                self.gone.push(Gone { address, slots });
            }
        }
        let after = SinceAccount {
            address,
            account: change.new,
            cleared: was_cleared || clears,
        };
        self.put(
            SINCE_ACCOUNTS,
            key.to_vec(),
            record,
            Some(after.encode().into()),
        );
        if clears {
            for entry in view.scan(SINCE_SLOTS, &key, &key)? {
                let (key, old) = entry?;
                self.put(SINCE_SLOTS, key.into(), Some(old), None);
            }
        }
        let there = view.in_other_space();
        let old = target.account(&there, address)?;
        let mut slots = BTreeMap::new();
        for (slot, change) in &change.slots {
            let of = (address, *slot);
            let (is_logged, change) = self.written_slot(of, *change, (was_cleared, clears))?;
            gone_slots.extend(is_logged.then_some(*slot));
            slots.extend(change.map(|change| (*slot, change)));
        }
        if !gone_slots.is_empty() {
            let slots = gone_slots;
            self.gone.push(Gone { address, slots });
        }
        let storage_cleared = change.storage_cleared && old.is_some();
        if old != change.new || storage_cleared || !slots.is_empty() {
            let change = AccountChange {
                old,
                new: change.new,
                storage_cleared,
                slots,
            };
            self.of_target.accounts.insert(address, change);
        }
        Ok(())
    }

    /// The block's own change of a slot, whose account blocks before or the block itself may have
    /// cleared. Returns whether the slot is new in the log of what is gone, and the target's change.
    fn written_slot(
        &mut self,
        (address, slot): (Address, U256),
        change: SlotChange,
        (was_cleared, clears): (bool, bool),
    ) -> Result<(bool, Option<SlotChange>), StateError> {
        let (source, order) = (self.moving.source.records(), self.moving.source.order());
        let (view, new) = (self.view, change.new);
        let key = since_slot_key(order, address, slot);
        let record = view.get(SINCE_SLOTS, &key)?;
        let since = record.as_ref();
        let since = since.map(|bytes| SinceSlot::decode(&key, bytes));
        let since = since.transpose()?;
        let now = match since {
            _ if clears => U256::ZERO,
            Some(since) => since.value,
            None if was_cleared => U256::ZERO,
            None => source.storage(&view, address, slot)?,
        };
        check_old_slot((address, slot), change.old, now)?;
        let was_logged = since.is_some_and(|since| since.is_logged);
        let may_be_new = new.is_zero() && !was_logged && !clears && !was_cleared;
        let of_source = match since {
            Some(_) if may_be_new => source.storage(&view, address, slot)?,
            _ => now,
        };
        let is_new = may_be_new && !of_source.is_zero();
        let after = SinceSlot {
            slot,
            value: new,
            // In the log of a cleared account no slot stands for itself.
            is_logged: is_new || was_logged && !clears,
        };
        let (key, after) = (key.to_vec(), after.encode());
        self.put(SINCE_SLOTS, key, record, Some(after[..].into()));
        let old = match clears {
            true => U256::ZERO,
            false => {
                let target = self.moving.target.records();
                target.storage(&view.in_other_space(), address, slot)?
            }
        };
        Ok((is_new, (old != new).then_some(SlotChange { old, new })))
    }

    /// Adds what is moved, but for what the target has already and what is gone.
    fn moved(&mut self, units: &[Unit], changes: &StateChanges) -> Result<(), StateError> {
        let (Some(first), Some(last)) = (units.first(), units.last()) else {
            return Ok(());
        };
        // What was written since between the first and the last: mostly little, where each of the units would be looked up.
        let order = self.moving.source.order();
        let [first, last] = [first, last].map(|unit| {
            let own = unit.slot().map(|(_, slot)| slot_key(order, slot));
            (account_key(order, unit.address()), own.unwrap_or_default())
        });
        let mut since = BTreeMap::new();
        for entry in self.view.scan(SINCE_ACCOUNTS, &[], &first.0)? {
            let (key, bytes) = entry?;
            if key[..] > last.0[..] {
                break;
            }
            let written = SinceAccount::decode(&key, &bytes)?;
            since.insert(written.address, (key, written));
        }
        let mut since_slots = BTreeSet::new();
        if !since.is_empty() {
            let [first, last] = [first, last].map(|(account, slot)| [account, slot].concat());
            for entry in self.view.scan(SINCE_SLOTS, &[], &first)? {
                let (key, _) = entry?;
                if key[..] > last[..] {
                    break;
                }
                since_slots.insert(key);
            }
        }
        let there = self.view.in_other_space();
        for unit in units {
            let address = unit.address();
            let changed = changes.accounts.get(&address);
            let since = since.get(&address);
            match *unit {
                Unit::Account(_, account) => {
                    if changed.is_none() && since.is_none() {
                        let change = AccountChange {
                            new: Some(account),
                            ..AccountChange::default()
                        };
                        self.of_target.accounts.insert(address, change);
                    }
                }
                Unit::Slot(_, slot, value) => {
                    let was_written = since.is_some_and(|(key, _)| {
                        let key = [&key[..], &slot_key(order, slot)].concat();
                        since_slots.contains(&key[..])
                    });
                    let is_gone =
                        since.is_some_and(|(_, since)| since.cleared || since.account.is_none());
                    let is_written = changed.is_some_and(|change| {
                        change.storage_cleared
                            || change.new.is_none()
                            || change.slots.contains_key(&slot)
                    });
                    if was_written || is_gone || is_written {
                        continue;
                    }
                    let change = match self.of_target.accounts.entry(address) {
                        std::collections::btree_map::Entry::Occupied(change) => change.into_mut(),
                        std::collections::btree_map::Entry::Vacant(none) => {
                            let account = self.moving.target.records().account(&there, address)?;
                            none.insert(AccountChange {
                                old: account,
                                new: account,
                                ..AccountChange::default()
                            })
                        }
                    };
                    let old = U256::ZERO;
                    change.slots.insert(slot, SlotChange { old, new: value });
                }
            }
        }
        Ok(())
    }
}
