//! Changing the structure: leaves set and removed, leaves and extensions split.
//!
//! Nothing is joined here: a branch may be left with one child or none until it is settled, so
//! that removing one key and setting another in the same branch reads no sibling.

use arbor_tree::{Hash, NodeReader, Path, nibble_of, shared_nibbles};

use crate::error::TreeError;
use crate::forest::{Forest, Place, Slot, Value};
use crate::node::Reference;
use crate::update::OuterUpdate;

/// One key of one trie to set (`Some`) or to remove.
struct Edit<'a> {
    trie: u32,
    key: Hash,
    existed: bool,
    value: Option<Value<'a>>,
}

/// Where the search for a key ended.
enum End {
    /// At a slot that is empty or holds a leaf.
    Slot(Place),
    /// Within the extension of a node, after so many of its nibbles.
    Extension(Place, u32, usize),
}

impl<'a> Forest<'a> {
    /// Applies all updates to the structure.
    ///
    /// Keys that existed go first: they replace or remove leaves without reading them, and then
    /// fewer of the new keys meet a leaf that must be read.
    pub(crate) fn edit(&mut self, reader: &dyn NodeReader) -> Result<(), TreeError> {
        let updates: &'a [OuterUpdate] = self.updates;
        for existed in [true, false] {
            for (index, update) in (0..).zip(updates) {
                for inner in update.inner.iter().filter(|inner| inner.existed == existed) {
                    let edit = Edit {
                        trie: self.inner_tries[index as usize],
                        key: inner.key,
                        existed,
                        value: inner.value.as_deref().map(Value::Given),
                    };
                    self.edit_key(reader, edit)?;
                }
                if update.existed == existed && !self.inner_only {
                    let edit = Edit {
                        trie: 0,
                        key: update.key,
                        existed,
                        value: update.leaf.as_ref().map(|_| Value::Template(index)),
                    };
                    self.edit_key(reader, edit)?;
                }
            }
        }
        Ok(())
    }

    fn edit_key(&mut self, reader: &dyn NodeReader, edit: Edit<'a>) -> Result<(), TreeError> {
        let mut passed = [0; Path::MAX];
        let (end, count) = self.find(reader, &edit, &mut passed)?;
        let changed = match (end, edit.value) {
            (End::Slot(place), value) => {
                self.edit_slot(reader, place, &edit.key, edit.existed, value)?
            }
            (End::Extension(place, ..), _) if edit.existed => {
                return Err(self.not_there(place, &edit.key));
            }
            (End::Extension(..), None) => false,
            (End::Extension(place, node, shared), Some(value)) => {
                self.split_extension(place, node, shared, edit.key, value);
                true
            }
        };
        if changed {
            for &node in &passed[..count] {
                self.nodes[node as usize].dirty = true;
            }
        }
        Ok(())
    }

    /// Follows a key down; the nodes whose branch it passes are put in `passed`, their number returned.
    fn find(
        &mut self,
        reader: &dyn NodeReader,
        edit: &Edit<'a>,
        passed: &mut [u32; Path::MAX],
    ) -> Result<(End, usize), TreeError> {
        let mut place = Place::Root(edit.trie);
        let mut count = 0;
        loop {
            let index = match self.slot(place) {
                Slot::Node(index) => index,
                Slot::StoredNode(reference) => self.load_node(reader, place, reference)?,
                Slot::Empty | Slot::Leaf(_) | Slot::StoredLeaf(_) => {
                    return Ok((End::Slot(place), count));
                }
            };
            let node = &self.nodes[index as usize];
            let prefix = node.record.prefix();
            let shared = prefix.shared_with_key(&edit.key, node.path.len());
            if shared < prefix.len() {
                return Ok((End::Extension(place, index, shared), count));
            }
            self.complete(reader, index)?;
            let node = &self.nodes[index as usize];
            passed[count] = index;
            count += 1;
            place = Place::Child(index, nibble_of(&edit.key, node.depth()));
        }
    }

