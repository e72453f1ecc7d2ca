//! The way up: nodes that are not needed any more go, leaves are folded side by side, and nodes hashed level by level.

use arbor_hashing::blake2s::Chain;
use arbor_tree::Path;

use super::{FOLD_HEIGHT, Pending, Slot, Start, Work};
use crate::record::{STEM, STEM_NIBBLES, padded};
use crate::row::{Row, height, up};
use crate::{Child, Entry, Hash, Hasher, Leaf, Reader};

/// Nodes that are hashed together at most: their children fill a cache, and lanes are full long before.
const TOGETHER: usize = 256;

impl<R: Reader, H: Hasher> Work<'_, R, H> {
    /// Takes out nodes that have no child left, or one leaf alone; the root stays if it has any.
    pub(super) fn collapse(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            if node.only_read {
                continue;
            }
            let (place, is_root) = (node.place, node.path.is_empty());
            let slot = match node.children[..] {
                [] => None,
                [(nibble, Slot::Child(Child::Leaf(leaf)))] if !is_root => {
                    let path = node.path.child(nibble);
                    Some(self.lifted(&path, &leaf))
                }
                [(_, slot @ Slot::Pending(_))] if !is_root => Some(slot),
                _ => continue,
            };
            self.nodes[at].gone = true;
            self.set(place, slot);
        }
    }

    /// A leaf that goes up from where it was.
    fn lifted(&mut self, path: &Path, leaf: &Leaf) -> Slot {
        let (key, start) = if path.len() <= STEM_NIBBLES {
            (leaf.known_key(), Start::At(leaf.fold, FOLD_HEIGHT))
        } else {
            (padded(path), Start::At(leaf.hash, height(path.len())))
        };
        self.pending.push(Pending { key, start });
        Slot::Pending(self.pending.len() - 1)
    }

    /// Finishes all leaves that are pending and still have a place.
    pub(super) fn fold_leaves(&mut self) {
        // Pending leaves and the nibbles of their paths.
        let mut at: Vec<(usize, usize)> = Vec::with_capacity(self.pending.len());
        if let Some(Slot::Pending(pending)) = self.top {
            at.push((pending, self.top_path.len()));
        }
        for node in self.nodes.iter().filter(|node| !node.gone) {
            let nibbles = node.path.len() + 1;
            at.extend(node.children.iter().filter_map(|(_, slot)| match slot {
                Slot::Pending(pending) => Some((*pending, nibbles)),
                Slot::Child(_) | Slot::Node => None,
            }));
        }
        // Chains that go up together are to be of one length.
        at.sort_unstable_by_key(|(_, nibbles)| *nibbles);
        let leaves = self.folded(&at);
        let mut finished: Vec<Option<Leaf>> = vec![None; self.pending.len()];
        for ((pending, _), leaf) in at.iter().zip(leaves) {
            finished[*pending] = Some(leaf);
        }
        let finish = |slot: &mut Slot| {
            if let Slot::Pending(pending) = *slot
                && let Some(leaf) = finished[pending]
            {
                *slot = Slot::Child(Child::Leaf(leaf));
            }
        };
        self.top.iter_mut().for_each(finish);
        let nodes = self.nodes.iter_mut().filter(|node| !node.gone);
        nodes
            .flat_map(|node| &mut node.children)
            .for_each(|(_, slot)| finish(slot));
    }

    /// The leaves that pending ones come to at paths of so many nibbles.
    fn folded(&mut self, at: &[(usize, usize)]) -> Vec<Leaf> {
        let chain = |(pending, nibbles): &(usize, usize)| {
            let (to, key) = (
                height(*nibbles).min(FOLD_HEIGHT),
                self.pending[*pending].key,
            );
            let hash = [0; 32];
            Chain { key, hash, to }
        };
        let mut chains: Vec<Chain> = at.iter().map(chain).collect();
        // From the bottom to the checkpoint.
        let entries = at.iter().enumerate();
        let entries = entries.filter_map(|(i, (pending, _))| match self.pending[*pending].start {
            Start::Entry(entry) => Some((i, entry)),
            Start::At(..) => None,
        });
        let (places, entries): (Vec<usize>, Vec<Entry>) = entries.unzip();
        let hashes = self.hasher.leaves(&entries);
        let from_entries = places.iter().zip(hashes);
        let mut low: Vec<Chain> = from_entries
            .map(|(i, hash)| Chain { hash, ..chains[*i] })
            .collect();
        self.hasher.fold(0, &mut low);
        self.stats.leaf_hashes += low.len() as u64;
        self.stats.fold_hashes += low.iter().map(|chain| 1 + chain.to as u64).sum::<u64>();
        for (i, chain) in places.into_iter().zip(low) {
            chains[i] = chain;
        }
        for (chain, (pending, _)) in chains.iter_mut().zip(at) {
            if let Start::At(hash, from) = self.pending[*pending].start {
                chain.hash = hash;
                if from < chain.to {
                    self.hasher.fold(from, std::slice::from_mut(chain));
                    self.stats.fold_hashes += (chain.to - from) as u64;
                }
            }
        }
        // From the checkpoint to the place.
        let folds: Vec<Hash> = chains.iter().map(|chain| chain.hash).collect();
        for (chain, (_, nibbles)) in chains.iter_mut().zip(at) {
            chain.to = height(*nibbles);
            self.stats.rise_hashes += chain.to.saturating_sub(FOLD_HEIGHT) as u64;
        }
        let first = chains.partition_point(|chain| chain.to > FOLD_HEIGHT);
        self.hasher.fold(FOLD_HEIGHT, &mut chains[..first]);
        let leaves = chains.iter().zip(folds).zip(at);
        leaves
            .map(|((chain, fold), (_, nibbles))| {
                let mut stem = [0; STEM];
                stem.copy_from_slice(&chain.key[..STEM]);
                Leaf {
                    hash: chain.hash,
                    fold: if *nibbles <= STEM_NIBBLES {
                        fold
                    } else {
                        [0; 32]
                    },
                    stem,
                }
            })
            .collect()
    }

    /// Hashes the nodes, the deepest first, but for those whose hashes are known.
    pub(super) fn hash_nodes(&mut self, known: &[(usize, Hash)]) {
        let mut is_known = vec![false; self.nodes.len()];
        for (at, hash) in known {
            is_known[*at] = true;
            if !self.nodes[*at].gone {
                let place = self.nodes[*at].place;
                self.set(place, Some(Slot::Child(Child::Internal(*hash))));
            }
        }
        let left = |at: &usize| {
            let node = &self.nodes[*at];
            !is_known[*at] && !node.gone && !node.only_read
        };
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(left).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.nodes[*at].path.len()));
        let lengths = |a: &usize, b: &usize| self.nodes[*a].path.len() == self.nodes[*b].path.len();
        let levels: Vec<Vec<usize>> = order.chunk_by(lengths).map(<[usize]>::to_vec).collect();
        for level in levels {
            for some in level.chunks(TOGETHER) {
                let nodes = some.iter().map(|at| {
                    let node = &self.nodes[*at];
                    let mut row = Row::default();
                    for (nibble, slot) in &node.children {
                        if let Slot::Child(child) = slot {
                            row.set(*nibble, *child.hash());
                        }
                    }
                    row
                });
                let mut rows: Vec<Row> = nodes.collect();
                let nibbles = self.nodes[some[0]].path.len() + 1;
                self.stats.node_hashes += up(self.hasher, height(nibbles), &mut rows);
                for (at, row) in some.iter().zip(rows) {
                    let place = self.nodes[*at].place;
                    self.set(place, Some(Slot::Child(Child::Internal(row.hashes[0]))));
                }
            }
        }
    }
}
