//! Names of files and folders in a database's folder.

use crate::StoreKind;

pub(crate) const GENESIS: &str = "genesis.json";
pub(crate) const RETAIN: &str = "retain";
pub(crate) const RULES: &str = "rules";
pub(crate) const TREE_SETTINGS: &str = "tree-settings";

/// The folder of a conversion into the database that did not finish.
pub const CONVERSION: &str = "convert";
/// The file in [`CONVERSION`] that says which one it is.
pub const CONVERSION_JOB: &str = "job.json";
/// The file in a folder that says which part of a conversion the folder is, which is no database.
pub const PART: &str = "part.json";

/// The file by which processes lock a folder.
pub(crate) const LOCK: &str = "LOCK";
/// The file in a folder that says that a backup is made there.
pub(crate) const BACKUP_MARK: &str = "BACKUP";

/// Other names than those of stores.
const FILES: [&str; 12] = [
    BACKUP_MARK,
    "HEAD",
    LOCK,
    CONVERSION,
    "converted.json",
    GENESIS,
    PART,
    "pins",
    RETAIN,
    // Databases of before 2026-11-27 have it.
    "roots",
    RULES,
    TREE_SETTINGS,
];

/// Files next to HEAD that a copy of the database needs, too.
pub(crate) const REMEMBERED: [&str; 6] = [
    "converted.json",
    GENESIS,
    RETAIN,
    "roots",
    RULES,
    TREE_SETTINGS,
];

/// Whether a name in a database's folder is the database's own. While a file is replaced it has a second name, which ends in `.new`.
#[must_use]
pub fn is_own_name(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    FILES.contains(&name) || StoreKind::FOLDERS.contains(&name)
}
