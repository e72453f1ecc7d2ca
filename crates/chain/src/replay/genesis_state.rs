//! The state of a genesis.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_hashing::keccak256_fixed;
use arbor_state::{
    Account, AccountChange, BlockRef, Computed, LoadAccount, LoadSlot, LoadSource, RootPlace,
    SlotChange, State, StateChanges, StateError, state_root,
};
use rayon::prelude::*;

use super::ReplayError;
use super::error::Failure;
use super::record::BlockRecord;
use crate::executor::Ancestor;
use crate::genesis::{Alloc, Genesis, GenesisAccount, Population};

/// Packed bytes of accounts that are committed as the changes of a block, in one piece: some
/// 12,000, which take 4 kB each meanwhile. A kill leaves them whole or absent. More are loaded, and
/// a load that was killed must be begun again.
const MOST_AS_CHANGES: usize = 1 << 19;

impl Genesis {
    /// Makes the state of block 0 the first version of an empty database. Its root is the header's,
    /// if headers carry roots of the state's tree; else the accounts are those from which that
    /// header was made. A population and many accounts are [loaded](Self::is_loaded): `progress` is
    /// called with the parts done and their number, and the version is flushed.
    ///
    /// # Errors
    /// A state root that is not the header's; errors of the state.
    pub fn commit(
        &self,
        state: &mut State,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<(), ReplayError> {
        let failed = |error| ReplayError::State { number: 0, error };
        let computed = self.compute(state, progress).map_err(failed)?;
        if state.tree().kind().roots == RootPlace::InHeaders
            && computed.root() != self.header.state_root
        {
            return Err(ReplayError::StateRoot(Box::new(Failure {
                number: 0,
                hash: self.hash,
                expected: self.header.state_root,
                actual: computed.root(),
                changes: match self.is_loaded() {
                    true => StateChanges::default(),
                    false => listed_changes(&self.alloc),
                },
                receipts: Vec::new(),
            })));
        }
        let record = BlockRecord {
            block: Ancestor {
                hash: self.hash,
                header: self.header.clone(),
                ommers: Vec::new(),
            },
            total_difficulty: Some(self.header.difficulty),
        };
        let block = BlockRef {
            number: 0,
            hash: self.hash,
            header: record.encode(),
        };
        state.commit(&block, computed).map_err(failed)?;
        match self.is_loaded() {
            true => state.flush().map_err(failed),
            false => Ok(()),
        }
    }

    /// Whether the state is loaded, range by range, so that its accounts take little memory: a
    /// population, or more than about 12,000 accounts.
    pub fn is_loaded(&self) -> bool {
        self.population.is_some() || self.alloc.packed_bytes() > MOST_AS_CHANGES
    }

    /// What is to be committed as version 0 of an empty database, its root among it.
    pub fn compute(
        &self,
        state: &mut State,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        match self.is_loaded() {
            true => state.load(&Source::new(self.population, &self.alloc), progress),
            false => state.compute(&listed_changes(&self.alloc)),
        }
    }
}

/// The state root of a genesis with a population.
pub fn populated_state_root(population: Population, accounts: &Alloc) -> Result<B256, StateError> {
    state_root(&Source::new(Some(population), accounts))
}

/// The state root of a genesis. In memory are some ranges of its accounts, 256ths, for each thread.
pub fn genesis_state_root(accounts: &Alloc) -> B256 {
    let root = state_root(&Source::new(None, accounts));
    root.expect("invariant: packed accounts ascend, each once, and nothing is read")
}

/// Listed accounts and those of a population, by range of their keys.
struct Source<'a> {
    alloc: &'a Alloc,
    listed: ByKey,
    codes: BTreeMap<B256, Bytes>,
    inhabitants: ByKey,
    slots: Vec<LoadSlot>,
}

/// Numbers of accounts by the first bytes of their keys.
struct ByKey {
    numbers: Vec<u32>,
    /// Where the numbers of each first byte begin.
    begins: [usize; 257],
}

impl ByKey {
    /// Sorts the numbers below `count`. A number takes 4 bytes, its key would take 32.
    fn new(count: u32, address: impl Fn(u32) -> Address + Sync) -> Self {
        let chunks: Vec<u32> = (0..count).step_by(CHUNK as usize).collect();
        let firsts: Vec<Vec<u8>> = chunks
            .par_iter()
            .map(|begin| {
                let end = count.min(begin.saturating_add(CHUNK));
                let keys = keys((*begin..end).map(&address));
                keys.iter().map(|key| key[0]).collect()
            })
            .collect();
        // Counting sort.
        let mut begins = [0; 257];
        for first in firsts.iter().flatten() {
            begins[usize::from(*first) + 1] += 1;
        }
        for first in 0..256 {
            begins[first + 1] += begins[first];
        }
        let mut numbers = vec![0; count as usize];
        let mut next = begins;
        for (number, first) in (0..).zip(firsts.iter().flatten()) {
            let place = &mut next[usize::from(*first)];
            numbers[*place] = number;
            *place += 1;
        }
        Self { numbers, begins }
    }

