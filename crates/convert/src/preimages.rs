//! Preimages of a whole state: which are missing, and files of them.

use std::io::Write;
use std::path::{Path, PathBuf};

use alloy_primitives::U256;
use arbor_state::{Account, AccountSource, BY_KECCAK, FullAccount, KeyedAccount};
use rayon::prelude::*;

use crate::ConvertError;
use crate::audit::Audit;
use crate::counts::Counts;
use crate::dump::Dump;
use crate::naming::{HashedAccount, Naming};
use crate::preimage_file::{Preimage, PreimageFile, PreimageForm};
use crate::progress::{Hooks, Phase, Watch};
use crate::sorted::SortedFiles;
use crate::sorting::{Sorting, sort_ranges};

/// A state whose hashed keys are to have names.
pub enum HashedSource<'a> {
    /// A state with names, which are hashed and then left aside.
    State(&'a dyn AccountSource),
    /// A dump of hashed keys, as `geth snapshot dump` writes it.
    Dump(Dump),
}

/// The form of a file of preimages that is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrittenForm {
    /// EIP-8347's records, ascending by the Keccak-256 of addresses and slot numbers.
    Eip8347,
    /// RLP strings, as `geth snapshot export-preimages` writes them.
    Strings,
}

/// Files of preimages in work, in a folder that is empty at first and has scratch files afterwards.
pub struct Preimages<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// Bytes for sorting and for names.
    pub memory: u64,
    /// What is called on the way.
    pub hooks: Hooks<'a>,
}

impl Preimages<'_> {
    /// Counts the hashed keys of a source that have no name in files of preimages, and lists them by account. Called on a
    /// thread of a rayon pool, it spreads the work over the pool.
    ///
    /// # Errors
    /// A source or a file that cannot be read; scratch files that cannot be written.
    pub fn audit(
        &self,
        source: HashedSource<'_>,
        files: &[PathBuf],
    ) -> Result<Audit, ConvertError> {
        let watch = Watch::new(&self.hooks, Phase::Sort);
        let naming = Naming::open(self.folder, (self.memory, 1), &watch)?;
        let audit = self.take_in(&naming, source, files)?;
        naming.remove()?;
        Ok(audit)
    }

    fn take_in(
        &self,
        naming: &Naming<'_>,
        source: HashedSource<'_>,
        files: &[PathBuf],
    ) -> Result<Audit, ConvertError> {
        let names = naming.read_names(files)?;
        let counts = match source {
            HashedSource::Dump(dump) => {
                let mut lines = dump.into_lines();
                let mut accounts = std::iter::from_fn(|| lines.hashed().transpose());
                naming.read_accounts(&mut accounts.by_ref().map(|line| Ok(line?.account)))?
            }
            HashedSource::State(source) => {
                let accounts = source.full(None)?;
                let mut hashed = BY_KECCAK.keyed(accounts);
                naming.read_accounts(
                    &mut hashed.by_ref().map(|account| Ok(without_names(&account?))),
                )?
            }
        };
        naming.finish_accounts(counts)?;
        naming.find_names(names, counts)
    }

    /// Writes the preimages of a state with names.
    ///
    /// # Errors
    /// A source that cannot be read; files that cannot be written.
    pub fn export(
        &self,
        source: &dyn AccountSource,
        form: WrittenForm,
        out: &mut dyn Write,
    ) -> Result<u64, ConvertError> {
        if *source.order() == BY_KECCAK {
            return self.write(source, form, out);
        }
        let watch = Watch::new(&self.hooks, Phase::Sort);
        let sorting = Sorting::open(self.folder, &BY_KECCAK, (self.memory, 1), &watch)?;
        sort_ranges(source, &sorting)?;
        sorting.finish()?;
        self.write(
            &SortedFiles::open(self.folder, &BY_KECCAK, self.memory, None)?,
            form,
            out,
        )
    }

    /// Writes the preimages of a source in the order of its keys, which are hashes: the key of an account tells which
    /// part is done.
    fn write(
        &self,
        source: &dyn AccountSource,
        form: WrittenForm,
        out: &mut dyn Write,
    ) -> Result<u64, ConvertError> {
        let watch = Watch::new(&self.hooks, Phase::Build);
        let (mut names, mut counted) = (0, Counts::default());
        for account in source.stream(None)? {
            let account = account?;
            names += write_account(&account, form, out)?;
            counted.accounts += 1;
            counted.slots += account.slots.len() as u64;
            if counted.accounts == TOLD_EVERY {
                watch.check()?;
                watch.count(std::mem::take(&mut counted));
                let first = account
                    .key
                    .first_chunk()
                    .map_or(0, |first| u32::from_be_bytes(*first));
                watch.done(f64::from(first) / f64::from(u32::MAX));
            }
        }
        Ok(names)
    }

    /// Sorts files of records, which name the account of each slot, into one file.
    ///
    /// # Errors
    /// A file of another form, or that cannot be read; an account or a slot that is there twice.
    pub fn import(
        &self,
        files: &[PathBuf],
        form: WrittenForm,
        out: &mut dyn Write,
    ) -> Result<u64, ConvertError> {
        let watch = Watch::new(&self.hooks, Phase::Sort);
        let sorting = Sorting::open(self.folder, &BY_KECCAK, (self.memory, 1), &watch)?;
        let mut part = sorting.part(0);
        for path in files {
            let mut file = PreimageFile::open(path)?;
            if file.form() != PreimageForm::Records {
                return Err(ConvertError::Preimages {
                    path: path.clone(),
                    offset: 0,
                    why: "its slots do not say which account they belong to: give the dump of hashed keys with --from",
                });
            }
            let mut account = None;
            loop {
                match file.read_next()? {
                    Some(Preimage::Slot(slot)) => {
                        if let Some(FullAccount { slots, .. }) = &mut account {
                            slots.push((slot.into(), U256::ONE));
                        }
                    }
                    next => {
                        if let Some(account) = account.take() {
                            part.add(account)?;
                        }
                        let Some(Preimage::Address(address)) = next else {
                            break;
                        };
                        account = Some(FullAccount {
                            address,
                            account: Account {
                                nonce: 0,
                                balance: U256::ZERO,
                                code_hash: alloy_primitives::KECCAK256_EMPTY,
                            },
                            slots: Vec::new(),
                        });
                    }
                }
            }
        }
        part.finish()?;
        sorting.finish()?;
        self.write(
            &SortedFiles::open(self.folder, &BY_KECCAK, self.memory, None)?,
            form,
            out,
        )
    }

    /// Writes the preimages of a dump of hashed keys, with the names in files of any form.
    ///
    /// # Errors
    /// [`ConvertError::MissingNames`]; a dump or a file that cannot be read.
    pub fn import_of(
        &self,
        dump: Dump,
        files: &[PathBuf],
        form: WrittenForm,
        out: &mut dyn Write,
    ) -> Result<u64, ConvertError> {
        let watch = Watch::new(&self.hooks, Phase::Sort);
        let naming = Naming::open(self.folder, (self.memory, 1), &watch)?;
        let audit = self.take_in(&naming, HashedSource::Dump(dump), files)?;
        if !audit.is_complete() {
            return Err(ConvertError::MissingNames(Box::new(audit)));
        }
        let mut names = 0;
        for first in 0..=u8::MAX {
            let mut accounts = BY_KECCAK.with_keys(naming.named(first)?);
            accounts.par_sort_unstable_by_key(|account| account.key);
            for account in &accounts {
                names += write_account(account, form, out)?;
            }
        }
        naming.remove()?;
        Ok(names)
    }
}

