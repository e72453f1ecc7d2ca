//! era1 files: up to 8,192 blocks of before the merge, with receipts and total difficulties.
//!
//! ```text
//! file  := version | block* | other entries* | accumulator | block index
//! block := compressed header | compressed body | compressed receipts | total difficulty
//! ```
//!
//! Reading checks that every block lies where the index says, has the number that the index gives it, and adds its
//! difficulty to the total; at the end the accumulator is recomputed and the file must end with the index.
//! Reading that skips blocks still reads their headers, so that the accumulator is always checked.
//!
//! The file's name is NETWORK-EPOCH-HASH.era1, with the first four bytes of the accumulator. A name of that form must
//! agree with the content; a file named otherwise is read too.

use std::io::Read;
use std::path::Path;

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, U256};

use super::accumulator::{Accumulator, MAX_RECORDS};
use super::block::{MAX_BLOCK_BYTES, RawBlock, decode_whole_header};
use super::e2store::{Entry, EntryReader, HEADER_BYTES, kind};
use super::error::{Place, Position, SourceError};
use super::link::Link;
use super::snappy::{Chunks, unframe};

/// Greatest header after decompression, in bytes.
const MAX_HEADER_BYTES: u64 = 1 << 16;

/// Greatest size of one block's receipts as they lie in the file, in bytes: those of a full block of before the merge have a few hundred thousand.
const MAX_PACKED_BYTES: u64 = 128 << 20;

/// What an era1 file's name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Era1Name {
    /// Network, in the words of the tool that made the file: `mainnet`, `sepolia`.
    pub network: String,
    /// Number of the file, from 0: it starts at block 8192 * epoch.
    pub epoch: u64,
    /// First four bytes of the accumulator.
    pub short_hash: [u8; 4],
}

impl Era1Name {
    /// Reads NETWORK-EPOCH-HASH.era1; none if `path` is named otherwise.
    pub fn parse(path: &Path) -> Option<Self> {
        let stem = path.file_name()?.to_str()?.strip_suffix(".era1")?;
        let (rest, hash) = stem.rsplit_once('-')?;
        let (network, epoch) = rest.rsplit_once('-')?;
        if hash.len() != 8 || !hash.is_ascii() || network.is_empty() {
            return None;
        }
        let short_hash = u32::from_str_radix(hash, 16).ok()?.to_be_bytes();
        Some(Self {
            network: network.to_owned(),
            epoch: epoch.parse().ok()?,
            short_hash,
        })
    }
}

/// Where the blocks lie.
#[derive(Debug)]
struct BlockIndex {
    first: u64,
    offsets: Vec<u64>,
    /// Offset of the index entry itself.
    at: u64,
}

/// An era1 file being read.
#[derive(Debug)]
pub struct Era1File {
    entries: EntryReader,
    name: Option<Era1Name>,
    index: BlockIndex,
    next: usize,
    accumulator: Accumulator,
    total_difficulty: Option<U256>,
    finished: bool,
}

impl Era1File {
    /// Opens a file and reads its index.
    ///
    /// # Errors
    /// [`SourceError`] if it cannot be read, does not begin with a version entry, has no sound index at its end, or
    /// starts at another block than its name says.
    pub fn open(path: &Path) -> Result<Self, SourceError> {
        let mut entries = EntryReader::open(Place::new(path))?;
        let version = entries.entry()?;
        if version.kind != kind::VERSION || version.len != 0 {
            return Err(entries
                .place
                .not_a_chain("not an era1 file: it does not begin with a version entry"));
        }
        let index = read_index(&mut entries)?;
        let name = Era1Name::parse(path);
        if let Some(name) = name
            .as_ref()
            .filter(|name| name.epoch.checked_mul(8192) != Some(index.first))
        {
            let reason = format!(
                "named epoch {}, but it starts at block {}",
                name.epoch, index.first
            );
            return Err(entries.place.not_a_chain(reason));
        }
        entries.seek(index.offsets[0])?;
        let accumulator = Accumulator::default();
        Ok(Self {
            entries,
            name,
            index,
            next: 0,
            accumulator,
            total_difficulty: None,
            finished: false,
        })
    }

    /// What the file's name says, if it is of the usual form.
    pub const fn name(&self) -> Option<&Era1Name> {
        self.name.as_ref()
    }

    /// First block number, from the index.
    pub const fn first_number(&self) -> u64 {
        self.index.first
    }

