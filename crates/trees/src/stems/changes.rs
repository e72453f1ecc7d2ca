//! From a block's changes to flat changes, and from those to changes of leaves.
//!
//! The second step looks at nothing but flat records, so it leads back to an older version, too: with the records of that version as the new ones.

use std::collections::BTreeMap;

use crate::named_records::{account_key, slot_key, slot_name};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_store::{Table, Value};
use arbor_versions::{Change, Changes};

use super::records::{AccountRecord, CodeLeaves, decode_slot, encode_slot};
use arbor_state_tree::Flat;
use arbor_state_tree::{ACCOUNTS, SLOTS};
use arbor_state_tree::{AccountChange, StateChanges, StateError};
use arbor_state_tree::{check_old_account, check_old_slot};
use arbor_verify::stems::{
    HeaderLayout, LeafValue, Stem, StemHash, StemName, chunk_place, slot_place,
};

/// Finds code by its hash.
pub(crate) type CodeOf<'a> = &'a dyn Fn(B256) -> Result<Bytes, StateError>;

/// The flat changes of a block, ascending by table and key.
pub(crate) fn flat_changes(
    before: &dyn Flat,
    changes: &StateChanges,
    code: CodeOf<'_>,
) -> Result<Changes, StateError> {
    let mut flat = Changes::default();
    for (address, change) in &changes.accounts {
        let key = address.as_slice();
        let old = before.value(ACCOUNTS, key)?;
        let record = old.as_ref().map(|bytes| AccountRecord::decode(key, bytes));
        let record = record.transpose()?;
        let found = record.and_then(|record| record.account);
        check_old_account(*address, change.old, found)?;
        let after = account_after(record.as_ref(), change, code)?;
        let new = after.map(|record| record.encode());
        put(&mut flat, ACCOUNTS, key, old.as_deref(), new.as_deref());
    }
    for (address, change) in &changes.accounts {
        if change.storage_cleared || change.new.is_none() {
            cleared_slots(before, *address, change, &mut flat)?;
            continue;
        }
        for (slot, change) in &change.slots {
            let key = slot_key(*address, *slot);
            let old = before.value(SLOTS, &key)?;
            let found = old.as_ref().map(|bytes| decode_slot(&key, bytes));
            let found = found.transpose()?.unwrap_or_default();
            check_old_slot((*address, *slot), change.old, found)?;
            let new = (old.is_some() || !change.new.is_zero()).then(|| encode_slot(change.new));
            put(&mut flat, SLOTS, &key, old.as_deref(), new.as_deref());
        }
    }
    Ok(flat)
}

fn put(flat: &mut Changes, table: Table, key: &[u8], old: Option<&[u8]>, new: Option<&[u8]>) {
    if old != new {
        flat.put_flat(Change {
            table,
            key,
            old,
            new,
        });
    }
}

fn account_after(
    before: Option<&AccountRecord>,
    change: &AccountChange,
    code: CodeOf<'_>,
) -> Result<Option<AccountRecord>, StateError> {
    let Some(account) = change.new else {
        return Ok(before.map(AccountRecord::gone));
    };
    let code_size = match before {
        _ if account.code_hash == KECCAK256_EMPTY => 0,
        Some(before) if before.code_hash() == account.code_hash => before.code_size,
        _ => code_size(code(account.code_hash)?.len())?,
    };
    Ok(Some(AccountRecord::following(before, account, code_size)))
}

/// The size of code of so many bytes, as accounts have it.
pub(crate) fn code_size(bytes: usize) -> Result<u32, StateError> {
    let fits = u32::try_from(bytes).ok().filter(|size| size >> 24 == 0);
    fits.ok_or_else(|| StateError::Read(format!("code of {bytes} bytes is too long for EIP-6800")))
}

