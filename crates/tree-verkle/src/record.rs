//! The records of nodes.
//!
//! | internal node | leaf |
//! |---|---|
//! | tag | tag |
//! | bytes of children that are leaves | the stem from the leaf's depth on |
//! | bytes of children that are internal nodes | suffixes that have values |
//! | | all values, if kept: 32 bytes each |
//! | commitment | C1, C2: each where the leaf has values in its half; or those values, where they are few and shorter |
//! | its image, if kept | commitment, if kept |
//! | | its image, if kept |
//!
//! An internal node's commitment and image are kept together as x and x/y, from which both follow, where points are not compressed.

use crate::{ByteSet, FewValues, NodeKey, Stem, Value, error::RecordError};
use arbor_field::{Base, Limbs, Modulus, Scalar, limbs::less};
use arbor_ipa::{Committer, Point, Ratio, Trust};
use std::sync::Arc;

/// What of a node is stored beside what cannot be done without. A record says which form it has, so that nodes of all forms can lie side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// Points take 32 bytes and a square root to read, not 64.
    pub compressed: bool,
    /// The image of a node's commitment in the scalar field is kept, 32 bytes: what the node above needs of it, which a leaf would else
    /// have to be computed for.
    pub images: bool,
    /// A leaf's own commitment is kept, which else is computed from its stem and the images of C1 and C2.
    pub leaf_commitments: bool,
    /// A few values are kept in place of C1 or C2, where they take fewer bytes.
    pub values: bool,
    /// Leaves have all their values in their records, beside everything else: as the published systems have them.
    pub whole: bool,
}

impl Default for Form {
    /// What is recommended: images are kept, and values where they are shorter than their commitment.
    fn default() -> Self {
        Self {
            compressed: false,
            images: true,
            leaf_commitments: false,
            values: true,
            whole: false,
        }
    }
}

impl Form {
    /// What the published systems keep of nodes, as near as these records come: leaves with C, C1, C2 and all values, points uncompressed, no images.
    pub const PUBLISHED: Self = Self {
        compressed: false,
        images: false,
        leaf_commitments: true,
        values: false,
        whole: true,
    };
}

/// Bits of the tag.
const LEAF: u8 = 1;
const COMPRESSED: u8 = 2;
const IMAGES: u8 = 4;
const LEAF_COMMITMENT: u8 = 8;
/// Of a leaf: values in place of C1, of C2.
const VALUES: [u8; 2] = [16, 32];
/// Of a leaf: all values.
pub(crate) const WHOLE: u8 = 64;

impl Form {
    fn tag(self, leaf: bool) -> u8 {
        let bit = |on: bool, bit: u8| if on { bit } else { 0 };
        bit(leaf, LEAF)
            | bit(self.compressed, COMPRESSED)
            | bit(self.images, IMAGES)
            | bit(leaf && self.leaf_commitments, LEAF_COMMITMENT)
            | bit(leaf && self.whole, WHOLE)
    }

    fn of(tag: u8) -> Self {
        Self {
            compressed: tag & COMPRESSED != 0,
            images: tag & IMAGES != 0,
            leaf_commitments: tag & LEAF_COMMITMENT != 0,
            values: tag & (VALUES[0] | VALUES[1]) != 0,
            whole: tag & WHOLE != 0,
        }
    }

    /// A form in which internal nodes have x and x/y.
    const RATIOS: Self = Self {
        compressed: false,
        images: true,
        leaf_commitments: false,
        values: false,
        whole: false,
    };

    /// Whether internal nodes have x and x/y in place of a point and its image.
    pub(crate) fn ratios(self) -> bool {
        self.images && !self.compressed
    }