    /// Last block number, from the index.
    pub fn last_number(&self) -> u64 {
        self.index.first + self.index.offsets.len() as u64 - 1
    }

    /// Headers of the first and the last block, without reading those between. Reading goes on where it was.
    ///
    /// # Errors
    /// As [`Self::next_raw`].
    pub fn ends(&mut self) -> Result<(Link, Link), SourceError> {
        let here = self.entries.offset();
        let first = self.header_link(0)?;
        let last = self.header_link(self.index.offsets.len() - 1)?;
        self.entries.seek(here)?;
        Ok((first, last))
    }

    fn header_link(&mut self, index: usize) -> Result<Link, SourceError> {
        self.entries.seek(self.index.offsets[index])?;
        let (position, header, hash, _) = self.header(index)?;
        Ok(Link::of(&header, hash, &position))
    }

    /// The next block; none after the last, when the rest of the file has been checked.
    ///
    /// # Errors
    /// [`SourceError`] with file and offset of whatever is not as the format demands.
    pub fn next_raw(&mut self) -> Result<Option<RawBlock>, SourceError> {
        if self.next == self.index.offsets.len() {
            return self.finish().map(|()| None);
        }
        let (position, header, hash, header_rlp) = self.header(self.next)?;
        let body = self.entries.expect(kind::COMPRESSED_BODY)?;
        let body = self.unframed(body, MAX_BLOCK_BYTES)?;
        let receipts = self.entries.expect(kind::COMPRESSED_RECEIPTS)?;
        let receipts = self.packed(receipts)?;
        let total = self.total(&position, &header, hash)?;
        let block = RawBlock::from_era1(
            position,
            &header_rlp,
            &Bytes::from(body),
            Bytes::from(receipts),
            total,
        )?;
        self.advance();
        Ok(Some(block))
    }

