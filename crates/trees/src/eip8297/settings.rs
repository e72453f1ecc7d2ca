//! What a tree of EIP-8297 is made with.

use arbor_state_tree::{SettingError, Settings};
use arbor_tree_eip8297::{Hasher, Packing};
use arbor_verify::eip8297::Embedding;

use crate::binary::NodeSettings;

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
    /// Bytes for accounts that are put into the order of hashed addresses, for the
    /// Merkle-Patricia root. A state with more accounts is listed several times.
    pub sort_bytes: usize,
}

impl Default for Eip8297 {
    fn default() -> Self {
        let nodes = NodeSettings::default();
        Self {
            hasher: Hasher(nodes.function),
            packing: nodes.packing,
            leaf_bytes: nodes.leaf_bytes,
            sort_bytes: nodes.sort_bytes,
        }
    }
}

/// The one word for the tree.
pub(super) const NAME: &str = "eip8297";
impl Eip8297 {
    /// The tree with some settings, which the row has.
    ///
    /// # Errors
    /// More than 8 levels, or none.
    pub(super) fn of(settings: &Settings) -> Result<Self, SettingError> {
        let nodes = NodeSettings::of(NAME, settings)?;
        Ok(Self {
            hasher: Hasher(nodes.function),
            packing: nodes.packing,
            leaf_bytes: nodes.leaf_bytes,
            sort_bytes: nodes.sort_bytes,
        })
    }

    /// Where names lie.
    pub(super) fn embedding(self) -> Embedding {
        Embedding(self.hasher)
    }
}
