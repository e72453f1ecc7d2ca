//! Undo: the old values of the flat keys that a version changed, as one sorted record in chunks.
//!
//! A chunk is a header (format byte 1, number of chunks of the record as u32, number of entries of
//! this chunk as u32, both big-endian) and its entries, ascending by table byte and key:
//!
//! ```text
//! shared: varint   leading bytes that (table byte, key) has in common with the entry before
//! tail:   varint   length of the rest, then the rest
//! old:    varint   0 = the key was absent; else length of the old value + 1, then the value
//! ```
//!
//! Varints are LEB128: seven bits a byte, low bits first. The first entry of a chunk shares nothing.

use arbor_store::{Reader, Table, Value};

use crate::error::VersionsError;
use crate::layout;
use crate::meta::{array, check_format};

/// The first byte of a chunk.
const FORMAT: u8 = 1;
const HEADER: usize = 9;

/// A version's undo in its stored form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UndoRecord {
    pub(crate) chunks: Vec<Value>,
}

impl UndoRecord {
    /// Returns bytes of all chunks.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len() + 16).sum()
    }
}

/// Encodes entries that ascend strictly by (table, key) into at least one chunk.
pub(crate) fn encode<'a>(
    entries: impl Iterator<Item = (Table, &'a [u8], Option<&'a [u8]>)>,
    chunk_bytes: usize,
) -> UndoRecord {
    let mut finished: Vec<Vec<u8>> = Vec::new();
    let mut chunk = vec![0; HEADER];
    let mut count = 0u32;
    let mut previous: Option<(Table, &[u8])> = None;
    for (table, key, old) in entries {
        let most = 32 + key.len() + old.map_or(0, <[u8]>::len);
        if count > 0 && chunk.len() + most > chunk_bytes {
            chunk[5..HEADER].copy_from_slice(&count.to_be_bytes());
            finished.push(std::mem::replace(&mut chunk, vec![0; HEADER]));
            (count, previous) = (0, None);
        }
        encode_entry(&mut chunk, previous, table, key, old);
        previous = Some((table, key));
        count += 1;
    }
    chunk[5..HEADER].copy_from_slice(&count.to_be_bytes());
    finished.push(chunk);
    let total = u32::try_from(finished.len()).expect("invariant: fewer than 2^32 chunks");
    let seal = |mut chunk: Vec<u8>| {
        chunk[0] = FORMAT;
        chunk[1..5].copy_from_slice(&total.to_be_bytes());
        Value::from(chunk)
    };
    UndoRecord {
        chunks: finished.into_iter().map(seal).collect(),
    }
}

fn encode_entry(
    chunk: &mut Vec<u8>,
    previous: Option<(Table, &[u8])>,
    table: Table,
    key: &[u8],
    old: Option<&[u8]>,
) {
    let shared = match previous {
        Some((last, last_key)) if last == table => {
            1 + last_key.iter().zip(key).take_while(|(a, b)| a == b).count()
        }
        _ => 0,
    };
    put_varint(chunk, shared);
    if shared == 0 {
        put_varint(chunk, key.len() + 1);
        chunk.push(table.0);
        chunk.extend_from_slice(key);
    } else {
        put_varint(chunk, key.len() + 1 - shared);
        chunk.extend_from_slice(&key[shared - 1..]);
    }
    match old {
        None => put_varint(chunk, 0),
        Some(value) => {
            put_varint(chunk, value.len() + 1);
            chunk.extend_from_slice(value);
        }
    }
}

