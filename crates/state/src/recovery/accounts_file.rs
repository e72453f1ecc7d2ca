//! A list of accounts as a state that other trees are loaded from.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use alloy_primitives::{Address, B256, Bytes, keccak256};

use super::file::{CODE_LENGTH, FRAME, MAGIC};
use super::{AccountEntry, Chunk, EntriesHead, EntriesReader, RecoveryError, Totals};
use crate::{
    AccountOrder, AccountSource, FullAccount, FullAccounts, KeyedAccounts, ReadError, Registry,
};

/// A file of accounts that was read once to its end, so that its checks hold and its accounts ascend.
#[derive(Debug)]
pub struct AccountsFile {
    path: PathBuf,
    head: EntriesHead,
    order: &'static AccountOrder,
    totals: Totals,
    chunks: Vec<ChunkPlace>,
    /// The offset and the length of each code.
    codes: BTreeMap<B256, (u64, usize)>,
}

/// Where a chunk of accounts is.
#[derive(Clone, Copy, Debug)]
struct ChunkPlace {
    offset: u64,
    /// The first byte of the key of the first account.
    first: u8,
}

impl AccountsFile {
    /// Whether a file begins as lists of accounts and leaves do.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn is_one(path: &Path) -> std::io::Result<bool> {
        let mut begin = Vec::new();
        File::open(path)?
            .take(MAGIC.len() as u64)
            .read_to_end(&mut begin)?;
        Ok(begin == MAGIC)
    }

    /// Reads a file, to look up its accounts later. The tree that the file is of is one of those known.
    ///
    /// # Errors
    /// A file that cannot be read or is malformed; a tree that is not known; a list of leaves; accounts that do not
    /// ascend.
    pub fn open(path: &Path, known: &Registry) -> Result<Self, RecoveryError> {
        let open = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|error| RecoveryError::File { offset: 0, error })?;
        let mut reader = EntriesReader::new(BufReader::new(file), length)?;
        let head = reader.head().clone();
        let tree = head.tree(known)?;
        let order = tree.order();
        let (mut chunks, mut codes) = (Vec::new(), BTreeMap::new());
        let mut last = None;
        loop {
            let offset = reader.offset();
            match reader.next_chunk()? {
                None => break,
                Some(Chunk::Leaves(_) | Chunk::Names(_)) => {
                    return Err(RecoveryError::OfLeaves(tree.kind().name));
                }
                Some(Chunk::Past(_)) => {}
                Some(Chunk::Codes(found)) => {
                    let mut begin = offset + FRAME as u64;
                    for code in found {
                        begin += CODE_LENGTH;
                        codes.insert(keccak256(&code), (begin, code.len()));
                        begin += code.len() as u64;
                    }
                }
                Some(Chunk::Accounts(entries)) => {
                    let first = check_order(order, &entries, &mut last)?;
                    chunks.extend(first.map(|first| ChunkPlace { offset, first }));
                }
            }
        }
        Ok(Self {
            path: path.to_owned(),
            head,
            order,
            totals: reader.totals(),
            chunks,
            codes,
        })
    }

    /// Returns what the file begins with.
    pub fn head(&self) -> &EntriesHead {
        &self.head
    }

    /// Returns what the file has.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The file, to be read from an offset on.
    fn at(&self, offset: u64) -> Result<File, ReadError> {
        let open = || {
            let mut file = File::open(&self.path)?;
            file.seek(SeekFrom::Start(offset))?;
            Ok(file)
        };
        open().map_err(|error| ReadError::below(RecoveryError::File { offset, error }))
    }

    fn chunk(&self, offset: u64) -> Result<Chunk, ReadError> {
        let input = BufReader::new(self.at(offset)?);
        let chunk = EntriesReader::at(input, self.head.clone(), offset).next_chunk();
        let chunk = chunk.map_err(ReadError::below)?;
        chunk.ok_or_else(|| changed(&self.path))
    }

    /// The accounts of all chunks that may have keys with this first byte.
    fn entries(
        &self,
        first: Option<u8>,
    ) -> impl Iterator<Item = Result<AccountEntry, ReadError>> + '_ {
        let (from, to) = match first {
            None => (0, self.chunks.len()),
            Some(first) => (
                // The chunk before the first that begins with this byte may end with it.
                self.chunks
                    .partition_point(|chunk| chunk.first < first)
                    .saturating_sub(1),
                self.chunks.partition_point(|chunk| chunk.first <= first),
            ),
        };
        self.chunks[from..to].iter().flat_map(|place| {
            let (entries, error) = match self.chunk(place.offset) {
                Ok(Chunk::Accounts(entries)) => (entries, None),
                Ok(_) => (Vec::new(), Some(Err(changed(&self.path)))),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            entries.into_iter().map(Ok).chain(error)
        })
    }
}

fn changed(path: &Path) -> ReadError {
    ReadError::new(format!("{} changed while it was read", path.display()))
}

/// Checks that accounts ascend, also after the last one of the chunk before, and returns the first byte of the key of the
/// first. Slots of one account may be in several chunks.
fn check_order(
    order: &AccountOrder,
    entries: &[AccountEntry],
    last: &mut Option<([u8; 32], Address)>,
) -> Result<Option<u8>, RecoveryError> {
    let addresses: Vec<Address> = entries.iter().map(|entry| entry.address).collect();
    let mut keys = vec![[0; 32]; addresses.len()];
    (order.account_keys)(&addresses, &mut keys);
    for (place, (key, address)) in keys.iter().zip(&addresses).enumerate() {
        let goes_on = place == 0 && *last == Some((*key, *address));
        if last.is_some_and(|(last, _)| last >= *key) && !goes_on {
            return Err(RecoveryError::Account {
                address: *address,
                why: "comes twice, or not in the order of the tree",
            });
        }
        *last = Some((*key, *address));
    }
    Ok(keys.first().map(|key| key[0]))
}

impl AccountSource for AccountsFile {
    fn order(&self) -> &'static AccountOrder {
        self.order
    }

    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
        Ok(self.order.keyed(self.full(first)?))
    }

    fn full(&self, first: Option<u8>) -> Result<FullAccounts<'_>, ReadError> {
        let mut entries = self.entries(first).peekable();
        let mut next = move || -> Result<Option<FullAccount>, ReadError> {
            loop {
                let Some(entry) = entries.next().transpose()? else {
                    return Ok(None);
                };
                let AccountEntry {
                    address,
                    account,
                    mut slots,
                } = entry;
                let goes_on = |entry: &Result<AccountEntry, ReadError>| {
                    entry.as_ref().is_ok_and(|entry| entry.address == address)
                };
                while let Some(more) = entries.next_if(goes_on) {
                    slots.extend(more?.slots);
                }
                let mut key = [[0; 32]];
                (self.order.account_keys)(&[address], &mut key);
                let is_wanted = first.is_none_or(|first| first == key[0][0]);
                if let Some(account) = account
                    && is_wanted
                {
                    slots.retain(|(_, value)| !value.is_zero());
                    return Ok(Some(FullAccount {
                        address,
                        account,
                        slots,
                    }));
                }
            }
        };
        Ok(Box::new(std::iter::from_fn(move || next().transpose())))
    }

    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        let Some((offset, length)) = self.codes.get(&code_hash) else {
            return Err(ReadError::MissingCode(code_hash));
        };
        let mut code = vec![0; *length];
        let mut file = self.at(*offset)?;
        file.read_exact(&mut code)
            .map_err(|_| changed(&self.path))?;
        Ok(code.into())
    }
}
