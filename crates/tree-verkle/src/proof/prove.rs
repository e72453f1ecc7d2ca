//! Making proofs.

use super::skeleton::{End, Node, Opened, Skeleton, Way};
use super::witness::{Proof, StemDiff, SuffixDiff, Witness};
use crate::{
    ByteSet, InternalRecord, LeafRecord, NodeKey, Record, Settings, Stem, TreeError, Value,
    ValueReader,
    commit::share,
    record::{Head, kept_image},
    tools::Tools,
};
use arbor_cpu::threads::prelude::*;
use arbor_field::reduce_all;
use arbor_ipa::{
    Committer, Fr, Multiproof, Point, SparseOpening, Transcript, stem_scalar, value_scalars,
};
use std::ops::Range;
use std::sync::Arc;

/// Proves the values of keys (stem and suffix), present or not, at the reader's root. New values are left open.
///
/// Of every node on the way all children are read, a level at once, by threads in groups of neighbours: an internal node is a polynomial of all its children's
/// images. Records that keep images make that cheap.
///
/// It is the proof of the testnets, in which a dishonest prover can pass a leaf for an internal node: see [`Verified::doubtful`](super::Verified::doubtful) and [`prove_guarded`].
///
/// # Errors
/// [`TreeError`]: no keys, missing or malformed nodes, a reader that fails. Of a node beside the ways nothing but the image is looked at, if its record keeps it: where
/// that is another one than it was, the proof does not hold.
pub fn prove(
    reader: &impl ValueReader,
    committer: &Committer,
    keys: &[(Stem, u8)],
) -> Result<Witness, TreeError> {
    prove_asked(reader, committer, keys, false)
}

/// As [`prove`], with further keys where they are needed for no absence to be doubtful: each begins as a node's path, and goes on with zeros.
///
/// # Errors
/// As [`prove`].
pub fn prove_guarded(
    reader: &impl ValueReader,
    committer: &Committer,
    keys: &[(Stem, u8)],
) -> Result<Witness, TreeError> {
    prove_asked(reader, committer, keys, true)
}

fn prove_asked(
    reader: &impl ValueReader,
    committer: &Committer,
    keys: &[(Stem, u8)],
    guarded: bool,
) -> Result<Witness, TreeError> {
    let settings = Settings::default();
    let tools = Tools::new(committer, &settings);
    let mut diffs = asked(keys);
    if diffs.is_empty() {
        return Err(TreeError::NoKeys);
    }
    let (mut ways, mut skeleton) = find(&diffs, reader, tools)?;
    if guarded {
        let guards = skeleton.guards(&diffs, &ways.ways);
        if !guards.is_empty() {
            diffs = asked(&[keys, &guards].concat());
            (ways, skeleton) = find(&diffs, reader, tools)?;
        }
    }
    let Ways {
        ways,
        others,
        nodes,
    } = ways;
    let polynomials = find_polynomials(reader, tools, &skeleton, &mut diffs, nodes)?;

    let commitments: Vec<_> = polynomials.iter().map(|(point, _)| *point).collect();
    let encodings = commitments.par_chunks(share(commitments.len()));
    let encodings: Vec<_> = encodings.flat_map_iter(Point::to_bytes_batch).collect();
    let openings = skeleton
        .questions(&diffs)
        .into_par_iter()
        .map(|(of, point, opened)| {
            let values = &polynomials[of].1[..];
            let found = values.binary_search_by_key(&point, |(at, _)| *at);
            SparseOpening {
                commitment: &encodings[of],
                values,
                point,
                value: match opened {
                    Opened::Child(None) => Fr::ZERO,
                    _ => found.map_or(Fr::ZERO, |at| values[at].1),
                },
            }
        });
    let openings: Vec<_> = openings.collect();
    let multiproof = Multiproof::prove_sparse(committer, &mut Transcript::new(b"vt"), &openings);
    let bytes = multiproof.to_bytes();
    Ok(Witness {
        state_diff: diffs,
        proof: Proof {
            other_stems: others,
            depth_extension_present: ways.into_iter().map(Way::to_byte).collect(),
            commitments_by_path: encodings[1..].to_vec(),
            multiproof: bytes.try_into().expect("invariant: a multiproof's length"),
        },
    })
}

/// The ways to all stems, and the nodes on them.
fn find(
    diffs: &[StemDiff],
    reader: &impl ValueReader,
    tools: Tools,
) -> Result<(Ways, Skeleton), TreeError> {
    let ways = Ways::find(diffs, reader, tools)?;
    let skeleton = Skeleton::new(diffs, &ways.ways, &ways.others);
    Ok((
        ways,
        skeleton.expect("invariant: ways were found in a tree"),
    ))
}

