//! Records which parts of which code execution reads (EIP-4762, "Code").
//!
//! Code in a tree that has it in chunks is read chunk by chunk: those of the instructions executed with the data that they push, of jumps'
//! destinations, valid or not, and what is copied. Init code is in no tree. A delegation (EIP-7702) is code of its own, and what it leads to is read
//! at the other account.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use alloy_primitives::{Address, U256};
use arbor_state::StateView;
use arbor_state::verkle::CHUNK;
use revm::bytecode::opcode::{CODECOPY, EXTCODECOPY, JUMP, JUMPI, PUSH1, PUSH32};
use revm::context_interface::context::ContextError;
use revm::handler::{FrameResult, ItemOrResult};
use revm::interpreter::Interpreter;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, LoopControl};

use super::block::BlockEvm;
use super::overlay::ReadError;

/// Chunks of code by account and number. Some may lie beyond the code's end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodeReads {
    /// The chunks read of each account's code.
    pub chunks: BTreeMap<Address, BTreeSet<u32>>,
}

/// What an instruction is going to read of code: found before it runs, as it takes its operands away.
enum Reads {
    /// Itself, of its own code.
    Own(Range<usize>),
    /// Itself, and as much of its own code.
    OwnToo(Range<usize>, Range<usize>),
    /// Itself, and something of another account's.
    Other(Range<usize>, Address, Range<usize>),
}

impl Reads {
    fn of(interpreter: &Interpreter<EthInterpreter>) -> Self {
        let (pc, opcode) = (interpreter.bytecode.pc(), interpreter.bytecode.opcode());
        let operand = |from_top| interpreter.stack.peek(from_top).unwrap_or_default();
        let range = |from: U256, length: U256| {
            let from: usize = from.saturating_to();
            from..from.saturating_add(length.saturating_to())
        };
        match opcode {
            PUSH1..=PUSH32 => Self::Own(pc..pc + 2 + usize::from(opcode - PUSH1)),
            JUMP => Self::OwnToo(pc..pc + 1, range(operand(0), U256::ONE)),
            JUMPI if !operand(1).is_zero() => {
                Self::OwnToo(pc..pc + 1, range(operand(0), U256::ONE))
            }
            CODECOPY => Self::OwnToo(pc..pc + 1, range(operand(1), operand(2))),
            EXTCODECOPY => {
                let address = Address::from_word(operand(0).into());
                Self::Other(pc..pc + 1, address, range(operand(2), operand(3)))
            }
            _ => Self::Own(pc..pc + 1),
        }
    }
}

/// The chunks of a range, as far as code of this size goes.
fn chunks(range: Range<usize>, size: usize) -> Range<u32> {
    let range = range.start..range.end.min(size);
    match range.is_empty() {
        true => 0..0,
        // Code is far shorter than 2^32 chunks.
        false => (range.start / CHUNK) as u32..range.end.div_ceil(CHUNK) as u32,
    }
}

impl<S: StateView + ?Sized> BlockEvm<'_, S> {
    /// Runs the uppermost frame until it ends or calls, as revm does, and records what it reads of code.
    pub(super) fn frame_run_recorded(
        &mut self,
    ) -> Result<ItemOrResult<FrameInit, FrameResult>, ContextError<ReadError>> {
        let frame = self.evm.frame_stack.get();
        let context = &mut self.evm.ctx;
        let (table, gas) = (
            self.evm.instruction.instruction_table(),
            self.evm.instruction.gas_table(),
        );
        let interpreter = &mut frame.interpreter;
        let known = |address: &Address, context: &super::block::BlockContext<'_, S>| {
            let account = context.journaled_state.inner.state.get(address);
            account.and_then(|account| account.info.code.clone())
        };
        let mut own = BTreeSet::new();
        let mut others: Vec<(Address, Range<u32>)> = Vec::new();
        let at = interpreter.input.bytecode_address().copied();
        // The account that has the code, which is another one's than was called if that delegates.
        let owner =
            at.map(
                |at| match known(&at, context).and_then(|code| code.eip7702_address()) {
                    Some(to) => {
                        others.push((at, 0..1));
                        to
                    }
                    None => at,
                },
            );
        let size = interpreter.bytecode.len();
        let mut last = None;
        loop {
            let reads = Reads::of(interpreter);
            let (here, more, other) = match reads {
                Reads::Own(here) => (here, 0..0, None),
                Reads::OwnToo(here, more) => (here, more, None),
                Reads::Other(here, address, range) => (here, 0..0, Some((address, range))),
            };
            let here = chunks(here, size);
            if last.as_ref() != Some(&here) {
                own.extend(here.clone());
                last = Some(here);
            }
            let step = interpreter.step(table, gas, context);
            // Only what was paid for is copied. A jump has read its destination even if that is none.
            if step.is_ok() || more.len() == 1 {
                own.extend(chunks(more, size));
            }
            if step.is_ok()
                && let Some((address, range)) = other
            {
                let size = known(&address, context).map_or(0, |code| code.len());
                others.push((address, chunks(range, size)));
            }
            if let Err(error) = step {
                if interpreter.bytecode.action().is_none() {
                    interpreter.halt(error);
                }
                break;
            }
        }
        let action = interpreter.take_next_action();
        if let Some(reads) = &mut self.code_reads {
            let own = owner.map(|owner| (owner, own));
            let others = others
                .into_iter()
                .map(|(at, chunks)| (at, chunks.collect()));
            for (account, chunks) in own.into_iter().chain(others) {
                reads.chunks.entry(account).or_default().extend(chunks);
            }
        }
        frame
            .process_next_action(context, action)
            .inspect(|done: &ItemOrResult<_, _>| {
                if done.is_result() {
                    frame.set_finished(true);
                }
            })
    }
}
