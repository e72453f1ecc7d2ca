//! The chain file as it grows.

use std::{
    fs::{File, OpenOptions},
    io::{BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::GeneratorError;

/// Longest RLP header of a block: one byte and eight of length.
const MAX_HEADER: usize = 9;

/// Bytes read at once where only the blocks' headers are looked at: a long file is walked over, not read.
const PEEK: usize = 16;

/// An RLP export (blocks one after the other, the genesis block first) open for appending.
#[derive(Debug)]
pub(super) struct ChainFile {
    path: PathBuf,
    file: File,
    /// Whole blocks in the file.
    blocks: u64,
    /// Where the last whole block ends.
    end: u64,
    /// The lock of the folder that it is in.
    _lock: Option<File>,
}

impl ChainFile {
    /// Opens or creates the file and cuts off a block that was not written to its end.
    pub(super) fn open(path: &Path) -> Result<Self, GeneratorError> {
        let failed = |cause| GeneratorError::file(path, cause);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let mut chain = Self {
            path: path.to_owned(),
            file,
            blocks: 0,
            end: 0,
            _lock: None,
        };
        let size = chain.file.metadata().map_err(failed)?.len();
        let mut items = chain.items()?;
        while let Some(len) = items
            .next_len()
            .map_err(failed)?
            .filter(|len| chain.end + len <= size)
        {
            items.skip(len).map_err(failed)?;
            (chain.blocks, chain.end) = (chain.blocks + 1, chain.end + len);
        }
        drop(items);
        chain.file.set_len(chain.end).map_err(failed)?;
        chain
            .file
            .seek(SeekFrom::Start(chain.end))
            .map_err(failed)?;
        Ok(chain)
    }

    /// Keeps a lock as long as the file is open.
    pub(super) fn locked(self, lock: Option<File>) -> Self {
        Self {
            _lock: lock,
            ..self
        }
    }

    /// Number of whole blocks, the genesis block included.
    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.end
    }

    /// Where the file lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a block's RLP.
    pub(super) fn append(&mut self, block: &[u8]) -> Result<(), GeneratorError> {
        self.file
            .write_all(block)
            .map_err(|cause| GeneratorError::file(&self.path, cause))?;
        (self.blocks, self.end) = (self.blocks + 1, self.end + block.len() as u64);
        Ok(())
    }

    /// Makes what was written durable.
    pub(super) fn sync(&self) -> Result<(), GeneratorError> {
        self.file
            .sync_data()
            .map_err(|cause| GeneratorError::file(&self.path, cause))
    }

    /// The RLP of the blocks from number `first` on, through a handle of its own.
    pub(super) fn blocks_from(
        &self,
        first: u64,
    ) -> Result<impl Iterator<Item = Result<Vec<u8>, GeneratorError>> + use<>, GeneratorError> {
        let (path, blocks) = (self.path.clone(), self.blocks);
        let failed = move |cause| GeneratorError::file(&path, cause);
        let mut items = self.items()?;
        for _ in 0..first.min(blocks) {
            let len = items.next_len().map_err(&failed)?;
            items.skip(len.unwrap_or(0)).map_err(&failed)?;
        }
        Ok((first..blocks).map(move |_| items.next_block().map_err(&failed)))
    }

    fn items(&self) -> Result<Items, GeneratorError> {
        let file =
            File::open(&self.path).map_err(|cause| GeneratorError::file(&self.path, cause))?;
        Ok(Items {
            reader: BufReader::with_capacity(PEEK, file),
        })
    }
}

/// Walks over the blocks of a file.
struct Items {
    reader: BufReader<File>,
}

impl Items {
    /// Length of the block that begins here, its RLP header included; `None` at the end of the
    /// file or inside a torn header. The position stays.
    fn next_len(&mut self) -> std::io::Result<Option<u64>> {
        let mut header = [0; MAX_HEADER];
        let mut filled = 0;
        loop {
            match self.reader.read(&mut header[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        self.reader.seek_relative(-(filled as i64))?;
        list_len(&header[..filled])
    }

    fn skip(&mut self, len: u64) -> std::io::Result<()> {
        self.reader.seek_relative(len as i64)
    }

    fn next_block(&mut self) -> std::io::Result<Vec<u8>> {
        let len = self.next_len()?.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        let mut block = vec![0; len as usize];
        self.reader.read_exact(&mut block)?;
        Ok(block)
    }
}

/// Length of the RLP list whose first bytes these are; `None` if they are too few.
fn list_len(header: &[u8]) -> std::io::Result<Option<u64>> {
    let invalid = || {
        std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            "a block is not an RLP list",
        )
    };
    let Some(first) = header.first() else {
        return Ok(None);
    };
    match first {
        0xc0..=0xf7 => Ok(Some(u64::from(first - 0xc0) + 1)),
        0xf8..=0xff => {
            let count = usize::from(first - 0xf7);
            let Some(bytes) = header.get(1..=count) else {
                return Ok(None);
            };
            let payload = bytes.iter().try_fold(0u64, |len, byte| {
                len.checked_mul(256)?.checked_add(u64::from(*byte))
            });
            let len = payload
                .and_then(|len| len.checked_add(1 + count as u64))
                .filter(|len| i64::try_from(*len).is_ok());
            len.map(Some).ok_or_else(invalid)
        }
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(len: usize, byte: u8) -> Vec<u8> {
        let mut out = vec![0xf9];
        out.extend((len as u16).to_be_bytes());
        out.extend(vec![byte; len]);
        out
    }

    #[test]
    fn a_torn_block_is_cut_off_wherever_it_is_torn() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("chain.rlp");
        let blocks = [item(300, 1), vec![0xc2, 7, 7], item(70_000 % 65_536, 2)];
        let whole: Vec<u8> = blocks.concat();
        for cut in [
            0,
            1,
            2,
            5,
            302,
            303,
            304,
            306,
            307,
            308,
            309,
            500,
            whole.len(),
        ] {
            std::fs::write(&path, &whole[..cut]).expect("written");
            let mut chain = ChainFile::open(&path).expect("opens");
            let kept = [0, 303, 306, whole.len()]
                .into_iter()
                .filter(|end| *end <= cut)
                .max()
                .expect("zero is there");
            assert_eq!(chain.len(), kept as u64, "cut at {cut}");
            for block in &blocks[chain.blocks() as usize..] {
                chain.append(block).expect("appended");
            }
            assert_eq!(std::fs::read(&path).expect("read"), whole);
            let read: Result<Vec<_>, _> = chain.blocks_from(1).expect("opens").collect();
            assert_eq!(read.expect("read"), blocks[1..]);
        }
    }

    #[test]
    fn what_is_no_list_is_an_error() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("chain.rlp");
        std::fs::write(&path, [0xc0, 0x80]).expect("written");
        let error = ChainFile::open(&path).expect_err("not a list");
        assert!(error.to_string().contains("chain.rlp"), "{error}");
    }
}
