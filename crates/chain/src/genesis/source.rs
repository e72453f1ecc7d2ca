//! The accounts of a genesis as a tree is loaded with them.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{
    Account, AccountOrder, AccountSource, BY_KECCAK, FullAccount, KeyedAccount, KeyedAccounts,
    KeyedSlot, ReadError, state_root,
};
use rayon::prelude::*;

use super::account::GenesisAccount;
use super::alloc::Alloc;
use super::population::Population;

impl Alloc {
    /// Returns the accounts, those of a population among them, as a stream in an order.
    pub fn source(&self, order: &'static AccountOrder) -> Box<dyn AccountSource + '_> {
        Box::new(Sorted::new(self, order))
    }

    /// Computes the Merkle-Patricia state root of the accounts. In memory are some ranges of them, 256ths, for each thread.
    pub fn state_root(&self) -> B256 {
        let root = state_root(&*self.source(&BY_KECCAK));
        root.expect("invariant: packed accounts ascend, each once, and nothing is read")
    }
}

fn listed_account(account: &GenesisAccount) -> FullAccount {
    let slots = account.storage.iter();
    let slots = slots.map(|(slot, value)| (U256::from_be_bytes(slot.0), *value));
    FullAccount {
        address: account.address,
        account: info(account),
        slots: slots.filter(|(_, value)| !value.is_zero()).collect(),
    }
}

fn inhabitant(number: u32, slots: u64) -> FullAccount {
    let slots = 0..slots;
    let slots = slots.map(|slot| (U256::from(slot), Population::value(number, slot)));
    FullAccount {
        address: Population::address(number),
        account: Population::account(number),
        slots: slots.collect(),
    }
}

/// Nonce, balance and code hash of an account.
pub(crate) fn info(account: &GenesisAccount) -> Account {
    Account {
        nonce: account.nonce,
        balance: account.balance,
        code_hash: match account.code.is_empty() {
            true => KECCAK256_EMPTY,
            false => keccak256(&account.code),
        },
    }
}

/// All accounts of a genesis in an order, by ranges of their keys. Only numbers are kept sorted.
struct Sorted<'a> {
    alloc: &'a Alloc,
    codes: BTreeMap<B256, Bytes>,
    order: &'static AccountOrder,
    listed: ByKey,
    inhabitants: ByKey,
    population: Option<Population>,
    /// The slots that all inhabitants have, with the values of the first one.
    slots: Vec<KeyedSlot>,
}

/// Numbers of accounts by the first bytes of their keys.
struct ByKey {
    numbers: Vec<u32>,
    /// Where the numbers of each first byte begin.
    begins: [usize; 257],
}

/// Accounts whose keys are computed together.
const CHUNK: u32 = 4_096;

impl ByKey {
    /// Sorts the numbers below `count`. A number takes 4 bytes, its key would take 32.
    fn new(order: &AccountOrder, count: u32, address: impl Fn(u32) -> Address + Sync) -> Self {
        let chunks: Vec<u32> = (0..count).step_by(CHUNK as usize).collect();
        let firsts: Vec<Vec<u8>> = chunks
            .par_iter()
            .map(|begin| {
                let end = count.min(begin.saturating_add(CHUNK));
                let keys = keys(order, (*begin..end).map(&address));
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

fn keys(order: &AccountOrder, addresses: impl Iterator<Item = Address>) -> Vec<[u8; 32]> {
    let addresses: Vec<Address> = addresses.collect();
    let mut keys = vec![[0; 32]; addresses.len()];
    (order.account_keys)(&addresses, &mut keys);
    keys
}

/// An account of a genesis.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    /// By its position in the order of addresses.
    Listed(u32),
    /// By its number in the population.
    Inhabitant(u32),
}

impl<'a> Sorted<'a> {
    fn new(alloc: &'a Alloc, order: &'static AccountOrder) -> Self {
        let population = alloc.population();
        let codes = alloc.codes().map(|code| (keccak256(&code), code));
        let mut codes: BTreeMap<B256, Bytes> = codes.collect();
        codes.extend(population.map(|_| Population::code()));
        let inhabitants = population.map_or(0, |population| population.accounts);
        let count = u32::try_from(alloc.len());
        let count = count.expect("invariant: a genesis has at most a gigabyte");
        let listed = ByKey::new(order, count, |index| alloc.address(index as usize));
        let inhabitants = ByKey::new(order, inhabitants, Population::address);
        let first = order.with_keys(vec![inhabitant(0, Population::SLOTS)]);
        Self {
            listed,
            inhabitants,
            population,
            slots: first.into_iter().flat_map(|first| first.slots).collect(),
            alloc,
            codes,
            order,
        }
    }

    /// The accounts whose keys have this first byte, ascending by key.
    fn range(&self, first: u8) -> impl Iterator<Item = KeyedAccount> + '_ {
        let (listed, inhabitants) = (self.listed.range(first), self.inhabitants.range(first));
        let addresses = listed.clone();
        let addresses = addresses.map(|index| self.alloc.address(index as usize));
        let addresses = addresses.chain(inhabitants.clone().map(Population::address));
        let keys = keys(self.order, addresses);
        let members = listed.map(Member::Listed);
        let members = members.chain(inhabitants.map(Member::Inhabitant));
        let mut keyed: Vec<([u8; 32], Member)> = keys.into_iter().zip(members).collect();
        keyed.sort_unstable();
        let accounts = keyed.into_iter();
        accounts.map(|(key, member)| self.account(member, key))
    }

    fn account(&self, member: Member, key: [u8; 32]) -> KeyedAccount {
        match member {
            Member::Listed(index) => {
                let account = self.alloc.get(index as usize);
                let mut keyed = self.order.with_keys(vec![listed_account(&account)]);
                keyed.remove(0)
            }
            Member::Inhabitant(number) => self.inhabitant(number, key),
        }
    }

    /// An account of the population. Unless it is the large contract, the keys of its slots are those of every other one's.
    fn inhabitant(&self, number: u32, key: [u8; 32]) -> KeyedAccount {
        let slots = self.population.map_or(0, |all| all.slots(number));
        if slots > Population::SLOTS {
            let mut keyed = self.order.with_keys(vec![inhabitant(number, slots)]);
            return keyed.remove(0);
        }
        let slots = self.slots.iter().map(|slot| KeyedSlot {
            value: Population::value(number, slot.slot.to()),
            ..*slot
        });
        KeyedAccount {
            key,
            address: Population::address(number),
            account: Population::account(number),
            slots: slots.collect(),
        }
    }
}

impl AccountSource for Sorted<'_> {
    fn order(&self) -> &'static AccountOrder {
        self.order
    }

    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
        let ranges = match first {
            Some(first) => first..=first,
            None => 0..=u8::MAX,
        };
        Ok(Box::new(ranges.flat_map(|first| self.range(first)).map(Ok)))
    }

    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        let code = self.codes.get(&code_hash).cloned();
        code.ok_or(ReadError::MissingCode(code_hash))
    }
}
