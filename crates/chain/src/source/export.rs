//! RLP exports: the blocks' RLP, one after the other, plain or gzip.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use alloy_primitives::Bytes;
use flate2::bufread::MultiGzDecoder;

use super::block::{MAX_BLOCK_BYTES, RawBlock, decode_header};
use super::error::{Place, Position, SourceError};
use super::link::Link;

/// First bytes of a gzip file (RFC 1952, section 2.3.1).
pub(crate) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Bytes of a block that are read to find its header. Headers are some 600 bytes.
const HEADER_WINDOW: u64 = 4096;

/// An export being read.
pub(crate) struct ExportFile {
    place: Place,
    reader: Box<dyn BufRead + Send>,
    /// Bytes consumed, decompressed.
    offset: u64,
    ordinal: u64,
    /// A block whose front was read to see its number.
    held: Option<Front>,
}

/// The front of a block: its first bytes, and how many it has in all.
struct Front {
    position: Position,
    bytes: Vec<u8>,
    len: u64,
}

impl std::fmt::Debug for ExportFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExportFile")
            .field("place", &self.place)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl ExportFile {
    /// Opens an export; gzip is known by its first bytes.
    pub(crate) fn open(path: &Path) -> Result<Self, SourceError> {
        let place = Place::new(path);
        let file = File::open(path).map_err(|e| place.io(0, e))?;
        let mut plain = BufReader::with_capacity(1 << 17, file);
        let front = plain.fill_buf().map_err(|e| place.io(0, e))?;
        let mut reader: Box<dyn BufRead + Send> = if front.starts_with(&GZIP_MAGIC) {
            Box::new(BufReader::with_capacity(
                1 << 17,
                MultiGzDecoder::new(plain),
            ))
        } else {
            Box::new(plain)
        };
        match reader.fill_buf().map_err(|e| place.io(0, e))?.first() {
            None => return Err(place.not_a_chain("the file is empty")),
            Some(0xf8..) => {}
            Some(_) => {
                return Err(place.not_a_chain("neither an RLP export of blocks nor an era1 file"));
            }
        }
        Ok(Self {
            place,
            reader,
            offset: 0,
            ordinal: 0,
            held: None,
        })
    }

    /// The next block; none at the end of the file.
    pub(crate) fn next_raw(&mut self) -> Result<Option<RawBlock>, SourceError> {
        let front = match self.held.take() {
            Some(front) => front,
            None => match self.front(0)? {
                Some(front) => front,
                None => return Ok(None),
            },
        };
        let Front {
            position,
            mut bytes,
            len,
        } = front;
        let rest = len - bytes.len() as u64;
        self.read(&mut bytes, rest, &position)?;
        self.ordinal += 1;
        RawBlock::from_export(position, &Bytes::from(bytes)).map(Some)
    }

    /// Looks at the next block's header without consuming the block; none at the end of the file.
    pub(crate) fn peek(&mut self) -> Result<Option<Link>, SourceError> {
        if self.held.is_none() {
            self.held = self.front(HEADER_WINDOW)?;
        }
        self.held.as_ref().map(Front::link).transpose()
    }

    /// Passes over the block that [`Self::peek`] showed.
    pub(crate) fn skip(&mut self) -> Result<(), SourceError> {
        let Some(Front {
            position,
            bytes,
            len,
        }) = self.held.take()
        else {
            return Ok(());
        };
        let rest = len - bytes.len() as u64;
        let skipped = std::io::copy(&mut (&mut self.reader).take(rest), &mut std::io::sink())
            .map_err(|e| self.read_error(e, &position))?;
        self.offset += skipped;
        self.ordinal += 1;
        if skipped == rest {
            Ok(())
        } else {
            Err(SourceError::Truncated {
                at: position,
                what: "a block",
            })
        }
    }

    /// Reads a block's RLP head and up to `window` bytes of its payload.
    fn front(&mut self, window: u64) -> Result<Option<Front>, SourceError> {
        let position = self.place.at(self.offset, self.ordinal);
        let at_end = self.reader.fill_buf().map(<[u8]>::is_empty);
        if at_end.map_err(|e| self.read_error(e, &position))? {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.read(&mut bytes, 1, &position)?;
        let payload = match bytes[0] {
            head @ 0xf8.. => {
                self.read(&mut bytes, u64::from(head - 0xf7), &position)?;
                bytes[1..]
                    .iter()
                    .fold(0u64, |len, &byte| (len << 8) | u64::from(byte))
            }
            head @ 0xc0..=0xf7 => u64::from(head - 0xc0),
            head => {
                let reason = format!("byte {head:#04x} where the list of a block must begin");
                return Err(position.malformed(None, reason));
            }
        };
        if payload > MAX_BLOCK_BYTES {
            let reason = format!(
                "a block of {payload} bytes; the greatest that is read has {MAX_BLOCK_BYTES}"
            );
            return Err(position.malformed(None, reason));
        }
        let len = bytes.len() as u64 + payload;
        self.read(&mut bytes, payload.min(window), &position)?;
        Ok(Some(Front {
            position,
            bytes,
            len,
        }))
    }

    /// Appends exactly `count` bytes to `bytes`; memory grows only with what is there.
    fn read(
        &mut self,
        bytes: &mut Vec<u8>,
        count: u64,
        position: &Position,
    ) -> Result<(), SourceError> {
        bytes.reserve(usize::try_from(count.min(1 << 20)).unwrap_or(0));
        let read = (&mut self.reader)
            .take(count)
            .read_to_end(bytes)
            .map_err(|e| self.read_error(e, position))?;
        self.offset += read as u64;
        if read as u64 == count {
            Ok(())
        } else {
            Err(SourceError::Truncated {
                at: position.clone(),
                what: "a block",
            })
        }
    }

    fn read_error(&self, error: std::io::Error, position: &Position) -> SourceError {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            SourceError::Truncated {
                at: position.clone(),
                what: "the gzip stream",
            }
        } else {
            self.place.io(self.offset, error)
        }
    }
}

impl Front {
    fn link(&self) -> Result<Link, SourceError> {
        let head = if self.bytes[0] > 0xf7 {
            usize::from(self.bytes[0] - 0xf7) + 1
        } else {
            1
        };
        let (header, hash) = decode_header(&mut &self.bytes[head..])
            .map_err(|e| self.position.malformed(None, format!("header: {e}")))?;
        Ok(Link::of(&header, hash, &self.position))
    }
}
