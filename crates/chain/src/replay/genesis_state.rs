//! The state of a genesis.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_hashing::keccak256_fixed;
use arbor_state::{
    Account, AccountChange, BlockRef, Computed, IntermediateRoots, LoadAccount, LoadSlot,
    LoadSource, RootPlace, SlotChange, State, StateChanges, StateError, WitnessState, state_root,
};
use arbor_tree_mpt::EMPTY_ROOT;
use rayon::prelude::*;

use super::ReplayError;
use super::error::Failure;
use super::record::BlockRecord;
use crate::executor::Ancestor;
use crate::genesis::{Genesis, GenesisAccount, Population};

impl Genesis {
    /// Makes the state of block 0 the first version of an empty database. Its root is the header's, if headers carry roots of the
    /// state's tree; else the accounts are those from which that header was made. A population is loaded: `progress` is called with
    /// the parts done and their number, and the version is flushed.
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
                changes: listed_changes(&self.alloc),
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
        match self.population {
            Some(_) => state.flush().map_err(failed),
            None => Ok(()),
        }
    }

    /// What is to be committed as version 0 of an empty database, its root among it.
    pub(crate) fn compute(
        &self,
        state: &mut State,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        match self.population {
            Some(population) => state.load(&Source::new(population, &self.alloc), progress),
            None => state.compute(&listed_changes(&self.alloc)),
        }
    }
}

/// The state root of a genesis with a population.
pub(crate) fn populated_state_root(
    population: Population,
    accounts: &[GenesisAccount],
) -> Result<B256, StateError> {
    state_root(&Source::new(population, accounts))
}

/// Listed accounts and those of a population, by range of their keys.
struct Source {
    listed: Vec<LoadAccount>,
    codes: BTreeMap<B256, Bytes>,
    /// The population's numbers, by the first bytes of their keys, and for each first byte where they begin.
    numbers: Vec<u32>,
    begins: [usize; 257],
    slots: Vec<LoadSlot>,
}

impl Source {
    fn new(population: Population, accounts: &[GenesisAccount]) -> Self {
        let changes = listed_changes(accounts);
        let listed = changes.accounts.into_par_iter().map(|(address, change)| {
            let slots = change.slots.into_iter();
            let account = change
                .new
                .expect("invariant: a genesis only makes accounts");
            LoadAccount::new(
                address,
                account,
                slots.map(|(slot, change)| (slot, change.new)),
            )
        });
        let mut listed: Vec<LoadAccount> = listed.collect();
        listed.par_sort_unstable_by_key(|account| account.key);
        let mut codes = changes.codes;
        codes.extend([Population::code()]);

        // Counting sort by first byte: a number takes 4 bytes, its key would take 32.
        let chunks: Vec<u32> = (0..population.accounts).step_by(CHUNK as usize).collect();
        let firsts: Vec<Vec<u8>> = chunks
            .par_iter()
            .map(|begin| {
                let end = population.accounts.min(begin.saturating_add(CHUNK));
                keys(*begin..end).iter().map(|key| key[0]).collect()
            })
            .collect();
        let mut begins = [0; 257];
        for first in firsts.iter().flatten() {
            begins[usize::from(*first) + 1] += 1;
        }
        for first in 0..256 {
            begins[first + 1] += begins[first];
        }
        let mut numbers = vec![0; population.accounts as usize];
        let mut next = begins;
        for (number, first) in (0..).zip(firsts.iter().flatten()) {
            let place = &mut next[usize::from(*first)];
            numbers[*place] = number;
            *place += 1;
        }
        let slots = (0..Population::SLOTS).map(|slot| (U256::from(slot), U256::ONE));
        Self {
            listed,
            codes,
            numbers,
            begins,
            slots: LoadAccount::new(Population::address(0), Population::account(0), slots).slots,
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

/// Accounts whose keys are computed together.
const CHUNK: u32 = 4_096;

fn keys(numbers: impl IntoIterator<Item = u32>) -> Vec<[u8; 32]> {
    let addresses = numbers
        .into_iter()
        .map(|number| Population::address(number).0.0);
    let addresses: Vec<[u8; 20]> = addresses.collect();
    let mut keys = vec![[0; 32]; addresses.len()];
    keccak256_fixed(&addresses, &mut keys);
    keys
}

impl LoadSource for Source {
    fn range(&self, first: u8) -> Result<Vec<LoadAccount>, StateError> {
        let begin = self.begins[usize::from(first)];
        let numbers = &self.numbers[begin..self.begins[usize::from(first) + 1]];
        let keys = keys(numbers.iter().copied());
        let mut keyed: Vec<([u8; 32], u32)> =
            keys.into_iter().zip(numbers.iter().copied()).collect();
        keyed.sort_unstable();
        let of_range = |account: &LoadAccount| account.key[0] == first;
        let begin = self
            .listed
            .partition_point(|account| account.key[0] < first);
        let mut listed = self.listed[begin..]
            .iter()
            .take_while(|account| of_range(account))
            .peekable();
        let mut accounts = Vec::with_capacity(keyed.len());
        for (key, number) in keyed {
            while let Some(account) = listed.next_if(|account| account.key < key) {
                accounts.push(account.clone());
            }
            accounts.push(self.inhabitant(number, key));
        }
        accounts.extend(listed.cloned());
        Ok(accounts)
    }

    fn by_address(&self) -> Box<dyn Iterator<Item = Result<LoadAccount, StateError>> + '_> {
        let mut listed: Vec<&LoadAccount> = self.listed.iter().collect();
        listed.sort_unstable_by_key(|account| account.address);
        let mut listed = listed.into_iter().peekable();
        // Numbers ascend as their addresses do.
        let mut numbers = (0..self.numbers.len() as u32).peekable();
        Box::new(std::iter::from_fn(move || {
            let address = numbers.peek().map(|number| Population::address(*number));
            let first = |account: &&LoadAccount| address.is_none_or(|it| account.address < it);
            if let Some(account) = listed.next_if(first) {
                return Some(Ok(account.clone()));
            }
            let number = numbers.next()?;
            let key = keys([number])[0];
            Some(Ok(self.inhabitant(number, key)))
        }))
    }

    fn codes(&self) -> Vec<(B256, Bytes)> {
        self.codes.clone().into_iter().collect()
    }
}

/// The state root of a genesis, by the tree itself.
pub fn genesis_state_root(accounts: &[GenesisAccount]) -> B256 {
    let empty = WitnessState::new(EMPTY_ROOT.into(), [], []);
    let root = empty.pending_roots().root_after(&listed_changes(accounts));
    root.expect("invariant: an empty state has nothing to read")
}

/// Accounts as changes of the empty state.
pub(crate) fn listed_changes(accounts: &[GenesisAccount]) -> StateChanges {
    let mut changes = StateChanges::default();
    for account in accounts {
        let code_hash = match account.code.is_empty() {
            true => KECCAK256_EMPTY,
            false => keccak256(&account.code),
        };
        if !account.code.is_empty() {
            changes.codes.insert(code_hash, account.code.clone());
        }
        let slots = account.storage.iter().map(|(slot, value)| {
            (
                U256::from_be_bytes(slot.0),
                SlotChange {
                    old: U256::ZERO,
                    new: *value,
                },
            )
        });
        let new = Account {
            nonce: account.nonce,
            balance: account.balance,
            code_hash,
        };
        let change = AccountChange {
            new: Some(new),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        changes.accounts.insert(account.address, change);
    }
    changes
}
