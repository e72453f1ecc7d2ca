//! The blocks of a chain's files, by number, hash and transaction.
//!
//! A compressed file cannot be read from its middle. So all blocks are copied once, when the server
//! begins, into a file without a name in the system's temporary folder, which goes with the
//! process. In memory are 24 bytes for each block, 60 for its hash, and 16 for each transaction.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use alloy_consensus::{Block, BlockBody};
use alloy_eips::eip4895::Withdrawals;
use alloy_primitives::{Address, B256, Bytes};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{InputError, RecoveredBlock, SignatureRules, prepare};
use arbor_chain::source::{Position, RawBlock, SourceError, Transaction, open_sources};

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
    /// The copy cannot be written.
    #[error("copying blocks into the temporary folder {}: {source}", .folder.display())]
    Copy {
        /// The system's temporary folder.
        folder: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
}

/// The blocks of a chain's files.
pub struct BlockFiles {
    copy: Mutex<File>,
    /// The begin of each block in the copy, and of what would follow the last.
    begins: Vec<u64>,
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

impl BlockFiles {
    /// Copies the blocks of a chain's files.
    ///
    /// # Errors
    /// [`BlockFilesError`].
    pub fn read(chain: &[PathBuf], genesis: &Genesis) -> Result<Self, BlockFilesError> {
        let copy_error = |source| BlockFilesError::Copy {
            folder: std::env::temp_dir(),
            source,
        };
        let mut input = open_sources(chain)?;
        let first = input.first().number;
        let mut out = BufWriter::new(tempfile::tempfile().map_err(copy_error)?);
        let mut files = Self {
            begins: vec![0],
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
            copy: Mutex::new(out.get_ref().try_clone().map_err(copy_error)?),
        };
        let mut end = 0;
        while let Some(raw) = input.next_raw()? {
            let block = raw.decode()?;
            let number = block.block.header.number;
            let rlp = alloy_rlp::encode(&block.block);
            out.write_all(&rlp).map_err(copy_error)?;
            end += rlp.len() as u64;
            files.begins.push(end);
            files.hashes.insert(block.hash, number);
            let place = u32::try_from(number - first).unwrap_or(u32::MAX);
            let transactions = (0..).zip(&block.block.body.transactions);
            let named = transactions.map(|(index, tx)| (begin_of(tx.tx_hash()), place, index));
            files.transactions.extend(named);
        }
        out.flush().map_err(copy_error)?;
        files.transactions.sort_unstable();
        Ok(files)
    }

    /// Checks that the files are of a database's chain, by a block that the database has.
    ///
    /// # Errors
    /// [`BlockFilesError::OtherChain`].
    pub fn check(&self, number: u64, expected: B256) -> Result<(), BlockFilesError> {
        let found = self.hashes.iter().find(|(_, of)| **of == number);
        match found {
            Some((found, _)) if *found != expected => Err(BlockFilesError::OtherChain {
                number,
                found: *found,
                expected,
            }),
            _ => Ok(()),
        }
    }

    /// The numbers of the first and the last block.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        let count = self.begins.len() as u64 - 1;
        (self.first, (self.first + count).saturating_sub(1))
    }

    /// The number of the block with this hash.
    pub(crate) fn number_of(&self, hash: B256) -> Option<u64> {
        self.hashes.get(&hash).copied()
    }

    /// The RLP of a block; `None` if the files do not have it.
    pub(crate) fn rlp(&self, number: u64) -> Result<Option<Bytes>, RpcError> {
        let place = number
            .checked_sub(self.first)
            .and_then(|place| usize::try_from(place).ok());
        let place = place.filter(|place| *place + 1 < self.begins.len());
        let Some(place) = place else {
            return Ok((number == 0).then(|| alloy_rlp::encode(&self.genesis).into()));
        };
        let (begin, end) = (self.begins[place], self.begins[place + 1]);
        let mut rlp = vec![0; usize::try_from(end - begin).unwrap_or_default()];
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        let read = copy
            .seek(SeekFrom::Start(begin))
            .and_then(|_| copy.read_exact(&mut rlp));
        read.map_err(|error| RpcError::server(format!("reading block {number}: {error}")))?;
        Ok(Some(rlp.into()))
    }

    /// A block with its senders; `None` if the files do not have it.
    pub(crate) fn block(&self, number: u64) -> Result<Option<RecoveredBlock>, RpcError> {
        let Some(rlp) = self.rlp(number)? else {
            return Ok(None);
        };
        if number == 0 {
            return Ok(Some(self.genesis_block(rlp.len())));
        }
        let unread =
            |error: InputError| RpcError::server(format!("reading block {number}: {error}"));
        let position = Position {
            file: Arc::from(Path::new("the copy of the chain's files")),
            offset: 0,
            ordinal: 0,
        };
        let raw = RawBlock::from_export(position, &rlp).map_err(|error| unread(error.into()))?;
        Ok(Some(prepare(raw, self.rules).map_err(unread)?))
    }

    fn genesis_block(&self, rlp_len: usize) -> RecoveredBlock {
        let header = &self.genesis.header;
        RecoveredBlock {
            transactions_root: header.transactions_root,
            ommers_hash: header.ommers_hash,
            withdrawals_root: header.withdrawals_root,
            block: self.genesis.clone(),
            hash: self.genesis_hash,
            senders: Vec::<Address>::new(),
            rlp_len,
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
