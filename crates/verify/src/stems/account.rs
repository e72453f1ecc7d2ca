//! An account's leaves, and what proven leaves show of it.

use std::collections::HashMap;

use alloy_primitives::{Address, B256, U256};
use arbor_accounts::AccountSlots;

use super::hash::StemHash;
use super::header::{HeaderLayout, NoAccount};
use super::places::{HEADER_SLOTS, StemName, slot_place};
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
/// A field or a slot of which the leaves say nothing; leaves that no account has in this layout. So an account of another
/// layout is not taken for an absent one: its leaves of other suffixes have values.
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
    let stems = stems.of(&names);
    // The fields come first, and all of them lie in the header's stem.
    let header = stems[0];
    let is_field = |suffix: &u8| layout.suffixes().contains(suffix);
    let is_strange = |leaf: &&ProvenLeaf| {
        let [stem @ .., suffix] = &leaf.key.0;
        let has_value = leaf.value.is_some_and(|value| !value.is_zero());
        *stem == header && *suffix < HEADER_SLOTS && !is_field(suffix) && has_value
    };
    let keys = stems.into_iter().zip(suffixes);
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
    let no_account = NotProven::NoAccount { address };
    let account = account.map_err(|NoAccount| no_account)?;
    let slots: Vec<(U256, Option<U256>)> = of_slots.collect::<Result<_, _>>()?;
    let has_value = |(_, value): &(U256, Option<U256>)| value.is_some_and(|value| !value.is_zero());
    let is_absent_with_slots = account.is_none() && slots.iter().any(has_value);
    if is_absent_with_slots || leaves.iter().any(|leaf| is_strange(&leaf)) {
        return Err(no_account);
    }
    Ok(ProvenAccount {
        address,
        slots,
        account,
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::{KECCAK256_EMPTY, keccak256};
    use arbor_accounts::Account;

    use super::super::hash::Stem;
    use super::*;

    /// Stems that show the name.
    struct Plain;

    impl StemHash for Plain {
        fn of(&self, names: &[StemName]) -> Vec<Stem> {
            let stem = |name: &StemName| {
                let mut stem = [0; 31];
                stem[..20].copy_from_slice(&name.address.0.0);
                stem[20..].copy_from_slice(&name.index.to_be_bytes::<32>()[21..]);
                stem
            };
            names.iter().map(stem).collect()
        }

        fn of_once(&self, names: &[StemName]) -> Vec<Stem> {
            self.of(names)
        }
    }

    fn leaf(address: Address, suffix: u8, value: Option<[u8; 32]>) -> ProvenLeaf {
        let name = StemName {
            address,
            index: U256::ZERO,
        };
        let mut key = [suffix; 32];
        key[..31].copy_from_slice(&Plain.of(&[name])[0]);
        ProvenLeaf {
            key: key.into(),
            index: None,
            value: value.map(B256::from),
        }
    }

    fn asked(address: Address, slots: &[u64]) -> AccountSlots {
        let slots = slots.iter().copied().map(U256::from).collect();
        AccountSlots { address, slots }
    }

    #[test]
    fn an_account_of_another_layout_is_not_taken_for_an_absent_one() {
        let address = Address::repeat_byte(7);
        for code_hash in [KECCAK256_EMPTY, keccak256([1])] {
            let account = Account {
                nonce: 1,
                balance: U256::ZERO,
                code_hash,
            };
            let in_five = HeaderLayout::FiveLeaves.leaves(&account, 1).unwrap();
            let leaves: Vec<ProvenLeaf> = in_five
                .into_iter()
                .map(|(suffix, value)| leaf(address, suffix, Some(value)))
                .collect();
            let read = |layout| account_of(layout, &Plain, &leaves, &asked(address, &[]));
            let refused = NotProven::NoAccount { address };
            assert_eq!(read(HeaderLayout::BasicData).unwrap_err(), refused);
            if code_hash != KECCAK256_EMPTY {
                let account = read(HeaderLayout::FiveLeaves).unwrap().account;
                assert_eq!(account.unwrap().code_hash, code_hash);
            }
        }
    }

    #[test]
    fn an_absent_account_has_no_slot_with_a_value() {
        let address = Address::repeat_byte(7);
        for layout in HeaderLayout::ALL {
            let slot = |value: Option<[u8; 32]>| {
                let fields = layout.suffixes().iter();
                let mut leaves: Vec<ProvenLeaf> =
                    fields.map(|suffix| leaf(address, *suffix, None)).collect();
                leaves.push(leaf(address, 64, value));
                account_of(layout, &Plain, &leaves, &asked(address, &[0]))
            };
            assert_eq!(slot(Some([0; 32])).unwrap().account, None);
            assert_eq!(slot(None).unwrap().account, None);
            let refused = NotProven::NoAccount { address };
            assert_eq!(slot(Some([1; 32])).unwrap_err(), refused);
        }
    }
}
