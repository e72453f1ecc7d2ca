//! The tries from plain maps.

use std::collections::BTreeMap;

use alloy_primitives::{B256, keccak256};
use arbor_state_tree::conformance::{Codes, Contents, Model};
use arbor_tree::naive;

/// The root of the tries, which follows from the contents alone.
pub fn naive_root(contents: &Contents) -> B256 {
    let mut leaves = BTreeMap::new();
    for (address, (account, slots)) in contents {
        let slots: BTreeMap<Vec<u8>, Vec<u8>> = slots
            .iter()
            .map(|(slot, value)| {
                (
                    keccak256(B256::from(*slot)).to_vec(),
                    alloy_rlp::encode(value),
                )
            })
            .collect();
        let storage_root = naive::root(&slots);
        let mut leaf = Vec::new();
        let fields: [&dyn alloy_rlp::Encodable; 4] = [
            &account.nonce,
            &account.balance,
            &B256::from(storage_root),
            &account.code_hash,
        ];
        alloy_rlp::encode_list::<_, dyn alloy_rlp::Encodable>(&fields, &mut leaf);
        leaves.insert(keccak256(address).to_vec(), leaf);
    }
    naive::root(&leaves).into()
}

pub(super) struct Tries;

impl Model for Tries {
    fn after(&mut self, contents: &Contents, _: &Codes) -> B256 {
        naive_root(contents)
    }
}
