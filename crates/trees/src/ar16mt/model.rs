//! The tree from plain maps.

use std::collections::BTreeMap;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use arbor_state_tree::conformance::{Codes, Contents, Model};
use arbor_tree_ar16mt::Entry;
use arbor_verify::ar16mt::LeafName;

/// An AR16MT's leaves by name: index and value.
type Entries = BTreeMap<LeafName, (u64, [u8; 32])>;

fn ar16mt_root(entries: &Entries) -> B256 {
    let leaves: BTreeMap<[u8; 32], Entry> = entries
        .iter()
        .map(|(name, &(index, value))| (name.key(), Entry { index, value }))
        .collect();
    arbor_tree_ar16mt::naive::root(&leaves).into()
}

/// The leaves so far: what was there stays, zero if it is nothing now; what comes is numbered in the order of addresses.
#[derive(Default)]
pub(super) struct Numbered(Entries);

impl Model for Numbered {
    fn after(&mut self, contents: &Contents, _: &Codes) -> B256 {
        let entries = &mut self.0;
        entries.values_mut().for_each(|entry| entry.1 = [0; 32]);
        for (&address, (account, slots)) in contents {
            let has_code = account.code_hash != KECCAK256_EMPTY;
            let mut header = [0; 32];
            header[..2].copy_from_slice(&[1, has_code.into()]);
            header[24..].copy_from_slice(&account.nonce.to_be_bytes());
            let code_hash = if has_code {
                account.code_hash.0
            } else {
                [0; 32]
            };
            let fields = [
                (LeafName::Nonce(address), header),
                (LeafName::Balance(address), account.balance.to_be_bytes()),
                (LeafName::CodeHash(address), code_hash),
            ];
            let slots = slots
                .iter()
                .map(|(slot, value)| (LeafName::Slot(address, *slot), value.to_be_bytes()));
            for (name, value) in fields.into_iter().chain(slots) {
                let next = entries.len() as u64 + 1;
                if value != [0; 32] || entries.contains_key(&name) {
                    entries.entry(name).or_insert((next, value)).1 = value;
                }
            }
        }
        ar16mt_root(entries)
    }
}
