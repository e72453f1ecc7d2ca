//! What a tree of EIP-8297 is made with.

use arbor_state_tree::{Scope, Setting, SettingError, Settings};
use arbor_tree_eip8297::{Hasher, Packing};
use arbor_verify::eip8297::Embedding;

/// EIP-8297's tree with its hash function, and how its nodes are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eip8297 {
    /// The hash function, of names and of nodes.
    pub hasher: Hasher,
    /// How branches are packed into records.
    pub packing: Packing,
    /// Bytes for leaves that are put into the tree's order when a whole state is loaded or
    /// verified. The names of a state with more leaves are hashed several times.
    pub leaf_bytes: usize,
}

impl Default for Eip8297 {
    fn default() -> Self {
        Self {
            hasher: Hasher::blake3(),
            packing: Packing::default(),
            leaf_bytes: 512 << 20,
        }
    }
}

/// The one word for the tree.
pub(super) const NAME: &str = "eip8297";
/// The setting of the levels of a record.
const LEVELS: &str = "levels";
/// The setting of stored hashes.
const INNER_HASHES: &str = "inner-hashes";

/// What can be set by name.
pub(super) const SETTINGS: [Setting; 2] = [
    Setting {
        name: LEVELS,
        summary: "Levels of the tree that are stored as one record, 1 to 8",
        scope: Scope::Stored,
        usual: Some(4),
    },
    Setting {
        name: INNER_HASHES,
        summary: "Store the hashes of leaves and of branches within records, so that fewer are computed again",
        scope: Scope::Stored,
        usual: None,
    },
];

impl Eip8297 {
    /// The tree with some settings, which the row has.
    ///
    /// # Errors
    /// More than 8 levels, or none.
    pub(super) fn of(settings: &Settings) -> Result<Self, SettingError> {
        let mut tree = Self::default();
        if let Some(hasher) = settings.hash.as_deref().and_then(Hasher::named) {
            tree.hasher = hasher;
        }
        if let Some(levels) = settings.number(LEVELS) {
            tree.packing = Packing::of_levels(levels).ok_or_else(|| SettingError {
                tree: NAME,
                word: format!("{LEVELS}={levels}"),
                known: vec!["levels=1 to levels=8", INNER_HASHES],
            })?;
        }
        tree.packing.inner_hashes = settings.has(INNER_HASHES);
        if let Some(memory) = settings.memory {
            let part = usize::try_from(memory / 4).unwrap_or(usize::MAX);
            tree.leaf_bytes = tree.leaf_bytes.max(part);
        }
        Ok(tree)
    }

    /// Where names lie.
    pub(super) fn embedding(self) -> Embedding {
        Embedding(self.hasher)
    }
}
