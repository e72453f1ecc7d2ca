//! Why a comparison cannot go on.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a comparison as a whole. A run that fails is no such error: see
/// [`Outcome`](crate::Outcome).
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A file of the folder cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// A file of the folder is not what a comparison writes.
    #[error("{} cannot be read ({why}): remove it to do that run again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The file with a comparison's arguments cannot be read.
    #[error(
        "{} has the arguments of a comparison, and cannot be read ({why}): remove the folder to begin \
         again, or give another --out", path.display()
    )]
    DamagedPlan {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The folder has another comparison.
    #[error(
        "{} has a comparison with other arguments ({}): give the same ones to go on with it, or \
         another --out", folder.display(), .differences.join("; ")
    )]
    OtherPlan {
        /// The folder.
        folder: PathBuf,
        /// What differs, field by field.
        differences: Vec<String>,
    },
    /// Another process works in the folder.
    #[error(
        "another comparison is under way in {}: wait until it ends, or give another --out", .0.display()
    )]
    Busy(PathBuf),
    /// A replay of a comparison that was killed is still under way.
    #[error(
        "a replay that a killed comparison started is still under way in {}: end that process, or \
         wait until it has ended", .0.display()
    )]
    Orphan(PathBuf),
    /// The folder has files of something else.
    #[error("{} is not empty and has no comparison: give another --out", .0.display())]
    Foreign(PathBuf),
    /// Runs that must agree do not.
    #[error("{0}")]
    Disagree(String),
    /// The side that the others are compared with failed.
    #[error("{name} failed, so that there is nothing to compare the others with: {}", .failed.join("; "))]
    NoReference {
        /// The side.
        name: String,
        /// The runs that failed, with what failed and where the log is.
        failed: Vec<String>,
    },
    /// There is nothing to compare.
    #[error("no run succeeded")]
    NoRuns,
}

/// Puts a file's name to an error.
pub(crate) fn of_file(path: &Path) -> impl Fn(io::Error) -> CompareError {
    let path = path.to_owned();
    move |error| CompareError::File {
        path: path.clone(),
        error,
    }
}
