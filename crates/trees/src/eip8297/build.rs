//! Building a whole state in parts: ranges of names, then ranges of the hashes that keys have after
//! their zone.
//!
//! A leaf is sorted by its hash: that of its account, or of its group of chunks of code. A part has
//! the leaves whose hashes begin with one byte, so it is three subtrees, one in each zone. The value
//! of a leaf of an account begins with the zone and the rest of the key after the hash: the suffix, or
//! the hash of a group of slots and the suffix. The leaf's value follows, without leading zeros. The
//! chunks of a code are read from the table of codes later, so a group of them is a single entry: the
//! zone, the code's hash (32 bytes), the number of the group (4), and how many of the accounts that
//! were spread together have the code (8). Integers are big-endian.

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{
    ACCOUNTS, Build, BuiltPart, Joined, KeyedAccount, LoadedCodes, NumberedLeaf, SLOTS, Spread,
    SpreadLeaf, StateError, corrupt,
};
use arbor_store::Write;
use arbor_tree::Hash;
use arbor_tree_eip8297::{Builder, LeafUpdate, Part, Path, join};
use arbor_verify::eip8297::{
    CODE_ZONE, Code, FIELDS, HEADER_ZONE, STORAGE_ZONE, code_key, header_key,
};
use arbor_verify::stems::chunk_code;
use arbor_versions::View;

use super::load::account_record;
use super::records::{encode_slot, encode_users};
use super::{CODE_USERS, Eip8297, failed};
use crate::binary::node_write;
use crate::named_records::slot_key;
use crate::stems::stored_code;

/// Bits that the keys of a zone share within a part: the zone, and the first byte of the hash.
const SHARED: usize = 16;
/// The zones, ascending.
const ZONES: [u8; 3] = [HEADER_ZONE, CODE_ZONE, STORAGE_ZONE];
/// Bytes of code in a chunk, and chunks in a group.
const CHUNK: u32 = 31;
const GROUP: u32 = 256;

/// The entry of a leaf, by its whole key.
fn entry(key: &Path, value: &Hash) -> SpreadLeaf {
    let bytes = key.packed();
    let mut hash = [0; 32];
    hash.copy_from_slice(&bytes[1..33]);
    let zeros = value.iter().take_while(|byte| **byte == 0).count();
    SpreadLeaf {
        key: hash,
        value: [&bytes[..1], &bytes[33..], &value[zeros..]].concat(),
    }
}

