//! Accounts and slots of a state that moves.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{
    Account, AccountOrder, Accounts, Ahead, ChangedNames, Flat, FlatKey, FlatRecords, KeptAccounts,
    OtherSpace, StateError,
};
use arbor_store::Table;
use arbor_tree::Hash;
use arbor_versions::{Change, View, in_other_space};

use super::since::{self, SinceAccount, SinceSlot};
use super::units::{account_key, owner, slot_key};
use super::{Moving, PROGRESS, SINCE_ACCOUNTS, SINCE_SLOTS, progress};
use crate::header_root::{Select, Visit, header_root};

/// Where a version's accounts are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Source,
    Both,
    Target,
}

fn place(flat: &dyn Flat) -> Result<Place, StateError> {
    Ok(match progress::read(flat)? {
        None => Place::Source,
        Some(moved) if moved.last_block.is_some() => Place::Target,
        Some(_) => Place::Both,
    })
}

impl Moving {
    /// A slot of a version at which the move is on its way.
    fn slot(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
        let order = self.source.order();
        if let Some(since) = since::slot(flat, order, address, slot)? {
            return Ok(since.value);
        }
        match since::account(flat, order, address)? {
            Some(since) if since.cleared || since.account.is_none() => Ok(U256::ZERO),
            _ => self.source.records().storage(flat, address, slot),
        }
    }
}

impl Moving {
    /// The Merkle-Patricia root of what is read amid the move; `seen` gets each account's number of slots.
    pub(super) fn root_of_both(
        &self,
        flat: &Ahead<'_>,
        bytes: usize,
        seen: &(dyn Fn(usize) + Sync),
    ) -> Result<B256, StateError> {
        let list = |first, _: Select<'_>, visit: Visit<'_>| {
            let mut accounts = self.list(flat, Some(first))?;
            accounts.try_for_each(|account| {
                let account = account?;
                seen(account.slots.len());
                visit(account)
            })
        };
        header_root(&list, bytes)
    }
}

impl FlatRecords for Moving {
    fn account(&self, flat: &dyn Flat, address: Address) -> Result<Option<Account>, StateError> {
        let source = self.source.records();
        match place(flat)? {
            Place::Source => source.account(flat, address),
            Place::Target => self.target.records().account(&OtherSpace(flat), address),
            Place::Both => match since::account(flat, self.source.order(), address)? {
                Some(since) => Ok(since.account),
                None => source.account(flat, address),
            },
        }
    }

    fn accounts(
        &self,
        flat: &dyn Flat,
        addresses: &[Address],
    ) -> Result<Vec<Option<Account>>, StateError> {
        let source = self.source.records();
        match place(flat)? {
            Place::Source => source.accounts(flat, addresses),
            Place::Target => self.target.records().accounts(&OtherSpace(flat), addresses),
            Place::Both => {
                let mut keys = vec![[0; 32]; addresses.len()];
                (self.source.order().account_keys)(addresses, &mut keys);
                let wanted: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                let since = flat.values(SINCE_ACCOUNTS, &wanted)?;
                let mut accounts = source.accounts(flat, addresses)?;
                for ((account, key), since) in accounts.iter_mut().zip(&keys).zip(since) {
                    if let Some(since) = since::decoded(key, since)? {
                        *account = since.account;
                    }
                }
                Ok(accounts)
            }
        }
    }

    fn keys(&self, accounts: &[Address], slots: &[(Address, U256)]) -> [(Table, Vec<FlatKey>); 2] {
        match self.is_over.load(Ordering::Relaxed) {
            false => self.source.records().keys(accounts, slots),
            true => {
                let keys = self.target.records().keys(accounts, slots);
                keys.map(|(table, keys)| (in_other_space(table), keys))
            }
        }
    }

    fn storage(&self, flat: &dyn Flat, address: Address, slot: U256) -> Result<U256, StateError> {
        match place(flat)? {
            Place::Source => self.source.records().storage(flat, address, slot),
            Place::Target => {
                let target = self.target.records();
                target.storage(&OtherSpace(flat), address, slot)
            }
            Place::Both => self.slot(flat, address, slot),
        }
    }

    fn has_storage(&self, flat: &dyn Flat, address: Address) -> Result<bool, StateError> {
        let source = self.source.records();
        match place(flat)? {
            Place::Source => source.has_storage(flat, address),
            Place::Target => self
                .target
                .records()
                .has_storage(&OtherSpace(flat), address),
            Place::Both => match since::account(flat, self.source.order(), address)? {
                None => source.has_storage(flat, address),
                Some(_) => {
                    let listed = self.listed(flat, address)?;
                    Ok(listed.is_some_and(|account| !account.slots.is_empty()))
                }
            },
        }
    }

