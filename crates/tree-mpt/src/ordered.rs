//! Roots of tries that are built once and never stored: transactions, receipts, withdrawals.

use arbor_tree::Hash;

use crate::EMPTY_ROOT;
use crate::error::TreeError;
use crate::lanes::Lanes;
use crate::node::Reference;
use crate::rlp;

/// Computes the root of a trie that holds each item under the RLP of its index.
///
/// Items are given encoded, as they are hashed (Yellow Paper, section 4.3.2; for typed
/// transactions and receipts EIP-2718). None may be empty.
pub fn ordered_root<V: AsRef<[u8]>>(items: &[V]) -> Hash {
    let mut pairs: Vec<(Vec<u8>, &[u8])> = items
        .iter()
        .enumerate()
        .map(|(index, item)| (index_key(index), item.as_ref()))
        .collect();
    pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    root_of(&pairs)
}

/// The RLP of an index.
fn index_key(index: usize) -> Vec<u8> {
    let bytes = index.to_be_bytes();
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    let mut key = Vec::with_capacity(4);
    rlp::write_string(&mut key, &bytes[zeros..]);
    key
}

/// Computes the root of a trie whose keys may have any length; one may begin with another.
///
/// # Errors
/// When keys do not ascend strictly, or a value is empty; the key is named by its first 32 bytes.
pub fn trie_root<K: AsRef<[u8]>, V: AsRef<[u8]>>(pairs: &[(K, V)]) -> Result<Hash, TreeError> {
    let name = |key: &K| {
        let mut named = Hash::default();
        let len = key.as_ref().len().min(32);
        named[..len].copy_from_slice(&key.as_ref()[..len]);
        named
    };
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 && pairs[index - 1].0.as_ref() >= key.as_ref() {
            return Err(TreeError::UnsortedKey { key: name(key) });
        }
        if value.as_ref().is_empty() {
            return Err(TreeError::EmptyValue { key: name(key) });
        }
    }
    Ok(root_of(pairs))
}

fn root_of<K: AsRef<[u8]>, V: AsRef<[u8]>>(pairs: &[(K, V)]) -> Hash {
    if pairs.is_empty() {
        return EMPTY_ROOT;
    }
    let mut plan = Plan {
        pairs,
        nodes: Vec::with_capacity(2 * pairs.len()),
        levels: Vec::new(),
    };
    plan.add(0, pairs.len(), 0);
    plan.hash()
}

/// The nodes of a trie, children before their parents, the root last.
struct Plan<'a, K, V> {
    pairs: &'a [(K, V)],
    nodes: Vec<Node>,
    /// Nodes by height.
    levels: Vec<Vec<u32>>,
}

enum Node {
    /// The pair of this index, from this nibble of its key on.
    Leaf(usize, usize),
    /// These nibbles of this pair's key, and the child.
    Extension(usize, usize, usize, u32),
    /// The children, and the pair whose key ends here.
    Branch(Box<[Option<u32>; 16]>, Option<usize>),
}

