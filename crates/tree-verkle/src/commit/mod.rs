//! The arithmetic of an update: leaves first, then the internal nodes from the deepest level up, each level in one batch.

mod images;
mod running;
mod todo;

use crate::{
    InternalRecord, LeafRecord, NodeChange, NodeKey, Record, TreeError, TreeStats,
    changes::of_halves,
    plan::{Child, Internal, Leaf, OldLeaf, Plan, Root},
    record::{HalfParts, Kept, LeafParts},
    steps::{StemSteps, Step},
    tools::{LeafState, LeafWork, Tools},
    whole,
};
use arbor_cpu::threads::{self, prelude::*};
use arbor_field::Limbs;
use arbor_ipa::{DecodingError, NumberTerm, Point, ValueChange, difference, half_numbers};

use images::{Course, Courses, Moves};
use running::{Before, add_up};
use todo::{Todo, Turn};

/// Fewest leaves or nodes that one thread takes: with fewer, inversions would not be shared by enough.
const LEAST: usize = 256;
/// Most: what is computed of them, two kilobytes each, stays in a core's second cache or near it.
const MOST: usize = 1024;

/// How many of a list one thread takes at a time.
pub(crate) fn share(count: usize) -> usize {
    match threads::current_num_threads() {
        1 => MOST,
        threads => count.div_ceil(2 * threads).clamp(LEAST, MOST),
    }
}

pub(crate) struct Commit<'a> {
    tools: Tools<'a>,
    steps: StemSteps<'a, 'a>,
    plan: &'a Plan,
    leaves: Courses,
    internals: Courses,
    /// After which steps new internal nodes have their first and their second leaf; -1: before all.
    births: Vec<[i64; 2]>,
    nodes: Vec<NodeChange>,
    stats: TreeStats,
}

/// Some leaves or nodes that were computed.
struct Computed {
    courses: Courses,
    nodes: Vec<NodeChange>,
    stats: TreeStats,
}

impl<'a> Commit<'a> {
    pub(crate) fn new(tools: Tools<'a>, steps: StemSteps<'a, 'a>, plan: &'a Plan) -> Self {
        Self {
            tools: tools.alone(),
            steps,
            leaves: Courses::default(),
            internals: Courses {
                courses: vec![Course::default(); plan.internals.len()],
                events: Vec::new(),
            },
            births: vec![[0; 2]; plan.internals.len()],
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
        self.leaves.courses.reserve_exact(leaves.len());
        self.nodes
            .reserve_exact(leaves.len() + self.plan.internals.len());
        for mut share in shares? {
            let start = self.leaves.append(&mut share.courses.events);
            let courses = share.courses.courses.into_iter();
            let courses = courses.map(|course| course.behind(start));
            self.leaves.courses.extend(courses);
            self.nodes.extend(share.nodes);
            self.stats += share.stats;
        }
        self.internal_nodes()?;
        let root = &self.plan.internals[0];
        let children = root.slots.iter().map(|slot| (slot.byte, slot.new));
        let mut moves = Moves::default();
        self.add_moves(0, &mut moves);
        let sums = moves.sums.iter().map(|(_, terms)| moves.terms(terms));
        let added = self.tools.committer.sums_on_one_thread(sums);
        Ok(Part {
            children: children.collect(),
            added: moves.steps().zip(added).collect(),
            nodes: self.nodes,
            stats: self.stats,
        })
    }

    /// The steps that change a leaf; none of one that moves, or goes.
    fn steps_of(&self, leaf: &Leaf) -> &'a [Step<'a>] {
        match leaf.update {
            Some(at) if leaf.stays() => self.steps.of(at),
            _ => &[],
        }
    }

