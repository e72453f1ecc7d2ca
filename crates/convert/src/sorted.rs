//! A sorted state, as a tree is loaded from it.

use std::path::Path;

use alloy_primitives::{B256, Bytes};
use arbor_state::{
    AccountOrder, AccountSource, KeyedAccount, KeyedAccounts, ReadError, check_listed_once,
};

use crate::ConvertError;
use crate::codes::CodeFile;
use crate::done::Done;
use crate::frames::Frames;
use crate::record;
use crate::runs::{SortKey, SortedRuns};
use crate::sorting::SortFiles;

/// Finds the code with a hash.
pub(crate) type CodeByHash<'a> = &'a (dyn Fn(B256) -> Result<Bytes, ReadError> + Sync);

/// The part of the memory, for each thread, that a file may have to be sorted in memory: accounts take about three times the bytes of
/// their records. The accounts of a larger file are sorted in runs of as many bytes.
const PART_OF_MEMORY: u64 = 4;
/// The least bytes of a run.
const LEAST_RUN: u64 = 1 << 10;

/// Bytes of a file that are sorted in memory, by each thread of the current pool, if the pool has so much memory.
pub(crate) fn sorted_in_memory(memory: u64) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    (memory / PART_OF_MEMORY / threads.max(1)).max(LEAST_RUN)
}

/// A state in the files of a sorting that is complete. In memory is one range for each reader, or a part of a large one.
pub(crate) struct SortedFiles<'a> {
    files: SortFiles,
    order: &'static AccountOrder,
    done: Done,
    codes: CodeFile,
    /// Bytes of a file that are sorted together.
    in_memory: u64,
    /// Finds the codes that the files do not have.
    code: Option<CodeByHash<'a>>,
}

impl<'a> SortedFiles<'a> {
    /// Opens the files in a folder. `memory` is shared by the threads of the current pool.
    pub(crate) fn open(
        folder: &Path,
        order: &'static AccountOrder,
        memory: u64,
        code: Option<CodeByHash<'a>>,
    ) -> Result<Self, ConvertError> {
        let files = SortFiles::in_folder(folder);
        let done = Done::read(&files.done())?;
        let codes = CodeFile::open(files.codes(), &done)?;
        Ok(Self {
            files,
            order,
            done,
            codes,
            in_memory: sorted_in_memory(memory),
            code,
        })
    }

    /// The accounts whose keys have this first byte, ascending by key, one after another.
    fn stream_range(&self, first: u8) -> Result<KeyedAccounts<'_>, ReadError> {
        let path = self.files.accounts(first);
        let length = std::fs::metadata(&path).map_or(0, |found| found.len());
        if length <= self.in_memory {
            return Ok(Box::new(self.range(first)?.into_iter().map(Ok)));
        }
        let counts = |origin| self.done.counts(origin);
        let runs = SortedRuns::of(&path, self.order, self.in_memory as usize, counts)?;
        let accounts = self.order.keyed(runs.map(|account| Ok(account?)));
        let mut last: Option<SortKey> = None;
        Ok(Box::new(accounts.map(move |account| {
            let account = account?;
            check_listed_once(std::slice::from_ref(&account))?;
            if last.replace(account.key) == Some(account.key) {
                let address = account.address;
                return Err(ReadError::new(format!(
                    "account {address:#x} is listed twice"
                )));
            }
            Ok(account)
        })))
    }

    /// The accounts whose keys have this first byte, ascending by key.
    fn range(&self, first: u8) -> Result<Vec<KeyedAccount>, ConvertError> {
        let path = self.files.accounts(first);
        let mut frames = Frames::open(&path)?;
        let mut accounts = Vec::new();
        while let Some(frame) = frames.next_of(|origin| self.done.counts(origin))? {
            let payload = frames.payload(&frame)?;
            let mut rest = &payload[..];
            let mut page = Vec::new();
            while !rest.is_empty() {
                let account = record::decode(&mut rest).ok_or_else(|| ConvertError::Damaged {
                    path: path.clone(),
                    offset: frame.begin,
                    why: "a record of an account is malformed",
                })?;
                page.push(account);
            }
            accounts.append(&mut self.order.with_keys(page));
        }
        accounts.sort_unstable_by_key(|account| account.key);
        check_listed_once(&accounts)?;
        Ok(accounts)
    }
}

