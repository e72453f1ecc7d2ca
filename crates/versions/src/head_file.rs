//! The files beside a store: HEAD, which says what was made durable, and LOCK.
//!
//! HEAD lies outside the engine's journal, so that a store that was silently put back to an older
//! state (a restored copy, a journal that lost its end) is noticed. It can be read while another
//! process writes the database.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::VersionsError;
use crate::identity::{Identity, hex_array};

const NAME: &str = "HEAD";
const TEMPORARY: &str = "HEAD.new";
const LOCK: &str = "LOCK";
/// Bytes of the longest HEAD file, and more.
const LONGEST: u64 = 1 << 16;
/// The first word of a HEAD file, and the second.
const NAME_OF_FORMAT: &str = "arboretum-head";
const FORMAT: &str = "1";

/// What the HEAD file says of a database.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeadFile {
    /// What the database is.
    pub identity: Identity,
    /// The flushed version; `None` before the first.
    pub head: Option<FlushedVersion>,
}

/// The flushed version in a [`HeadFile`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlushedVersion {
    /// The version.
    pub version: u64,
    /// The lowest version at which the store may be found: below `version` while a rollback is
    /// being written.
    pub floor: u64,
    /// Its block number.
    pub block_number: u64,
    /// Its block hash.
    #[serde(with = "hex_array")]
    pub block_hash: [u8; 32],
    /// The root of its state.
    #[serde(with = "hex_array")]
    pub root: [u8; 32],
}

/// Reads the HEAD file of a database directory, without opening the database.
///
/// # Errors
/// [`VersionsError::HeadFile`] if there is none, it is damaged, longer than any, or no regular file (opening a FIFO would wait for somebody to write it).
pub fn read_head_file(dir: &Path) -> Result<HeadFile, VersionsError> {
    let path = dir.join(NAME);
    let bad = |reason: String| VersionsError::HeadFile {
        path: path.clone(),
        reason,
    };
    match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(bad("there is none".into()));
        }
        Ok(found) if !found.is_file() => return Err(bad("it is no regular file".into())),
        // Opening it says what else there is.
        _ => {}
    }
    let mut text = String::new();
    File::open(&path)
        .and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text))
        .map_err(io_error("read", path.clone()))?;
    if text.len() as u64 > LONGEST {
        return Err(bad(format!("it has more than {LONGEST} bytes")));
    }
    parse(&text).map_err(bad)
}

/// Whether a directory has a HEAD file, whatever is in it.
pub(crate) fn has_head_file(dir: &Path) -> bool {
    dir.join(NAME).exists()
}

fn parse(text: &str) -> Result<HeadFile, String> {
    let (line, body) = text.split_once('\n').ok_or("cut short")?;
    let words: Vec<&str> = line.split(' ').collect();
    let sum = match words[..] {
        [NAME_OF_FORMAT, FORMAT, sum] => sum,
        [NAME_OF_FORMAT, found, ..] => {
            return Err(format!(
                "its format is {found}, and this program reads format {FORMAT}: a later version of arbor wrote it, or it is damaged"
            ));
        }
        _ => return Err("it does not begin like a HEAD file".into()),
    };
    if sum != format!("{:08x}", crc32(body.as_bytes())) {
        return Err("checksum does not match".into());
    }
    serde_json::from_str(body).map_err(|error| error.to_string())
}

fn render(head: &HeadFile) -> String {
    let body = serde_json::to_string(head).expect("invariant: strings and numbers serialise");
    let sum = crc32(format!("{body}\n").as_bytes());
    format!("{NAME_OF_FORMAT} {FORMAT} {sum:08x}\n{body}\n")
}

/// Replaces the HEAD file; durable on return.
pub(crate) fn write_head_file(dir: &Path, head: &HeadFile) -> Result<(), VersionsError> {
    let (path, temporary) = (dir.join(NAME), dir.join(TEMPORARY));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(render(head).as_bytes())?;
        file.sync_all()
    });
    written.map_err(io_error("write", temporary.clone()))?;
    fs::rename(&temporary, &path).map_err(io_error("replace", path))?;
    sync_dir(dir)
}

fn sync_dir(dir: &Path) -> Result<(), VersionsError> {
    let synced = File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(io_error("sync", dir.to_owned()))
}

/// The right to write the database of a directory; given back when dropped.
///
/// Taken before the store inside the directory is opened, so that a second process gets this
/// crate's error and not the engine's. The engine's own files should lie in a subdirectory.
#[derive(Debug)]
pub struct DirLock {
    dir: PathBuf,
    _file: File,
}

