//! The compact form of witnesses: the tries without the hashes that follow from others.

use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, U256};
use alloy_rlp::{Decodable, Encodable as _};
use arbor_tree_mpt::{OuterLeaf, WitnessNodes, compact, expand};

use super::witness::AccountLeaf;
use crate::compact::{CompactForm, CompactSizes, NotCompact, check_root};

/// The nodes as one trie, with the storage tries inside.
pub(super) const COMPACT: CompactForm = CompactForm {
    encode: |parts, _| {
        let nodes = WitnessNodes::new(parts.nodes.iter().map(|node| node.to_vec()));
        let (bytes, sizes) = compact(parts.root.0, &nodes, ACCOUNT).map_err(malformed)?;
        let sizes = CompactSizes {
            keys: sizes.keys as u64,
            values: sizes.values as u64,
            siblings: sizes.siblings as u64,
            structure: sizes.structure as u64,
            ..CompactSizes::default()
        };
        Ok((bytes, sizes))
    },
    decode: |_, root, bytes| {
        let (found, nodes) = expand(bytes, ACCOUNT).map_err(malformed)?;
        check_root(root, found)?;
        Ok(nodes.into_iter().map(Bytes::from).collect())
    },
};

fn malformed(error: arbor_tree_mpt::CompactError) -> NotCompact {
    NotCompact::Malformed(error.to_string())
}

/// An account is the length of its nonce (1), the nonce, the length of its balance (1), the balance, and the code hash
/// if it has code.
const ACCOUNT: OuterLeaf = OuterLeaf {
    split: |value| {
        let leaf = AccountLeaf::decode(&mut &value[..]).ok()?;
        let mut out = Vec::new();
        for number in [U256::from(leaf.nonce), leaf.balance] {
            let bytes = number.to_be_bytes_trimmed_vec();
            out.push(bytes.len() as u8);
            out.extend(bytes);
        }
        if leaf.code_hash != KECCAK256_EMPTY {
            out.extend_from_slice(leaf.code_hash.as_slice());
        }
        let inner = leaf.storage_root.0;
        let again = join(&out, &inner)?;
        (again == value).then_some((out, inner))
    },
    join,
};

fn join(mut bytes: &[u8], storage_root: &[u8; 32]) -> Option<Vec<u8>> {
    let mut number = || {
        let length = usize::from(*bytes.split_off_first()?);
        let bytes = bytes.split_off(..length)?;
        let is_short = bytes.len() <= 32 && bytes.first() != Some(&0);
        is_short.then(|| U256::from_be_slice(bytes))
    };
    let (nonce, balance) = (number()?, number()?);
    let code_hash = match bytes {
        [] => KECCAK256_EMPTY,
        bytes => B256::from(<[u8; 32]>::try_from(bytes).ok()?),
    };
    let leaf = AccountLeaf {
        nonce: u64::try_from(nonce).ok()?,
        balance,
        storage_root: B256::from(*storage_root),
        code_hash,
    };
    let mut out = Vec::new();
    leaf.encode(&mut out);
    Some(out)
}
