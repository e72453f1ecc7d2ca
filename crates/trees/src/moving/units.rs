//! Accounts and slots of a source that stands still, one after another from a place on.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{Address, U256};
use arbor_state_tree::{
    Account, AccountOrder, BY_NAME, Cursor, Flat, FlatEntries, FlatKey, FlatRecords, StateError,
};
use arbor_store::{Table, Value};
use arbor_versions::View;

/// The key of an account in an order.
pub(super) fn account_key(order: &AccountOrder, address: Address) -> [u8; 32] {
    let mut key = [[0; 32]];
    (order.account_keys)(&[address], &mut key);
    key[0]
}

/// The key of a slot in an order.
pub(super) fn slot_key(order: &AccountOrder, slot: U256) -> [u8; 32] {
    let mut key = [[0; 32]];
    (order.slot_keys)(&[slot], &mut key);
    key[0]
}

/// What the keys of all records of an account and its slots begin with.
pub(super) fn owner(order: &AccountOrder, address: Address) -> Vec<u8> {
    let key = account_key(order, address);
    match *order == BY_NAME {
        true => key[..20].to_vec(),
        false => key.to_vec(),
    }
}

/// An account, or a slot with its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Account(Address, Account),
    Slot(Address, U256, U256),
}

/// The next units of a source.
pub(super) struct Units {
    pub(super) units: Vec<Unit>,
    /// The last of them.
    pub(super) cursor: Option<Cursor>,
    /// Whether there are no more.
    pub(super) are_all: bool,
}

impl Units {
    /// Reads at most `most` units of a source behind a place.
    pub(super) fn read(
        records: &dyn FlatRecords,
        view: View<'_>,
        mut cursor: Option<Cursor>,
        most: usize,
    ) -> Result<Self, StateError> {
        let mut units = Vec::new();
        'from: loop {
            let from = FromPlace::new(
                view,
                records.order(),
                cursor,
                (most - units.len()).saturating_add(1),
            );
            for account in records.listing(&from, None)? {
                let account = account?;
                let address = account.address;
                let is_open = cursor.is_some_and(|cursor| cursor.address == address);
                let own = (!is_open).then_some((None, Unit::Account(address, account.account)));
                let slots = account.slots.into_iter();
                let slots =
                    slots.map(|(slot, value)| (Some(slot), Unit::Slot(address, slot, value)));
                for (slot, unit) in own.into_iter().chain(slots) {
                    if units.len() == most {
                        return Ok(Self {
                            units,
                            cursor,
                            are_all: false,
                        });
                    }
                    units.push(unit);
                    cursor = Some(Cursor { address, slot });
                }
                if let Some(last) = from.cut(records.order(), address) {
                    // There are more records of this account than were listed.
                    if let Some(slot) = last {
                        let slot = Some(slot);
                        cursor = Some(Cursor { address, slot });
                    }
                    continue 'from;
                }
            }
            return Ok(Self {
                units,
                cursor,
                are_all: true,
            });
        }
    }
}

/// Flat records from a place on, and not more than a number of those of one account: a listing has the slots of an account in memory.
struct FromPlace<'a> {
    view: View<'a>,
    /// What the keys of the account at the place begin with.
    owner: Vec<u8>,
    /// No key of this account that is not above is listed, but for the account itself.
    after: Vec<u8>,
    most: usize,
    /// Accounts that have more, by what their keys begin with, and the rest of the last key that was listed.
    cuts: Mutex<BTreeMap<FlatKey, FlatKey>>,
}

impl<'a> FromPlace<'a> {
    fn new(view: View<'a>, order: &AccountOrder, cursor: Option<Cursor>, most: usize) -> Self {
        let (mut from, mut after) = (Vec::new(), Vec::new());
        if let Some(Cursor { address, slot }) = cursor {
            from = owner(order, address);
            let slot = slot.map(|slot| slot_key(order, slot));
            after = [&from[..], slot.as_ref().map_or(&[], |key| &key[..]), &[0]].concat();
        }
        Self {
            view,
            owner: from,
            after,
            most,
            cuts: Mutex::default(),
        }
    }

    /// Whether records of an account were left out, and the slot of the last that was not, if keys tell.
    fn cut(&self, order: &AccountOrder, address: Address) -> Option<Option<U256>> {
        let cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = cuts.get(&owner(order, address)[..])?;
        Some((*order == BY_NAME).then(|| U256::from_be_slice(slot)))
    }
}

impl Flat for FromPlace<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError> {
        self.view.value(table, key)
    }

    fn values(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StateError> {
        self.view.values(table, keys)
    }

    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError> {
        if !prefix.is_empty() {
            return self.view.entries(table, prefix);
        }
        let account = match self.owner.is_empty() {
            true => None,
            false => self.view.get(table, &self.owner)?,
        };
        let account = account.map(|value| Ok((Box::from(&self.owner[..]), value)));
        let mut behind = self.view.scan(table, &[], &self.after)?;
        let (mut last, mut of_last): (Box<[u8]>, usize) = (Box::default(), 0);
        let mut next = move || {
            loop {
                let Some((key, value)) = behind.next().transpose()? else {
                    return Ok(None);
                };
                // Keys of slots end with 32 bytes of their own.
                let owner = key.len().checked_sub(32).filter(|owner| *owner >= 20);
                let Some(owner) = owner else {
                    return Ok(Some((key, value)));
                };
                match last.len() == key.len() && last[..owner] == key[..owner] {
                    true => of_last += 1,
                    false => of_last = 1,
                }
                if of_last <= self.most {
                    last.clone_from(&key);
                    return Ok(Some((key, value)));
                }
                // The others of this account are passed over. It may be one that is gone, which is not listed.
                let mut cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
                cuts.insert(key[..owner].into(), last[owner..].into());
                let Some(from) = following(&key[..owner]) else {
                    return Ok(None);
                };
                behind = self.view.scan(table, &[], &from)?;
            }
        };
        let behind = std::iter::from_fn(move || next().transpose());
        Ok(Box::new(account.into_iter().chain(behind)))
    }
}

/// The first bytes behind all that begin with some.
fn following(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

impl Unit {
    /// The account that it is, or is of.
    pub(super) fn address(&self) -> Address {
        match self {
            Self::Account(address, _) | Self::Slot(address, ..) => *address,
        }
    }

    /// The slot that it is, with its account.
    pub(super) fn slot(&self) -> Option<(Address, U256)> {
        match self {
            Self::Account(..) => None,
            Self::Slot(address, slot, _) => Some((*address, *slot)),
        }
    }
}
