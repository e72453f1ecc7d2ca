//! Proving keys of a tree that does not change.

use arbor_hashing::blake2s::Chain;
use arbor_tree::{Path, nibble_of};

use super::LeafProof;
use crate::record::{STEM, STEM_NIBBLES};
use crate::row::{Row, Scratch, height, up_one};
use crate::work::decode;
use crate::{CHECKPOINT, Child, DEPTH, Entry, Hash, Hasher, Leaf, Reader, TreeError};

/// Proves what keys hold, in their order, whether they are there or not; a key may occur more than once.
///
/// Nodes are read level by level, each once.
///
/// # Errors
/// Missing or malformed nodes, a reader that fails.
pub fn prove<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    keys: &[Hash],
) -> Result<Vec<LeafProof>, TreeError> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|at| keys[*at]);
    // The hashes beside each key's way, from the root on.
    let mut ways: Vec<Vec<Hash>> = vec![Vec::new(); keys.len()];
    let mut met: Vec<(usize, Path, Leaf)> = Vec::new();
    let mut nodes = vec![(Path::ROOT, order)];
    while !nodes.is_empty() {
        nodes = level(reader, hasher, keys, nodes, &mut ways, &mut met)?;
    }
    let mut proofs: Vec<LeafProof> = ways
        .into_iter()
        .map(|path| LeafProof { entry: None, path })
        .collect();
    finish(reader, hasher, keys, &met, &mut proofs)?;
    for proof in &mut proofs {
        proof.path.reverse();
        let lowest = DEPTH - proof.path.len();
        let empty = hasher.empty()[lowest..].iter();
        let left_out = proof
            .path
            .iter()
            .zip(empty)
            .take_while(|(a, b)| a == b)
            .count();
        proof.path.drain(..left_out);
    }
    Ok(proofs)
}

/// Takes the keys below nodes of one level down to those of the next.
fn level<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    keys: &[Hash],
    nodes: Vec<(Path, Vec<usize>)>,
    ways: &mut [Vec<Hash>],
    met: &mut Vec<(usize, Path, Leaf)>,
) -> Result<Vec<(Path, Vec<usize>)>, TreeError> {
    let paths: Vec<Path> = nodes.iter().map(|(path, _)| *path).collect();
    let mut decoded = Vec::with_capacity(nodes.len());
    for (path, record) in paths.iter().zip(reader.nodes(&paths)?) {
        match record {
            Some(record) => decoded.push(decode(path, &record)?.children),
            None if path.is_empty() => return Ok(Vec::new()),
            None => return Err(TreeError::MissingNode(*path)),
        }
    }
    let mut rows: Vec<Row> = decoded.iter().map(|children| Row::of(children)).collect();
    let depth = paths[0].len();
    let siblings = Siblings::of(hasher, depth, &mut rows);
    let mut next = Vec::new();
    for (at, (path, mut below)) in nodes.into_iter().enumerate() {
        while let Some(first) = below.first() {
            let nibble = nibble_of(&keys[*first], depth);
            let rest = below
                .iter()
                .position(|key| nibble_of(&keys[*key], depth) != nibble);
            let rest = below.split_off(rest.unwrap_or(below.len()));
            for key in &below {
                ways[*key].extend(siblings.of_child(at, nibble));
            }
            let child = decoded[at].iter().find(|(n, _)| *n == nibble);
            match child {
                None => {}
                Some((_, Child::Internal(_))) => next.push((path.child(nibble), below)),
                Some((_, Child::Leaf(leaf))) => {
                    met.extend(below.iter().map(|key| (*key, path.child(nibble), *leaf)));
                }
            }
            below = rest;
        }
    }
    Ok(next)
}

/// Adds what the keys hold that end at a leaf, or the leaf beside them if it is another's.
fn finish<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    keys: &[Hash],
    met: &[(usize, Path, Leaf)],
    proofs: &mut [LeafProof],
) -> Result<(), TreeError> {
    let same_stem = |(key, _, leaf): &&(usize, Path, Leaf)| keys[*key].starts_with(&leaf.stem);
    let wanted: Vec<Path> = met
        .iter()
        .filter(same_stem)
        .map(|(_, path, leaf)| leaf.way(path))
        .collect();
    let mut stored = reader.leaves_below(&wanted)?.into_iter();
    for found in met {
        let (at, path, leaf) = found;
        let key = &keys[*at];
        let (other, entry) = if same_stem(&found) {
            let stored = stored.next().flatten();
            let stored = stored.ok_or(TreeError::MissingLeaf(*path))?;
            if stored.key == *key {
                proofs[*at].entry = Some(stored.entry);
                continue;
            }
            (stored.key, Some(stored.entry))
        } else {
            let mut stem = [0; 32];
            stem[..STEM].copy_from_slice(&leaf.stem);
            (stem, None)
        };
        let shared = shared_bits(key, &other);
        let way = &mut proofs[*at].path;
        way.extend((way.len()..shared).map(|level| hasher.empty()[DEPTH - level - 1]));
        way.push(lone(hasher, &other, leaf, entry, shared + 1, path.len()));
    }
    Ok(())
}

/// The hash of the subtree that has a leaf alone, so many bits below the root, which is at or below where the leaf hangs.
fn lone<H: Hasher>(
    hasher: H,
    key: &Hash,
    leaf: &Leaf,
    entry: Option<Entry>,
    level: usize,
    nibbles: usize,
) -> Hash {
    let (hash, from) = match entry {
        Some(entry) if level > CHECKPOINT || nibbles > STEM_NIBBLES => {
            (hasher.leaves(&[entry])[0], 0)
        }
        _ => (leaf.fold, DEPTH - CHECKPOINT),
    };
    let (key, to) = (*key, DEPTH - level);
    let mut chain = [Chain { key, hash, to }];
    hasher.fold(from, &mut chain);
    chain[0].hash
}

/// Leading bits that two keys share.
pub(crate) fn shared_bits(a: &Hash, b: &Hash) -> usize {
    match a.iter().zip(b).position(|(a, b)| a != b) {
        None => DEPTH,
        Some(at) => 8 * at + (a[at] ^ b[at]).leading_zeros() as usize,
    }
}

impl Row {
    /// The hashes of a node's children.
    fn of(children: &[(u8, Child)]) -> Self {
        let mut row = Self::default();
        for (nibble, child) in children {
            row.set(*nibble, *child.hash());
        }
        row
    }
}

/// The four rows of binary nodes within each of many nodes.
struct Siblings {
    /// Children, then pairs of them, then fours, then eights.
    rows: [Vec<[Hash; 16]>; 4],
}

impl Siblings {
    /// Those of nodes whose paths have so many nibbles.
    fn of<H: Hasher>(hasher: H, depth: usize, rows: &mut [Row]) -> Self {
        let from = height(depth + 1);
        let filled = |rows: &[Row], step: usize| -> Vec<[Hash; 16]> {
            let empty = hasher.empty()[from + step];
            let fill = |row: &Row| {
                std::array::from_fn(|i| match row.present >> i & 1 {
                    1 => row.hashes[i],
                    _ => empty,
                })
            };
            rows.iter().map(fill).collect()
        };
        let mut scratch = Scratch::default();
        let rows = [0, 1, 2, 3].map(|step| {
            let filled = filled(rows, step);
            up_one(hasher, from + step, rows, &mut scratch);
            filled
        });
        Self { rows }
    }

    /// The hashes beside the way to a child of a node, the topmost first.
    fn of_child(&self, node: usize, nibble: u8) -> [Hash; 4] {
        [3, 2, 1, 0].map(|step| self.rows[step][node][usize::from(nibble >> step) ^ 1])
    }
}