    fn order(&self) -> &'static AccountOrder {
        self.source.order()
    }

    /// While the move is on its way and before, in the source's order; afterwards in the target's.
    fn listing<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError> {
        match place(flat)? {
            Place::Source => self.source.records().listing(flat, first),
            Place::Both => self.list(flat, first),
            Place::Target => {
                // One first byte after another: a listing reads from records that it does not own.
                let firsts = first.map_or(0..=u8::MAX, |first| first..=first);
                Ok(Box::new(firsts.flat_map(move |first| {
                    let there = OtherSpace(flat);
                    let listed = self.target.records().listing(&there, Some(first));
                    let (listed, error) = match listed {
                        Ok(listed) => (listed.collect(), None),
                        Err(error) => (Vec::new(), Some(Err(error))),
                    };
                    listed.into_iter().chain(error)
                })))
            }
        }
    }

    fn root(&self, flat: &Ahead<'_>, bytes: usize) -> Result<B256, StateError> {
        match place(flat)? {
            Place::Source => self.source.records().root(flat, bytes),
            Place::Target => self.target.records().root(&flat.in_other_space(), bytes),
            Place::Both => self.root_of_both(flat, bytes, &|_| ()),
        }
    }

    fn changed_names(&self, changes: &[Change<'_>]) -> Result<Option<ChangedNames>, StateError> {
        let moves = changes.iter().any(|change| change.table == PROGRESS);
        if !moves {
            // Before the move, or when it is over: what is of neither tree's tables is passed over by both.
            let there: Vec<Change<'_>> = changes
                .iter()
                .filter(|change| in_other_space(change.table).0 < change.table.0)
                .map(|change| Change {
                    table: in_other_space(change.table),
                    ..*change
                })
                .collect();
            return match there.is_empty() {
                true => self.source.records().changed_names(changes),
                false => self.target.records().changed_names(&there),
            };
        }
        let mut names = ChangedNames::new();
        let mut addresses = BTreeMap::new();
        for change in changes
            .iter()
            .filter(|change| change.table == SINCE_ACCOUNTS)
        {
            for bytes in [change.old, change.new].into_iter().flatten() {
                let address = SinceAccount::decode(change.key, bytes)?.address;
                addresses.insert(change.key, address);
                names.entry(address).or_default();
            }
        }
        for change in changes.iter().filter(|change| change.table == SINCE_SLOTS) {
            let owner = change.key.get(..32).and_then(|owner| addresses.get(owner));
            for bytes in [change.old, change.new].into_iter().flatten() {
                let slot = SinceSlot::decode(change.key, bytes)?.slot;
                if let Some(owner) = owner {
                    names.entry(*owner).or_default().insert(slot);
                }
            }
        }
        Ok(Some(names))
    }

    fn account_from(&self, view: View<'_>, from: &Hash) -> Result<Option<Address>, StateError> {
        let source = self.source.records();
        match place(&view)? {
            Place::Source => return source.account_from(view, from),
            Place::Target => {
                return self
                    .target
                    .records()
                    .account_from(view.in_other_space(), from);
            }
            Place::Both => {}
        }
        let order = self.source.order();
        let mut written = None;
        for entry in view.scan(SINCE_ACCOUNTS, &[], from)? {
            let (key, bytes) = entry?;
            let since = SinceAccount::decode(&key, &bytes)?;
            if since.account.is_some() {
                written = Some(since.address);
                break;
            }
        }
        let mut at = *from;
        let below = loop {
            let Some(address) = source.account_from(view, &at)? else {
                break None;
            };
            if since::account(&view, order, address)?.is_none() {
                break Some(address);
            }
            let Some(behind) = after(order, address) else {
                break None;
            };
            at = behind;
        };
        let both = written.into_iter().chain(below);
        Ok(both.min_by_key(|address| account_key(order, *address)))
    }

    fn slot_from(
        &self,
        view: View<'_>,
        account: &Hash,
        slot: &Hash,
    ) -> Result<Option<(Address, U256)>, StateError> {
        match place(&view)? {
            Place::Source => return self.source.records().slot_from(view, account, slot),
            Place::Target => {
                let there = view.in_other_space();
                return self.target.records().slot_from(there, account, slot);
            }
            Place::Both => {}
        }
        let order = self.source.order();
        let mut from = Some(*account);
        while let Some(at) = from {
            let Some(address) = self.account_from(view, &at)? else {
                break;
            };
            let slots = self.listed(&view, address)?.map(|account| account.slots);
            let slots = slots.unwrap_or_default();
            let behind = slots.iter().find(|(own, _)| slot_key(order, *own) >= *slot);
            if let Some((slot, _)) = behind.or(slots.first()) {
                return Ok(Some((address, *slot)));
            }
            from = after(order, address);
        }
        Ok(None)
    }

    fn kept_listing<'a>(&'a self, flat: &'a dyn Flat) -> Result<KeptAccounts<'a>, StateError> {
        match place(flat)? {
            Place::Source => self.source.records().kept_listing(flat),
            _ => {
                let listed = self.listing(flat, None)?;
                Ok(Box::new(listed.map(|account| Ok(account?.into()))))
            }
        }
    }
}

/// A key behind an account's, before all others.
fn after(order: &AccountOrder, address: Address) -> Option<Hash> {
    let mut key = account_key(order, address);
    let length = owner(order, address).len();
    for byte in key[..length].iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return Some(key);
        }
    }
    None
}
