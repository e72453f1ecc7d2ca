//! Bounds on the memory, gas and reads that executing a block may take, whatever gas the block has.

use arbor_state::StateView;
use revm::context_interface::context::ContextError;
use revm::handler::{FrameResult, ItemOrResult};
use revm::interpreter::InstructionResult;
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::interpreter_types::MemoryTr;

use super::context::BlockEvm;
use arbor_revm_state::ViewError;

/// Bytes of memory that the frames of a transaction may have together: an official test (`static_Call1MB1024Calldepth`) needs 1 GiB, in 1,024
/// nested frames of 1 MiB. In a single frame this much memory costs more than 8,000 billion gas.
pub(super) const MEMORY: u64 = 2 << 30;

/// A bound of this engine that executing a block exceeds. It says nothing about the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Exceeded {
    /// The transactions may use more gas than wanted.
    #[error("its transactions may use {gas} gas, the bound is {bound} (--max-gas)")]
    Gas {
        /// The sum of the transactions' limits, or the block's limit if that is less.
        gas: u64,
        /// The bound.
        bound: u64,
    },
    /// A transaction needs more memory than it is given.
    #[error(
        "transaction {index} has the gas for more than {} MiB of EVM memory, which is the bound",
        MEMORY >> 20
    )]
    Memory {
        /// Its position in the block.
        index: usize,
    },
}

type Ran = Result<ItemOrResult<FrameInit, FrameResult>, ContextError<ViewError>>;

impl<S: StateView + ?Sized> BlockEvm<'_, S> {
    /// Ends the transaction if a frame was stopped at the bound of memory that had the gas to go beyond it.
    ///
    /// revm looks at the bound before it charges for memory: a frame without the gas for it is out of gas, as it should be.
    pub(super) fn check_memory(&mut self, ran: Ran) -> Ran {
        let Ok(ItemOrResult::Result(result)) = &ran else {
            return ran;
        };
        let ended = result.interpreter_result();
        if ended.result != InstructionResult::MemoryLimitOOG {
            return ran;
        }
        let memory = &self.evm.frame_stack.get().interpreter.memory;
        let room = MEMORY.saturating_sub(memory.local_memory_offset() as u64);
        let price = memory_gas(room / 32 + 1) - memory_gas(memory.size() as u64 / 32);
        if u128::from(ended.gas.remaining()) < price {
            return ran;
        }
        self.memory_exceeded = true;
        Err(ContextError::Custom("EVM memory exceeded".into()))
    }
}

