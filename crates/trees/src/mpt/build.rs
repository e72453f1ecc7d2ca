//! Building a whole state in parts: ranges of the account trie.

use super::failed;
use arbor_state_tree::{
    Build, BuiltPart, Joined, KeyedAccount, LoadedCodes, NumberedLeaf, Spread, SpreadLeaf,
    StateError, corrupt,
};
use arbor_tree_mpt::{Part, build_part, join};
use arbor_versions::View;

use super::MerklePatricia;
use super::load::{node_write, range_writes};

impl Build for MerklePatricia {
    fn spread(
        &self,
        accounts: Vec<KeyedAccount>,
        codes: &LoadedCodes<'_>,
    ) -> Result<Spread, StateError> {
        for account in &accounts {
            codes.size(account.address, &account.account)?;
        }
        let (records, writes) = range_writes(&accounts)?;
        let leaves = accounts.iter().zip(&records);
        let leaves = leaves.map(|(account, record)| SpreadLeaf {
            key: account.key,
            value: record.filled_leaf(),
        });
        Ok(Spread {
            records: vec![writes],
            leaves: leaves.collect(),
        })
    }

    fn part(&self, _: View<'_>, _: u8, leaves: Vec<NumberedLeaf>) -> Result<BuiltPart, StateError> {
        let mut nodes = Vec::new();
        let leaves = leaves.into_iter().map(|leaf| (leaf.key, leaf.value));
        let part = build_part(None, leaves, &mut |position, record| {
            nodes.push(node_write(&position, record));
        })
        .map_err(failed)?;
        let part = part.encode();
        Ok(BuiltPart {
            records: Vec::new(),
            nodes,
            part,
        })
    }

    fn join(&self, parts: Vec<Vec<u8>>, _: u64) -> Result<Joined, StateError> {
        let parts = parts.iter().map(|bytes| {
            Part::decode(bytes)
                .ok_or_else(|| corrupt("parts", bytes, "not a part of the account trie"))
        });
        let parts: Result<Vec<Part>, StateError> = parts.collect();
        let mut writes = Vec::new();
        let root = join(None, parts?, &mut |position, record| {
            writes.push(node_write(&position, record));
        })
        .map_err(failed)?;
        let root = root.into();
        Ok(Joined { writes, root })
    }
}
