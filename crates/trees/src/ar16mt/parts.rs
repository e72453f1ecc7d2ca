//! Going back to an older version by parts of the tree, so that not all that changed since is in memory at once.

use std::ops::{Deref, RangeInclusive};

use arbor_tree::{Hash, Path};
use arbor_tree_ar16mt::{Entry, apply, root};
use arbor_versions::{Meta, Version, View};

use super::failed;
use super::nodes::{AtHead, Standing, Undone};
use super::records::{decode_leaf, leaf_key};
use super::settings::with_hasher;
use super::{Ar16mt, LEAVES};
use arbor_state_tree::StateError;
use arbor_state_tree::{FlatEntries, overlaid};
use arbor_state_tree::{Then, own};

/// Changes of a part, about. They and what becomes of them take some 300 bytes each.
#[cfg(not(test))]
const CHANGES_OF_A_PART: u64 = 1 << 17;
#[cfg(test)]
const CHANGES_OF_A_PART: u64 = 1 << 4;

/// First bytes of keys, one part behind the other: each has about so many of the changes since a version as may be together, or is that of one byte.
fn parts(view: View<'_>, version: Version) -> Result<Vec<RangeInclusive<u8>>, StateError> {
    let head = view.head().map_or(0, |head| head.version.0);
    let mut changes: u64 = 0;
    for later in version.0 + 1..=head {
        changes = changes.saturating_add(view.changes_of(Version(later))?);
    }
    let parts = (changes / CHANGES_OF_A_PART + 1).min(256) as usize;
    let part = |at: usize| (at * 256 / parts) as u8..=((at + 1) * 256 / parts - 1) as u8;
    Ok((0..parts).map(part).collect())
}

impl Undone {
    /// Goes back from the head to an older version, and keeps only those nodes that are on the ways of some keys: all that their proofs take.
    fn on_ways(head: AtHead<'_>, to: &Meta, keys: &[Hash]) -> Result<Self, StateError> {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        let on_way = |path: &Path| {
            let after = keys.partition_point(|key| key[..] < *path.packed());
            keys.get(after).is_some_and(|key| path.is_prefix_of(key))
        };
        let AtHead { view, ar16mt } = head;
        let mut undone = Self::default();
        for part in parts(view, to.version)? {
            let undo = view.undo_since_part(to.version, LEAVES, part.clone())?;
            // The parts before are back already.
            let now = |table, key: &[u8]| match key.first() < Some(part.start()) {
                true => Ok(view.get_at(to.version, table, key)?),
                false => Ok(view.get(table, key)?),
            };
            let updates = Self::updates_to(&undo, &now)?;
            drop(undo);
            let standing = Standing {
                head,
                undone: &undone,
                now: &now,
            };
            let update = with_hasher!(ar16mt, hasher => apply(&standing, hasher, &updates))
                .map_err(failed)?;
            undone.take(update.nodes);
            // Of a path of two nibbles and more all leaves are in one part.
            undone.keep(|path| path.len() < 2 || path.packed()[0] > *part.end() || on_way(path));
        }
        let now = |table, key: &[u8]| Ok(view.get_at(to.version, table, key)?);
        let standing = Standing {
            head,
            undone: &undone,
            now: &now,
        };
        let actual = with_hasher!(ar16mt, hasher => root(&standing, hasher)).map_err(failed)?;
        if actual != to.root {
            return Err(StateError::RebuiltRoot {
                version: to.version.0,
                expected: to.root.into(),
                actual: actual.into(),
            });
        }
        Ok(undone)
    }
}

/// Nodes of an older version: those on the ways of some keys at least.
pub(super) enum Ways<'s> {
    All(&'s Undone),
    Own(Undone),
}

impl Deref for Ways<'_> {
    type Target = Undone;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::All(undone) => undone,
            Self::Own(undone) => undone,
        }
    }
}

impl<'s> Ways<'s> {
    /// The nodes on the ways of some keys. The first call keeps no others, which would take memory for
    /// all that changed since; from the second on they are rebuilt once for all.
    pub(super) fn of(
        ar16mt: Ar16mt,
        then: &'s dyn Then,
        keys: &[Hash],
    ) -> Result<Self, StateError> {
        if then.is_proven_again() {
            return Ok(Self::All(own(then.nodes()?)));
        }
        let view = then.view();
        Undone::on_ways(AtHead { view, ar16mt }, then.meta(), keys).map(Self::Own)
    }
}

