//! All accounts of a state on its way: those of the source under what was written since.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;

use alloy_primitives::Address;
use arbor_state_tree::{AccountOrder, Accounts, Flat, FlatEntries, StateError, WithSlots};
use arbor_store::Table;

use super::since::{SinceAccount, SinceSlot};
use super::units::{account_key, owner, slot_key};
use super::{Moving, SINCE_ACCOUNTS, SINCE_SLOTS};

type Key = [u8; 32];

/// What was written since, account after account.
struct Since<'a> {
    accounts: FlatEntries<'a>,
    slots: Peekable<FlatEntries<'a>>,
}

/// An account that was written since, with the slots that were.
struct Written {
    key: Key,
    since: SinceAccount,
    /// By their keys.
    slots: BTreeMap<Key, SinceSlot>,
}

impl<'a> Since<'a> {
    fn new(flat: &'a dyn Flat, prefix: &[u8]) -> Result<Self, StateError> {
        Ok(Self {
            accounts: flat.entries(SINCE_ACCOUNTS, prefix)?,
            slots: flat.entries(SINCE_SLOTS, prefix)?.peekable(),
        })
    }

    fn next(&mut self) -> Result<Option<Written>, StateError> {
        let Some((key, bytes)) = self.accounts.next().transpose()? else {
            return Ok(None);
        };
        let since = SinceAccount::decode(&key, &bytes)?;
        let mut slots = BTreeMap::new();
        let of = |entry: &Result<(Box<[u8]>, _), _>| match entry {
            Ok((slot, _)) => slot.starts_with(&key),
            Err(_) => true,
        };
        while let Some(entry) = self.slots.next_if(of) {
            let (full, bytes) = entry?;
            if let Some(own) = full.get(32..).and_then(|own| Key::try_from(own).ok()) {
                slots.insert(own, SinceSlot::decode(&full, &bytes)?);
            }
        }
        let key = Key::try_from(&key[..]);
        let key = key.map_err(|_| {
            arbor_state_tree::corrupt(
                "accounts since",
                since.address.as_slice(),
                "key of another length",
            )
        })?;
        Ok(Some(Written { key, since, slots }))
    }
}

impl Written {
    /// The account as it is now, with the source's slots under its own; `None` if it is gone.
    fn over(self, order: &AccountOrder, below: Option<WithSlots>) -> Option<WithSlots> {
        let account = self.since.account?;
        let mut slots = BTreeMap::new();
        if let Some(below) = below.filter(|_| !self.since.cleared) {
            let own = below.slots.into_iter();
            slots.extend(own.map(|(slot, value)| (slot_key(order, slot), (slot, value))));
        }
        let own = self.slots.into_iter();
        slots.extend(own.map(|(key, own)| (key, (own.slot, own.value))));
        let slots = slots.into_values().filter(|(_, value)| !value.is_zero());
        Some(WithSlots {
            address: self.since.address,
            account,
            slots: slots.collect(),
            storage_root: None,
        })
    }
}

impl Moving {
    /// The accounts of a version at which the move is on its way.
    pub(super) fn list<'a>(
        &'a self,
        flat: &'a dyn Flat,
        first: Option<u8>,
    ) -> Result<Accounts<'a>, StateError> {
        let since = Since::new(flat, first.as_slice())?;
        let source = self.source.records().listing(flat, first)?;
        Ok(merged(self.source.order(), source, since))
    }

    /// One account with its slots, of such a version.
    pub(super) fn listed(
        &self,
        flat: &dyn Flat,
        address: Address,
    ) -> Result<Option<WithSlots>, StateError> {
        let order = self.source.order();
        let of = Of {
            flat,
            owner: owner(order, address),
        };
        let since = Since::new(flat, &account_key(order, address))?;
        let source = self.source.records().listing(&of, None)?;
        merged(order, source, since).next().transpose()
    }
}

fn merged<'a>(
    order: &'static AccountOrder,
    source: Accounts<'a>,
    since: Since<'a>,
) -> Accounts<'a> {
    let (mut source, mut since) = (source.peekable(), since);
    let (mut written, mut is_read) = (None, false);
    let mut next = move || {
        loop {
            if !is_read {
                written = since.next()?;
                is_read = true;
            }
            let below = match source.peek() {
                Some(Err(_)) => return source.next().transpose(),
                Some(Ok(account)) => Some(account_key(order, account.address)),
                None => None,
            };
            let above: Option<Key> = written.as_ref().map(|written: &Written| written.key);
            let order_of = match (below, above) {
                (None, None) => return Ok(None),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(below), Some(above)) => below.cmp(&above),
            };
            if order_of == Ordering::Less {
                return source.next().transpose();
            }
            let under = match order_of {
                Ordering::Equal => source.next().transpose()?,
                _ => None,
            };
            is_read = false;
            let account = written
                .take()
                .and_then(|written| written.over(order, under));
            if account.is_some() {
                return Ok(account);
            }
        }
    };
    Box::new(std::iter::from_fn(move || next().transpose()))
}

/// The flat records of one account alone, where tables are listed.
struct Of<'a> {
    flat: &'a dyn Flat,
    owner: Vec<u8>,
}

impl Flat for Of<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<arbor_store::Value>, StateError> {
        self.flat.value(table, key)
    }

    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError> {
        match prefix.is_empty() {
            true => self.flat.entries(table, &self.owner),
            false => self.flat.entries(table, prefix),
        }
    }
}
