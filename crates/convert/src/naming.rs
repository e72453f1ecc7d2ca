//! Giving hashed keys their names, outside of memory.
//!
//! A dump of hashed keys has accounts by the Keccak-256 of their addresses, each with slots by the Keccak-256 of their numbers.
//! Names come from files of preimages, in any order. Everything goes to files by the first byte of a
//! hash, 256 of each kind:
//!
//! 1. `names-XX`: names by their hash;
//! 2. `hashed-XX`: accounts by their key, and `hashed-slots-XX`: their slots by the slots' keys;
//! 3. `named-slots-XX`: slots with their numbers, by the key of their account.
//!
//! Then the accounts of a byte, their slots, and the names of the byte are in memory together. Several bytes are there at
//! once if the memory that is given has room for them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::{Address, B256, U256};
use arbor_state::{Account, BY_KECCAK, FullAccount};
use rayon::prelude::*;

use crate::audit::{Audit, MissingName};
use crate::counts::Counts;
use crate::done::{Done, DoneFile};
use crate::frames::{FrameFile, Frames, Origin};
use crate::preimage_file::{Preimage, PreimageFile, PreimageForm};
use crate::progress::Watch;
use crate::{ConvertError, record};

/// Bytes of records that are kept before they are written.
const BUFFER: usize = 16 << 20;
/// Bytes of memory for each byte of a file of names: a hash table that grows, of records of 21 bytes and more.
const MEMORY_OF_NAMES: u64 = 8;
/// Bytes of memory for each byte of a file of accounts.
const MEMORY_OF_ACCOUNTS: u64 = 3;
/// Bytes of memory for each byte of a file of slots with their numbers: a hash table of lists.
const MEMORY_OF_SLOTS: u64 = 8;
/// Missing names that are listed.
const LISTED: usize = 1_000;

/// An account without names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HashedAccount {
    /// Keccak-256 of the address.
    pub(crate) key: B256,
    pub(crate) account: Account,
    /// Keccak-256 of the slots' numbers, with their values.
    pub(crate) slots: Vec<(B256, U256)>,
}

/// The files of a kind.
struct Kind {
    folder: PathBuf,
    name: &'static str,
    files: Vec<FrameFile>,
}

impl Kind {
    fn new(folder: &Path, name: &'static str) -> Self {
        let path = |first| folder.join(format!("{name}-{first:02x}"));
        let files = (0..=u8::MAX).map(|first| FrameFile::new(path(first)));
        Self {
            files: files.collect(),
            folder: folder.to_owned(),
            name,
        }
    }

    fn path(&self, first: u8) -> PathBuf {
        self.folder.join(format!("{}-{first:02x}", self.name))
    }

    /// The length of a file; zero if there is none.
    fn length(&self, first: u8) -> Result<u64, ConvertError> {
        let path = self.path(first);
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
            found => Ok(found.map_err(ConvertError::file(&path))?.len()),
        }
    }

    fn remove(&self) -> Result<(), ConvertError> {
        (0..=u8::MAX).try_for_each(|first| {
            let path = self.path(first);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                removed => removed.map_err(ConvertError::file(&path)),
            }
        })
    }

    /// Reads the frames of a file that count, and calls `each` until nothing is left of a frame.
    fn read(
        &self,
        first: u8,
        counts: impl Fn(Origin) -> bool,
        mut each: impl FnMut(&mut &[u8]) -> Option<()>,
    ) -> Result<(), ConvertError> {
        let path = self.path(first);
        let mut frames = Frames::open(&path)?;
        while let Some(frame) = frames.next_of(&counts)? {
            let payload = frames.payload(&frame)?;
            let mut rest = &payload[..];
            while !rest.is_empty() {
                each(&mut rest).ok_or_else(|| ConvertError::Damaged {
                    path: path.clone(),
                    offset: frame.begin,
                    why: "a record is malformed",
                })?;
            }
        }
        Ok(())
    }
}

/// Records on their way to the files of a kind.
struct Spreading<'a> {
    kind: &'a Kind,
    origin: Origin,
    records: Vec<Vec<u8>>,
    bytes: usize,
}

impl<'a> Spreading<'a> {
    fn new(kind: &'a Kind, origin: Origin) -> Self {
        Self {
            kind,
            origin,
            records: vec![Vec::new(); 256],
            bytes: 0,
        }
    }

