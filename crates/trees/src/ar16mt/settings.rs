//! What a state in AR16MT is made with.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use alloy_primitives::B256;

use arbor_state_tree::{Scope, Setting, Settings, Technique};

/// Runs an expression with the hasher that a state has.
macro_rules! with_hasher {
    ($ar16mt:expr, $hasher:ident => $run:expr) => {
        match $ar16mt.hash {
            $crate::ar16mt::HashChoice::Blake2s => {
                let $hasher = arbor_tree_ar16mt::Blake2s::new();
                $run
            }
            $crate::ar16mt::HashChoice::NoOp => {
                let $hasher = arbor_tree_ar16mt::NoOp;
                $run
            }
        }
    };
}
pub(super) use with_hasher;

/// The hash function of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HashChoice {
    /// BLAKE2s-256.
    #[default]
    Blake2s,
    /// No hashing at all, so that what is left is the cost of everything else. Roots mean nothing.
    NoOp,
}

impl HashChoice {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Blake2s, Self::NoOp];

    /// The name, as a database keeps it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blake2s => "blake2s256",
            Self::NoOp => "no_op256",
        }
    }
}

impl fmt::Display for HashChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The hash function with a [name](HashChoice::name).
impl FromStr for HashChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = |choice: &Self| choice.name() == name;
        let found = Self::ALL.into_iter().find(named);
        found.ok_or_else(|| format!("'{name}' is not blake2s256 or no_op256"))
    }
}

/// A state's settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ar16mt {
    /// What nodes are hashed with: part of what a database is.
    pub hash: HashChoice,
    /// Reads that a thread does together.
    pub chunk: NonZeroUsize,
    /// Whether a check allows leaves any different indices, as whoever writes leaves by their keys may choose them. Every
    /// chain numbers its leaves from 1 on without gaps.
    pub any_index: bool,
    /// Bytes for accounts that are put into the order of hashed addresses, for the
    /// Merkle-Patricia root. A state with more accounts is listed several times.
    pub sort_bytes: usize,
}

impl Default for Ar16mt {
    fn default() -> Self {
        Self {
            hash: HashChoice::default(),
            chunk: Self::CHUNK,
            any_index: false,
            sort_bytes: 512 << 20,
        }
    }
}

/// What can be set by name.
pub(super) const SETTINGS: [Setting; 2] = [
    Setting {
        name: CHUNK,
        summary: "Reads that a thread does together",
        scope: Scope::Computing,
        usual: Some(Ar16mt::CHUNK.get() as u64),
        technique: Some(Technique {
            name: "reads of many records together",
            off: "chunk=1",
        }),
    },
    Setting {
        name: ANY_INDEX,
        summary: "A check allows leaves any different indices, not only 1, 2, 3, ...",
        scope: Scope::Computing,
        usual: None,
        technique: None,
    },
];

const CHUNK: &str = "chunk";
const ANY_INDEX: &str = "any-index";

impl Ar16mt {
    /// The settings with some names.
    pub(super) fn of(settings: &Settings) -> Self {
        let hash = settings.hash.as_deref().and_then(|hash| hash.parse().ok());
        let chunk = settings.number(CHUNK).map(|chunk| chunk as usize);
        Self {
            hash: hash.unwrap_or_default(),
            chunk: chunk.and_then(NonZeroUsize::new).unwrap_or(Self::CHUNK),
            any_index: settings.has(ANY_INDEX),
            sort_bytes: (settings.memory).map_or(Self::default().sort_bytes, |memory| {
                usize::try_from(memory / 4).unwrap_or(usize::MAX)
            }),
        }
    }

    /// Reads together, unless something else is asked for.
    pub const CHUNK: NonZeroUsize = NonZeroUsize::new(512).expect("not zero");

    /// The root of a tree without leaves.
    pub(crate) fn empty_root(self) -> B256 {
        with_hasher!(self, hasher => arbor_tree_ar16mt::empty_root(hasher)).into()
    }
}