    /// Reads a block wherever reading has come to, and leaves that as it is. Its total difficulty is
    /// not compared with those of others.
    ///
    /// # Errors
    /// [`SourceError`] for what is wrong with the file, or if the file does not have the block.
    pub fn block_at(&mut self, number: u64) -> Result<RawBlock, SourceError> {
        let place = number.checked_sub(self.index.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        let place = place.filter(|place| *place < self.index.offsets.len());
        let Some(place) = place else {
            return Err(SourceError::OutOfRange {
                wanted: number,
                first: self.index.first,
                last: Some(self.last_number()),
            });
        };
        let here = self.entries.offset();
        self.entries.seek(self.index.offsets[place])?;
        let (position, _, _, header_rlp) = self.header(place)?;
        let body = self.entries.expect(kind::COMPRESSED_BODY)?;
        let body = self.unframed(body, MAX_BLOCK_BYTES)?;
        let receipts = self.entries.expect(kind::COMPRESSED_RECEIPTS)?;
        let receipts = self.packed(receipts)?;
        let total = self.entries.expect(kind::TOTAL_DIFFICULTY)?;
        let total = U256::from_le_bytes(self.entries.fixed::<32>(total)?);
        self.entries.seek(here)?;
        let body = Bytes::from(body);
        RawBlock::from_era1(position, &header_rlp, &body, Bytes::from(receipts), total)
    }

    /// Passes over the next block without reading body and receipts; none after the last.
    ///
    /// # Errors
    /// As [`Self::next_raw`].
    pub fn skip(&mut self) -> Result<Option<Link>, SourceError> {
        if self.next == self.index.offsets.len() {
            return self.finish().map(|()| None);
        }
        let (position, header, hash, _) = self.header(self.next)?;
        for wanted in [kind::COMPRESSED_BODY, kind::COMPRESSED_RECEIPTS] {
            let entry = self.entries.expect(wanted)?;
            self.entries.skip(entry)?;
        }
        self.total(&position, &header, hash)?;
        self.advance();
        Ok(Some(Link::of(&header, hash, &position)))
    }

    /// Number of the block that comes next; none after the last.
    pub fn next_number(&self) -> Option<u64> {
        (self.next < self.index.offsets.len()).then(|| self.index.first + self.next as u64)
    }

    fn advance(&mut self) {
        self.next += 1;
        self.entries.ordinal += 1;
    }

    /// Reads the header of block `index` of the file, which must lie here.
    fn header(&mut self, index: usize) -> Result<(Position, Header, B256, Vec<u8>), SourceError> {
        let entry = self.entries.expect(kind::COMPRESSED_HEADER)?;
        let position = self.entries.place.at(entry.offset, index as u64);
        let listed = self.index.offsets[index];
        if entry.offset != listed {
            return Err(
                position.malformed(None, format!("the index has this block at offset {listed}"))
            );
        }
        let rlp = self.unframed(entry, MAX_HEADER_BYTES)?;
        let (header, hash) = decode_whole_header(&position, &rlp)?;
        let number = self.index.first + index as u64;
        if header.number != number {
            let reason = format!(
                "the index says that this is block {number}, its header {}",
                header.number
            );
            return Err(position.malformed(Some(header.number), reason));
        }
        Ok((position, header, hash, rlp))
    }

    fn unframed(&mut self, entry: Entry, limit: u64) -> Result<Vec<u8>, SourceError> {
        let data = unframe(self.entries.stream(entry), limit);
        let data = data.map_err(|reason| self.malformed(entry, &reason))?;
        // What follows the data, if anything does, was checked to be in the file.
        self.entries.skip(entry)?;
        Ok(data)
    }

    /// Reads receipts as they lie in the file, but for chunks that are skipped.
    fn packed(&mut self, entry: Entry) -> Result<Vec<u8>, SourceError> {
        let mut data = Vec::new();
        let read = Chunks::new(self.entries.stream(entry))
            .take(MAX_PACKED_BYTES + 1)
            .read_to_end(&mut data);
        read.map_err(|e| self.malformed(entry, &format!("snappy: {e}")))?;
        if data.len() as u64 > MAX_PACKED_BYTES {
            let reason = format!("more than {MAX_PACKED_BYTES} bytes");
            return Err(self.malformed(entry, &reason));
        }
        self.entries.skip(entry)?;
        Ok(data)
    }

    fn malformed(&self, entry: Entry, reason: &str) -> SourceError {
        let name = kind::name(entry.kind).unwrap_or("entry");
        let at = self.entries.place.at(entry.offset, self.entries.ordinal);
        at.malformed(None, format!("{name}: {reason}"))
    }

    /// Reads and checks the block's total difficulty, and records the block for the accumulator.
    fn total(
        &mut self,
        position: &Position,
        header: &Header,
        hash: B256,
    ) -> Result<U256, SourceError> {
        let entry = self.entries.expect(kind::TOTAL_DIFFICULTY)?;
        let total = U256::from_le_bytes(self.entries.fixed::<32>(entry)?);
        let before = if header.number == 0 {
            Some(U256::ZERO)
        } else {
            self.total_difficulty
        };
        if let Some(sum) = before
            .map(|before| before.wrapping_add(header.difficulty))
            .filter(|sum| *sum != total)
        {
            let reason = format!("total difficulty {total}, but {sum} by the difficulties");
            return Err(position.malformed(Some(header.number), reason));
        }
        self.total_difficulty = Some(total);
        self.accumulator.push(hash, total);
        Ok(total)
    }

    /// Checks what follows the blocks.
    fn finish(&mut self) -> Result<(), SourceError> {
        if self.finished {
            return Ok(());
        }
        let entry = self.entries.expect(kind::ACCUMULATOR)?;
        let at = self.entries.place.at(entry.offset, self.entries.ordinal);
        let stored = B256::from(self.entries.fixed::<32>(entry)?);
        let computed = self.accumulator.root();
        if stored != computed {
            return Err(at.malformed(
                None,
                format!("accumulator {stored}, but the headers give {computed}"),
            ));
        }
        if self
            .name
            .as_ref()
            .is_some_and(|name| name.short_hash != stored[..4])
        {
            return Err(at.malformed(
                None,
                format!("the file's name does not begin accumulator {stored}"),
            ));
        }
        let index = self.entries.expect(kind::BLOCK_INDEX)?;
        if index.offset != self.index.at {
            let reason = format!("a second block index; the last is at {}", self.index.at);
            return Err(self
                .entries
                .place
                .at(index.offset, self.entries.ordinal)
                .malformed(None, reason));
        }
        self.finished = true;
        Ok(())
    }
}

/// Reads the index at the end of the file: its last eight bytes give the number of blocks and so the index's place.
fn read_index(entries: &mut EntryReader) -> Result<BlockIndex, SourceError> {
    let len = entries.file_len();
    let Some(count_at) = len.checked_sub(8) else {
        return Err(SourceError::Truncated {
            at: entries.place.at(0, 0),
            what: "the block index",
        });
    };
    entries.seek(count_at)?;
    let count = u64::from_le_bytes(entries.array("the block index")?);
    let malformed = |entries: &EntryReader, at: u64, reason: String| {
        Err(entries
            .place
            .at(at, 0)
            .malformed(None, format!("block index: {reason}")))
    };
    if count == 0 || count > MAX_RECORDS as u64 {
        return malformed(
            entries,
            count_at,
            format!("{count} blocks instead of 1 to {MAX_RECORDS} (cut short?)"),
        );
    }
    let data_len = 16 + 8 * count;
    let Some(at) = len.checked_sub(HEADER_BYTES + data_len) else {
        return malformed(
            entries,
            count_at,
            format!("{count} blocks do not fit into the file"),
        );
    };
    entries.seek(at)?;
    let entry = entries.entry()?;
    if (entry.kind, entry.len) != (kind::BLOCK_INDEX, data_len) {
        return malformed(
            entries,
            at,
            "not where the file's last bytes put it (cut short?)".into(),
        );
    }
    let first = u64::from_le_bytes(entries.array("the block index")?);
    if first.checked_add(count).is_none() {
        return malformed(entries, at, format!("first block {first}"));
    }
    let mut offsets = Vec::with_capacity(usize::try_from(count).unwrap_or(MAX_RECORDS));
    let mut previous = HEADER_BYTES - 1;
    for block in 0..count {
        let relative = i64::from_le_bytes(entries.array("the block index")?);
        let offset = at
            .checked_add_signed(relative)
            .filter(|offset| (previous + 1..at).contains(offset));
        let Some(offset) = offset else {
            return malformed(
                entries,
                at,
                format!("entry {block} ({relative}) points out of order or of the file"),
            );
        };
        offsets.push(offset);
        previous = offset;
    }
    Ok(BlockIndex { first, offsets, at })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn chunk(kind: u8, length: u32) -> Vec<u8> {
        let mut chunk = vec![kind];
        chunk.extend(&length.to_le_bytes()[..3]);
        chunk.resize(4 + length as usize, 0);
        chunk
    }

    fn framed(data: &[u8]) -> Vec<u8> {
        let mut encoder = snap::write::FrameEncoder::new(Vec::new());
        encoder.write_all(data).expect("in memory");
        encoder.into_inner().expect("in memory")
    }

    #[test]
    fn skippable_chunks_have_any_length() {
        let data: Vec<u8> = (0..200_000_u32).map(|i| (i % 251) as u8).collect();
        let frames = framed(&data);
        for (kind, length) in [
            (0xfe, 0),
            (0xfe, 100_000),
            (0x80, 200_000),
            (0xfd, (1 << 24) - 1),
        ] {
            // Behind the stream identifier, and at the end.
            let mut padded = frames[..10].to_vec();
            padded.extend(chunk(kind, length));
            padded.extend(&frames[10..]);
            padded.extend(chunk(kind, length));
            assert_eq!(
                unframe(&*padded, 200_000).as_deref(),
                Ok(&*data),
                "{kind:#x}"
            );
            padded.pop();
            let cut = unframe(&*padded, 200_000);
            assert!(cut.is_err(), "{kind:#x} {length}: {cut:?}");
        }
        assert!(unframe(&*frames, 199_999).is_err());
        // Chunks that a reader must know.
        let mut reserved = frames.clone();
        reserved.extend(chunk(0x02, 5));
        assert!(unframe(&*reserved, 200_000).is_err());
        assert!(unframe(&frames[..frames.len() - 1], 200_000).is_err());
        assert!(unframe(&frames[..12], 200_000).is_err());
    }

    /// A length is only a claim: 4 GB of nothing in a sparse file are not allocated.
    #[test]
    fn a_claimed_length_is_not_allocated() {
        let mut read = 0_u64;
        struct Zeros<'a>(&'a mut u64);
        impl Read for Zeros<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                *self.0 += into.len() as u64;
                into.fill(0);
                Ok(into.len())
            }
        }
        let refused = unframe(Zeros(&mut read).take(u32::MAX.into()), MAX_BLOCK_BYTES);
        assert!(refused.is_err());
        assert!(read < 1 << 20, "{read} bytes were read");
    }
}
