//! The hashes that a node of a trie refers to, from its bytes alone.

use alloy_primitives::B256;

/// Bytes of a node that is looked into. The longest in a state is a branch with 16 hashes (532); a leaf has at most 33 bytes of path and an account, of some 110.
const LONGEST_NODE: usize = 1 << 10;
/// Lists within lists that a node may have: an inlined node has at least two bytes less than the one around it, and is
/// shorter than a hash.
const DEEPEST: usize = 32;

/// Hashes in a node: of nodes, and of codes, which are no nodes whatever else is among these.
#[derive(Default, Debug)]
pub struct References {
    /// Hashes of nodes.
    pub nodes: Vec<B256>,
    /// Hashes of codes.
    pub codes: Vec<B256>,
}

/// Items of a branch: sixteen children and a value that no state has.
const BRANCH: usize = 17;

impl References {
    /// Finds those in a node, and in the nodes that are inlined in it.
    ///
    /// # Errors
    /// What is longer than a node of a state, is nested deeper, or is no node.
    pub fn of_node(rlp: &[u8]) -> Result<Self, alloy_rlp::Error> {
        if rlp.len() > LONGEST_NODE {
            return Err(alloy_rlp::Error::Custom("longer than a state's node"));
        }
        let mut found = Self::default();
        found.add(rlp, 0)?;
        Ok(found)
    }

    /// Adds those in a node, and in the nodes inlined in it.
    fn add(&mut self, rlp: &[u8], depth: usize) -> Result<(), alloy_rlp::Error> {
        // The root of an empty trie.
        if rlp == [0x80] {
            return Ok(());
        }
        if depth == DEEPEST {
            return Err(alloy_rlp::Error::Custom("lists nested too deep for a node"));
        }
        let items = items(rlp)?;
        match &items[..] {
            // The flag of a leaf is in the first half-byte of its path.
            [path, leaf] if path.payload.first().is_some_and(|byte| byte & 0x20 != 0) => {
                self.add_leaf(leaf)
            }
            [_, child] => self.add_child(child, depth),
            branch if branch.len() == BRANCH => {
                let mut children = branch[..BRANCH - 1].iter();
                children.try_for_each(|child| self.add_child(child, depth))
            }
            _ => Err(alloy_rlp::Error::Custom(
                "neither a branch nor an extension or a leaf",
            )),
        }
    }

    fn add_child(&mut self, child: &Item<'_>, depth: usize) -> Result<(), alloy_rlp::Error> {
        if child.list {
            return self.add(child.rlp, depth + 1);
        }
        if let Ok(hash) = B256::try_from(child.payload) {
            self.nodes.push(hash);
        }
        Ok(())
    }

    /// An account refers to its storage and its code. A slot's value is no list, and refers to nothing.
    fn add_leaf(&mut self, leaf: &Item<'_>) -> Result<(), alloy_rlp::Error> {
        let is_account = !leaf.list && leaf.payload.first().is_some_and(|&byte| byte >= 0xc0);
        if is_account && let [_, _, storage, code] = &items(leaf.payload)?[..] {
            self.nodes.extend(B256::try_from(storage.payload));
            self.codes.extend(B256::try_from(code.payload));
        }
        Ok(())
    }
}

/// An item of an RLP list.
struct Item<'a> {
    list: bool,
    payload: &'a [u8],
    rlp: &'a [u8],
}

fn items(mut rlp: &[u8]) -> Result<Vec<Item<'_>>, alloy_rlp::Error> {
    let mut rest = alloy_rlp::Header::decode_bytes(&mut rlp, true)?;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let whole = rest;
        let header = alloy_rlp::Header::decode(&mut rest)?;
        let (payload, after) = rest
            .split_at_checked(header.payload_length)
            .ok_or(alloy_rlp::Error::InputTooShort)?;
        rest = after;
        items.push(Item {
            list: header.list,
            payload,
            rlp: &whole[..whole.len() - after.len()],
        });
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node of some 800 kB, nothing but lists within lists, ran `verify-witness` out of stack.
    #[test]
    fn deep_lists_are_an_error() {
        let mut node = Vec::new();
        for _ in 0..200_000 {
            let mut head = Vec::new();
            let list = true;
            let payload_length = node.len();
            alloy_rlp::Header {
                list,
                payload_length,
            }
            .encode(&mut head);
            head.reverse();
            node.append(&mut head);
        }
        node.reverse();
        assert!(References::default().add(&node, 0).is_err());
    }
}
