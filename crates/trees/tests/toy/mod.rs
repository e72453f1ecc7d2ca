//! A tree in one folder and one row, as a newcomer would add it: SHA-256 over the sorted flat records. It has no nodes, its
//! root is computed from all records every time, and its proof of anything is the list of all records.

mod proof;
mod records;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{
    ACCOUNTS, Account, AccountOrder, AccountSlots, AccountSource, Accounts, Ahead, BY_NAME,
    BlockMemory, COMMON, Check, CheckedPart, Computed, Flat, FlatKey, FlatRecords, LoadedCodes,
    Lookup, Nodes, RootPlace, RootThreads, SLOTS, Seen, StateChanges, StateError, StateTree,
    StoredAs, StoredRecord, Then, TreeKind, WithSlots, Zeros, check_old_account, check_old_slot,
    code_writes, one_by_one, own_mut,
};
use arbor_store::{Table, Value, Write};
use arbor_tree::Hash;
use arbor_verify::Proof;
use arbor_verify::mpt::{BY_KECCAK, account_leaves, root_of_leaves};
use arbor_versions::{Change, Changes, Meta, TableSpec, Versions, View};

use proof::AllRecords;
use records::{account_record, account_records, decode_account, decode_slot, root, slot_key};

/// The row of the toy tree.
pub(crate) static TOY: TreeKind = TreeKind {
    name: "toy",
    stored_as: StoredAs {
        tree: "toy",
        revision: "1",
    },
    summary: "SHA-256 over the sorted flat records, for tests",
    layout: 1,
    tables: &TABLES,
    roots: RootPlace::Apart,
    zeros: Zeros::Forgotten,
    hashes: &["sha256"],
    settings: &[],
    verify: &proof::VERIFY,
    has_witnesses: false,
    threads: RootThreads::Shared,
    block_memory: BlockMemory {
        first: 1_000,
        later: 1_000,
    },
    model: Some(|_| Box::new(records::Model)),
    make: |settings| {
        TOY.check(settings)?;
        Ok(Arc::new(Toy))
    },
};

static TABLES: [TableSpec; 4] = COMMON;

/// The tree. All it has is in the flat tables.
#[derive(Debug)]
struct Toy;

/// Flat records by table and key.
type Records = BTreeMap<(Table, FlatKey), Value>;

/// All records of the flat tables as they are in a state.
fn records_of(flat: &dyn Flat) -> Result<Records, StateError> {
    let mut records = Records::new();
    for table in [ACCOUNTS, SLOTS] {
        for entry in flat.entries(table, &[])? {
            let (key, value) = entry?;
            records.insert((table, key), value);
        }
    }
    Ok(records)
}

/// What changes make of flat records: writes, each with what was there.
fn written(
    flat: &dyn Flat,
    changes: &StateChanges,
) -> Result<BTreeMap<(Table, FlatKey), Option<Value>>, StateError> {
    let mut writes = BTreeMap::new();
    for (&address, change) in &changes.accounts {
        let key = FlatKey::from(address.as_slice());
        let old = flat.value(ACCOUNTS, &key)?;
        let found = old.map(|bytes| decode_account(&key, &bytes)).transpose()?;
        check_old_account(address, change.old, found)?;
        let new = change.new.as_ref().map(account_record);
        writes.insert((ACCOUNTS, key), new);
        let is_cleared = change.storage_cleared || change.new.is_none();
        if is_cleared {
            for entry in flat.entries(SLOTS, address.as_slice())? {
                writes.insert((SLOTS, entry?.0), None);
            }
        }
        for (&slot, change) in &change.slots {
            let key = slot_key(address, slot);
            let found = match is_cleared {
                true => None,
                false => flat.value(SLOTS, &key)?,
            };
            let found = found.map(|bytes| decode_slot(&key, &bytes)).transpose()?;
            check_old_slot((address, slot), change.old, found.unwrap_or_default())?;
            let new = (!change.new.is_zero()).then(|| change.new.to_be_bytes::<32>()[..].into());
            writes.insert((SLOTS, key), new);
        }
    }
    Ok(writes)
}

/// What versions know of it as nodes: the records that are other ones than the head has.
#[derive(Default)]
struct Other(BTreeMap<(Table, FlatKey), Option<Value>>);

impl Other {
    /// All records, these laid over those of the head.
    fn all(&self, view: View<'_>) -> Result<Records, StateError> {
        let mut records = records_of(&view)?;
        for (place, value) in &self.0 {
            match value {
                Some(value) => drop(records.insert(place.clone(), value.clone())),
                None => drop(records.remove(place)),
            }
        }
        Ok(records)
    }
}

