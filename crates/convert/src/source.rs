//! What is converted, and the blocks that come with it.

use std::path::{Path, PathBuf};

use alloy_primitives::{B256, Bytes};
use arbor_state::{AccountOrder, AccountSource, BlockRef, ReadError};

use crate::ConvertError;
use crate::dump::Dump;
use crate::naming::Naming;
use crate::progress::Watch;
use crate::sorted::{CodeByHash, SortedFiles};
use crate::sorting::{Sorting, sort_ranges};

/// The state to convert.
pub enum Source<'a> {
    /// A state that is read by ranges of keys.
    State(&'a dyn AccountSource),
    /// A dump, whose accounts come in any order.
    Dump(Dump),
    /// A dump of hashed keys, and files with their preimages.
    Hashed(Dump, Vec<PathBuf>),
}

/// A block that the target is to remember.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceBlock {
    /// Number, hash, and what is kept of the header.
    pub block: BlockRef,
    /// The state root in the header; `None` without a header.
    pub state_root: Option<B256>,
}

impl<'a> Source<'a> {
    /// The state that is read by ranges, if it is one.
    pub(crate) fn state(&self) -> Option<&'a dyn AccountSource> {
        match self {
            Self::State(source) => Some(*source),
            Self::Dump(_) | Self::Hashed(..) => None,
        }
    }

    /// The path of a dump, and whether its keys are hashed.
    pub(crate) fn dump_path(&self) -> Option<(PathBuf, bool)> {
        match self {
            Self::State(_) => None,
            Self::Dump(dump) => Some((dump.path().to_owned(), false)),
            Self::Hashed(dump, _) => Some((dump.path().to_owned(), true)),
        }
    }

    /// Sorts all accounts into files, or those that earlier runs have not.
    pub(crate) fn sort(
        self,
        folder: &Path,
        sorting: Sorting<'_>,
        watch: &Watch<'_>,
    ) -> Result<(), ConvertError> {
        if sorting.is_complete() {
            return Ok(());
        }
        match self {
            Self::State(source) => sort_ranges(source, &sorting)?,
            Self::Dump(dump) => dump.sort(&sorting)?,
            Self::Hashed(dump, preimages) => {
                let naming = Naming::open(folder, (sorting.memory(), sorting.run()), watch)?;
                dump.sort_named(&preimages, &naming, &sorting)?;
            }
        }
        sorting.finish()
    }
}

/// Calls `each` with a state in the order of the target: the source itself if it has that order, else the files that it was sorted into.
pub(crate) fn with_ordered<T>(
    source: Option<&dyn AccountSource>,
    (folder, order, memory): (&Path, &'static AccountOrder, u64),
    each: impl FnOnce(&dyn AccountSource) -> Result<T, ConvertError>,
) -> Result<T, ConvertError> {
    let Some(source) = source else {
        return each(&SortedFiles::open(folder, order, memory, None)?);
    };
    if *source.order() == *order {
        return each(source);
    }
    let code = |hash| -> Result<Bytes, ReadError> { source.code_bytes(hash) };
    let code: CodeByHash<'_> = &code;
    each(&SortedFiles::open(folder, order, memory, Some(code))?)
}
