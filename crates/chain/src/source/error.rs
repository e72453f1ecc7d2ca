//! What can be wrong with the files that hold a chain.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::{B256, U256};

/// Where in its file a block lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub file: Arc<Path>,
    /// Bytes before the block. In a gzip export they are counted in the decompressed stream.
    pub offset: u64,
    /// Blocks before this one in the file.
    pub ordinal: u64,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            file,
            offset,
            ordinal,
        } = self;
        let before = match ordinal {
            1 => "1 block".to_owned(),
            blocks => format!("{blocks} blocks"),
        };
        write!(
            f,
            "{}, offset {offset} ({before} before it)",
            file.display()
        )
    }
}

/// Why blocks could not be read. Each variant names the file, and the place in it where there is one.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The operating system, or the gzip decoder, refused.
    #[error("{}{}: {source}", file.display(), if *offset > 0 { format!(", offset {offset}") } else { String::new() })]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// Bytes read before (decompressed ones for gzip); 0 if the file could not be opened.
        offset: u64,
        /// The reason.
        source: std::io::Error,
    },
    /// The file ends inside something.
    #[error("{at}: the file ends inside {what}")]
    Truncated {
        /// Start of the broken thing.
        at: Position,
        /// What is incomplete.
        what: &'static str,
    },
    /// The bytes are there but are not what the format demands.
    #[error("{at}{}: {reason}", number.map(|n| format!(" (number {n})")).unwrap_or_default())]
    Malformed {
        /// Start of the block or entry.
        at: Position,
        /// The block's number, once its header is known.
        number: Option<u64>,
        /// What is wrong.
        reason: String,
    },
    /// A transaction offers more for its gas than any account can pay. It is well formed, and no account has the funds.
    #[error(
        "{at} (number {number}): transaction {transaction}: insufficient funds: its {field} is {price} wei, and no account can pay 2^128 wei or more for each unit of gas"
    )]
    PriceBeyondFunds {
        /// Start of the block.
        at: Position,
        /// The block's number.
        number: u64,
        /// The transaction's place in the block.
        transaction: usize,
        /// The name of the price.
        field: &'static str,
        /// The price.
        price: U256,
    },
    /// A file is neither an export nor an era1 file.
    #[error("{}: {reason}", file.display())]
    NotAChain {
        /// The file or folder.
        file: PathBuf,
        /// What was found instead.
        reason: String,
    },
    /// Blocks are missing between two files, or inside one.
    #[error("{}", gap(*first_missing, *last_missing, before, after))]
    Gap {
        /// Lowest missing number.
        first_missing: u64,
        /// Highest missing number.
        last_missing: u64,
        /// The block before the gap.
        before: Position,
        /// The block after the gap.
        after: Position,
    },
    /// Two files hold the same block, or a file goes backwards.
    #[error("{}", overlap(*number, *previous, before, after))]
    Overlap {
        /// Lowest number held twice.
        number: u64,
        /// Number of the block before it, which is not below it.
        previous: u64,
        /// The block before it.
        before: Position,
        /// The block of that number.
        after: Position,
    },
    /// A block does not name its predecessor as parent.
    #[error("{0}")]
    ParentMismatch(Box<BrokenLink>),
    /// Files of two networks were given together.
    #[error("{} holds {first_network} blocks, {} holds {second_network} blocks", first.display(), second.display())]
    NetworkMixup {
        /// One file.
        first: PathBuf,
        /// Its network.
        first_network: String,
        /// Another file.
        second: PathBuf,
        /// Its network.
        second_network: String,
    },
    /// A block that was asked for lies before or behind everything given.
    #[error("block {wanted} is not in the given files: they start at {first} and {}", last.map_or_else(|| "end before it".into(), |n| format!("end at {n}")))]
    OutOfRange {
        /// The number asked for.
        wanted: u64,
        /// First number given.
        first: u64,
        /// Last number given, where known.
        last: Option<u64>,
    },
}

/// Says what is missing where.
fn gap(first: u64, last: u64, before: &Position, after: &Position) -> String {
    let missing = match first == last {
        true => format!("block {first} is missing"),
        false => format!("blocks {first} to {last} are missing"),
    };
    let file = before.file.display();
    if before.file == after.file {
        let (before, after) = (before.offset, after.offset);
        return format!(
            "{file}: {missing} between block {} at offset {before} and block {} at offset {after}",
            first - 1,
            last + 1
        );
    }
    format!("{missing} between {file} and {}", after.file.display())
}

/// Says which block is there twice, or comes too late.
fn overlap(number: u64, previous: u64, before: &Position, after: &Position) -> String {
    let file = before.file.display();
    if before.file != after.file {
        return format!(
            "block {number} is in both {file} and {}",
            after.file.display()
        );
    }
    let (before, after) = (before.offset, after.offset);
    match number == previous {
        true => format!(
            "{file}: block {number} is there twice, at offset {before} and at offset {after}"
        ),
        false => format!(
            "{file}: block {number} at offset {after} comes after block {previous} at offset {before}"
        ),
    }
}

/// Two blocks of consecutive numbers that do not belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLink {
    /// The later block.
    pub at: Position,
    /// Its number.
    pub number: u64,
    /// Hash of the block before it.
    pub expected: B256,
    /// Parent that it names.
    pub actual: B256,
    /// File of the block before it.
    pub previous: PathBuf,
}

impl std::fmt::Display for BrokenLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            at,
            number,
            expected,
            actual,
            previous,
        } = self;
        let before = number.saturating_sub(1);
        write!(
            f,
            "{at}: block {number} has parent {actual}, but block {before} is {expected} (from {})",
            previous.display()
        )
    }
}

/// A file being read: makes positions and errors that name it.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) file: Arc<Path>,
}

impl Place {
    pub(crate) fn new(path: &Path) -> Self {
        Self { file: path.into() }
    }

    pub(crate) fn at(&self, offset: u64, ordinal: u64) -> Position {
        Position {
            file: self.file.clone(),
            offset,
            ordinal,
        }
    }

    pub(crate) fn io(&self, offset: u64, source: std::io::Error) -> SourceError {
        SourceError::Io {
            file: self.file.to_path_buf(),
            offset,
            source,
        }
    }

    pub(crate) fn not_a_chain(&self, reason: impl Into<String>) -> SourceError {
        SourceError::NotAChain {
            file: self.file.to_path_buf(),
            reason: reason.into(),
        }
    }
}

impl Position {
    pub(crate) fn malformed(&self, number: Option<u64>, reason: impl Into<String>) -> SourceError {
        SourceError::Malformed {
            at: self.clone(),
            number,
            reason: reason.into(),
        }
    }
}
