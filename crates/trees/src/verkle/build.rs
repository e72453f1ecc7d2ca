//! Building a whole state in parts: ranges of names, then ranges of stems.

use super::failed;
use arbor_state_tree::{
    Build, BuiltPart, Joined, KeyedAccount, LoadedCodes, NumberedLeaf, Spread, StateError, corrupt,
};
use arbor_tree_verkle::{NodeKey, Part, build_part, join};
use arbor_versions::View;

use super::Verkle;
use super::nodes::node_write;
use crate::stems::{read_leaf_group, spread};

impl Build for Verkle {
    fn spread(
        &self,
        accounts: Vec<KeyedAccount>,
        codes: &LoadedCodes<'_>,
    ) -> Result<Spread, StateError> {
        spread(self.stems(), accounts, codes)
    }

    fn part(
        &self,
        view: View<'_>,
        _: u8,
        leaves: Vec<NumberedLeaf>,
    ) -> Result<BuiltPart, StateError> {
        let (settings, committer) = (self.settings(), self.stems().committer());
        let mut failed = None;
        let groups = leaves.chunk_by(|a, b| a.key[..31] == b.key[..31]);
        let found = groups.map_while(|group| {
            let leaf = read_leaf_group(view, settings.layout, group);
            leaf.map_err(|error| failed = Some(error)).ok()
        });
        let mut nodes = Vec::new();
        let mut sink = |key: NodeKey, record| nodes.push(node_write(&key, Some(record)));
        let part = build_part(committer, &settings.tree, found, &mut sink);
        match failed {
            Some(error) => Err(error),
            None => Ok(BuiltPart {
                part: part.map_err(super::failed)?.encode(),
                records: Vec::new(),
                nodes,
            }),
        }
    }

    fn join(&self, parts: Vec<Vec<u8>>, _: u64) -> Result<Joined, StateError> {
        let parts = parts.iter().map(|bytes| {
            Part::decode(bytes).ok_or_else(|| corrupt("parts", bytes, "not a part of the tree"))
        });
        let parts: Result<Vec<Part>, StateError> = parts.collect();
        let mut writes = Vec::new();
        let committer = self.stems().committer();
        let root = join(
            committer,
            &self.settings().tree,
            parts?,
            &mut |key, record| {
                writes.push(node_write(&key, Some(record)));
            },
        )
        .map_err(failed)?;
        let root = root.to_bytes().into();
        Ok(Joined { writes, root })
    }
}
