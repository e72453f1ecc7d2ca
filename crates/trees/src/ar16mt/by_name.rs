//! The values of all leaves in the order of names.
//!
//! Names ascend by address, and leaves by their hashed keys. To look up each leaf would read a block of the store for each. So the
//! values are brought into the order of names through two sets of unnamed files, each written and read once: keys with
//! the places of their names, by the first byte of the key; then places with values, by ranges of names.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{Address, B256};
use arbor_state_tree::{Accounts, Arranged, Flat, StateError, WithSlots, corrupt};
use arbor_tree::Hash;
use arbor_verify::ar16mt::{padded, trimmed};
use rayon::prelude::*;

use super::named_groups::{FIELDS, group, keys_of, name, put_together};
use super::records::{decode_leaf, leaf_key};
use super::{LEAVES, NAMES};
use crate::header_root::{Select, Visit, header_root};

/// Leaves whose keys are hashed together, but for an account that has more.
const HASHED_TOGETHER: usize = 1 << 16;
/// Leaves of a range of names whose values are in one file, and in memory together: at most 32 MiB, by each thread.
const MOST_IN_FILE: u64 = 1 << 20;
/// The least of them, so that there are not too many files.
const LEAST_IN_FILE: u64 = 1 << 12;
/// The least number of keys that are sorted together.
const LEAST_SORTED: u64 = 1 << 6;
/// Bytes of a leaf's place among those of its range of names.
const PLACE: usize = 5;
/// Bytes of a key without its first one, with the range and the place of its name.
const KEYED: usize = 31 + 1 + PLACE;
/// Bytes of memory that such a record takes while it is sorted.
const SORTED: u64 = 2 * KEYED as u64;

/// The values of all leaves, by ranges of names.
pub(super) struct ByName<'a> {
    flat: &'a (dyn Flat + Sync),
    folder: PathBuf,
    /// Leaves of a range whose values are in one file.
    in_file: u64,
    /// By the first byte of addresses, and the number of the file in that range.
    files: Mutex<BTreeMap<(u8, u64), File>>,
}

impl<'a> ByName<'a> {
    pub(super) fn new(
        flat: &'a (dyn Flat + Sync),
        folder: &Path,
        bytes: usize,
    ) -> Result<Self, StateError> {
        let threads = rayon::current_num_threads().max(1) as u64;
        let bytes = bytes as u64 / threads;
        let by_name = Self {
            flat,
            folder: folder.to_owned(),
            in_file: (bytes / 32).clamp(LEAST_IN_FILE, MOST_IN_FILE),
            files: Mutex::default(),
        };
        let by_key = by_name.keys()?;
        let together = (bytes / SORTED).max(LEAST_SORTED);
        by_key
            .into_par_iter()
            .enumerate()
            .try_for_each(|(first, file)| by_name.values(first as u8, file, together))?;
        Ok(by_name)
    }

    fn failed(&self) -> impl Fn(std::io::Error) -> StateError {
        |error| StateError::Read(format!("a file in {}: {error}", self.folder.display()))
    }

    fn file(&self) -> Result<File, StateError> {
        tempfile::tempfile_in(&self.folder).map_err(self.failed())
    }

