//! The accesses of blocks as two Parquet files: a row for each account, slot and chunk of code, and a row for each block.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, U256};
use arbor_chain::replay::BlockStats;
use arbor_chain::witness::{Access, AccessCounts, AccountAccesses, BlockWitnessSize, PaidLeaves};
use arbor_metrics::parquet_table::{Cell, Column, Compression, Kind, ParquetError, ParquetTable};
use arbor_state::Opened;

use super::block_accesses::ReplayedBlock;

/// The file with a row for each account, slot and chunk of code of a block.
pub const ACCESSES: &str = "accesses.parquet";
/// The file with a row for each block.
pub const BLOCKS: &str = "blocks.parquet";
/// Ends the names of files that are not whole yet.
const UNFINISHED: &str = "unfinished";

/// Why tables cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The folder has other files.
    #[error("{} is not empty: name a folder that is new or empty", .0.display())]
    NotEmpty(PathBuf),
    /// Another process writes into the folder.
    #[error("another process writes {}", .0.display())]
    Busy(PathBuf),
    /// A file or folder cannot be written.
    #[error("writing {}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system says.
        error: std::io::Error,
    },
    /// A table cannot be written.
    #[error("writing {}: {error}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What failed.
        error: ParquetError,
    },
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> TablesError {
    move |error| TablesError::Io {
        path: path.to_owned(),
        error,
    }
}

fn parquet(path: &Path) -> impl Fn(ParquetError) -> TablesError {
    move |error| TablesError::Parquet {
        path: path.to_owned(),
        error,
    }
}

/// The two tables of a chain's blocks, in a folder.
///
/// Rows are written in groups, so that memory does not grow with the number of blocks. The files get their names when
/// all rows are written ([`finish`](Self::finish)); tables that are dropped before leave no file.
#[derive(Debug)]
pub struct AccessTables {
    folder: Folder,
    accesses: ParquetTable,
    blocks: BlocksTable,
    rows: u64,
}

impl AccessTables {
    /// Begins the tables in a folder, which is made if it is absent.
    ///
    /// # Errors
    /// A folder with files, unless an interrupted run left them; a folder that another process writes into.
    pub fn create(dir: &Path) -> Result<Self, TablesError> {
        let mut folder = Folder::open(dir)?;
        let file = folder.begin(ACCESSES)?;
        let path = folder.unfinished(ACCESSES);
        let table = ParquetTable::new(file, "accesses", access_columns(), Compression::Snappy);
        let blocks = folder.begin(BLOCKS)?;
        Ok(Self {
            accesses: table.map_err(parquet(&path))?,
            blocks: BlocksTable {
                waiting: Some(blocks),
                held: Vec::new(),
                begun: None,
            },
            folder,
            rows: 0,
        })
    }

    /// Adds a block.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn add(&mut self, block: &ReplayedBlock) -> Result<(), TablesError> {
        let path = self.folder.unfinished(ACCESSES);
        let number = block.stats.number;
        for (address, of_account) in &block.accesses.accounts {
            let rows = add_account(&mut self.accesses, number, address, of_account);
            self.rows += rows.map_err(parquet(&path))?;
        }
        let path = self.folder.unfinished(BLOCKS);
        self.blocks.add(block).map_err(parquet(&path))
    }

    /// The rows of accesses so far.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes what is left, and gives the files their names.
    ///
    /// # Errors
    /// What cannot be written. No file has its name then, or only the one of accesses.
    pub fn finish(self) -> Result<(), TablesError> {
        let Self {
            mut folder,
            accesses,
            blocks,
            ..
        } = self;
        let written = accesses.finish();
        written.map_err(parquet(&folder.unfinished(ACCESSES)))?;
        let written = blocks.finish();
        written.map_err(parquet(&folder.unfinished(BLOCKS)))?;
        folder.name_files()
    }
}

fn access_columns() -> Vec<Column> {
    vec![
        Column::required("block_number", Kind::U64),
        Column::required("kind", Kind::Text),
        Column::required("address", Kind::Bytes(20)),
        Column::optional("slot", Kind::Bytes(32)),
        Column::optional("chunk", Kind::U32),
        Column::required("read", Kind::Flag),
        Column::required("changed", Kind::Flag),
    ]
}