/// The keys, sorted, each once.
fn asked(keys: &[(Stem, u8)]) -> Vec<StemDiff> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let mut diffs: Vec<StemDiff> = Vec::new();
    for (stem, suffix) in keys {
        let suffix = SuffixDiff {
            suffix,
            current: None,
            new: None,
        };
        match diffs.last_mut() {
            Some(last) if last.stem == stem => last.suffixes.push(suffix),
            _ => diffs.push(StemDiff {
                stem,
                suffixes: vec![suffix],
            }),
        }
    }
    diffs
}

/// A polynomial's commitment, and where it is not zero.
type SparsePolynomial = (Point, Vec<(u8, Fr)>);

/// How the ways to the stems go.
struct Ways {
    ways: Vec<Way>,
    /// The stems of leaves that stand where absent stems would be, ascending.
    others: Vec<Stem>,
    /// The nodes on the ways, in the order of their paths.
    nodes: Vec<(NodeKey, Found)>,
}

/// A node on a way.
enum Found {
    /// Its polynomial: the images of all children.
    Internal(SparsePolynomial),
    /// Its record.
    Leaf(Arc<[u8]>),
}

/// A node that stems of a range lead to.
struct OnWay {
    key: NodeKey,
    record: InternalRecord,
    stems: Range<usize>,
}

impl OnWay {
    fn children(&self) -> ByteSet {
        self.record.leaves | self.record.internals
    }
}

/// Neighbours of a level, whose children are read together.
struct Group<'w> {
    nodes: Vec<OnWay>,
    /// The first stem that leads to them.
    first: usize,
    /// The ways of that stem and of those after it.
    ways: &'w mut [Way],
}

/// What was found of and below a group.
#[derive(Default)]
struct Below {
    next: Vec<OnWay>,
    others: Vec<Stem>,
    nodes: Vec<(NodeKey, Found)>,
}

/// Children that one thread reads together: what it learns from their records it learns while they lie in its caches.
const CHILDREN_READ_TOGETHER: usize = 1024;

impl Ways {
    /// The ways to all stems, a level at a time.
    fn find(
        diffs: &[StemDiff],
        reader: &impl ValueReader,
        tools: Tools,
    ) -> Result<Self, TreeError> {
        let nowhere = Way {
            depth: 1,
            end: End::Empty,
        };
        let mut all = Self {
            ways: vec![nowhere; diffs.len()],
            others: Vec::new(),
            nodes: Vec::new(),
        };
        let root = reader.nodes(&[NodeKey::ROOT])?.pop().flatten();
        let Some(root) = root else {
            let nothing = Found::Internal((Point::IDENTITY, Vec::new()));
            all.nodes.push((NodeKey::ROOT, nothing));
            return Ok(all);
        };
        let mut level = vec![OnWay {
            key: NodeKey::ROOT,
            record: internal(&NodeKey::ROOT, &root)?,
            stems: 0..diffs.len(),
        }];
        while !level.is_empty() {
            let found: Result<Vec<Below>, TreeError> = groups(level, &mut all.ways)
                .into_par_iter()
                .map(|group| group.below(diffs, reader, tools))
                .collect();
            level = Vec::new();
            for mut below in found? {
                level.append(&mut below.next);
                all.others.append(&mut below.others);
                all.nodes.append(&mut below.nodes);
            }
        }
        // A level's nodes are in that order: few runs are merged.
        all.nodes.sort_by(|(a, _), (b, _)| a.path().cmp(b.path()));
        all.others.sort_unstable();
        Ok(all)
    }
}

/// A level's nodes, which stand beside each other, in groups of [`CHILDREN_READ_TOGETHER`] children or a few more.
fn groups(nodes: Vec<OnWay>, mut ways: &mut [Way]) -> Vec<Group<'_>> {
    let mut parts = vec![Vec::new()];
    let mut count = 0;
    for node in nodes {
        if count >= CHILDREN_READ_TOGETHER {
            parts.push(Vec::new());
            count = 0;
        }
        count += node.children().len();
        parts
            .last_mut()
            .expect("invariant: one part at least")
            .push(node);
    }
    let mut passed = 0;
    let group = |nodes: Vec<OnWay>| {
        let (first, end) = (nodes[0].stems.start, nodes[nodes.len() - 1].stems.end);
        let (_, rest) = std::mem::take(&mut ways).split_at_mut(first - passed);
        let (own, rest) = rest.split_at_mut(end - first);
        (ways, passed) = (rest, end);
        Group {
            nodes,
            first,
            ways: own,
        }
    };
    parts.into_iter().map(group).collect()
}