/// Returns the gas of a memory of `words` words of 32 bytes (yellow paper, equation 328).
fn memory_gas(words: u64) -> u128 {
    let words = u128::from(words);
    3 * words + words * words / 512
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{BlockBody, Header, SignableTransaction, TxLegacy};
    use alloy_primitives::{Address, Signature, TxKind, U256};

    use super::Exceeded;
    use crate::executor::{
        Block, BlockOutput, ExecutionError, Executor, MemoryState, RecentBlocks, Rules,
    };
    use crate::genesis::{Alloc, ChainSpec, GenesisAccount};
    use crate::source::Transaction;

    const CALLED: Address = Address::repeat_byte(0xcc);
    const CALLER: Address = Address::repeat_byte(0xca);

    /// Stores a word at 2^34.
    const FAR: &str = "0x60006704000000000000005200";
    /// Calls the other contract with all gas, and takes no notice of what comes of it.
    const CALL: &str = "0x6000600060006000600073cccccccccccccccccccccccccccccccccccccccc5af100";
    /// Jumps back for ever.
    const LOOP: &str = "0x5b600056";
    /// Asks for the balance of 1, 2, 3 and so on.
    const BALANCES: &str = "0x60005b600101803150600256";

    const FRONTIER: &str = r#"{"chainId": 7}"#;
    const BYZANTIUM: &str = r#"{"chainId": 7, "homesteadBlock": 0, "eip150Block": 0, "eip155Block": 0, "eip158Block": 0, "byzantiumBlock": 0}"#;

    fn account(address: Address, code: &str) -> GenesisAccount {
        GenesisAccount {
            address,
            balance: U256::ZERO,
            nonce: 0,
            code: code.parse().expect("hex"),
            storage: Vec::new(),
        }
    }

    /// A block with one transaction to `to`, for which it has the gas.
    fn run(
        (config, code, to): (&str, &str, Address),
        gas_limit: u64,
        executor: Executor,
    ) -> Result<BlockOutput, ExecutionError> {
        let (spec, _) = ChainSpec::from_json(config).expect("a configuration");
        let alloc = Alloc::new([account(CALLER, CALL), account(CALLED, code)]);
        let state = MemoryState::from_genesis(&alloc.expect("two accounts"));
        let call = TxLegacy {
            gas_limit,
            to: TxKind::Call(to),
            ..TxLegacy::default()
        };
        let signature = Signature::new(U256::ONE, U256::ONE, false);
        let header = Header {
            number: 1,
            gas_limit,
            difficulty: U256::from(131_072),
            ..Header::default()
        };
        let rules = Rules::at(&spec, &header, &Header::default(), None);
        let body = BlockBody {
            transactions: vec![Transaction::Legacy(call.into_signed(signature))],
            ..BlockBody::default()
        };
        let block = Block { header, body };
        let (mut executor, senders) = (executor, [Address::repeat_byte(1)]);
        let chain = RecentBlocks::default();
        executor.run(&rules, &block, &senders, &state, &chain, None)
    }

    /// A word stored far out took all memory if the gas sufficed, and the process ended.
    #[test]
    fn memory_beyond_the_bound_is_an_error_and_without_the_gas_for_it_a_failed_call() {
        let exceeded = |to| {
            let ran = run((BYZANTIUM, FAR, to), i64::MAX as u64, Executor::new());
            let error = ran.expect_err("it takes 16 GiB");
            assert!(
                matches!(
                    error,
                    ExecutionError::Exceeded {
                        exceeded: Exceeded::Memory { index: 0 },
                        ..
                    }
                ),
                "{error}"
            );
            assert!(
                error
                    .to_string()
                    .contains("more than 2048 MiB of EVM memory"),
                "{error}"
            );
        };
        exceeded(CALLED);
        exceeded(CALLER);
        for gas in [1_000_000, 30_000_000, 1 << 38] {
            let output = run((BYZANTIUM, FAR, CALLED), gas, Executor::new());
            let output = output.expect("it is out of gas");
            assert!(!output.receipts[0].status());
            assert_eq!(output.gas_used, gas);
            let output = run((BYZANTIUM, FAR, CALLER), gas, Executor::new());
            assert!(output.expect("the call inside is").receipts[0].status());
        }
    }

    #[test]
    fn gas_beyond_the_bound_is_an_error() {
        let bounded = || Executor::new().with_max_gas(1_000_000);
        let code = (BYZANTIUM, LOOP, CALLED);
        let error = run(code, i64::MAX as u64, bounded()).expect_err("it is beyond");
        let said = "may use 9223372036854775807 gas, the bound is 1000000 (--max-gas)";
        assert!(error.to_string().contains(said), "{error}");
        assert!(run(code, 1_000_001, bounded()).is_err());
        let output = run(code, 1_000_000, bounded()).expect("it is within");
        assert_eq!(output.gas_used, 1_000_000);
    }

    /// At 20 gas a balance, as before EIP-150, gas bounds what is kept of a block too late.
    #[test]
    fn reads_beyond_the_bound_are_an_error() {
        let code = (FRONTIER, BALANCES, CALLED);
        let error = run(code, 60_000_000, Executor::new()).expect_err("it is beyond");
        let said = "reads more than 524288 accounts and slots";
        assert!(error.to_string().contains(said), "{error}");
        let output = run(code, 5_000_000, Executor::new()).expect("it is within");
        assert_eq!(output.gas_used, 5_000_000);
    }
}
