//! A block's state in the making: what it has read and what it has changed.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::map::{AddressMap, B256Map, U256Map};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_revm_state::{ViewError, account_of, info_of};
use arbor_state::{Account, AccountChange, ReadError, SlotChange, StateChanges, StateView};
use revm::bytecode::Bytecode;
use revm::database_interface::Database;
use revm::state::{Account as EvmAccount, AccountId, AccountInfo, EvmState};

use super::Ancestors;
use super::accesses::TransactionAccess;
use super::code_cache::CodeCache;
use super::hash_cache::HashCache;

/// Accounts and slots that a block may read. Since Berlin they cost 1.1 billion gas; before, down to 10 million.
const READS: usize = 1 << 19;

/// A slot before and now.
#[derive(Clone, Copy, Debug)]
struct Slot {
    original: U256,
    current: U256,
}

/// An account before and now.
#[derive(Clone, Debug, Default)]
struct Entry {
    original: Option<Account>,
    current: Option<Account>,
    /// Code of `current`, once it has been needed.
    code: Option<Bytecode>,
    /// Whether all slots of `original` are gone.
    cleared: bool,
    slots: U256Map<Slot>,
}

impl Entry {
    fn of(original: Option<Account>) -> Self {
        Self {
            original,
            current: original,
            ..Self::default()
        }
    }

    /// The account is no more.
    fn destroy(&mut self) {
        self.current = None;
        self.code = None;
        self.clear_storage();
    }

    fn clear_storage(&mut self) {
        self.cleared |= self.original.is_some();
        self.slots.clear();
    }

    /// Whether a slot that is not in `slots` is zero whatever the view says.
    fn has_no_old_storage(&self) -> bool {
        self.cleared || self.original.is_none()
    }

    /// Takes over what a transaction left of the account, which it touched.
    ///
    /// `keeps_empty` tells that EIP-161 is not in force, so that an empty account is one that exists.
    fn apply(&mut self, evm: &EvmAccount, keeps_empty: bool) {
        if evm.is_selfdestructed() || (!keeps_empty && evm.is_empty()) {
            self.destroy();
            return;
        }
        if evm.is_created() {
            self.clear_storage();
        }
        self.current = Some(account_of(&evm.info));
        for (key, slot) in evm.storage.iter().filter(|(_, slot)| slot.is_changed()) {
            // A slot that is not there was not read, so it belongs to a contract made in this block, or
            // (in the changes of one transaction) it is as it was before the transaction.
            self.slots
                .entry(*key)
                .or_insert(Slot {
                    original: slot.original_value,
                    current: slot.original_value,
                })
                .current = slot.present_value;
        }
    }

    /// The difference between then and now, if there is one.
    fn change(&self) -> Option<AccountChange> {
        let slots: BTreeMap<U256, SlotChange> = if self.current.is_some() {
            let cleared = self.has_no_old_storage();
            let old = |slot: &Slot| if cleared { U256::ZERO } else { slot.original };
            self.slots
                .iter()
                .filter(|(_, slot)| old(slot) != slot.current)
                .map(|(key, slot)| {
                    (
                        *key,
                        SlotChange {
                            old: old(slot),
                            new: slot.current,
                        },
                    )
                })
                .collect()
        } else {
            BTreeMap::new()
        };
        let changed = self.original != self.current || self.cleared || !slots.is_empty();
        changed.then_some(AccountChange {
            old: self.original,
            new: self.current,
            storage_cleared: self.cleared,
            slots,
        })
    }
}

/// What one transaction changed, for the roots that receipts carried before Byzantium.
#[derive(Default)]
struct Delta {
    accounts: AddressMap<Entry>,
}

/// Reads through a view, remembers what it read, and keeps what transactions changed.
pub(super) struct Overlay<'a, S: ?Sized> {
    view: &'a S,
    chain: &'a dyn Ancestors,
    codes: &'a mut CodeCache,
    hashes: &'a mut HashCache,
    accounts: Vec<Entry>,
    index: AddressMap<u32>,
    /// Accounts and slots read.
    reads: usize,
    new_codes: B256Map<Bytes>,
    keeps_empty: bool,
    delta: Option<Delta>,
    /// An account that revm shall take for a contract.
    shown_as_contract: Option<Address>,
}

impl<'a, S: StateView + ?Sized> Overlay<'a, S> {
    /// Starts a block. `keeps_empty`: before Spurious Dragon, empty accounts stay.
    pub(super) fn new(
        view: &'a S,
        chain: &'a dyn Ancestors,
        (codes, hashes): (&'a mut CodeCache, &'a mut HashCache),
        keeps_empty: bool,
    ) -> Self {
        Self {
            view,
            chain,
            codes,
            hashes,
            accounts: Vec::new(),
            index: AddressMap::default(),
            reads: 0,
            new_codes: B256Map::default(),
            keeps_empty,
            delta: None,
            shown_as_contract: None,
        }
    }

    /// From now on keeps the changes since the last [`take_delta`](Self::take_delta) apart as well.
    pub(super) fn track_delta(&mut self) {
        self.delta = Some(Delta::default());
    }