    /// Hashes all names. The keys are in 256 files by their first byte.
    fn keys(&self) -> Result<Vec<File>, StateError> {
        let files = (0..=u8::MAX).map(|_| Ok(Mutex::new(self.file()?)));
        let files: Vec<Mutex<File>> = files.collect::<Result<_, StateError>>()?;
        (0..=u8::MAX).into_par_iter().try_for_each(|range| {
            let mut names = self.flat.entries(NAMES, &[range])?.map(name).peekable();
            let mut place = 0u64;
            loop {
                let group = group(&mut names, HASHED_TOGETHER)?;
                if group.is_empty() {
                    return Ok::<(), StateError>(());
                }
                let mut out = vec![Vec::new(); files.len()];
                for key in keys_of(&group) {
                    let out: &mut Vec<u8> = &mut out[usize::from(key[0])];
                    out.extend_from_slice(&key[1..]);
                    out.push(range);
                    out.extend_from_slice(&place.to_be_bytes()[8 - PLACE..]);
                    place += 1;
                }
                for (records, file) in out.iter().zip(&files) {
                    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                    file.write_all(records).map_err(self.failed())?;
                }
            }
        })?;
        let files = files.into_iter();
        let files = files.map(|file| file.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(files.collect())
    }

    /// Finds the values of the keys in the file of a first byte. At most about so many keys are in memory `together`.
    fn values(&self, first: u8, mut file: File, together: u64) -> Result<(), StateError> {
        let length = file.stream_position().map_err(self.failed())?;
        let parts = (length / KEYED as u64).div_ceil(together).clamp(1, 256);
        if parts == 1 {
            let records = self.sorted(&mut file, |_| true)?;
            return self.merge(&[first], records);
        }
        for part in 0..parts {
            let seconds = (256 * part / parts) as u8..=(256 * (part + 1) / parts - 1) as u8;
            let records = self.sorted(&mut file, |second| seconds.contains(&second))?;
            let mut rest = &records[..];
            for second in seconds {
                let own = rest.partition_point(|record| record[0] <= second);
                self.merge(&[first, second], rest[..own].to_vec())?;
                rest = &rest[own..];
            }
        }
        Ok(())
    }

    /// Reads the keys whose second byte is wanted, ascending.
    fn sorted(
        &self,
        file: &mut File,
        is_wanted: impl Fn(u8) -> bool,
    ) -> Result<Vec<[u8; KEYED]>, StateError> {
        file.seek(SeekFrom::Start(0)).map_err(self.failed())?;
        let mut file = BufReader::with_capacity(1 << 16, file);
        let mut records = Vec::new();
        let mut record = [0; KEYED];
        loop {
            match file.read_exact(&mut record) {
                Ok(()) if is_wanted(record[0]) => records.push(record),
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(self.failed()(error)),
            }
        }
        records.sort_unstable();
        Ok(records)
    }

    /// Reads the leaves whose keys begin with `prefix`, and writes the value of each to the file of its name.
    fn merge(&self, prefix: &[u8], records: Vec<[u8; KEYED]>) -> Result<(), StateError> {
        let mut records = records.into_iter().peekable();
        let mut out: BTreeMap<(u8, u64), Vec<u8>> = BTreeMap::new();
        for leaf in self.flat.entries(LEAVES, prefix)? {
            let (key, bytes) = leaf?;
            let key = leaf_key(&key)?;
            // A field that an account does not have has no leaf.
            while records.next_if(|record| record[..31] < key[1..]).is_some() {}
            let Some(record) = records.next_if(|record| record[..31] == key[1..]) else {
                return Err(corrupt("leaves", &key, "no name leads to it"));
            };
            let value = decode_leaf(&key, &bytes)?.value;
            let value = trimmed(&value);
            if value.is_empty() {
                continue;
            }
            let file = (record[31], place_of(&record[32..]) / self.in_file);
            let out = out.entry(file).or_default();
            out.extend_from_slice(&record[32..]);
            out.push(value.len() as u8);
            out.extend_from_slice(value);
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, records) in out {
            let file = match files.entry(place) {
                Entry::Occupied(file) => file.into_mut(),
                Entry::Vacant(none) => none.insert(self.file()?),
            };
            file.write_all(&records).map_err(self.failed())?;
        }
        Ok(())
    }

    /// The values of a file, each in its place.
    fn read(&self, range: u8, number: u64) -> Result<Vec<Hash>, StateError> {
        let mut bytes = Vec::new();
        {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(file) = files.get_mut(&(range, number)) {
                let read = file.seek(SeekFrom::Start(0));
                read.and_then(|_| file.read_to_end(&mut bytes))
                    .map_err(self.failed())?;
            }
        }
        let malformed = || {
            let why = "is not as it was written";
            StateError::Read(format!("a file in {} {why}", self.folder.display()))
        };
        let mut values = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (place, after) = rest.split_at_checked(PLACE).ok_or_else(malformed)?;
            let (length, after) = after.split_first().ok_or_else(malformed)?;
            let split = after.split_at_checked(usize::from(*length));
            let (value, after) = split.ok_or_else(malformed)?;
            let at = (place_of(place) % self.in_file) as usize;
            if values.len() <= at {
                values.resize(at + 1, [0; 32]);
            }
            values[at] = padded(value).ok_or_else(malformed)?;
            rest = after;
        }
        Ok(values)
    }

    /// Gives out the accounts whose addresses begin with a byte, in groups.
    fn groups(
        &self,
        range: u8,
    ) -> Result<impl Iterator<Item = Result<Vec<WithSlots>, StateError>> + '_, StateError> {
        let mut names = self.flat.entries(NAMES, &[range])?.map(name).peekable();
        let (mut place, mut values) = (0u64, Vec::new());
        let mut next = move || {
            let group = group(&mut names, HASHED_TOGETHER)?;
            if group.is_empty() {
                return Ok(None);
            }
            let leaves: usize = group.iter().map(|(_, slots)| FIELDS + slots.len()).sum();
            let mut of_group = Vec::with_capacity(leaves);
            for _ in 0..leaves {
                if place.is_multiple_of(self.in_file) {
                    values = self.read(range, place / self.in_file)?;
                }
                let value = values.get((place % self.in_file) as usize);
                of_group.push(value.copied().unwrap_or_default());
                place += 1;
            }
            put_together(&group, &of_group).map(Some)
        };
        Ok(std::iter::from_fn(move || next().transpose()))
    }
}

/// Reads a big-endian number.
fn place_of(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Arranged for ByName<'_> {
    fn listing(&self, first: Option<u8>) -> Result<Accounts<'_>, StateError> {
        let ranges = match first {
            Some(first) => first..=first,
            None => 0..=u8::MAX,
        };
        let groups = ranges.flat_map(|range| {
            let (groups, error) = match self.groups(range) {
                Ok(groups) => (Some(groups), None),
                Err(error) => (None, Some(Err(error))),
            };
            groups.into_iter().flatten().chain(error)
        });
        Ok(Box::new(groups.flat_map(|group| {
            let (accounts, error) = match group {
                Ok(accounts) => (accounts, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            accounts.into_iter().map(Ok).chain(error)
        })))
    }

    fn root(&self, bytes: usize) -> Result<B256, StateError> {
        let list = |first, select: Select<'_>, visit: Visit<'_>| {
            for group in self.groups(first)? {
                let group = group?;
                let addresses: Vec<Address> = group.iter().map(|account| account.address).collect();
                for (account, is_selected) in group.into_iter().zip(select(&addresses)) {
                    if is_selected {
                        visit(account)?;
                    }
                }
            }
            Ok(())
        };
        header_root(&list, bytes)
    }
}