/// Adds the rows of an account; returns their number.
fn add_account(
    table: &mut ParquetTable,
    number: u64,
    address: &Address,
    of_account: &AccountAccesses,
) -> Result<u64, ParquetError> {
    let mut rows = 0;
    let mut add = |kind, slot: Option<&U256>, chunk: Option<u32>, access: Access| {
        if !access.is_any() {
            return Ok(());
        }
        rows += 1;
        let slot = slot.map(U256::to_be_bytes::<32>);
        table.add(&[
            Cell::Number(number),
            Cell::Text(kind),
            Cell::Bytes(address.as_slice()),
            slot.as_ref().map_or(Cell::Null, |slot| Cell::Bytes(slot)),
            chunk.map_or(Cell::Null, |chunk| Cell::Number(chunk.into())),
            Cell::Flag(access.read),
            Cell::Flag(access.changed),
        ])
    };
    add("account", None, None, of_account.account)?;
    for (slot, access) in &of_account.slots {
        add("slot", Some(slot), None, *access)?;
    }
    for (chunk, access) in &of_account.chunks {
        add("code", None, Some(*chunk), *access)?;
    }
    Ok(rows)
}

/// The table of blocks. Its columns depend on the form of the witnesses, which the first witness shows.
#[derive(Debug)]
struct BlocksTable {
    /// The file, until the columns are known.
    waiting: Option<File>,
    /// Rows that wait for the columns: under a tree with witnesses, the first blocks may have none.
    held: Vec<BlockRow>,
    begun: Option<BegunBlocks>,
}

/// A block as its row needs it.
#[derive(Debug)]
struct BlockRow {
    stats: BlockStats,
    counts: AccessCounts,
    paid: Option<PaidLeaves>,
    opened: Option<Opened>,
    witness: Option<BlockWitnessSize>,
}

impl BlockRow {
    fn of(block: &ReplayedBlock) -> Self {
        Self {
            stats: block.stats,
            counts: block.accesses.counts(),
            paid: block.accesses.paid,
            opened: block.opened,
            witness: block.witness.clone(),
        }
    }
}

#[derive(Debug)]
struct BegunBlocks {
    table: ParquetTable,
    /// The columns of witnesses, in the order of [`parts`].
    parts: Vec<String>,
}

impl BlocksTable {
    fn begin(&mut self, parts: Vec<String>) -> Result<(), ParquetError> {
        if let Some(file) = self.waiting.take() {
            let table =
                ParquetTable::new(file, "blocks", block_columns(&parts), Compression::Snappy)?;
            self.begun = Some(BegunBlocks { table, parts });
        }
        Ok(())
    }

    fn add(&mut self, block: &ReplayedBlock) -> Result<(), ParquetError> {
        self.held.push(BlockRow::of(block));
        if self.begun.is_none() && block.without_witness.is_some() {
            return Ok(());
        }
        let witness = block.witness.iter();
        self.begin(witness.flat_map(parts).map(|(name, _)| name).collect())?;
        self.write_held()
    }