    /// Reads a tag, which the place must allow: the form, and of a leaf whether it has values in place of C1 and of C2.
    #[expect(clippy::type_complexity, reason = "three parts of a tag, named above")]
    pub(crate) fn decode_front<'a>(
        key: &NodeKey,
        bytes: &'a [u8],
    ) -> Result<(Self, Option<[bool; 2]>, &'a [u8]), RecordError> {
        let (&tag, rest) = bytes.split_first().ok_or(RecordError::Part("bytes"))?;
        let (form, leaf) = (Self::of(tag), tag & LEAF != 0);
        let possible = if leaf {
            1..=NodeKey::MAX_DEPTH
        } else {
            0..=NodeKey::MAX_DEPTH - 1
        };
        let values = if leaf { VALUES } else { [0; 2] };
        if tag & !(values[0] | values[1]) != form.tag(leaf) || !possible.contains(&key.depth()) {
            return Err(RecordError::Tag(tag));
        }
        let values = values.map(|bit| tag & bit != 0);
        Ok((form, leaf.then_some(values), rest))
    }

    /// Bytes of a stored point.
    fn point(self) -> usize {
        if self.compressed { 32 } else { 64 }
    }
}

/// Splits what follows a leaf's suffixes into all its values, if the form has them, and the rest.
pub(crate) fn split_values<'a>(
    form: Form,
    suffixes: &ByteSet,
    bytes: &'a [u8],
) -> Result<(Option<&'a [Value]>, &'a [u8]), RecordError> {
    if !form.whole {
        return Ok((None, bytes));
    }
    let values = bytes.split_at_checked(32 * suffixes.len());
    let (values, rest) = values.ok_or(RecordError::Part("values"))?;
    Ok((Some(values.as_chunks().0), rest))
}

/// An internal node's commitment as its record has it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    /// And its image, if that is kept.
    Point(Point, Option<Limbs>),
    Ratio(Ratio),
}

/// A node that other nodes hang under.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InternalRecord {
    /// Bytes under which leaves hang.
    pub leaves: ByteSet,
    /// Bytes under which internal nodes hang.
    pub internals: ByteSet,
    /// The sum of the children's images times their points.
    pub commitment: Point,
    /// The image of the commitment, if it is kept, as a number below the group's order.
    pub image: Option<Limbs>,
}

/// The values of one stem: which there are, and their commitments. The values themselves are elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafRecord {
    /// The stem.
    pub stem: Stem,
    /// Suffixes that have a value.
    pub suffixes: ByteSet,
    /// What is kept of each half.
    pub halves: [Half; 2],
    /// The leaf's commitment, if it is kept.
    pub commitment: Option<Point>,
    /// The image of the commitment, if it is kept, as a number below the group's order.
    pub image: Option<Limbs>,
}

/// What is kept of the values 0 to 127, or 128 to 255, of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// There are none.
    Nothing,
    /// Their commitment, C1 or C2.
    Point(Point),
    /// They themselves.
    Values(FewValues),
}

/// A node's record, decoded.
#[expect(
    clippy::large_enum_variant,
    reason = "most nodes are leaves, and none lives long"
)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record {
    /// An internal node.
    Internal(InternalRecord),
    /// A leaf: EIP-6800's extension node.
    Leaf(LeafRecord),
}

impl Record {
    /// Reads the record of a node at a place. The bytes are trusted to be those that were written: points are not checked to be on the curve.
    ///
    /// # Errors
    /// [`RecordError`] for what cannot be a record.
    pub fn decode(key: &NodeKey, bytes: &[u8]) -> Result<Self, RecordError> {
        match Form::decode_front(key, bytes)? {
            (form, Some(values), rest) => {
                LeafRecord::decode(key, form, values, rest).map(Self::Leaf)
            }
            (form, None, rest) => InternalRecord::decode(form, rest).map(Self::Internal),
        }
    }

    /// As [`decode`](Self::decode), where an internal node must be.
    ///
    /// # Errors
    /// [`RecordError`], also for a leaf.
    pub fn internal(key: &NodeKey, bytes: &[u8]) -> Result<InternalRecord, RecordError> {
        match Self::decode(key, bytes)? {
            Self::Internal(record) => Ok(record),
            Self::Leaf(_) => Err(RecordError::Kind("a leaf, not an internal node")),
        }
    }

    /// As [`decode`](Self::decode), where a leaf must be.
    ///
    /// # Errors
    /// [`RecordError`], also for an internal node.
    pub fn leaf(key: &NodeKey, bytes: &[u8]) -> Result<LeafRecord, RecordError> {
        match Form::decode_front(key, bytes)? {
            (form, Some(values), rest) => LeafRecord::decode(key, form, values, rest),
            (_, None, _) => Err(RecordError::Kind("an internal node, not a leaf")),
        }
    }
}