impl Group<'_> {
    /// Reads all children of the group's nodes; those on the way that are internal are of the next level.
    fn below(
        mut self,
        diffs: &[StemDiff],
        reader: &impl ValueReader,
        tools: Tools,
    ) -> Result<Below, TreeError> {
        let count = self.nodes.iter().map(|node| node.children().len()).sum();
        let mut keys = Vec::with_capacity(count);
        for node in &self.nodes {
            keys.extend(node.children().iter().map(|byte| node.key.child(byte)));
        }
        let records = reader.nodes(&keys)?.into_iter().zip(&keys);
        let records = records.map(|(record, key)| record.ok_or(TreeError::Missing(*key)));
        let records: Vec<Arc<[u8]>> = records.collect::<Result<_, _>>()?;
        let images = images(tools.alone(), &keys, &records)?;
        let mut below = Below::default();
        let (mut records, mut images) = (&records[..], &images[..]);
        for node in std::mem::take(&mut self.nodes) {
            let bytes = node.children();
            let (own, of_node);
            (own, images) = images.split_at(bytes.len());
            (of_node, records) = records.split_at(bytes.len());
            let mut values = Vec::with_capacity(own.len());
            values.extend(bytes.iter().zip(own.iter().copied()));
            let polynomial = Found::Internal((node.record.commitment, values));
            below.nodes.push((node.key, polynomial));
            self.visit(diffs, &node, of_node, &mut below)?;
        }
        Ok(below)
    }

    /// The ways of some stems.
    fn ways(&mut self, stems: Range<usize>) -> &mut [Way] {
        &mut self.ways[stems.start - self.first..stems.end - self.first]
    }

    /// Shares a node's stems among its children, whose records these are.
    fn visit(
        &mut self,
        diffs: &[StemDiff],
        node: &OnWay,
        records: &[Arc<[u8]>],
        below: &mut Below,
    ) -> Result<(), TreeError> {
        let depth = node.key.depth();
        let mut children = node.children().iter().zip(records).peekable();
        let mut stems = node.stems.start..node.stems.start;
        while stems.end < node.stems.end {
            let byte = diffs[stems.end].stem[depth];
            let same = diffs[stems.end..node.stems.end].iter();
            let same = same.take_while(|diff| diff.stem[depth] == byte).count();
            stems = stems.end..stems.end + same;
            while children.next_if(|(at, _)| *at < byte).is_some() {}
            let Some((_, record)) = children.next_if(|(at, _)| *at == byte) else {
                self.ways(stems.clone()).fill(Way {
                    depth: depth + 1,
                    end: End::Empty,
                });
                continue;
            };
            let key = node.key.child(byte);
            match Head::decode(&key, record).map_err(|error| TreeError::Record { key, error })? {
                Head::Internal => below.next.push(OnWay {
                    key,
                    record: internal(&key, record)?,
                    stems: stems.clone(),
                }),
                Head::Leaf(stem, _) => {
                    let mut own = false;
                    for index in stems.clone() {
                        let present = diffs[index].stem == stem;
                        own |= present;
                        let end = if present { End::Present } else { End::Other };
                        self.ways(index..index + 1).fill(Way {
                            depth: depth + 1,
                            end,
                        });
                    }
                    below.others.extend((!own).then_some(stem));
                    below.nodes.push((key, Found::Leaf(Arc::clone(record))));
                }
            }
        }
        Ok(())
    }
}

fn internal(key: &NodeKey, record: &[u8]) -> Result<InternalRecord, TreeError> {
    Record::internal(key, record).map_err(|error| TreeError::Record { key: *key, error })
}

/// The images of nodes, computed where their records do not keep them.
fn images(tools: Tools, keys: &[NodeKey], records: &[Arc<[u8]>]) -> Result<Vec<Fr>, TreeError> {
    let (mut points, mut leaves) = (Vec::new(), Vec::new());
    let kept: Vec<_> = records.iter().map(|record| kept_image(record)).collect();
    let numbers: Vec<_> = kept.iter().map(|kept| kept.unwrap_or_default()).collect();
    let mut images = numbers;
    for (at, (&key, record)) in keys.iter().zip(records).enumerate() {
        if kept[at].is_some() {
            continue;
        }
        let record = Record::decode(&key, record);
        match record.map_err(|error| TreeError::Record { key, error })? {
            Record::Internal(record) => points.push((at, record.commitment)),
            Record::Leaf(record) => leaves.push((at, record)),
        }
    }
    let (at, points): (Vec<usize>, Vec<Point>) = points.into_iter().unzip();
    for (at, image) in at.into_iter().zip(tools.images(&points)) {
        images[at] = image;
    }
    let (at, leaves): (Vec<usize>, Vec<LeafRecord>) = leaves.into_iter().unzip();
    for (at, state) in at.into_iter().zip(tools.load(&leaves)) {
        images[at] = state.image;
    }
    Ok(reduce_all(&images))
}

