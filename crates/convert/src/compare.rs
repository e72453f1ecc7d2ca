//! The independent pass: the target is read again and compared with the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, AccountSource, KeyedAccount, KeyedAccounts, KeyedSlot, ReadError};
use rayon::prelude::*;

use crate::ConvertError;
use crate::counts::Counts;
use crate::done::{Done, DoneFile};
use crate::frames::{FrameFile, Frames, Origin};
use crate::progress::Watch;
use crate::range_result::OfRange;

/// Differences that are named; further ones are counted.
const NAMED: usize = 100;

/// Where a target is not what its source is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// An account of the source is absent.
    AccountMissing(Address),
    /// The source does not have the account.
    AccountSurplus(Address),
    /// Nonce, balance or code hash differ.
    Account {
        /// The account.
        address: Address,
        /// What the source has.
        source: Account,
        /// What the target has.
        target: Account,
    },
    /// A slot has another value. Zero stands for a slot that is absent.
    Slot {
        /// The account.
        address: Address,
        /// The slot.
        slot: U256,
        /// The source's value.
        source: U256,
        /// The target's value.
        target: U256,
    },
    /// A code is absent, or its bytes have another hash.
    Code(B256),
    /// The target has all accounts and slots of the source, and so many more.
    More(Counts),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AccountMissing(address) => {
                write!(f, "account {address:#x} is missing in the target")
            }
            Self::AccountSurplus(address) => write!(
                f,
                "account {address:#x} is in the target, and not in the source"
            ),
            Self::Account {
                address,
                source,
                target,
            } => write!(
                f,
                "account {address:#x} has nonce {}, balance {} and code hash {} in the target, and {}, {} and {} in the source",
                target.nonce,
                target.balance,
                target.code_hash,
                source.nonce,
                source.balance,
                source.code_hash
            ),
            Self::Slot {
                address,
                slot,
                source,
                target,
            } => write!(
                f,
                "account {address:#x}: slot {slot:#x} is {target:#x} in the target, and {source:#x} in the source"
            ),
            Self::More(more) => write!(
                f,
                "the target has all accounts and slots of the source, and {} accounts and {} slots more",
                more.accounts, more.slots
            ),
            Self::Code(hash) => {
                write!(f, "code {hash} is missing in the target or has other bytes")
            }
        }
    }
}

/// What a comparison found.
#[derive(Clone, Default, Debug)]
pub struct Comparison {
    /// Accounts and slots of the target.
    pub counts: Counts,
    /// Codes of the target that accounts have.
    pub codes: u64,
    /// Their bytes.
    pub code_bytes: u64,
    /// How many differences there are.
    pub difference_count: u64,
    /// The first hundred of them.
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// No difference yet in a target with so many accounts and slots.
    pub(crate) fn of(counts: Counts) -> Self {
        Self {
            counts,
            ..Self::default()
        }
    }

    /// Whether target and source are the same.
    pub fn is_same(&self) -> bool {
        self.difference_count == 0
    }

    pub(crate) fn add(&mut self, difference: Difference) {
        self.difference_count += 1;
        if self.differences.len() < NAMED {
            self.differences.push(difference);
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.counts.add(other.counts);
        self.difference_count += other.difference_count;
        let room = NAMED - self.differences.len();
        self.differences
            .extend(other.differences.into_iter().take(room));
    }
}

/// Where a comparison notes the ranges that are the same, so that a later run passes over them.
pub(crate) struct Verified<'a> {
    results: PathBuf,
    done_path: PathBuf,
    run: u32,
    watch: &'a Watch<'a>,
}

impl<'a> Verified<'a> {
    /// In a folder, in the run with this number.
    pub(crate) fn in_folder(folder: &Path, run: u32, watch: &'a Watch<'a>) -> Self {
        Self {
            results: folder.join("verified"),
            done_path: folder.join("verified-done"),
            run,
            watch,
        }
    }

    /// The ranges that earlier runs have found to be the same.
    fn read(&self, done: &Done) -> Result<BTreeMap<u32, OfRange>, ConvertError> {
        let mut frames = Frames::open(&self.results)?;
        let mut found = BTreeMap::new();
        while let Some(frame) = frames.next()? {
            let payload = frames.payload(&frame)?;
            if let Some(range) = OfRange::decode(&payload).filter(|_| done.counts(frame.origin)) {
                found.insert(frame.origin.part, range);
            }
        }
        Ok(found)
    }
}