    /// Writes the rows that wait.
    fn write_held(&mut self) -> Result<(), ParquetError> {
        let begun = self.begun.as_mut().ok_or_else(failed_before)?;
        for row in self.held.drain(..) {
            add_block(&mut begun.table, &begun.parts, &row)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        self.begin(Vec::new())?;
        self.write_held()?;
        self.begun.ok_or_else(failed_before)?.table.finish()
    }
}

fn failed_before() -> ParquetError {
    ParquetError::General("the table could not be begun before".to_owned())
}

/// The counts of a witness and the bytes of its parts, by the names of their columns.
fn parts(size: &BlockWitnessSize) -> impl Iterator<Item = (String, u64)> {
    let column = |name: &str, ending: &str| format!("witness_{}{ending}", name.replace(' ', "_"));
    let counts = size.counts.0.iter();
    let counts = counts.map(move |(name, count)| (column(name, ""), *count));
    let bytes = size.parts.0.iter();
    counts.chain(bytes.map(move |(name, bytes)| (column(name, "_bytes"), *bytes)))
}

fn block_columns(parts: &[String]) -> Vec<Column> {
    let mut columns = vec![
        Column::required("block_number", Kind::U64),
        Column::required("block_hash", Kind::Bytes(32)),
    ];
    let counts = [
        "timestamp",
        "gas_used",
        "n_transactions",
        "accounts_read",
        "accounts_changed",
        "slots_read",
        "slots_changed",
        "chunks_read",
        "chunks_changed",
        "nodes_written",
    ];
    columns.extend(counts.map(|name| Column::required(name, Kind::U64)));
    let events = ["events_header", "events_code", "events_storage"];
    columns.extend(events.map(|name| Column::optional(name, Kind::U64)));
    let opened = ["opened_nodes", "opened_stems", "opened_leaves"];
    columns.extend(opened.map(|name| Column::optional(name, Kind::U64)));
    columns.push(Column::optional("witness_bytes", Kind::U64));
    let parts = parts.iter();
    columns.extend(parts.map(|name| Column::optional(name, Kind::U64)));
    columns
}

fn add_block(
    table: &mut ParquetTable,
    columns: &[String],
    block: &BlockRow,
) -> Result<(), ParquetError> {
    let (stats, counts) = (&block.stats, &block.counts);
    let mut cells = vec![Cell::Number(stats.number), Cell::Bytes(&stats.hash[..])];
    let numbers = [
        stats.timestamp,
        stats.gas,
        stats.transactions,
        counts.accounts_read,
        counts.accounts_changed,
        counts.slots_read,
        counts.slots_changed,
        counts.chunks_read,
        counts.chunks_changed,
        stats.nodes,
    ];
    cells.extend(numbers.map(Cell::Number));
    let events = block
        .paid
        .map(|paid| [paid.header, paid.code, paid.storage]);
    cells.extend(events.map_or([Cell::Null; 3], |events| events.map(Cell::Number)));
    let opened = block
        .opened
        .map(|opened| [opened.nodes, opened.stems, Some(opened.leaves)]);
    let opened = opened.unwrap_or_default();
    cells.extend(opened.map(|count| count.map_or(Cell::Null, Cell::Number)));
    let bytes = block.witness.as_ref().map(|size| {
        let parts = size.parts.0.iter();
        parts.map(|(_, bytes)| bytes).sum()
    });
    cells.push(bytes.map_or(Cell::Null, Cell::Number));
    let found: Vec<(String, u64)> = block.witness.iter().flat_map(parts).collect();
    cells.extend(columns.iter().map(|column| {
        let part = found.iter().find(|(name, _)| name == column);
        part.map_or(Cell::Null, |(_, number)| Cell::Number(*number))
    }));
    table.add(&cells)
}

/// The folder of the tables, in which unfinished files are removed at the end.
#[derive(Debug)]
struct Folder {
    dir: PathBuf,
    /// Whether the folder is new.
    made: bool,
    /// The files that do not have their names yet.
    begun: Vec<&'static str>,
}

impl Folder {
    fn open(dir: &Path) -> Result<Self, TablesError> {
        let made = !dir.exists();
        if made {
            fs::create_dir_all(dir).map_err(io(dir))?;
        }
        let folder = Self {
            dir: dir.to_owned(),
            made,
            begun: Vec::new(),
        };
        let own = [ACCESSES, BLOCKS].map(|name| folder.unfinished(name));
        for entry in fs::read_dir(dir).map_err(io(dir))? {
            if !own.contains(&entry.map_err(io(dir))?.path()) {
                return Err(TablesError::NotEmpty(dir.to_owned()));
            }
        }
        Ok(folder)
    }

    fn unfinished(&self, name: &str) -> PathBuf {
        self.dir.join(name).with_added_extension(UNFINISHED)
    }