/// What of a record tells the tree's shape; no point is decoded.
pub(crate) enum Head {
    Internal,
    Leaf(Stem, ByteSet),
}

impl Head {
    pub(crate) fn decode(key: &NodeKey, bytes: &[u8]) -> Result<Self, RecordError> {
        let (form, values, rest) = Form::decode_front(key, bytes)?;
        let Some(values) = values else {
            return Ok(Self::Internal);
        };
        let (stem, suffixes, rest) = LeafRecord::decode_head(key, rest)?;
        let (_, mut rest) = split_values(form, &suffixes, rest)?;
        let mut points = usize::from(form.leaf_commitments);
        // Values come before points.
        for (half, kept) in values.into_iter().enumerate() {
            if kept {
                (_, rest) = FewValues::decode_front(&suffixes, half, rest)?;
            } else {
                points += usize::from(suffixes.has_half(half));
            }
        }
        if form.compressed && points == 0 {
            return Err(RecordError::Part("points"));
        }
        if rest.len() != points * form.point() + 32 * usize::from(form.images) {
            return Err(RecordError::Part("last bytes"));
        }
        Ok(Self::Leaf(stem, suffixes))
    }
}

/// The number of which an image is the remainder, if the record of a node keeps it: the image, or x/y. No point is decoded.
pub(crate) fn kept_image(bytes: &[u8]) -> Option<Limbs> {
    let (&tag, rest) = bytes.split_first()?;
    let of_ratio = tag & LEAF == 0 && Form::of(tag).ratios();
    let (number, bound): (Limbs, Limbs) = if of_ratio {
        let (_, rest) = ByteSet::decode_front(rest)?;
        let (_, point) = ByteSet::decode_front(rest)?;
        let point: &[u8; 64] = point.try_into().ok()?;
        let (words, _) = point.as_chunks();
        let word = |i: usize| u64::from_be_bytes(words[7 - i]);
        (std::array::from_fn(word), Base::MODULUS)
    } else {
        let image: &[u8; 32] = rest.last_chunk().filter(|_| tag & IMAGES != 0)?;
        (number(image), Scalar::MODULUS)
    };
    less(&number, &bound).then_some(number)
}