/// Reads two states of one order, some of their 256 ranges at a time, and compares them. Codes are read from the target and hashed.
pub(crate) fn compare(
    source: &dyn AccountSource,
    target: &dyn AccountSource,
    verified: &Verified<'_>,
) -> Result<Comparison, ConvertError> {
    let watch = verified.watch;
    let done = Done::read(&verified.done_path)?;
    let before = verified.read(&done)?;
    let done_file = DoneFile::open(verified.done_path.clone(), &done)?;
    let results = FrameFile::new(verified.results.clone());
    let mut begin = (Comparison::default(), BTreeSet::new(), before.len() as u32);
    for range in before.values() {
        begin.0.counts.add(range.counts);
        begin.1.extend(&range.codes);
    }
    let all = Mutex::new(begin);
    (0..=u8::MAX).into_par_iter().try_for_each(|first| {
        if before.contains_key(&u32::from(first)) {
            return Ok(());
        }
        watch.check()?;
        let mut range = Range::default();
        range.compare(source.stream(Some(first))?, target.stream(Some(first))?)?;
        watch.count(range.found.counts);
        if range.found.is_same() {
            let origin = Origin {
                part: u32::from(first),
                run: verified.run,
            };
            let result = OfRange {
                leaves: 0,
                counts: range.found.counts,
                codes: range.codes.clone(),
            };
            results.append(origin, &result.encode())?;
            done_file.add(origin)?;
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, codes, ranges) = &mut *all;
        found.merge(range.found);
        codes.append(&mut range.codes);
        *ranges += 1;
        watch.done(f64::from(*ranges) / 256.0);
        Ok::<(), ConvertError>(())
    })?;
    let (mut found, codes, _) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    check_codes(target, codes, watch, &mut found)?;
    Ok(found)
}

/// Reads codes from the target and hashes them.
pub(crate) fn check_codes(
    target: &dyn AccountSource,
    codes: BTreeSet<B256>,
    watch: &Watch<'_>,
    found: &mut Comparison,
) -> Result<(), ConvertError> {
    for hash in codes {
        watch.check()?;
        match target.code_bytes(hash) {
            Ok(code) if keccak256(&code) == hash => {
                found.codes += 1;
                found.code_bytes += code.len() as u64;
            }
            Ok(_) | Err(ReadError::MissingCode(_)) => found.add(Difference::Code(hash)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A range of keys under comparison.
#[derive(Default)]
struct Range {
    found: Comparison,
    /// Codes that accounts of the source have.
    codes: BTreeSet<B256>,
}

impl Range {
    fn compare(
        &mut self,
        mut source: KeyedAccounts<'_>,
        mut target: KeyedAccounts<'_>,
    ) -> Result<(), ConvertError> {
        let (mut left, mut right) = (source.next().transpose()?, target.next().transpose()?);
        loop {
            let (is_left, is_right) = match (&left, &right) {
                (None, None) => return Ok(()),
                (Some(a), Some(b)) => (a.key <= b.key, b.key <= a.key),
                (a, b) => (a.is_some(), b.is_some()),
            };
            let mut of_source = None;
            if is_left {
                of_source = std::mem::replace(&mut left, source.next().transpose()?);
            }
            let mut of_target = None;
            if is_right {
                of_target = std::mem::replace(&mut right, target.next().transpose()?);
            }
            self.account(of_source, of_target);
        }
    }

    fn account(&mut self, source: Option<KeyedAccount>, target: Option<KeyedAccount>) {
        if let Some(source) = &source
            && source.account.code_hash != KECCAK256_EMPTY
        {
            self.codes.insert(source.account.code_hash);
        }
        if let Some(target) = &target {
            self.found.counts.accounts += 1;
            self.found.counts.slots += target.slots.len() as u64;
        }
        let (source, target) = match (source, target) {
            (Some(source), Some(target)) => (source, target),
            (Some(source), None) => {
                return self.found.add(Difference::AccountMissing(source.address));
            }
            (None, Some(target)) => {
                return self.found.add(Difference::AccountSurplus(target.address));
            }
            (None, None) => return,
        };
        let address = source.address;
        // Keys that are the same do not make names the same.
        if address != target.address {
            self.found.add(Difference::AccountMissing(address));
            return self.found.add(Difference::AccountSurplus(target.address));
        }
        if source.account != target.account {
            self.found.add(Difference::Account {
                address,
                source: source.account,
                target: target.account,
            });
        }
        if source.slots != target.slots {
            self.slots(address, &source.slots, &target.slots);
        }
    }

    fn slots(&mut self, address: Address, mut source: &[KeyedSlot], mut target: &[KeyedSlot]) {
        loop {
            let (left, right) = (source.first(), target.first());
            let (is_left, is_right) = match (left, right) {
                (None, None) => return,
                (Some(a), Some(b)) => (a.key <= b.key, b.key <= a.key),
                (a, b) => (a.is_some(), b.is_some()),
            };
            let left = left.filter(|_| is_left);
            let right = right.filter(|_| is_right);
            if left != right {
                let zero = |slot: Option<&KeyedSlot>| slot.map_or(U256::ZERO, |slot| slot.value);
                let slot = left.or(right).map_or(U256::ZERO, |slot| slot.slot);
                self.found.add(Difference::Slot {
                    address,
                    slot,
                    source: zero(left),
                    target: zero(right),
                });
            }
            source = &source[usize::from(is_left)..];
            target = &target[usize::from(is_right)..];
        }
    }
}
