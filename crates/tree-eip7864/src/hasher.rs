//! What nodes hash to.

use std::ops::Deref;

use arbor_tree_binary::{Contents, Hash, HashFunction, NodeHash, NodeKind, NodeView, Path};

/// Bits of a stem.
const STEM: usize = 8 * 31;

/// The hash function of a tree, which the EIP leaves open: BLAKE3 is its placeholder, and
/// go-ethereum has SHA-256.
///
/// A stem (`stem || 00 || subtree`) and an internal node (`left || right`) are both 64 bytes, so
/// whoever makes a proof could pass one for the other: a stem's subtree for the right child of an
/// internal node, in which a key of that stem is absent; or an internal node for a stem that is not
/// the one asked for. A proof rules out the first by showing the left child of an internal node
/// that begins like its own path and ends in a zero byte, because nobody knows what hashes to a
/// stem. It rules out the second by showing a value below each stem, because nothing but a value
/// hashes 32 bytes, and it has to lie exactly eight levels below. See docs/math/eip7864.md.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Hasher(pub HashFunction);

impl Hasher {
    /// Returns the function with this name, on the widest instructions that the processor has.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        HashFunction::named(name).map(Self)
    }
}

impl Deref for Hasher {
    type Target = HashFunction;

    fn deref(&self) -> &HashFunction {
        &self.0
    }
}

impl NodeHash for Hasher {
    /// Zeros are stored; nothing is removed but when history is undone.
    type Value = Option<Hash>;

    /// First the values and branches themselves, then level by level the nodes above them that have
    /// one child.
    fn hash_nodes<'a>(self, nodes: impl Iterator<Item = NodeView<'a>>) -> Vec<Hash> {
        let nodes: Vec<NodeView<'_>> = nodes.collect();
        let (mut values, mut pairs) = (Vec::new(), Vec::new());
        for node in &nodes {
            match node.contents {
                Contents::Leaf(value) => values.push(*value),
                Contents::Branch([left, right]) => pairs.push(pair(left, right)),
            }
        }
        let mut values = self.hash_fixed(&values).into_iter();
        let mut pairs = self.hash_fixed(&pairs).into_iter();
        let hashes = nodes.iter().map(|node| match node.contents {
            Contents::Leaf(_) => values.next().unwrap_or_default(),
            Contents::Branch(_) => pairs.next().unwrap_or_default(),
        });
        let mut hashes: Vec<Hash> = hashes.collect();
        let above = (0..).zip(&nodes);
        let above = above.map(|(place, node)| (place, Above::of(node.path.len(), node.start)));
        let mut above: Vec<(usize, Above)> = above.collect();
        loop {
            above.retain(|(_, above)| !above.is_done());
            if above.is_empty() {
                return hashes;
            }
            let messages = above
                .iter()
                .map(|(place, above)| above.message(nodes[*place].path, &hashes[*place]));
            let messages: Vec<[u8; 64]> = messages.collect();
            for ((place, above), digest) in above.iter_mut().zip(self.hash_fixed(&messages)) {
                hashes[*place] = digest;
                above.rise();
            }
        }
    }

    fn is_moved(_: NodeKind, path_len: usize, [from, to]: [usize; 2]) -> bool {
        Above::of(path_len, from) != Above::of(path_len, to)
    }

    fn calls(path_len: usize, start: usize) -> u64 {
        let above = Above::of(path_len, start);
        let nodes = 1 + above.depth - above.end + usize::from(above.is_under_stem);
        nodes as u64
    }

    fn shows_left(path: &Path, left: &Hash) -> bool {
        let [stem @ .., last] = left;
        let begins = || Path::of_key(stem).is_ok_and(|stem| path.is_prefix_of(&stem));
        path.len() < STEM && *last == 0 && begins()
    }

    fn shows_leaf(path: &Path, start: usize) -> bool {
        path.len() >= STEM && start <= STEM
    }
}

/// The nodes between a value or branch and the branch above it, which have one child each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Above {
    /// Bits that lead to the node whose hash is known.
    depth: usize,
    /// Bits that lead to the topmost node in between, but for the stem.
    end: usize,
    /// Whether the stem comes last: wherever it hangs, it hashes to the same.
    is_under_stem: bool,
}

impl Above {
    fn of(depth: usize, start: usize) -> Self {
        let is_under_stem = depth >= STEM && start <= STEM;
        Self {
            depth,
            end: if is_under_stem { STEM } else { start },
            is_under_stem,
        }
    }

    fn is_done(&self) -> bool {
        self.depth <= self.end && !self.is_under_stem
    }

    /// The message of the next node above a hash on the way of a path.
    fn message(&self, path: &Path, hash: &Hash) -> [u8; 64] {
        if self.depth <= self.end {
            let mut message = pair(&[0; 32], hash);
            message[..31].copy_from_slice(&path.packed()[..31]);
            return message;
        }
        match path.bit(self.depth - 1) {
            false => pair(hash, &[0; 32]),
            true => pair(&[0; 32], hash),
        }
    }

    fn rise(&mut self) {
        match self.depth > self.end {
            true => self.depth -= 1,
            false => self.is_under_stem = false,
        }
    }
}

fn pair(left: &Hash, right: &Hash) -> [u8; 64] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(left);
    both[32..].copy_from_slice(right);
    both
}
