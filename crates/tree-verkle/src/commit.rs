//! The arithmetic of an update: leaves first, then the internal nodes from the deepest level up, each level in one batch.

use crate::{
    FewValues, Form, Half, InternalRecord, LeafRecord, NodeChange, NodeKey, Record, StemUpdate,
    TreeError, TreeStats, Value,
    plan::{Child, Internal, Leaf, OldLeaf, Plan, Root},
    record::{HalfParts, Kept, LeafParts},
    tools::{LeafState, LeafWork, Tools},
    whole,
};
use arbor_field::Limbs;
use arbor_ipa::{DecodingError, NumberTerm, Point, Ratio, ValueChange, difference};
use rayon::prelude::*;
use std::borrow::Cow;

/// Fewest leaves or nodes that one thread takes: with fewer, inversions would not be shared by enough.
const LEAST: usize = 256;
/// Most: what is computed of them, two kilobytes each, stays in a core's second cache or near it.
const MOST: usize = 1024;

/// How many of a list one thread takes at a time.
pub(crate) fn share(count: usize) -> usize {
    match rayon::current_num_threads() {
        1 => MOST,
        threads => count.div_ceil(2 * threads).clamp(LEAST, MOST),
    }
}

pub(crate) struct Commit<'a> {
    tools: Tools<'a>,
    updates: &'a [StemUpdate],
    plan: &'a Plan,
    /// Images of leaves before and after, by their index in the plan; zero where there is none.
    leaves: Vec<[Limbs; 2]>,
    /// The same of internal nodes.
    internals: Vec<[Limbs; 2]>,
    nodes: Vec<NodeChange>,
    stats: TreeStats,
}

impl<'a> Commit<'a> {
    pub(crate) fn new(tools: Tools<'a>, updates: &'a [StemUpdate], plan: &'a Plan) -> Self {
        Self {
            tools: tools.alone(),
            updates,
            leaves: Vec::new(),
            internals: vec![[[0; 4]; 2]; plan.internals.len()],
            nodes: Vec::new(),
            stats: plan.stats,
            plan,
        }
    }

    /// Computes everything below the root.
    pub(crate) fn run(mut self) -> Result<Part, TreeError> {
        let leaves = &self.plan.leaves;
        let shares = leaves.par_chunks(share(leaves.len()));
        let shares: Result<Vec<_>, _> = shares.map(|leaves| self.leaves(leaves)).collect();
        self.leaves.reserve_exact(leaves.len());
        self.nodes
            .reserve_exact(leaves.len() + self.plan.internals.len());
        for (images, nodes) in shares? {
            self.leaves.extend(images);
            self.nodes.extend(nodes);
        }
        let written = leaves.iter().filter(|leaf| leaf.stays());
        written.for_each(|leaf| self.stats.leaf(&leaf.suffixes));
        self.internal_nodes()?;
        let root = &self.plan.internals[0];
        let children: Vec<_> = root
            .slots
            .iter()
            .map(|slot| (slot.byte, slot.new))
            .collect();
        let added = match children.is_empty() {
            true => Point::IDENTITY,
            false => {
                self.tools
                    .moved(&[Point::IDENTITY], [self.terms(0)].into_iter())
                    .0[0]
            }
        };
        Ok(Part {
            children,
            added,
            nodes: self.nodes,
            stats: self.stats,
        })
    }

