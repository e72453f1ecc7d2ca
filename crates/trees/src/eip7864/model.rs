//! The tree from plain maps.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_state_tree::conformance::{Codes, Contents, Model};
use arbor_tree_eip7864::{HashFunction, naive};
use arbor_verify::eip7864::Revision;
use arbor_verify::stems::{CHUNK, chunk_code};

/// The leaves so far, keys put together byte by byte: what was there stays, zero if it is nothing
/// now.
pub(super) struct Unified {
    pub(super) revision: Revision,
    pub(super) function: HashFunction,
    pub(super) leaves: BTreeMap<[u8; 32], [u8; 32]>,
}

impl Unified {
    /// Sets the leaf at `256 * high + low`, which can be beyond 2^256.
    fn put(&mut self, address: Address, high: U256, low: U256, value: [u8; 32]) {
        let mut index = (high + (low >> 8usize)).to_be_bytes::<32>();
        if self.revision == Revision::A {
            index.reverse();
        }
        let name = [&[0; 12], address.as_slice(), &index].concat();
        let mut key = self.function.hash(&name);
        key[31] = low.byte(0);
        self.leaves.insert(key, value);
    }
}

impl Model for Unified {
    fn after(&mut self, contents: &Contents, codes: &Codes) -> B256 {
        self.leaves.values_mut().for_each(|value| *value = [0; 32]);
        let none = Bytes::new();
        for (address, (account, slots)) in contents {
            let code = codes.get(&account.code_hash).unwrap_or(&none);
            let mut basic = [0; 32];
            basic[4..8].copy_from_slice(&(code.len() as u32).to_be_bytes());
            basic[8..16].copy_from_slice(&account.nonce.to_be_bytes());
            basic[16..].copy_from_slice(&account.balance.to_be_bytes::<32>()[16..]);
            self.put(*address, U256::ZERO, U256::ZERO, basic);
            self.put(*address, U256::ZERO, U256::ONE, account.code_hash.0);
            assert_eq!(chunk_code(code).len(), code.len().div_ceil(CHUNK));
            for (number, chunk) in (128u64..).zip(chunk_code(code)) {
                self.put(*address, U256::ZERO, U256::from(number), chunk);
            }
            for (slot, value) in slots {
                let (high, low) = match *slot < U256::from(64) {
                    true => (U256::ZERO, *slot + U256::from(64)),
                    false => (U256::ONE << 240usize, *slot),
                };
                self.put(*address, high, low, value.to_be_bytes());
            }
        }
        naive::root(self.function, &self.leaves).into()
    }
}
