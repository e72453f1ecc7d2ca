//! What a Verkle state is made with.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arbor_ipa::Committer;
use arbor_tree_verkle::Settings;

use super::{HeaderLayout, Stems};

/// How a state lies in a Verkle tree, and with which means it is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerkleSettings {
    /// Where an account's fields lie: part of what a database is.
    pub layout: HeaderLayout,
    /// What of a node is stored, and how nodes are computed. Nodes written with different settings may lie side by side.
    pub tree: Settings,
    /// Bytes for the tables of multiples that commitments are computed with. A replay of some thousand blocks is no faster with twice as large ones: what their
    /// additions are fewer is what the system takes to clear their pages (docs/measurements/verkle.md).
    pub table_bytes: usize,
    /// Whether the first five points, of keys and leaves, have wider tables than the others. There to be measured.
    pub wide_tables: bool,
    /// Whether a replay may compute the roots of several blocks together. There to be measured, and for whom every block's nodes are to be written.
    pub together: bool,
    /// Bytes for stems that are remembered.
    pub stem_bytes: usize,
    /// Bytes for leaves that are put into the tree's order when a whole state is loaded or verified. The names of a state with more leaves are hashed several times. While they
    /// are gathered, up to twice as many bytes are taken.
    pub leaf_bytes: usize,
}

impl Default for VerkleSettings {
    fn default() -> Self {
        Self {
            layout: HeaderLayout::default(),
            tree: Settings::default(),
            table_bytes: 80_000_000,
            wide_tables: true,
            together: true,
            stem_bytes: 64 << 20,
            leaf_bytes: 512 << 20,
        }
    }
}

/// A Verkle state's settings, and its tables once something has been computed: reading accounts and slots needs none.
#[derive(Clone)]
pub struct Verkle {
    settings: VerkleSettings,
    stems: Arc<OnceLock<Stems>>,
}

impl Verkle {
    /// Makes the tables when they are needed first.
    pub fn new(settings: VerkleSettings) -> Self {
        Self {
            settings,
            stems: Arc::default(),
        }
    }

    /// As [`new`](Self::new), with tables that are there already.
    pub fn with(committer: Arc<Committer>, settings: VerkleSettings) -> Self {
        let stems = Stems::new(committer, settings.stem_bytes);
        Self {
            settings,
            stems: Arc::new(stems.into()),
        }
    }

    /// The settings.
    pub fn settings(&self) -> &VerkleSettings {
        &self.settings
    }

    /// Stems, and the tables that they and all commitments are computed with.
    pub fn stems(&self) -> &Stems {
        self.stems_telling(|| ())
    }

    /// As [`stems`](Self::stems); where the tables are yet to be made, `placed` is called once all their memory is there, before they are filled.
    pub fn stems_telling(&self, placed: impl FnOnce()) -> &Stems {
        self.stems.get_or_init(|| {
            let mut sizes = Committer::sizes_within(self.settings.table_bytes);
            if !self.settings.wide_tables {
                sizes = sizes.alike();
            }
            let committer = Committer::telling(sizes, placed);
            Stems::new(Arc::new(committer), self.settings.stem_bytes)
        })
    }
}

impl fmt::Debug for Verkle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Verkle").field(&self.settings).finish()
    }
}
