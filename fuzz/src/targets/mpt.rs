//! The Merkle-Patricia tree: stored nodes, nodes of proofs, proofs.

use alloy_primitives::{B256, keccak256};
use arbor_tree_mpt::{Record, WitnessNodes};
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

/// A proof as `eth_getProof` gives it.
pub(super) fn proof(bytes: &[u8]) {
    if let Ok(proof) = serde_json::from_slice::<AccountProof>(bytes) {
        let root = proof.account_proof.first().map_or(B256::ZERO, keccak256);
        let _ = proof.verify(root);
    }
}
