//! Reading what updates touch: breadth first over the whole forest, a batch for each depth.

use std::ops::Range;

use arbor_tree::{Hash, Leaf, NodeReader, Path, nibble_of};

use crate::error::TreeError;
use crate::forest::{Forest, Place, Slot};
use crate::node::{NodeError, Reference, RlpNode};
use crate::record::Record;

/// A slot and the updates (by index within their trie) whose keys lead through it.
struct Visit {
    trie: u32,
    place: Place,
    keys: Range<u32>,
}

impl Forest<'_> {
    /// Reads every inner node on the path of every update.
    pub(crate) fn load(&mut self, reader: &dyn NodeReader) -> Result<(), TreeError> {
        let mut level: Vec<Visit> = (0..)
            .zip(&self.tries)
            .map(|(trie, _)| Visit {
                trie,
                place: Place::Root(trie),
                keys: 0..self.key_count(trie),
            })
            .filter(|visit| !visit.keys.is_empty())
            .collect();
        let mut next = Vec::new();
        while !level.is_empty() {
            self.load_level(reader, &level, &mut next)?;
            std::mem::swap(&mut level, &mut next);
            next.clear();
        }
        Ok(())
    }

    fn load_level(
        &mut self,
        reader: &dyn NodeReader,
        level: &[Visit],
        next: &mut Vec<Visit>,
    ) -> Result<(), TreeError> {
        let mut requests = Vec::with_capacity(level.len());
        let mut asked = Vec::with_capacity(level.len());
        for visit in level {
            let Slot::StoredNode(reference) = self.slot(visit.place) else {
                continue;
            };
            if reference.as_hash().is_some() {
                let (trie, path) = self.locate(visit.place);
                requests.push(self.request(trie, path, &reference));
                asked.push((visit, reference));
            } else {
                let node = self.attach_inlined(visit.place, reference)?;
                self.descend(reader, node, visit, next)?;
            }
        }
        if requests.is_empty() {
            return Ok(());
        }
        self.nodes_read += requests.len() as u64;
        let records = reader.nodes(&requests)?;
        for ((visit, reference), record) in asked.into_iter().zip(records) {
            match (record, visit.place) {
                (Some(record), _) => {
                    let node = self.attach(visit.place, reference, &record)?;
                    self.descend(reader, node, visit, next)?;
                }
                // A trie that is not empty and has no node at its root is a single leaf.
                (None, Place::Root(_)) => {
                    self.set_slot(visit.place, Slot::StoredLeaf(reference));
                }
                (None, _) => {
                    let (trie, path) = self.locate(visit.place);
                    let position = self.position(trie, path);
                    return Err(TreeError::MissingNode { position });
                }
            }
        }
        Ok(())
    }

    /// Lists the children of a node that updates lead to and that are to be read.
    fn descend(
        &mut self,
        reader: &dyn NodeReader,
        index: u32,
        visit: &Visit,
        next: &mut Vec<Visit>,
    ) -> Result<(), TreeError> {
        let node = &self.nodes[index as usize];
        let (above, depth) = (node.path.len(), node.depth());
        let prefix = node.record.prefix();
        let fits =
            |&i: &u32| prefix.shared_with_key(self.key(visit.trie, i), above) == prefix.len();
        let Range { start, end } = visit.keys.clone();
        let mut start = (start..end).find(fits).unwrap_or(end);
        let end = start + (start..end).take_while(fits).count() as u32;
        if start < end {
            self.complete(reader, index)?;
        }
        let node = &self.nodes[index as usize];
        while start < end {
            let nibble = nibble_of(self.key(visit.trie, start), depth);
            let same = |&i: &u32| nibble_of(self.key(visit.trie, i), depth) == nibble;
            let stop = (start..end).take_while(same).last().map_or(end, |i| i + 1);
            if matches!(node.slot(nibble), Slot::StoredNode(_)) {
                next.push(Visit {
                    trie: visit.trie,
                    place: Place::Child(index, nibble),
                    keys: start..stop,
                });
            }
            start = stop;
        }
        Ok(())
    }

    /// Reads the branch of a node whose record is bare, for a key that passes its extension.
    pub(crate) fn complete(
        &mut self,
        reader: &dyn NodeReader,
        index: u32,
    ) -> Result<(), TreeError> {
        let node = &self.nodes[index as usize];
        let Some(hash) = node.record.bare_branch() else {
            return Ok(());
        };
        let path = node.path.join(node.record.prefix());
        let request = self.request(node.trie, path, &Reference::hash(hash));
        let position = request.position;
        self.nodes_read += 1;
        let bytes = reader.nodes(&[request])?.into_iter().next().flatten();
        let bytes = bytes.ok_or(TreeError::MissingNode { position })?;
        let branch =
            Record::decode(&bytes).map_err(|error| TreeError::Record { position, error })?;
        if !branch.prefix().is_empty() {
            return Err(TreeError::WrongHash { position });
        }
        self.nodes[index as usize].record.complete(&branch);
        Ok(())
    }

    fn key_count(&self, trie: u32) -> u32 {
        let update = self.tries[trie as usize].update as usize;
        let count = match trie {
            0 if self.inner_only => 0,
            0 => self.updates.len(),
            _ => self.updates[update].inner.len(),
        };
        count as u32
    }

    fn key(&self, trie: u32, index: u32) -> &Hash {
        let update = self.tries[trie as usize].update as usize;
        match trie {
            0 => &self.updates[index as usize].key,
            _ => &self.updates[update].inner[index as usize].key,
        }
    }

    /// Reads the node of a slot on demand and returns its index.
    pub(crate) fn load_node(
        &mut self,
        reader: &dyn NodeReader,
        place: Place,
        reference: Reference,
    ) -> Result<u32, TreeError> {
        if reference.as_hash().is_none() {
            return self.attach_inlined(place, reference);
        }
        let (trie, path) = self.locate(place);
        let request = self.request(trie, path, &reference);
        self.nodes_read += 1;
        match reader.nodes(&[request])?.into_iter().next().flatten() {
            Some(record) => self.attach(place, reference, &record),
            None => Err(TreeError::MissingNode {
                position: request.position,
            }),
        }
    }

    /// Reads the leaf of a slot.
    pub(crate) fn read_leaf(
        &mut self,
        reader: &dyn NodeReader,
        place: Place,
        reference: Reference,
    ) -> Result<Leaf, TreeError> {
        let (trie, path) = self.locate(place);
        let request = self.request(trie, path, &reference);
        self.leaves_read += u64::from(reference.as_hash().is_some());
        read_leaf(reader, &request, &reference)
    }
}

