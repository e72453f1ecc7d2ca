//! Which transactions a block holds.

use std::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, TxKind, U256};
use arbor_state::{ReadError, StateView};

use super::{
    GeneratorSettings, Kind,
    accounts::{Accounts, recipient},
    contracts::{self, Places, calls, slots},
    random::{Random, Zipf},
};
use arbor_chain::genesis::Population;

/// From this base fee (wei) on, demand falls: blocks stay below their gas target until it sinks.
const HIGH_BASE_FEE: u64 = 10_000_000_000;
/// The largest tip in wei.
const MAX_TIP: u64 = 2_000_000_000;
/// The largest number of entries that one transaction writes.
const MAX_ENTRIES: u64 = 8;

/// Price of an access list with one address and one slot (EIP-2930).
const ACCESS_LIST_GAS: u64 = 2_400 + 1_900;

/// How a transaction is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Envelope {
    Legacy,
    AccessList,
    DynamicFee,
}

/// A transaction before it is signed.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) kind: Kind,
    /// Index of the sending account.
    pub(super) sender: u64,
    pub(super) nonce: u64,
    pub(super) envelope: Envelope,
    /// Most that is paid per gas, base fee included.
    pub(super) max_fee: u128,
    /// Most of it that goes to the block's proposer.
    pub(super) tip: u128,
    pub(super) call: Call,
}

/// What a transaction does.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) to: TxKind,
    pub(super) value: U256,
    pub(super) input: Bytes,
    /// Enough gas for the call whatever the state is.
    pub(super) gas_limit: u64,
    /// A slot that it will read, for transactions with an access list.
    pub(super) reads: Option<(Address, U256)>,
}

/// One block's transactions.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) transactions: Vec<Planned>,
    /// How many addresses without a key the chain has reached with this block.
    pub(super) recipients: u64,
}

/// What the choice of a block's transactions depends on, besides the settings.
pub(super) struct Parent<'a> {
    /// Number of the block to plan.
    pub(super) number: u64,
    /// Its base fee in wei.
    pub(super) base_fee: u64,
    /// How many addresses without a key the chain has reached so far.
    pub(super) recipients: u64,
    /// The state before the block.
    pub(super) state: &'a dyn StateView,
}

/// Chooses transactions.
#[derive(Debug)]
pub(super) struct Workload<'a> {
    pub(super) settings: &'a GeneratorSettings,
    pub(super) accounts: &'a Accounts,
    pub(super) places: &'a Places,
}

/// What a sender has left within a block.
struct Purse {
    nonce: u64,
    balance: U256,
}

impl Workload<'_> {
    /// Chooses a block's transactions, all of which will succeed.
    pub(super) fn plan(&self, parent: &Parent<'_>) -> Result<Plan, ReadError> {
        let mut choice = Choice {
            workload: self,
            state: parent.state,
            random: Random::new(self.settings.seed, "transactions", parent.number),
            zipf: Zipf::new(self.settings.zipf),
            recipients: parent.recipients,
        };
        let mut gas_left = match parent.base_fee {
            ..HIGH_BASE_FEE => self.settings.gas_limit,
            _ => self.settings.gas_limit * 2 / 5,
        };
        let mut purses = BTreeMap::new();
        let mut transactions = Vec::new();
        for _ in 0..self.settings.transactions_per_block {
            let kind = Kind::ALL[choice
                .random
                .weighted(self.settings.mix.weights.iter().copied())];
            let sender = choice
                .zipf
                .index(self.settings.accounts, &mut choice.random);
            let recipients_before = choice.recipients;
            let mut call = choice.call(kind, sender)?;
            let envelope = choice.envelope();
            if envelope == Envelope::AccessList && call.reads.is_some() {
                call.gas_limit += ACCESS_LIST_GAS;
            }
            if call.gas_limit > gas_left {
                choice.recipients = recipients_before;
                break;
            }
            let tip = choice.random.between(1, MAX_TIP);
            let max_fee = match envelope {
                Envelope::DynamicFee => u128::from(parent.base_fee) * 2 + u128::from(tip),
                _ => u128::from(parent.base_fee) + u128::from(tip),
            };
            let purse = self.purse(&mut purses, sender, parent.state)?;
            let cost = U256::from(max_fee) * U256::from(call.gas_limit) + call.value;
            let Some(balance) = purse.balance.checked_sub(cost) else {
                choice.recipients = recipients_before;
                continue;
            };
            gas_left -= call.gas_limit;
            let nonce = purse.nonce;
            *purse = Purse {
                nonce: nonce + 1,
                balance,
            };
            transactions.push(Planned {
                kind,
                sender,
                nonce,
                envelope,
                max_fee,
                tip: tip.into(),
                call,
            });
        }
        Ok(Plan {
            transactions,
            recipients: choice.recipients,
        })
    }

    fn purse<'p>(
        &self,
        purses: &'p mut BTreeMap<u64, Purse>,
        sender: u64,
        state: &dyn StateView,
    ) -> Result<&'p mut Purse, ReadError> {
        use std::collections::btree_map::Entry;
        match purses.entry(sender) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let account = state.account(self.accounts.addresses()[sender as usize])?;
                let purse = account.map_or(
                    Purse {
                        nonce: 0,
                        balance: U256::ZERO,
                    },
                    |account| Purse {
                        nonce: account.nonce,
                        balance: account.balance,
                    },
                );
                Ok(entry.insert(purse))
            }
        }
    }
}