/// A leaf on a way.
struct LeafOnWay<'a> {
    key: &'a NodeKey,
    stem: &'a Stem,
    record: Arc<[u8]>,
    /// None of a leaf in an absent stem's place, of which no value is proven.
    values: &'a [(u8, Value)],
    /// The numbers of its polynomials: its own, and C1's and C2's if they are opened.
    numbers: [Option<usize>; 3],
}

/// The polynomials behind a skeleton's commitments, by number. Also fills in the current values.
fn find_polynomials(
    reader: &impl ValueReader,
    tools: Tools,
    skeleton: &Skeleton,
    diffs: &mut [StemDiff],
    nodes: Vec<(NodeKey, Found)>,
) -> Result<Vec<SparsePolynomial>, TreeError> {
    let asked = |node: &Node| match node {
        Node::Leaf { stem, asked, .. } => asked.map(|at| (at, *stem)),
        Node::Internal { .. } => None,
    };
    let (asked, stems): (Vec<usize>, Vec<Stem>) = skeleton.nodes.iter().filter_map(asked).unzip();
    let shares = stems.par_chunks(share(stems.len()));
    let values: Result<Vec<_>, _> = shares.map(|stems| reader.values(stems)).collect();
    let values: Vec<_> = values?.into_iter().flatten().collect();
    for (at, values) in asked.into_iter().zip(&values) {
        for diff in &mut diffs[at].suffixes {
            let found = values.binary_search_by_key(&diff.suffix, |(suffix, _)| *suffix);
            diff.current = found.ok().map(|at| values[at].1);
        }
    }

    let mut all = vec![(Point::IDENTITY, Vec::new()); skeleton.commitments];
    let mut values = values.iter();
    let mut on_way = Vec::with_capacity(nodes.len());
    assert_eq!(
        skeleton.nodes.len(),
        nodes.len(),
        "invariant: nodes on the ways are those found"
    );
    // Both are in the order of their paths.
    for (node, (key, found)) in skeleton.nodes.iter().zip(nodes) {
        assert_eq!(
            *node.key(),
            key,
            "invariant: nodes on the ways are those found"
        );
        match (node, found) {
            (Node::Internal { commitment, .. }, Found::Internal(polynomial)) => {
                all[*commitment] = polynomial;
            }
            (
                Node::Leaf {
                    key,
                    stem,
                    commitment,
                    asked,
                    halves: [c1, c2],
                },
                Found::Leaf(record),
            ) => on_way.push(LeafOnWay {
                key,
                stem,
                record,
                values: asked
                    .and_then(|_| values.next())
                    .map_or(&[], |values| values),
                numbers: [Some(*commitment), *c1, *c2],
            }),
            _ => unreachable!("invariant: what a way goes through is internal"),
        }
    }
    let shares = on_way.par_chunks(share(on_way.len()));
    let shares: Result<Vec<_>, TreeError> = shares
        .map(|share| leaf_polynomials(tools.alone(), share))
        .collect();
    for (number, polynomial) in shares?.into_iter().flatten() {
        all[number] = polynomial;
    }
    Ok(all)
}

/// The numbered polynomials of leaves.
fn leaf_polynomials(
    tools: Tools,
    leaves: &[LeafOnWay],
) -> Result<Vec<(usize, SparsePolynomial)>, TreeError> {
    let decode = |leaf: &LeafOnWay| {
        let key = *leaf.key;
        Record::leaf(&key, &leaf.record).map_err(|error| TreeError::Record { key, error })
    };
    let records: Result<Vec<_>, _> = leaves.iter().map(decode).collect();
    let mut polynomials = Vec::with_capacity(2 * leaves.len());
    for (leaf, state) in leaves.iter().zip(tools.load_whole(&records?)) {
        let [own, halves @ ..] = leaf.numbers;
        let [c1, c2] = state.half_images.map(Fr::reduced);
        let mut values = vec![(0, Fr::ONE), (1, stem_scalar(leaf.stem)), (2, c1), (3, c2)];
        values.retain(|(_, value)| !value.is_zero());
        let commitment = state.commitment.unwrap_or_default();
        polynomials.extend(own.map(|own| (own, (commitment, values))));
        for (half, number) in (0u8..).zip(halves) {
            let Some(number) = number else { continue };
            let values = leaf.values.iter();
            let values = values.filter(|(suffix, _)| suffix / 128 == half);
            let values = values.flat_map(polynomial_values).collect();
            polynomials.push((number, (state.halves[usize::from(half)], values)));
        }
    }
    Ok(polynomials)
}

/// What a value contributes to its half's polynomial.
fn polynomial_values((suffix, value): &(u8, Value)) -> [(u8, Fr); 2] {
    let [low, high] = value_scalars(Some(value));
    let point = suffix.wrapping_mul(2);
    [(point, low), (point + 1, high)]
}
