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
use crate::sorting::SortFiles;

/// Finds the code with a hash.
pub(crate) type CodeByHash<'a> = &'a (dyn Fn(B256) -> Result<Bytes, ReadError> + Sync);

/// A state in the files of a sorting that is complete. In memory is one range, a 256th of the state, for each reader.
pub(crate) struct SortedFiles<'a> {
    files: SortFiles,
    order: &'static AccountOrder,
    done: Done,
    codes: CodeFile,
    /// Finds the codes that the files do not have.
    code: Option<CodeByHash<'a>>,
}

impl<'a> SortedFiles<'a> {
    pub(crate) fn open(
        folder: &Path,
        order: &'static AccountOrder,
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
            code,
        })
    }

    /// The accounts whose keys have this first byte, ascending by key.
    fn range(&self, first: u8) -> Result<Vec<KeyedAccount>, ConvertError> {
        let path = self.files.accounts(first);
        let mut frames = Frames::open(&path)?;
        let mut accounts = Vec::new();
        while let Some(frame) = frames.next()? {
            if !self.done.counts(frame.origin) {
                frames.skip(&frame)?;
                continue;
            }
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
            let (accounts, error) = match self.range(first) {
                Ok(accounts) => (accounts, None),
                Err(error) => (Vec::new(), Some(Err(error.into()))),
            };
            accounts.into_iter().map(Ok).chain(error)
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
