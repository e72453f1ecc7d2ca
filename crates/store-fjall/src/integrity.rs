//! What is in fjall's folder, looked at before fjall opens it.
//!
//! fjall 3.1 takes what it does not understand for the rest of an interrupted creation. At opening it deletes the folder of every tree
//! that has no file `current` or that tree 0, its own, does not name; where tree 0 has none, it makes tree 0 anew, which names
//! nothing. Without a journal it begins to count its writes at 0 again, so that snapshots see nothing and new writes lie below old ones. Names that it
//! does not expect end the process. So a lost or a stray file is found here, and nothing is opened then.
//!
//! Creation goes in this order: the journal 0, the mark `version`; tree 0 (`tables`, the empty version `v0`, `current`); for each other
//! tree the same, and when it is there tree 0 names it. Nothing is written to a tree that is not named. What a kill amid that leaves
//! has no data, and fjall may delete it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use arbor_store::{StoreError, if_there};
use fjall::{AbstractTree, SeqNo};
use lsm_tree::Guard;
use xxhash_rust::xxh3::xxh3_128;

use crate::archive::{is_whole_at_its_end, named_version, tables_of};
use crate::errors::opened;
use crate::names::{CURRENT, MARKER, TABLES, TREES};

/// fjall's own tree, which names the others.
const NAMES: u64 = 0;
/// A folder for a copy of it, there for a moment. fjall passes over it.
const COPY: &str = "arbor.names";

/// A file or folder of the database, or a reader's copy of it.
struct Place {
    here: PathBuf,
    /// What errors name: its path in the database.
    shown: PathBuf,
}

impl Place {
    fn join(&self, name: impl AsRef<Path>) -> Self {
        Self {
            here: self.here.join(&name),
            shown: self.shown.join(&name),
        }
    }

    fn unread(&self, cause: io::Error) -> StoreError {
        StoreError::from_reading(&self.shown, cause)
    }

    fn damaged(&self, what: impl Into<String>) -> StoreError {
        StoreError::Corrupt {
            path: self.shown.clone(),
            what: what.into(),
        }
    }

    fn foreign(&self, expected: &'static str) -> StoreError {
        StoreError::Foreign {
            path: self.shown.clone(),
            expected,
        }
    }

    /// A file's bytes, or `None` if there is none.
    fn read(&self) -> Result<Option<Vec<u8>>, StoreError> {
        if_there(fs::read(&self.here)).map_err(|cause| self.unread(cause))
    }

    /// What is in a folder, sorted; nothing if there is no such folder.
    fn entries(&self) -> Result<Vec<Entry>, StoreError> {
        let failed = |cause| self.unread(cause);
        let Some(entries) = if_there(fs::read_dir(&self.here)).map_err(failed)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let place = self.join(entry.file_name());
            if let Some(kind) = if_there(entry.file_type()).map_err(failed)? {
                found.push(Entry { place, kind });
            }
        }
        found.sort_by(|one, other| one.place.here.cmp(&other.place.here));
        Ok(found)
    }
}

/// What a folder has.
struct Entry {
    place: Place,
    /// Links are not followed.
    kind: fs::FileType,
}

impl Entry {
    fn name(&self) -> &OsStr {
        self.place.here.file_name().unwrap_or_default()
    }

    fn number(&self) -> Option<u64> {
        number(self.name().to_str()?)
    }

    /// Whether it is a folder, or a link to one. What vanishes meanwhile is none.
    fn is_dir(&self) -> bool {
        self.kind.is_dir() || self.kind.is_symlink() && self.place.here.is_dir()
    }

    /// The number of a journal; `None` for a file of another kind.
    fn journal(&self) -> Result<Option<u64>, StoreError> {
        let extension = self.place.here.extension();
        if !extension.is_some_and(|extension| extension.eq_ignore_ascii_case("jnl")) {
            return Ok(None);
        }
        let digits = self
            .name()
            .to_str()
            .and_then(|name| name.strip_suffix(".jnl"));
        match digits.and_then(number) {
            Some(number) if self.kind.is_file() => Ok(Some(number)),
            _ => Err(self
                .place
                .foreign("the engine has only its journals N.jnl there, which are files")),
        }
    }
}

/// A number as the engine writes it in names.
fn number(name: &str) -> Option<u64> {
    let number: u64 = name.parse().ok()?;
    (number.to_string() == name).then_some(number)
}

/// Whether a database in the folder has got as far as having trees, which come after its mark.
pub(crate) fn has_trees(database: &Path) -> bool {
    let trees = fs::read_dir(database.join(TREES)).into_iter().flatten();
    let mut names = trees.flatten().map(|tree| tree.file_name());
    names.any(|name| name.to_str().and_then(number).is_some())
}