    /// Computes some leaves: their images before and after, and their records.
    fn leaves(&self, leaves: &[Leaf]) -> Result<(Vec<[Limbs; 2]>, Vec<NodeChange>), TreeError> {
        let mut states = vec![LeafState::NEW; leaves.len()];
        let mut stored: Vec<usize> = Vec::new();
        let mut records: Vec<LeafRecord> = Vec::new();
        let mut todo: Vec<Todo> = Vec::with_capacity(leaves.len());
        for (at, leaf) in leaves.iter().enumerate() {
            let changes = match leaf.update {
                Some(update) if leaf.stays() => &self.updates[update].changes[..],
                _ => &[],
            };
            match leaf.old() {
                None => todo.push(Todo::on_new(changes)),
                Some((_, OldLeaf::Known(state))) => {
                    states[at] = **state;
                    todo.push(Todo::on_points(changes));
                }
                Some((key, OldLeaf::Stored(record))) => {
                    let mut record = Record::leaf(&key, record)
                        .map_err(|error| TreeError::Record { key, error })?;
                    todo.push(Todo::on_stored(&mut record, changes));
                    stored.push(at);
                    records.push(record);
                }
            }
        }
        for (at, state) in stored.into_iter().zip(self.tools.load(&records)) {
            states[at] = state;
        }
        let before: Vec<Limbs> = states.iter().map(|state| state.image).collect();
        let work = leaves.iter().zip(&todo).map(|(leaf, todo)| LeafWork {
            stem: &leaf.stem,
            changes: &todo.changes,
            points: todo.points(self.tools.settings.form),
        });
        self.tools.change(&work.collect::<Vec<_>>(), &mut states);
        let mut images = Vec::with_capacity(leaves.len());
        let mut keys = Vec::with_capacity(leaves.len());
        let mut written = Vec::with_capacity(leaves.len());
        for (((leaf, state), before), todo) in leaves.iter().zip(&states).zip(before).zip(&todo) {
            let Some(key) = leaf.new_key() else {
                images.push([before, [0; 4]]);
                continue;
            };
            images.push([before, state.image]);
            let kept = |half: usize| match leaf.suffixes.has_half(half) {
                true => HalfParts::kept(
                    self.tools.settings.form,
                    todo.values[half].as_ref(),
                    &state.halves[half],
                ),
                false => HalfParts::Nothing,
            };
            keys.push(key);
            written.push(LeafParts {
                depth: key.depth(),
                stem: &leaf.stem,
                suffixes: &leaf.suffixes,
                halves: [kept(0), kept(1)],
                commitment: state.commitment.as_ref(),
                image: Some(&state.image),
            });
        }
        let records = self.tools.leaf_records(&written).into_iter();
        let written = keys.into_iter().zip(records);
        let written = written.map(|(key, record)| NodeChange {
            key,
            record: Some(record),
        });
        let mut written: Vec<_> = written.collect();
        if self.tools.settings.form.whole {
            self.put_values_in(leaves, &mut written)?;
        }
        Ok((images, written))
    }

    /// Puts all values of the leaves written into their records, where they are known.
    fn put_values_in(&self, leaves: &[Leaf], written: &mut [NodeChange]) -> Result<(), TreeError> {
        let leaves = leaves.iter().filter(|leaf| leaf.stays());
        for (leaf, NodeChange { key, record }) in leaves.zip(written) {
            let old = leaf.old();
            let old = match &old {
                None => None,
                Some((key, OldLeaf::Stored(record))) => Some((key, &record[..])),
                Some((_, OldLeaf::Known(_))) => continue,
            };
            let changes = leaf.update.map_or(&[][..], |at| &self.updates[at].changes);
            let malformed = |error| TreeError::Record { key: *key, error };
            let values = whole::after(old, changes).map_err(malformed)?;
            if let (Some(values), Some(record)) = (values, record) {
                *record = whole::with_values(key, record, &values).map_err(malformed)?;
            }
        }
        Ok(())
    }

    /// Computes and writes the internal nodes but the root.
    fn internal_nodes(&mut self) -> Result<(), TreeError> {
        // The images of all nodes as they were, those that must be computed in one batch.
        let nodes = &self.plan.internals;
        let mut unknown = Vec::new();
        let mut points = Vec::new();
        for (at, (images, node)) in self.internals.iter_mut().zip(nodes).enumerate() {
            match node.old {
                Kept::Ratio(ratio) => images[0] = ratio.image(),
                Kept::Point(_, Some(image)) => images[0] = image,
                Kept::Point(point, None) => {
                    unknown.push(at);
                    points.push(point);
                }
            }
        }
        for (at, image) in unknown.into_iter().zip(self.tools.images(&points)) {
            self.internals[at][0] = image;
        }
        for level in self.plan.levels[1..].iter().rev() {
            let changes = |at: &usize| nodes[*at].stays && !nodes[*at].slots.is_empty();
            let level: Vec<usize> = level.iter().copied().filter(changes).collect();
            let shares = level.par_chunks(share(level.len()));
            let shares: Result<Vec<_>, _> = shares.map(|level| self.level(level)).collect();
            let mut computed = Vec::with_capacity(level.len());
            for (images, nodes) in shares? {
                computed.extend(images);
                self.stats.internals_written += nodes.len();
                self.nodes.extend(nodes);
            }
            for (at, image) in level.into_iter().zip(computed) {
                self.internals[at][1] = image;
            }
        }
        Ok(())
    }

