//! Building a tree bottom-up from sorted leaves.

use crate::{
    ByteSet, FewValues, Half, InternalRecord, LeafRecord, NodeKey, Record, Settings, Stem,
    TreeError, Value,
    commit::share,
    tools::{BATCH, LeafState, LeafWork, Tools},
    whole,
};
use arbor_cpu::threads::prelude::*;
use arbor_field::Limbs;
use arbor_ipa::{Committer, NumberTerm, Point, ValueChange};
use std::collections::HashMap;
use std::sync::Arc;

/// A leaf to build with: its stem and its values, ascending by suffix, at least one.
pub type BuildLeaf = (Stem, Vec<(u8, Value)>);

/// Where built nodes go: place and record. Of all places at one depth each comes after those before it.
pub type Sink<'a> = dyn FnMut(NodeKey, Arc<[u8]>) + 'a;

/// Builds a tree from all its leaves, ascending by stem, and returns its root's commitment.
///
/// Each node is computed once, in batches over all nodes of a level. Memory is bounded by one batch and the nodes on one path.
///
/// # Errors
/// When stems or suffixes do not ascend, or a leaf has no value.
pub fn build(
    committer: &Committer,
    settings: &Settings,
    leaves: impl IntoIterator<Item = BuildLeaf>,
    sink: &mut Sink,
) -> Result<Point, TreeError> {
    let part = build_part(committer, settings, leaves, sink)?;
    join(committer, settings, [part], sink)
}

/// The leaves of a tree whose stems begin with certain bytes, built apart from the rest of it: so that cores, or machines, share a tree by ranges.
#[derive(Clone, Debug, Default)]
pub struct Part(Open);

impl Part {
    /// The bytes of a part, to be joined by another process: for each of the root's children below which the part lies, the child's
    /// byte, a byte 1 for a leaf and 0 for an internal node, and its image in the scalar field (32 bytes, little-endian).
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (byte, image) in &self.0.terms {
            let byte = *byte as u8;
            out.extend([byte, u8::from(self.0.leaves.has(byte))]);
            out.extend(image.iter().flat_map(|limb| limb.to_le_bytes()));
        }
        out
    }

    /// Reads the bytes of a part; `None` if they are none.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (terms, rest) = bytes.as_chunks::<34>();
        let mut open = Open::default();
        for [byte, is_leaf, image @ ..] in terms {
            let (set, other) = match is_leaf {
                0 => (&mut open.internals, &open.leaves),
                1 => (&mut open.leaves, &open.internals),
                _ => return None,
            };
            if set.has(*byte) || other.has(*byte) {
                return None;
            }
            set.set(*byte, true);
            let mut limbs = Limbs::default();
            for (limb, bytes) in limbs.iter_mut().zip(image.as_chunks::<8>().0) {
                *limb = u64::from_le_bytes(*bytes);
            }
            open.terms.push((usize::from(*byte), limbs));
        }
        rest.is_empty().then_some(Self(open))
    }
}

/// Builds the part of a tree below some of the root's children: every other part's stems must begin with other bytes than this one's. Gives `sink`
/// every node but the root; for the rest like [`build`].
///
/// # Errors
/// As [`build`].
pub fn build_part(
    committer: &Committer,
    settings: &Settings,
    leaves: impl IntoIterator<Item = BuildLeaf>,
    sink: &mut Sink,
) -> Result<Part, TreeError> {
    let tools = Tools::new(committer, settings);
    let mut builder = Builder::new(tools, sink);
    let mut leaves = leaves.into_iter();
    let mut current = leaves.next();
    while let Some((stem, values)) = current {
        if values.is_empty() || !values.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(TreeError::Order(stem));
        }
        let next = leaves.next();
        let shared = match &next {
            Some((after, _)) if *after <= stem => return Err(TreeError::Order(*after)),
            Some((after, _)) => (0..31).take_while(|&i| stem[i] == after[i]).count(),
            None => 0,
        };
        builder.add((stem, values), shared);
        current = next;
    }
    builder.finish_batch();
    Ok(Part(builder.open.swap_remove(0)))
}

