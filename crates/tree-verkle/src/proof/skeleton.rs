//! The nodes that a proof is about, in the order of their paths: what prover and verifier derive alike from the stems and their ways.

use super::witness::WitnessError;
use crate::{NodeKey, Stem, StemDiff};
use std::ops::Range;

/// How the way to a stem ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// In nothing.
    Empty,
    /// At another stem's leaf.
    Other,
    /// At its own leaf.
    Present,
}

/// The way to a stem: how many of its bytes it takes, and how it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Way {
    pub(crate) depth: usize,
    pub(crate) end: End,
}

impl Way {
    pub(crate) fn to_byte(self) -> u8 {
        (self.depth as u8) << 3 | self.end as u8
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        let end = match byte & 7 {
            0 => End::Empty,
            1 => End::Other,
            2 => End::Present,
            _ => return None,
        };
        let depth = usize::from(byte >> 3);
        (depth > 0).then_some(Self { depth, end })
    }
}

/// A node, with the numbers of its commitments: the root's is 0, the others' follow in the order of their paths.
#[derive(Debug)]
pub(crate) enum Node {
    Internal {
        key: NodeKey,
        commitment: usize,
        /// Bytes that are asked for, and the node under each.
        children: Vec<(u8, Option<usize>)>,
    },
    Leaf {
        key: NodeKey,
        stem: Stem,
        commitment: usize,
        /// The index of its stem among those asked for.
        asked: Option<usize>,
        /// C1 and C2, where a suffix of theirs is asked for.
        halves: [Option<usize>; 2],
    },
}

impl Node {
    pub(crate) fn key(&self) -> &NodeKey {
        match self {
            Self::Internal { key, .. } | Self::Leaf { key, .. } => key,
        }
    }

    pub(crate) fn commitment(&self) -> usize {
        match self {
            Self::Internal { commitment, .. } | Self::Leaf { commitment, .. } => *commitment,
        }
    }
}

/// The nodes, parents before children, in the order of their paths.
#[derive(Debug)]
pub(crate) struct Skeleton {
    pub(crate) nodes: Vec<Node>,
    /// Number of commitments, the root's included.
    pub(crate) commitments: usize,
}

struct Builder<'a> {
    diffs: &'a [StemDiff],
    ways: &'a [Way],
    others: &'a [Stem],
    other: usize,
    skeleton: Skeleton,
}

impl Skeleton {
    /// The nodes on the ways to stems, which ascend, each with its way.
    pub(crate) fn new(
        diffs: &[StemDiff],
        ways: &[Way],
        others: &[Stem],
    ) -> Result<Self, WitnessError> {
        check_order(diffs)?;
        count("ways of stems", diffs.len(), ways.len())?;
        let mut builder = Builder {
            diffs,
            ways,
            others,
            other: 0,
            skeleton: Self {
                nodes: Vec::new(),
                commitments: 0,
            },
        };
        builder.internal(NodeKey::ROOT, 0..diffs.len())?;
        count("other stems", builder.other, others.len())?;
        Ok(builder.skeleton)
    }
}

pub(crate) fn count(what: &'static str, expected: usize, found: usize) -> Result<(), WitnessError> {
    if expected == found {
        return Ok(());
    }
    Err(WitnessError::Count {
        what,
        expected,
        found,
    })
}

fn check_order(diffs: &[StemDiff]) -> Result<(), WitnessError> {
    if diffs.is_empty() {
        return Err(WitnessError::Empty);
    }
    let wrong = |index: &usize| {
        let diff = &diffs[*index];
        let above = index.checked_sub(1).map(|index| &diffs[index].stem);
        above.is_some_and(|above| *above >= diff.stem)
            || diff.suffixes.is_empty()
            || !diff.suffixes.is_sorted_by(|a, b| a.suffix < b.suffix)
    };
    match (0..diffs.len()).find(wrong) {
        Some(index) => Err(WitnessError::Order { index }),
        None => Ok(()),
    }
}