impl<K: AsRef<[u8]>, V: AsRef<[u8]>> Plan<'_, K, V> {
    fn key(&self, pair: usize) -> &[u8] {
        self.pairs[pair].0.as_ref()
    }

    /// Adds the node of pairs `from..to`, which share their first `depth` nibbles; returns its index and height.
    fn add(&mut self, from: usize, to: usize, depth: usize) -> (u32, usize) {
        if to - from == 1 {
            return self.push(Node::Leaf(from, depth), 0);
        }
        // The pairs are sorted, so all share what the first and the last share.
        let (first, last) = (self.key(from), self.key(to - 1));
        let end = 2 * first.len().min(last.len());
        let shared = (depth..end)
            .take_while(|&n| rlp::nibble(first, n) == rlp::nibble(last, n))
            .count();
        if shared > 0 {
            let (child, height) = self.add(from, to, depth + shared);
            return self.push(
                Node::Extension(from, depth, depth + shared, child),
                height + 1,
            );
        }
        let ends = (2 * first.len() == depth).then_some(from);
        let mut children = Box::new([None; 16]);
        let (mut start, mut height) = (from + usize::from(ends.is_some()), 0);
        while start < to {
            let nibble = rlp::nibble(self.key(start), depth);
            let same = |&pair: &usize| rlp::nibble(self.key(pair), depth) == nibble;
            let stop = start + (start..to).take_while(same).count();
            let (child, below) = self.add(start, stop, depth + 1);
            children[usize::from(nibble)] = Some(child);
            height = height.max(below + 1);
            start = stop;
        }
        self.push(Node::Branch(children, ends), height)
    }

    fn push(&mut self, node: Node, height: usize) -> (u32, usize) {
        let index = self.nodes.len() as u32;
        self.nodes.push(node);
        if self.levels.len() <= height {
            self.levels.resize_with(height + 1, Vec::new);
        }
        self.levels[height].push(index);
        (index, height)
    }

    fn hash(&self) -> Hash {
        let root = self.nodes.len() as u32 - 1;
        let mut references = vec![Reference::NONE; self.nodes.len()];
        let values: usize = self.pairs.iter().map(|(_, v)| v.as_ref().len()).sum();
        // Beside a leaf's value there are headers and a short key.
        let each = (values / self.pairs.len() + 16).max(Lanes::LONGEST_BRANCH);
        let mut lanes = Lanes::with_room(self.nodes.len(), each);
        for batch in self
            .levels
            .iter()
            .flat_map(|level| level.chunks(Lanes::BATCH))
        {
            for &index in batch {
                let node = &self.nodes[index as usize];
                lanes.push(|out| self.write(node, &references, out));
            }
            lanes.finish(|position, hash, rlp| {
                let index = batch[position];
                references[index as usize] = if rlp.len() < 32 && index != root {
                    Reference::inline(rlp)
                } else {
                    hash
                };
            });
        }
        references[root as usize]
            .as_hash()
            .expect("invariant: the root is always hashed")
    }

    fn write(&self, node: &Node, references: &[Reference], out: &mut Vec<u8>) {
        match node {
            Node::Leaf(pair, from) => {
                let (key, value) = (self.key(*pair), self.pairs[*pair].1.as_ref());
                let to = 2 * key.len();
                rlp::write_list_header(
                    out,
                    rlp::hex_prefix_string_len(to - from) + rlp::string_len(value),
                );
                rlp::write_hex_prefix(out, key, *from, to, true);
                rlp::write_string(out, value);
            }
            Node::Extension(pair, from, to, child) => {
                let child = references[*child as usize];
                rlp::write_list_header(
                    out,
                    rlp::hex_prefix_string_len(to - from) + child.encoded_len(),
                );
                rlp::write_hex_prefix(out, self.key(*pair), *from, *to, false);
                child.write(out);
            }
            Node::Branch(children, ends) => {
                let child = |child: &Option<u32>| {
                    child.map_or(Reference::NONE, |child| references[child as usize])
                };
                let value = ends.map_or(&[][..], |pair| self.pairs[pair].1.as_ref());
                let payload: usize = children.iter().map(|c| child(c).encoded_len()).sum();
                rlp::write_list_header(out, payload + rlp::string_len(value));
                for c in children.iter() {
                    child(c).write(out);
                }
                rlp::write_string(out, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arbor_tree::naive;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn out_of_order_and_empty_are_rejected() {
        assert!(matches!(
            trie_root(&[("b", "1"), ("a", "2")]),
            Err(TreeError::UnsortedKey { .. })
        ));
        assert!(matches!(
            trie_root(&[("a", "")]),
            Err(TreeError::EmptyValue { .. })
        ));
    }

    proptest! {
        #[test]
        fn any_keys_as_the_naive_trie(
            pairs in proptest::collection::btree_map(
                proptest::collection::vec(prop::sample::select(vec![0u8, 1, 0x10, 0x11]), 0..5),
                proptest::collection::vec(any::<u8>(), 1..40),
                0..40,
            ),
        ) {
            let sorted: Vec<_> = pairs.clone().into_iter().collect();
            prop_assert_eq!(trie_root(&sorted).expect("sorted"), naive::root(&pairs));
        }

        #[test]
        fn items_by_index_as_the_naive_trie(
            items in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..9), 0..300),
        ) {
            let key = |index: usize| alloy_rlp::encode(index);
            let pairs: BTreeMap<_, _> =
                items.iter().enumerate().map(|(i, item)| (key(i), item.clone())).collect();
            prop_assert_eq!(ordered_root(&items), naive::root(&pairs));
        }
    }
}
