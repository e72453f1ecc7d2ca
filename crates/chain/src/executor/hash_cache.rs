//! KECCAK256 of what contracts hash over and over: the places of a mapping's values.
//!
//! Solidity puts the value of a key at the hash of the key and the mapping's slot, 64 bytes, and hashes them anew whenever it reads or writes the value. Most are asked for again soon: in the
//! same transaction, by the next one to the same pool, or for the same holder of a token.

use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
use arbor_hashing::keccak256;
use revm::interpreter::interpreter::{EthInterpreter, resize_memory};
use revm::interpreter::interpreter_types::{MemoryTr, StackTr};
use revm::interpreter::{
    Host, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
};

use super::block::BlockContext;
use arbor_state::StateView;

/// Bytes of what is remembered: a key and a slot's number.
const INPUT: usize = 64;
/// Entries of the cache, some 100 bytes each; a power of two.
const ENTRIES: usize = 1 << 13;

/// Hashes of inputs of 64 bytes.
#[derive(Default)]
pub(super) struct HashCache {
    /// Direct-mapped: an entry gives way to the next input with the same place. None before the first input.
    entries: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    input: [u8; INPUT],
    hash: B256,
}

impl Entry {
    fn of(input: &[u8; INPUT]) -> Self {
        Self {
            input: *input,
            hash: keccak256(input).into(),
        }
    }
}

impl HashCache {
    /// The Keccak-256 of any bytes.
    fn hash(&mut self, bytes: &[u8]) -> B256 {
        let Ok(input) = <&[u8; INPUT]>::try_from(bytes) else {
            return keccak256(bytes).into();
        };
        if self.entries.is_empty() {
            self.entries = vec![Entry::of(input); ENTRIES];
        }
        let entry = &mut self.entries[place(input)];
        if entry.input != *input {
            *entry = Entry::of(input);
        }
        entry.hash
    }
}

/// Mixes all words of an input: keys and slots are mostly small numbers, addresses and hashes.
fn place(input: &[u8; INPUT]) -> usize {
    let (words, _) = input.as_chunks::<8>();
    let mixed = words.iter().fold(0, |mixed: u64, word| {
        (mixed.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    });
    (mixed >> 40) as usize % ENTRIES
}

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
    use proptest::prelude::*;
    use revm::context_interface::host::DummyHost;
    use revm::interpreter::instructions::system;
    use revm::interpreter::{Gas, Interpreter};

    use super::*;

    #[test]
    fn hashes_are_those_of_keccak() {
        let mut cache = HashCache::default();
        assert_eq!(cache.hash(&[0; INPUT]), B256::from(keccak256(&[0; INPUT])));
        for round in 0..3u32 {
            // More than there are places, and lengths that are not remembered.
            for number in 0..2 * ENTRIES as u32 {
                let mut input = [0; INPUT + 1];
                input[12 + (number % 8) as usize * 4..][..4].copy_from_slice(&number.to_be_bytes());
                for length in [INPUT - 1, INPUT, INPUT + 1] {
                    let input = &input[..length];
                    if round == 0 || length == INPUT {
                        assert_eq!(cache.hash(input), B256::from(keccak256(input)));
                    }
                }
            }
        }
    }

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
