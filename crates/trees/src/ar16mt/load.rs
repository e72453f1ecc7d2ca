//! Building a whole state at once: leaves numbered in the order of names, then the tree in the order of
//! keys, bottom-up.

use arbor_store::Write;
use arbor_tree::{Hash, Path};
use arbor_tree_ar16mt::{Entry, Part, build_part, join};
use arbor_versions::{Changes, Versions};
use rayon::prelude::*;

use super::build::account_leaves;
use super::compute::{after, name_write};
use super::failed;
use super::names::{LeafName, Named};
use super::nodes::node_write;
use super::records::{encode_counter, encode_leaf};
use super::settings::with_hasher;
use super::{Ar16mt, COUNTER, LEAVES, NEXT_INDEX};
use crate::node_load::NodeLoad;
use arbor_state_tree::{AccountSource, KeyedAccount};
use arbor_state_tree::{Computed, LoadedCodes, StateError};

/// Names whose keys are hashed together.
const NAMES_HASHED_TOGETHER: usize = 1 << 12;

type Leaf = (Hash, Entry);

/// Fills an empty database with a whole state.
///
/// The source is read once, by address. All leaves are in memory, 72 bytes each, because they are
/// numbered in one order and stored in another.
pub(super) fn load(
    ar16mt: Ar16mt,
    versions: &mut Versions,
    source: &dyn AccountSource,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Computed, StateError> {
    /// The names, and each first byte of keys.
    const PARTS: u64 = 1 + 256;
    let codes = LoadedCodes::of(source);
    let mut numbering = Numbering {
        next: 1,
        leaves: Vec::new(),
        waiting: Vec::new(),
    };
    let mut failed = None;
    {
        let numbering = &mut numbering;
        let mut accounts = source.stream(None)?;
        let mut next = || -> Result<Vec<Write>, StateError> {
            while numbering.waiting.len() < NAMES_HASHED_TOGETHER {
                let Some(account) = accounts.next() else {
                    break;
                };
                let account = account?;
                codes.size(account.address, &account.account)?;
                numbering.add(account);
            }
            numbering.hash_waiting()
        };
        let names = std::iter::from_fn(|| {
            let names = next().map_err(|error| failed = Some(error)).ok()?;
            (!names.is_empty()).then_some(names)
        });
        versions.load(&mut names.flatten())?;
    }
    if let Some(error) = failed {
        return Err(error);
    }
    codes.store(versions)?;
    progress(1, PARTS);

    let Numbering {
        next, mut leaves, ..
    } = numbering;
    leaves.par_sort_unstable_by_key(|(key, _)| *key);
    let mut records = leaves.iter().map(|(key, entry)| Write {
        table: LEAVES,
        key: (*key).into(),
        value: Some(encode_leaf(entry)),
    });
    versions.load(&mut records)?;
    let counter = Write {
        table: COUNTER,
        key: NEXT_INDEX.into(),
        value: Some(encode_counter(next)),
    };
    versions.load(&mut std::iter::once(counter))?;

    let root = build_nodes(ar16mt, versions, &leaves, &|done| progress(1 + done, PARTS))?;
    Ok(Computed::of_load(root.into(), Changes::default()))
}

/// Gives leaves their numbers, in the order of names.
struct Numbering {
    next: u64,
    leaves: Vec<Leaf>,
    /// Names and values that have no key yet.
    waiting: Vec<(LeafName, Hash)>,
}

impl Numbering {
    fn add(&mut self, account: KeyedAccount) {
        self.waiting.extend(account_leaves(account));
    }

    /// Numbers the leaves that wait, and returns the writes of their names.
    fn hash_waiting(&mut self) -> Result<Vec<Write>, StateError> {
        let waiting = std::mem::take(&mut self.waiting);
        let names: Vec<LeafName> = waiting.iter().map(|(name, _)| *name).collect();
        let mut writes = Vec::with_capacity(names.len());
        for ((name, value), key) in waiting.into_iter().zip(LeafName::keys(&names)) {
            let index = self.next;
            self.next = after(index)?;
            writes.extend(Named::of(name).map(|named| name_write(named, &key)));
            self.leaves.push((key, Entry { index, value }));
        }
        Ok(writes)
    }
}

/// Builds all nodes from the leaves, ascending by key, and returns the root.
fn build_nodes(
    ar16mt: Ar16mt,
    versions: &mut Versions,
    leaves: &[Leaf],
    done: &dyn Fn(u64),
) -> Result<Hash, StateError> {
    let mut load = NodeLoad::default();
    let mut upper = Vec::with_capacity(16);
    for first in 0..16u8 {
        // The sixteen parts whose paths begin with this nibble.
        let built = (first << 4..=first << 4 | 15).into_par_iter().map(|byte| {
            let begin = leaves.partition_point(|(key, _)| key[0] < byte);
            let count = leaves[begin..].partition_point(|(key, _)| key[0] == byte);
            let own = leaves[begin..begin + count].iter().copied();
            let path = Path::from_nibbles(&[byte >> 4, byte & 15]);
            let mut nodes = Vec::new();
            let mut sink = |path, record| nodes.push(node_write(path, Some(record)));
            let part = with_hasher!(ar16mt, hasher => build_part(hasher, (path, own), &mut sink))
                .map_err(failed)?;
            Ok((part, nodes))
        });
        let built: Result<Vec<(Part, Vec<Write>)>, StateError> = built.collect();
        let mut parts = Vec::with_capacity(16);
        for (part, nodes) in built? {
            parts.push(part);
            load.add(versions, nodes)?;
            done(u64::from(first) * 16 + parts.len() as u64);
        }
        let mut nodes = Vec::new();
        let mut sink = |path, record| nodes.push(node_write(path, Some(record)));
        let path = Path::from_nibbles(&[first]);
        upper.push(
            with_hasher!(ar16mt, hasher => join(hasher, path, &parts, &mut sink))
                .map_err(failed)?,
        );
        load.add(versions, nodes)?;
    }
    let mut nodes = Vec::new();
    let mut sink = |path, record| nodes.push(node_write(path, Some(record)));
    let path = Path::from_nibbles(&[]);
    let root = with_hasher!(ar16mt, hasher => {
        join(hasher, path, &upper, &mut sink).map(|part| part.hash(hasher))
    })
    .map_err(failed)?;
    load.add(versions, nodes)?;
    load.finish(versions)?;
    Ok(root)
}
