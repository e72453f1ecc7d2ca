//! Accounts by their names, in groups: the keys of their leaves, and what the values make of them.

use std::iter::Peekable;

use alloy_primitives::{Address, KECCAK256_EMPTY, U256};
use arbor_state_tree::{Account, StateError, WithSlots, corrupt};
use arbor_store::Value;
use arbor_tree::Hash;
use arbor_verify::ar16mt::Header;

use super::names::{LeafName, Named};

/// The leaves that an account has for its fields.
pub(super) const FIELDS: usize = 3;

/// An address and the slots that have names, ascending.
pub(super) type NamedSlots = (Address, Vec<U256>);

/// An account by its fields' values; `key` names it in errors.
pub(super) fn account_of(
    key: &[u8],
    value: impl Fn(usize) -> Result<Hash, StateError>,
) -> Result<Option<Account>, StateError> {
    let header = Header::decode(&value(0)?).map_err(|why| corrupt("leaves", key, why))?;
    let Some(header) = header else {
        return Ok(None);
    };
    Ok(Some(Account {
        nonce: header.nonce,
        balance: U256::from_be_bytes(value(1)?),
        code_hash: match header.has_code {
            true => value(2)?.into(),
            false => KECCAK256_EMPTY,
        },
    }))
}

/// The name of an entry of the table of names.
pub(super) fn name(entry: Result<(Box<[u8]>, Value), StateError>) -> Result<Named, StateError> {
    Named::decode(&entry?.0)
}

/// The next accounts with at least so many leaves together, or all that are left.
pub(super) fn group(
    names: &mut Peekable<impl Iterator<Item = Result<Named, StateError>>>,
    leaves: usize,
) -> Result<Vec<NamedSlots>, StateError> {
    let mut group = Vec::new();
    let mut found = 0;
    while found < leaves {
        let Some(first) = names.next().transpose()? else {
            break;
        };
        let address = first.address();
        let mut slots = Vec::from_iter(first.slot());
        let same =
            |named: &Result<Named, _>| named.as_ref().is_ok_and(|named| named.address() == address);
        while let Some(named) = names.next_if(same) {
            slots.extend(named?.slot());
        }
        found += FIELDS + slots.len();
        group.push((address, slots));
    }
    Ok(group)
}

/// The names of all leaves that accounts may have, and the leaves' keys.
pub(super) fn keys_of(group: &[NamedSlots]) -> Vec<Hash> {
    let names: Vec<LeafName> = group
        .iter()
        .flat_map(|(address, slots)| {
            let slots = slots.iter().map(|slot| LeafName::Slot(*address, *slot));
            LeafName::fields(*address).into_iter().chain(slots)
        })
        .collect();
    LeafName::keys(&names)
}

/// Those of the accounts that exist, with those slots that are not zero. Of each account `values` has those of its fields, then
/// those of its slots.
pub(super) fn put_together(
    group: &[NamedSlots],
    values: &[Hash],
) -> Result<Vec<WithSlots>, StateError> {
    let mut begin = 0;
    let mut accounts = Vec::with_capacity(group.len());
    for (address, slots) in group {
        let (fields, after) = (begin, begin + FIELDS);
        begin = after + slots.len();
        let account = account_of(&address[..], |field| Ok(values[fields + field]))?;
        let slots = slots.iter().copied().zip(&values[after..begin]);
        let slots: Vec<_> = slots
            .map(|(slot, value)| (slot, U256::from_be_bytes(*value)))
            .filter(|(_, value)| !value.is_zero())
            .collect();
        match account {
            Some(account) => accounts.push(WithSlots {
                address: *address,
                account,
                slots,
                storage_root: None,
            }),
            None if slots.is_empty() => {}
            None => {
                let why = "it has slots, but does not exist";
                return Err(corrupt("names", address.as_slice(), why));
            }
        }
    }
    Ok(accounts)
}