    /// The numbers of the accounts whose keys have this first byte.
    fn range(&self, first: u8) -> impl Iterator<Item = u32> + Clone + '_ {
        let first = usize::from(first);
        let range = self.begins[first]..self.begins[first + 1];
        self.numbers[range].iter().copied()
    }
}

/// An account of a genesis.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    /// By its position in the order of addresses.
    Listed(u32),
    /// By its number in the population.
    Inhabitant(u32),
}

impl<'a> Source<'a> {
    fn new(population: Option<Population>, alloc: &'a Alloc) -> Self {
        let codes = alloc.codes().map(|code| (keccak256(&code), code));
        let mut codes: BTreeMap<B256, Bytes> = codes.collect();
        codes.extend(population.map(|_| Population::code()));
        let count = u32::try_from(alloc.len());
        let count = count.expect("invariant: a genesis has at most a gigabyte");
        let slots = (0..Population::SLOTS).map(|slot| (U256::from(slot), U256::ONE));
        Self {
            alloc,
            listed: ByKey::new(count, |index| alloc.address(index as usize)),
            codes,
            inhabitants: ByKey::new(
                population.map_or(0, |population| population.accounts),
                Population::address,
            ),
            slots: LoadAccount::new(Population::address(0), Population::account(0), slots).slots,
        }
    }

    fn account(&self, member: Member, key: [u8; 32]) -> LoadAccount {
        match member {
            Member::Listed(index) => load_account(self.alloc.get(index as usize)),
            Member::Inhabitant(number) => self.inhabitant(number, key),
        }
    }

    fn inhabitant(&self, number: u32, key: [u8; 32]) -> LoadAccount {
        let slots = self.slots.iter().map(|slot| LoadSlot {
            value: Population::value(number, slot.slot.to()),
            ..*slot
        });
        LoadAccount {
            key,
            address: Population::address(number),
            account: Population::account(number),
            slots: slots.collect(),
        }
    }
}

fn load_account(account: GenesisAccount) -> LoadAccount {
    let info = info(&account);
    let slots = account.storage.into_iter();
    let slots = slots.map(|(slot, value)| (U256::from_be_bytes(slot.0), value));
    LoadAccount::new(account.address, info, slots)
}

/// Nonce, balance and code hash of an account.
fn info(account: &GenesisAccount) -> Account {
    Account {
        nonce: account.nonce,
        balance: account.balance,
        code_hash: match account.code.is_empty() {
            true => KECCAK256_EMPTY,
            false => keccak256(&account.code),
        },
    }
}

/// Accounts whose keys are computed together.
const CHUNK: u32 = 4_096;

fn keys(addresses: impl Iterator<Item = Address>) -> Vec<[u8; 32]> {
    let addresses: Vec<[u8; 20]> = addresses.map(|address| address.0.0).collect();
    let mut keys = vec![[0; 32]; addresses.len()];
    keccak256_fixed(&addresses, &mut keys);
    keys
}

impl LoadSource for Source<'_> {
    fn range(&self, first: u8) -> Result<Vec<LoadAccount>, StateError> {
        let (listed, inhabitants) = (self.listed.range(first), self.inhabitants.range(first));
        let addresses = listed
            .clone()
            .map(|index| self.alloc.address(index as usize));
        let keys = keys(addresses.chain(inhabitants.clone().map(Population::address)));
        let members = listed.map(Member::Listed);
        let members = members.chain(inhabitants.map(Member::Inhabitant));
        let mut keyed: Vec<([u8; 32], Member)> = keys.into_iter().zip(members).collect();
        keyed.sort_unstable();
        let accounts = keyed.into_iter();
        Ok(accounts
            .map(|(key, member)| self.account(member, key))
            .collect())
    }

    fn by_address(&self) -> Box<dyn Iterator<Item = Result<LoadAccount, StateError>> + '_> {
        let mut listed = self.alloc.iter().peekable();
        // Numbers ascend as their addresses do.
        let mut numbers = (0..self.inhabitants.numbers.len() as u32).peekable();
        Box::new(std::iter::from_fn(move || {
            let address = numbers.peek().map(|number| Population::address(*number));
            let first = |account: &GenesisAccount| address.is_none_or(|it| account.address < it);
            if let Some(account) = listed.next_if(first) {
                return Some(Ok(load_account(account)));
            }
            let number = numbers.next()?;
            let key = keys(std::iter::once(Population::address(number)))[0];
            Some(Ok(self.inhabitant(number, key)))
        }))
    }

    fn codes(&self) -> Vec<(B256, Bytes)> {
        self.codes.clone().into_iter().collect()
    }
}

/// Accounts as changes of the empty state.
pub fn listed_changes(accounts: &Alloc) -> StateChanges {
    let mut changes = StateChanges::default();
    for account in accounts.iter() {
        let new = info(&account);
        if !account.code.is_empty() {
            changes.codes.insert(new.code_hash, account.code);
        }
        let slots = account.storage.into_iter().map(|(slot, new)| {
            let old = U256::ZERO;
            (U256::from_be_bytes(slot.0), SlotChange { old, new })
        });
        let change = AccountChange {
            new: Some(new),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        changes.accounts.insert(account.address, change);
    }
    changes
}
