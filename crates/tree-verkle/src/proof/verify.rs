//! Checking witnesses, and the root after them.

use super::skeleton::{End, Node, Opened, Skeleton, Way, count};
use super::witness::{Witness, WitnessError};
use crate::{
    ByteSet, InternalRecord, NodeKey, Settings, Stem, StemUpdate, SuffixDiff, TreeError,
    TreeUpdate, Value, ValueChange,
    apply::apply_to,
    plan::{self, Source},
    tools::{LeafState, Tools},
};
use arbor_cpu::threads::prelude::*;
use arbor_ipa::{
    Committer, Fr, Multiproof, Point, Query, Transcript, Trust, stem_scalar, value_scalars,
};
use std::borrow::Cow;
use std::collections::HashMap;

/// A witness that holds: the nodes on the ways to its keys, whose commitments and values are proven.
pub struct Verified<'a> {
    witness: Cow<'a, Witness>,
    skeleton: Skeleton,
    commitments: Vec<Point>,
    images: Vec<Fr>,
    doubtful: Vec<usize>,
}

impl Witness {
    /// Checks the current values against a root, as headers have it: compressed, zeros for an empty tree. `None` if the proof is well formed and does not hold.
    ///
    /// # Errors
    /// [`WitnessError`] for what cannot be a witness: parts that do not fit together, points and scalars that are none.
    pub fn verify(
        &self,
        committer: &Committer,
        root: &[u8; 32],
    ) -> Result<Option<Verified<'_>>, WitnessError> {
        let ways = self.ways()?;
        let skeleton = Skeleton::new(&self.state_diff, &ways, &self.proof.other_stems)?;
        let sent = &self.proof.commitments_by_path;
        count("commitments by path", skeleton.commitments - 1, sent.len())?;
        for (index, (diff, way)) in self.state_diff.iter().zip(&ways).enumerate() {
            if way.end != End::Present
                && diff.suffixes.iter().any(|suffix| suffix.current.is_some())
            {
                return Err(WitnessError::Absent { index });
            }
        }
        let multiproof = Multiproof::from_bytes(&self.proof.multiproof)?;
        let mut commitments = vec![Point::from_bytes(root).map_err(WitnessError::Root)?];
        let decoded: Vec<_> = sent
            .par_chunks(512)
            .flat_map_iter(|chunk| Point::from_bytes_batch(chunk, Trust::Untrusted))
            .collect();
        for (index, point) in decoded.into_iter().enumerate() {
            commitments.push(point.map_err(|error| WitnessError::Commitment { index, error })?);
        }
        for node in &skeleton.nodes[1..] {
            let commitment = node.commitment();
            // A place without a child could pass for such a node, and for others below it.
            if matches!(node, Node::Internal { .. }) && commitments[commitment] == Point::IDENTITY {
                let index = commitment - 1;
                return Err(WitnessError::Childless { index });
            }
        }
        let shares = commitments.par_chunks(512);
        let images: Vec<_> = shares.flat_map_iter(Point::map_to_field_batch).collect();
        let questions = skeleton.questions(&self.state_diff).into_iter();
        let queries: Vec<Query> = questions
            .map(|(of, point, opened)| Query {
                commitment: commitments[of],
                point,
                value: self.opened(opened, &images),
            })
            .collect();
        let holds = multiproof.verify(committer, &mut Transcript::new(b"vt"), &queries);
        Ok(holds.then(|| Verified {
            witness: Cow::Borrowed(self),
            doubtful: skeleton.doubtful(&self.state_diff, &ways),
            skeleton,
            commitments,
            images,
        }))
    }

    fn ways(&self) -> Result<Vec<Way>, WitnessError> {
        let bytes = self.proof.depth_extension_present.iter().enumerate();
        bytes
            .map(|(index, &byte)| {
                let what = "has no depth, or ends in none of the three ways";
                Way::from_byte(byte).ok_or(WitnessError::Way { index, what })
            })
            .collect()
    }

    fn opened(&self, opened: Opened, images: &[Fr]) -> Fr {
        match opened {
            Opened::Child(child) => child.map_or(Fr::ZERO, |child| images[child]),
            Opened::One => Fr::ONE,
            Opened::Stem(stem) => stem_scalar(stem),
            Opened::Half(half) => images[half],
            Opened::Value(stem, at, part) => {
                let diff = self.state_diff[stem].suffixes[at];
                value_scalars(diff.current.as_ref())[part]
            }
        }
    }
}