    fn add(&mut self, first: u8, parts: &[&[u8]]) -> Result<(), ConvertError> {
        let out = &mut self.records[usize::from(first)];
        for part in parts {
            out.extend_from_slice(part);
            self.bytes += part.len();
        }
        match self.bytes >= BUFFER {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> Result<(), ConvertError> {
        self.bytes = 0;
        for (records, file) in self.records.iter_mut().zip(&self.kind.files) {
            if !records.is_empty() {
                file.append(self.origin, records)?;
                *records = Vec::new();
            }
        }
        Ok(())
    }
}

/// The naming of one source.
pub(crate) struct Naming<'a> {
    names: Kind,
    accounts: Kind,
    hashed_slots: Kind,
    named_slots: Kind,
    /// The steps that are done: [`NAMES`], [`ACCOUNTS`], and [`SLOTS`] with each first byte.
    done_path: PathBuf,
    done: Mutex<Done>,
    /// A frame for each step that has a result.
    results: PathBuf,
    run: u32,
    /// Bytes of memory for names, accounts and slots.
    memory: u64,
    watch: &'a Watch<'a>,
}

/// The step that reads the names. Its result is their number (8 bytes).
const NAMES: u32 = 0;
/// The step that reads the accounts. Its result is the numbers of accounts and slots (8 bytes each).
const ACCOUNTS: u32 = 1;
/// The step that names the slots whose hashes have first byte 0; those of the other bytes follow.
const SLOTS: u32 = 2;

impl<'a> Naming<'a> {
    /// Begins in a folder, or goes on in the run with this number. `memory` is kept to if the names and accounts of one first
    /// byte fit in it.
    pub(crate) fn open(
        folder: &Path,
        (memory, run): (u64, u32),
        watch: &'a Watch<'a>,
    ) -> Result<Self, ConvertError> {
        let done_path = folder.join("naming-done");
        let done = Done::read(&done_path)?;
        let naming = Self {
            names: Kind::new(folder, "names"),
            accounts: Kind::new(folder, "hashed"),
            hashed_slots: Kind::new(folder, "hashed-slots"),
            named_slots: Kind::new(folder, "named-slots"),
            results: folder.join("naming"),
            done_path,
            done: Mutex::new(done.clone()),
            run,
            memory,
            watch,
        };
        Ok(naming)
    }

