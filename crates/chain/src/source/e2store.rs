//! e2store: typed, length-prefixed entries, as era1 files are made of.
//!
//! An entry is a type (u16), the length of its data (u32) and two zero bytes, all little-endian, then the data.
//! Readers skip types that they do not know.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::error::{Place, SourceError};

/// Bytes before an entry's data.
pub(crate) const HEADER_BYTES: u64 = 8;

/// Entry types of era1 files.
pub(crate) mod kind {
    /// First entry of every file, without data.
    pub(crate) const VERSION: u16 = 0x3265;
    /// Snappy-framed RLP of a header.
    pub(crate) const COMPRESSED_HEADER: u16 = 0x03;
    /// Snappy-framed RLP of a body: transactions and ommers.
    pub(crate) const COMPRESSED_BODY: u16 = 0x04;
    /// Snappy-framed RLP of the receipts.
    pub(crate) const COMPRESSED_RECEIPTS: u16 = 0x05;
    /// Total difficulty, 32 bytes little-endian.
    pub(crate) const TOTAL_DIFFICULTY: u16 = 0x06;
    /// Root of the header records, 32 bytes.
    pub(crate) const ACCUMULATOR: u16 = 0x07;
    /// First number, offsets relative to this entry's start, count: 8 bytes each.
    pub(crate) const BLOCK_INDEX: u16 = 0x3266;

    /// What an entry type is called in messages; none for types that readers skip.
    pub(crate) const fn name(kind: u16) -> Option<&'static str> {
        match kind {
            VERSION => Some("version"),
            COMPRESSED_HEADER => Some("compressed header"),
            COMPRESSED_BODY => Some("compressed body"),
            COMPRESSED_RECEIPTS => Some("compressed receipts"),
            TOTAL_DIFFICULTY => Some("total difficulty"),
            ACCUMULATOR => Some("accumulator"),
            BLOCK_INDEX => Some("block index"),
            _ => None,
        }
    }
}

/// An entry's place and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its type.
    pub(crate) kind: u16,
    /// Offset of its header in the file.
    pub(crate) offset: u64,
    /// Bytes of data.
    pub(crate) len: u64,
}

/// Reads the entries of a file in order, with seeking. Never allocates more than the file holds.
#[derive(Debug)]
pub(crate) struct EntryReader {
    pub(crate) place: Place,
    file: BufReader<File>,
    len: u64,
    offset: u64,
    /// Whether the file was read past `offset` by a stream.
    adrift: bool,
    /// Blocks before the one being read; for messages only.
    pub(crate) ordinal: u64,
}

impl EntryReader {
    pub(crate) fn open(place: Place) -> Result<Self, SourceError> {
        let file = File::open(&*place.file).map_err(|e| place.io(0, e))?;
        let len = file.metadata().map_err(|e| place.io(0, e))?.len();
        Ok(Self {
            place,
            file: BufReader::with_capacity(1 << 17, file),
            len,
            offset: 0,
            adrift: false,
            ordinal: 0,
        })
    }

    pub(crate) const fn file_len(&self) -> u64 {
        self.len
    }

    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn seek(&mut self, offset: u64) -> Result<(), SourceError> {
        if std::mem::take(&mut self.adrift) {
            self.offset = self
                .file
                .stream_position()
                .map_err(|e| self.place.io(offset, e))?;
        }
        let moved = match i64::try_from(i128::from(offset) - i128::from(self.offset)) {
            Ok(distance) => self.file.seek_relative(distance),
            Err(_) => self.file.seek(SeekFrom::Start(offset)).map(drop),
        };
        moved.map_err(|e| self.place.io(offset, e))?;
        self.offset = offset;
        Ok(())
    }

    /// Reads `N` bytes here.
    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], SourceError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8], what: &'static str) -> Result<(), SourceError> {
        let at = self.offset;
        self.file.read_exact(bytes).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => SourceError::Truncated {
                at: self.place.at(at, self.ordinal),
                what,
            },
            _ => self.place.io(at, e),
        })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Reads the header of the entry here and checks that its data fits into the file.
    pub(crate) fn entry(&mut self) -> Result<Entry, SourceError> {
        let offset = self.offset;
        let head: [u8; 8] = self.array("an entry's header")?;
        let kind = u16::from_le_bytes([head[0], head[1]]);
        let len = u64::from(u32::from_le_bytes([head[2], head[3], head[4], head[5]]));
        let at = self.place.at(offset, self.ordinal);
        if head[6..] != [0, 0] {
            return Err(at.malformed(
                None,
                format!("entry of type {kind:#x}: its reserved bytes are not zero"),
            ));
        }
        if len > self.len - self.offset {
            return Err(SourceError::Truncated {
                at,
                what: kind::name(kind).unwrap_or("an entry"),
            });
        }
        Ok(Entry { kind, offset, len })
    }

    /// Skips entries of unknown types, then reads the header of one that must be of type `wanted`.
    pub(crate) fn expect(&mut self, wanted: u16) -> Result<Entry, SourceError> {
        loop {
            let entry = self.entry()?;
            if entry.kind == wanted {
                return Ok(entry);
            }
            if let Some(found) = kind::name(entry.kind) {
                let wanted = kind::name(wanted).unwrap_or("entry");
                let reason = format!("expected a {wanted}, found a {found}");
                return Err(self
                    .place
                    .at(entry.offset, self.ordinal)
                    .malformed(None, reason));
            }
            self.skip(entry)?;
        }
    }

    /// The data of `entry`, whose header was just read, as it is read: nothing is allocated for the length that the header claims. [`Self::skip`] must follow.
    pub(crate) fn stream(&mut self, entry: Entry) -> impl Read {
        // Where the file is afterwards depends on the reader.
        self.adrift = true;
        (&mut self.file).take(entry.len)
    }

    /// Goes behind the data of `entry`, whose header was just read.
    pub(crate) fn skip(&mut self, entry: Entry) -> Result<(), SourceError> {
        self.seek(entry.offset + HEADER_BYTES + entry.len)
    }

    /// Reads the data of `entry`, which must have `N` bytes.
    pub(crate) fn fixed<const N: usize>(&mut self, entry: Entry) -> Result<[u8; N], SourceError> {
        if entry.len != N as u64 {
            let name = kind::name(entry.kind).unwrap_or("entry");
            let reason = format!("{name} of {} bytes instead of {N}", entry.len);
            return Err(self
                .place
                .at(entry.offset, self.ordinal)
                .malformed(None, reason));
        }
        self.array(kind::name(entry.kind).unwrap_or("an entry"))
    }
}
