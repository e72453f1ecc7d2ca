//! A small world for tests: state in maps, one transaction a block.

use std::collections::BTreeMap;

use alloy_consensus::{BlockBody, Header, ReceiptEnvelope};
use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
use arbor_state::{Account, ReadError, StateChanges, StateView};

use super::{
    GeneratorSettings, Kind, Preset,
    accounts::Accounts,
    block::Block,
    contracts::Places,
    genesis,
    signing::sign_all,
    workload::{Call, Envelope, Planned},
};
use arbor_chain::{
    executor::{Executor, RecentBlocks, Rules},
    genesis::{ChainSpec, Genesis},
    replay::listed_changes,
};

/// State without a tree.
#[derive(Default)]
pub(super) struct MapState {
    accounts: BTreeMap<Address, Account>,
    slots: BTreeMap<(Address, U256), U256>,
    codes: BTreeMap<B256, Bytes>,
}

impl MapState {
    pub(super) fn apply(&mut self, changes: StateChanges) {
        for (address, change) in changes.accounts {
            if change.storage_cleared || change.new.is_none() {
                self.slots.retain(|(owner, _), _| *owner != address);
            }
            match change.new {
                Some(account) => drop(self.accounts.insert(address, account)),
                None => drop(self.accounts.remove(&address)),
            }
            for (slot, value) in change.slots {
                match value.new {
                    U256::ZERO => drop(self.slots.remove(&(address, slot))),
                    value => drop(self.slots.insert((address, slot), value)),
                }
            }
        }
        self.codes.extend(changes.codes);
    }

    /// Number of slots that an account has.
    pub(super) fn slots_of(&self, address: Address) -> usize {
        self.slots
            .keys()
            .filter(|(owner, _)| *owner == address)
            .count()
    }
}

impl StateView for MapState {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        Ok(self.accounts.get(&address).copied())
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        Ok(self
            .slots
            .get(&(address, slot))
            .copied()
            .unwrap_or_default())
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        Ok(self.codes.get(&code_hash).cloned().unwrap_or_default())
    }
}

/// The genesis of the tiny preset, and the means to send transactions to it.
pub(super) struct World {
    pub(super) settings: GeneratorSettings,
    pub(super) accounts: Accounts,
    pub(super) places: Places,
    pub(super) state: MapState,
    spec: ChainSpec,
    executor: Executor,
    blocks: u64,
}

impl World {
    pub(super) fn new() -> Self {
        let settings = Preset::Tiny.settings();
        let accounts = Accounts::new(settings.seed, settings.accounts);
        let places = Places::new();
        let mut state = MapState::default();
        let genesis = genesis::genesis(&settings, accounts.addresses(), &places);
        let json = serde_json::to_string(&genesis).expect("serializable");
        let genesis = Genesis::from_json(&json).expect("a valid genesis");
        state.apply(listed_changes(&genesis.alloc));
        Self {
            settings,
            accounts,
            places,
            state,
            spec: genesis.spec,
            executor: Executor::new(),
            blocks: 0,
        }
    }

    pub(super) fn address(&self, account: u64) -> Address {
        self.accounts.addresses()[account as usize]
    }

    /// Sends one transaction with plenty of gas in a block of its own, and returns its receipt.
    pub(super) fn send(
        &mut self,
        sender: u64,
        to: TxKind,
        value: u64,
        input: Bytes,
    ) -> ReceiptEnvelope {
        self.blocks += 1;
        let nonce = self
            .state
            .account(self.address(sender))
            .expect("readable")
            .map_or(0, |account| account.nonce);
        let call = Call {
            to,
            value: U256::from(value),
            input,
            gas_limit: 2_000_000,
            reads: None,
        };
        let planned = Planned {
            kind: Kind::Transfer,
            sender,
            nonce,
            envelope: Envelope::Legacy,
            max_fee: 7,
            tip: 0,
            call,
        };
        let header = Header {
            number: self.blocks,
            timestamp: self.blocks * 12,
            gas_limit: 30_000_000,
            base_fee_per_gas: Some(7),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::ZERO),
            ..Header::default()
        };
        let transactions = sign_all(&[planned], &self.accounts, self.settings.chain_id);
        let block = Block {
            header,
            body: BlockBody {
                transactions,
                ..BlockBody::default()
            },
        };
        let rules = Rules::at(&self.spec, &block.header, &Header::default(), None);
        let senders = [self.address(sender)];
        let output = self
            .executor
            .run(
                &rules,
                &block,
                &senders,
                &self.state,
                &RecentBlocks::default(),
                None,
            )
            .expect("a valid transaction");
        self.state.apply(output.changes);
        output.receipts.into_iter().next().expect("one receipt")
    }

    /// Calls a contract and tells whether the call succeeded.
    pub(super) fn call(&mut self, sender: u64, to: Address, input: Bytes) -> bool {
        self.send(sender, TxKind::Call(to), 0, input).status()
    }

    pub(super) fn slot(&self, address: Address, slot: impl Into<Slot>) -> U256 {
        self.state
            .storage(address, slot.into().0)
            .expect("readable")
    }
}

/// A slot, by its number or as the test's small number.
pub(super) struct Slot(U256);

impl From<U256> for Slot {
    fn from(slot: U256) -> Self {
        Self(slot)
    }
}

impl From<u64> for Slot {
    fn from(slot: u64) -> Self {
        Self(U256::from(slot))
    }
}