/// Accounts with their slots, ascending by address.
fn accounts(records: &Records) -> Result<Vec<WithSlots>, StateError> {
    let slots_from = (SLOTS, FlatKey::default());
    let mut accounts = Vec::new();
    for ((_, key), bytes) in records.range(..slots_from) {
        let address = Address::from_slice(key);
        let slots = records.range((SLOTS, key.clone())..);
        let slots = slots.take_while(|((_, slot), _)| slot.starts_with(key));
        let slots = slots.map(|((_, slot), value)| {
            Ok((U256::from_be_slice(&slot[20..]), decode_slot(slot, value)?))
        });
        accounts.push(WithSlots {
            address,
            account: decode_account(key, bytes)?,
            slots: slots.collect::<Result<_, StateError>>()?,
            storage_root: None,
        });
    }
    Ok(accounts)
}

/// The Merkle-Patricia root of the same accounts.
fn header_root(records: &Records) -> Result<B256, StateError> {
    let accounts = accounts(records)?.into_iter();
    let mut accounts = BY_KECCAK.with_keys(accounts.map(Into::into).collect());
    accounts.sort_by_key(|account| account.key);
    Ok(root_of_leaves(&account_leaves(&accounts)?)?)
}

impl FlatRecords for Toy {
    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
        let found = flat.value(ACCOUNTS, address.as_slice())?;
        found
            .map(|bytes| decode_account(address.as_slice(), &bytes))
            .transpose()
    }

    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError> {
        let accounts = addresses.iter().map(|address| self.account(flat, *address));
        accounts.collect()
    }

    fn keys(&self, accounts: &[Address], slots: &[(Address, U256)]) -> [(Table, Vec<FlatKey>); 2] {
        let accounts = accounts.iter().map(|address| address.as_slice().into());
        let slots = slots
            .iter()
            .map(|(address, slot)| slot_key(*address, *slot));
        [(ACCOUNTS, accounts.collect()), (SLOTS, slots.collect())]
    }

    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
        let key = slot_key(address, slot);
        let found = flat.value(SLOTS, &key)?;
        let value = found.map(|bytes| decode_slot(&key, &bytes)).transpose()?;
        Ok(value.unwrap_or_default())
    }

    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
        let first = flat.entries(SLOTS, address.as_slice())?.next();
        Ok(first.transpose()?.is_some())
    }

    fn order(&self) -> &'static AccountOrder {
        &BY_NAME
    }

    fn listing<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError> {
        let accounts = accounts(&records_of(flat)?)?.into_iter();
        let accounts = accounts.filter(move |of| first.is_none_or(|first| of.address[0] == first));
        Ok(Box::new(accounts.map(Ok)))
    }

    fn root(&self, flat: &Ahead<'_>, _: usize) -> Result<B256, StateError> {
        header_root(&records_of(flat)?)
    }

    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
        let first = view.scan(ACCOUNTS, &[], &from[..20])?.next().transpose()?;
        Ok(first.map(|(key, _)| Address::from_slice(&key)))
    }

    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError> {
        let named = |key: &[u8]| {
            (
                Address::from_slice(&key[..20]),
                U256::from_be_slice(&key[20..]),
            )
        };
        let first = view.scan(SLOTS, &[], &account[..20])?.next().transpose()?;
        let Some((first, _)) = first else {
            return Ok(None);
        };
        let from = [&first[..20], slot].concat();
        let next = view.scan(SLOTS, &first[..20], &from)?.next().transpose()?;
        Ok(Some(named(&next.map_or(first, |(key, _)| key))))
    }
}