/// A number from its bytes, least significant first.
fn number(bytes: &[u8; 32]) -> Limbs {
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

fn put_number(number: &Limbs, out: &mut Vec<u8>) {
    out.extend_from_slice(number.map(u64::to_le_bytes).as_flattened());
}

impl InternalRecord {
    fn decode(form: Form, bytes: &[u8]) -> Result<Self, RecordError> {
        let (leaves, internals, kept) = Self::decode_kept(form, bytes)?;
        let (commitment, image) = match kept {
            Kept::Point(point, image) => (point, image),
            Kept::Ratio(ratio) => (ratio.to_point()?, Some(ratio.image())),
        };
        Ok(Self {
            leaves,
            internals,
            commitment,
            image,
        })
    }

    /// Bytes of children that are leaves, of those that are internal nodes, and the commitment as it is kept.
    pub(crate) fn parts(
        key: &NodeKey,
        bytes: &[u8],
    ) -> Result<(ByteSet, ByteSet, Kept), RecordError> {
        match Form::decode_front(key, bytes)? {
            (form, None, rest) => Self::decode_kept(form, rest),
            (_, Some(_), _) => Err(RecordError::Kind("a leaf, not an internal node")),
        }
    }

    fn decode_kept(form: Form, bytes: &[u8]) -> Result<(ByteSet, ByteSet, Kept), RecordError> {
        let children = RecordError::Part("children");
        let (leaves, rest) = ByteSet::decode_front(bytes).ok_or(children)?;
        let (internals, rest) = ByteSet::decode_front(rest).ok_or(children)?;
        if leaves.meets(&internals) || leaves.is_empty() && internals.is_empty() {
            return Err(children);
        }
        let mut rest = Parts { form, rest };
        let kept = if form.ratios() {
            Kept::Ratio(Ratio::from_bytes(rest.take(64, "points")?)?)
        } else {
            let point = rest.point()?;
            Kept::Point(point, form.images.then(|| rest.image()).transpose()?)
        };
        rest.end()?;
        Ok((leaves, internals, kept))
    }

    /// The record of a node whose commitment is kept as x and x/y.
    pub(crate) fn encode_ratio(leaves: &ByteSet, internals: &ByteSet, ratio: &Ratio) -> Arc<[u8]> {
        let mut out = Vec::with_capacity(3 * 64);
        Self::encode_front(Form::RATIOS, leaves, internals, &mut out);
        out.extend_from_slice(&ratio.to_bytes());
        Arc::from(&out[..])
    }

    fn encode_front(form: Form, leaves: &ByteSet, internals: &ByteSet, out: &mut Vec<u8>) {
        out.push(form.tag(false));
        leaves.encode_into(out);
        internals.encode_into(out);
    }
}

impl LeafRecord {
    /// The stem and the suffixes, and what comes after them.
    pub(crate) fn decode_head<'a>(
        key: &NodeKey,
        bytes: &'a [u8],
    ) -> Result<(Stem, ByteSet, &'a [u8]), RecordError> {
        let mut stem = [0; 31];
        let (front, back) = stem.split_at_mut(key.depth());
        front.copy_from_slice(key.path());
        let (own, rest) = bytes
            .split_at_checked(back.len())
            .ok_or(RecordError::Part("stem's bytes"))?;
        back.copy_from_slice(own);
        match ByteSet::decode_front(rest) {
            Some((set, rest)) if !set.is_empty() => Ok((stem, set, rest)),
            _ => Err(RecordError::Part("suffixes")),
        }
    }

    fn decode(
        key: &NodeKey,
        form: Form,
        values: [bool; 2],
        bytes: &[u8],
    ) -> Result<Self, RecordError> {
        let (stem, suffixes, rest) = Self::decode_head(key, bytes)?;
        let (_, mut rest) = split_values(form, &suffixes, rest)?;
        let mut halves = [Half::Nothing; 2];
        for half in (0..2).filter(|&half| values[half]) {
            let few;
            (few, rest) = FewValues::decode_front(&suffixes, half, rest)?;
            halves[half] = Half::Values(few);
        }
        let mut rest = Parts { form, rest };
        for half in (0..2).filter(|&half| suffixes.has_half(half) && !values[half]) {
            halves[half] = Half::Point(rest.point()?);
        }
        let commitment = form.leaf_commitments.then(|| rest.point()).transpose()?;
        let without_points = values == [0, 1].map(|half| suffixes.has_half(half));
        if form.compressed && without_points && commitment.is_none() {
            return Err(RecordError::Part("points"));
        }
        let image = form.images.then(|| rest.image()).transpose()?;
        rest.end()?;
        Ok(Self {
            stem,
            suffixes,
            halves,
            commitment,
            image,
        })
    }
}

/// The points and images at the end of a record.
struct Parts<'a> {
    form: Form,
    rest: &'a [u8],
}

impl Parts<'_> {
    fn take(&mut self, bytes: usize, what: &'static str) -> Result<&[u8], RecordError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(bytes)
            .ok_or(RecordError::Part(what))?;
        self.rest = rest;
        Ok(taken)
    }

    fn point(&mut self) -> Result<Point, RecordError> {
        let compressed = self.form.compressed;
        let bytes = self.take(self.form.point(), "points")?;
        if compressed {
            let bytes: [u8; 32] = bytes.try_into().map_err(|_| RecordError::Part("points"))?;
            let mut points = Point::from_bytes_batch(&[bytes], Trust::Trusted);
            return Ok(points.pop().ok_or(RecordError::Part("points"))??);
        }
        Ok(Point::from_uncompressed(bytes, Trust::Trusted)?)
    }

    fn image(&mut self) -> Result<Limbs, RecordError> {
        let bytes = self.take(32, "images")?;
        let bytes: &[u8; 32] = bytes.try_into().map_err(|_| RecordError::Part("images"))?;
        let image = number(bytes);
        less(&image, &Scalar::MODULUS)
            .then_some(image)
            .ok_or(RecordError::Image)
    }

    fn end(self) -> Result<(), RecordError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(RecordError::Part("last bytes"))
        }
    }
}