impl AccountSource for SortedFiles<'_> {
    fn order(&self) -> &'static AccountOrder {
        self.order
    }

    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
        let ranges = match first {
            Some(first) => first..=first,
            None => 0..=u8::MAX,
        };
        let accounts = ranges.flat_map(|first| {
            let accounts = self.stream_range(first);
            accounts.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        });
        Ok(Box::new(accounts))
    }

    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        match self.code {
            Some(code) => code(code_hash),
            None => self.codes.get(code_hash),
        }
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::{Address, KECCAK256_EMPTY, U256};
    use arbor_state::{Account, BY_KECCAK, BY_NAME, FullAccount};

    use super::*;
    use crate::frames::{FrameFile, Origin};

    /// Account `number` of many whose addresses have the same first byte.
    fn account(number: u64) -> FullAccount {
        let mut address = Address::repeat_byte(7);
        address[12..].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
        let slots = if number == 5 { 30_000 } else { number % 4 };
        let slots = (0..slots).map(|slot| (U256::from(slot * number), U256::from(slot + 1)));
        FullAccount {
            address,
            account: Account {
                nonce: number,
                balance: U256::from(number),
                code_hash: KECCAK256_EMPTY,
            },
            slots: slots.collect(),
        }
    }

    fn write(folder: &Path, first: u8, frames: &[Vec<FullAccount>]) {
        let files = SortFiles::in_folder(folder);
        let file = FrameFile::new(files.accounts(first));
        for accounts in frames {
            let mut bytes = Vec::new();
            accounts
                .iter()
                .for_each(|account| record::encode(account, &mut bytes));
            file.append(Origin { part: 0, run: 1 }, &bytes).unwrap();
        }
        let done_file = crate::done::DoneFile::open(files.done(), &Done::default()).unwrap();
        done_file.add(Origin { part: 0, run: 1 }).unwrap();
    }

    #[test]
    fn a_large_range_is_the_same_in_runs_as_in_memory() {
        for (order, first) in [(&BY_NAME, 7), (&BY_KECCAK, 9)] {
            let folder = tempfile::tempdir().unwrap();
            let frames: Vec<Vec<FullAccount>> = (0..4)
                .map(|frame| (frame * 700 + 1..=frame * 700 + 700).map(account).collect())
                .collect();
            write(folder.path(), first, &frames);
            let mut files = SortedFiles::open(folder.path(), order, u64::MAX, None).unwrap();
            let all = |files: &SortedFiles<'_>| -> Vec<KeyedAccount> {
                let accounts = files.stream(Some(first)).unwrap();
                accounts.collect::<Result<_, _>>().unwrap()
            };
            let wanted = all(&files);
            assert_eq!(wanted.len(), 2_800);
            for in_memory in [1 << 10, 1 << 14, 100_000] {
                files.in_memory = in_memory;
                assert!(all(&files) == wanted, "{in_memory}");
            }
            // Only the file of the sorting is left.
            let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| {
                let name = entry.unwrap().file_name();
                name.to_string_lossy().into_owned()
            });
            assert!(left.into_iter().all(|name| !name.contains("runs")));
        }
    }

    #[test]
    fn an_account_in_two_runs_is_listed_twice() {
        let folder = tempfile::tempdir().unwrap();
        let accounts: Vec<FullAccount> = (10..500).map(account).collect();
        write(folder.path(), 7, &[accounts, vec![account(77)]]);
        let mut files = SortedFiles::open(folder.path(), &BY_NAME, u64::MAX, None).unwrap();
        for in_memory in [u64::MAX, 1 << 10] {
            files.in_memory = in_memory;
            let found: Result<Vec<KeyedAccount>, ReadError> =
                files.stream(Some(7)).unwrap().collect();
            let error = found.unwrap_err().to_string();
            assert!(error.contains("is listed twice"), "{error}");
        }
    }
}
