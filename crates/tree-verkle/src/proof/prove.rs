//! Making proofs.

use super::skeleton::{End, Node, Opened, Skeleton, Way};
use super::witness::{Proof, StemDiff, SuffixDiff, Witness};
use crate::{
    InternalRecord, LeafRecord, NodeKey, Record, Settings, Stem, TreeError, Value, ValueReader,
    record::kept_image,
    tools::{BATCH, Tools},
};
use arbor_ipa::{
    Committer, Fr, Multiproof, Point, SparseOpening, Transcript, stem_scalar, value_scalars,
};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Proves the values of keys (stem and suffix), present or not, at the reader's root. New values are left open.
///
/// Of every node on the way all children are read, a level in one batch: an internal node is a polynomial of all its children's
/// images. Records that keep images make that cheap.
///
/// # Errors
/// [`TreeError`]: no keys, missing or malformed nodes, a reader that fails.
pub fn prove(
    reader: &impl ValueReader,
    committer: &Committer,
    keys: &[(Stem, u8)],
) -> Result<Witness, TreeError> {
    let settings = Settings::default();
    let tools = Tools::new(committer, &settings);
    let mut diffs = asked(keys);
    if diffs.is_empty() {
        return Err(TreeError::NoKeys);
    }
    let mut ways = Ways::new(&diffs);
    ways.find(reader, tools)?;
    let Ways {
        ways,
        others,
        internals,
        leaves,
        ..
    } = ways;
    let skeleton =
        Skeleton::new(&diffs, &ways, &others).expect("invariant: ways were found in a tree");
    let polynomials = Polynomials::new(reader, tools, &skeleton, &mut diffs, internals, &leaves)?;

    let encodings = Point::to_bytes_batch(&polynomials.commitments);
    let openings = skeleton
        .questions(&diffs)
        .into_iter()
        .map(|(of, point, opened)| {
            let values = &polynomials.values[of][..];
            let found = values.binary_search_by_key(&point, |(at, _)| *at);
            SparseOpening {
                commitment: encodings[of],
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

/// The keys, sorted, each once.
fn asked(keys: &[(Stem, u8)]) -> Vec<StemDiff> {
    let keys: BTreeSet<_> = keys.iter().copied().collect();
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

/// An internal node on a way: its commitment, and the images of all its children.
type InternalNode = (Point, Vec<(u8, Fr)>);

/// How the ways to the stems go.
struct Ways<'a> {
    diffs: &'a [StemDiff],
    ways: Vec<Way>,
    others: Vec<Stem>,
    internals: HashMap<NodeKey, InternalNode>,
    leaves: HashMap<NodeKey, LeafRecord>,
}

/// A node that stems of a range lead to.
struct OnWay {
    key: NodeKey,
    record: InternalRecord,
    stems: Range<usize>,
}

impl<'a> Ways<'a> {
    fn new(diffs: &'a [StemDiff]) -> Self {
        let nowhere = Way {
            depth: 1,
            end: End::Empty,
        };
        Self {
            diffs,
            ways: vec![nowhere; diffs.len()],
            others: Vec::new(),
            internals: HashMap::new(),
            leaves: HashMap::new(),
        }
    }

    fn find(&mut self, reader: &impl ValueReader, tools: Tools) -> Result<(), TreeError> {
        let root = reader.nodes(&[NodeKey::ROOT])?.pop().flatten();
        let Some(root) = root else {
            self.internals
                .insert(NodeKey::ROOT, (Point::IDENTITY, Vec::new()));
            return Ok(());
        };
        let mut level = vec![OnWay {
            key: NodeKey::ROOT,
            record: internal(&NodeKey::ROOT, &root)?,
            stems: 0..self.diffs.len(),
        }];
        while !level.is_empty() {
            // All children of the level's nodes, of which those on the way are the next level.
            let children = |node: &OnWay| {
                let key = node.key;
                let bytes = node.record.leaves | node.record.internals;
                bytes.iter().map(|byte| key.child(byte)).collect::<Vec<_>>()
            };
            let keys: Vec<NodeKey> = level.iter().flat_map(children).collect();
            let mut records = Vec::with_capacity(keys.len());
            for (key, record) in keys.iter().zip(reader.nodes(&keys)?) {
                records.push(record.ok_or(TreeError::Missing(*key))?);
            }
            let images = images(tools, &keys, &records)?;
            let mut rest = (&keys[..], &records[..], &images[..]);
            let mut next = Vec::new();
            for node in level {
                let count = node.record.leaves.len() + node.record.internals.len();
                let (keys, records, images);
                ((keys, rest.0), (records, rest.1), (images, rest.2)) = (
                    rest.0.split_at(count),
                    rest.1.split_at(count),
                    rest.2.split_at(count),
                );
                let bytes = keys.iter().map(|key| key.path()[node.key.depth()]);
                let values = bytes.zip(images.iter().copied()).collect();
                self.internals
                    .insert(node.key, (node.record.commitment, values));
                self.visit(&node, keys, records, &mut next)?;
            }
            level = next;
        }
        self.others.sort_unstable();
        Ok(())
    }

    /// Shares a node's stems among its children.
    fn visit(
        &mut self,
        node: &OnWay,
        keys: &[NodeKey],
        records: &[Arc<[u8]>],
        next: &mut Vec<OnWay>,
    ) -> Result<(), TreeError> {
        let depth = node.key.depth();
        let mut start = node.stems.start;
        while start < node.stems.end {
            let key = node.key.child(self.diffs[start].stem[depth]);
            let rest = &self.diffs[start..node.stems.end];
            let end = start + rest.partition_point(|diff| diff.stem.starts_with(key.path()));
            let stems = start..end;
            start = end;
            let child = keys.binary_search(&key).ok().map(|at| &records[at]);
            let Some(record) = child else {
                self.ways[stems].fill(Way {
                    depth: depth + 1,
                    end: End::Empty,
                });
                continue;
            };
            match Record::decode(&key, record).map_err(|error| TreeError::Record { key, error })? {
                Record::Internal(record) => next.push(OnWay { key, record, stems }),
                Record::Leaf(leaf) => {
                    let mut own = false;
                    for index in stems {
                        let present = self.diffs[index].stem == leaf.stem;
                        own |= present;
                        let end = if present { End::Present } else { End::Other };
                        self.ways[index] = Way {
                            depth: depth + 1,
                            end,
                        };
                    }
                    self.others.extend((!own).then_some(leaf.stem));
                    self.leaves.insert(key, leaf);
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
    let mut images: Vec<Option<Fr>> = records.iter().map(|record| kept_image(record)).collect();
    let unknown: Vec<usize> = (0..records.len())
        .filter(|&at| images[at].is_none())
        .collect();
    for unknown in unknown.chunks(BATCH) {
        let (mut points, mut leaves) = (Vec::new(), Vec::new());
        for &at in unknown {
            let key = keys[at];
            let record = Record::decode(&key, &records[at]);
            match record.map_err(|error| TreeError::Record { key, error })? {
                Record::Internal(record) => points.push((at, record.commitment)),
                Record::Leaf(record) => leaves.push((at, record)),
            }
        }
        let (at, points): (Vec<usize>, Vec<Point>) = points.into_iter().unzip();
        for (at, image) in at.into_iter().zip(tools.images(&points)) {
            images[at] = Some(image);
        }
        let (at, leaves): (Vec<usize>, Vec<LeafRecord>) = leaves.into_iter().unzip();
        for (at, state) in at.into_iter().zip(tools.load(&leaves)) {
            images[at] = Some(state.image);
        }
    }
    Ok(images
        .into_iter()
        .map(|image| image.unwrap_or(Fr::ZERO))
        .collect())
}

/// The polynomials behind a skeleton's commitments, by number: where they are not zero, and their values there.
struct Polynomials {
    commitments: Vec<Point>,
    values: Vec<Vec<(u8, Fr)>>,
}

impl Polynomials {
    /// Also fills in the current values.
    fn new(
        reader: &impl ValueReader,
        tools: Tools,
        skeleton: &Skeleton,
        diffs: &mut [StemDiff],
        mut internals: HashMap<NodeKey, InternalNode>,
        leaves: &HashMap<NodeKey, LeafRecord>,
    ) -> Result<Self, TreeError> {
        let mut all = Self {
            commitments: vec![Point::IDENTITY; skeleton.commitments],
            values: vec![Vec::new(); skeleton.commitments],
        };
        let on_way: Vec<LeafRecord> = skeleton
            .nodes
            .iter()
            .filter_map(|node| leaves.get(node.key()))
            .copied()
            .collect();
        let states = tools.load_whole(&on_way);
        let mut states = states.into_iter();
        // Of a leaf in an absent stem's place no value is proven.
        let asked = |node: &Node| match node {
            Node::Leaf { stem, asked, .. } => asked.map(|_| *stem),
            Node::Internal { .. } => None,
        };
        let asked: Vec<Stem> = skeleton.nodes.iter().filter_map(asked).collect();
        let mut values = reader.values(&asked)?.into_iter();
        for node in &skeleton.nodes {
            match node {
                Node::Internal {
                    key, commitment, ..
                } => {
                    if let Some((point, values)) = internals.remove(key) {
                        all.commitments[*commitment] = point;
                        all.values[*commitment] = values;
                    }
                }
                Node::Leaf {
                    stem,
                    commitment,
                    asked,
                    halves,
                    ..
                } => {
                    let Some(state) = states.next() else {
                        break;
                    };
                    let values = asked.and_then(|_| values.next()).unwrap_or_default();
                    all.commitments[*commitment] = state.commitment.unwrap_or_default();
                    let [c1, c2] = state.half_images;
                    all.values[*commitment] =
                        vec![(0, Fr::ONE), (1, stem_scalar(stem)), (2, c1), (3, c2)];
                    for (half, number) in (0u8..).zip(halves) {
                        let Some(number) = *number else { continue };
                        all.commitments[number] = state.halves[usize::from(half)];
                        let values = values.iter().filter(|(suffix, _)| suffix / 128 == half);
                        all.values[number] = values.flat_map(polynomial_values).collect();
                    }
                    let Some(asked) = *asked else { continue };
                    for diff in &mut diffs[asked].suffixes {
                        let found =
                            values.binary_search_by_key(&diff.suffix, |(suffix, _)| *suffix);
                        diff.current = found.ok().map(|at| values[at].1);
                    }
                }
            }
        }
        Ok(all)
    }
}

/// What a value contributes to its half's polynomial.
fn polynomial_values((suffix, value): &(u8, Value)) -> [(u8, Fr); 2] {
    let [low, high] = value_scalars(Some(value));
    let point = suffix.wrapping_mul(2);
    [(point, low), (point + 1, high)]
}