/// Whether anything was written by a database's user: to a journal, of which fjall reserves zeros, or to a tree other than
/// fjall's own, which has tables then and a version after its first, 0.
pub(crate) fn has_data(database: &Path) -> Result<bool, StoreError> {
    let root = place(database, database);
    for tree in root.join(TREES).entries()? {
        if !tree.is_dir() || tree.number().is_none_or(|number| number == NAMES) {
            continue;
        }
        let is_later = |entry: &Entry| {
            let version = entry
                .name()
                .to_str()
                .and_then(|name| name.strip_prefix('v'));
            version.and_then(number).is_some_and(|version| version > 0)
        };
        if tree.place.entries()?.iter().any(is_later)
            || !tree.place.join(TABLES).entries()?.is_empty()
        {
            return Ok(true);
        }
    }
    for entry in root.entries()? {
        if entry.journal()?.is_some() && !is_zeros(&entry.place)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a file has nothing but zeros, or is empty.
fn is_zeros(file: &Place) -> Result<bool, StoreError> {
    let failed = |cause| file.unread(cause);
    let mut bytes = BufReader::new(File::open(&file.here).map_err(failed)?);
    loop {
        let block = bytes.fill_buf().map_err(failed)?;
        if block.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        match block.len() {
            0 => return Ok(true),
            read => bytes.consume(read),
        }
    }
}

/// A database whose mark is gone.
pub(crate) fn without_mark(database: &Path) -> StoreError {
    StoreError::Corrupt {
        path: database.to_path_buf(),
        what: format!(
            "its file {MARKER} is not there, empty, cut short or zeros, but its folder {TREES} has data"
        ),
    }
}

/// Checks that there is nothing that fjall would stumble over. A process may be writing the database.
pub(crate) fn check_names(database: &Path) -> Result<(), StoreError> {
    let root = place(database, database);
    for entry in root.entries()? {
        if entry.name().to_str().is_none() {
            return Err(entry.place.foreign("the engine's names are ASCII"));
        }
        entry.journal()?;
    }
    for tree in root.join(TREES).entries()? {
        // fjall passes over files.
        if tree.kind.is_file() {
            continue;
        }
        if tree.number().is_none() || !tree.is_dir() {
            let expected = "the engine has only folders there whose names are numbers";
            return Err(tree.place.foreign(expected));
        }
        check_table_names(&tree.place.join(TABLES))?;
    }
    Ok(())
}

fn check_table_names(tables: &Place) -> Result<(), StoreError> {
    let is_folder = if_there(fs::metadata(&tables.here)).map_err(|cause| tables.unread(cause))?;
    if is_folder.is_some_and(|found| !found.is_dir()) {
        return Err(tables.foreign("the engine has a folder of that name"));
    }
    for table in tables.entries()? {
        // Files of macOS, which lsm-tree passes over.
        let name = table.name().to_string_lossy();
        if name == ".DS_Store" || name.starts_with("._") {
            continue;
        }
        if table.number().is_none() || table.is_dir() {
            let expected = "the engine has only files there whose names are numbers";
            return Err(table.place.foreign(expected));
        }
    }
    Ok(())
}

/// Checks that no file is lost or cut that fjall takes for granted, and compares each tree's newest version with the checksum that names it.
/// lsm-tree 3.1 writes that checksum and does not look at it: it asserts what it finds in a damaged file, or believes it, and fjall ends
/// the process when a thread panics while it opens.
///
/// Nobody may be writing the files. An error names `database`, whose files they are or were copied from.
pub(crate) fn check_files(files: &Path, database: &Path) -> Result<(), StoreError> {
    let root = place(files, database);
    let journals = journals(&root)?;
    if journals.is_empty() {
        return Err(root.damaged(
            "its journal, a file N.jnl, is not there, and with it what was written last",
        ));
    }
    let mut trees = BTreeMap::new();
    for tree in root.join(TREES).entries()? {
        if let Some(number) = tree.number().filter(|_| tree.is_dir()) {
            trees.insert(number, Tree::look(&tree.place)?);
        }
    }
    let names = root.join(TREES).join(NAMES.to_string());
    let named = match trees.get(&NAMES) {
        Some(tree) if tree.made => named(&root)?,
        Some(_) if trees.len() > 1 => {
            return Err(names.damaged(format!("its file {CURRENT} is not there")));
        }
        None if !trees.is_empty() => {
            return Err(names.damaged("this folder, which names the others, is not there"));
        }
        _ => BTreeSet::new(),
    };
    for (number, tree) in &trees {
        let place = root.join(TREES).join(number.to_string());
        if named.contains(number) && !tree.made {
            return Err(place.damaged(format!("its file {CURRENT} is not there")));
        }
        if *number != NAMES && tree.has_tables && !named.contains(number) {
            let names = names.shown.display();
            return Err(place.damaged(format!("it has tables, but {names} does not name it")));
        }
    }
    if let Some(lost) = named.iter().find(|number| !trees.contains_key(number)) {
        let place = root.join(TREES).join(lost.to_string());
        return Err(place.damaged("this folder is not there"));
    }
    if named.is_empty() {
        for journal in &journals {
            if is_begun(journal)? {
                let journal = journal.shown.display();
                return Err(names.damaged(format!(
                    "it names no other folder, but {journal} has writes to one"
                )));
            }
        }
    }
    Ok(())
}

fn place(here: &Path, shown: &Path) -> Place {
    Place {
        here: here.to_path_buf(),
        shown: shown.to_path_buf(),
    }
}

/// The journals, each of which can be read.
fn journals(root: &Place) -> Result<Vec<Place>, StoreError> {
    let mut journals = Vec::new();
    for entry in root.entries()? {
        if entry.journal()?.is_some() {
            let place = entry.place;
            File::open(&place.here).map_err(|cause| place.unread(cause))?;
            journals.push(place);
        }
    }
    Ok(journals)
}

/// Whether anything was written to a journal, whose records begin with a byte above 0.
fn is_begun(journal: &Place) -> Result<bool, StoreError> {
    let mut first = Vec::new();
    File::open(&journal.here)
        .and_then(|file| file.take(1).read_to_end(&mut first))
        .map_err(|cause| journal.unread(cause))?;
    Ok(first.first().is_some_and(|first| *first > 0))
}

/// What is in a tree's folder.
struct Tree {
    /// Whether its creation was finished.
    made: bool,
    has_tables: bool,
}

impl Tree {
    fn look(place: &Place) -> Result<Self, StoreError> {
        let tables = place.join(TABLES).entries()?;
        let has_tables = tables.iter().any(|table| table.number().is_some());
        let Some(current) = place.join(CURRENT).read()? else {
            if has_tables || has_versions(place)? {
                return Err(place.damaged(format!(
                    "its file {CURRENT} is not there, but tables or their versions are"
                )));
            }
            let made = false;
            return Ok(Self { made, has_tables });
        };
        for table in newest_version(place, &current)? {
            check_table(&place.join(TABLES), table)?;
        }
        let made = true;
        Ok(Self { made, has_tables })
    }
}

/// Whether a tree has a version beyond the first, `v0`, which has no tables.
fn has_versions(tree: &Place) -> Result<bool, StoreError> {
    let entries = tree.entries()?;
    let mut names = entries.iter().filter_map(|entry| entry.name().to_str());
    Ok(names.any(|name| {
        let version = name.strip_prefix('v').and_then(number);
        version.is_some_and(|version| version > 0)
    }))
}

/// The tables of a tree's newest version.
fn newest_version(tree: &Place, current: &[u8]) -> Result<Vec<u64>, StoreError> {
    let Some((number, checksum)) = named_version(current) else {
        let bytes = current.len();
        return Err(tree.damaged(format!(
            "its file {CURRENT} ({bytes} bytes) names no version"
        )));
    };
    let file = format!("v{number}");
    let Some(version) = tree.join(&file).read()? else {
        return Err(tree.damaged(format!(
            "its file {CURRENT} names {file}, which is not there"
        )));
    };
    if xxh3_128(&version) != checksum {
        return Err(tree.damaged(format!(
            "its file {file} or {CURRENT} is damaged: their checksums differ"
        )));
    }
    tables_of(&version).ok_or_else(|| {
        tree.damaged(format!(
            "its file {file} is not of lsm-tree's file format 3"
        ))
    })
}

/// Checks that a table is there and was not cut. What is in it is checked when it is read.
fn check_table(tables: &Place, number: u64) -> Result<(), StoreError> {
    let table = tables.join(number.to_string());
    let file = if_there(File::open(&table.here)).map_err(|cause| table.unread(cause))?;
    let Some(mut file) = file else {
        return Err(table.damaged("this table is not there"));
    };
    if file.metadata().map_err(|cause| table.unread(cause))?.len() == 0 {
        return Err(table.damaged("this table is empty"));
    }
    match is_whole_at_its_end(&mut file).map_err(|cause| table.unread(cause))? {
        true => Ok(()),
        false => Err(table.damaged("this table is cut short, or its end is damaged")),
    }
}

/// The trees that fjall's own tree names: a key `n` and a tree's number, big-endian, for each.
///
/// lsm-tree deletes what a tree's newest version does not name when it opens the tree, so it opens a copy, of some kilobytes.
fn named(root: &Place) -> Result<BTreeSet<u64>, StoreError> {
    let names = root.join(TREES).join(NAMES.to_string());
    let copy = root.join(COPY);
    let unwritten = |cause| StoreError::from_io(&copy.here, "copying the names of trees", cause);
    let remove = || if_there(fs::remove_dir_all(&copy.here)).map_err(unwritten);
    remove()?;
    for (from, to) in [
        (&names, copy.here.clone()),
        (&names.join(TABLES), copy.here.join(TABLES)),
    ] {
        fs::create_dir_all(&to).map_err(unwritten)?;
        for entry in from.entries()?.iter().filter(|entry| !entry.is_dir()) {
            if let Some(bytes) = entry.place.read()? {
                fs::write(to.join(entry.name()), bytes).map_err(unwritten)?;
            }
        }
    }
    let named = opened(&names.shown, "open", || {
        let numbers = lsm_tree::SequenceNumberCounter::default;
        let tree = lsm_tree::Config::new(&copy.here, numbers(), numbers()).open()?;
        let mut named = BTreeSet::new();
        for entry in tree.prefix("n", SeqNo::MAX, None) {
            let key = entry.key()?;
            if let Ok(number) = <[u8; 8]>::try_from(&key[1..]) {
                named.insert(u64::from_be_bytes(number));
            }
        }
        Ok(named)
    });
    remove()?;
    named
}
