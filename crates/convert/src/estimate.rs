//! How much disk a conversion needs, estimated from a sample before anything is written.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_state::{
    AccountSource, FullAccount, LoadedCodes, Network, PartOf, ReadError, SortedAccounts, State,
    Tree,
};
use arbor_store::{MemoryStore, Reader, Store};
use rayon::prelude::*;

use crate::dump::Dump;
use crate::dump_line::DumpLine;
use crate::naming::HashedAccount;
use crate::runs::{self, SortKey};
use crate::sorted::sorted_in_memory;
use crate::{ConvertError, record};

/// Accounts and slots at which a sample ends. A state with fewer is read as a whole.
const ENOUGH: usize = 1 << 16;
/// Accounts and slots of a range at which its sample ends.
const OF_RANGE: usize = ENOUGH / 16;
/// Bytes that the store adds to a record, and what it takes until merges have given space back, in 16ths.
const STORE: u64 = 20;
/// Bytes of the files that a database has before its first record.
const EMPTY: u64 = 224 << 10;

/// What a conversion needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// Accounts of the source.
    pub accounts: u64,
    /// Slots of the source.
    pub slots: u64,
    /// Bytes of the target.
    pub target_bytes: u64,
    /// Bytes of the files that the conversion makes on the way, and removes.
    pub scratch_bytes: u64,
}

impl Estimate {
    /// Bytes that are needed in all.
    pub fn bytes(&self) -> u64 {
        self.target_bytes.saturating_add(self.scratch_bytes)
    }
}

/// Some accounts of a source.
#[derive(Default)]
struct Sample {
    accounts: Vec<FullAccount>,
    codes: BTreeMap<B256, Bytes>,
    /// How many accounts of the sample have each code.
    uses: BTreeMap<B256, u64>,
    /// The source has so many times the accounts of the sample.
    scale: f64,
}

/// Estimates a conversion of a source to a tree. `memory` is that of the [conversion](crate::Conversion::memory), which runs on
/// the threads of the current pool.
///
/// # Errors
/// A source that cannot be read.
pub fn estimate(
    source: &dyn AccountSource,
    tree: &Tree,
    memory: u64,
) -> Result<Estimate, ConvertError> {
    let (mut sample, mut parts, mut all) = (Sample::default(), 0.0, 0);
    // Ranges far from each other come first: addresses need not be spread evenly.
    for range in (0..=u8::MAX).map(u8::reverse_bits) {
        if all >= ENOUGH {
            break;
        }
        let (mut size, mut last) = (0, None);
        for account in source.stream(Some(range))? {
            let account = account?;
            size += 1 + account.slots.len();
            let key = account.key;
            sample.add(account.into(), |hash| source.code_bytes(hash))?;
            if size >= OF_RANGE {
                last = Some(key);
                break;
            }
        }
        all += size;
        // Within a range keys are spread evenly enough that the last one says how much of it was read.
        let read = match last {
            Some(key) => (f64::from(u16::from_be_bytes([key[1], key[2]])) + 1.0) / 65_536.0,
            None => 1.0,
        };
        parts += read / 256.0;
    }
    sample.scale = 1.0 / parts;
    let scratch = Scratch {
        accounts: source.order() != tree.order(),
        ..Scratch::default()
    };
    sample.estimate(tree, &scratch, memory)
}

/// Like [`estimate`], for a dump; `None` for a pipe, which cannot be read twice.
///
/// # Errors
/// A dump that cannot be read, or with a line that cannot be converted.
pub fn estimate_dump(
    path: &Path,
    tree: &Tree,
    memory: u64,
) -> Result<Option<Estimate>, ConvertError> {
    if !path.is_file() {
        return Ok(None);
    }
    let mut sample = Sample::default();
    let mut size = 0;
    let mut lines = Dump::open(path)?.into_lines();
    let mut is_whole = false;
    while size < ENOUGH {
        let Some(line) = lines.line()? else {
            is_whole = true;
            break;
        };
        let DumpLine { account, code, .. } = line;
        size += 1 + account.slots.len();
        let code = code.map(|(_, code)| code);
        sample.add(account, |hash| {
            code.clone().ok_or(ReadError::MissingCode(hash))
        })?;
    }
    sample.scale = match is_whole {
        true => 1.0,
        false => 1.0 / lines.part().max(1e-9),
    };
    let scratch = Scratch {
        accounts: true,
        codes: true,
        names: 0,
    };
    sample.estimate(tree, &scratch, memory).map(Some)
}

