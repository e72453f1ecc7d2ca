//! What a block will read, found out by executing it once without reading it.
//!
//! Over a state that does not fit in memory execution waits for the disk, slot after slot. Run ahead with zeros for the slots that are not known, it tells most of
//! them at once, and they are read side by side. Where a zero led it astray, the next turn, with what was read, goes on from there.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_state::{Account, ReadError, RecentState, StateView};

use crate::executor::{BlockInput, Executor, RecentBlocks};

/// Turns at most, each of them an execution of the block.
const TURNS: usize = 2;

/// A turn that finds fewer slots is the last one.
const FEW: usize = 8;

/// Blocks that are not executed ahead after one that took much longer ahead than it was worth, as a block can be made to.
const REST: u32 = 100;

/// Whether a block is executed ahead: only where execution waited for what it read more than twice as long as it worked, and the work is then done more than once.
#[derive(Default)]
pub(super) struct Prewarm {
    /// Whether no block is, whatever it waits for.
    is_off: bool,
    pays: bool,
    /// Whether the block before waited for too long. One alone may have lost its processor while it read, as happens where there are more threads than processors.
    waited: bool,
    /// How long the block was executed ahead, without waiting.
    ahead: Duration,
    rest: u32,
}

impl Prewarm {
    /// Executes no block ahead. Whether it pays is a question of time, so counts of reads and hashes would differ from
    /// run to run.
    pub(super) fn off() -> Self {
        Self {
            is_off: true,
            ..Self::default()
        }
    }