impl Verified<'_> {
    /// The proven values by key: `None` for one that is absent.
    pub fn values(&self) -> impl Iterator<Item = ([u8; 32], Option<Value>)> {
        self.witness.keys().map(|(stem, diff)| {
            let mut key = [diff.suffix; 32];
            key[..31].copy_from_slice(stem);
            (key, diff.current)
        })
    }

    /// Stems whose absence the proof shows only if it was made honestly: ascending, none in a proof of [`prove_guarded`](super::prove_guarded).
    ///
    /// Their ways end in nothing, below a node of which nothing is opened that a leaf would not have. Whoever wants a key that is there to seem absent can say of its
    /// leaf that it is an internal node, and open one of the leaf's zeros: the format (that of go-verkle and the testnets, EIP-6800) has no opening that would tell them apart. A value that is
    /// present, and an absence that another stem's leaf shows, cannot be forged like that.
    pub fn doubtful(&self) -> impl Iterator<Item = &Stem> {
        let stem = |index: &usize| &self.witness.state_diff[*index].stem;
        self.doubtful.iter().map(stem)
    }

    /// Makes the witness its own.
    pub fn into_owned(self) -> Verified<'static> {
        Verified {
            witness: Cow::Owned(self.witness.into_owned()),
            skeleton: self.skeleton,
            commitments: self.commitments,
            images: self.images,
            doubtful: self.doubtful,
        }
    }

    /// The proven value of a key: the inner option is `None` if the key is absent, the outer one if the witness does not
    /// have the key.
    pub fn value(&self, stem: &Stem, suffix: u8) -> Option<Option<Value>> {
        let diffs = &self.witness.state_diff;
        let place = diffs.binary_search_by(|diff| diff.stem.cmp(stem)).ok()?;
        let suffixes = &diffs[place].suffixes;
        let place = suffixes.binary_search_by_key(&suffix, |diff| diff.suffix);
        Some(suffixes[place.ok()?].current)
    }

    /// The root after the witness' new values, computed from the proven nodes alone.
    ///
    /// # Errors
    /// None that a proven witness could cause: its nodes are all there.
    pub fn root_after(&self, committer: &Committer) -> Result<[u8; 32], TreeError> {
        self.root_with(committer, |_, diff| diff.new)
    }

    /// The root after new values of the witness' keys, computed from the proven nodes alone: `new` returns the new value of
    /// a key, or `None` if the value stays.
    ///
    /// # Errors
    /// None that a proven witness could cause: its nodes are all there.
    pub fn root_with(
        &self,
        committer: &Committer,
        new: impl Fn(&Stem, &SuffixDiff) -> Option<Value>,
    ) -> Result<[u8; 32], TreeError> {
        let updates: Vec<StemUpdate> = self
            .witness
            .state_diff
            .iter()
            .filter_map(|diff| {
                let changes = diff.suffixes.iter().filter_map(|of| {
                    let new = new(&diff.stem, of);
                    (new.is_some() && new != of.current).then_some(ValueChange {
                        suffix: of.suffix,
                        old: of.current,
                        new,
                    })
                });
                let changes: Vec<_> = changes.collect();
                (!changes.is_empty()).then_some(StemUpdate {
                    stem: diff.stem,
                    changes,
                })
            })
            .collect();
        if updates.is_empty() {
            return Ok(self.commitments[0].to_bytes());
        }
        let settings = Settings::default();
        let tools = Tools::new(committer, &settings);
        let by_key = self.skeleton.nodes.iter().enumerate();
        let partial = Partial {
            verified: self,
            by_key: by_key.map(|(index, node)| (*node.key(), index)).collect(),
        };
        let run = apply_to(&partial, tools, &[&updates])?;
        Ok(TreeUpdate::of_steps(run).root_hash())
    }
}

/// The proven nodes as a source for an update.
struct Partial<'a> {
    verified: &'a Verified<'a>,
    by_key: HashMap<NodeKey, usize>,
}

impl Source for Partial<'_> {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<plan::Node>>, TreeError> {
        let node = |key: &NodeKey| self.by_key.get(key).map(|&index| self.node(index));
        Ok(keys.iter().map(node).collect())
    }
}

impl Partial<'_> {
    fn node(&self, index: usize) -> plan::Node {
        let Verified {
            witness,
            skeleton,
            commitments,
            images,
            ..
        } = self.verified;
        match &skeleton.nodes[index] {
            Node::Internal {
                commitment,
                children,
                ..
            } => {
                let (mut leaves, mut internals) = (ByteSet::EMPTY, ByteSet::EMPTY);
                for (byte, child) in children {
                    let child = child.map(|child| &skeleton.nodes[child]);
                    leaves.set(*byte, matches!(child, Some(Node::Leaf { .. })));
                    internals.set(*byte, matches!(child, Some(Node::Internal { .. })));
                }
                plan::Node::Part(InternalRecord {
                    leaves,
                    internals,
                    commitment: commitments[*commitment],
                    image: Some(images[*commitment].to_limbs()),
                })
            }
            Node::Leaf {
                stem,
                commitment,
                asked,
                halves,
                ..
            } => {
                let diffs = asked
                    .iter()
                    .flat_map(|&asked| &witness.state_diff[asked].suffixes);
                let present = diffs.filter(|diff| diff.current.is_some());
                let state = LeafState {
                    halves: halves
                        .map(|half| half.map_or(Point::IDENTITY, |half| commitments[half])),
                    half_images: halves
                        .map(|half| half.map_or([0; 4], |half| images[half].to_limbs())),
                    commitment: Some(commitments[*commitment]),
                    image: images[*commitment].to_limbs(),
                };
                plan::Node::PartLeaf(
                    *stem,
                    present.map(|diff| diff.suffix).collect(),
                    Box::new(state),
                )
            }
        }
    }
}