/// Joins the parts of a tree, ascending, and returns its root's commitment. Gives `sink` the root.
///
/// # Errors
/// When two parts have stems that begin with the same byte.
pub fn join(
    committer: &Committer,
    settings: &Settings,
    parts: impl IntoIterator<Item = Part>,
    sink: &mut Sink,
) -> Result<Point, TreeError> {
    let mut root = Open::default();
    for Part(part) in parts {
        let (have, add) = (root.leaves | root.internals, part.leaves | part.internals);
        if let Some(byte) = add.iter().find(|&byte| have.has(byte)) {
            return Err(TreeError::Order(std::array::from_fn(|i| {
                if i == 0 { byte } else { 0 }
            })));
        }
        root.leaves = root.leaves | part.leaves;
        root.internals = root.internals | part.internals;
        root.terms.extend(part.terms);
    }
    if root.terms.is_empty() {
        return Ok(Point::IDENTITY);
    }
    let tools = Tools::new(committer, settings);
    let mut nodes = Vec::new();
    tools.internals(&[(NodeKey::ROOT, root)], &mut nodes);
    let commitment = match nodes[0].1 {
        Record::Internal(root) => root.commitment,
        Record::Leaf(_) => unreachable!("invariant: an internal node was computed"),
    };
    tools.give(nodes, &[], sink);
    Ok(commitment)
}

/// An internal node whose children are not all there, or not all computed.
#[derive(Clone, Debug, Default)]
struct Open {
    leaves: ByteSet,
    internals: ByteSet,
    /// The images of children that are computed.
    terms: Vec<NumberTerm>,
    /// Children of the current batch: indices of its leaves, or of the nodes closed one level down.
    waiting: Vec<(u8, usize)>,
}

struct Builder<'a> {
    tools: Tools<'a>,
    sink: &'a mut Sink<'a>,
    /// The current batch's leaves.
    leaves: Vec<(NodeKey, BuildLeaf)>,
    /// The nodes on the way to the next leaf, by depth.
    open: Vec<Open>,
    /// Nodes that have all their children, by depth.
    closed: Vec<Vec<(NodeKey, Open)>>,
}

impl<'a> Builder<'a> {
    fn new(tools: Tools<'a>, sink: &'a mut Sink<'a>) -> Self {
        Self {
            tools,
            sink,
            leaves: Vec::new(),
            open: vec![Open::default()],
            closed: vec![Vec::new(); NodeKey::MAX_DEPTH + 1],
        }
    }

    /// Adds a leaf that shares so many bytes with the next one.
    fn add(&mut self, leaf: BuildLeaf, shared: usize) {
        let stem = leaf.0;
        if self.open.len() <= shared {
            self.open.resize_with(shared + 1, Open::default);
        }
        let parent = self.open.len() - 1;
        let byte = stem[parent];
        self.open[parent].leaves.set(byte, true);
        self.open[parent].waiting.push((byte, self.leaves.len()));
        self.leaves.push((NodeKey::on_way(&stem, parent + 1), leaf));
        while self.open.len() > shared + 1 {
            self.close(&stem);
        }
        if self.leaves.len() >= BATCH {
            self.finish_batch();
        }
    }

    /// Closes the deepest open node.
    fn close(&mut self, stem: &Stem) {
        let Some(node) = self.open.pop() else { return };
        let depth = self.open.len();
        let byte = stem[depth - 1];
        let parent = &mut self.open[depth - 1];
        parent.internals.set(byte, true);
        parent.waiting.push((byte, self.closed[depth].len()));
        self.closed[depth].push((NodeKey::on_way(stem, depth), node));
    }

    /// Computes the batch's leaves and closed nodes and gives them away.
    fn finish_batch(&mut self) {
        let leaves = std::mem::take(&mut self.leaves);
        let mut nodes = Vec::with_capacity(leaves.len());
        let leaf_images = self.tools.leaves(&leaves, &mut nodes);
        let mut images: Vec<Limbs> = Vec::new();
        for depth in (1..self.closed.len()).rev() {
            if let Some(open) = self.open.get_mut(depth) {
                open.settle(&leaf_images, &images);
            }
            let mut closed = std::mem::take(&mut self.closed[depth]);
            for (_, node) in &mut closed {
                node.settle(&leaf_images, &images);
            }
            images = self.tools.internals(&closed, &mut nodes);
        }
        self.open[0].settle(&leaf_images, &images);
        self.tools.give(nodes, &leaves, self.sink);
    }
}

impl Open {
    /// Takes in the images of children, of leaves and of the nodes one level down.
    fn settle(&mut self, leaves: &[Limbs], internals: &[Limbs]) {
        for (byte, at) in self.waiting.drain(..) {
            let image = if self.leaves.has(byte) {
                leaves[at]
            } else {
                internals[at]
            };
            self.terms.push((usize::from(byte), image));
        }
    }
}