/// All slots that an account ever had are zero, but for those set since.
fn cleared_slots(
    before: &dyn Flat,
    address: Address,
    change: &AccountChange,
    flat: &mut Changes,
) -> Result<(), StateError> {
    for (slot, change) in &change.slots {
        check_old_slot((address, *slot), change.old, U256::ZERO)?;
    }
    let set = change.slots.iter();
    let set = set.filter(|(_, change)| !change.new.is_zero());
    let mut after: BTreeMap<Box<[u8]>, Value> = set
        .map(|(slot, change)| (slot_key(address, *slot).into(), encode_slot(change.new)))
        .collect();
    let mut found = Vec::new();
    for entry in before.entries(SLOTS, address.as_slice())? {
        let (key, old) = entry?;
        let new = after
            .remove(&key)
            .unwrap_or_else(|| encode_slot(U256::ZERO));
        found.push((key, Some(old), new));
    }
    found.extend(after.into_iter().map(|(key, new)| (key, None, new)));
    found.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
    for (key, old, new) in &found {
        put(flat, SLOTS, key, old.as_deref(), Some(new));
    }
    Ok(())
}

/// The change of a leaf. `None` is absent, which a stored zero is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LeafChange {
    /// The last byte of the key.
    pub(crate) suffix: u8,
    /// The value before.
    pub(crate) old: Option<LeafValue>,
    /// The value after.
    pub(crate) new: Option<LeafValue>,
}

/// Changes of leaves under one stem.
pub(crate) struct StemChanges {
    /// The name of the stem.
    pub(crate) name: StemName,
    /// The stem.
    pub(crate) stem: Stem,
    /// The changes, ascending by suffix.
    pub(crate) changes: Vec<LeafChange>,
}

/// The changes of leaves that flat changes, in any order, come to: ascending by stem.
pub(crate) fn leaf_changes<'a>(
    flat: impl Iterator<Item = Change<'a>>,
    layout: HeaderLayout,
    stems: &dyn StemHash,
    code: CodeOf<'_>,
) -> Result<Vec<StemChanges>, StateError> {
    let named = Leaves::of(flat, layout, code)?.by_name();
    let names: Vec<StemName> = named.iter().map(|(name, _)| *name).collect();
    let stems = stems.of(&names);
    Ok(by_stem(named, stems.into_iter()))
}

/// The changes of leaves that the flat changes of several versions come to, each version's for itself; all stems are asked for together.
pub(crate) fn leaf_changes_together(
    versions: &[Changes],
    layout: HeaderLayout,
    stems: &dyn StemHash,
    code: CodeOf<'_>,
) -> Result<Vec<Vec<StemChanges>>, StateError> {
    let named = versions
        .iter()
        .map(|version| Ok(Leaves::of(version.flat(), layout, code)?.by_name()));
    let named: Vec<NamedChanges> = named.collect::<Result<_, StateError>>()?;
    let names = named.iter().flatten().map(|(name, _)| *name);
    let mut names: Vec<StemName> = names.collect();
    names.sort_unstable();
    names.dedup();
    let stems = stems.of(&names);
    let changes = named.into_iter().map(|named| {
        // Both ascend.
        let mut known = names.iter().zip(&stems);
        let stem = |(name, _): &(StemName, _)| {
            let found = known.find(|(known, _)| *known == name);
            *found.expect("invariant: all were asked for").1
        };
        let of: Vec<Stem> = named.iter().map(stem).collect();
        by_stem(named, of.into_iter())
    });
    Ok(changes.collect())
}

/// Changes under stems by the stems' names, ascending.
type NamedChanges = Vec<(StemName, Vec<LeafChange>)>;

/// Sorts changes by their stems, which come in the order of their names.
fn by_stem(named: NamedChanges, stems: impl Iterator<Item = Stem>) -> Vec<StemChanges> {
    let named = named.into_iter().zip(stems);
    let changes = named.map(|((name, changes), stem)| StemChanges {
        name,
        stem,
        changes,
    });
    let mut changes: Vec<StemChanges> = changes.collect();
    changes.sort_unstable_by_key(|of| of.stem);
    changes
}