    /// Makes the unfinished file of a table, which no other process writes meanwhile.
    fn begin(&mut self, name: &'static str) -> Result<File, TablesError> {
        let path = self.unfinished(name);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = options.open(&path).map_err(io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(TablesError::Busy(path)),
            Err(TryLockError::Error(error)) => return Err(io(&path)(error)),
        }
        self.begun.push(name);
        file.set_len(0).map_err(io(&path))?;
        Ok(file)
    }

    fn name_files(&mut self) -> Result<(), TablesError> {
        while let Some(name) = self.begun.first() {
            let path = self.dir.join(name);
            fs::rename(self.unfinished(name), &path).map_err(io(&path))?;
            self.begun.remove(0);
        }
        // The names are as durable as the files.
        let synced = File::open(&self.dir).and_then(|dir| dir.sync_all());
        synced.map_err(io(&self.dir))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the error that led here is still the one to report.
        for name in &self.begun {
            let _ = fs::remove_file(self.unfinished(name));
        }
        if self.made && !self.begun.is_empty() {
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use arbor_chain::replay::ReplayError;
    use arbor_chain::witness::{BlockAccesses, Named};

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.into_string().expect("text"))
            .collect();
        names.sort();
        names
    }

    /// Under a tree with witnesses, a block may have none. Its row had to wait for the columns if it was the first.
    #[test]
    fn rows_wait_for_the_first_witness() {
        let replayed = |number, witness: Option<u64>| ReplayedBlock {
            accesses: BlockAccesses::default(),
            opened: None,
            without_witness: witness.is_none().then_some(ReplayError::NoParent(number)),
            witness: witness.map(|nodes| BlockWitnessSize {
                counts: Named(vec![("nodes", nodes)]),
                parts: Named(vec![("nodes", 100 * nodes)]),
                others: Named(Vec::new()),
            }),
            stats: BlockStats {
                number,
                ..BlockStats::default()
            },
        };
        let temporary = tempfile::tempdir().expect("a folder");
        let dir = temporary.path().join("accesses");
        let mut tables = AccessTables::create(&dir).expect("a new folder");
        for number in 1..=2 {
            tables.add(&replayed(number, None)).expect("added");
        }
        assert_eq!(tables.blocks.held.len(), 2);
        tables.add(&replayed(3, Some(5))).expect("added");
        tables.add(&replayed(4, None)).expect("added");
        assert!(tables.blocks.held.is_empty());
        let begun = tables.blocks.begun.as_ref().expect("the columns are known");
        assert_eq!(begun.parts, ["witness_nodes", "witness_nodes_bytes"]);
        tables.finish().expect("written");
        assert_eq!(names(&dir), [ACCESSES, BLOCKS]);

        // No block has a witness.
        let dir = temporary.path().join("none");
        let mut tables = AccessTables::create(&dir).expect("a new folder");
        tables.add(&replayed(1, None)).expect("added");
        tables.finish().expect("written");
        assert_eq!(names(&dir), [ACCESSES, BLOCKS]);
    }

    #[test]
    fn files_are_there_at_the_end_or_not_at_all() {
        let temporary = tempfile::tempdir().expect("a folder");
        let dir = temporary.path().join("below/accesses");
        let tables = AccessTables::create(&dir).expect("a new folder");
        assert_eq!(
            names(&dir),
            ["accesses.parquet.unfinished", "blocks.parquet.unfinished"]
        );
        let error = AccessTables::create(&dir).expect_err("two at a time");
        assert!(matches!(error, TablesError::Busy(_)), "{error}");
        assert_eq!(names(&dir).len(), 2);
        drop(tables);
        assert!(!dir.exists());

        // A process that was killed leaves unfinished files.
        fs::create_dir(&dir).expect("made");
        fs::write(dir.join("blocks.parquet.unfinished"), "PAR").expect("written");
        let tables = AccessTables::create(&dir).expect("no other file is there");
        tables.finish().expect("written");
        assert_eq!(names(&dir), [ACCESSES, BLOCKS]);
        let error = AccessTables::create(&dir).expect_err("not empty");
        assert!(matches!(error, TablesError::NotEmpty(_)), "{error}");
        assert_eq!(names(&dir), [ACCESSES, BLOCKS]);
    }
}
