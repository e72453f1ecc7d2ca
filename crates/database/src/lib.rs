//! A folder with a database: a store, and what the folder remembers of the chain, its rules and settings.
//!
//! A [`Folder`] opens, creates and locks a database. [`Folder::open_to_read`] locks nothing and sees the last flushed version,
//! also while another process writes. [`Folder::create`] makes a database for a tree, a chain and its rules;
//! [`Folder::resume`] goes on with one, by all that its folder remembers. [`BlockState`] is the state after a block: accounts, proofs, and
//! calls on top of it.
//!
//! ```
//! use arbor_chain::rules::ChainRules;
//! use arbor_database::{Budget, Folder, NO_CHAIN, NewDatabase, StoreKind};
//!
//! let trees = arbor_trees::standard();
//! let dir = tempfile::tempdir()?;
//! let folder = Folder::new(dir.path(), &trees);
//! let database = NewDatabase {
//!     store: StoreKind::Fjall,
//!     tree: trees.find("mpt").expect("it is a standard tree"),
//!     tree_settings: &[],
//!     network: NO_CHAIN,
//!     genesis: None,
//!     rules: ChainRules::default(),
//! };
//! let mut state = folder.create(&database, Budget::new(64 << 20))?;
//! state.flush()?;
//! drop(state);
//!
//! assert_eq!(folder.tree().map(|tree| tree.name), Some("mpt"));
//! assert_eq!(folder.rules()?, Some(ChainRules::default()));
//! let state = folder.open_to_read(64 << 20)?;
//! assert_eq!(state.reader().meta(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod access_list;
mod block_state;
mod budget;
mod chain_context;
mod error;
mod folder;
mod gas_estimate;
mod genesis;
mod locked_store;
mod names;
mod open;
mod remembered;
mod resume;
mod retention;
mod rules;
mod store;
mod store_kind;
mod stored_settings;
mod tree_settings;

pub use arbor_store::disk::Limits;
pub use block_state::{BlockState, BlockStateError, kept_blocks};
pub use budget::{Budget, usual_write_back};
pub use chain_context::ChainContext;
pub use error::DatabaseError;
pub use folder::{Folder, NO_CHAIN, network};
pub use gas_estimate::GasEstimate;
pub use genesis::OtherGenesis;
pub use locked_store::LockedStore;
pub use names::{CONVERSION, CONVERSION_JOB, is_own_name};
pub use open::{NewDatabase, Remembered, in_memory};
pub use remembered::write_whole;
pub use resume::Resumed;
pub use retention::{RETAINED, parse_retain, show_retain};
pub use rules::{AgreedRules, RulesNotice};
pub use store_kind::StoreKind;
pub use stored_settings::SettingsNotice;
pub use tree_settings::TreeSettings;