/// The choices of one block.
struct Choice<'a> {
    workload: &'a Workload<'a>,
    state: &'a dyn StateView,
    random: Random,
    zipf: Zipf,
    recipients: u64,
}

impl Choice<'_> {
    fn envelope(&mut self) -> Envelope {
        match self.random.below(10) {
            0 => Envelope::Legacy,
            1 => Envelope::AccessList,
            _ => Envelope::DynamicFee,
        }
    }

    fn call(&mut self, kind: Kind, sender: u64) -> Result<Call, ReadError> {
        match kind {
            Kind::Transfer => Ok(self.transfer()),
            Kind::Erc20 => Ok(self.erc20(sender)),
            Kind::Swap => self.swap(sender),
            Kind::Create => Ok(self.create()),
            Kind::Wide => self.wide(),
            Kind::Sparse => self.sparse(),
            Kind::Delete => self.delete(),
            Kind::Visit => self.visit(),
        }
    }

    fn transfer(&mut self) -> Call {
        let value = U256::from(self.random.between(1, 1_000_000_000_000_000));
        Call {
            value,
            ..call(self.receiver(), Bytes::new(), 21_000)
        }
    }

    /// Where a transfer goes: with the rate set, an address never used, else a popular one.
    fn receiver(&mut self) -> Address {
        let workload = self.workload;
        let accounts = workload.settings.accounts;
        let index = if self.random.chance(workload.settings.new_account_rate) {
            self.recipients += 1;
            accounts + self.recipients - 1
        } else {
            self.zipf
                .index(accounts + self.recipients, &mut self.random)
        };
        match index.checked_sub(accounts) {
            None => workload.accounts.addresses()[index as usize],
            Some(index) => recipient(workload.settings.seed, index),
        }
    }

    fn erc20(&mut self, sender: u64) -> Call {
        let places = self.workload.places;
        let owner = self.workload.accounts.addresses()[sender as usize];
        let token = places.tokens[self.zipf.index(contracts::TOKENS, &mut self.random) as usize];
        let value = U256::from(self.random.between(1, 1_000_000_000_000_000_000));
        if self.random.chance(0.05) {
            let spender = self.workload.accounts.addresses()
                [self.random.below(self.workload.settings.accounts) as usize];
            let reads = Some((token, slots::allowance(owner, spender)));
            return Call {
                reads,
                ..call(token, calls::approve(spender, value), 60_000)
            };
        }
        let reads = Some((token, slots::balance(owner)));
        Call {
            reads,
            ..call(token, calls::transfer(self.receiver(), value), 75_000)
        }
    }

    fn swap(&mut self, sender: u64) -> Result<Call, ReadError> {
        let places = self.workload.places;
        let trader = self.workload.accounts.addresses()[sender as usize];
        let index = self.zipf.index(contracts::TOKENS, &mut self.random) as usize;
        let (pair, zero_for_one) = (places.pairs[index], self.random.chance(0.5));
        let amount = U256::from(self.random.between(1_000_000_000, 100_000_000_000_000))
            * U256::from(1_000_000_000);
        let token_in = places.traded(index)[usize::from(!zero_for_one)];
        let allowance = slots::allowance(trader, pair);
        if self.state.storage(token_in, allowance)?.is_zero() {
            return Ok(call(token_in, calls::approve(pair, U256::MAX), 60_000));
        }
        let reads = Some((token_in, slots::balance(trader)));
        Ok(Call {
            reads,
            ..call(pair, calls::swap(zero_for_one, amount), 200_000)
        })
    }

    fn create(&mut self) -> Call {
        let (input, gas_limit) = if self.random.chance(0.5) {
            (contracts::token_creation(self.random.word() >> 64), 420_000)
        } else {
            let len = self.random.between(50, 2_000);
            (
                contracts::data_creation(&self.random.bytes(len as usize)),
                60_000 + 230 * len,
            )
        };
        Call {
            to: TxKind::Create,
            value: U256::ZERO,
            input,
            gas_limit,
            reads: None,
        }
    }

    fn wide(&mut self) -> Result<Call, ReadError> {
        let length = self.wide_length()?;
        let count = self.random.between(1, MAX_ENTRIES);
        let value = self.random.word() >> 1;
        let data = if length < MAX_ENTRIES || self.random.chance(0.4) {
            calls::append(count, value)
        } else {
            // The youngest entries are the most popular.
            let last = length - self.zipf.index(length - count + 1, &mut self.random);
            calls::update(last - count + 1, count, value)
        };
        let reads = Some((self.workload.places.wide, slots::WIDE_LENGTH));
        Ok(Call {
            reads,
            ..call(self.workload.places.wide, data, 60_000 + 24_000 * count)
        })
    }

    fn sparse(&mut self) -> Result<Call, ReadError> {
        let factory = self.workload.places.factory;
        let cells = self.cells()?;
        let value = self.random.word();
        let choice = self.random.unit();
        if cells == 0 || choice < 0.3 {
            let count = self.random.between(1, 4);
            return Ok(call(factory, calls::spawn(count), 60_000 + 95_000 * count));
        }
        let first = self.zipf.index(cells, &mut self.random);
        if choice < 0.7 {
            return Ok(self.set_cell(first, value));
        }
        let count = self.random.between(2, 5);
        let stride = self.random.between(1, cells);
        let reads = Some((factory, slots::FACTORY_CELLS));
        Ok(Call {
            reads,
            ..call(
                factory,
                calls::touch(first, stride, count, value),
                50_000 + 38_000 * count,
            )
        })
    }

    fn delete(&mut self) -> Result<Call, ReadError> {
        let places = self.workload.places;
        let (length, cells) = (self.wide_length()?, self.cells()?);
        let choice = self.random.unit();
        if choice < 0.4 && length >= MAX_ENTRIES {
            let count = self.random.between(1, MAX_ENTRIES);
            let first = self.random.between(1, length - count + 1);
            return Ok(call(
                places.wide,
                calls::clear(first, count),
                45_000 + 6_000 * count,
            ));
        }
        if choice < 0.6 && cells > 0 {
            let cell = self.zipf.index(cells, &mut self.random);
            return Ok(self.set_cell(cell, U256::ZERO));
        }
        let count = self.random.between(0, 4);
        let value = U256::from(self.random.below(2) * 1_000_000_000);
        Ok(Call {
            value,
            ..call(places.deleter, calls::run(count), 180_000 + 24_000 * count)
        })
    }

    /// Goes to the first accounts of the population, as many as the settings say, and every other time to the large contract, if there is one.
    fn visit(&mut self) -> Result<Call, ReadError> {
        let settings = self.workload.settings;
        let population = settings.population.min(settings.visited);
        let (number, slots) = match settings.contract {
            0 => (self.random.below(population), Population::SLOTS),
            slots if self.random.chance(0.5) => (0, slots.max(Population::SLOTS)),
            _ => (self.random.below(population), Population::SLOTS),
        };
        let (number, slot) = (number as u32, U256::from(self.random.below(slots)));
        let mut value = self.random.word();
        let mut ether = U256::from(self.random.between(1, 1_000_000_000));
        let account = Population::address(number);
        if settings.visits_that_read > 0.0 && self.random.chance(settings.visits_that_read) {
            value = self.state.storage(account, slot)?;
            ether = U256::ZERO;
        }
        let input = [slot.to_be_bytes::<32>(), value.to_be_bytes()].concat();
        Ok(Call {
            value: ether,
            reads: Some((account, slot)),
            ..call(account, input.into(), 60_000)
        })
    }

    fn set_cell(&self, index: u64, value: U256) -> Call {
        let cell = self.workload.places.cell(index);
        Call {
            reads: Some((cell, U256::ZERO)),
            ..call(cell, calls::set(value), 75_000)
        }
    }

    fn wide_length(&self) -> Result<u64, ReadError> {
        Ok(self
            .state
            .storage(self.workload.places.wide, slots::WIDE_LENGTH)?
            .saturating_to())
    }

    fn cells(&self) -> Result<u64, ReadError> {
        Ok(self
            .state
            .storage(self.workload.places.factory, slots::FACTORY_CELLS)?
            .saturating_to())
    }
}

fn call(to: Address, input: Bytes, gas_limit: u64) -> Call {
    Call {
        to: TxKind::Call(to),
        value: U256::ZERO,
        input,
        gas_limit,
        reads: None,
    }
}
