//! What a stored record of nodes stands for.

use arbor_state_tree::{Seen, SeenNodes, StateError, corrupt};
use arbor_tree_binary::{NodeHash, NodeKind, Packing, Path, entries};

/// Reports the branches and leaves of a record, each at its depth in bits.
pub(crate) fn inspect_nodes<H: NodeHash>(
    packing: Packing,
    (key, value): (&[u8], &[u8]),
    see: &mut dyn FnMut(Seen<'_>),
) -> Result<(), StateError> {
    let path = Path::of_database_key(key).map_err(|_| corrupt("nodes", key, "not a path"))?;
    let entries = entries::<H>(packing, &path, value);
    for entry in entries.map_err(|_| corrupt("nodes", key, "not a record of nodes"))? {
        see(Seen::Nodes(SeenNodes {
            trie: "state",
            kind: match entry.kind {
                NodeKind::Branch => "branch",
                NodeKind::Leaf => "leaf",
            },
            depth: entry.depth,
            count: 1,
            values: None,
        }));
    }
    Ok(())
}
