//! What a tree of EIP-7864 is made with.

use arbor_state_tree::{SettingError, Settings};
use arbor_tree_eip7864::{Hasher, Packing};
use arbor_verify::eip7864::{HeaderLayout, Revision, Stems};

use crate::binary::NodeSettings;

/// EIP-7864's tree with its revision and hash function, and how its nodes are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eip7864 {
    /// The revision of the embedding.
    pub revision: Revision,
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

impl Eip7864 {
    /// How an account's fields are laid into leaves.
    pub(super) const LAYOUT: HeaderLayout = HeaderLayout::BasicData;

    /// The tree with some settings, which the row with this name has.
    ///
    /// # Errors
    /// More than 8 levels, or none.
    pub(super) fn of(
        row: &'static str,
        revision: Revision,
        settings: &Settings,
    ) -> Result<Self, SettingError> {
        let nodes = NodeSettings::of(row, settings)?;
        Ok(Self {
            revision,
            hasher: Hasher(nodes.function),
            packing: nodes.packing,
            leaf_bytes: nodes.leaf_bytes,
            sort_bytes: nodes.sort_bytes,
        })
    }

    /// How names become stems.
    pub(super) fn stems(self) -> Stems {
        Stems {
            revision: self.revision,
            function: self.hasher.0,
        }
    }
}