impl Builder<'_> {
    fn next_commitment(&mut self) -> usize {
        self.skeleton.commitments += 1;
        self.skeleton.commitments - 1
    }

    /// Adds an internal node and all below it that stems of a range lead to.
    fn internal(&mut self, key: NodeKey, range: Range<usize>) -> Result<usize, WitnessError> {
        let index = self.skeleton.nodes.len();
        let commitment = self.next_commitment();
        self.skeleton.nodes.push(Node::Internal {
            key,
            commitment,
            children: Vec::new(),
        });
        let depth = key.depth();
        let mut found = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let byte = self.diffs[start].stem[depth];
            let rest = &self.diffs[start..range.end];
            let end = start + rest.partition_point(|diff| diff.stem[depth] == byte);
            found.push((byte, self.child(key.child(byte), start..end)?));
            start = end;
        }
        if let Node::Internal { children, .. } = &mut self.skeleton.nodes[index] {
            *children = found;
        }
        Ok(index)
    }

    fn child(&mut self, key: NodeKey, range: Range<usize>) -> Result<Option<usize>, WitnessError> {
        let first = self.ways[range.start];
        // All ways end here, or none does.
        let ends = first.depth == key.depth();
        for index in range.clone() {
            let way = self.ways[index];
            if (way.depth == key.depth()) != ends {
                let what = "ends where another stem's way goes on, or goes on where it ends";
                return Err(WitnessError::Way { index, what });
            }
            if ends && (way.end == End::Empty) != (first.end == End::Empty) {
                let what =
                    "ends in nothing where another stem's ends at a leaf, or the other way round";
                return Err(WitnessError::Way { index, what });
            }
        }
        match (ends, first.end) {
            (true, End::Empty) => Ok(None),
            (true, _) => self.leaf(key, range).map(Some),
            (false, _) => self.internal(key, range).map(Some),
        }
    }

    fn leaf(&mut self, key: NodeKey, range: Range<usize>) -> Result<usize, WitnessError> {
        let mut present = range
            .clone()
            .filter(|&index| self.ways[index].end == End::Present);
        let asked = present.next();
        if let Some(index) = present.next() {
            let what = "ends at its own leaf, where another stem's is";
            return Err(WitnessError::Way { index, what });
        }
        let stem = match asked {
            Some(index) => self.diffs[index].stem,
            None => self.next_other(&key, range)?,
        };
        let commitment = self.next_commitment();
        let mut halves = [None; 2];
        for half in 0..2u8 {
            let wanted = asked.is_some_and(|index| {
                let mut suffixes = self.diffs[index].suffixes.iter();
                suffixes.any(|diff| diff.suffix / 128 == half)
            });
            if wanted {
                halves[usize::from(half)] = Some(self.next_commitment());
            }
        }
        self.skeleton.nodes.push(Node::Leaf {
            key,
            stem,
            commitment,
            asked,
            halves,
        });
        Ok(self.skeleton.nodes.len() - 1)
    }

    /// The stem of a leaf that none of the stems that lead to it has.
    fn next_other(&mut self, key: &NodeKey, range: Range<usize>) -> Result<Stem, WitnessError> {
        let index = self.other;
        self.other += 1;
        let Some(stem) = self.others.get(index) else {
            return count("other stems", self.other, self.others.len()).map(|()| [0; 31]);
        };
        if !stem.starts_with(key.path()) || self.diffs[range].iter().any(|diff| diff.stem == *stem)
        {
            return Err(WitnessError::Other { index });
        }
        Ok(*stem)
    }
}

/// A value that a proof opens.
#[derive(Clone, Copy)]
pub(crate) enum Opened<'a> {
    /// The image of a node by its commitment's number, or zero for nothing.
    Child(Option<usize>),
    /// One, which marks a leaf.
    One,
    /// A leaf's stem.
    Stem(&'a Stem),
    /// The image of C1 or C2, by its number.
    Half(usize),
    /// The lower half, or the upper one, of a value by the indices of its stem and suffix.
    Value(usize, usize, usize),
}

