//! The blocks of a chain's files, by number, hash and transaction.
//!
//! All blocks are read once, when the server begins, for their places and hashes. Later a block is
//! read at its place. A gzip cannot be read from its middle: its blocks are copied into a file
//! without a name in the system's temporary folder, which goes with the process. In memory are 60
//! bytes for each block, 60 for its hash, and 16 for each transaction.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_consensus::{Block, BlockBody};
use alloy_eips::eip4895::Withdrawals;
use alloy_primitives::{Address, B256};
use alloy_rlp::Encodable as _;
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{InputError, RecoveredBlock, SignatureRules, prepare};
use arbor_chain::source::era1::Era1File;
use arbor_chain::source::{
    Position, RawBlock, SourceBlock, SourceError, Transaction, open_sources,
};

use crate::rpc_error::RpcError;

/// Why the files of a chain cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum BlockFilesError {
    /// The files are no sound chain.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The files are of another chain than the database.
    #[error("the files have block {number} with the hash {found}, the database has {expected}")]
    OtherChain {
        /// The block.
        number: u64,
        /// The hash in the files.
        found: B256,
        /// The hash in the database.
        expected: B256,
    },
    /// A file cannot be opened again.
    #[error("{}: {source}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The copy of a gzip cannot be written.
    #[error("copying blocks into the temporary folder {}: {source}", .folder.display())]
    Copy {
        /// The system's temporary folder.
        folder: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// A file in whose middle blocks can be read.
enum BlockFile {
    /// RLP of blocks, one after another.
    Export(Mutex<File>),
    Era1(Box<Mutex<Era1File>>),
}

/// Where a block is.
#[derive(Clone, Copy)]
struct Place {
    file: u32,
    /// The bytes of the block's RLP.
    bytes: u32,
    /// Bytes before the block, in an export.
    offset: u64,
    hash: B256,
}

/// The blocks of a chain's files.
pub struct BlockFiles {
    files: Vec<BlockFile>,
    /// The places of the blocks, ascending by number.
    places: Vec<Place>,
    /// The number of the first.
    first: u64,
    hashes: HashMap<B256, u64>,
    /// The begin of each transaction's hash, with its block and place, ascending.
    transactions: Vec<(u64, u32, u32)>,
    rules: SignatureRules,
    /// Block 0, which exports lack.
    genesis: Block<Transaction>,
    genesis_hash: B256,
}

/// Finds out where blocks can be read again.
#[derive(Default)]
struct Placing {
    files: Vec<BlockFile>,
    /// The file that blocks come from, and its place among the files; `None` if it is copied.
    current: Option<(Arc<Path>, Option<u32>)>,
    /// The copy of all gzips, its place among the files and its bytes.
    copy: Option<(File, u32, u64)>,
}

impl Placing {
    /// Returns the place of a block among the files that it comes from.
    fn place(&mut self, block: &SourceBlock) -> Result<Place, BlockFilesError> {
        let Position { file, offset, .. } = &block.position;
        let known = self.current.as_ref().filter(|(path, _)| path == file);
        let index = match known {
            Some((_, index)) => *index,
            None => {
                let index = self.open(file)?;
                self.current = Some((Arc::clone(file), index));
                index
            }
        };
        let bytes = u32::try_from(block.rlp_len).unwrap_or(u32::MAX);
        let (file, offset) = match index {
            Some(index) => (index, *offset),
            None => self.copy(block)?,
        };
        Ok(Place {
            file,
            bytes,
            offset,
            hash: block.hash,
        })
    }

    /// Opens a file for reading in its middle; `None` for a gzip.
    fn open(&mut self, path: &Path) -> Result<Option<u32>, BlockFilesError> {
        const GZIP: [u8; 2] = [0x1f, 0x8b];
        /// How an era1 file begins: an entry with the version.
        const E2STORE: [u8; 2] = [0x65, 0x32];
        let failed = |source| BlockFilesError::File {
            file: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(failed)?;
        let mut begin = [0; 2];
        file.read_exact(&mut begin).map_err(failed)?;
        let file = match begin {
            GZIP => return Ok(None),
            E2STORE => BlockFile::Era1(Box::new(Mutex::new(Era1File::open(path)?))),
            _ => BlockFile::Export(Mutex::new(file)),
        };
        Ok(Some(self.add(file)))
    }

    fn add(&mut self, file: BlockFile) -> u32 {
        self.files.push(file);
        u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)
    }

    /// Copies a block of a gzip; returns the place of the copy among the files, and the block's in it.
    fn copy(&mut self, block: &SourceBlock) -> Result<(u32, u64), BlockFilesError> {
        let failed = |source| BlockFilesError::Copy {
            folder: std::env::temp_dir(),
            source,
        };
        let (mut file, index, end) = match self.copy.take() {
            Some(copy) => copy,
            None => {
                let file = tempfile::tempfile().map_err(failed)?;
                let reading = file.try_clone().map_err(failed)?;
                let index = self.add(BlockFile::Export(Mutex::new(reading)));
                (file, index, 0)
            }
        };
        let rlp = alloy_rlp::encode(&block.block);
        file.write_all(&rlp).map_err(failed)?;
        self.copy = Some((file, index, end + rlp.len() as u64));
        Ok((index, end))
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BlockFiles {
    /// Reads the places of the blocks of a chain's files.
    ///
    /// # Errors
    /// [`BlockFilesError`].
    pub fn read(chain: &[PathBuf], genesis: &Genesis) -> Result<Self, BlockFilesError> {
        let mut input = open_sources(chain)?;
        let first = input.first().number;
        let mut placing = Placing::default();
        let mut files = Self {
            files: Vec::new(),
            places: Vec::new(),
            first,
            hashes: HashMap::new(),
            transactions: Vec::new(),
            rules: SignatureRules::new(&genesis.spec),
            genesis: Block {
                header: genesis.header.clone(),
                body: BlockBody {
                    withdrawals: (genesis.header.withdrawals_root).map(|_| Withdrawals::default()),
                    ..BlockBody::default()
                },
            },
            genesis_hash: genesis.hash,
        };
        while let Some(raw) = input.next_raw()? {
            let block = raw.decode()?;
            let number = block.block.header.number;
            files.places.push(placing.place(&block)?);
            files.hashes.insert(block.hash, number);
            let place = u32::try_from(number - first).unwrap_or(u32::MAX);
            let transactions = (0..).zip(&block.block.body.transactions);
            let named = transactions.map(|(index, tx)| (begin_of(tx.tx_hash()), place, index));
            files.transactions.extend(named);
        }
        files.files = placing.files;
        files.transactions.sort_unstable();
        Ok(files)
    }

    /// Checks that the files are of a database's chain, by a block that the database has.
    ///
    /// # Errors
    /// [`BlockFilesError::OtherChain`].
    pub fn check(&self, number: u64, expected: B256) -> Result<(), BlockFilesError> {
        match self.hash(number) {
            Some(found) if found != expected => Err(BlockFilesError::OtherChain {
                number,
                found,
                expected,
            }),
            _ => Ok(()),
        }
    }

    /// The hash of a block; `None` if the files do not have it. Looks at all.
    #[must_use]
    pub fn hash(&self, number: u64) -> Option<B256> {
        let mut hashes = self.hashes.iter();
        hashes.find_map(|(hash, of)| (*of == number).then_some(*hash))
    }

    /// The numbers of the first and the last block.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        let count = self.places.len() as u64;
        (self.first, (self.first + count).saturating_sub(1))
    }

    /// The number of the block with this hash.
    pub(crate) fn number_of(&self, hash: B256) -> Option<u64> {
        self.hashes.get(&hash).copied()
    }

    /// A block with its senders; `None` if the files do not have it.
    pub(crate) fn block(&self, number: u64) -> Result<Option<RecoveredBlock>, RpcError> {
        let place = number
            .checked_sub(self.first)
            .and_then(|place| usize::try_from(place).ok());
        let Some(place) = place.and_then(|place| self.places.get(place)) else {
            return Ok((number == 0).then(|| self.genesis_block()));
        };
        let unread =
            |error: InputError| RpcError::server(format!("reading block {number}: {error}"));
        let raw = self.raw(number, *place).map_err(unread)?;
        let block = prepare(raw, self.rules).map_err(unread)?;
        let header = &block.block.header;
        let is_whole = block.hash == place.hash
            && block.transactions_root == header.transactions_root
            && block.ommers_hash == header.ommers_hash
            && block.withdrawals_root == header.withdrawals_root;
        match is_whole {
            true => Ok(Some(block)),
            false => Err(RpcError::server(format!(
                "block {number} is another one than when the server began: the files of the chain have changed"
            ))),
        }
    }

    fn raw(&self, number: u64, place: Place) -> Result<RawBlock, InputError> {
        let file = match &self.files[place.file as usize] {
            BlockFile::Era1(file) => return Ok(locked(file).block_at(number)?),
            BlockFile::Export(file) => file,
        };
        let mut rlp = vec![0; place.bytes as usize];
        let mut file = locked(file);
        let read = file
            .seek(SeekFrom::Start(place.offset))
            .and_then(|_| file.read_exact(&mut rlp));
        let name = Path::new("a file of the chain");
        read.map_err(|source| SourceError::Io {
            file: name.to_owned(),
            offset: place.offset,
            source,
        })?;
        let position = Position {
            file: Arc::from(name),
            offset: place.offset,
            ordinal: number - self.first,
        };
        Ok(RawBlock::from_export(position, &rlp.into())?)
    }

    fn genesis_block(&self) -> RecoveredBlock {
        let header = &self.genesis.header;
        RecoveredBlock {
            transactions_root: header.transactions_root,
            ommers_hash: header.ommers_hash,
            withdrawals_root: header.withdrawals_root,
            block: self.genesis.clone(),
            hash: self.genesis_hash,
            senders: Vec::<Address>::new(),
            rlp_len: self.genesis.length(),
            position: Position {
                file: Arc::from(Path::new("the genesis")),
                offset: 0,
                ordinal: 0,
            },
            total_difficulty: None,
            receipts: None,
        }
    }

    /// The block and the place of a transaction in it; `None` if the files do not have it.
    pub(crate) fn transaction(
        &self,
        hash: B256,
    ) -> Result<Option<(RecoveredBlock, usize)>, RpcError> {
        let begin = begin_of(&hash);
        let from = self
            .transactions
            .partition_point(|(other, ..)| *other < begin);
        let alike = self.transactions[from..].iter();
        for &(_, place, index) in alike.take_while(|(other, ..)| *other == begin) {
            let Some(block) = self.block(self.first + u64::from(place))? else {
                continue;
            };
            let index = index as usize;
            let found = block.block.body.transactions.get(index);
            if found.is_some_and(|tx| *tx.tx_hash() == hash) {
                return Ok(Some((block, index)));
            }
        }
        Ok(None)
    }
}

/// The first eight bytes of a hash.
fn begin_of(hash: &B256) -> u64 {
    let (begin, _) = hash
        .split_first_chunk()
        .expect("invariant: a hash has 32 bytes");
    u64::from_be_bytes(*begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_era1_files_are_read_in_any_order() {
        let test = "blocks_of_era1_files_are_read_in_any_order";
        let name = "data/era1/sepolia-00000-643a00f7.era1";
        let Some(file) = arbor_testdata::find(test, name) else {
            return;
        };
        let genesis = Genesis::load("sepolia").expect("a network");
        let blocks = BlockFiles::read(&[file], &genesis).expect("sound");
        assert_eq!(blocks.range(), (0, 8191));
        for number in [8191, 0, 4000, 1] {
            let block = blocks.block(number).expect("read").expect("there");
            assert_eq!(block.block.header.number, number);
        }
        assert!(blocks.block(8192).expect("read").is_none());
    }
}
