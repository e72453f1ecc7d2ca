//! How long a chain's files are, and which part of them lies before a block.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::Position;
use super::export::GZIP_MAGIC;

/// The lengths of all files of a chain, in the order of their blocks.
#[derive(Clone, Debug, Default)]
pub struct ChainLength {
    files: Vec<(PathBuf, u64)>,
}

impl ChainLength {
    /// Asks for the length of each file. `None` if one has no length, such as a pipe.
    pub(crate) fn of<'a>(files: impl Iterator<Item = &'a Path>) -> Option<Self> {
        let files = files.map(|path| Some((path.to_owned(), length(path)?)));
        Some(Self {
            files: files.collect::<Option<_>>()?,
        })
    }

    /// Returns which part of all bytes lies before a block, 0 to 1; `None` if the block is in none of the files.
    #[must_use]
    pub fn part_before(&self, block: &Position) -> Option<f64> {
        let place = self
            .files
            .iter()
            .position(|(path, _)| **path == *block.file)?;
        let sum = |files: &[(PathBuf, u64)]| files.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let (_, bytes) = &self.files[place];
        let before = sum(&self.files[..place]) + block.offset.min(*bytes);
        Some(before as f64 / sum(&self.files).max(1) as f64)
    }
}

/// Returns the bytes that a file has, decompressed. A gzip file ends with their number modulo 2^32 (RFC 1952, section
/// 2.3.1), which is its length if it is no longer than that and has one member; `None` if it cannot be.
fn length(path: &Path) -> Option<u64> {
    // Opening a pipe would wait for somebody to write to it.
    let about = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut file = File::open(path).ok()?;
    let mut magic = [0; 2];
    if file.read_exact(&mut magic).is_err() || magic != GZIP_MAGIC {
        return Some(about.len());
    }
    let mut end = [0; 4];
    file.seek(SeekFrom::End(-4)).ok()?;
    file.read_exact(&mut end).ok()?;
    Some(u64::from(u32::from_le_bytes(end))).filter(|bytes| *bytes >= about.len())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_part_before_a_block_counts_all_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), [0xf9; 300]).expect("written");
        let file = File::create(path("b.gz")).expect("made");
        let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::best());
        gzip.write_all(&[0; 700]).expect("written");
        gzip.finish().expect("written");
        let files = [path("a"), path("b.gz")];
        let length = ChainLength::of(files.iter().map(PathBuf::as_path)).expect("lengths");
        let part = |file: &str, offset| {
            let position = Position {
                file: path(file).into(),
                offset,
                ordinal: 0,
            };
            length.part_before(&position)
        };
        assert_eq!(part("a", 0), Some(0.0));
        assert_eq!(part("a", 150), Some(0.15));
        assert_eq!(part("b.gz", 0), Some(0.3));
        assert_eq!(part("b.gz", 350), Some(0.65));
        assert_eq!(part("c", 0), None);
        assert!(ChainLength::of([Path::new("/dev/null")].into_iter()).is_none());
    }
}
