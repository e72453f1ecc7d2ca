//! The way in which accounts and slots of a Merkle-Patricia state lie in flat tables.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, U256};
use arbor_hashing::keccak256_fixed;
use arbor_store::{Table, Value};
use arbor_tree::Hash;
use arbor_verify::mpt::BY_KECCAK;
use arbor_versions::{Change, View};

use super::keys::{ACCOUNTS, SLOTS, account_key, contract_key, flat_slot_key, slot_key};
use super::reader::{account_record, slot_value};
use super::rebuild::flat_root;
use super::records::{AccountRecord, FlatRecord, SlotRecord};
use arbor_state_tree::{Account, AccountOrder, Accounts, StateError, WithSlots, corrupt};
use arbor_state_tree::{Ahead, ChangedNames, Flat, FlatKey, FlatRecords};

/// The flat records: accounts keyed by the hash of the address, slots by that and the hash of the slot's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Records;

impl FlatRecords for Records {
    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
        let record = account_record(flat, &account_key(address))?;
        Ok(record.map(|record| record.account))
    }

    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError> {
        let mut keys = vec![Hash::default(); addresses.len()];
        let names: Vec<[u8; 20]> = addresses.iter().map(|address| address.0.0).collect();
        keccak256_fixed(&names, &mut keys);
        let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let records = keys.iter().zip(flat.values(ACCOUNTS, &wanted)?);
        let account = |(key, bytes): (&Hash, Option<Value>)| {
            let record = bytes.map(|bytes| AccountRecord::decode(key, &bytes));
            Ok(record.transpose()?.map(|record| record.account))
        };
        records.map(account).collect()
    }

    fn keys(&self, accounts: &[Address], slots: &[(Address, U256)]) -> [(Table, Vec<FlatKey>); 2] {
        let account = |&address: &Address| account_key(address).into();
        let slot = |&(address, slot): &(Address, U256)| -> FlatKey {
            flat_slot_key(&account_key(address), &slot_key(slot)).into()
        };
        [
            (ACCOUNTS, accounts.iter().map(account).collect()),
            (SLOTS, slots.iter().map(slot).collect()),
        ]
    }

    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
        slot_value(flat, &contract_key(address), slot)
    }

    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
        let record = account_record(flat, &account_key(address))?;
        Ok(record.is_some_and(|record| record.has_storage()))
    }

    fn order(&self) -> &'static AccountOrder {
        &BY_KECCAK
    }

    fn listing<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError> {
        // One scan for the slots of all accounts: beginning a scan takes longer than reading the slots of most accounts.
        let mut accounts = flat.entries(ACCOUNTS, first.as_slice())?;
        let mut slots = flat.entries(SLOTS, first.as_slice())?.peekable();
        let mut next = move || {
            let Some((owner, bytes)) = accounts.next().transpose()? else {
                return match slots.next().transpose()? {
                    Some((key, _)) => Err(orphan(&key)),
                    None => Ok(None),
                };
            };
            let record = AccountRecord::decode(&owner, &bytes)?;
            let up_to = |entry: &Result<(Box<[u8]>, Value), StateError>| match entry {
                Ok((key, _)) => key[..] < owner[..] || key.starts_with(&owner),
                Err(_) => true,
            };
            let mut own = Vec::new();
            while let Some(entry) = slots.next_if(up_to) {
                let (key, bytes) = entry?;
                if !key.starts_with(&owner) {
                    return Err(orphan(&key));
                }
                let slot = SlotRecord::decode(&key, &bytes)?;
                own.push((slot.slot, slot.value));
            }
            Ok(Some(WithSlots {
                address: record.address,
                account: record.account,
                slots: own,
                storage_root: Some(record.storage_root),
            }))
        };
        Ok(Box::new(std::iter::from_fn(move || next().transpose())))
    }

    fn root(&self, flat: &Ahead<'_>, _: usize) -> Result<B256, StateError> {
        flat_root(flat)
    }

    /// A slot's record has the slot's number, and its key the hash of the address. The account's record changes with the
    /// root of its storage, and has the address.
    fn changed_names(&self, changes: &[Change<'_>]) -> Result<Option<ChangedNames>, StateError> {
        let (mut addresses, mut names) = (BTreeMap::new(), ChangedNames::new());
        for change in changes.iter().filter(|change| change.table == ACCOUNTS) {
            for bytes in before_and_after(change) {
                let address = AccountRecord::decode(change.key, bytes)?.address;
                addresses.insert(change.key, address);
                names.entry(address).or_default();
            }
        }
        for change in changes.iter().filter(|change| change.table == SLOTS) {
            let owner = change.key.get(..32).and_then(|owner| addresses.get(owner));
            let owner = owner.ok_or_else(|| {
                corrupt("slots", change.key, "its account does not change with it")
            })?;
            for bytes in before_and_after(change) {
                let slot = SlotRecord::decode(change.key, bytes)?.slot;
                names.entry(*owner).or_default().insert(slot);
            }
        }
        Ok(Some(names))
    }

    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
        let Some(entry) = view.scan(ACCOUNTS, &[], from)?.next() else {
            return Ok(None);
        };
        let (key, bytes) = entry?;
        Ok(Some(AccountRecord::decode(&key, &bytes)?.address))
    }

    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError> {
        let Some(first) = view.scan(SLOTS, &[], account)?.next() else {
            return Ok(None);
        };
        let first = first?;
        let corrupt = |why| corrupt("slots", &first.0, why);
        let owner = first.0.first_chunk::<32>();
        let owner = owner.ok_or_else(|| corrupt("key of the wrong length"))?;
        let account = account_record(&view, owner)?.ok_or_else(|| corrupt("no such account"))?;
        let from = [&owner[..], slot].concat();
        let mut from_slot = view.scan(SLOTS, owner, &from)?;
        let (key, bytes) = from_slot.next().unwrap_or_else(|| Ok(first.clone()))?;
        let slot = SlotRecord::decode(&key, &bytes)?.slot;
        Ok(Some((account.address, slot)))
    }
}

fn orphan(key: &[u8]) -> StateError {
    corrupt("slots", key, "its account does not exist")
}

/// The records of a key before and after.
fn before_and_after<'a>(change: &Change<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    [change.old, change.new].into_iter().flatten()
}
