//! Flat records keyed by plain names: accounts by address, slots by address and number. Execution reads them
//! without any hash, and several trees share them.

use std::iter::Peekable;

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{
    ACCOUNTS, Account, AccountOrder, AccountTrie, Accounts, Ahead, BY_NAME, ChangedNames, Flat,
    FlatKey, FlatRecords, KeptAccount, KeptAccounts, SLOTS, StateError, WithSlots, corrupt,
};
use arbor_store::{Table, Value};
use arbor_tree::Hash;
use arbor_versions::{Change, View};

use crate::header_root::{Select, Visit, checked_trie, header_root};

/// Decodes a record by its key.
type Decode<T> = fn(&[u8], &[u8]) -> Result<T, StateError>;

/// The way in which a tree writes the records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedRecords {
    /// Decodes the record of an account; `None` if the record stays of an account that is gone.
    pub(crate) account: Decode<Option<Account>>,
    /// Decodes the record of a slot; zero if the record stays of a slot that is gone.
    pub(crate) slot: Decode<U256>,
    /// Returns the number of chunks of code that have leaves, if the account's code has fewer. Absent if no
    /// record stays of what is gone.
    pub(crate) past_chunks: Option<Decode<Option<u32>>>,
}

/// An account's record as it is listed with what is gone.
type KeptRecord = (Address, Option<Account>, Option<u32>);

/// Slots with owner, number and value, ascending by owner, to be taken by accounts that ascend too.
struct SlotsByOwner<I: Iterator>(Peekable<I>);

impl<I: Iterator<Item = Result<(Address, U256, U256), StateError>>> SlotsByOwner<I> {
    /// Takes the slots of an account off the front. Slots before them are an error: their account does not exist.
    fn of(&mut self, address: Address) -> Result<Vec<(U256, U256)>, StateError> {
        let mut own = Vec::new();
        let up_to = |entry: &I::Item| entry.as_ref().map_or(true, |(owner, ..)| *owner <= address);
        while let Some(entry) = self.0.next_if(up_to) {
            let (owner, slot, value) = entry?;
            if owner != address {
                return Err(orphan(owner, slot));
            }
            own.push((slot, value));
        }
        Ok(own)
    }

    /// Nothing, after the last account; slots that are left are an error.
    fn end<T>(&mut self) -> Result<Option<T>, StateError> {
        match self.0.next().transpose()? {
            Some((owner, slot, _)) => Err(orphan(owner, slot)),
            None => Ok(None),
        }
    }
}

impl NamedRecords {
    /// The account that a record has, if there is a record.
    fn decoded(&self, key: &[u8], bytes: Option<Value>) -> Result<Option<Account>, StateError> {
        match bytes {
            Some(bytes) => (self.account)(key, &bytes),
            None => Ok(None),
        }
    }

    /// The accounts whose addresses begin with `prefix`, ascending by address.
    fn listed<'a>(
        self,
        flat: &'a dyn Flat,
        prefix: &[u8],
    ) -> Result<impl Iterator<Item = Result<WithSlots, StateError>> + use<'a>, StateError> {
        let mut accounts = flat.entries(ACCOUNTS, prefix)?;
        let mut slots = flat.entries(SLOTS, prefix)?.map(move |entry| {
            let (key, bytes) = entry?;
            let (owner, slot) = slot_name(&key)?;
            let value = (self.slot)(&key, &bytes)?;
            Ok((!value.is_zero()).then_some((owner, slot, value)))
        });
        let slots = std::iter::from_fn(move || slots.find_map(Result::transpose));
        let mut slots = SlotsByOwner(slots.peekable());
        let mut next = move || {
            let found = loop {
                let Some((key, bytes)) = accounts.next().transpose()? else {
                    break None;
                };
                if let Some(account) = (self.account)(&key, &bytes)? {
                    break Some((account_key(&key)?, account));
                }
            };
            let Some((address, account)) = found else {
                return slots.end();
            };
            let own = slots.of(address)?;
            Ok(Some(WithSlots {
                address,
                account,
                slots: own,
                storage_root: None,
            }))
        };
        Ok(std::iter::from_fn(move || next().transpose()))
    }

    /// All records, also those of what is gone, ascending by address.
    fn kept<'a>(
        self,
        flat: &'a dyn Flat,
        past_chunks: Decode<Option<u32>>,
    ) -> Result<KeptAccounts<'a>, StateError> {
        let mut accounts = flat.entries(ACCOUNTS, &[])?.map(move |entry| {
            let (key, bytes) = entry?;
            let (account, chunks) = ((self.account)(&key, &bytes)?, past_chunks(&key, &bytes)?);
            Ok::<KeptRecord, StateError>((account_key(&key)?, account, chunks))
        });
        let slots = flat.entries(SLOTS, &[])?.map(move |entry| {
            let (key, bytes) = entry?;
            let (owner, slot) = slot_name(&key)?;
            Ok((owner, slot, (self.slot)(&key, &bytes)?))
        });
        let mut slots = SlotsByOwner(slots.peekable());
        let mut next = move || {
            let Some((address, account, past_chunks)) = accounts.next().transpose()? else {
                return slots.end();
            };
            let own = slots.of(address)?;
            Ok(Some(KeptAccount {
                address,
                account,
                past_chunks,
                slots: own,
            }))
        };
        Ok(Box::new(std::iter::from_fn(move || next().transpose())))
    }

    fn list(self, flat: &dyn Flat, first: u8, visit: Visit<'_>) -> Result<(), StateError> {
        let mut accounts = self.listed(flat, &[first])?;
        accounts.try_for_each(|account| visit(account?))
    }

    /// The Merkle-Patricia trie of the accounts whose hashed addresses begin with some bytes, for a part of a check. If the
    /// records of the part cannot all be read, there is none.
    pub(crate) fn checked_trie(
        &self,
        are_readable: bool,
        flat: &(dyn Flat + Sync),
        within: (&[u8], usize),
    ) -> Result<AccountTrie, StateError> {
        let list = |first, _: Select<'_>, visit: Visit<'_>| self.list(flat, first, visit);
        checked_trie(are_readable, &list, within)
    }
}

