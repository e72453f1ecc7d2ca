//! A whole state from one tree to another.
//!
//! Every tree is loaded from a stream of accounts in the order of its own keys, and every state is read as a
//! stream of accounts: so N trees need N readers and N loaders. A [`Conversion`] has three phases.
//!
//! 1. *Sort.* If the source has another order than the target, its accounts are written to 256 files, by the first
//!    byte of their keys under the target. Names are hashed in lanes, on all threads. A file is sorted in memory when it
//!    is read.
//! 2. *Build.* The target's flat tables are filled in their order, and its nodes are made bottom-up, each once.
//! 3. *Verify.* The target is read again and compared with the source, account by account and slot by slot, and the
//!    Merkle-Patricia root of what was read is compared with the source's.
//!
//! No tree is named here: a new row in the registry can be converted from and to.
#![forbid(unsafe_code)]

mod account_list;
mod audit;
mod blame;
mod building;
mod codes;
mod compare;
mod conversion;
mod counts;
mod dead_frames;
mod done;
mod dump;
mod dump_line;
mod error;
mod estimate;
mod follow;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
mod input;
mod job;
mod leaf_records;
mod naming;
mod parts;
mod preimage_file;
mod preimages;
mod progress;
mod range_result;
mod record;
mod runs;
mod sorted;
mod sorting;
mod source;

pub use account_list::AccountList;
pub use arbor_state::PartOf;
pub use audit::{Audit, MissingName};
pub use building::LOADED_TOGETHER;
pub use compare::{Comparison, Difference};
pub use conversion::{Conversion, Converted, Joining};
pub use counts::Counts;
pub use dump::Dump;
pub use error::ConvertError;
pub use estimate::{Estimate, estimate, estimate_dump, estimate_hashed};
pub use follow::{FollowHooks, Level, catch_up, check_source};
pub use input::Input;
pub use job::{Job, Stage};
pub use parts::{Join, PartBlock, PartConversion, PartJob};
pub use preimage_file::{Preimage, PreimageFile, PreimageForm};
pub use preimages::{HashedSource, Preimages, WrittenForm};
pub use progress::{Hooks, Phase, PhaseDone};
pub use source::{Source, SourceBlock};
