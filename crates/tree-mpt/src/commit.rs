//! Hashing by height over the whole forest, deepest first, in batches.

use crate::EMPTY_ROOT;
use crate::forest::{Forest, Place, Slot, Task, Value, Work};
use crate::lanes::Lanes;
use crate::node::{Reference, write_leaf};

impl Forest<'_> {
    /// Hashes everything listed, level by level, and fills in references and roots.
    ///
    /// Returns the nodes changed, in the order in which their branches were hashed, or of bare
    /// records the extensions.
    pub(crate) fn commit(&mut self) -> Vec<u32> {
        for trie in &mut self.tries {
            if matches!(trie.root, Slot::Empty) {
                trie.hash = EMPTY_ROOT;
            }
        }
        let mut changed = Vec::with_capacity(self.nodes.len());
        let most = self.tasks.iter().map(Vec::len).max().unwrap_or_default();
        let mut lanes = match self.lanes.hashed {
            0 => Lanes::for_nodes(most),
            _ => std::mem::take(&mut self.lanes),
        };
        for tasks in std::mem::take(&mut self.tasks) {
            for batch in tasks.chunks(Lanes::BATCH) {
                self.commit_batch(batch, &mut lanes);
            }
            changed.extend(tasks.iter().filter_map(|task| match task.work {
                Work::Branch(node) => Some(node),
                Work::Extension(node) => {
                    let record = &self.nodes[node as usize].record;
                    record.bare_branch().map(|_| node)
                }
                Work::Leaf(_) => None,
            }));
        }
        self.lanes = lanes;
        changed
    }

    fn commit_batch(&mut self, batch: &[Task], lanes: &mut Lanes) {
        for task in batch {
            lanes.push(|out| self.write_rlp(task, out));
        }
        lanes.finish(|index, hash, rlp| {
            let task = &batch[index];
            // A root is hashed even when it is short.
            if rlp.len() < 32 && !self.is_root(task) {
                self.resolve(task, Reference::inline(rlp));
            } else {
                self.resolve(task, hash);
            }
        });
    }

    /// Whether the result of a task is a root hash.
    fn is_root(&self, task: &Task) -> bool {
        let below_extension = match task.work {
            Work::Branch(node) => !self.nodes[node as usize].record.prefix().is_empty(),
            Work::Leaf(_) | Work::Extension(_) => false,
        };
        matches!(task.place, Place::Root(_)) && !below_extension
    }

    fn write_rlp(&self, task: &Task, out: &mut Vec<u8>) {
        match task.work {
            Work::Branch(node) => self.nodes[node as usize].record.write_branch(out),
            Work::Extension(node) => {
                let node = &self.nodes[node as usize];
                node.record.write_extension(out, &node.reference);
            }
            Work::Leaf(leaf) => {
                let from = match task.place {
                    Place::Root(_) => 0,
                    Place::Child(node, _) => self.nodes[node as usize].depth() + 1,
                };
                let leaf = &self.leaves[leaf as usize];
                match &leaf.value {
                    Value::Given(value) => write_leaf(out, &leaf.key, from, value),
                    Value::Owned(value) => write_leaf(out, &leaf.key, from, value),
                    Value::Template(update) => self.write_outer_leaf(out, *update, from),
                }
            }
        }
    }

    /// Writes the leaf of an outer update and fills the inner root in.
    fn write_outer_leaf(&self, out: &mut Vec<u8>, update: u32, from: usize) {
        let outer = &self.updates[update as usize];
        let Some(template) = &outer.leaf else {
            unreachable!("invariant: an update without a leaf places none");
        };
        write_leaf(out, &outer.key, from, &template.bytes);
        // The value is the last thing in a leaf's RLP.
        let hole = out.len() - template.bytes.len() + template.hole;
        out[hole..hole + 32].copy_from_slice(&self.inner_root(update));
    }

    /// The new root of the inner trie of an outer update.
    pub(crate) fn inner_root(&self, update: u32) -> arbor_tree::Hash {
        match self.inner_tries[update as usize] {
            0 => self.updates[update as usize].inner_root,
            trie => self.tries[trie as usize].hash,
        }
    }

    fn resolve(&mut self, task: &Task, reference: Reference) {
        let slot = match task.work {
            Work::Leaf(_) => Slot::StoredLeaf(reference),
            Work::Branch(index) | Work::Extension(index) => {
                let branch = matches!(task.work, Work::Branch(_));
                let node = &mut self.nodes[index as usize];
                node.reference = reference;
                if branch && !node.record.prefix().is_empty() {
                    return;
                }
                Slot::StoredNode(reference)
            }
        };
        if let (Place::Root(trie), Some(hash)) = (task.place, reference.as_hash()) {
            self.tries[trie as usize].hash = hash;
        }
        self.set_slot(task.place, slot);
    }
}
