//! Building a whole state in parts: ranges of names, which number the leaves, then ranges of keys.

use super::failed;
use alloy_primitives::U256;
use arbor_state_tree::{
    Build, BuiltPart, Joined, KeyedAccount, LoadedCodes, NumberedLeaf, Spread, SpreadLeaf,
    StateError, corrupt,
};
use arbor_store::Write;
use arbor_tree::{Hash, Path};
use arbor_tree_ar16mt::{Entry, Part, build_part, join};
use arbor_verify::ar16mt::{fields, padded, trimmed};
use arbor_versions::View;

use super::compute::{after, name_write};
use super::names::{LeafName, Named};
use super::nodes::node_write;
use super::records::{encode_counter, encode_leaf};
use super::settings::with_hasher;
use super::{Ar16mt, COUNTER, LEAVES, NEXT_INDEX};

/// Names whose keys are hashed together.
const NAMES_HASHED_TOGETHER: usize = 1 << 12;

/// The leaves of an account that are not zero, in the order in which they are numbered.
pub(super) fn account_leaves(account: KeyedAccount) -> Vec<(LeafName, Hash)> {
    let KeyedAccount {
        address,
        account,
        slots,
        ..
    } = account;
    let [nonce, balance, code_hash] = fields(Some(account));
    let own = [
        (LeafName::Nonce(address), nonce),
        (LeafName::Balance(address), balance),
        (LeafName::CodeHash(address), code_hash),
    ];
    let slots = slots.into_iter();
    let slots = slots.map(move |slot| {
        let name = LeafName::Slot(address, slot.slot);
        (name, U256::to_be_bytes(&slot.value))
    });
    let leaves = own.into_iter().chain(slots);
    leaves.filter(|(_, value)| *value != [0; 32]).collect()
}

fn part_of(bytes: &[u8]) -> Result<Part, StateError> {
    Part::decode(bytes).ok_or_else(|| corrupt("parts", bytes, "not a part of the tree"))
}

impl Build for Ar16mt {
    fn spread(
        &self,
        accounts: Vec<KeyedAccount>,
        codes: &LoadedCodes<'_>,
    ) -> Result<Spread, StateError> {
        for account in &accounts {
            codes.size(account.address, &account.account)?;
        }
        let leaves: Vec<(LeafName, Hash)> = accounts.into_iter().flat_map(account_leaves).collect();
        let mut spread = Spread::default();
        let mut names = Vec::with_capacity(leaves.len());
        for together in leaves.chunks(NAMES_HASHED_TOGETHER) {
            let of: Vec<LeafName> = together.iter().map(|(name, _)| *name).collect();
            for ((name, value), key) in together.iter().zip(LeafName::keys(&of)) {
                names.extend(Named::of(*name).map(|named| name_write(named, &key)));
                let value = trimmed(value).to_vec();
                spread.leaves.push(SpreadLeaf { key, value });
            }
        }
        spread.records = vec![names];
        Ok(spread)
    }

    fn part(
        &self,
        _: View<'_>,
        first: u8,
        leaves: Vec<NumberedLeaf>,
    ) -> Result<BuiltPart, StateError> {
        let entries = leaves.into_iter().map(|leaf| {
            let value = padded(&leaf.value);
            let value = value
                .ok_or_else(|| corrupt("parts", &leaf.key, "a value of more than 32 bytes"))?;
            let index = after(leaf.number)?;
            Ok((leaf.key, Entry { index, value }))
        });
        let entries: Vec<(Hash, Entry)> = entries.collect::<Result<_, StateError>>()?;
        let records: Vec<Write> = (entries.iter())
            .map(|(key, entry)| Write {
                table: LEAVES,
                key: (*key).into(),
                value: Some(encode_leaf(entry)),
            })
            .collect();
        let path = Path::from_nibbles(&[first >> 4, first & 15]);
        let mut nodes = Vec::new();
        let mut sink = |path, record| nodes.push(node_write(path, Some(record)));
        let part = with_hasher!(*self, hasher => build_part(hasher, (path, entries), &mut sink))
            .map_err(failed)?;
        let part = part.encode();
        Ok(BuiltPart {
            records,
            nodes,
            part,
        })
    }

    fn join(&self, parts: Vec<Vec<u8>>, leaves: u64) -> Result<Joined, StateError> {
        let parts: Vec<Part> = parts
            .iter()
            .map(|part| part_of(part))
            .collect::<Result<_, _>>()?;
        let mut writes = vec![Write {
            table: COUNTER,
            key: NEXT_INDEX.into(),
            value: Some(encode_counter(after(leaves)?)),
        }];
        let mut sink = |path, record| writes.push(node_write(path, Some(record)));
        let mut upper = Vec::with_capacity(16);
        for (nibble, parts) in (0..16).zip(parts.chunks(16)) {
            let path = Path::from_nibbles(&[nibble]);
            upper.push(
                with_hasher!(*self, hasher => join(hasher, path, parts, &mut sink))
                    .map_err(failed)?,
            );
        }
        let path = Path::from_nibbles(&[]);
        let root = with_hasher!(*self, hasher => {
            join(hasher, path, &upper, &mut sink).map(|part| part.hash(hasher))
        })
        .map_err(failed)?;
        let root = root.into();
        Ok(Joined { writes, root })
    }
}
