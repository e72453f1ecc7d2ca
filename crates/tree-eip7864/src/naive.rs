//! The tree by its definition: all 256 values of each stem, all internal nodes, and every root
//! computed from nothing.

use std::collections::BTreeMap;

use arbor_tree_binary::HashFunction;

use crate::{Hash, Stem};

/// The root of a tree with these values by key.
#[must_use]
pub fn root(function: HashFunction, values: &BTreeMap<[u8; 32], Hash>) -> Hash {
    let mut stems: BTreeMap<Stem, [Option<Hash>; 256]> = BTreeMap::new();
    for ([stem @ .., suffix], value) in values {
        stems.entry(*stem).or_insert([None; 256])[usize::from(*suffix)] = Some(*value);
    }
    let stems = stems.into_iter();
    let stems: Vec<(Stem, Hash)> = stems
        .map(|(stem, values)| (stem, stem_node(function, &stem, &values)))
        .collect();
    node(function, &stems, 0)
}

fn stem_node(function: HashFunction, stem: &Stem, values: &[Option<Hash>; 256]) -> Hash {
    let value = |value: &Option<Hash>| value.map_or([0; 32], |value| function.hash(&value));
    let mut level: Vec<Hash> = values.iter().map(value).collect();
    while level.len() > 1 {
        let pairs = level.chunks(2);
        level = pairs.map(|pair| parent(function, pair)).collect();
    }
    function.hash(&[&stem[..], &[0], &level[0]].concat())
}

/// The node below which these stems are, which share this many first bits.
fn node(function: HashFunction, stems: &[(Stem, Hash)], depth: usize) -> Hash {
    match stems {
        [] => [0; 32],
        [(_, hash)] => *hash,
        several => {
            let is_zero = |(stem, _): &(Stem, Hash)| stem[depth / 8] >> (7 - depth % 8) & 1 == 0;
            let (left, right) = several.split_at(several.partition_point(is_zero));
            let children = [left, right].map(|stems| node(function, stems, depth + 1));
            parent(function, &children)
        }
    }
}

fn parent(function: HashFunction, children: &[Hash]) -> Hash {
    match children.iter().all(|child| *child == [0; 32]) {
        true => [0; 32],
        false => function.hash(&children.concat()),
    }
}