/// Appends a number in LEB128.
pub(crate) fn put_varint(to: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Walks the entries of one chunk.
#[derive(Debug)]
pub(crate) struct Cursor {
    version: u64,
    chunk: u32,
    chunks: u32,
    left: u32,
    bytes: Value,
    at: usize,
    /// Table byte and key of the present entry.
    key: Vec<u8>,
    /// Where the present old value lies in `bytes`.
    old: Option<(usize, usize)>,
}

impl Cursor {
    /// Begins before the first entry.
    ///
    /// # Errors
    /// Malformed header.
    pub(crate) fn new(version: u64, chunk: u32, bytes: Value) -> Result<Self, VersionsError> {
        let mut cursor = Self {
            version,
            chunk,
            chunks: 0,
            left: 0,
            bytes,
            at: HEADER,
            key: Vec::new(),
            old: None,
        };
        if cursor.bytes.len() < HEADER {
            return Err(cursor.malformed("shorter than its header"));
        }
        check_format(&cursor.bytes, FORMAT, || cursor.name())?;
        cursor.chunks = u32::from_be_bytes(array(&cursor.bytes[1..]));
        cursor.left = u32::from_be_bytes(array(&cursor.bytes[5..]));
        if cursor.chunks <= chunk {
            return Err(cursor.malformed("chunk number beyond the record"));
        }
        Ok(cursor)
    }

    /// Number of chunks of the record.
    pub(crate) fn chunks(&self) -> u32 {
        self.chunks
    }

    /// Number of entries of this chunk that are still to come.
    pub(crate) fn entries(&self) -> u32 {
        self.left
    }

    /// Steps to the next entry; `false` at the end.
    ///
    /// # Errors
    /// Malformed bytes, by version and chunk.
    pub(crate) fn advance(&mut self) -> Result<bool, VersionsError> {
        if self.left == 0 {
            if self.at != self.bytes.len() {
                return Err(self.malformed("bytes after the last entry"));
            }
            return Ok(false);
        }
        let shared = self.varint()?;
        let tail = self.varint()?;
        if shared > self.key.len() {
            return Err(self.malformed("shares more than the key before has"));
        }
        let (start, end) = self.span(tail)?;
        let ascends = self.key.is_empty() || self.bytes[start..end] > self.key[shared..];
        if !ascends || shared + tail == 0 {
            return Err(self.malformed("keys do not ascend"));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(&self.bytes[start..end]);
        self.old = match self.varint()? {
            0 => None,
            length => Some(self.span(length - 1)?),
        };
        self.left -= 1;
        Ok(true)
    }

    pub(crate) fn table(&self) -> Table {
        Table(self.key[0])
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key[1..]
    }

    /// Table byte and key together.
    pub(crate) fn table_and_key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn old(&self) -> Option<&[u8]> {
        self.old.map(|(start, end)| &self.bytes[start..end])
    }

    fn span(&mut self, length: usize) -> Result<(usize, usize), VersionsError> {
        let start = self.at;
        match start.checked_add(length) {
            Some(end) if end <= self.bytes.len() => {
                self.at = end;
                Ok((start, end))
            }
            _ => Err(self.malformed("ends within an entry")),
        }
    }

    fn varint(&mut self) -> Result<usize, VersionsError> {
        let mut number = 0usize;
        for shift in (0..=56).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(self.malformed("ends within a number"));
            };
            self.at += 1;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.malformed("number too long"))
    }

    fn name(&self) -> String {
        format!("undo of version {}, chunk {}", self.version, self.chunk)
    }

    pub(crate) fn malformed(&self, reason: &str) -> VersionsError {
        VersionsError::malformed(self.name(), reason)
    }
}

/// Opens a stored undo chunk.
pub(crate) fn stored_cursor(
    base: &dyn Reader,
    version: u64,
    chunk: u32,
) -> Result<Cursor, VersionsError> {
    let cursor = found_cursor(base, layout::UNDO, version, chunk)?;
    cursor.ok_or_else(|| missing(version, chunk))
}

/// Opens a chunk of one of the two tables of such records; `None` if it is not there.
pub(crate) fn found_cursor(
    base: &dyn Reader,
    table: Table,
    version: u64,
    chunk: u32,
) -> Result<Option<Cursor>, VersionsError> {
    let bytes = base
        .get(table, &layout::undo_key(version, chunk))
        .map_err(VersionsError::store("reading undo"))?;
    bytes
        .map(|bytes| Cursor::new(version, chunk, bytes))
        .transpose()
}

