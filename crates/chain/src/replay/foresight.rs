//! What a block will read, found out by executing it once without reading it.
//!
//! Over a state that does not fit in memory execution waits for the disk, slot after slot. Run ahead with zeros for the slots that are not known, it tells most of
//! them at once, and they are read side by side. Where a zero led it astray, the next turn, with what was read, goes on from there.

use std::cell::RefCell;
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_state::{Account, RecentState, StateError, StateView};

use crate::executor::{BlockInput, Executor, RecentBlocks, Rules};

/// Turns at most, each of them an execution of the block.
const TURNS: usize = 3;

/// A turn that finds fewer slots is the last one.
const FEW: usize = 8;

/// Whether execution waited for more than twice as long as it worked in the last block: only then is the work done more than once.
#[derive(Default)]
pub(super) struct Foresight {
    pays: bool,
}

impl Foresight {
    /// Reads the slots that a block will ask for into `names`, if that pays. Nothing comes of an error: execution itself will meet it.
    pub(super) fn read_ahead<S: StateView>(
        &self,
        executor: &mut Executor,
        input: &BlockInput<'_>,
        (names, view): (&RecentState, &S),
        chain: &RecentBlocks,
    ) {
        if !self.pays {
            return;
        }
        let total = input.parent_total_difficulty;
        let rules = Rules::at(input.chain_spec, &input.block.header, input.parent, total);
        for _ in 0..TURNS {
            let guesses = Guesses {
                names,
                view,
                missed: RefCell::default(),
            };
            let _ = executor.run(&rules, input.block, input.senders, &guesses, chain, None);
            let mut missed = guesses.missed.into_inner();
            missed.sort_unstable();
            missed.dedup();
            view.expect(&[], &missed);
            for (address, slot) in &missed {
                let _ = view.storage(*address, *slot);
            }
            if missed.len() < FEW {
                return;
            }
        }
    }

    /// Learns from a block how long its execution took, and for how long all that was asked of the database.
    pub(super) fn learn(&mut self, executing: Duration, waiting: Duration) {
        self.pays = waiting > 2 * executing;
    }
}

/// A state with zeros in the slots that only the database knows.
struct Guesses<'a, S> {
    names: &'a RecentState,
    view: &'a S,
    /// Those slots.
    missed: RefCell<Vec<(Address, U256)>>,
}