    /// Sets or removes a key whose search ended at a slot; returns whether anything changed.
    fn edit_slot(
        &mut self,
        reader: &dyn NodeReader,
        place: Place,
        key: &Hash,
        existed: bool,
        value: Option<Value<'a>>,
    ) -> Result<bool, TreeError> {
        let held = match self.slot(place) {
            Slot::Empty if existed => return Err(self.not_there(place, key)),
            Slot::Empty => None,
            Slot::Leaf(leaf) => Some(leaf),
            Slot::StoredLeaf(reference) if existed && reference.as_hash().is_some() => None,
            Slot::StoredLeaf(reference) => {
                let leaf = self.read_leaf(reader, place, reference)?;
                Some(self.add_leaf(leaf.key, Value::Owned(leaf.value)))
            }
            Slot::Node(_) | Slot::StoredNode(_) => {
                unreachable!("invariant: a search ends at a leaf or an empty slot")
            }
        };
        let other = held.filter(|&leaf| self.leaves[leaf as usize].key != *key);
        match (other, value) {
            (Some(_), _) if existed => return Err(self.not_there(place, key)),
            (Some(_), None) => return Ok(false),
            (None, _) if held.is_some() && !existed => return Err(self.there(place, key)),
            (Some(other), Some(value)) => self.split_leaf(place, other, *key, value),
            (None, None) if matches!(self.slot(place), Slot::Empty) => return Ok(false),
            (None, None) => self.set_slot(place, Slot::Empty),
            (None, Some(value)) => {
                let leaf = self.add_leaf(*key, value);
                self.set_slot(place, Slot::Leaf(leaf));
            }
        }
        Ok(true)
    }

    /// Puts a branch where a leaf was, with that leaf and a new one.
    fn split_leaf(&mut self, place: Place, other: u32, key: Hash, value: Value<'a>) {
        let (trie, path) = self.locate(place);
        let other_key = self.leaves[other as usize].key;
        let depth = shared_nibbles(&key, &other_key);
        let prefix = Path::slice_of_key(&key, path.len(), depth);
        let branch = self.add_new_node(trie, path, prefix);
        let leaf = self.add_leaf(key, value);
        let node = &mut self.nodes[branch as usize];
        node.set_slot(nibble_of(&other_key, depth), Slot::Leaf(other));
        node.set_slot(nibble_of(&key, depth), Slot::Leaf(leaf));
        self.set_slot(place, Slot::Node(branch));
    }

    /// Puts a branch within the extension of a node, with that node below it and a new leaf.
    ///
    /// Where of that node only the hash of its branch is left, it is one that has not been read.
    fn split_extension(
        &mut self,
        place: Place,
        index: u32,
        shared: usize,
        key: Hash,
        value: Value<'a>,
    ) {
        self.vacate(index);
        let leaf = self.add_leaf(key, value);
        let node = &mut self.nodes[index as usize];
        let (trie, path, prefix) = (node.trie, node.path, *node.record.prefix());
        let mut above = prefix;
        above.truncate(shared);
        let nibble = prefix.nibble(shared);
        node.path = path.join(&above).child(nibble);
        node.record.set_prefix(prefix.suffix(shared + 1));
        node.dirty = true;
        let below = match node.record.bare_branch() {
            Some(hash) if node.record.prefix().is_empty() => {
                Slot::StoredNode(Reference::hash(hash))
            }
            _ => Slot::Node(index),
        };
        let branch = self.add_new_node(trie, path, above);
        let node = &mut self.nodes[branch as usize];
        node.set_slot(nibble, below);
        node.set_slot(nibble_of(&key, path.len() + shared), Slot::Leaf(leaf));
        self.set_slot(place, Slot::Node(branch));
    }

    fn there(&self, place: Place, key: &Hash) -> TreeError {
        let (trie, path) = self.locate(place);
        TreeError::There {
            key: *key,
            position: self.position(trie, path),
        }
    }

    fn not_there(&self, place: Place, key: &Hash) -> TreeError {
        let (trie, path) = self.locate(place);
        let position = self.position(trie, path);
        TreeError::NotThere {
            key: *key,
            position,
        }
    }
}