    /// Computes some internal nodes of a level: their images, and the records of those that are not empty.
    fn level(&self, level: &[usize]) -> Result<(Vec<Limbs>, Vec<NodeChange>), TreeError> {
        let nodes = || level.iter().map(|&at| &self.plan.internals[at]);
        let lists = level.iter().map(|&at| self.terms(at));
        let settings = self.tools.settings;
        if settings.form.ratios() && settings.batched_images && settings.batched_affine {
            let ratio = |node: &Internal| match node.old {
                Kept::Ratio(ratio) => Some(ratio),
                Kept::Point(..) => None,
            };
            let before: Option<Vec<_>> = nodes().map(ratio).collect();
            if let Some(before) = before {
                return self.ratios(level, &before, lists);
            }
        }
        let point = |node: &Internal| match node.old {
            Kept::Point(point, _) => Ok(point),
            Kept::Ratio(ratio) => ratio.to_point().map_err(|error| node.malformed(error)),
        };
        let before: Result<Vec<_>, _> = nodes().map(point).collect();
        let (points, images) = self.tools.moved(&before?, lists);
        let computed = nodes().zip(points).zip(&images);
        let full = computed.filter(|((node, _), _)| !node.is_empty());
        let written = full.map(|((node, point), image)| (node.key, node.record(point, *image)));
        let nodes = self.tools.changes(&written.collect::<Vec<_>>());
        Ok((images, nodes))
    }

    /// As [`Self::level`], of nodes that are kept as x and x/y before and after.
    fn ratios<L: IntoIterator<Item = NumberTerm>>(
        &self,
        level: &[usize],
        before: &[Ratio],
        lists: impl ExactSizeIterator<Item = L>,
    ) -> Result<(Vec<Limbs>, Vec<NodeChange>), TreeError> {
        let node = |at: usize| &self.plan.internals[level[at]];
        let moved = self
            .tools
            .committer
            .ratios_moved_on_one_thread(before, lists);
        let ratios = moved.map_err(|at| node(at).malformed(DecodingError::Curve))?;
        let mut written = Vec::with_capacity(level.len());
        for (at, ratio) in ratios.iter().enumerate() {
            let node = node(at);
            if !node.is_empty() {
                let record = InternalRecord::encode_ratio(&node.leaves, &node.internals, ratio);
                written.push(NodeChange {
                    key: node.key,
                    record: Some(record),
                });
            }
        }
        Ok((ratios.iter().map(Ratio::image).collect(), written))
    }

    /// What its children's changes add to an internal node.
    fn terms(&self, at: usize) -> impl Iterator<Item = NumberTerm> {
        let image = |child: Child, when: usize| match child {
            Child::Nothing => [0; 4],
            Child::Leaf(at) => self.leaves[at][when],
            Child::Internal(at) => self.internals[at][when],
        };
        let slots = self.plan.internals[at].slots.iter();
        slots.map(move |slot| {
            let added = difference(&image(slot.new, 1), &image(slot.old, 0));
            (usize::from(slot.byte), added)
        })
    }
}

impl Internal {
    /// Its record's commitment is none.
    fn malformed(&self, error: DecodingError) -> TreeError {
        TreeError::Record {
            key: self.key,
            error: error.into(),
        }
    }

    /// What is written of it.
    fn record(&self, commitment: Point, image: Limbs) -> Record {
        Record::Internal(InternalRecord {
            leaves: self.leaves,
            internals: self.internals,
            commitment,
            image: Some(image),
        })
    }
}