    /// Takes the changes since the last call.
    pub(super) fn take_delta(&mut self) -> StateChanges {
        let delta = self.delta.replace(Delta::default()).unwrap_or_default();
        let changes = delta
            .accounts
            .iter()
            .filter_map(|(a, e)| Some((*a, e.change()?)));
        self.with_codes(changes.collect())
    }

    /// Returns the difference between the block's start and now.
    pub(super) fn changes(&self) -> StateChanges {
        // Put in order while they are small.
        let mut order: Vec<(Address, u32)> = Vec::with_capacity(self.index.len());
        order.extend(self.index.iter().map(|(address, index)| (*address, *index)));
        order.sort_unstable_by_key(|(address, _)| *address);
        let changes = order.into_iter().filter_map(|(address, index)| {
            Some((address, self.accounts[index as usize].change()?))
        });
        self.with_codes(changes.collect())
    }

    fn with_codes(&self, accounts: BTreeMap<Address, AccountChange>) -> StateChanges {
        let codes = accounts
            .values()
            .filter_map(|change| {
                let hash = change.new?.code_hash;
                let old = change.old.map(|old| old.code_hash);
                (old != Some(hash)).then_some(hash)
            })
            .filter_map(|hash| Some((hash, self.new_codes.get(&hash)?.clone())))
            .collect();
        StateChanges { accounts, codes }
    }

    /// What a transaction read and wrote that left this state, but for the fields of the block's beneficiary.
    pub(super) fn accessed(&self, state: &EvmState, beneficiary: Address) -> TransactionAccess {
        let mut access = TransactionAccess::default();
        for (address, account) in state {
            let before = self.index.get(address);
            let before = before.and_then(|index| self.accounts[*index as usize].current);
            if *address != beneficiary {
                access.reads.push((*address, None));
                let after = account_of(&account.info);
                let is_other = account.is_selfdestructed() || before.unwrap_or_default() != after;
                if account.is_touched() && is_other {
                    access.writes.push((*address, None));
                }
            }
            for (slot, value) in &account.storage {
                access.reads.push((*address, Some(*slot)));
                if value.is_changed() {
                    access.writes.push((*address, Some(*slot)));
                }
            }
        }
        access
    }

    /// Adds the slots in the journal of a transaction or system call that the view was not asked for. revm does not ask for
    /// the slots of a contract made in the transaction, and [`slot`](Self::slot) does not ask if there is no old storage.
    pub(super) fn add_unasked(
        &self,
        state: &EvmState,
        slots: &mut BTreeMap<Address, BTreeSet<U256>>,
    ) {
        for (address, account) in state {
            let entry = self.index.get(address);
            let entry = entry.map(|index| &self.accounts[*index as usize]);
            let is_known = |slot: &U256| entry.is_some_and(|entry| entry.slots.contains_key(slot));
            for slot in account.storage.keys() {
                if !is_known(slot) {
                    slots.entry(*address).or_default().insert(*slot);
                }
            }
        }
    }

    /// Takes over what a transaction or system call left, and empties `state`.
    pub(super) fn apply(&mut self, state: &mut EvmState) -> Result<(), ReadError> {
        for (address, account) in state.drain() {
            let index = match account.info.account_id {
                Some(id) => id.get(),
                None => self.load(address)?,
            };
            if account.is_touched() {
                self.apply_one(index, address, &account);
            }
            let entry = &mut self.accounts[index];
            if entry.code.is_none() && entry.current.is_some() {
                entry.code = account.info.code;
            }
        }
        Ok(())
    }

    fn apply_one(&mut self, index: usize, address: Address, account: &EvmAccount) {
        let entry = &mut self.accounts[index];
        let before = entry.current;
        entry.apply(account, self.keeps_empty);
        if let Some(delta) = &mut self.delta {
            delta
                .accounts
                .entry(address)
                .or_insert_with(|| Entry::of(before))
                .apply(account, self.keeps_empty);
        }
        let code_hash = |account: Option<Account>| account.map(|account| account.code_hash);
        if code_hash(before) == code_hash(entry.current) {
            return;
        }
        // Creation, or an authorisation of EIP-7702.
        entry.code = None;
        if let (Some(hash), Some(code)) = (code_hash(entry.current), &account.info.code) {
            entry.code = Some(code.clone());
            if hash != KECCAK256_EMPTY {
                self.new_codes.insert(hash, code.original_bytes());
                self.codes.insert(hash, code.clone());
            }
        }
    }

    /// Returns an account's balance, `None` if it does not exist.
    pub(super) fn balance(&mut self, address: Address) -> Result<Option<U256>, ReadError> {
        let index = self.load(address)?;
        Ok(self.accounts[index].current.map(|account| account.balance))
    }

    /// Returns whether there is code at an address.
    pub(super) fn has_code(&mut self, address: Address) -> Result<bool, ReadError> {
        let index = self.load(address)?;
        let account = self.accounts[index].current;
        Ok(account.is_some_and(|account| account.code_hash != KECCAK256_EMPTY))
    }