/// A chunk that is not there.
pub(crate) fn missing(version: u64, chunk: u32) -> VersionsError {
    VersionsError::malformed(
        format!("undo of version {version}, chunk {chunk}"),
        "missing",
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Entry = (Table, Vec<u8>, Option<Vec<u8>>);

    fn encoded(entries: &[Entry], chunk_bytes: usize) -> UndoRecord {
        let entries = entries.iter();
        encode(
            entries.map(|(table, key, old)| (*table, &**key, old.as_deref())),
            chunk_bytes,
        )
    }

    fn decoded(chunks: &[Value]) -> Result<Vec<Entry>, VersionsError> {
        let mut entries = Vec::new();
        for (chunk, bytes) in (0..).zip(chunks) {
            let mut cursor = Cursor::new(5, chunk, bytes.clone())?;
            while cursor.advance()? {
                let old = cursor.old().map(<[u8]>::to_vec);
                entries.push((cursor.table(), cursor.key().to_vec(), old));
            }
        }
        Ok(entries)
    }

    fn sample() -> Vec<Entry> {
        let entry = |table, key: &str, old: Option<&str>| {
            let old = old.map(|old| old.as_bytes().to_vec());
            (Table(table), key.as_bytes().to_vec(), old)
        };
        vec![
            entry(1, "abc", Some("x")),
            entry(1, "abd", None),
            entry(1, "abde", Some("")),
            entry(2, "abde", Some("yz")),
        ]
    }

    #[test]
    fn stored_bytes_of_undo() {
        let record = encoded(&sample(), 1 << 20);
        let header = "01 00000001 00000004";
        let first = "00 04 01616263 02 78";
        let second = "03 01 64 00";
        let third = "04 01 65 01";
        let fourth = "00 05 0261626465 03 797a";
        let wanted = [header, first, second, third, fourth].concat();
        assert_eq!(
            const_hex::encode(&record.chunks[0]),
            wanted.replace(' ', "")
        );
        assert_eq!(record.chunks.len(), 1);
    }

    #[test]
    fn an_empty_record_is_one_chunk() {
        let record = encoded(&[], 64);
        assert_eq!(const_hex::encode(&record.chunks[0]), "010000000100000000");
        assert_eq!(decoded(&record.chunks).expect("decodes"), []);
    }

    #[test]
    fn damage_is_an_error_that_names_the_place() {
        let chunk = encoded(&sample(), 1 << 20).chunks.remove(0);
        for cut in 0..chunk.len() {
            let error = decoded(&[Value::from(&chunk[..cut])]).expect_err("cut short");
            let text = error.to_string();
            assert!(text.contains("undo of version 5, chunk 0"), "{text}");
        }
        let longer = [&chunk[..], &[0]].concat();
        assert!(decoded(&[Value::from(longer)]).is_err());
        // A tail of zero bytes after sharing all would repeat the key before.
        let repeated = const_hex::decode("01000000010000000200020161000200").expect("hex");
        assert!(decoded(&[Value::from(repeated)]).is_err());
        let endless = const_hex::decode("010000000100000001ffffffffffffffffffff").expect("hex");
        assert!(decoded(&[Value::from(endless)]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn encoding_comes_back(
            map in proptest::collection::btree_map(
                (1u8..3, proptest::collection::vec(0u8..3, 0..6)),
                proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200)),
                0..40,
            ),
            chunk_bytes in 20usize..2000,
        ) {
            let entries = map.into_iter().map(|((table, key), old)| (Table(table), key, old));
            let entries: Vec<Entry> = entries.collect();
            let record = encoded(&entries, chunk_bytes);
            prop_assert_eq!(decoded(&record.chunks).expect("decodes"), entries);
            for chunk in &record.chunks {
                let one_entry = u32::from_be_bytes(array(&chunk[5..])) == 1;
                prop_assert!(chunk.len() <= chunk_bytes || one_entry);
            }
        }

        #[test]
        fn any_bytes_decode_or_fail(bytes in proptest::collection::vec(0u8..8, 0..60)) {
            let mut chunk = const_hex::decode("0100000001000000").expect("hex");
            chunk.extend_from_slice(&bytes);
            let _ = decoded(&[Value::from(chunk)]);
        }
    }
}
