//! State in a tree of stems, whatever hash makes the stems and whatever tree holds the leaves.
//!
//! Where accounts, slots and code lie is written in [`arbor_verify::stems`]. Shared here are the
//! flat records, reading and listing them, and the leaves, which follow from flat records alone:
//! all leaves of a state in the order of their stems, the leaves under one stem, and the changes of
//! leaves that flat changes come to. The last leads forwards and backwards in history.
//!
//! The tree cannot forget: what is removed from the state leaves zeros behind. The flat tables are
//! keyed by plain names, so that execution reads without any hash, and have a record for whatever
//! has a leaf. Nothing stored leads from a stem back to its name: no update and no proof asks for
//! that. A load and a check want the leaves in the tree's order, so they hash all names and sort
//! them.
//!
//! Nodes, proofs and the naive model belong to each tree: Verkle and EIP-7864.

mod changes;
mod check;
mod inspect;
mod load;
mod ordered;
mod reader;
mod records;
mod spread;
mod values;

pub(crate) use changes::{StemChanges, flat_changes, leaf_changes, leaf_changes_together};
pub(crate) use check::{RecordCheck, check_records};
pub(crate) use inspect::inspect_flat;
pub(crate) use load::load_flat;
pub(crate) use ordered::{OrderedLeaves, UnderStem, first_bytes, groups};
pub(crate) use reader::{RECORDS, code_after, stored_code};
pub(crate) use records::AccountRecord;
pub(crate) use spread::{read_leaf_group, spread};
pub(crate) use values::Leaves;

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
    use arbor_state_tree::{
        Account, AccountChange, COMMON, SlotChange, StateChanges, StateError, code_writes,
    };
    use arbor_store::MemoryStore;
    use arbor_verify::stems::{HeaderLayout, LeafValue, Stem, StemHash, StemName};
    use arbor_versions::{Identity, Meta, Options, Version, Versions};

    use super::*;

    /// Stems of a tree that there is not: nothing here may depend on Verkle's hash.
    struct Keccak;

    impl StemHash for Keccak {
        fn of(&self, names: &[StemName]) -> Vec<Stem> {
            self.of_once(names)
        }

        fn of_once(&self, names: &[StemName]) -> Vec<Stem> {
            let stem = |name: &StemName| {
                let bytes = [name.address.as_slice(), &name.index.to_le_bytes::<32>()].concat();
                *keccak256(bytes).0.first_chunk().unwrap()
            };
            names.iter().map(stem).collect()
        }
    }

    type Leaf = ((Stem, u8), LeafValue);

    fn database() -> Versions {
        let identity = Identity {
            tree: "stems".into(),
            revision: "1".into(),
            hash: "keccak256".into(),
            layout: 1,
            chain_id: 1,
            genesis: [0; 32],
            space: 0,
            moves_to: None,
            since: None,
        };
        let store = Arc::new(MemoryStore::default());
        Versions::create(store, None, &identity, &COMMON, Options::default()).unwrap()
    }

    fn code() -> Bytes {
        b"\x60\x01".repeat(31 * 90).into()
    }

    /// An account's number, its balance before and after, and its slots: number, value before and
    /// after.
    type Changed<'a> = (u8, [Option<u64>; 2], &'a [(u64, u64, u64)]);

    fn changes(accounts: &[Changed<'_>]) -> StateChanges {
        let account = |number: u8, balance: u64| Account {
            nonce: 1,
            balance: U256::from(balance),
            code_hash: match number % 2 {
                0 => KECCAK256_EMPTY,
                _ => keccak256(code()),
            },
        };
        let mut changes = StateChanges::default();
        changes.codes.insert(keccak256(code()), code());
        for (number, [old, new], slots) in accounts {
            let slots = slots.iter().map(|&(slot, old, new)| {
                let (old, new) = (U256::from(old), U256::from(new));
                (U256::from(slot), SlotChange { old, new })
            });
            let change = AccountChange {
                old: old.map(|balance| account(*number, balance)),
                new: new.map(|balance| account(*number, balance)),
                storage_cleared: new.is_none(),
                slots: slots.collect(),
            };
            changes
                .accounts
                .insert(Address::repeat_byte(*number), change);
        }
        changes
    }

    /// Applies a block, and its changes of leaves to all leaves so far.
    fn apply(
        versions: &mut Versions,
        leaves: &mut BTreeMap<(Stem, u8), LeafValue>,
        names: &mut BTreeMap<Stem, StemName>,
        changes: &StateChanges,
    ) {
        let layout = HeaderLayout::default();
        let code_of = |_: B256| -> Result<Bytes, StateError> { Ok(code()) };
        let mut flat = flat_changes(&versions.view(), changes, &code_of).unwrap();
        let changed = leaf_changes(flat.flat(), layout, &Keccak, &code_of).unwrap();
        assert!(changed.is_sorted_by(|a, b| a.stem < b.stem));
        for of in changed {
            assert!(of.changes.is_sorted_by(|a, b| a.suffix < b.suffix));
            names.insert(of.stem, of.name);
            for change in of.changes {
                let new = change.new.unwrap();
                let old = leaves.insert((of.stem, change.suffix), new);
                assert_eq!(old, change.old);
            }
        }
        flat.blobs = code_writes(changes.codes.iter());
        let number = versions.head().map_or(0, |head| head.version.0 + 1);
        let meta = Meta {
            version: Version(number),
            block_number: number,
            block_hash: [0; 32],
            root: [0; 32],
            extra: Vec::new(),
        };
        versions.apply(meta, flat).unwrap();
    }

    fn in_order(versions: &Versions) -> Vec<Leaf> {
        let view = versions.view();
        let mut leaves = Vec::new();
        for firsts in first_bytes(view, &Vec::from_iter(0..=u8::MAX), 1 << 10).unwrap() {
            let read = OrderedLeaves::read(view, &Keccak, &firsts, &Err).unwrap();
            for first in firsts {
                for under in read.take(first).stems() {
                    let values = under.values(view, HeaderLayout::default()).unwrap();
                    let values = values.into_iter();
                    leaves.extend(values.map(|(suffix, value)| ((under.stem, suffix), value)));
                }
            }
        }
        leaves
    }

    #[test]
    fn leaves_are_a_function_of_the_flat_records_under_any_hash() {
        let (mut versions, mut leaves) = (database(), BTreeMap::new());
        let mut names = BTreeMap::new();
        let slots = [(0, 0, 1), (63, 0, 2), (64, 0, 3), (65, 0, 4), (1_000, 0, 5)];
        let blocks = [
            changes(&[
                (1, [None, Some(7)], &slots),
                (2, [None, Some(8)], &[]),
                (3, [None, Some(9)], &slots[2..]),
            ]),
            // Slots are cleared, an account with code and slots is removed, another one is new.
            changes(&[
                (1, [Some(7), Some(0)], &[(63, 2, 0), (1_000, 5, 6)]),
                (3, [Some(9), None], &[]),
                (4, [None, Some(1)], &[(256, 0, 1)]),
            ]),
            changes(&[(3, [None, Some(2)], &[(64, 0, 9)])]),
        ];
        for block in &blocks {
            apply(&mut versions, &mut leaves, &mut names, block);
            let all: Vec<Leaf> = leaves.iter().map(|(key, value)| (*key, *value)).collect();
            assert_eq!(in_order(&versions), all);
            let view = versions.view();
            let reader = Leaves {
                flat: &view,
                view,
                layout: HeaderLayout::default(),
            };
            for (stem, name) in &names {
                let under = reader.under(name).unwrap().into_iter();
                let under = under.map(|(suffix, value)| ((*stem, suffix), value));
                let own = all.iter().filter(|((of, _), _)| of == stem).copied();
                assert!(under.eq(own), "{name:?}");
            }
        }
        // The code takes more than one stem.
        assert!(names.len() > 6);
    }
}