/// Like [`estimate_dump`], for a dump of hashed keys.
///
/// # Errors
/// As [`estimate_dump`].
pub fn estimate_hashed(
    path: &Path,
    tree: &Tree,
    memory: u64,
) -> Result<Option<Estimate>, ConvertError> {
    if !path.is_file() {
        return Ok(None);
    }
    let (mut sample, mut size, mut names) = (Sample::default(), 0, 0);
    let mut lines = Dump::open(path)?.into_lines();
    sample.scale = 1.0;
    while let Some(line) = lines.hashed()? {
        let code = line.code.map(|(_, code)| code);
        let HashedAccount {
            key,
            account,
            slots,
        } = line.account;
        // The name and the account; each slot with its name, under its own key and under the account's.
        names += 21 + 104 + 24;
        let bytes = |value: &U256| 1 + value.byte_len() as u64;
        let slots_bytes = slots
            .iter()
            .map(|(_, value)| 97 + 64 + 32 + 33 + 2 * bytes(value));
        names += slots_bytes.sum::<u64>();
        size += 1 + slots.len();
        let numbers = slots.into_iter().map(|(slot, value)| (slot.into(), value));
        let account = FullAccount {
            // A name of the right length.
            address: Address::from_slice(&key[..20]),
            account,
            slots: numbers.collect(),
        };
        sample.add(account, |hash| {
            code.clone().ok_or(ReadError::MissingCode(hash))
        })?;
        if size >= ENOUGH {
            sample.scale = 1.0 / lines.part().max(1e-9);
            break;
        }
    }
    let scratch = Scratch {
        accounts: true,
        codes: true,
        names,
    };
    sample.estimate(tree, &scratch, memory).map(Some)
}

/// What goes to files on the way, besides leaves.
#[derive(Default)]
struct Scratch {
    /// The accounts, sorted.
    accounts: bool,
    /// The codes of a dump.
    codes: bool,
    /// Bytes of names and of hashed accounts and slots, for the accounts of the sample.
    names: u64,
}

impl Sample {
    fn add(
        &mut self,
        account: FullAccount,
        code: impl Fn(B256) -> Result<Bytes, ReadError>,
    ) -> Result<(), ConvertError> {
        let hash = account.account.code_hash;
        if hash != KECCAK256_EMPTY {
            *self.uses.entry(hash).or_default() += 1;
            if let Entry::Vacant(unknown) = self.codes.entry(hash) {
                unknown.insert(code(hash)?);
            }
        }
        self.accounts.push(account);
        Ok(())
    }

    /// Bytes of all codes: one that several accounts of the sample have is counted once, any other as often as the sample
    /// goes into the source.
    fn code_bytes(&self) -> u64 {
        let bytes = self
            .codes
            .iter()
            .map(|(hash, code)| match self.uses.get(hash) {
                Some(1) => (code.len() as f64 * self.scale) as u64,
                _ => code.len() as u64,
            });
        bytes.sum()
    }

    fn scaled(&self, bytes: u64) -> u64 {
        (bytes as f64 * self.scale) as u64
    }