/// An opening: a commitment's number, the point, the value.
pub(crate) type Question<'a> = (usize, u8, Opened<'a>);

/// Index of the last coefficient of a leaf's polynomial that may not be zero: the image of C2.
const LAST_OF_LEAF: u8 = 3;

impl Skeleton {
    /// The nodes on the way to a stem that are said to be internal and may as well be leaves.
    ///
    /// A leaf has one at index 0, and nothing beyond index 3. So a node is no leaf if index 0 is opened (a child's image is never one), or a child beyond. Of
    /// other nodes nothing is opened that a leaf would not have: its zeros pass for places without a child.
    fn ambiguous<'a>(&'a self, stem: &'a Stem, way: Way) -> impl Iterator<Item = &'a NodeKey> {
        let mut next = Some(0);
        let on_way = stem[..way.depth].iter().map_while(move |byte| {
            let Node::Internal { key, children, .. } = &self.nodes[next?] else {
                return None;
            };
            let at = children.binary_search_by_key(byte, |(byte, _)| *byte);
            next = at.ok().and_then(|at| children[at].1);
            Some((key, children))
        });
        let is_no_leaf = |(byte, child): &(u8, Option<usize>)| {
            *byte == 0 || *byte > LAST_OF_LEAF && child.is_some()
        };
        on_way
            .filter(move |(key, children)| key.depth() > 0 && !children.iter().any(is_no_leaf))
            .map(|(key, _)| key)
    }

    /// Indices of the stems whose ways end in nothing only if no node on them is a leaf, and none is shown not to be.
    pub(crate) fn doubtful(&self, diffs: &[StemDiff], ways: &[Way]) -> Vec<usize> {
        let ends = |index: &usize| {
            let (stem, way) = (&diffs[*index].stem, ways[*index]);
            way.end == End::Empty && self.ambiguous(stem, way).next().is_some()
        };
        (0..diffs.len()).filter(ends).collect()
    }

    /// Keys that leave none of them doubtful, proven beside the others: on the way of zeros below a node index 0 of each node is opened.
    pub(crate) fn guards(&self, diffs: &[StemDiff], ways: &[Way]) -> Vec<(Stem, u8)> {
        let mut guards = Vec::new();
        for index in self.doubtful(diffs, ways) {
            for node in self.ambiguous(&diffs[index].stem, ways[index]) {
                let mut stem = [0; 31];
                stem[..node.depth()].copy_from_slice(node.path());
                guards.push((stem, 0));
            }
        }
        guards
    }

    /// All openings in their order.
    pub(crate) fn questions<'a>(&'a self, diffs: &'a [StemDiff]) -> Vec<Question<'a>> {
        let mut questions = Vec::new();
        for node in &self.nodes {
            match node {
                Node::Internal {
                    commitment,
                    children,
                    ..
                } => questions.extend(children.iter().map(|(byte, child)| {
                    let child = child.map(|child| self.nodes[child].commitment());
                    (*commitment, *byte, Opened::Child(child))
                })),
                Node::Leaf {
                    stem,
                    commitment,
                    asked,
                    halves,
                    ..
                } => {
                    questions.push((*commitment, 0, Opened::One));
                    questions.push((*commitment, 1, Opened::Stem(stem)));
                    for (point, half) in (2..).zip(halves) {
                        questions.extend(half.map(|half| (*commitment, point, Opened::Half(half))));
                    }
                    if let Some(asked) = *asked {
                        for (at, diff) in diffs[asked].suffixes.iter().enumerate() {
                            if let Some(half) = halves[usize::from(diff.suffix / 128)] {
                                let point = diff.suffix.wrapping_mul(2);
                                questions.push((half, point, Opened::Value(asked, at, 0)));
                                questions.push((half, point + 1, Opened::Value(asked, at, 1)));
                            }
                        }
                    }
                }
            }
        }
        questions
    }
}
