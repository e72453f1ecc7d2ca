//! Building a whole state in parts: ranges of addresses, then ranges of stems.

use std::sync::Arc;

use arbor_state_tree::{
    Build, BuiltPart, Joined, KeyedAccount, LoadedCodes, NumberedLeaf, Spread, StateError, corrupt,
};
use arbor_tree_eip7864::{Part, Path, join};
use arbor_versions::View;

use super::{Eip7864, failed, load};
use crate::binary::node_write;
use crate::stems::{read_leaf_group, spread};

impl Build for Eip7864 {
    fn spread(
        &self,
        accounts: Vec<KeyedAccount>,
        codes: &LoadedCodes<'_>,
    ) -> Result<Spread, StateError> {
        spread(&self.stems(), accounts, codes)
    }

    fn part(
        &self,
        view: View<'_>,
        _: u8,
        leaves: Vec<NumberedLeaf>,
    ) -> Result<BuiltPart, StateError> {
        let groups = leaves.chunk_by(|a, b| a.key[..31] == b.key[..31]);
        let stems = groups.map(|group| read_leaf_group(view, Self::LAYOUT, group));
        let mut nodes = Vec::new();
        let mut sink = |path: Path, record: Arc<[u8]>| nodes.push(node_write(&path, Some(record)));
        let part = load::part(*self, stems, &mut sink)?;
        Ok(BuiltPart {
            records: Vec::new(),
            nodes,
            part: part.encode(),
        })
    }

    fn join(&self, parts: Vec<Vec<u8>>, _: u64) -> Result<Joined, StateError> {
        let parts = parts.iter().map(|bytes| {
            Part::decode(bytes).ok_or_else(|| corrupt("parts", bytes, "not a part of the tree"))
        });
        let parts: Vec<Part> = parts.collect::<Result<_, _>>()?;
        let mut writes = Vec::new();
        let mut sink = |path: Path, record: Arc<[u8]>| writes.push(node_write(&path, Some(record)));
        let root = join(self.hasher, self.packing, &parts, &mut sink).map_err(failed)?;
        let root = root.into();
        Ok(Joined { writes, root })
    }
}
