//! The store trait over [fjall](https://docs.rs/fjall), the embedded default.
//!
//! One fjall keyspace (one LSM tree) holds every table, under the [keys](arbor_store::engine_key) of all in one order, so
//! that an ingestion over several tables is one version change of one tree.
//!
//! # How writes reach the disk
//!
//! - [`ingest`](arbor_store::Store::ingest) streams into table files, level 0, with no journal. In
//!   lsm-tree 3.1.10 each table file is synced with its folder when finished; then a new version
//!   file that lists them is written and synced, and the file `current`, which names the version,
//!   is replaced by rename and its folder synced. That replacement is the moment of commitment: a crash
//!   before it leaves files that the next opening deletes. What is still in the memtable is flushed to a table of its own
//!   first, so that the order of calls holds.
//! - [`write`](arbor_store::Store::write) goes to the journal and the memtable; with `durable`
//!   the journal is synced. A batch carries a checksum, and a torn one is cut off at opening.
//! - Opening, for reading too, first looks at what is in the folder, and refuses it with the name of a file that was lost, cut or does not
//!   belong there. fjall 3.1 would take a tree without `current`, or one that its tree 0 does not name, for the rest of an interrupted
//!   creation and delete it with all its tables; without a journal it would count its writes from 0 again, below those in the tables; a name
//!   that it does not expect, or a damaged version, would end the process. The version file of each tree is compared with the checksum in `current`, which
//!   lsm-tree 3.1 writes and does not read, and the tables that it lists must end as tables do.
//! - The journal file is created with a length of 64 MiB, which is sparse: it occupies what was
//!   written to it, which is what `disk_bytes` counts. After a [`compact`](arbor_store::Store::compact) that no write follows,
//!   closing empties the journal: all of its records are in tables.
//!
//! # Reading beside a writer
//!
//! [`FjallStore::open_to_read`] reads a database that another process writes, another user owns, or a read-only disk
//! holds. fjall itself opens a database only to write it: it locks the folder, cuts the journal's torn end off and deletes
//! the files that no version names. So a reader makes a folder of its own in the system's temporary directory:
//!
//! - the journals, the `version` mark and each tree's version files are copied; they are small (a journal's holes stay
//!   holes);
//! - the table files, which nobody changes once a version names them, are opened, and links to those open
//!   files (`/dev/fd/N`) stand in their places. A writer's merge may delete a table meanwhile: who has it open reads on.
//!
//! Opened there with no worker threads, fjall shows what it would show after a crash of the writer at that moment: a
//! whole prefix of its calls. The folder, `arbor-reading-XXXXXX`, goes when the reader is dropped. A reader that is
//! killed leaves it, and the next reader of the same user removes it: a living reader has its folder locked.
//!
//! The order makes the prefix whole. Journals come first: what leaves a journal is in tables before that, and the tables
//! are taken after. A tree is taken when every table is open that the copied version names. A writer deletes tables that
//! its newest version does not name; so where one is missing and `current` was replaced meanwhile, the version is taken anew,
//! with those tables opened that are new. Every table takes one of the process's open files, whose limit is raised as far as the system lets it (64 MiB a
//! table: a database of a terabyte has some 16,000). On systems without `/dev/fd` the tables are copied.
//!
//! Whether another user may read is a matter of the files' modes. fjall makes the files `current` its owner's alone; after
//! an ingestion and at closing they get the mode of the others (after a merge they may lack it for a while).
//!
//! Rejected: hard links in the database's own file system (no right to make them in another user's or a read-only folder, and
//! `fs.protected_hardlinks` forbids them for files of others); links by name (a merge deletes the files below them).
//!
//! # Writes that stop after a kill
//!
//! fjall's [report 257](https://github.com/fjall-rs/fjall/issues/257) of writes that wait for ever once a killed process's
//! database is opened again is open. What it shows is a keyspace with four or more sealed memtables, recovered from as many
//! journals, of which nobody is told to make tables. Since its change 259, fjall queues one flush for all of them at opening, which is
//! in 3.1.13, the version here. It needs journals beyond the first, that is 64 MB written since the last flush to tables;
//! this store's journal carries flushes below a megabyte, its one memtable is rotated at 16 MiB, and an ingestion empties it. The test
//! `writes_go_on_after_a_kill_amid_rotations` kills writers whose memtables are tiny, hundreds of times if asked to, and the command
//! line's kill tests do the same to replays; neither has met it.
//!
//! All that is assumed of fjall and lsm-tree, whose versions are pinned, is listed in ASSUMPTIONS.md next to this crate's manifest,
//! with the tests that fail if it is no longer so.
//!
#![doc = include_str!("../SETTINGS.md")]
#![forbid(unsafe_code)]

mod archive;
mod errors;
mod folder;
mod integrity;
mod journals;
mod names;
mod options;
mod read_pool;
mod reader_copy;
mod reading;
mod store;

pub use folder::is_table;
pub use options::Options;
pub use store::FjallStore;