    /// Removes all files, after which the naming begins again.
    pub(crate) fn remove(&self) -> Result<(), ConvertError> {
        *self.done() = Done::default();
        for path in [&self.done_path, &self.results] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.map_err(ConvertError::file(path))?,
            }
        }
        let kinds = [
            &self.names,
            &self.accounts,
            &self.hashed_slots,
            &self.named_slots,
        ];
        kinds.into_iter().try_for_each(Kind::remove)
    }

    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn origin(&self, part: u32) -> Origin {
        let run = self.run;
        Origin { part, run }
    }

    /// The result of a step that is done, as numbers.
    fn result<const N: usize>(&self, step: u32) -> Result<Option<[u64; N]>, ConvertError> {
        let done = self.done().clone();
        let mut frames = Frames::open(&self.results)?;
        while let Some(frame) = frames.next()? {
            let payload = frames.payload(&frame)?;
            if frame.origin.part == step && done.counts(frame.origin) {
                let (numbers, rest) = payload.as_chunks::<8>();
                let numbers: Vec<u64> = numbers
                    .iter()
                    .map(|bytes| u64::from_be_bytes(*bytes))
                    .collect();
                let numbers: Option<[u64; N]> = numbers.try_into().ok();
                let numbers = numbers.filter(|_| rest.is_empty());
                return numbers.map(Some).ok_or_else(|| ConvertError::Damaged {
                    path: self.results.clone(),
                    offset: frame.begin,
                    why: "the result of a step is malformed",
                });
            }
        }
        Ok(None)
    }

    /// Notes that a step is done.
    fn finish(&self, step: u32, result: &[u64]) -> Result<(), ConvertError> {
        let origin = self.origin(step);
        let mut done = self.done();
        if !result.is_empty() {
            let bytes: Vec<u8> = result
                .iter()
                .flat_map(|number| number.to_be_bytes())
                .collect();
            FrameFile::new(self.results.clone()).append(origin, &bytes)?;
        }
        DoneFile::open(self.done_path.clone(), &done)?.add(origin)?;
        done.add(origin);
        Ok(())
    }

    /// Whether the accounts are read.
    pub(crate) fn has_accounts(&self) -> bool {
        self.done().has(ACCOUNTS)
    }

    /// Takes in the names of files; returns how many there are.
    pub(crate) fn read_names(&self, files: &[PathBuf]) -> Result<u64, ConvertError> {
        if let Some([count]) = self.result(NAMES)? {
            return Ok(count);
        }
        let mut out = Spreading::new(&self.names, self.origin(NAMES));
        let (mut names, mut count) = (Vec::with_capacity(TOGETHER), 0);
        for path in files {
            let mut file = PreimageFile::open(path)?;
            let is_records = file.form() == PreimageForm::Records;
            // The key of the account whose record is being read.
            let mut owner = B256::ZERO;
            loop {
                let name = file.read_next()?;
                names.extend(name);
                if names.len() == TOGETHER || name.is_none() {
                    self.watch.check()?;
                    count += names.len() as u64;
                    for (key, name) in hashed(&names).into_iter().zip(names.drain(..)) {
                        let bytes = name.bytes();
                        match name {
                            Preimage::Address(_) => owner = key,
                            Preimage::Slot(_) if is_records => {
                                out.add(key[0], &[&[OWNED], bytes, &owner[..]])?;
                                continue;
                            }
                            Preimage::Slot(_) => {}
                        }
                        out.add(key[0], &[&[bytes.len() as u8], bytes])?;
                    }
                }
                if name.is_none() {
                    break;
                }
            }
        }
        out.write()?;
        self.finish(NAMES, &[count])?;
        Ok(count)
    }

    /// Takes in hashed accounts; returns how many there are, and how many slots.
    pub(crate) fn read_accounts(
        &self,
        accounts: &mut dyn Iterator<Item = Result<HashedAccount, ConvertError>>,
    ) -> Result<Counts, ConvertError> {
        if let Some([accounts, slots]) = self.result(ACCOUNTS)? {
            return Ok(Counts { accounts, slots });
        }
        let mut counts = Counts::default();
        let origin = self.origin(ACCOUNTS);
        let (mut out, mut slots) = (
            Spreading::new(&self.accounts, origin),
            Spreading::new(&self.hashed_slots, origin),
        );
        for account in accounts {
            self.watch.check()?;
            let HashedAccount {
                key,
                account,
                slots: listed,
            } = account?;
            let nonce = account.nonce.to_be_bytes();
            let balance = account.balance.to_be_bytes::<32>();
            let fields = [&key[..], &nonce, &balance, &account.code_hash[..]];
            out.add(key[0], &fields)?;
            for (slot, value) in &listed {
                let mut bytes = Vec::with_capacity(33);
                record::put(*value, &mut bytes);
                slots.add(slot[0], &[&slot[..], &key[..], &bytes])?;
            }
            counts.accounts += 1;
            counts.slots += listed.len() as u64;
        }
        out.write()?;
        slots.write()?;
        Ok(counts)
    }

    /// Notes that all accounts are taken in.
    pub(crate) fn finish_accounts(&self, counts: Counts) -> Result<(), ConvertError> {
        match self.has_accounts() {
            true => Ok(()),
            false => self.finish(ACCOUNTS, &[counts.accounts, counts.slots]),
        }
    }

    /// Calls `each` with every first byte: with as many at once as fit in the memory.
    pub(crate) fn for_each_first(
        &self,
        each: impl Fn(u8) -> Result<(), ConvertError> + Sync,
    ) -> Result<(), ConvertError> {
        let mut largest = 1;
        for first in 0..=u8::MAX {
            let bytes = MEMORY_OF_NAMES * self.names.length(first)?
                + MEMORY_OF_ACCOUNTS * self.accounts.length(first)?
                + MEMORY_OF_SLOTS * self.named_slots.length(first)?;
            largest = largest.max(bytes);
        }
        let firsts: Vec<u8> = (0..=u8::MAX).collect();
        firsts
            .chunks(first_bytes_at_once(self.memory, largest))
            .try_for_each(|firsts| firsts.par_iter().try_for_each(|first| each(*first)))
    }

    /// Finds the names of all slots, and counts the hashed keys without a name.
    pub(crate) fn find_names(&self, names: u64, counts: Counts) -> Result<Audit, ConvertError> {
        let audit = Audit {
            counts,
            names,
            ..Audit::default()
        };
        let audit = Mutex::new(audit);
        self.for_each_first(|first| {
            self.watch.check()?;
            let step = SLOTS + u32::from(first);
            if self.done().has(step) {
                return Ok(());
            }
            let names = self.names_of(first)?;
            let mut missing = Vec::new();
            self.accounts.read(
                first,
                |_| true,
                |rest| {
                    let key = read_account(rest)?.key;
                    if names.address(&key).is_none() {
                        missing.push((key, None));
                    }
                    Some(())
                },
            )?;
            let mut out = Spreading::new(&self.named_slots, self.origin(step));
            let mut failed = None;
            self.hashed_slots.read(
                first,
                |_| true,
                |rest| {
                    let slot = hash(rest)?;
                    let account = hash(rest)?;
                    let value = record::number(rest)?;
                    match names.slot(&slot, &account) {
                        Some(number) => {
                            let mut bytes = Vec::with_capacity(66);
                            record::put(number.into(), &mut bytes);
                            record::put(value, &mut bytes);
                            let added = out.add(account[0], &[&account[..], &bytes]);
                            failed = failed.take().or(added.err());
                        }
                        None => missing.push((account, Some(slot))),
                    }
                    Some(())
                },
            )?;
            failed.map_or(Ok(()), Err)?;
            out.write()?;
            if missing.is_empty() {
                self.finish(step, &[])?;
            }
            let mut audit = audit.lock().unwrap_or_else(PoisonError::into_inner);
            for (account, slot) in missing {
                match slot {
                    None => audit.missing_accounts += 1,
                    Some(_) => audit.missing_slots += 1,
                }
                if audit.missing.len() < LISTED {
                    let address = None;
                    audit.missing.push(MissingName {
                        account,
                        address,
                        slot,
                    });
                }
            }
            Ok(())
        })?;
        let mut audit = audit.into_inner().unwrap_or_else(PoisonError::into_inner);
        audit.missing.sort_unstable();
        for missing in &mut audit.missing {
            let names = self.names_of(missing.account[0])?;
            missing.address = names.address(&missing.account);
        }
        Ok(audit)
    }

    /// The accounts whose keys have this first byte, with their names, once all names are found. In no order.
    pub(crate) fn named(&self, first: u8) -> Result<Vec<FullAccount>, ConvertError> {
        let names = self.names_of(first)?;
        let mut slots: HashMap<B256, Vec<(U256, U256)>> = HashMap::new();
        let done = self.done().clone();
        self.named_slots.read(
            first,
            |origin| done.counts(origin),
            |rest| {
                let account = hash(rest)?;
                let slot = (record::number(rest)?, record::number(rest)?);
                slots.entry(account).or_default().push(slot);
                Some(())
            },
        )?;
        let mut accounts = Vec::new();
        self.accounts.read(
            first,
            |_| true,
            |rest| {
                let HashedAccount { key, account, .. } = read_account(rest)?;
                let address = names.address(&key)?;
                accounts.push(FullAccount {
                    address,
                    account,
                    slots: slots.remove(&key).unwrap_or_default(),
                });
                Some(())
            },
        )?;
        Ok(accounts)
    }

    /// All names whose hashes have this first byte.
    fn names_of(&self, first: u8) -> Result<Names, ConvertError> {
        let mut found = Names::default();
        let (mut names, mut owners) = (Vec::with_capacity(TOGETHER), Vec::new());
        self.names.read(
            first,
            |_| true,
            |rest| {
                let (length, after) = rest.split_first()?;
                *rest = after;
                if *length == OWNED {
                    names.push(Preimage::Slot(hash(rest)?));
                    owners.push(Some(hash(rest)?));
                } else {
                    let (name, after) = rest.split_at_checked(usize::from(*length))?;
                    *rest = after;
                    names.push(Preimage::of(name)?);
                    owners.push(None);
                }
                if names.len() == TOGETHER {
                    found.add(&mut names, &mut owners);
                }
                Some(())
            },
        )?;
        found.add(&mut names, &mut owners);
        Ok(found)
    }
}