    /// The bytes of the records of each range of sorted accounts, and of its [second file](second_files).
    fn sorted_ranges(&self, tree: &Tree) -> Vec<(u64, u64)> {
        let addresses: Vec<Address> = self.accounts.iter().map(|of| of.address).collect();
        let mut keys = vec![SortKey::default(); addresses.len()];
        (tree.order().account_keys)(&addresses, &mut keys);
        let mut ranges = vec![(0, 0); PartOf::RANGES as usize];
        let mut bytes = Vec::new();
        for (account, key) in self.accounts.iter().zip(keys) {
            bytes.clear();
            record::encode(account, &mut bytes);
            let (first, second) = &mut ranges[usize::from(key[0])];
            *first += bytes.len() as u64;
            *second += (runs::HEAD + bytes.len()) as u64;
        }
        let ranges = ranges.into_iter();
        let ranges = ranges.map(|(first, second)| (self.scaled(first), self.scaled(second)));
        ranges.collect()
    }

    fn estimate(self, tree: &Tree, files: &Scratch, memory: u64) -> Result<Estimate, ConvertError> {
        let accounts = self.accounts.len() as u64;
        let slots: usize = self
            .accounts
            .iter()
            .map(|account| account.slots.len())
            .sum();
        let (accounts, slots) = (self.scaled(accounts), self.scaled(slots as u64));
        let code_bytes = self.code_bytes();
        let mut scratch = self.scaled(files.names);
        if files.accounts {
            let ranges = self.sorted_ranges(tree);
            let bytes = ranges.iter().map(|(bytes, _)| bytes);
            scratch += bytes.sum::<u64>() + second_files(ranges, memory);
        }
        if files.codes {
            scratch += code_bytes;
        }
        let codes = |hash| {
            let code = self.codes.get(&hash).cloned();
            code.ok_or(ReadError::MissingCode(hash))
        };
        let all = self.accounts.iter().cloned().map(Ok);
        let sorted = SortedAccounts::of(tree.order(), all, codes, usize::MAX)?;
        let loaded = match tree.build() {
            None => built_bytes(tree, &sorted)?,
            Some(build) => {
                let accounts = sorted.stream(None)?.collect::<Result<_, _>>()?;
                let spread = build.spread(accounts, &LoadedCodes::of(&sorted))?;
                let leaves = spread
                    .leaves
                    .iter()
                    .map(|leaf| 40 + leaf.value.len() as u64);
                scratch += self.scaled(leaves.sum());
                built_bytes(tree, &sorted)?
            }
        };
        let own_codes: usize = self.codes.values().map(|code| code.len()).sum();
        let records = self.scaled(loaded.saturating_sub(own_codes as u64));
        Ok(Estimate {
            accounts,
            slots,
            target_bytes: (records.saturating_add(code_bytes) / 16 * STORE).saturating_add(EMPTY),
            scratch_bytes: scratch,
        })
    }
}

/// Bytes of the second files of ranges that are too large to be sorted in memory: each thread reads one range at a time.
fn second_files(ranges: Vec<(u64, u64)>, memory: u64) -> u64 {
    let in_memory = sorted_in_memory(memory);
    let large = ranges.into_iter().filter(|(bytes, _)| *bytes > in_memory);
    let mut large: Vec<u64> = large.map(|(_, second)| second).collect();
    large.sort_unstable_by_key(|bytes| Reverse(*bytes));
    large.iter().take(rayon::current_num_threads()).sum()
}

/// Bytes of keys and values of a database that is made of a source, in memory.
fn built_bytes(tree: &Tree, source: &dyn AccountSource) -> Result<u64, ConvertError> {
    let store = Arc::new(MemoryStore::default());
    let network = Network {
        chain_id: 0,
        genesis_hash: B256::ZERO,
    };
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let mut state = State::open(shared, None, Arc::clone(tree), network, Default::default())?;
    state.load(source, &|_, _| ())?;
    let tables = tree.kind().tables.par_iter().map(|spec| {
        let mut records = store.scan(spec.table, &[], &[])?;
        records.try_fold(0, |bytes, record| {
            let (key, value) = record?;
            Ok(bytes + (key.len() + value.len()) as u64)
        })
    });
    let bytes: Result<u64, arbor_store::StoreError> = tables.sum();
    Ok(bytes.map_err(arbor_state::StateError::from)?)
}