/// Writes records in a form, all their points made affine with one inversion (with one each, if `batched` is off).
///
/// What the form keeps must be there.
pub(crate) fn encode(form: Form, batched: bool, nodes: &[(NodeKey, Record)]) -> Vec<Arc<[u8]>> {
    let mut points = Vec::with_capacity(2 * nodes.len());
    let mut ratios = Vec::new();
    for (key, node) in nodes {
        match node {
            Record::Internal(node) if form.ratios() => ratios.push(node.commitment),
            Record::Internal(node) => points.push(node.commitment),
            Record::Leaf(leaf) => leaf.parts(key).put_points(form, &mut points),
        }
    }
    let mut points = PointBytes::new(form, batched, &points, &ratios);
    let mut out = Vec::with_capacity(3 * 64);
    let encode = |(key, node): &(NodeKey, Record)| {
        out.clear();
        match node {
            Record::Internal(node) => node.encode_into(form, &mut points, &mut out),
            Record::Leaf(leaf) => leaf.parts(key).encode_into(form, &mut points, &mut out),
        }
        Arc::from(&out[..])
    };
    nodes.iter().map(encode).collect()
}

/// As [`encode`], of leaves by their parts.
pub(crate) fn encode_leaves(form: Form, batched: bool, leaves: &[LeafParts]) -> Vec<Arc<[u8]>> {
    let mut points = Vec::new();
    for leaf in leaves {
        leaf.put_points(form, &mut points);
    }
    let mut points = PointBytes::new(form, batched, &points, &[]);
    let mut out = Vec::with_capacity(3 * 64);
    let encode = |leaf: &LeafParts| {
        out.clear();
        leaf.encode_into(form, &mut points, &mut out);
        Arc::from(&out[..])
    };
    leaves.iter().map(encode).collect()
}

impl InternalRecord {
    fn encode_into(&self, form: Form, points: &mut PointBytes, out: &mut Vec<u8>) {
        Self::encode_front(form, &self.leaves, &self.internals, out);
        if form.ratios() {
            out.extend(
                points
                    .ratios
                    .next()
                    .into_iter()
                    .flat_map(|ratio| ratio.to_bytes()),
            );
            return;
        }
        points.next_into(out);
        for image in self.image.iter().filter(|_| form.images) {
            put_number(image, out);
        }
    }
}

impl FewValues {
    /// Whether a form keeps them in place of the commitment to them.
    pub(crate) fn stand_for_point(&self, form: Form) -> bool {
        form.values && self.encoded_len() < form.point()
    }
}

impl Half {
    /// What a form keeps of a half: its values, if all are known and the form keeps them, or else their commitment.
    pub(crate) fn kept(form: Form, values: Option<FewValues>, point: Point) -> Self {
        match values {
            Some(few) if few.stand_for_point(form) => Self::Values(few),
            _ => Self::Point(point),
        }
    }
}

impl LeafRecord {
    /// C1 and C2 of each of some leaves, the identity where there are no values: read, or computed from values, those of all leaves together and on this thread.
    #[must_use]
    pub fn commitments(committer: &Committer, leaves: &[Self]) -> Vec<[Point; 2]> {
        let halves = leaves.iter().flat_map(|leaf| &leaf.halves);
        let few = halves.filter_map(|half| match half {
            Half::Values(few) => Some(few),
            Half::Nothing | Half::Point(_) => None,
        });
        let few: Vec<&FewValues> = few.collect();
        let from = vec![Point::IDENTITY; few.len()];
        let lists = few.iter().map(|few| few.terms());
        let mut sums = committer.moved_on_one_thread(&from, lists).0.into_iter();
        let mut point = |half| match half {
            Half::Nothing => Point::IDENTITY,
            Half::Point(point) => point,
            Half::Values(_) => sums.next().unwrap_or(Point::IDENTITY),
        };
        let leaves = leaves.iter();
        leaves.map(|leaf| leaf.halves.map(&mut point)).collect()
    }

    fn parts<'a>(&'a self, key: &NodeKey) -> LeafParts<'a> {
        LeafParts {
            depth: key.depth(),
            stem: &self.stem,
            suffixes: &self.suffixes,
            halves: self.halves.each_ref().map(|half| match half {
                Half::Nothing => HalfParts::Nothing,
                Half::Point(point) => HalfParts::Point(point),
                Half::Values(few) => HalfParts::Values(few),
            }),
            commitment: self.commitment.as_ref(),
            image: self.image.as_ref(),
        }
    }
}

