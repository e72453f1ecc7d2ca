//! The files of lsm-tree that are looked at before it reads them: what names a tree's newest version, the version, the ends of tables.
//!
//! Versions and tables are archives of the crate `sfa` 1.0: sections; a table of contents, `TOC!`, the number of sections (u32), and for
//! each its position and length (u64) and its name (u16 length); a trailer of 38 bytes, `SFA!`, a byte 1, a byte 0, the XXH3-128, position
//! and length of the table of contents. Integers are little-endian. lsm-tree logs or asserts what is wrong with them, and names no file.
//! `sfa` itself cannot take the place of this file: it allocates as many entries as a damaged number of sections says (up to 2^32) before it compares
//! the checksum, and does not compare the position with the length of the file.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use xxhash_rust::xxh3::xxh3_128;

const TRAILER: usize = 38;
/// No table of contents is near it; what a damaged trailer says is not allocated.
const MOST_CONTENTS: u64 = 64 << 10;

/// The number and the checksum of the version that a file `current` names.
pub(crate) fn named_version(current: &[u8]) -> Option<(u64, u128)> {
    let mut current = Fields(current);
    let (number, checksum) = (current.u64()?, current.u128()?);
    (current.0 == [0]).then_some((number, checksum))
}

/// The numbers of the tables that a version lists: for each level (their number u8) and run (u8) of its section `tables`, the number of
/// tables (u32) and 33 bytes for each, which begin with the table's number.
pub(crate) fn tables_of(version: &[u8]) -> Option<Vec<u64>> {
    let contents = contents(&mut Cursor::new(version)).ok()??;
    let mut section = Fields(section(&contents, b"tables", version)?);
    let mut tables = Vec::new();
    for _ in 0..section.u8()? {
        for _ in 0..section.u8()? {
            for _ in 0..section.u32()? {
                tables.push(section.u64()?);
                section.bytes(1 + 16 + 8)?;
            }
        }
    }
    section.0.is_empty().then_some(tables)
}

/// Whether a file ends as an archive does. A file that was cut short does not.
pub(crate) fn is_whole_at_its_end(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    Ok(contents(file)?.is_some())
}

/// The table of contents of an archive, if that and the trailer are whole.
fn contents(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let length = file.seek(SeekFrom::End(0))?;
    let Some(end) = length.checked_sub(TRAILER as u64) else {
        return Ok(None);
    };
    let mut trailer = [0; TRAILER];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut trailer)?;
    let Some((checksum, begin)) = trailer_fields(&trailer, end) else {
        return Ok(None);
    };
    let mut contents = vec![0; (end - begin) as usize];
    file.seek(SeekFrom::Start(begin))?;
    file.read_exact(&mut contents)?;
    Ok((xxh3_128(&contents) == checksum).then_some(contents))
}

/// The checksum and the position of a table of contents that ends where the trailer begins.
fn trailer_fields(trailer: &[u8], end: u64) -> Option<(u128, u64)> {
    let mut trailer = Fields(trailer);
    let head = trailer.bytes(6)?;
    let (checksum, position, length) = (trailer.u128()?, trailer.u64()?, trailer.u64()?);
    let fits = position.checked_add(length) == Some(end) && length <= MOST_CONTENTS;
    (head == b"SFA!\x01\x00" && fits).then_some((checksum, position))
}

/// A section of an archive.
fn section<'a>(contents: &[u8], name: &[u8], archive: &'a [u8]) -> Option<&'a [u8]> {
    let mut contents = Fields(contents);
    contents.bytes(4)?;
    for _ in 0..contents.u32()? {
        let (position, length) = (contents.u64()?, contents.u64()?);
        let name_length = contents.u16()?;
        if contents.bytes(name_length.into())? == name {
            let begin = usize::try_from(position).ok()?;
            return archive.get(begin..)?.get(..usize::try_from(length).ok()?);
        }
    }
    None
}

/// Fields that are read one after the other; `None` behind the last.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(field)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }
}
