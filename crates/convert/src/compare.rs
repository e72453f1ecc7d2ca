//! The independent pass: the target is read again and compared with the source.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, AccountSource, KeyedAccount, KeyedAccounts, KeyedSlot, ReadError};
use rayon::prelude::*;

use crate::ConvertError;
use crate::counts::Counts;
use crate::progress::Watch;

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
    /// Whether target and source are the same.
    pub fn is_same(&self) -> bool {
        self.difference_count == 0
    }

    fn add(&mut self, difference: Difference) {
        self.difference_count += 1;
        if self.differences.len() < NAMED {
            self.differences.push(difference);
        }
    }

    fn merge(&mut self, other: Self) {
        self.counts.accounts += other.counts.accounts;
        self.counts.slots += other.counts.slots;
        self.difference_count += other.difference_count;
        let room = NAMED - self.differences.len();
        self.differences
            .extend(other.differences.into_iter().take(room));
    }
}

/// Reads all of two states of one order, some of their 256 ranges at a time, and compares them. Codes are read from the target
/// and hashed.
pub(crate) fn compare(
    source: &dyn AccountSource,
    target: &dyn AccountSource,
    watch: &Watch<'_>,
) -> Result<Comparison, ConvertError> {
    let all = Mutex::new((Comparison::default(), BTreeSet::new(), 0u32));
    (0..=u8::MAX).into_par_iter().try_for_each(|first| {
        watch.check()?;
        let mut range = Range::default();
        range.compare(source.stream(Some(first))?, target.stream(Some(first))?)?;
        watch.count(range.found.counts);
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, codes, ranges) = &mut *all;
        found.merge(range.found);
        codes.append(&mut range.codes);
        *ranges += 1;
        watch.done(f64::from(*ranges) / 256.0);
        Ok::<(), ConvertError>(())
    })?;
    let (mut found, codes, _) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
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
    Ok(found)
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