impl Leaves {
    /// The leaves that flat changes, in any order, change.
    fn of<'a>(
        flat: impl Iterator<Item = Change<'a>>,
        layout: HeaderLayout,
        code: CodeOf<'_>,
    ) -> Result<Self, StateError> {
        let mut leaves = Leaves(Vec::new());
        for change in flat {
            if change.table == SLOTS {
                let (address, slot) = slot_name(change.key)?;
                let value = |bytes: Option<&[u8]>| -> Result<Option<LeafValue>, StateError> {
                    let value = bytes.map(|bytes| decode_slot(change.key, bytes));
                    Ok(value.transpose()?.map(|value| value.to_be_bytes()))
                };
                leaves.push(
                    address,
                    slot_place(slot),
                    value(change.old)?,
                    value(change.new)?,
                );
            } else {
                let record = |bytes: Option<&[u8]>| {
                    let record = bytes.map(|bytes| AccountRecord::decode(change.key, bytes));
                    record.transpose()
                };
                let (before, after) = (record(change.old)?, record(change.new)?);
                let account = Account {
                    address: account_key(change.key)?,
                    before,
                    after,
                };
                account.header(layout, &mut leaves)?;
                account.code(code, &mut leaves)?;
            }
        }
        Ok(leaves)
    }
}

/// An account's record before and after.
struct Account {
    address: Address,
    before: Option<AccountRecord>,
    after: Option<AccountRecord>,
}

impl Account {
    fn header(&self, layout: HeaderLayout, leaves: &mut Leaves) -> Result<(), StateError> {
        let of = |record: Option<&AccountRecord>| match record {
            Some(record) => record.header_leaves(self.address, layout),
            None => Ok(Vec::new()),
        };
        let (before, mut after) = (of(self.before.as_ref())?, of(self.after.as_ref())?);
        for (suffix, old) in before {
            let place = after.iter().position(|(present, _)| *present == suffix);
            let new = place.map(|place| after.swap_remove(place).1);
            leaves.push(self.address, (U256::ZERO, suffix), Some(old), new);
        }
        for (suffix, new) in after {
            leaves.push(self.address, (U256::ZERO, suffix), None, Some(new));
        }
        Ok(())
    }

    fn code(&self, code: CodeOf<'_>, leaves: &mut Leaves) -> Result<(), StateError> {
        let shape = |record: &Option<AccountRecord>| match record {
            Some(record) => (record.code_hash(), record.chunks),
            None => (KECCAK256_EMPTY, 0),
        };
        if shape(&self.before) == shape(&self.after) {
            return Ok(());
        }
        let of = |record: &Option<AccountRecord>| -> Result<Option<CodeLeaves>, StateError> {
            let of_record = |record: &AccountRecord| match record.code_hash() {
                KECCAK256_EMPTY => Ok(record.code_leaves(&[])),
                hash => Ok(record.code_leaves(&code(hash)?)),
            };
            record.as_ref().map(of_record).transpose()
        };
        let (before, after) = (of(&self.before)?, of(&self.after)?);
        let number = |code: &Option<CodeLeaves>| code.as_ref().map_or(0, CodeLeaves::number);
        for chunk in 0..number(&before).max(number(&after)) {
            let leaf = |code: &Option<CodeLeaves>| code.as_ref().and_then(|code| code.get(chunk));
            let (old, new) = (leaf(&before), leaf(&after));
            leaves.push(self.address, chunk_place(chunk), old, new);
        }
        Ok(())
    }
}

/// Changes of leaves by their names, each leaf once.
struct Leaves(Vec<(StemName, LeafChange)>);

impl Leaves {
    fn push(
        &mut self,
        address: Address,
        (index, suffix): (U256, u8),
        old: Option<LeafValue>,
        new: Option<LeafValue>,
    ) {
        if old != new {
            let change = LeafChange { suffix, old, new };
            self.0.push((StemName { address, index }, change));
        }
    }

    /// The changes under each stem, by the stems' names.
    fn by_name(mut self) -> NamedChanges {
        self.0
            .sort_unstable_by_key(|(name, change)| (*name, change.suffix));
        let groups = self.0.chunk_by(|(a, _), (b, _)| a == b);
        let named = groups.map(|group| {
            let changes = group.iter().map(|(_, change)| *change);
            (group[0].0, changes.collect())
        });
        named.collect()
    }
}
