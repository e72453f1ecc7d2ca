//! Giving back the space of journals whose records are all in tables.
//!
//! fjall 3.1 removes a journal only once it has begun the next one, which it does at 64 MB. Until then the records of a
//! journal keep their space, although a merge has written them into tables. fjall offers no call to begin another
//! journal, so an emptied one takes its place after the database is closed. An empty journal is what a new database has:
//! 64 MiB of zeros that occupy nothing. The file must stay, because fjall without any journal counts its writes from 0.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The journals of a database. When this is dropped, which must be after the engine's handles, dead journals are emptied.
pub(crate) struct Journals {
    folder: PathBuf,
    /// Batches that were written.
    written: AtomicU64,
    /// The batches that are all in tables, since the last merge of everything.
    in_tables: AtomicU64,
}

impl Journals {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
            // What was written before the database was opened may be in the journal alone.
            written: AtomicU64::new(1),
            in_tables: AtomicU64::new(0),
        }
    }

    /// Counts a batch. The caller holds the lock that batches are committed under.
    pub(crate) fn count_batch(&self) {
        self.written.fetch_add(1, Ordering::AcqRel);
    }

    /// The batches that are committed. The caller holds the lock that batches are committed under.
    pub(crate) fn batches(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Notes that this many batches are all in tables.
    pub(crate) fn are_in_tables(&self, batches: u64) {
        self.in_tables.store(batches, Ordering::Release);
    }

    fn are_dead(&self) -> bool {
        self.in_tables.load(Ordering::Acquire) == self.batches()
    }

    fn empty(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "jnl") {
                empty(&path)?;
            }
        }
        Ok(())
    }
}

impl Drop for Journals {
    /// A journal that cannot be emptied keeps its space, and loses nothing.
    fn drop(&mut self) {
        if self.are_dead() {
            let _ = self.empty();
        }
    }
}

/// Makes a file all holes, of the length that it has. A crash in between leaves it as it was, or shorter and empty.
fn empty(path: &Path) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let length = file.metadata()?.len();
    file.set_len(0)?;
    file.set_len(length)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_after_a_merge_keeps_the_journal() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = folder.path().join("0.jnl");
        let content = || {
            let bytes = fs::read(&journal).expect("read");
            (bytes.len(), bytes.iter().any(|byte| *byte != 0))
        };
        fs::write(&journal, [7; 100]).expect("written");
        drop(Journals::new(folder.path()));
        assert_eq!(content(), (100, true));
        let journals = Journals::new(folder.path());
        journals.are_in_tables(journals.batches());
        journals.count_batch();
        drop(journals);
        assert_eq!(content(), (100, true));
        let journals = Journals::new(folder.path());
        journals.count_batch();
        journals.are_in_tables(journals.batches());
        drop(journals);
        assert_eq!(content(), (100, false));
    }
}
