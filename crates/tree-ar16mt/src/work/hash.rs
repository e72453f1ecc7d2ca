//! The way up: nodes that are not needed any more go, leaves are folded side by side, and nodes hashed level by level.

use arbor_hashing::blake2s::Chain;
use arbor_tree::Path;

use super::{FOLD_HEIGHT, Pending, Slot, Start, Work};
use crate::record::{STEM, STEM_NIBBLES, padded};
use crate::row::{Row, Scratch, height, up};
use crate::{Child, Hash, Hasher, Leaf, Reader};

/// Nodes that are hashed together at most: their children fill a cache, and lanes are full long before.
const NODES_HASHED_TOGETHER: usize = 256;

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
        let mut finished = vec![u32::MAX; self.pending.len()];
        for (number, (pending, _)) in (0..).zip(&at) {
            finished[*pending] = number;
        }
        let finish = |slot: &mut Slot| {
            if let Slot::Pending(pending) = *slot
                && let Some(leaf) = leaves.get(finished[pending] as usize)
            {
                *slot = Slot::Child(Child::Leaf(*leaf));
            }
        };
        self.top.iter_mut().for_each(finish);
        let nodes = self.nodes.iter_mut().filter(|node| !node.gone);
        nodes
            .flat_map(|node| &mut node.children)
            .for_each(|(_, slot)| finish(slot));
    }

    /// The leaves that pending ones come to at paths of so many nibbles, which ascend.
    fn folded(&mut self, at: &[(usize, usize)]) -> Vec<Leaf> {
        let checkpoint = |nibbles: usize| height(nibbles).min(FOLD_HEIGHT);
        // From the bottom to the checkpoint.
        let at_bottom = at.iter().filter_map(|(pending, nibbles)| {
            let Pending { key, start } = &self.pending[*pending];
            match start {
                Start::Entry(entry) => Some((*key, *entry, checkpoint(*nibbles))),
                Start::At(..) => None,
            }
        });
        let (mut low, mut entries) = (Vec::new(), Vec::new());
        low.reserve_exact(at.len());
        entries.reserve_exact(at.len());
        for (key, entry, to) in at_bottom {
            let hash = [0; 32];
            low.push(Chain { key, hash, to });
            entries.push(entry);
        }
        for (chain, hash) in low.iter_mut().zip(self.hasher.leaves(&entries)) {
            chain.hash = hash;
        }
        drop(entries);
        self.hasher.fold(0, &mut low);
        self.stats.leaf_hashes += low.len() as u64;
        self.stats.fold_hashes += low.iter().map(|chain| 1 + chain.to as u64).sum::<u64>();
        // From the checkpoint to the place.
        let mut low = low.into_iter();
        let mut chains = Vec::with_capacity(at.len());
        for (pending, nibbles) in at {
            let Pending { key, start } = self.pending[*pending];
            let to = checkpoint(*nibbles);
            let hash = match start {
                Start::Entry(_) => low.next().map_or([0; 32], |chain| chain.hash),
                Start::At(hash, from) => {
                    let mut chain = Chain { key, hash, to };
                    if from < to {
                        self.hasher.fold(from, std::slice::from_mut(&mut chain));
                        self.stats.fold_hashes += (to - from) as u64;
                    }
                    chain.hash
                }
            };
            let to = height(*nibbles);
            self.stats.rise_hashes += to.saturating_sub(FOLD_HEIGHT) as u64;
            chains.push(Chain { key, hash, to });
        }
        let mut leaves: Vec<Leaf> = chains.iter().map(Leaf::below).collect();
        let first = chains.partition_point(|chain| chain.to > FOLD_HEIGHT);
        self.hasher.fold(FOLD_HEIGHT, &mut chains[..first]);
        for (leaf, chain) in leaves.iter_mut().zip(&chains) {
            leaf.hash = chain.hash;
        }
        leaves
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
        let (mut rows, mut scratch) = (Vec::new(), Scratch::default());
        let mut order = &order[..];
        while let Some(first) = order.first() {
            let nibbles = self.nodes[*first].path.len();
            let level = order.partition_point(|at| self.nodes[*at].path.len() == nibbles);
            let (some, rest) = order.split_at(level.min(NODES_HASHED_TOGETHER));
            order = rest;
            rows.clear();
            rows.extend(some.iter().map(|at| {
                let mut row = Row::default();
                for (nibble, slot) in &self.nodes[*at].children {
                    if let Slot::Child(child) = slot {
                        row.set(*nibble, *child.hash());
                    }
                }
                row
            }));
            let from = height(nibbles + 1);
            self.stats.node_hashes += up(self.hasher, from, &mut rows, &mut scratch);
            for (at, row) in some.iter().zip(&rows) {
                let place = self.nodes[*at].place;
                self.set(place, Some(Slot::Child(Child::Internal(row.hashes[0]))));
            }
        }
    }
}

impl Leaf {
    /// The leaf of a chain that stands at the checkpoint, or below it where it ends; its hash is not known yet.
    fn below(chain: &Chain) -> Self {
        let mut stem = [0; STEM];
        stem.copy_from_slice(&chain.key[..STEM]);
        let fold = if chain.to >= FOLD_HEIGHT {
            chain.hash
        } else {
            [0; 32]
        };
        Self {
            hash: chain.hash,
            fold,
            stem,
        }
    }
}
