//! The tree from plain maps.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, U256};
use arbor_state_tree::conformance::{Codes, Contents, Model};
use arbor_tree_verkle::Settings;
use arbor_verify::verkle::{
    HeaderLayout, LeafValue, StemHash, StemName, Stems, chunk_code, chunk_place, committer,
    slot_place,
};

/// A Verkle tree's leaves by name and suffix.
type Leaves = BTreeMap<(StemName, u8), LeafValue>;

/// The leaves that contents have by themselves.
fn leaves_of(contents: &Contents, codes: &Codes, layout: HeaderLayout) -> Leaves {
    let (mut leaves, none) = (Leaves::new(), Bytes::new());
    for (address, (account, slots)) in contents {
        let mut put = |(index, suffix), value| {
            let address = *address;
            leaves.insert((StemName { address, index }, suffix), value);
        };
        let code = codes.get(&account.code_hash).unwrap_or(&none);
        for (suffix, value) in layout
            .leaves(account, code.len() as u32)
            .expect("what has room")
        {
            put((U256::ZERO, suffix), value);
        }
        for (number, chunk) in (0..).zip(chunk_code(code)) {
            put(chunk_place(number), chunk);
        }
        for (slot, value) in slots {
            put(slot_place(*slot), value.to_be_bytes());
        }
    }
    leaves
}

fn verkle_root(leaves: &Leaves) -> B256 {
    let stems = Stems::new(committer().clone(), 0);
    let mut by_stem: BTreeMap<[u8; 31], Vec<(u8, LeafValue)>> = BTreeMap::new();
    for ((name, suffix), value) in leaves {
        let stem = stems.of(std::slice::from_ref(name))[0];
        by_stem.entry(stem).or_default().push((*suffix, *value));
    }
    let settings = Settings::default();
    let root = arbor_tree_verkle::build(committer(), &settings, by_stem, &mut |_, _| ());
    root.expect("they ascend").to_bytes().into()
}

/// The leaves so far: what was there stays, zero if it is nothing now.
pub(super) struct Kept {
    pub(super) layout: HeaderLayout,
    pub(super) leaves: BTreeMap<(StemName, u8), LeafValue>,
}

impl Model for Kept {
    fn after(&mut self, contents: &Contents, codes: &Codes) -> B256 {
        let now = leaves_of(contents, codes, self.layout);
        self.leaves.values_mut().for_each(|value| *value = [0; 32]);
        self.leaves.extend(now);
        verkle_root(&self.leaves)
    }
}