    /// Returns whether an account has storage and neither code nor nonce. What the transaction under way has stored is not
    /// asked for: only init code before Spurious Dragon stores where no code and nonce are, and no address is its twice.
    pub(super) fn has_only_storage(&mut self, address: Address) -> Result<bool, ReadError> {
        let index = self.load(address)?;
        let entry = &self.accounts[index];
        match entry.current {
            Some(account) if account.nonce == 0 && account.code_hash == KECCAK256_EMPTY => {
                let stored = entry.slots.values().any(|slot| !slot.current.is_zero());
                Ok(stored || (!entry.has_no_old_storage() && self.view.has_storage(address)?))
            }
            _ => Ok(false),
        }
    }

    /// What contracts hashed lately.
    pub(super) fn hashes(&mut self) -> &mut HashCache {
        self.hashes
    }

    /// From now on gives revm no code hash for this account, which it takes for that of a contract.
    pub(super) fn show_as_contract(&mut self, address: Option<Address>) {
        self.shown_as_contract = address;
    }

    /// Sets a balance outside of any transaction, and touches the account: one that does not exist comes
    /// into being, one that is empty afterwards goes where EIP-161 is in force.
    pub(super) fn set_balance(&mut self, address: Address, balance: U256) -> Result<(), ReadError> {
        let index = self.load(address)?;
        let entry = &mut self.accounts[index];
        let before = entry.current;
        let account = before.unwrap_or(Account {
            nonce: 0,
            balance,
            code_hash: KECCAK256_EMPTY,
        });
        let now = Account { balance, ..account };
        let entries = self
            .delta
            .as_mut()
            .map(|d| {
                d.accounts
                    .entry(address)
                    .or_insert_with(|| Entry::of(before))
            })
            .into_iter()
            .chain([entry]);
        for entry in entries {
            let empty = balance.is_zero() && now.nonce == 0 && now.code_hash == KECCAK256_EMPTY;
            if empty && !self.keeps_empty {
                entry.destroy();
            } else {
                entry.current = Some(now);
            }
        }
        Ok(())
    }

    /// Returns the position of an account, reading it if this is the first time.
    fn load(&mut self, address: Address) -> Result<usize, ReadError> {
        if let Some(index) = self.index.get(&address) {
            return Ok(*index as usize);
        }
        self.count_read()?;
        let original = self.view.account(address)?;
        let index = self.accounts.len();
        self.accounts.push(Entry::of(original));
        let key = u32::try_from(index).expect("invariant: a block's gas bounds its accounts");
        self.index.insert(address, key);
        Ok(index)
    }

    fn count_read(&mut self) -> Result<(), ReadError> {
        self.reads += 1;
        match self.reads <= READS {
            true => Ok(()),
            false => Err(ReadError::new(format!(
                "the block reads more than {READS} accounts and slots, which is the bound"
            ))),
        }
    }

    fn slot(&mut self, index: usize, address: Address, key: U256) -> Result<U256, ReadError> {
        if let Some(slot) = self.accounts[index].slots.get(&key) {
            return Ok(slot.current);
        }
        self.count_read()?;
        let entry = &mut self.accounts[index];
        if entry.has_no_old_storage() {
            return Ok(U256::ZERO);
        }
        let value = self.view.storage(address, key)?;
        entry.slots.insert(
            key,
            Slot {
                original: value,
                current: value,
            },
        );
        Ok(value)
    }
}

impl<S: StateView + ?Sized> Database for Overlay<'_, S> {
    type Error = ViewError;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, ViewError> {
        let index = self.load(address)?;
        let entry = &mut self.accounts[index];
        let Some(account) = entry.current else {
            return Ok(None);
        };
        if entry.code.is_none() {
            entry.code = if account.code_hash == KECCAK256_EMPTY {
                Some(Bytecode::default())
            } else if let Some(bytes) = self.view.code_of(address, account.code_hash)? {
                // Another account with this code may show other parts of it, so the cache does not keep it.
                Some(self.codes.analysed(bytes))
            } else {
                // Code that is not cached stays unread until it is run.
                self.codes.get(&account.code_hash)
            };
        }
        let code_hash = match self.shown_as_contract == Some(address) {
            true => B256::ZERO,
            false => account.code_hash,
        };
        Ok(Some(AccountInfo {
            code_hash,
            account_id: AccountId::new(index),
            code: entry.code.clone(),
            ..info_of(account)
        }))
    }

    fn code_by_hash(&mut self, code_hash: B256) -> Result<Bytecode, ViewError> {
        if let Some(code) = self.codes.get(&code_hash) {
            return Ok(code);
        }
        let bytes = match self.new_codes.get(&code_hash) {
            Some(bytes) => bytes.clone(),
            None => self.view.code(code_hash)?,
        };
        Ok(self.codes.analyse(code_hash, bytes))
    }

    fn storage(&mut self, address: Address, key: U256) -> Result<U256, ViewError> {
        let index = self.load(address)?;
        Ok(self.slot(index, address, key)?)
    }

    fn storage_by_account_id(
        &mut self,
        address: Address,
        id: AccountId,
        key: U256,
    ) -> Result<U256, ViewError> {
        Ok(self.slot(id.get(), address, key)?)
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, ViewError> {
        Ok(self.chain.block_hash(number)?)
    }
}