impl Build for Eip8297 {
    fn spread(
        &self,
        accounts: Vec<KeyedAccount>,
        codes: &LoadedCodes<'_>,
    ) -> Result<Spread, StateError> {
        let embedding = self.embedding();
        let addresses: Vec<Address> = accounts.iter().map(|account| account.address).collect();
        let hashes = embedding.accounts(&addresses);
        let (mut records, mut slots) = (Vec::with_capacity(accounts.len()), Vec::new());
        let (mut names, mut values, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        let mut users: BTreeMap<B256, (u32, u64)> = BTreeMap::new();
        for (account, hash) in accounts.into_iter().zip(hashes) {
            let record = account_record(&account, codes)?;
            let address = account.address;
            if let Code::Bytes(size) = record.code {
                users.entry(record.account.code_hash).or_insert((size, 0)).1 += 1;
            }
            let fields = FIELDS.into_iter().zip(record.fields(address)?);
            let fields = fields.filter(|(_, value)| *value != [0; 32]);
            leaves.extend(fields.map(|(suffix, value)| entry(&header_key(&hash, suffix), &value)));
            records.push(Write {
                table: ACCOUNTS,
                key: address.as_slice().into(),
                value: Some(record.encode()),
            });
            for slot in account.slots {
                let Some(value) = encode_slot(slot.value) else {
                    continue;
                };
                names.push((hash, address, slot.slot));
                values.push(slot.value.to_be_bytes());
                slots.push(Write {
                    table: SLOTS,
                    key: slot_key(address, slot.slot).into(),
                    value: Some(value),
                });
            }
        }
        let keys = embedding.slots(&names);
        leaves.extend(
            keys.iter()
                .zip(&values)
                .map(|(key, value)| entry(key, value)),
        );
        let groups = users.iter().flat_map(|(code, (size, users))| {
            let groups = size.div_ceil(CHUNK).div_ceil(GROUP);
            (0..groups).map(move |group| ((*code, group), *users))
        });
        let (names, users): (Vec<(B256, u32)>, Vec<u64>) = groups.unzip();
        let groups = embedding.code_groups(&names).into_iter().zip(&names);
        leaves.extend(groups.zip(users).map(|((key, (code, group)), users)| {
            let (group, users) = (group.to_be_bytes(), users.to_be_bytes());
            let value = [&[CODE_ZONE], &code[..], &group, &users].concat();
            SpreadLeaf { key, value }
        }));
        Ok(Spread {
            records: vec![records, slots],
            leaves,
        })
    }

    fn part(
        &self,
        view: View<'_>,
        first: u8,
        leaves: Vec<NumberedLeaf>,
    ) -> Result<BuiltPart, StateError> {
        let mut nodes = Vec::new();
        let mut builders = zone_builders(*self);
        for group in leaves.chunk_by(|a, b| a.key == b.key) {
            let mut zones = ZONES.map(|_| Vec::new());
            let mut users = BTreeMap::new();
            for leaf in group {
                if leaf.key[0] != first {
                    return Err(malformed(leaf));
                }
                match leaf.value.first() {
                    Some(&HEADER_ZONE) => zones[0].push(account_leaf(leaf, 34)?),
                    Some(&STORAGE_ZONE) => zones[2].push(account_leaf(leaf, 66)?),
                    Some(&CODE_ZONE) => {
                        let (code, of_leaf) = code_group(leaf)?;
                        *users.entry(code).or_default() += of_leaf;
                    }
                    _ => return Err(malformed(leaf)),
                }
            }
            for ((code, number), users) in users {
                zones[1].extend(code_leaves(view, &group[0].key, code, number)?);
                // Every code has a first group.
                if number == 0 {
                    nodes.push(Write {
                        table: CODE_USERS,
                        key: code.as_slice().into(),
                        value: encode_users(users),
                    });
                }
            }
            let mut sink =
                |path: Path, record: Arc<[u8]>| nodes.push(node_write(&path, Some(record)));
            for (builder, mut leaves) in builders.iter_mut().zip(zones) {
                leaves.sort_unstable_by_key(|leaf| leaf.key);
                for leaf in leaves {
                    builder
                        .add(leaf.key, leaf.value, &mut sink)
                        .map_err(failed)?;
                }
            }
        }
        let mut sink = |path: Path, record: Arc<[u8]>| nodes.push(node_write(&path, Some(record)));
        let part = finish_zones(builders, &mut sink)?;
        Ok(BuiltPart {
            records: Vec::new(),
            nodes,
            part,
        })
    }

    fn join(&self, parts: Vec<Vec<u8>>, _: u64) -> Result<Joined, StateError> {
        let mut writes = Vec::new();
        let mut sink = |path: Path, record: Arc<[u8]>| writes.push(node_write(&path, Some(record)));
        let root = join_zones(*self, parts.iter().map(|part| &part[..]), &mut sink)?;
        Ok(Joined { writes, root })
    }
}

/// The builders of the zones of a part.
pub(super) type ZoneBuilders = [Builder; 3];

/// Begins the three subtrees of a part, in the order of [`ZONES`].
pub(super) fn zone_builders(tree: Eip8297) -> ZoneBuilders {
    ZONES.map(|_| Builder::part(tree.hasher, tree.packing, SHARED))
}

/// Ends the subtrees of a part, and returns their bytes.
pub(super) fn finish_zones(
    builders: ZoneBuilders,
    sink: &mut dyn FnMut(Path, Arc<[u8]>),
) -> Result<Vec<u8>, StateError> {
    let mut part = Vec::new();
    for builder in builders {
        let zone = builder.finish_part(sink).map_err(failed)?.encode();
        part.extend((zone.len() as u32).to_be_bytes());
        part.extend(zone);
    }
    Ok(part)
}

/// Makes the nodes above all parts, which ascend, and returns the root.
pub(super) fn join_zones<'a>(
    tree: Eip8297,
    parts: impl Iterator<Item = &'a [u8]>,
    sink: &mut dyn FnMut(Path, Arc<[u8]>),
) -> Result<B256, StateError> {
    let mut by_zone = ZONES.map(|_| Vec::with_capacity(256));
    for bytes in parts {
        let zones = decode_zones(bytes);
        let zones = zones.ok_or_else(|| corrupt("parts", bytes, "not a part of the tree"))?;
        for (all, zone) in by_zone.iter_mut().zip(zones) {
            all.push(zone);
        }
    }
    let parts: Vec<Part> = by_zone.into_iter().flatten().collect();
    let root = join(tree.hasher, tree.packing, &parts, sink).map_err(failed)?;
    Ok(root.into())
}

fn malformed(leaf: &NumberedLeaf) -> StateError {
    corrupt("parts", &leaf.key, "not a leaf of the tree")
}

/// Reads a leaf of an account, whose key has so many bytes.
fn account_leaf(leaf: &NumberedLeaf, bytes: usize) -> Result<LeafUpdate, StateError> {
    let read = || {
        let (rest, number) = leaf.value.split_at_checked(bytes - 32)?;
        let key = Path::of_key(&[&rest[..1], &leaf.key, &rest[1..]].concat()).ok()?;
        let value = U256::try_from_be_slice(number)?.to_be_bytes();
        Some(LeafUpdate { key, value })
    };
    read().ok_or_else(|| malformed(leaf))
}

/// Reads an entry of code: the code's hash, the number of the group, and how many accounts have the code.
fn code_group(leaf: &NumberedLeaf) -> Result<((B256, u32), u64), StateError> {
    let read = || {
        let (code, rest) = leaf.value.get(1..)?.split_first_chunk::<32>()?;
        let (group, users) = rest.split_first_chunk()?;
        let users = u64::from_be_bytes(users.try_into().ok()?);
        Some(((code.into(), u32::from_be_bytes(*group)), users))
    };
    read().ok_or_else(|| malformed(leaf))
}

/// The leaves of a group of chunks, ascending.
fn code_leaves(
    view: View<'_>,
    hash: &Hash,
    code: B256,
    group: u32,
) -> Result<impl Iterator<Item = LeafUpdate>, StateError> {
    let chunks = chunk_code(&stored_code(view, code)?);
    let chunks = chunks.into_iter().skip((GROUP * group) as usize);
    let hash = *hash;
    let leaves = (0..=u8::MAX)
        .zip(chunks)
        .map(move |(suffix, value)| LeafUpdate {
            key: code_key(&hash, suffix),
            value,
        });
    Ok(leaves)
}

fn decode_zones(mut bytes: &[u8]) -> Option<[Part; 3]> {
    let mut zone = || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (zone, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        bytes = rest;
        Part::decode(zone)
    };
    let zones = [zone()?, zone()?, zone()?];
    bytes.is_empty().then_some(zones)
}
