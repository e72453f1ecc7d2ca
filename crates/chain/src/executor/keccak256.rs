//! The instruction KECCAK256, with the block's cache of hashes.

use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
use arbor_state::StateView;
use revm::interpreter::interpreter::{EthInterpreter, resize_memory};
use revm::interpreter::interpreter_types::{MemoryTr, StackTr};
use revm::interpreter::{
    Host, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
};

use super::context::BlockContext;

/// KECCAK256 with the block's cache.
pub(super) fn hash<S: StateView + ?Sized>(
    context: InstructionContext<'_, BlockContext<'_, S>, EthInterpreter>,
) -> InstructionExecResult {
    hash_by(context, |host, bytes| {
        host.journaled_state.database.hashes().hash(bytes)
    })
}

/// As revm's, with a hash function of the host.
fn hash_by<I: InterpreterTypes, H: Host + ?Sized>(
    context: InstructionContext<'_, H, I>,
    hash: impl FnOnce(&mut H, &[u8]) -> B256,
) -> InstructionExecResult {
    let InstructionContext { interpreter, host } = context;
    let Some(([offset], top)) = interpreter.stack.popn_top() else {
        return Err(InstructionResult::StackUnderflow);
    };
    let length = in_memory(*top)?;
    let cost = host.gas_params().keccak256_cost(length);
    if !interpreter.gas.record_regular_cost(cost) {
        return Err(InstructionResult::OutOfGas);
    }
    let digest = if length == 0 {
        KECCAK256_EMPTY
    } else {
        let (offset, memory) = (in_memory(offset)?, &mut interpreter.memory);
        resize_memory(
            &mut interpreter.gas,
            memory,
            host.gas_params(),
            offset,
            length,
        )?;
        hash(host, &memory.slice_len(offset, length))
    };
    *top = digest.into();
    Ok(())
}

/// A place in memory, or a length of it; there is never enough gas for what does not fit.
fn in_memory(number: U256) -> Result<usize, InstructionResult> {
    usize::try_from(number).map_err(|_| InstructionResult::InvalidOperandOOG)
}

#[cfg(test)]
mod tests {
    use arbor_hashing::keccak256;
    use proptest::prelude::*;
    use revm::context_interface::host::DummyHost;
    use revm::interpreter::instructions::system;
    use revm::interpreter::{Gas, Interpreter};

    use super::*;

    fn word() -> impl Strategy<Value = U256> {
        prop_oneof![
            8 => (0u64..200).prop_map(U256::from),
            1 => any::<u64>().prop_map(U256::from),
            1 => any::<[u8; 32]>().prop_map(U256::from_be_bytes),
        ]
    }

    proptest! {
        /// Results, stack, gas left and memory are those of revm's instruction.
        #[test]
        fn does_what_revm_does(stack in prop::collection::vec(word(), 0..4), gas in 0u64..300) {
            let run = |ours: bool| {
                let mut interpreter = Interpreter::<EthInterpreter> {
                    gas: Gas::new(gas),
                    ..Interpreter::default()
                };
                for word in &stack {
                    assert!(interpreter.stack.push(*word));
                }
                let mut host = DummyHost::default();
                let context = InstructionContext {
                    interpreter: &mut interpreter,
                    host: &mut host,
                };
                let result = match ours {
                    true => hash_by(context, |_, bytes| keccak256(bytes).into()),
                    false => system::keccak256(context),
                };
                let left = interpreter.stack.data().clone();
                (result, left, interpreter.gas, interpreter.memory.len())
            };
            let (ours, theirs) = (run(true), run(false));
            prop_assert_eq!(ours.0, theirs.0);
            prop_assert_eq!((ours.2, ours.3), (theirs.2, theirs.3));
            if ours.0.is_ok() {
                prop_assert_eq!(ours.1, theirs.1);
            }
        }
    }
}