impl<S: StateView> StateView for Guesses<'_, S> {
    fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
        self.view.account(address)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, StateError> {
        Ok(self.names.known_slot(address, slot).unwrap_or_else(|| {
            self.missed.borrow_mut().push((address, slot));
            U256::ZERO
        }))
    }

    fn has_storage(&self, address: Address) -> Result<bool, StateError> {
        self.view.has_storage(address)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
        self.view.code(code_hash)
    }
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{BlockBody, Header, SignableTransaction, TxEip1559};
    use alloy_primitives::{KECCAK256_EMPTY, Signature, TxKind, keccak256};
    use arbor_state::{AccountChange, SlotChange, StateChanges};

    use super::*;
    use crate::executor::{Block, FlatState};
    use crate::genesis::{Genesis, Network, naive_state_root};
    use crate::source::Transaction;

    const SENDER: Address = Address::repeat_byte(1);
    const CONTRACT: Address = Address::repeat_byte(2);

    /// Reads slots 1 to 9, and the one whose number is 100 more than what slot 1 holds.
    fn code() -> Bytes {
        let mut code: Vec<u8> = (1..=9).flat_map(|slot| [0x60, slot, 0x54, 0x50]).collect();
        code.extend([0x60, 1, 0x54, 0x60, 100, 0x01, 0x54, 0x50, 0x00]);
        code.into()
    }

    fn state() -> FlatState {
        let account = |nonce, balance, code_hash| Account {
            nonce,
            balance: U256::from(balance),
            code_hash,
        };
        let mut changes = StateChanges::default();
        let sender = account(0, 1_000_000_000_u64, KECCAK256_EMPTY);
        let contract = account(1, 0, keccak256(code()));
        for (address, account) in [(SENDER, sender), (CONTRACT, contract)] {
            let change = AccountChange {
                new: Some(account),
                ..AccountChange::default()
            };
            changes.accounts.insert(address, change);
        }
        let seven = SlotChange {
            old: U256::ZERO,
            new: U256::from(7),
        };
        let slots = &mut changes.accounts.get_mut(&CONTRACT).expect("there").slots;
        slots.insert(U256::ONE, seven);
        changes.codes.insert(keccak256(code()), code());
        let mut state = FlatState::default();
        state.apply(&changes);
        state
    }

    /// A state that writes down which slots it is told to expect, and which are asked for unexpectedly.
    struct Watched {
        state: FlatState,
        expected: RefCell<Vec<Vec<U256>>>,
        surprises: RefCell<Vec<U256>>,
    }

    impl StateView for Watched {
        fn account(&self, address: Address) -> Result<Option<Account>, StateError> {
            self.state.account(address)
        }

        fn storage(&self, address: Address, slot: U256) -> Result<U256, StateError> {
            if !self.expected.borrow().iter().flatten().any(|s| *s == slot) {
                self.surprises.borrow_mut().push(slot);
            }
            self.state.storage(address, slot)
        }

        fn expect(&self, _accounts: &[Address], slots: &[(Address, U256)]) {
            let slots = slots.iter().map(|(_, slot)| *slot).collect();
            self.expected.borrow_mut().push(slots);
        }

        fn code(&self, code_hash: B256) -> Result<Bytes, StateError> {
            self.state.code(code_hash)
        }
    }

    #[test]
    fn slots_are_read_ahead_if_the_last_block_waited_for_them() {
        let genesis = Genesis::preset(Network::Sepolia, &naive_state_root).expect("a preset");
        let call = TxEip1559 {
            chain_id: genesis.spec.chain_id(),
            gas_limit: 100_000,
            to: TxKind::Call(CONTRACT),
            ..TxEip1559::default()
        };
        let signature = Signature::new(U256::ONE, U256::ONE, false);
        let block = Block {
            header: Header {
                number: 1,
                gas_limit: 1_000_000,
                base_fee_per_gas: Some(0),
                ..Header::default()
            },
            body: BlockBody {
                transactions: vec![Transaction::Eip1559(call.into_signed(signature))],
                ..BlockBody::default()
            },
        };
        let input = BlockInput {
            block: &block,
            hash: B256::ZERO,
            senders: &[SENDER],
            facts: None,
            parent: &genesis.header,
            parent_hash: B256::ZERO,
            parent_total_difficulty: None,
            chain_spec: &genesis.spec,
        };
        let chain = RecentBlocks::default();
        let rules = Rules::at(&genesis.spec, &block.header, &genesis.header, None);
        for (waiting, executing) in [(3, 1), (2, 1)].map(|(a, b)| {
            let seconds = Duration::from_secs;
            (seconds(a), seconds(b))
        }) {
            let watched = Watched {
                state: state(),
                expected: RefCell::default(),
                surprises: RefCell::default(),
            };
            let names = RecentState::new(1 << 20);
            let view = names.over(&watched);
            let mut foresight = Foresight::default();
            foresight.learn(executing, waiting);
            let mut executor = Executor::new();
            foresight.read_ahead(&mut executor, &input, (&names, &view), &chain);
            let output = executor.run(&rules, &block, input.senders, &view, &chain, None);
            assert!(output.expect("it holds").receipts[0].status());
            let slots =
                |numbers: &[u64]| numbers.iter().map(|n| U256::from(*n)).collect::<Vec<_>>();
            let direct = slots(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
            if waiting > 2 * executing {
                // Slot 100 by the zero in place of slot 1; slot 107 once that was read.
                let first = [direct, slots(&[100])].concat();
                assert_eq!(watched.expected.take(), [first, slots(&[107])]);
                assert!(watched.surprises.take().is_empty());
            } else {
                assert!(watched.expected.take().is_empty());
                assert_eq!(watched.surprises.take(), [direct, slots(&[107])].concat());
            }
        }
    }
}
