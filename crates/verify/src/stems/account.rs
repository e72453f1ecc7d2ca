//! An account's leaves, and what proven leaves show of it.

use std::collections::HashMap;

use alloy_primitives::{Address, B256, U256};
use arbor_accounts::AccountSlots;

use super::hash::StemHash;
use super::header::{HeaderLayout, NoAccount};
use super::places::{StemName, slot_place};
use crate::kinds::NotProven;
use crate::proof::{ProvenAccount, ProvenLeaf};

/// The places of an account's fields and some of its slots.
pub fn account_places<'a>(
    layout: HeaderLayout,
    address: Address,
    slots: impl Iterator<Item = &'a U256>,
) -> impl Iterator<Item = (StemName, u8)> {
    let fields = layout.suffixes().iter();
    let fields = fields.map(|suffix| (U256::ZERO, *suffix));
    let places = fields.chain(slots.map(|slot| slot_place(*slot)));
    places.map(move |(index, suffix)| (StemName { address, index }, suffix))
}

/// What proven leaves show of an account and some of its slots. Proofs have keys and no names: whoever asks for an account
/// computes its keys.
///
/// # Errors
/// A field or a slot of which the leaves say nothing.
pub fn account_of(
    layout: HeaderLayout,
    stems: &dyn StemHash,
    leaves: &[ProvenLeaf],
    AccountSlots { address, slots }: &AccountSlots,
) -> Result<ProvenAccount, NotProven> {
    let address = *address;
    let (names, suffixes): (Vec<StemName>, Vec<u8>) =
        account_places(layout, address, slots.iter()).unzip();
    let values: HashMap<B256, Option<B256>> =
        leaves.iter().map(|leaf| (leaf.key, leaf.value)).collect();
    let keys = stems.of(&names).into_iter().zip(suffixes);
    let mut values = keys.map(|(stem, suffix)| {
        let mut key = [suffix; 32];
        key[..31].copy_from_slice(&stem);
        values.get(&B256::from(key)).copied()
    });
    let mut fields = HashMap::new();
    for (suffix, value) in layout.suffixes().iter().zip(&mut values) {
        let suffix = *suffix;
        let value = value.ok_or(NotProven::Field { address, suffix })?;
        fields.insert(suffix, value);
    }
    let of_slots = slots.iter().zip(values).map(|(slot, value)| {
        let slot = *slot;
        let value = value.ok_or(NotProven::Slot { address, slot })?;
        Ok((slot, value.map(|value| value.into())))
    });
    let account = layout.account(|suffix| {
        let field = fields.get(&suffix).copied().flatten();
        field.map(|value: B256| value.0)
    });
    Ok(ProvenAccount {
        address,
        slots: of_slots.collect::<Result<_, _>>()?,
        account: account.map_err(|NoAccount| NotProven::NoAccount { address })?,
    })
}