/// The parts of a [`LeafRecord`] where they lie.
pub(crate) struct LeafParts<'a> {
    pub(crate) depth: usize,
    pub(crate) stem: &'a Stem,
    pub(crate) suffixes: &'a ByteSet,
    pub(crate) halves: [HalfParts<'a>; 2],
    pub(crate) commitment: Option<&'a Point>,
    pub(crate) image: Option<&'a Limbs>,
}

/// As [`Half`].
#[derive(Clone, Copy)]
pub(crate) enum HalfParts<'a> {
    Nothing,
    Point(&'a Point),
    Values(&'a FewValues),
}

impl<'a> HalfParts<'a> {
    /// What a form keeps of a half: its values, if all are known and the form keeps them, or else their commitment.
    pub(crate) fn kept(form: Form, values: Option<&'a FewValues>, point: &'a Point) -> Self {
        match values {
            Some(few) if few.stand_for_point(form) => Self::Values(few),
            _ => Self::Point(point),
        }
    }
}

impl LeafParts<'_> {
    fn points(&self) -> impl Iterator<Item = &Point> {
        self.halves.iter().filter_map(|half| match half {
            HalfParts::Point(point) => Some(*point),
            HalfParts::Nothing | HalfParts::Values(_) => None,
        })
    }

    /// The points that a form keeps.
    fn put_points(&self, form: Form, points: &mut Vec<Point>) {
        points.extend(self.points());
        points.extend(self.commitment.filter(|_| form.leaf_commitments));
    }

    fn encode_into(&self, form: Form, points: &mut PointBytes, out: &mut Vec<u8>) {
        let own_points = self.points().count() + usize::from(form.leaf_commitments);
        let compressed = form.compressed && own_points > 0;
        // All values are put in afterwards, where they are known.
        let whole = false;
        let mut tag = Form {
            compressed,
            whole,
            ..form
        }
        .tag(true);
        for (half, bit) in self.halves.iter().zip(VALUES) {
            tag |= if let HalfParts::Values(_) = half {
                bit
            } else {
                0
            };
        }
        out.push(tag);
        out.extend_from_slice(&self.stem[self.depth..]);
        self.suffixes.encode_into(out);
        for half in &self.halves {
            if let HalfParts::Values(few) = half {
                few.encode_into(out);
            }
        }
        for _ in 0..own_points {
            points.next_into(out);
        }
        for image in self.image.iter().filter(|_| form.images) {
            put_number(image, out);
        }
    }
}

/// The bytes of many points, taken one after another.
struct PointBytes {
    points: OwnBytes,
    /// Of those that are kept as x and x/y.
    ratios: std::vec::IntoIter<Ratio>,
}

enum OwnBytes {
    Compressed(std::vec::IntoIter<[u8; 32]>),
    Uncompressed(std::vec::IntoIter<[u8; 64]>),
}

impl PointBytes {
    fn new(form: Form, batched: bool, points: &[Point], ratios: &[Point]) -> Self {
        let batch = |points: &[Point]| if batched { points.len().max(1) } else { 1 };
        let chunks = points.chunks(batch(points));
        let points = if form.compressed {
            let bytes: Vec<_> = chunks.flat_map(Point::to_bytes_batch).collect();
            OwnBytes::Compressed(bytes.into_iter())
        } else {
            let bytes: Vec<_> = chunks.flat_map(Point::to_uncompressed_batch).collect();
            OwnBytes::Uncompressed(bytes.into_iter())
        };
        let ratios = ratios.chunks(batch(ratios));
        let ratios: Vec<_> = ratios.flat_map(Ratio::from_points).collect();
        Self {
            points,
            ratios: ratios.into_iter(),
        }
    }

    fn next_into(&mut self, out: &mut Vec<u8>) {
        match &mut self.points {
            OwnBytes::Compressed(bytes) => out.extend(bytes.next().into_iter().flatten()),
            OwnBytes::Uncompressed(bytes) => out.extend(bytes.next().into_iter().flatten()),
        }
    }
}
