//! Versions and what is remembered of each.

use arbor_store::Reader;

use crate::error::VersionsError;
use crate::layout;
use crate::version::Version;

/// What is remembered of a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta {
    /// The version.
    pub version: Version,
    /// The number of its block; never below the parent version's.
    pub block_number: u64,
    /// The hash of its block.
    pub block_hash: [u8; 32],
    /// The root of its state.
    pub root: [u8; 32],
    /// Whatever the caller keeps per version.
    pub extra: Vec<u8>,
}

/// The first byte of a meta.
const META_FORMAT: u8 = 1;
/// Bytes of a meta before the caller's.
const META_HEAD: usize = 1 + 4 + 8 + 32 + 32;

/// A version's record in the store: its meta and how many undo chunks it has there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredMeta {
    pub(crate) meta: Meta,
    pub(crate) undo_chunks: u32,
}

impl StoredMeta {
    /// Encodes all but the version, which is the key.
    pub(crate) fn encode(meta: &Meta, undo_chunks: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(META_HEAD + meta.extra.len());
        bytes.push(META_FORMAT);
        bytes.extend_from_slice(&undo_chunks.to_be_bytes());
        bytes.extend_from_slice(&meta.block_number.to_be_bytes());
        bytes.extend_from_slice(&meta.block_hash);
        bytes.extend_from_slice(&meta.root);
        bytes.extend_from_slice(&meta.extra);
        bytes
    }

    pub(crate) fn decode(version: Version, bytes: &[u8]) -> Result<Self, VersionsError> {
        let record = || format!("meta of version {}", version.0);
        check_format(bytes, META_FORMAT, record)?;
        if bytes.len() < META_HEAD {
            return Err(VersionsError::malformed(record(), "too short"));
        }
        Ok(Self {
            undo_chunks: u32::from_be_bytes(array(&bytes[1..])),
            meta: Meta {
                version,
                block_number: u64::from_be_bytes(array(&bytes[5..])),
                block_hash: array(&bytes[13..]),
                root: array(&bytes[45..]),
                extra: bytes[META_HEAD..].to_vec(),
            },
        })
    }
}

/// The state of the store as of its last flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeadRecord {
    /// The version whose state the tables hold.
    pub(crate) version: u64,
    /// The oldest readable version; undo records are those of `oldest + 1 ..= version`.
    pub(crate) oldest: u64,
    /// The oldest version whose meta is stored.
    pub(crate) oldest_meta: u64,
}

/// The first byte of a head record. It stands for the layout of all tables of this crate: the head record is read before any other record of theirs, so that
/// a database of another layout is refused by name. `docs/design/layouts.md` has its history.
const HEAD_FORMAT: u8 = 1;
const HEAD_BYTES: usize = 25;

impl HeadRecord {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut bytes = vec![HEAD_FORMAT];
        for number in [self.version, self.oldest, self.oldest_meta] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, VersionsError> {
        check_format(bytes, HEAD_FORMAT, || "head record".into())?;
        if bytes.len() != HEAD_BYTES {
            let reason = format!("{} bytes in place of {HEAD_BYTES}", bytes.len());
            return Err(VersionsError::malformed("head record", reason));
        }
        Ok(Self {
            version: u64::from_be_bytes(array(&bytes[1..])),
            oldest: u64::from_be_bytes(array(&bytes[9..])),
            oldest_meta: u64::from_be_bytes(array(&bytes[17..])),
        })
    }
}

/// Reads the head record; `None` before the first flush.
pub(crate) fn read_head(store: &dyn Reader) -> Result<Option<HeadRecord>, VersionsError> {
    store
        .get(layout::SYSTEM, layout::HEAD_KEY)
        .map_err(VersionsError::store("reading the head record"))?
        .map(|bytes| HeadRecord::decode(&bytes))
        .transpose()
}

/// Whether a load began and no version was flushed after it.
pub(crate) fn partly_loaded(store: &dyn Reader) -> Result<bool, VersionsError> {
    let mark = store.get(layout::SYSTEM, layout::LOADING_KEY);
    Ok(mark
        .map_err(VersionsError::store("looking whether a load was finished"))?
        .is_some())
}