impl DirLock {
    /// Takes the lock of a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// [`VersionsError::AlreadyOpen`] if it is taken, by this process or another.
    pub fn acquire(dir: &Path) -> Result<Self, VersionsError> {
        let path = dir.join(LOCK);
        let is_new = !dir.exists();
        fs::create_dir_all(dir).map_err(io_error("create", dir.to_owned()))?;
        if is_new {
            arbor_store::sync_name(dir).map_err(io_error("sync", dir.to_owned()))?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io_error("open", path.clone()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(VersionsError::AlreadyOpen {
                    dir: dir.to_owned(),
                    pid: holder(&mut file),
                });
            }
            Err(TryLockError::Error(source)) => return Err(io_error("lock", path)(source)),
        }
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(io_error("write", path))?;
        Ok(Self {
            dir: dir.to_owned(),
            _file: file,
        })
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// A directory whose store is about to be opened for reading alone: what HEAD says before that.
///
/// The counterpart of [`DirLock`] for a reader, which locks nothing. Made before the store is opened, so
/// that a store which is older than its HEAD file is told from one whose writer went on meanwhile.
#[derive(Debug)]
pub struct DirReader {
    dir: PathBuf,
    before: HeadFile,
}

impl DirReader {
    /// Looks at a directory.
    ///
    /// # Errors
    /// As [`read_head_file`].
    pub fn new(dir: &Path) -> Result<Self, VersionsError> {
        Ok(Self {
            dir: dir.to_owned(),
            before: read_head_file(dir)?,
        })
    }

    /// What HEAD says before and after the store was opened.
    pub(crate) fn around(self) -> Result<[HeadFile; 2], VersionsError> {
        let after = read_head_file(&self.dir)?;
        Ok([self.before, after])
    }
}

/// Reads who holds a lock; that helps the message only, so failure is nothing.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn io_error(action: &'static str, path: PathBuf) -> impl FnOnce(io::Error) -> VersionsError {
    move |source| VersionsError::Io {
        action,
        path,
        source,
    }
}

/// CRC-32 of IEEE 802.3: reflected polynomial 0xedb88320, initial and final complement.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> HeadFile {
        HeadFile {
            identity: Identity {
                tree: "mpt".into(),
                revision: "1".into(),
                hash: "keccak256".into(),
                layout: 1,
                chain_id: 1,
                genesis: [0x11; 32],
                space: 0,
                moves_to: None,
                since: None,
            },
            head: Some(FlushedVersion {
                version: 9,
                floor: 9,
                block_number: 8,
                block_hash: [0x22; 32],
                root: [0x33; 32],
            }),
        }
    }

    #[test]
    fn check_value_of_crc32() {
        // The check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn stored_bytes_of_the_head_file() {
        let (ones, twos, threes) = ("11".repeat(32), "22".repeat(32), "33".repeat(32));
        let body = format!(
            "{{\"identity\":{{\"tree\":\"mpt\",\"revision\":\"1\",\"hash\":\"keccak256\",\"layout\":1,\
             \"chain_id\":1,\"genesis\":\"0x{ones}\"}},\"head\":{{\"version\":9,\"floor\":9,\
             \"block_number\":8,\"block_hash\":\"0x{twos}\",\"root\":\"0x{threes}\"}}}}\n"
        );
        let text = render(&sample());
        let (first, rest) = text.split_once('\n').expect("two lines");
        assert_eq!(first, "arboretum-head 1 f5cfe4b7");
        assert_eq!(rest, body);
        assert_eq!(parse(&text), Ok(sample()));
        let later = parse(&text.replacen(" 1 ", " 2 ", 1)).expect_err("another format");
        assert!(later.starts_with("its format is 2, and this program reads format 1"));
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let text = render(&sample()).into_bytes();
        for place in 0..text.len() {
            let mut damaged = text.clone();
            damaged[place] ^= 1;
            let damaged = String::from_utf8(damaged).expect("still ASCII");
            assert!(parse(&damaged).is_err(), "byte {place}");
            let cut = std::str::from_utf8(&text[..place]).expect("ASCII");
            assert!(parse(cut).is_err(), "cut at {place}");
        }
    }

    /// A FIFO was waited for, and a file of any length read into memory.
    #[test]
    fn what_is_no_head_file_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(NAME);
        let refused = |why: &str| {
            let error = read_head_file(dir.path()).expect_err("refused").to_string();
            assert!(error.ends_with(why), "{error}");
        };
        fs::write(&path, render(&sample())).expect("written");
        assert_eq!(read_head_file(dir.path()).expect("whole"), sample());
        let file = OpenOptions::new().write(true).open(&path);
        let file = file.expect("there");
        file.set_len(1 << 33).expect("sparse");
        refused("it has more than 65536 bytes");
        fs::remove_file(&path).expect("removed");
        refused("there is none");
        fs::create_dir(&path).expect("made");
        refused("it is no regular file");
    }

    #[test]
    fn a_second_lock_names_the_holder() {
        let dir = tempfile::tempdir().expect("a directory");
        let held = DirLock::acquire(dir.path()).expect("free");
        let error = DirLock::acquire(dir.path()).expect_err("held");
        let pid = std::process::id();
        assert!(
            matches!(error, VersionsError::AlreadyOpen { pid: Some(found), .. } if found == pid),
            "{error}"
        );
        drop(held);
        DirLock::acquire(dir.path()).expect("free again");
    }
}