/// An account and its slots by their hashed keys alone.
fn without_names(account: &KeyedAccount) -> HashedAccount {
    let slots = account.slots.iter();
    HashedAccount {
        key: account.key.into(),
        account: account.account,
        slots: slots.map(|slot| (slot.key.into(), slot.value)).collect(),
    }
}

/// Accounts between two reports of the progress.
const TOLD_EVERY: u64 = 256;

/// Writes the preimages of an account and its slots; returns how many there are.
fn write_account(
    account: &KeyedAccount,
    form: WrittenForm,
    out: &mut dyn Write,
) -> Result<u64, ConvertError> {
    let mut bytes = Vec::with_capacity(24 + 33 * account.slots.len());
    let slots = account
        .slots
        .iter()
        .map(|slot| slot.slot.to_be_bytes::<32>());
    match form {
        WrittenForm::Eip8347 => {
            bytes.extend_from_slice(account.address.as_slice());
            let count = u32::try_from(account.slots.len());
            let count = count.map_err(|_| ConvertError::Slots(account.address))?;
            bytes.extend(count.to_be_bytes());
            slots.for_each(|slot| bytes.extend(slot));
        }
        WrittenForm::Strings => {
            bytes.push(0x94);
            bytes.extend_from_slice(account.address.as_slice());
            for slot in slots {
                bytes.push(0xa0);
                bytes.extend(slot);
            }
        }
    }
    out.write_all(&bytes).map_err(ConvertError::Output)?;
    Ok(1 + account.slots.len() as u64)
}