/// Marks the name of a slot that a record has for its account: the slot's number (32 bytes) and the account's key (32) follow.
const OWNED: u8 = 64;

/// Names by their hashes.
#[derive(Default)]
struct Names {
    /// Each with whether it may name a slot of any account.
    by_hash: HashMap<B256, (Preimage, bool)>,
    /// Slots of accounts whose records list them.
    owned: HashSet<[u8; 16]>,
}

impl Names {
    /// Takes in names, each with the account whose record has it, if there is one.
    fn add(&mut self, names: &mut Vec<Preimage>, owners: &mut Vec<Option<B256>>) {
        let named = hashed(names).into_iter().zip(names.drain(..));
        for ((key, name), owner) in named.zip(owners.drain(..)) {
            let (_, is_of_any) = self.by_hash.entry(key).or_insert((name, false));
            match owner {
                Some(owner) => drop(self.owned.insert(pair(&key, &owner))),
                None => *is_of_any = true,
            }
        }
    }

    fn address(&self, key: &B256) -> Option<Address> {
        match self.by_hash.get(key) {
            Some((Preimage::Address(address), _)) => Some(*address),
            _ => None,
        }
    }

    /// The number of a slot of an account. A file of records is to have the record of an account with all of its slots, so a slot that
    /// it lists for other accounts alone has no name.
    fn slot(&self, slot: &B256, account: &B256) -> Option<B256> {
        match self.by_hash.get(slot) {
            Some((Preimage::Slot(number), is_of_any))
                if *is_of_any || self.owned.contains(&pair(slot, account)) =>
            {
                Some(*number)
            }
            _ => None,
        }
    }
}