    /// Reads the slots that a block will ask for into `names`, if that pays. Nothing comes of an error: execution itself will meet it.
    ///
    /// Not before what can be checked without execution holds: gas limits are what bounds an execution.
    pub(super) fn read_ahead<S: StateView>(
        &mut self,
        executor: &mut Executor,
        input: &BlockInput<'_>,
        (names, view): (&RecentState, &S),
        chain: &RecentBlocks,
    ) {
        // What is left of a block that did not hold.
        self.ahead = Duration::ZERO;
        if !self.pays || self.rest > 0 {
            return;
        }
        let Ok((rules, _)) = input.check(chain) else {
            return;
        };
        tracing::debug!("block {}: executed ahead", input.block.header.number);
        for _ in 0..TURNS {
            let guesses = Guesses {
                names,
                view,
                missed: RefCell::default(),
            };
            let (begun, waited) = (Instant::now(), names.waited());
            let _ = executor.run(&rules, input.block, input.senders, &guesses, chain, None);
            let waited = names.waited() - waited;
            self.ahead += begun.elapsed().saturating_sub(waited);
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

    /// Learns from a block how long its execution took, and for how long the database read all that was asked of it.
    pub(super) fn learn(&mut self, executing: Duration, reading: Duration) {
        let ahead = std::mem::take(&mut self.ahead);
        // What is read side by side is waited for a few times shorter.
        let waited = if ahead.is_zero() {
            reading > 2 * executing
        } else {
            2 * reading > executing
        };
        self.pays = waited && (self.pays || self.waited) && !self.is_off;
        self.waited = waited;
        self.rest = self.rest.saturating_sub(1);
        // Both turns take about as long as the block, unless zeros lead it elsewhere.
        if ahead > 8 * executing {
            self.rest = REST;
        }
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
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        self.view.account(address)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        Ok(self.names.known_slot(address, slot).unwrap_or_else(|| {
            self.missed.borrow_mut().push((address, slot));
            U256::ZERO
        }))
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        self.view.has_storage(address)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        self.view.code(code_hash)
    }
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{BlockBody, Header, SignableTransaction, TxEip1559};
    use alloy_primitives::{KECCAK256_EMPTY, Signature, TxKind, keccak256};
    use arbor_state::{AccountChange, SlotChange, StateChanges};

    use super::*;
    use crate::executor::{Block, BodyFacts, MemoryState};
    use crate::genesis::{Genesis, Network};
    use crate::source::Transaction;

    const SENDER: Address = Address::repeat_byte(1);
    const CONTRACT: Address = Address::repeat_byte(2);

    /// Reads slots 1 to 9, and the one whose number is 100 more than what slot 1 holds.
    fn code() -> Bytes {
        let mut code: Vec<u8> = (1..=9).flat_map(|slot| [0x60, slot, 0x54, 0x50]).collect();
        code.extend([0x60, 1, 0x54, 0x60, 100, 0x01, 0x54, 0x50, 0x00]);
        code.into()
    }

    fn state() -> MemoryState {
        let account = |nonce, balance, code_hash| Account {
            nonce,
            balance: U256::from(balance),
            code_hash,
        };
        let mut changes = StateChanges::default();
        let sender = account(0, 1_000_000_000_000_000_000_u64, KECCAK256_EMPTY);
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
        let mut state = MemoryState::default();
        state.apply(&changes);
        state
    }

    /// A state that writes down which slots it is told to expect, and which are asked for unexpectedly.
    struct Watched {
        state: MemoryState,
        expected: RefCell<Vec<Vec<U256>>>,
        surprises: RefCell<Vec<U256>>,
    }

    impl StateView for Watched {
        fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
            self.state.account(address)
        }

        fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
            if !self.expected.borrow().iter().flatten().any(|s| *s == slot) {
                self.surprises.borrow_mut().push(slot);
            }
            self.state.storage(address, slot)
        }

        fn expect(&self, _accounts: &[Address], slots: &[(Address, U256)]) {
            let slots = slots.iter().map(|(_, slot)| *slot).collect();
            self.expected.borrow_mut().push(slots);
        }

        fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
            self.state.code(code_hash)
        }
    }

    /// What the database was told to expect, call by call, and what it was asked without. Execution has to succeed, if the header holds.
    fn replayed(
        genesis: &Genesis,
        prewarm: &mut Prewarm,
        block: &Block,
    ) -> (Vec<Vec<U256>>, Vec<U256>) {
        let input = BlockInput {
            block,
            hash: block.header.hash_slow(),
            senders: &[SENDER],
            facts: None,
            parent: &genesis.header,
            parent_hash: genesis.header.hash_slow(),
            parent_total_difficulty: None,
            chain_spec: &genesis.spec,
        };
        let chain = RecentBlocks::default();
        let watched = Watched {
            state: state(),
            expected: RefCell::default(),
            surprises: RefCell::default(),
        };
        let names = RecentState::new(1 << 20);
        let view = names.over(&watched);
        let mut executor = Executor::new();
        prewarm.read_ahead(&mut executor, &input, (&names, &view), &chain);
        if let Ok((rules, _)) = input.check(&chain) {
            let output = executor.run(&rules, block, input.senders, &view, &chain, None);
            assert!(output.expect("it holds").receipts[0].status());
        }
        (watched.expected.take(), watched.surprises.take())
    }

    /// The block after the genesis, with a call of the contract.
    fn block(genesis: &Genesis) -> Block {
        let call = TxEip1559 {
            chain_id: genesis.spec.chain_id(),
            gas_limit: 100_000,
            max_fee_per_gas: 1_000_000_000,
            to: TxKind::Call(CONTRACT),
            ..TxEip1559::default()
        };
        let signature = Signature::new(U256::ONE, U256::ONE, false);
        let parent = &genesis.header;
        let mut block = Block {
            header: Header {
                parent_hash: parent.hash_slow(),
                number: 1,
                timestamp: parent.timestamp + 12,
                gas_limit: parent.gas_limit,
                difficulty: genesis.spec.next_difficulty(parent, parent.timestamp + 12),
                base_fee_per_gas: Some(875_000_000),
                ..Header::default()
            },
            body: BlockBody {
                transactions: vec![Transaction::Eip1559(call.into_signed(signature))],
                ..BlockBody::default()
            },
        };
        let facts = BodyFacts::of(&block);
        block.header.transactions_root = facts.transactions_root;
        block.header.ommers_hash = facts.ommers_hash;
        block
    }

    fn slots(numbers: &[u64]) -> Vec<U256> {
        numbers.iter().map(|n| U256::from(*n)).collect()
    }

    const DIRECT: [u64; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

    #[test]
    fn slots_are_read_ahead_while_blocks_wait_for_them() {
        let genesis = Genesis::preset(Network::Sepolia).expect("a preset");
        let block = block(&genesis);
        let second = Duration::from_secs(1);
        let mut prewarm = Prewarm::default();
        let unforeseen = (Vec::new(), slots(&[&DIRECT[..], &[107]].concat()));
        assert_eq!(replayed(&genesis, &mut prewarm, &block), unforeseen);
        prewarm.learn(second, 2 * second);
        assert_eq!(replayed(&genesis, &mut prewarm, &block), unforeseen);
        // One block that waits may have lost its processor.
        prewarm.learn(second, 3 * second);
        assert_eq!(replayed(&genesis, &mut prewarm, &block), unforeseen);
        prewarm.learn(second, 3 * second);
        // Slot 100 by the zero in place of slot 1; slot 107 once that was read.
        let first = slots(&[&DIRECT[..], &[100]].concat());
        let foreseen = (vec![first, slots(&[107])], Vec::new());
        assert_eq!(replayed(&genesis, &mut prewarm, &block), foreseen);
        // It goes on while waiting takes half as long as the work.
        prewarm.learn(second, second);
        assert_eq!(replayed(&genesis, &mut prewarm, &block), foreseen);
        prewarm.learn(second, second / 2);
        assert_eq!(replayed(&genesis, &mut prewarm, &block), unforeseen);
        // And not for a while after it took much longer than the work.
        prewarm.learn(second, 3 * second);
        prewarm.learn(second, 3 * second);
        assert_eq!(replayed(&genesis, &mut prewarm, &block), foreseen);
        prewarm.learn(Duration::ZERO, second);
        for _ in 0..REST {
            assert_eq!(replayed(&genesis, &mut prewarm, &block), unforeseen);
            prewarm.learn(second, 3 * second);
        }
        assert_eq!(replayed(&genesis, &mut prewarm, &block), foreseen);
    }

    /// With one thread, counts of reads differed from run to run because of it.
    #[test]
    fn nothing_is_read_ahead_if_it_is_off() {
        let genesis = Genesis::preset(Network::Sepolia).expect("a preset");
        let second = Duration::from_secs(1);
        let mut prewarm = Prewarm::off();
        for _ in 0..4 {
            prewarm.learn(second, 9 * second);
        }
        let (expected, surprises) = replayed(&genesis, &mut prewarm, &block(&genesis));
        assert_eq!((expected.len(), surprises.len()), (0, DIRECT.len() + 1));
    }

    /// A block that does not hold teaches nothing, so the time that it took ahead is not the next one's.
    #[test]
    fn what_a_failed_block_took_is_forgotten() {
        let genesis = Genesis::preset(Network::Sepolia).expect("a preset");
        let second = Duration::from_secs(1);
        let mut prewarm = Prewarm {
            pays: true,
            ahead: 1_000 * second,
            ..Prewarm::default()
        };
        replayed(&genesis, &mut prewarm, &block(&genesis));
        prewarm.learn(second, 3 * second);
        assert_eq!((prewarm.pays, prewarm.rest), (true, 0));
    }

    #[test]
    fn a_block_whose_header_does_not_hold_is_not_executed_ahead() {
        let genesis = Genesis::preset(Network::Sepolia).expect("a preset");
        let mut block = block(&genesis);
        block.header.gas_limit = 1 << 62;
        let mut prewarm = Prewarm {
            pays: true,
            ..Prewarm::default()
        };
        let nothing = (Vec::new(), Vec::new());
        assert_eq!(replayed(&genesis, &mut prewarm, &block), nothing);
    }
}
