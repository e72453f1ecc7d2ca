//! The Merkle-Patricia tree: stored nodes, nodes of proofs, proofs.

use alloy_primitives::{B256, keccak256};
use arbor_tree_mpt::{OuterLeaf, Record, WitnessNodes, compact, expand};
use arbor_verify::mpt::AccountProof;

/// A stored node; what decodes must be in the one form that encoding gives.
pub(super) fn node_record(bytes: &[u8]) {
    if let Ok(record) = Record::decode(bytes) {
        let mut again = Vec::new();
        record.encode_into(&mut again);
        assert_eq!(again, bytes, "a record has two forms");
        let _ = record.bare_branch();
    }
}

/// Nodes of a proof or witness as RLP: a length byte before each, the first one being the root.
pub(super) fn rlp_nodes(bytes: &[u8]) {
    let (mut nodes, mut rest) = (Vec::new(), bytes);
    while let Some((&length, tail)) = rest.split_first() {
        let (node, tail) = tail.split_at(tail.len().min(usize::from(length)));
        nodes.push(node.to_vec());
        rest = tail;
    }
    let Some(first) = nodes.first() else { return };
    let root = keccak256(first).0;
    for key in [[0; 32], [0x11; 32], keccak256(bytes).0] {
        let _ = arbor_tree_mpt::verify(&root, &key, &nodes);
        let known = WitnessNodes::new(nodes.iter().cloned());
        let _ = known.value(None, root, &key);
    }
}

/// Leaves of the outer trie that end with the root of the trie inside.
const OUTER: OuterLeaf = OuterLeaf {
    split: |value| {
        let (fields, root) = value.split_last_chunk::<32>()?;
        Some((fields.to_vec(), *root))
    },
    join: |fields, root| Some([fields, root].concat()),
};

/// A witness in compact form; its nodes have one compact form, from which they come back.
pub(super) fn mpt_compact(bytes: &[u8]) {
    let Ok((root, nodes)) = expand(bytes, OUTER) else {
        return;
    };
    let bag = WitnessNodes::new(nodes.iter().cloned());
    let (written, sizes) = compact(root, &bag, OUTER).expect("its own nodes");
    let all = sizes.keys + sizes.values + sizes.siblings + sizes.structure;
    assert_eq!(all, written.len(), "parts that are not all of it");
    let (again, mut found) = expand(&written, OUTER).expect("its own form");
    assert_eq!(again, root, "another root");
    let mut nodes = nodes;
    nodes.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, nodes, "other nodes");
}

/// Well-formed inputs.
pub(crate) fn mpt_seeds() -> Vec<(&'static str, Vec<u8>)> {
    // A branch with the leaf of an account that has one slot, and the hash of another child.
    let leaf = |nibbles: usize| [&[129][..], &vec![0x11; nibbles / 2]].concat();
    let slot = [&[2][..], &leaf(64), &[1, 5]].concat();
    let mut account = leaf(64);
    account[32] = 0x10;
    account.extend([1, 7]);
    let seed = [&[2, 0, 0x60, 0, 0x40, 0][..], &account, &slot, &[3; 32]].concat();
    expand(&seed, OUTER).expect("well-formed");
    let extension = [&[2, 3, 0x12, 0x30, 0, 0x60, 0, 0, 0][..], &[3; 64]].concat();
    expand(&extension, OUTER).expect("well-formed");
    vec![("mpt_compact", seed), ("mpt_compact", extension)]
}

/// A proof as `eth_getProof` gives it.
pub(super) fn proof(bytes: &[u8]) {
    if let Ok(proof) = serde_json::from_slice::<AccountProof>(bytes) {
        let root = proof.account_proof.first().map_or(B256::ZERO, keccak256);
        let _ = proof.verify(root);
    }
}