impl Tools<'_> {
    /// Computes leaves; their images.
    fn leaves(
        &self,
        leaves: &[(NodeKey, BuildLeaf)],
        nodes: &mut Vec<(NodeKey, Record)>,
    ) -> Vec<Limbs> {
        let shares = leaves.par_chunks(share(leaves.len()));
        let shares: Vec<_> = shares.map(|leaves| self.some_leaves(leaves)).collect();
        let mut images = Vec::with_capacity(leaves.len());
        for (of_share, written) in shares {
            images.extend(of_share);
            nodes.extend(written);
        }
        images
    }

    fn some_leaves(&self, leaves: &[(NodeKey, BuildLeaf)]) -> (Vec<Limbs>, Vec<(NodeKey, Record)>) {
        let set = |(suffix, value): &(u8, Value)| ValueChange {
            suffix: *suffix,
            old: None,
            new: Some(*value),
        };
        let changes: Vec<Vec<_>> = leaves
            .iter()
            .map(|(_, (_, values))| values.iter().map(set).collect())
            .collect();
        let form = self.settings.form;
        let halves = |values: &[(u8, Value)]| {
            let lower = values.partition_point(|(suffix, _)| *suffix < 128);
            let (lower, upper) = values.split_at(lower);
            [lower, upper].map(FewValues::new)
        };
        let halves: Vec<_> = leaves
            .iter()
            .map(|(_, (_, values))| halves(values))
            .collect();
        let point = |few: &Option<FewValues>| !few.is_some_and(|few| few.stand_for_point(form));
        let work = leaves.iter().zip(&changes).zip(&halves);
        let work: Vec<_> = work
            .map(|(((_, (stem, _)), changes), halves)| LeafWork {
                stem,
                changes,
                points: halves.each_ref().map(point),
                commitment: false,
            })
            .collect();
        let mut states = vec![LeafState::NEW; leaves.len()];
        self.change(&work, &mut states);
        let mut nodes = Vec::with_capacity(leaves.len());
        for (((key, (stem, values)), state), few) in leaves.iter().zip(&states).zip(halves) {
            let suffixes: ByteSet = values.iter().map(|(suffix, _)| *suffix).collect();
            let kept = |half: usize| match suffixes.has_half(half) {
                true => Half::kept(form, few[half], state.halves[half]),
                false => Half::Nothing,
            };
            let record = LeafRecord {
                stem: *stem,
                suffixes,
                halves: [kept(0), kept(1)],
                commitment: state.commitment,
                image: Some(state.image),
            };
            nodes.push((*key, Record::Leaf(record)));
        }
        let images = states.iter().map(|state| state.image).collect();
        (images, nodes)
    }

    /// Computes internal nodes; their images.
    fn internals(
        &self,
        closed: &[(NodeKey, Open)],
        nodes: &mut Vec<(NodeKey, Record)>,
    ) -> Vec<Limbs> {
        let shares = closed.par_chunks(share(closed.len()));
        let shares = shares.map(|closed| {
            let from = vec![Point::IDENTITY; closed.len()];
            let lists = closed.iter().map(|(_, node)| node.terms.iter().copied());
            self.moved(&from, lists)
        });
        let (points, images): (Vec<Vec<Point>>, Vec<Vec<Limbs>>) = shares.unzip();
        let images = images.concat();
        let points = points.into_iter().flatten();
        for (((key, node), commitment), image) in closed.iter().zip(points).zip(&images) {
            let record = InternalRecord {
                leaves: node.leaves,
                internals: node.internals,
                commitment,
                image: Some(*image),
            };
            nodes.push((*key, Record::Internal(record)));
        }
        images
    }

    /// Gives nodes away, ascending; leaves with all their values, if that is their form.
    fn give(
        &self,
        mut nodes: Vec<(NodeKey, Record)>,
        leaves: &[(NodeKey, BuildLeaf)],
        sink: &mut Sink,
    ) {
        nodes.sort_unstable_by_key(|(key, _)| *key);
        let records = self.records(&nodes);
        let whole = leaves.iter().filter(|_| self.settings.form.whole);
        let whole: HashMap<&NodeKey, &BuildLeaf> = whole.map(|(key, leaf)| (key, leaf)).collect();
        for ((key, _), mut record) in nodes.into_iter().zip(records) {
            if let Some((_, values)) = whole.get(&key) {
                let values: Vec<Value> = values.iter().map(|(_, value)| *value).collect();
                record = whole::with_values(&key, &record, &values)
                    .expect("invariant: a leaf's record was just written");
            }
            sink(key, record);
        }
    }
}