    /// Computes some leaves: their images before and after, and their records.
    fn leaves(&self, leaves: &[Leaf]) -> Result<Computed, TreeError> {
        let mut states = vec![LeafState::NEW; leaves.len()];
        let mut stored: Vec<usize> = Vec::new();
        let mut records: Vec<LeafRecord> = Vec::new();
        let mut todo: Vec<Todo> = Vec::with_capacity(leaves.len());
        for (at, leaf) in leaves.iter().enumerate() {
            let changes = self.steps_of(leaf).first();
            let changes = changes.map_or(&[][..], |step| step.changes);
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
        let mut courses = Courses::default();
        for (leaf, state) in leaves.iter().zip(&states) {
            match leaf.stays() {
                true => {
                    let steps = self.steps_of(leaf).iter();
                    courses.push(state.image, steps.map(|step| step.number));
                }
                // Then there is one update alone.
                false => courses.push(state.image, [0].into_iter()),
            }
        }
        self.change(leaves, &mut todo, &mut states, &mut courses);
        let mut computed = Computed {
            courses,
            nodes: self.leaf_nodes(leaves, &todo, &states),
            stats: TreeStats::default(),
        };
        if self.tools.settings.form.whole {
            self.put_values_in(leaves, &mut computed.nodes)?;
        }
        for leaf in leaves.iter().filter(|leaf| leaf.stays()) {
            let mut suffixes = leaf.suffixes;
            computed.stats.leaf(&suffixes);
            // As it was after the steps before.
            for later in self.steps_of(leaf).iter().skip(1).rev() {
                let new = later.changes.iter().filter(|change| change.old.is_none());
                new.for_each(|change| suffixes.set(change.suffix, false));
                computed.stats.leaf(&suffixes);
            }
        }
        Ok(computed)
    }

    /// Changes leaves: by their first steps, then those that have more by all of these.
    fn change(
        &self,
        leaves: &[Leaf],
        todo: &mut [Todo<'a>],
        states: &mut [LeafState],
        courses: &mut Courses,
    ) {
        let form = self.tools.settings.form;
        let count = |at: usize| self.steps_of(&leaves[at]).len();
        let work = leaves.iter().zip(&*todo).map(|(leaf, todo)| LeafWork {
            stem: &leaf.stem,
            changes: &todo.changes,
            points: todo.points(form),
            commitment: self.steps_of(leaf).len() > 1,
        });
        self.tools.change(&work.collect::<Vec<_>>(), states);
        for at in (0..leaves.len()).filter(|&at| count(at) > 0) {
            courses.set(at, 0, states[at].image);
        }
        let more: Vec<usize> = (0..leaves.len()).filter(|&at| count(at) > 1).collect();
        if !more.is_empty() {
            self.change_again(leaves, &more, todo, states, courses);
        }
    }

    /// Changes some leaves, whose commitments are known, by all their steps but the first. What the steps add does not depend on each other: of all it is summed together, and
    /// then added up.
    fn change_again(
        &self,
        leaves: &[Leaf],
        more: &[usize],
        todo: &mut [Todo<'a>],
        states: &mut [LeafState],
        courses: &mut Courses,
    ) {
        let mut turns: Vec<Turn> = Vec::new();
        for &at in more {
            let mut empty = states[at].half_images.map(|image| image == [0; 4]);
            for (step, of_step) in self.steps_of(&leaves[at]).iter().enumerate().skip(1) {
                let (next, anew) = todo[at].followed_by(of_step.changes, empty);
                for (half, changes) in of_halves(&next.changes).into_iter().enumerate() {
                    empty[half] &= changes.is_empty();
                }
                turns.push(Turn {
                    at,
                    step,
                    anew,
                    changes: next.changes.to_vec(),
                });
                todo[at] = next;
            }
        }
        let halves = turns.iter().flat_map(|turn| {
            let halves = of_halves(&turn.changes).into_iter().enumerate();
            let changed = halves.filter(|(_, changes)| !changes.is_empty());
            changed.map(move |(half, changes)| (turn, half, changes))
        });
        let halves: Vec<(&Turn, usize, &[ValueChange])> = halves.collect();
        let terms = halves.iter();
        let terms = terms.map(|&(_, _, changes)| changes.iter().flat_map(half_numbers));
        let committer = self.tools.committer;
        let mut points = committer.sums_on_one_thread(terms);
        // The turns of a leaf follow each other.
        let mut latest: [Option<(usize, usize)>; 2] = [None; 2];
        let before = halves.iter().enumerate().map(|(n, &(turn, half, _))| {
            let earlier = latest[half].replace((turn.at, n));
            match earlier.filter(|(at, _)| *at == turn.at) {
                _ if turn.anew[half] => Before::Nothing,
                Some((_, earlier)) => Before::Step(earlier),
                None => Before::Old(states[turn.at].halves[half]),
            }
        });
        add_up(&mut points, &before.collect::<Vec<_>>());
        for ((turn, half, _), point) in halves.iter().zip(&points) {
            states[turn.at].halves[*half] = *point;
        }
        let images = self.tools.images(&points);
        let mut changed = halves.iter().zip(images).peekable();
        let mut lists = Vec::with_capacity(turns.len());
        for turn in &turns {
            let after = &mut states[turn.at].half_images;
            let before = *after;
            while let Some(((_, half, _), image)) =
                changed.next_if(|((of, ..), _)| std::ptr::eq(*of, turn))
            {
                after[*half] = image;
            }
            lists.push([0, 1].map(|half| (2 + half, difference(&after[half], &before[half]))));
        }
        let mut points = committer.sums_on_one_thread(lists.into_iter());
        let before = turns.iter().enumerate().map(|(n, turn)| {
            match n
                .checked_sub(1)
                .filter(|&earlier| turns[earlier].at == turn.at)
            {
                Some(earlier) => Before::Step(earlier),
                None => Before::Old(
                    states[turn.at]
                        .commitment
                        .expect("invariant: the first step left it"),
                ),
            }
        });
        add_up(&mut points, &before.collect::<Vec<_>>());
        for (turn, point) in turns.iter().zip(&points) {
            states[turn.at].commitment = Some(*point);
        }
        for (turn, image) in turns.iter().zip(self.tools.images(&points)) {
            courses.set(turn.at, turn.step, image);
            states[turn.at].image = image;
        }
    }

    /// The records of the leaves that stay.
    fn leaf_nodes(&self, leaves: &[Leaf], todo: &[Todo], states: &[LeafState]) -> Vec<NodeChange> {
        let mut keys = Vec::with_capacity(leaves.len());
        let mut written = Vec::with_capacity(leaves.len());
        for ((leaf, state), todo) in leaves.iter().zip(states).zip(todo) {
            let Some(key) = leaf.new_key() else {
                continue;
            };
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
        written.collect()
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
            let changes = leaf
                .update
                .map_or(&[][..], |at| &self.steps.merged[at].changes);
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
        for (at, (course, node)) in self.internals.courses.iter_mut().zip(nodes).enumerate() {
            match node.old {
                Kept::Ratio(ratio) => course.before = ratio.image(),
                Kept::Point(_, Some(image)) => course.before = image,
                Kept::Point(point, None) => {
                    unknown.push(at);
                    points.push(point);
                }
            }
        }
        for (at, image) in unknown.into_iter().zip(self.tools.images(&points)) {
            self.internals.courses[at].before = image;
        }
        for level in self.plan.levels[1..].iter().rev() {
            let changes = |at: &usize| nodes[*at].stays && !nodes[*at].slots.is_empty();
            let level: Vec<usize> = level.iter().copied().filter(changes).collect();
            for &at in &level {
                if nodes[at].is_new() {
                    self.births[at] = self.first_leaves(at);
                }
            }
            let shares: Vec<_> = level.chunks(share(level.len())).collect();
            let computed: Result<Vec<_>, _> =
                shares.par_iter().map(|level| self.level(level)).collect();
            for (level, mut share) in shares.into_iter().zip(computed?) {
                let start = self.internals.append(&mut share.courses.events);
                for (&at, course) in level.iter().zip(share.courses.courses) {
                    self.internals.courses[at] = course.behind(start);
                }
                self.nodes.extend(share.nodes);
                self.stats += share.stats;
            }
        }
        Ok(())
    }

    /// After which steps a new internal node has its first and its second leaf; all its children are known.
    fn first_leaves(&self, at: usize) -> [i64; 2] {
        let mut first = [i64::MAX; 2];
        for slot in &self.plan.internals[at].slots {
            for step in self.born(slot.new) {
                let [a, b] = first;
                first = [a.min(step), b.min(a.max(step))];
            }
        }
        first
    }

    /// After which steps a new internal node's child has its first leaf and its second.
    fn born(&self, child: Child) -> [i64; 2] {
        match child {
            Child::Nothing => [i64::MAX; 2],
            Child::Leaf(at) if self.plan.leaves[at].existed() => [-1, i64::MAX],
            Child::Leaf(at) => {
                let first = self.leaves.of(at).1.first();
                [first.map_or(0, |(step, _)| i64::from(*step)), i64::MAX]
            }
            Child::Internal(at) => self.births[at],
        }
    }

    /// Computes some internal nodes of a level: their images, and the records of those that are not empty.
    fn level(&self, level: &[usize]) -> Result<Computed, TreeError> {
        let node = |n: usize| &self.plan.internals[level[n]];
        let mut moves = Moves::default();
        let mut courses = Courses::default();
        let mut first = Vec::with_capacity(level.len() + 1);
        // Of each node how many of its images are those of the leaf that stood alone in its place.
        let mut alone = Vec::with_capacity(level.len());
        for &at in level {
            first.push(moves.sums.len());
            let (before, images) = self.add_moves(at, &mut moves);
            let steps = moves.sums[first[first.len() - 1]..].iter();
            let steps = steps.map(|(step, _)| *step);
            courses.push(before, images.iter().map(|(step, _)| *step).chain(steps));
            for (n, (_, image)) in images.iter().enumerate() {
                courses.set(alone.len(), n, *image);
            }
            alone.push(images.len());
        }
        first.push(moves.sums.len());
        let mut kept: Vec<Kept> = (0..level.len()).map(|n| node(n).old).collect();
        let steps = |n: usize| first[n]..first[n + 1];
        // Nodes that change once, as nearly all do, stay in the form that they are kept in.
        let once: Vec<usize> = (0..level.len()).filter(|&n| steps(n).len() == 1).collect();
        let before: Vec<Kept> = once.iter().map(|&n| kept[n]).collect();
        let lists = once.iter().map(|&n| &moves.sums[first[n]].1);
        let lists = lists.map(|terms| moves.terms(terms));
        let after = self.moved(|place| node(once[place]), &before, lists)?;
        for (&n, (after, image)) in once.iter().zip(after) {
            kept[n] = after;
            courses.set(n, alone[n], image);
        }
        // What the steps of the others add is summed together, and then added up.
        let often: Vec<usize> = (0..level.len()).filter(|&n| steps(n).len() > 1).collect();
        let sums = often.iter().flat_map(|&n| steps(n)).collect::<Vec<_>>();
        let lists = sums.iter().map(|&sum| moves.terms(&moves.sums[sum].1));
        let mut points = self.tools.committer.sums_on_one_thread(lists);
        let mut before = Vec::with_capacity(points.len());
        for &n in &often {
            before.push(Before::Old(node(n).point(kept[n])?));
            before.extend(
                (before.len()..)
                    .take(steps(n).len() - 1)
                    .map(|at| Before::Step(at - 1)),
            );
        }
        add_up(&mut points, &before);
        let mut computed = points.iter().zip(self.tools.images(&points));
        for &n in &often {
            for (step, (point, image)) in (0..steps(n).len()).zip(&mut computed) {
                kept[n] = Kept::Point(*point, Some(image));
                courses.set(n, alone[n] + step, image);
            }
        }
        let mut stats = TreeStats::default();
        let written = (0..level.len()).filter(|&n| !node(n).is_empty());
        stats.internals_written = written.map(|n| steps(n).len()).sum();
        let mut nodes = Vec::with_capacity(level.len());
        let mut points = Vec::new();
        for (n, kept) in kept.into_iter().enumerate() {
            let node = node(n);
            if node.is_empty() || first[n] == first[n + 1] {
                continue;
            }
            match kept {
                Kept::Ratio(ratio) => nodes.push(NodeChange {
                    key: node.key,
                    record: Some(InternalRecord::encode_ratio(
                        &node.leaves,
                        &node.internals,
                        &ratio,
                    )),
                }),
                Kept::Point(point, image) => points.push((node.key, node.record(point, image))),
            }
        }
        nodes.extend(self.tools.changes(&points));
        Ok(Computed {
            courses,
            nodes,
            stats,
        })
    }

    /// Commitments of internal nodes after sums were added, and their images; as x and x/y if that is how all of them were and are to be kept.
    fn moved<'n, L: IntoIterator<Item = NumberTerm>>(
        &self,
        node: impl Fn(usize) -> &'n Internal,
        before: &[Kept],
        lists: impl ExactSizeIterator<Item = L>,
    ) -> Result<Vec<(Kept, Limbs)>, TreeError> {
        if before.is_empty() {
            return Ok(Vec::new());
        }
        let settings = self.tools.settings;
        if settings.form.ratios() && settings.batched_images && settings.batched_affine {
            let ratio = |kept: &Kept| match kept {
                Kept::Ratio(ratio) => Some(*ratio),
                Kept::Point(..) => None,
            };
            let ratios: Option<Vec<_>> = before.iter().map(ratio).collect();
            if let Some(ratios) = ratios {
                let committer = self.tools.committer;
                let moved = committer.ratios_moved_on_one_thread(&ratios, lists);
                let moved = moved.map_err(|at| node(at).malformed(DecodingError::Curve))?;
                let images = moved.into_iter();
                return Ok(images
                    .map(|ratio| (Kept::Ratio(ratio), ratio.image()))
                    .collect());
            }
        }
        let point = |(at, kept): (usize, &Kept)| match kept {
            Kept::Point(point, _) => Ok(*point),
            Kept::Ratio(ratio) => ratio.to_point().map_err(|error| node(at).malformed(error)),
        };
        let points: Result<Vec<_>, _> = before.iter().enumerate().map(point).collect();
        let (points, images) = self.tools.moved(&points?, lists);
        let after = points.into_iter().zip(images);
        Ok(after
            .map(|(point, image)| (Kept::Point(point, Some(image)), image))
            .collect())
    }

    /// What hangs at a place: its image before, and those after the steps that change it.
    fn of(&self, child: Child) -> (Limbs, &[(u32, Limbs)]) {
        match child {
            Child::Nothing => ([0; 4], &[]),
            Child::Leaf(at) => self.leaves.of(at),
            Child::Internal(at) => self.internals.of(at),
        }
    }

    /// Adds what its children's changes add to an internal node, step by step. Returns its image before, and those after the steps in which it was not there yet, but one leaf
    /// alone in its place.
    fn add_moves(&self, at: usize, moves: &mut Moves) -> (Limbs, &[(u32, Limbs)]) {
        let node = &self.plan.internals[at];
        if !node.is_new() {
            for slot in &node.slots {
                let before = self.of(slot.old).0;
                let (image, events) = self.of(slot.new);
                // Another leaf may come in the place of what goes, or nothing.
                let moved = [(0, image)];
                let events = match events.is_empty() && slot.new != slot.old {
                    true => &moved,
                    false => events,
                };
                moves.add(slot.byte, before, events);
            }
            moves.end();
            return (self.internals.courses[at].before, &[]);
        }
        let [first, second] = self.births[at];
        let alone = node
            .slots
            .iter()
            .find(|slot| self.born(slot.new)[0] == first);
        let (before, alone) = alone.map_or(([0; 4], &[][..]), |slot| self.of(slot.new));
        // From then on it is a node, the sum of all that hangs below.
        let from = u32::try_from(second).expect("invariant: one leaf at most was in its place");
        for slot in &node.slots {
            let (before, events) = self.of(slot.new);
            let (until, later) = events.split_at(events.partition_point(|(step, _)| *step <= from));
            let image = until.last().map_or(before, |(_, image)| *image);
            moves.add(slot.byte, [0; 4], &[(from, image)]);
            moves.add(slot.byte, image, later);
        }
        moves.end();
        let alone = &alone[..alone.partition_point(|(step, _)| *step < from)];
        (before, alone)
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

    /// Its commitment, as kept.
    fn point(&self, kept: Kept) -> Result<Point, TreeError> {
        match kept {
            Kept::Point(point, _) => Ok(point),
            Kept::Ratio(ratio) => ratio.to_point().map_err(|error| self.malformed(error)),
        }
    }

    /// What is written of it.
    fn record(&self, commitment: Point, image: Option<Limbs>) -> Record {
        Record::Internal(InternalRecord {
            leaves: self.leaves,
            internals: self.internals,
            commitment,
            image,
        })
    }
}

/// What updates below some of the root's children make of the tree.
pub(crate) struct Part {
    /// Those children afterwards.
    children: Vec<(u8, Child)>,
    /// What the root's commitment changes by after the steps that change something, ascending.
    added: Vec<(u32, Point)>,
    /// The nodes written below the root.
    pub(crate) nodes: Vec<NodeChange>,
    pub(crate) stats: TreeStats,
}

impl Root {
    /// Its commitment after each step of all parts, and its record if that changes.
    pub(crate) fn after(
        &self,
        tools: Tools,
        parts: &[Part],
        steps: usize,
    ) -> (Vec<Point>, Option<NodeChange>) {
        let mut root = self.node();
        for (byte, child) in parts.iter().flat_map(|part| &part.children) {
            root.set_child(*byte, *child);
        }
        let mut added = vec![Point::IDENTITY; steps];
        for (step, point) in parts.iter().flat_map(|part| &part.added) {
            let sum = &mut added[*step as usize];
            *sum += *point;
        }
        let mut commitment = self.commitment();
        let commitments = added.into_iter().map(|added| {
            commitment += added;
            commitment
        });
        let commitments: Vec<Point> = commitments.collect();
        if parts.iter().all(|part| part.children.is_empty()) {
            return (commitments, None);
        }
        let image = commitment.map_to_field().to_limbs();
        let gone = NodeChange {
            key: NodeKey::ROOT,
            record: None,
        };
        let change = match root.is_empty() {
            true => root.goes().then_some(gone),
            false => tools
                .changes(&[(root.key, root.record(commitment, Some(image)))])
                .pop(),
        };
        (commitments, change)
    }
}
