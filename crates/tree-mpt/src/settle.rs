//! Joining branches that were left with one child or none, and listing what is to be hashed.

use arbor_tree::NodeReader;

use crate::error::TreeError;
use crate::forest::{Forest, Place, Slot, Task, Value, Work};
use crate::node::Reference;
use crate::record::bits;

impl Forest<'_> {
    /// Brings every trie into its one valid form and lists its changed nodes and leaves by height.
    ///
    /// Inner tries come first: the height of an outer leaf follows from that of its inner root.
    pub(crate) fn settle(&mut self, reader: &dyn NodeReader) -> Result<(), TreeError> {
        for trie in (1..self.tries.len() as u32).chain([0]) {
            let root = Place::Root(trie);
            let slot = match self.slot(root) {
                Slot::Node(node) => self.settle_node(reader, node)?,
                slot => slot,
            };
            self.set_slot(root, slot);
            self.tries[trie as usize].height = self.list(root);
        }
        Ok(())
    }

    /// Settles a node and all below it; returns what takes its place.
    fn settle_node(&mut self, reader: &dyn NodeReader, index: u32) -> Result<Slot, TreeError> {
        let node = &self.nodes[index as usize];
        if !node.dirty {
            return Ok(Slot::Node(index));
        }
        for nibble in bits(node.linked & !node.record.leaves()) {
            let child = self.nodes[index as usize].record.link(nibble);
            match self.settle_node(reader, child)? {
                Slot::Node(same) if same == child => {}
                slot => self.nodes[index as usize].set_slot(nibble, slot),
            }
        }
        let record = &self.nodes[index as usize].record;
        if record.bare_branch().is_some() {
            return Ok(Slot::Node(index));
        }
        let children = record.children();
        match children.count_ones() {
            0 => {
                self.vacate(index);
                Ok(Slot::Empty)
            }
            1 => self.join(reader, index, children.trailing_zeros() as u8),
            _ => {
                self.list_children(index);
                Ok(Slot::Node(index))
            }
        }
    }

    /// Removes a branch that has one child, which takes its place.
    fn join(&mut self, reader: &dyn NodeReader, index: u32, nibble: u8) -> Result<Slot, TreeError> {
        let place = Place::Child(index, nibble);
        let child = match self.slot(place) {
            Slot::Node(child) => child,
            Slot::StoredNode(reference) => self.load_node(reader, place, reference)?,
            Slot::StoredLeaf(reference) => {
                let leaf = self.read_leaf(reader, place, reference)?;
                self.vacate(index);
                let leaf = self.add_leaf(leaf.key, Value::Owned(leaf.value));
                return Ok(Slot::Leaf(leaf));
            }
            slot => {
                self.vacate(index);
                return Ok(slot);
            }
        };
        self.vacate(index);
        self.vacate(child);
        let above = &self.nodes[index as usize];
        let (path, prefix) = (above.path, above.record.prefix().child(nibble));
        let node = &mut self.nodes[child as usize];
        node.path = path;
        let prefix = prefix.join(node.record.prefix());
        node.record.set_prefix(prefix);
        if !node.dirty {
            node.dirty = true;
            self.list_children(child);
        }
        Ok(Slot::Node(child))
    }

    /// Lists the changed children of a node and sets its height above theirs.
    pub(crate) fn list_children(&mut self, index: u32) {
        let mut height = 0;
        for nibble in bits(self.nodes[index as usize].linked) {
            height = height.max(self.list(Place::Child(index, nibble)));
        }
        self.nodes[index as usize].height = height;
    }

    /// Lists what hangs in a slot, if it changed; returns the height at which its hash is used.
    pub(crate) fn list(&mut self, place: Place) -> u16 {
        match self.slot(place) {
            Slot::Leaf(leaf) => {
                let height = match self.leaves[leaf as usize].value {
                    Value::Template(update) => {
                        let inner = self.inner_tries[update as usize];
                        if inner == 0 {
                            0
                        } else {
                            self.tries[inner as usize].height
                        }
                    }
                    Value::Given(_) | Value::Owned(_) => 0,
                };
                self.add_task(height, Work::Leaf(leaf), place)
            }
            Slot::Node(index) => {
                let node = &self.nodes[index as usize];
                if !node.dirty {
                    let reference = node.reference;
                    self.set_slot(place, Slot::StoredNode(reference));
                    return 0;
                }
                if let Some(branch) = node.record.bare_branch() {
                    self.nodes[index as usize].reference = Reference::hash(branch);
                    return self.add_task(0, Work::Extension(index), place);
                }
                let (height, extended) = (node.height, !node.record.prefix().is_empty());
                let above = self.add_task(height, Work::Branch(index), place);
                if extended {
                    return self.add_task(above, Work::Extension(index), place);
                }
                above
            }
            Slot::Empty | Slot::StoredLeaf(_) | Slot::StoredNode(_) => 0,
        }
    }

    fn add_task(&mut self, height: u16, work: Work, place: Place) -> u16 {
        let level = usize::from(height);
        if self.tasks.len() <= level {
            self.tasks.resize_with(level + 1, Vec::new);
        }
        self.tasks[level].push(Task { work, place });
        height + 1
    }
}
