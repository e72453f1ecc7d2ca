//! The state as execution left it, some blocks ahead of the database.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use alloy_primitives::map::{AddressMap, B256Map, U256Map};
use alloy_primitives::{Address, B256, Bytes, U256};

use crate::{Account, AccountChange, ReadError, StateChanges, StateView};

/// Bytes that an account takes, its place in two maps at their usual load included.
const ACCOUNT_BYTES: usize = 320;
/// Bytes that a slot takes, likewise.
const SLOT_BYTES: usize = 128;

/// What execution has read and changed lately, by plain names: over a database it is the state after the latest block
/// executed, whose root may still be unknown.
///
/// What [`apply`](Self::apply) brings stays until [`settle`](Self::settle) tells that the database has it; anything
/// else is forgotten when it has not been used for a while. Reading a name again costs one look into a map, no hash
/// of the name and no record to decode.
pub struct RecentState {
    names: RefCell<Names>,
}

/// A value, and the last block that changed it; 0 if it was only read.
#[derive(Clone, Copy)]
struct Known<T> {
    value: T,
    block: u64,
}

#[derive(Default)]
struct Recent {
    account: Option<Known<Option<Account>>>,
    slots: U256Map<Known<U256>>,
    /// The last block that cleared the storage, 0 for none: until it is settled, slots not in `slots` are zero.
    cleared: u64,
}

/// Two generations: what is used moves to the young one, and when that is full the old one goes.
struct Names {
    young: AddressMap<Recent>,
    old: AddressMap<Recent>,
    /// Bytes that the young generation takes.
    bytes: usize,
    /// How many it may take.
    full_at: usize,
    generation_bytes: usize,
    /// The last block that the database has.
    settled: u64,
    /// Code deployed by blocks that the database does not have.
    codes: VecDeque<(u64, B256Map<Bytes>)>,
    /// Time that the database took to answer.
    waited: Duration,
}

impl RecentState {
    /// Knows nothing yet, and will take about `bytes` of memory.
    pub fn new(bytes: usize) -> Self {
        Self {
            names: RefCell::new(Names {
                young: AddressMap::default(),
                old: AddressMap::default(),
                bytes: 0,
                full_at: bytes / 2,
                generation_bytes: bytes / 2,
                settled: 0,
                codes: VecDeque::new(),
                waited: Duration::ZERO,
            }),
        }
    }

    /// The state after the latest block applied, over a database that has all blocks up to the last one settled, and
    /// may have later ones that were applied.
    pub fn over<'a, S: StateView + ?Sized>(&'a self, database: &'a S) -> impl StateView + 'a {
        View {
            recent: self,
            database,
        }
    }

    /// A slot's value, if the database need not be asked for it.
    pub fn known_slot(&self, address: Address, slot: U256) -> Option<U256> {
        self.names.borrow_mut().slot(address, slot)
    }

    /// How long the database took to answer all that was asked so far.
    pub fn waited(&self) -> Duration {
        self.names.borrow().waited
    }

    /// Takes over what a block changed.
    pub fn apply(&mut self, block: u64, changes: &StateChanges) {
        let names = self.names.get_mut();
        for (address, change) in &changes.accounts {
            names.put_change(*address, change, block);
        }
        if !changes.codes.is_empty() {
            let codes = changes
                .codes
                .iter()
                .map(|(hash, code)| (*hash, code.clone()));
            names.codes.push_back((block, codes.collect()));
        }
        names.forget();
    }

    /// Tells that the database now has all blocks up to this one.
    pub fn settle(&mut self, block: u64) {
        let names = self.names.get_mut();
        names.settled = block;
        while names
            .codes
            .front()
            .is_some_and(|(number, _)| *number <= block)
        {
            names.codes.pop_front();
        }
    }
}

impl Names {
    /// What the database answers.
    fn ask<T>(&mut self, question: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let answer = question();
        self.waited += start.elapsed();
        answer
    }

    fn account(&mut self, address: Address) -> Option<Option<Account>> {
        let young = self.young.get(&address).and_then(|recent| recent.account);
        if let Some(known) = young {
            return Some(known.value);
        }
        let known = self.old.get(&address)?.account?;
        self.put_account(address, known.value, known.block);
        Some(known.value)
    }

    fn slot(&mut self, address: Address, slot: U256) -> Option<U256> {
        let young = self.young.get(&address);
        if let Some(known) = young.and_then(|recent| recent.slots.get(&slot)) {
            return Some(known.value);
        }
        let old = self.old.get(&address);
        let found = old.and_then(|recent| recent.slots.get(&slot)).copied();
        let cleared = young
            .into_iter()
            .chain(old)
            .map(|recent| recent.cleared)
            .max();
        let known = match (found, cleared) {
            (Some(known), _) => known,
            (None, Some(block)) if block > self.settled => Known {
                value: U256::ZERO,
                block,
            },
            _ => return None,
        };
        self.put_slot(address, slot, known.value, known.block);
        Some(known.value)
    }