/// Checks the first byte of a record, which is its format.
pub(crate) fn check_format(
    bytes: &[u8],
    reads: u8,
    record: impl FnOnce() -> String,
) -> Result<(), VersionsError> {
    let reason = match bytes.first() {
        Some(found) if *found == reads => return Ok(()),
        Some(found) => format!(
            "its format is {found}, and this program reads format {reads}: a later version of arbor wrote it, or it is damaged"
        ),
        None => "empty".into(),
    };
    Err(VersionsError::malformed(record(), reason))
}

/// Returns the first `N` bytes of a slice that the caller knows to be long enough.
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes[..N]
        .try_into()
        .expect("invariant: the slice has N bytes")
}

/// Checks that versions follow a parent, and each other.
pub(crate) fn check_order<'m>(
    mut parent: Option<&'m Meta>,
    metas: impl Iterator<Item = &'m Meta>,
) -> Result<(), VersionsError> {
    for meta in metas {
        let wanted = Version(parent.map_or(0, |parent| parent.version.0 + 1));
        if meta.version != wanted {
            return Err(VersionsError::OutOfOrder {
                got: meta.version,
                wanted,
            });
        }
        if let Some(parent) = parent
            && meta.block_number < parent.block_number
        {
            return Err(VersionsError::BlockOrder {
                version: meta.version,
                got: meta.block_number,
                parent: parent.block_number,
            });
        }
        parent = Some(meta);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_bytes_of_meta() {
        let meta = Meta {
            version: Version(7),
            block_number: 0x0102,
            block_hash: [0xaa; 32],
            root: [0xbb; 32],
            extra: vec![9, 8],
        };
        let bytes = StoredMeta::encode(&meta, 3);
        let wanted = format!(
            "01000000030000000000000102{}{}0908",
            "aa".repeat(32),
            "bb".repeat(32)
        );
        assert_eq!(const_hex::encode(&bytes), wanted);
        let read = StoredMeta::decode(Version(7), &bytes).expect("decodes");
        assert_eq!((read.meta, read.undo_chunks), (meta, 3));
        for cut in 0..META_HEAD {
            let error = StoredMeta::decode(Version(7), &bytes[..cut]).expect_err("too short");
            assert!(error.to_string().contains("version 7"), "{error}");
        }
    }

    #[test]
    fn stored_bytes_of_head() {
        let head = HeadRecord {
            version: 300,
            oldest: 2,
            oldest_meta: 1,
        };
        let bytes = head.encode();
        assert_eq!(
            const_hex::encode(&bytes),
            "01000000000000012c00000000000000020000000000000001"
        );
        assert_eq!(HeadRecord::decode(&bytes).expect("decodes"), head);
        assert!(HeadRecord::decode(&bytes[1..]).is_err());
        assert!(HeadRecord::decode(&bytes[..24]).is_err());
    }

    /// It read "malformed head record: unknown format".
    #[test]
    fn a_later_format_is_named() {
        let head = HeadRecord {
            version: 3,
            oldest: 2,
            oldest_meta: 1,
        };
        let mut bytes = head.encode();
        bytes[0] = 2;
        let error = HeadRecord::decode(&bytes).expect_err("another format");
        assert_eq!(
            error.to_string(),
            "malformed head record: its format is 2, and this program reads format 1: a later version of arbor wrote it, or it is damaged"
        );
    }

    /// The page has the layout of this crate's tables, and when it came.
    #[test]
    fn the_layout_is_the_last_of_its_page() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/layouts.md");
        let page = std::fs::read_to_string(page).expect("the page of layouts");
        let mut lines = page.lines();
        let row = lines.find(|line| line.starts_with("| tables of `versions` |"));
        let rows = row
            .into_iter()
            .chain(lines.take_while(|line| line.starts_with("| |")));
        let last = rows.last().expect("a row of its own");
        let layout = last.split('|').nth(2).map(str::trim);
        assert_eq!(layout, Some(HEAD_FORMAT.to_string().as_str()), "{last}");
    }
}
