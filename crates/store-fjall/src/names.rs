//! Names of files and folders in fjall's folder.

/// fjall's mark of a database, written last at creation.
pub(crate) const MARKER: &str = "version";
/// The folder with a folder for each tree.
pub(crate) const TREES: &str = "keyspaces";
/// Names a tree's newest version: its number `n` (8 bytes, little-endian), the XXH3-128 of its file `vn` (16 bytes, little-endian), and
/// a byte 0.
pub(crate) const CURRENT: &str = "current";
/// The folder of a tree's tables.
pub(crate) const TABLES: &str = "tables";
/// fjall's lock file, which it demands to exist.
pub(crate) const LOCK: &str = "lock";
/// How long the mark is: it is written in two steps, of three bytes and one.
pub(crate) const MARK_BYTES: u64 = 4;