    /// Whether a slot is known that is not zero; `None` if only the database can tell.
    fn has_storage(&self, address: Address) -> Option<bool> {
        let generations = [self.young.get(&address), self.old.get(&address)];
        let known = || generations.into_iter().flatten();
        // A slot in both generations is taken from the young one.
        let newest = |slot| known().find_map(|recent: &Recent| recent.slots.get(slot));
        let mut slots = known().flat_map(|recent| recent.slots.keys());
        if slots.any(|slot| newest(slot).is_some_and(|known| !known.value.is_zero())) {
            return Some(true);
        }
        known()
            .any(|recent| recent.cleared > self.settled)
            .then_some(false)
    }

    fn put_account(&mut self, address: Address, value: Option<Account>, block: u64) {
        let recent = self.young.entry(address).or_default();
        let known = recent.account.replace(Known { value, block });
        self.bytes += known.map_or(ACCOUNT_BYTES, |_| 0);
    }

    fn put_slot(&mut self, address: Address, slot: U256, value: U256, block: u64) {
        let recent = self.young.entry(address).or_default();
        let known = recent.slots.insert(slot, Known { value, block });
        self.bytes += known.map_or(SLOT_BYTES, |_| 0);
    }

    /// Puts all that changed of an account, which is looked for but once.
    fn put_change(&mut self, address: Address, change: &AccountChange, block: u64) {
        if change.storage_cleared || change.new.is_none() {
            self.clear_storage(address, block);
        }
        let recent = self.young.entry(address).or_default();
        let value = change.new;
        let known = recent.account.replace(Known { value, block });
        self.bytes += known.map_or(ACCOUNT_BYTES, |_| 0);
        let before = recent.slots.len();
        for (slot, change) in &change.slots {
            let value = change.new;
            recent.slots.insert(*slot, Known { value, block });
        }
        self.bytes += (recent.slots.len() - before) * SLOT_BYTES;
    }

    fn clear_storage(&mut self, address: Address, block: u64) {
        if let Some(old) = self.old.get_mut(&address) {
            old.slots.clear();
        }
        let recent = self.young.entry(address).or_default();
        self.bytes -= recent.slots.len() * SLOT_BYTES;
        recent.slots.clear();
        recent.cleared = block;
    }

    /// Drops the old generation if the young one is full, but for what the database does not have.
    fn forget(&mut self) {
        if self.bytes <= self.full_at {
            return;
        }
        let dropped = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        self.bytes = 0;
        let settled = self.settled;
        for (address, recent) in dropped {
            let newer = self.old.get(&address);
            let account = recent.account.filter(|known| known.block > settled);
            let account = account.filter(|_| newer.is_none_or(|newer| newer.account.is_none()));
            let slots = recent.slots.into_iter().filter(|(slot, known)| {
                known.block > settled && newer.is_none_or(|newer| !newer.slots.contains_key(slot))
            });
            let slots: Vec<_> = slots.collect();
            if recent.cleared > settled {
                self.young.entry(address).or_default().cleared = recent.cleared;
            }
            if let Some(known) = account {
                self.put_account(address, known.value, known.block);
            }
            for (slot, known) in slots {
                self.put_slot(address, slot, known.value, known.block);
            }
        }
        // However much had to stay, there is room for a whole generation more.
        self.full_at = self.bytes + self.generation_bytes;
    }
}

struct View<'a, S: ?Sized> {
    recent: &'a RecentState,
    database: &'a S,
}

impl<S: StateView + ?Sized> StateView for View<'_, S> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        let mut names = self.recent.names.borrow_mut();
        if let Some(account) = names.account(address) {
            return Ok(account);
        }
        let account = names.ask(|| self.database.account(address))?;
        names.put_account(address, account, 0);
        Ok(account)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let mut names = self.recent.names.borrow_mut();
        if let Some(value) = names.slot(address, slot) {
            return Ok(value);
        }
        let value = names.ask(|| self.database.storage(address, slot))?;
        names.put_slot(address, slot, value, 0);
        Ok(value)
    }

    /// Slots that were set to zero and are not settled would be taken for set, but nothing sets a slot to zero where this
    /// is asked: in an account without code.
    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        let mut names = self.recent.names.borrow_mut();
        let known = names.has_storage(address);
        known.map_or_else(|| names.ask(|| self.database.has_storage(address)), Ok)
    }

    /// Only what is not known. Accounts are then known, so that the database is not asked for them again.
    fn expect(&self, accounts: &[Address], slots: &[(Address, U256)]) {
        let mut names = self.recent.names.borrow_mut();
        let unknown = |address: &&Address| names.account(**address).is_none();
        let accounts: Vec<Address> = accounts.iter().filter(unknown).copied().collect();
        let unknown = |(address, slot): &&(Address, U256)| names.slot(*address, *slot).is_none();
        let slots: Vec<(Address, U256)> = slots.iter().filter(unknown).copied().collect();
        let read = names.ask(|| {
            self.database.expect(&[], &slots);
            self.database.accounts(&accounts)
        });
        // A block may name more than there is memory for, and nobody has checked yet that it has the gas for it.
        for (address, account) in accounts.into_iter().zip(read.into_iter().flatten()) {
            if names.bytes > names.full_at {
                break;
            }
            names.put_account(address, account, 0);
        }
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        let mut names = self.recent.names.borrow_mut();
        let mut deployed = names.codes.iter();
        match deployed.find_map(|(_, codes)| codes.get(&code_hash)) {
            Some(code) => Ok(code.clone()),
            None => names.ask(|| self.database.code(code_hash)),
        }
    }
}
