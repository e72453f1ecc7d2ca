//! The tree from plain maps.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, U256};
use arbor_state_tree::conformance::{Codes, Contents, Model};
use arbor_tree_eip8297::{Hasher, naive};
use arbor_verify::eip8297::Code;
use arbor_verify::stems::chunk_code;

/// All leaves from the contents after each block, keys put together byte by byte.
pub(super) struct Partitioned(pub(super) Hasher);

impl Model for Partitioned {
    fn after(&mut self, contents: &Contents, codes: &Codes) -> B256 {
        let (mut leaves, none) = (BTreeMap::new(), Bytes::new());
        let mut put = |key: Vec<u8>, value: [u8; 32]| {
            if value != [0; 32] {
                leaves.insert(key, value);
            }
        };
        for (address, (account, slots)) in contents {
            let name = [&[0; 12], address.as_slice()].concat();
            let hash = self.0.hash(&name);
            let header = |suffix: u8| [&[0], &hash[..], &[suffix]].concat();
            let code = codes.get(&account.code_hash).unwrap_or(&none);
            let mut basic = [0; 32];
            basic[4..8].copy_from_slice(&(code.len() as u32).to_be_bytes());
            basic[8..16].copy_from_slice(&account.nonce.to_be_bytes());
            basic[16..].copy_from_slice(&account.balance.to_be_bytes::<32>()[16..]);
            put(header(0), basic);
            if let Ok(Code::Delegation(_)) = Code::of(code) {
                let mut value = [0; 32];
                value[..23].copy_from_slice(code);
                put(header(2), value);
            } else {
                put(header(1), account.code_hash.0);
                for (number, chunk) in (0u32..).zip(chunk_code(code)) {
                    let group = U256::from(number / 256).to_be_bytes::<32>();
                    let group = self.0.hash(&[account.code_hash.0, group].concat());
                    put([&[1], &group[..], &[number as u8]].concat(), chunk);
                }
            }
            for (slot, value) in slots {
                let value = value.to_be_bytes();
                if *slot < U256::from(64) {
                    put(header(64 + slot.byte(0)), value);
                    continue;
                }
                let group: U256 = *slot >> 8;
                let group = group.to_be_bytes::<32>();
                let group = self.0.hash(&[&name[..], &group].concat());
                put(
                    [&[0xff], &hash[..], &group, &[slot.byte(0)]].concat(),
                    value,
                );
            }
        }
        naive::root(self.0, &leaves).into()
    }
}