impl FlatRecords for NamedRecords {
    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
        let key = address.as_slice();
        self.decoded(key, flat.value(ACCOUNTS, key)?)
    }

    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError> {
        let keys: Vec<&[u8]> = addresses.iter().map(|address| &address[..]).collect();
        let records = keys.iter().zip(flat.values(ACCOUNTS, &keys)?);
        let accounts = records.map(|(key, record)| self.decoded(key, record));
        accounts.collect()
    }

    fn keys(&self, accounts: &[Address], slots: &[(Address, U256)]) -> [(Table, Vec<FlatKey>); 2] {
        let account = |address: &Address| address.as_slice().into();
        let slot =
            |&(address, slot): &(Address, U256)| -> FlatKey { slot_key(address, slot).into() };
        [
            (ACCOUNTS, accounts.iter().map(account).collect()),
            (SLOTS, slots.iter().map(slot).collect()),
        ]
    }

    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
        let key = slot_key(address, slot);
        match flat.value(SLOTS, &key)? {
            Some(bytes) => (self.slot)(&key, &bytes),
            None => Ok(U256::ZERO),
        }
    }

    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
        for entry in flat.entries(SLOTS, address.as_slice())? {
            let (key, bytes) = entry?;
            if !(self.slot)(&key, &bytes)?.is_zero() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn order(&self) -> &'static AccountOrder {
        &BY_NAME
    }

    fn listing<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError> {
        Ok(Box::new(self.listed(flat, first.as_slice())?))
    }

    fn kept_listing<'a>(&'a self, flat: &'a dyn Flat) -> Result<KeptAccounts<'a>, StateError> {
        match self.past_chunks {
            Some(past_chunks) => self.kept(flat, past_chunks),
            None => {
                let listed = self.listed(flat, &[])?;
                Ok(Box::new(listed.map(|account| Ok(account?.into()))))
            }
        }
    }

    fn root(&self, flat: &Ahead<'_>, bytes: usize) -> Result<B256, StateError> {
        let list = |first, _: Select<'_>, visit: Visit<'_>| self.list(flat, first, visit);
        header_root(&list, bytes)
    }

    fn changed_names(&self, changes: &[Change<'_>]) -> Result<Option<ChangedNames>, StateError> {
        let mut names = ChangedNames::new();
        for change in changes {
            match change.table {
                ACCOUNTS => drop(names.entry(account_key(change.key)?).or_default()),
                SLOTS => {
                    let (address, slot) = slot_name(change.key)?;
                    names.entry(address).or_default().insert(slot);
                }
                _ => {}
            }
        }
        Ok(Some(names))
    }

    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
        for entry in view.scan(ACCOUNTS, &[], &from[..20])? {
            let (key, bytes) = entry?;
            if (self.account)(&key, &bytes)?.is_some() {
                return Ok(Some(account_key(&key)?));
            }
        }
        Ok(None)
    }

    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError> {
        let set = |prefix: &[u8], from: &[u8]| -> Result<Option<(Address, U256)>, StateError> {
            for entry in view.scan(SLOTS, prefix, from)? {
                let (key, bytes) = entry?;
                if !(self.slot)(&key, &bytes)?.is_zero() {
                    return Ok(Some(slot_name(&key)?));
                }
            }
            Ok(None)
        };
        slot_near(account, slot, set)
    }
}

/// The error for a slot of no account.
fn orphan(owner: Address, slot: U256) -> StateError {
    let key = slot_key(owner, slot);
    corrupt("slots", &key, "its account does not exist")
}

/// Returns a slot of the first account with storage whose address is not below the first bytes of `account`: the
/// first from `slot` on, else the account's first. `set` finds the first slot whose name begins with some bytes and
/// is not below others.
pub(crate) fn slot_near(
    account: &Hash,
    slot: &Hash,
    set: impl Fn(&[u8], &[u8]) -> Result<Option<(Address, U256)>, StateError>,
) -> Result<Option<(Address, U256)>, StateError> {
    let Some(first) = set(&[], &account[..20])? else {
        return Ok(None);
    };
    let owner = first.0.as_slice();
    let found = set(owner, &[owner, slot].concat())?;
    Ok(found.or(Some(first)))
}

/// The address that is an account's key in the flat table.
pub(crate) fn account_key(key: &[u8]) -> Result<Address, StateError> {
    let address = <[u8; 20]>::try_from(key);
    let address =
        address.map_err(|_| corrupt("accounts", key, "key of another length than an address"))?;
    Ok(address.into())
}

/// A slot's key in the flat table.
pub(crate) fn slot_key(address: Address, slot: U256) -> [u8; 52] {
    let mut key = [0; 52];
    key[..20].copy_from_slice(address.as_slice());
    key[20..].copy_from_slice(&slot.to_be_bytes::<32>());
    key
}

/// The name behind a slot's key.
pub(crate) fn slot_name(key: &[u8]) -> Result<(Address, U256), StateError> {
    let split = key.split_first_chunk::<20>();
    let parts = split.and_then(|(address, slot)| Some((address, <[u8; 32]>::try_from(slot).ok()?)));
    let (address, slot) = parts
        .ok_or_else(|| corrupt("slots", key, "key of another length than address and slot"))?;
    Ok((address.into(), U256::from_be_bytes(slot)))
}