impl StateTree for Toy {
    fn kind(&self) -> &'static TreeKind {
        &TOY
    }

    fn hash(&self) -> &'static str {
        TOY.hashes[0]
    }

    fn empty_root(&self) -> B256 {
        root(&Records::new())
    }

    fn records(&self) -> &dyn FlatRecords {
        self
    }

    fn sort_bytes(&self) -> usize {
        0
    }

    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError> {
        one_by_one(changes, |changes| {
            let writes = written(&view, changes)?;
            let mut flat = Changes::of_blobs(code_writes(changes.codes.iter()));
            for ((table, key), new) in &writes {
                let (old, table) = (view.get(*table, key)?, *table);
                if old != *new {
                    flat.put_flat(Change {
                        table,
                        key,
                        old: old.as_deref(),
                        new: new.as_deref(),
                    });
                }
            }
            let after = Other(writes).all(view)?;
            Ok(Computed::on_head(view, root(&after), flat))
        })
    }

    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn AccountSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        // From here on the database is known to have a part of a state.
        versions.load(&mut std::iter::empty())?;
        let codes = LoadedCodes::of(source);
        let (mut records, mut last) = (Records::new(), None);
        for account in source.stream(None)? {
            let account = account?;
            if last.replace(account.address) >= Some(account.address) {
                let why = format!(
                    "account {} does not come after the one before",
                    account.address
                );
                return Err(StateError::Read(why));
            }
            codes.size(account.address, &account.account)?;
            let slots = account.slots.iter().map(|slot| (slot.slot, slot.value));
            records.extend(account_records(account.address, &account.account, slots));
        }
        let writes = records.iter().map(|((table, key), value)| Write {
            table: *table,
            key: key.clone(),
            value: Some(value.clone()),
        });
        versions.load(&mut writes.collect::<Vec<_>>().into_iter())?;
        codes.store(versions)?;
        progress(1, 1);
        Ok(Computed::of_load(root(&records), Changes::default()))
    }

    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError> {
        Ok(Box::new(AllRecords::new(accounts, &records_of(then)?)))
    }

    fn nodes(&self, _: View<'_>) -> Nodes {
        Box::new(Other::default())
    }

    fn step(
        &self,
        view: View<'_>,
        nodes: &mut Nodes,
        to: &Meta,
        then: &[Write],
        _: Lookup<'_>,
    ) -> Result<(), StateError> {
        let other = own_mut::<Other>(nodes);
        let writes = then.iter();
        let flat = writes.filter(|write| [ACCOUNTS, SLOTS].contains(&write.table));
        let flat = flat.map(|write| ((write.table, write.key.clone()), write.value.clone()));
        other.0.extend(flat);
        let actual = root(&other.all(view)?);
        match actual == B256::from(to.root) {
            true => Ok(()),
            false => Err(StateError::RebuiltRoot {
                version: to.version.0,
                expected: to.root.into(),
                actual,
            }),
        }
    }

    fn writes_back(
        &self,
        view: View<'_>,
        to: &Meta,
        undo: &[Write],
    ) -> Result<Vec<Write>, StateError> {
        let mut nodes = self.nodes(view);
        self.step(view, &mut nodes, to, undo, &|_, _| Ok(None))?;
        Ok(Vec::new())
    }

    fn check_part(&self, check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError> {
        let mut subtrees = Vec::new();
        for first in firsts {
            let mut subtree = Vec::new();
            for table in [ACCOUNTS, SLOTS] {
                if *first == 0 && check.view.get(table, &[])?.is_some() {
                    check.tell_fault("a record without a key".to_owned());
                }
                for entry in check.scan(table, &[*first], &[])? {
                    let (key, value) = entry?;
                    let counted = match table {
                        ACCOUNTS => &check.counts.accounts,
                        _ => &check.counts.slots,
                    };
                    check.count(counted);
                    subtree.extend([table.0, key.len() as u8, value.len() as u8]);
                    subtree.extend([&key[..], &value].concat());
                }
            }
            subtrees.push(subtree.into());
            check.part_done();
        }
        Ok(CheckedPart {
            subtrees,
            ..CheckedPart::default()
        })
    }

    fn check_join(&self, check: &Check<'_>, parts: Vec<CheckedPart>) -> Result<B256, StateError> {
        let mut records = Records::new();
        for subtree in CheckedPart::all_subtrees(&parts) {
            let mut rest = &subtree[..];
            while let [table, key, value, after @ ..] = rest {
                let (key, after) = after.split_at(usize::from(*key));
                let (value, after) = after.split_at(usize::from(*value));
                records.insert((Table(*table), key.into()), value.into());
                rest = after;
            }
        }
        let (found, stored) = (root(&records), check.root(self));
        if found != stored {
            let why = format!("root: the records give {found}, the head has {stored}");
            check.tell_fault(why);
        }
        for with in accounts(&records)? {
            let hash = with.account.code_hash;
            if hash != alloy_primitives::KECCAK256_EMPTY && !check.has_code(hash)? {
                check.tell_fault(format!("account {}: code {hash} is missing", with.address));
            }
        }
        header_root(&records)
    }

    fn inspect(
        &self,
        record: StoredRecord<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError> {
        let StoredRecord { table, key, value } = record;
        match table {
            ACCOUNTS => {
                let account = decode_account(key, value)?;
                let code_hash = account.code_hash;
                see(Seen::Account {
                    address: Address::from_slice(key),
                    code_hash: Some(code_hash)
                        .filter(|hash| *hash != alloy_primitives::KECCAK256_EMPTY),
                });
            }
            SLOTS => {
                decode_slot(key, value)?;
                see(Seen::Slot { owner: &key[..20] });
            }
            _ => {}
        }
        Ok(())
    }
}

/// The records of one account.
fn of_account(records: &Records, address: Address) -> impl Iterator<Item = (&[u8], &Value)> {
    let from = Bound::Included((SLOTS, FlatKey::from(address.as_slice())));
    let slots = records.range((from, Bound::Unbounded));
    let slots = slots.take_while(move |((_, key), _)| key.starts_with(address.as_slice()));
    slots.map(|((_, key), value)| (&key[..], value))
}
