//! What a binary tree is made with.

use arbor_state_tree::{Scope, Setting, SettingError, Settings, Technique};
use arbor_tree_binary::{HashFunction, Packing};

/// The hash function of a tree, and how its nodes are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeSettings {
    /// The hash function.
    pub(crate) function: HashFunction,
    /// How branches are packed into records.
    pub(crate) packing: Packing,
    /// Bytes for leaves that are put into the tree's order when a whole state is loaded or
    /// verified. The names of a state with more leaves are hashed several times.
    pub(crate) leaf_bytes: usize,
    /// Bytes for accounts that are put into the order of hashed addresses, for the
    /// Merkle-Patricia root. A state with more accounts is listed several times.
    pub(crate) sort_bytes: usize,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            function: HashFunction::default(),
            packing: Packing::default(),
            leaf_bytes: 512 << 20,
            sort_bytes: 512 << 20,
        }
    }
}

/// The setting of the levels of a record.
const LEVELS: &str = "levels";
/// The setting of stored hashes.
const INNER_HASHES: &str = "inner-hashes";

/// What can be set by name.
pub(crate) const SETTINGS: [Setting; 2] = [
    Setting {
        name: LEVELS,
        summary: "Levels of the tree that are stored as one record, 1 to 8",
        scope: Scope::Stored,
        usual: Some(4),
        technique: Some(Technique {
            name: "several levels of the tree in one record",
            off: "levels=1",
        }),
    },
    Setting {
        name: INNER_HASHES,
        summary: "Store the hashes of leaves and of branches within records, so that fewer are computed again",
        scope: Scope::Stored,
        usual: None,
        technique: Some(Technique {
            name: "records without hashes that can be computed again",
            off: INNER_HASHES,
        }),
    },
];

impl NodeSettings {
    /// The settings with some names, which the row of the tree has.
    ///
    /// # Errors
    /// More than 8 levels, or none.
    pub(crate) fn of(tree: &'static str, settings: &Settings) -> Result<Self, SettingError> {
        let mut nodes = Self::default();
        if let Some(function) = settings.hash.as_deref().and_then(HashFunction::named) {
            nodes.function = function;
        }
        if let Some(levels) = settings.number(LEVELS) {
            nodes.packing = Packing::of_levels(levels).ok_or_else(|| SettingError::Unknown {
                tree,
                word: format!("{LEVELS}={levels}"),
                known: vec!["levels=1 to levels=8", INNER_HASHES],
            })?;
        }
        nodes.packing.inner_hashes = settings.has(INNER_HASHES);
        if let Some(memory) = settings.memory {
            let part = usize::try_from(memory / 4).unwrap_or(usize::MAX);
            nodes.leaf_bytes = nodes.leaf_bytes.max(part);
            nodes.sort_bytes = part;
        }
        Ok(nodes)
    }
}