/// Eight bytes of each of two hashes. The first byte of a slot's hash is that of its file.
fn pair(slot: &B256, account: &B256) -> [u8; 16] {
    let mut pair = [0; 16];
    pair[..8].copy_from_slice(&slot[1..9]);
    pair[8..].copy_from_slice(&account[..8]);
    pair
}

/// How many first bytes are in memory together, of which the largest takes so many bytes: one or more.
fn first_bytes_at_once(memory: u64, largest: u64) -> usize {
    (memory / largest.max(1)).clamp(1, 256) as usize
}

/// Names that are hashed together.
const TOGETHER: usize = 1 << 10;

/// The Keccak-256 of names, in their order.
fn hashed(names: &[Preimage]) -> Vec<B256> {
    let (mut addresses, mut slots) = (Vec::new(), Vec::new());
    for name in names {
        match name {
            Preimage::Address(address) => addresses.push(*address),
            Preimage::Slot(slot) => slots.push(U256::from_be_bytes(slot.0)),
        }
    }
    let mut of_addresses = vec![[0; 32]; addresses.len()];
    (BY_KECCAK.account_keys)(&addresses, &mut of_addresses);
    let mut of_slots = vec![[0; 32]; slots.len()];
    (BY_KECCAK.slot_keys)(&slots, &mut of_slots);
    let (mut of_addresses, mut of_slots) = (of_addresses.into_iter(), of_slots.into_iter());
    let hashes = names.iter().filter_map(|name| match name {
        Preimage::Address(_) => of_addresses.next(),
        Preimage::Slot(_) => of_slots.next(),
    });
    hashes.map(B256::from).collect()
}

fn hash(rest: &mut &[u8]) -> Option<B256> {
    let (hash, after) = rest.split_first_chunk::<32>()?;
    *rest = after;
    Some(hash.into())
}

fn read_account(rest: &mut &[u8]) -> Option<HashedAccount> {
    let key = hash(rest)?;
    let (nonce, after) = rest.split_first_chunk()?;
    *rest = after;
    let balance = hash(rest)?;
    let code_hash = hash(rest)?;
    Some(HashedAccount {
        key,
        account: Account {
            nonce: u64::from_be_bytes(*nonce),
            balance: balance.into(),
            code_hash,
        },
        slots: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_share_the_memory() {
        assert_eq!(first_bytes_at_once(1 << 20, 1 << 18), 4);
        assert_eq!(first_bytes_at_once(1 << 30, 1), 256);
        // One byte that does not fit is in memory alone.
        assert_eq!(first_bytes_at_once(1 << 20, 1 << 30), 1);
        assert_eq!(first_bytes_at_once(0, 0), 1);
    }
}