/// What updates below some of the root's children make of the tree.
pub(crate) struct Part {
    /// Those children afterwards.
    children: Vec<(u8, Child)>,
    /// What the root's commitment changes by.
    added: Point,
    /// The nodes written below the root.
    pub(crate) nodes: Vec<NodeChange>,
    pub(crate) stats: TreeStats,
}

impl Root {
    /// Its commitment after all parts, and its record if that changes.
    pub(crate) fn after(&self, tools: Tools, parts: &[Part]) -> (Point, Option<NodeChange>) {
        let mut root = self.node();
        for (byte, child) in parts.iter().flat_map(|part| &part.children) {
            root.set_child(*byte, *child);
        }
        if parts.iter().all(|part| part.children.is_empty()) {
            return (self.commitment(), None);
        }
        let added: Point = parts.iter().map(|part| part.added).sum();
        let commitment = self.commitment() + added;
        let image = commitment.map_to_field().to_limbs();
        let gone = NodeChange {
            key: NodeKey::ROOT,
            record: None,
        };
        let change = match root.is_empty() {
            true => root.goes().then_some(gone),
            false => tools
                .changes(&[(root.key, root.record(commitment, image))])
                .pop(),
        };
        (commitment, change)
    }
}

/// What is to be done to a leaf.
struct Todo<'a> {
    changes: Cow<'a, [ValueChange]>,
    /// The values of each half afterwards, where all are known and few.
    values: [Option<FewValues>; 2],
}

impl<'a> Todo<'a> {
    /// Changes of a leaf of which only points are known.
    fn on_points(changes: &'a [ValueChange]) -> Self {
        Self {
            changes: changes.into(),
            values: [None; 2],
        }
    }

    /// Of which half a record keeps the point.
    fn points(&self, form: Form) -> [bool; 2] {
        let values = |few: FewValues| few.stand_for_point(form);
        self.values.map(|few| !few.is_some_and(values))
    }

    fn on_new(changes: &'a [ValueChange]) -> Self {
        Self {
            values: of_halves(changes).map(|changes| FewValues::new(&after(&[], changes))),
            ..Self::on_points(changes)
        }
    }

    /// Changes of a stored leaf. A half that has its values is not computed to be changed, but computed anew with what it has afterwards.
    fn on_stored(record: &mut LeafRecord, changes: &'a [ValueChange]) -> Self {
        let mut todo = Self::on_points(changes);
        let mut anew = Vec::new();
        for (half, changes) in of_halves(changes).into_iter().enumerate() {
            let before = match &record.halves[half] {
                Half::Values(few) => *few,
                Half::Nothing => {
                    todo.values[half] = FewValues::new(&after(&[], changes));
                    anew.extend(changes);
                    continue;
                }
                Half::Point(_) => {
                    anew.extend(changes);
                    continue;
                }
            };
            let values = after(before.as_slice(), changes);
            todo.values[half] = FewValues::new(&values);
            // Without its image the leaf must be computed as it was.
            if changes.is_empty() || values.is_empty() || record.image.is_none() {
                anew.extend(changes);
                continue;
            }
            let set = |(suffix, value)| ValueChange {
                suffix,
                old: None,
                new: Some(value),
            };
            anew.extend(values.into_iter().map(set));
            record.halves[half] = Half::Nothing;
            record.commitment = None;
        }
        todo.changes = anew.into();
        todo
    }
}

/// The changes of suffixes below 128 and of those from there on.
pub(crate) fn of_halves(changes: &[ValueChange]) -> [&[ValueChange]; 2] {
    let (lower, upper) = changes.split_at(changes.partition_point(|change| change.suffix < 128));
    [lower, upper]
}

/// Values after changes, ascending by suffix.
pub(crate) fn after(before: &[(u8, Value)], changes: &[ValueChange]) -> Vec<(u8, Value)> {
    let changed = |suffix: u8| changes.iter().any(|change| change.suffix == suffix);
    let kept = before.iter().filter(|(suffix, _)| !changed(*suffix));
    let new = changes
        .iter()
        .filter_map(|change| Some((change.suffix, change.new?)));
    let mut values: Vec<_> = kept.copied().chain(new).collect();
    values.sort_unstable_by_key(|(suffix, _)| *suffix);
    values
}