/// The leaves of an older version from one key to another, both included, ascending.
pub(super) fn leaves_between<'s>(
    state: &'s dyn Then,
    (from, to): (Hash, Hash),
) -> Result<impl Iterator<Item = Result<(Hash, Entry), StateError>> + 's, StateError> {
    let (view, version) = (state.view().newest(), state.meta().version);
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let of_part = move |part: RangeInclusive<u8>| -> Result<FlatEntries<'s>, StateError> {
        let (first, last) = (part.start().max(&from[0]), part.end().min(&to[0]));
        if first > last {
            return Ok(Box::new(std::iter::empty()));
        }
        let mut begin = [0; 32];
        begin[0] = *first;
        let begin = begin.max(from);
        let undo = view.undo_since_part(version, LEAVES, *first..=*last)?;
        let undo = undo.into_iter().map(|write| (write.key, write.value));
        let last = *last;
        let within = move |key: &[u8]| key <= &to[..] && key.first() <= Some(&last);
        let above = undo.filter(move |(key, _)| key[..] >= begin[..] && within(key));
        let head = view.scan(LEAVES, &begin[..shared], &begin)?;
        let head = head.map(|entry| entry.map_err(StateError::from));
        let head = head.take_while(move |entry| match entry {
            Ok((key, _)) => within(key),
            Err(_) => true,
        });
        Ok(overlaid(head, above))
    };
    let entries = parts(view, version)?.into_iter().flat_map(move |part| {
        of_part(part).unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
    });
    Ok(entries.map(|entry| {
        let (key, bytes) = entry?;
        let key = leaf_key(&key)?;
        Ok((key, decode_leaf(&key, &bytes)?))
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use alloy_primitives::{B256, keccak256};
    use arbor_store::MemoryStore;
    use arbor_tree_ar16mt::{Blake2s, prove};
    use arbor_versions::Options;

    use super::super::AR16MT;
    use super::*;
    use crate::ar16mt::LeafWrite;
    use arbor_state::{BlockRef, Network, State};
    use arbor_state_tree::Flat;

    type Leaves = BTreeMap<Hash, Entry>;

    const BLOCKS: u64 = 6;
    const OF_BLOCK: u64 = 60;

    fn key(index: u64) -> Hash {
        keccak256(index.to_be_bytes()).0
    }

    /// Blocks of new leaves that change some of those before; what there is after each.
    fn state() -> (State, Vec<Leaves>) {
        let network = Network {
            chain_id: 5,
            genesis_hash: B256::ZERO,
        };
        let (store, tree) = (Arc::new(MemoryStore::default()), AR16MT.tree());
        let mut state = State::open(store, None, tree, network, Options::default()).expect("made");
        let (mut leaves, mut after) = (Leaves::new(), Vec::new());
        for number in 0..BLOCKS {
            let new = number * OF_BLOCK + 1..=(number + 1) * OF_BLOCK;
            let old = (1..=number * OF_BLOCK).filter(|index| index % 7 == number % 7);
            let writes: Vec<LeafWrite> = new
                .chain(old)
                .map(|index| LeafWrite {
                    key: key(index),
                    index,
                    value: [number as u8 + 1; 32],
                })
                .collect();
            let entry = |write: &LeafWrite| {
                let (index, value) = (write.index, write.value);
                (write.key, Entry { index, value })
            };
            leaves.extend(writes.iter().map(entry));
            let (computed, _) = state.leaves().unwrap().compute(&writes).expect("computed");
            let block = BlockRef {
                number,
                hash: B256::ZERO,
                record: Vec::new(),
            };
            state.commit(&block, computed).expect("committed");
            after.push(leaves.clone());
        }
        (state, after)
    }

    /// All that changed since was in memory, several times over: half a gigabyte at 1.8 million leaves, whatever was proven.
    #[test]
    fn a_proof_of_an_older_version_keeps_the_nodes_on_its_ways_alone() {
        let (state, after) = state();
        let view = state.reader().view();
        let ar16mt = Ar16mt::default();
        assert!(parts(view, Version(0)).expect("read").len() > 5);
        let keys = [key(3), key(10), [0; 32], key(BLOCKS * OF_BLOCK)];
        for number in 0..BLOCKS {
            let then = state.at(Version(number)).expect("retained");
            let now = |table, key: &[u8]| then.value(table, key);
            let head = AtHead { view, ar16mt };
            let proofs = |undone: &Undone| {
                let standing = Standing {
                    head,
                    undone,
                    now: &now,
                };
                prove(&standing, Blake2s::new(), &keys).expect("proven")
            };
            let ways = Ways::of(ar16mt, &then, &keys).expect("went back");
            let mut whole = Undone::default();
            let undo = view.undo_since(Version(number)).expect("retained");
            let at_head = |table, key: &[u8]| Ok(view.get(table, key)?);
            whole
                .step(head, then.meta(), &undo, &at_head)
                .expect("went back at once");
            let found = proofs(&ways);
            assert_eq!(found, proofs(&whole), "version {number}");
            for (key, proof) in keys.iter().zip(&found) {
                assert_eq!(proof.entry, after[number as usize].get(key).copied());
                let root = proof.root(Blake2s::new(), key);
                assert_eq!(root, Some(then.meta().root));
            }
            let others = |path: &Path| !keys.iter().any(|key| path.is_prefix_of(key));
            // Whoever proves more has all nodes rebuilt once, not for each proof.
            assert!(matches!(ways, Ways::Own(_)));
            let all = Ways::of(ar16mt, &then, &keys[..1]).expect("went back");
            assert!(matches!(all, Ways::All(_)));
            assert_eq!(found, proofs(&all), "version {number}");
            let kept = ways.count(|path| path.len() > 1 && others(path));
            assert_eq!(kept, 0, "version {number}");
            assert!(number + 1 == BLOCKS || whole.count(others) > 16);
        }
    }

    #[test]
    fn leaves_of_an_older_version_come_part_by_part() {
        let (state, after) = state();
        let inner = |first, last| {
            let mut ends = [[0x11; 32], [0xee; 32]];
            (ends[0][0], ends[1][0]) = (first, last);
            (ends[0], ends[1])
        };
        for number in 0..BLOCKS {
            let then = state.at(Version(number)).expect("retained");
            let leaves = &after[number as usize];
            let mut keys = leaves.keys();
            let (first, second) = (*keys.next().expect("many"), *keys.next().expect("many"));
            for (from, to) in [
                ([0; 32], [u8::MAX; 32]),
                (first, second),
                (second, second),
                inner(0x20, 0x2f),
                inner(0x2c, 0x2c),
                inner(0x01, 0xd7),
            ] {
                let found = leaves_between(&then, (from, to)).expect("begun");
                let found: Vec<(Hash, Entry)> = found.map(|leaf| leaf.expect("read")).collect();
                let wanted = leaves.range(from..=to).map(|(key, entry)| (*key, *entry));
                assert!(wanted.eq(found), "version {number}, {from:?}");
            }
        }
    }
}
