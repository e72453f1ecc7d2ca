//! What a Verkle state is made with.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arbor_ipa::Committer;
use arbor_tree_verkle::{Form, Settings as NodeSettings};

use super::{HeaderLayout, Stems};
use arbor_state_tree::{Scope, Setting, Settings, Technique};

/// How a state lies in a Verkle tree, and with which means it is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerkleSettings {
    /// Where an account's fields lie: part of what a database is.
    pub layout: HeaderLayout,
    /// What of a node is stored, and how nodes are computed. Nodes written with different settings may lie side by side.
    pub tree: NodeSettings,
    /// Bytes for the tables of multiples that commitments are computed with. A replay of some thousand blocks is no faster with twice as large ones: what their
    /// additions are fewer is what the system takes to clear their pages (docs/measurements/verkle.md).
    pub table_bytes: usize,
    /// Whether the first five points, of keys and leaves, have wider tables than the others. There to be measured.
    pub wide_tables: bool,
    /// Whether every version is to be written to the store at once, as the published systems do.
    pub write_through: bool,
    /// Whether a replay may compute the roots of several blocks together. There to be measured, and for whom every block's nodes are to be written.
    pub together: bool,
    /// Bytes for stems that are remembered.
    pub stem_bytes: usize,
    /// Bytes for leaves that are put into the tree's order when a whole state is loaded or verified. The names of a state with more leaves are hashed several times. While they
    /// are gathered, up to twice as many bytes are taken.
    pub leaf_bytes: usize,
    /// Bytes for accounts that are put into the order of hashed addresses, for the
    /// Merkle-Patricia root. A state with more accounts is listed several times.
    pub sort_bytes: usize,
}

impl Default for VerkleSettings {
    fn default() -> Self {
        Self {
            layout: HeaderLayout::default(),
            tree: NodeSettings::default(),
            table_bytes: 80_000_000,
            wide_tables: true,
            write_through: false,
            together: true,
            stem_bytes: 64 << 20,
            leaf_bytes: 512 << 20,
            sort_bytes: 512 << 20,
        }
    }
}

/// What can be set of a Verkle tree by name.
pub(super) const SETTINGS: [Setting; 9] = [
    stored(
        "compressed",
        "Store points in 32 bytes, not 64",
        "points stored with both coordinates",
    ),
    stored(
        "no-images",
        "Store no images of commitments in the scalar field",
        "commitments stored with their scalars",
    ),
    stored(
        "leaf-commitments",
        "Store leaves' own commitments",
        "leaves stored without their own commitments",
    ),
    stored(
        "points-only",
        "Store the commitment to a leaf's values also if few values would be shorter",
        "few values stored instead of a commitment to them",
    ),
    // Switches off several techniques together.
    Setting {
        name: "published",
        summary: "Store nodes as the published systems do: leaves with all their values, their own commitment, C1 and C2, and every node of every block at once; for a new database, because leaves that are stored otherwise stay without values",
        scope: Scope::Stored,
        usual: None,
        technique: None,
    },
    computing(
        "single-images",
        "Map commitments to the scalar field one by one",
        "one inversion for the scalars of many commitments",
    ),
    computing(
        "single-affine",
        "Make points affine one by one",
        "one inversion for the coordinates of many points",
    ),
    computing(
        "single-blocks",
        "Compute the root of each block by itself, not with those of the blocks after it",
        "roots of several blocks computed together",
    ),
    computing(
        "narrow-tables",
        "Give the first five points no wider tables than the others",
        "wider tables of multiples for the first five points",
    ),
];

/// A setting of how nodes are stored, with the technique that it switches off.
const fn stored(name: &'static str, summary: &'static str, technique: &'static str) -> Setting {
    Setting {
        name,
        summary,
        scope: Scope::Stored,
        usual: None,
        technique: Some(Technique {
            name: technique,
            off: name,
        }),
    }
}

/// A setting of how nodes are computed, with the technique that it switches off.
const fn computing(name: &'static str, summary: &'static str, technique: &'static str) -> Setting {
    Setting {
        scope: Scope::Computing,
        ..stored(name, summary, technique)
    }
}

impl VerkleSettings {
    /// The settings with some names, within a memory budget.
    pub(super) fn of(settings: &Settings) -> Self {
        let mut verkle = Self::default();
        if let Some(memory) = settings.memory {
            let part = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
            verkle.table_bytes = verkle.table_bytes.min(part(memory / 3));
            verkle.stem_bytes = part(memory / 256);
            verkle.leaf_bytes = verkle.leaf_bytes.max(part(memory / 4));
            verkle.sort_bytes = part(memory / 4);
        }
        if settings.has("published") {
            verkle.tree.form = Form::PUBLISHED;
            verkle.write_through = true;
            verkle.together = false;
        }
        let form = &mut verkle.tree.form;
        form.compressed |= settings.has("compressed");
        form.images &= !settings.has("no-images");
        form.leaf_commitments |= settings.has("leaf-commitments");
        form.values &= !settings.has("points-only");
        verkle.tree.batched_images &= !settings.has("single-images");
        verkle.tree.batched_affine &= !settings.has("single-affine");
        verkle.together &= !settings.has("single-blocks");
        verkle.wide_tables &= !settings.has("narrow-tables");
        verkle
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_settings_means_nothing() {
        let form = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let settings = Settings {
                words,
                ..Settings::default()
            };
            VerkleSettings::of(&settings).tree.form
        };
        let both = form(&["compressed", "published"]);
        assert_eq!(both, form(&["published", "compressed"]));
        assert_ne!(both, form(&["published"]));
        assert_ne!(both, form(&["compressed"]));
    }

    #[test]
    fn each_setting_changes_something() {
        let usual = VerkleSettings::of(&Settings::default());
        for setting in &SETTINGS {
            let words = vec![setting.name.to_owned()];
            let settings = Settings {
                words,
                ..Settings::default()
            };
            let changed = VerkleSettings::of(&settings);
            assert_ne!(changed, usual, "{}", setting.name);
            let stored = changed.tree.form != usual.tree.form;
            assert_eq!(stored, setting.scope == Scope::Stored, "{}", setting.name);
        }
    }
}