/// Reads a leaf from its parent's reference where it is inlined, else from the reader.
pub(crate) fn read_leaf(
    reader: &dyn NodeReader,
    request: &arbor_tree::NodeRequest,
    reference: &Reference,
) -> Result<Leaf, TreeError> {
    let position = request.position;
    if let Some(rlp) = reference.as_inline() {
        let error = match RlpNode::parse(rlp) {
            Ok(RlpNode::Leaf(suffix, value)) => match whole_key(&position.path, &suffix) {
                Some(key) => {
                    let value = value.to_vec();
                    return Ok(Leaf { key, value });
                }
                None => NodeError::HexPrefix,
            },
            Ok(_) => NodeError::NotMinimal,
            Err(error) => error,
        };
        return Err(TreeError::Node { position, error });
    }
    reader
        .leaf(request)?
        .filter(|leaf| position.path.is_prefix_of(&leaf.key))
        .ok_or(TreeError::MissingLeaf { position })
}

/// The key that a path and a leaf's suffix make; `None` unless they have 64 nibbles together.
pub(crate) fn whole_key(path: &Path, suffix: &Path) -> Option<Hash> {
    (path.len() + suffix.len() == Path::MAX).then(|| {
        let mut key = Hash::default();
        key.copy_from_slice(path.join(suffix).packed());
        key
    })
}
