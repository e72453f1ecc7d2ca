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
//! Then the accounts of a byte, their slots, and the names of the byte are in memory together.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{B256, U256};
use arbor_state::{Account, BY_KECCAK, FullAccount};
use rayon::prelude::*;

use crate::audit::{Audit, MissingName};
use crate::counts::Counts;
use crate::frames::{FrameFile, Frames, Origin};
use crate::preimage_file::{Preimage, PreimageFile};
use crate::progress::Watch;
use crate::{ConvertError, record};

/// Bytes of records that are kept before they are written.
const BUFFER: usize = 16 << 20;
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

    fn remove(&self) -> Result<(), ConvertError> {
        (0..=u8::MAX).try_for_each(|first| {
            let path = self.path(first);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                removed => removed.map_err(ConvertError::file(&path)),
            }
        })
    }

    /// Reads a file, and calls `each` until nothing is left of a frame.
    fn read(
        &self,
        first: u8,
        mut each: impl FnMut(&mut &[u8]) -> Option<()>,
    ) -> Result<(), ConvertError> {
        let path = self.path(first);
        let mut frames = Frames::open(&path)?;
        while let Some(frame) = frames.next()? {
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
    records: Vec<Vec<u8>>,
    bytes: usize,
}

impl<'a> Spreading<'a> {
    fn new(kind: &'a Kind) -> Self {
        Self {
            kind,
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
        // All frames count: a naming that was interrupted is made again from its begin.
        let origin = Origin { part: 0, run: 0 };
        for (records, file) in self.records.iter_mut().zip(&self.kind.files) {
            if !records.is_empty() {
                file.append(origin, records)?;
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
    watch: &'a Watch<'a>,
}

impl<'a> Naming<'a> {
    /// Begins in a folder, without what an interrupted naming left there.
    pub(crate) fn begin(folder: &Path, watch: &'a Watch<'a>) -> Result<Self, ConvertError> {
        let naming = Self {
            names: Kind::new(folder, "names"),
            accounts: Kind::new(folder, "hashed"),
            hashed_slots: Kind::new(folder, "hashed-slots"),
            named_slots: Kind::new(folder, "named-slots"),
            watch,
        };
        naming.remove()?;
        Ok(naming)
    }

    /// Removes all files.
    pub(crate) fn remove(&self) -> Result<(), ConvertError> {
        let kinds = [
            &self.names,
            &self.accounts,
            &self.hashed_slots,
            &self.named_slots,
        ];
        kinds.into_iter().try_for_each(Kind::remove)
    }

    /// Takes in the names of files; returns how many there are.
    pub(crate) fn read_names(&self, files: &[PathBuf]) -> Result<u64, ConvertError> {
        let mut out = Spreading::new(&self.names);
        let (mut names, mut count) = (Vec::with_capacity(TOGETHER), 0);
        for path in files {
            let mut file = PreimageFile::open(path)?;
            loop {
                let name = file.read_next()?;
                names.extend(name);
                if names.len() == TOGETHER || name.is_none() {
                    self.watch.check()?;
                    count += names.len() as u64;
                    for (key, name) in hashed(&names).into_iter().zip(names.drain(..)) {
                        let bytes = name.bytes();
                        out.add(key[0], &[&[bytes.len() as u8], bytes])?;
                    }
                }
                if name.is_none() {
                    break;
                }
            }
        }
        out.write()?;
        Ok(count)
    }

    /// Takes in hashed accounts; returns how many there are, and how many slots.
    pub(crate) fn read_accounts(
        &self,
        accounts: &mut dyn Iterator<Item = Result<HashedAccount, ConvertError>>,
    ) -> Result<Counts, ConvertError> {
        let mut counts = Counts::default();
        let (mut out, mut slots) = (
            Spreading::new(&self.accounts),
            Spreading::new(&self.hashed_slots),
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

    /// Finds the names of all slots, and counts the hashed keys without a name.
    pub(crate) fn find_names(&self, names: u64, counts: Counts) -> Result<Audit, ConvertError> {
        let audit = Audit {
            counts,
            names,
            ..Audit::default()
        };
        let audit = Mutex::new(audit);
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            self.watch.check()?;
            let names = self.names_of(first)?;
            let mut missing = Vec::new();
            self.accounts.read(first, |rest| {
                let key = read_account(rest)?.key;
                if !matches!(names.get(&key), Some(Preimage::Address(_))) {
                    missing.push((key, None));
                }
                Some(())
            })?;
            let mut out = Spreading::new(&self.named_slots);
            let mut failed = None;
            self.hashed_slots.read(first, |rest| {
                let slot = hash(rest)?;
                let account = hash(rest)?;
                let value = record::number(rest)?;
                match names.get(&slot) {
                    Some(Preimage::Slot(number)) => {
                        let mut bytes = Vec::with_capacity(66);
                        record::put((*number).into(), &mut bytes);
                        record::put(value, &mut bytes);
                        let added = out.add(account[0], &[&account[..], &bytes]);
                        failed = failed.take().or(added.err());
                    }
                    _ => missing.push((account, Some(slot))),
                }
                Some(())
            })?;
            failed.map_or(Ok(()), Err)?;
            out.write()?;
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
            Ok::<(), ConvertError>(())
        })?;
        let mut audit = audit.into_inner().unwrap_or_else(PoisonError::into_inner);
        audit.missing.sort_unstable();
        for missing in &mut audit.missing {
            let names = self.names_of(missing.account[0])?;
            if let Some(Preimage::Address(address)) = names.get(&missing.account) {
                missing.address = Some(*address);
            }
        }
        Ok(audit)
    }

    /// The accounts whose keys have this first byte, with their names, once all names are found. In no order.
    pub(crate) fn named(&self, first: u8) -> Result<Vec<FullAccount>, ConvertError> {
        let names = self.names_of(first)?;
        let mut slots: HashMap<B256, Vec<(U256, U256)>> = HashMap::new();
        self.named_slots.read(first, |rest| {
            let account = hash(rest)?;
            let slot = (record::number(rest)?, record::number(rest)?);
            slots.entry(account).or_default().push(slot);
            Some(())
        })?;
        let mut accounts = Vec::new();
        self.accounts.read(first, |rest| {
            let HashedAccount { key, account, .. } = read_account(rest)?;
            let Some(Preimage::Address(address)) = names.get(&key) else {
                return None;
            };
            accounts.push(FullAccount {
                address: *address,
                account,
                slots: slots.remove(&key).unwrap_or_default(),
            });
            Some(())
        })?;
        Ok(accounts)
    }

    /// All names whose hashes have this first byte.
    fn names_of(&self, first: u8) -> Result<HashMap<B256, Preimage>, ConvertError> {
        let mut names = Vec::new();
        self.names.read(first, |rest| {
            let (length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            *rest = after;
            names.push(Preimage::of(name)?);
            Some(())
        })?;
        let mut by_hash = HashMap::with_capacity(names.len());
        for names in names.chunks(TOGETHER) {
            by_hash.extend(hashed(names).into_iter().zip(names.iter().copied()));
        }
        Ok(by_hash)
    }
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
