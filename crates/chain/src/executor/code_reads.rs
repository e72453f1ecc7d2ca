//! Records which parts of which code execution reads (EIP-4762, "Code").
//!
//! Code in a tree that has it in chunks is read chunk by chunk: those of the instructions executed with the data that they push or (EVM384) have behind them, of jumps'
//! destinations, valid or not, and what is copied. Init code is in no tree. A delegation (EIP-7702) is code of its own, and what it leads to is read
//! at the other account.

use std::collections::BTreeSet;
use std::ops::Range;

use alloy_primitives::{Address, U256};
use arbor_evm384::Interface;
use arbor_state::StateView;
use arbor_verify::verkle::CHUNK;
use revm::bytecode::Bytecode;
use revm::bytecode::opcode::{CODECOPY, EXTCODECOPY, JUMP, JUMPI, PUSH1, PUSH32};
use revm::context_interface::context::ContextError;
use revm::handler::{FrameResult, ItemOrResult};
use revm::interpreter::Interpreter;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::interpreter_types::{InputsTr, Jumps, LoopControl};

use super::context::{BlockContext, BlockEvm};
use arbor_revm_state::ViewError;

/// What an instruction is going to read of code: found before it runs, as it takes its operands away.
pub(super) struct CodeRead {
    /// Itself, with its immediates, of the code that runs.
    pub(super) own: Range<usize>,
    /// What it copies of that code, or the place it jumps to.
    pub(super) more: Range<usize>,
    /// What it copies of an account's.
    pub(super) other: Option<(Address, Range<usize>)>,
}

impl CodeRead {
    pub(super) fn next(
        interpreter: &Interpreter<EthInterpreter>,
        evm384: Option<Interface>,
    ) -> Self {
        let (pc, opcode) = (interpreter.bytecode.pc(), interpreter.bytecode.opcode());
        let operand = |from_top| interpreter.stack.peek(from_top).unwrap_or_default();
        let range = |from: U256, length: U256| {
            let from: usize = from.saturating_to();
            from..from.saturating_add(length.saturating_to())
        };
        let immediate = match opcode {
            PUSH1..=PUSH32 => 1 + usize::from(opcode - PUSH1),
            _ => evm384.map_or(0, |interface| interface.immediate_bytes(opcode)),
        };
        let own = pc..pc + 1 + immediate;
        let more = match opcode {
            JUMP => range(operand(0), U256::ONE),
            JUMPI if !operand(1).is_zero() => range(operand(0), U256::ONE),
            CODECOPY => range(operand(1), operand(2)),
            _ => 0..0,
        };
        let other = (opcode == EXTCODECOPY).then(|| {
            let address = Address::from_word(operand(0).into());
            (address, range(operand(2), operand(3)))
        });
        Self { own, more, other }
    }
}

/// The chunks of a range, as far as code of this size goes.
pub(super) fn chunks(range: Range<usize>, size: usize) -> Range<u32> {
    let range = range.start..range.end.min(size);
    match range.is_empty() {
        true => 0..0,
        // Code is far shorter than 2^32 chunks.
        false => (range.start / CHUNK) as u32..range.end.div_ceil(CHUNK) as u32,
    }
}

/// An account's code as far as execution has loaded it.
fn known<S: StateView + ?Sized>(
    address: &Address,
    context: &BlockContext<'_, S>,
) -> Option<Bytecode> {
    let account = context.journaled_state.inner.state.get(address);
    account.and_then(|account| account.info.code.clone())
}

/// The account that has the code that runs, and the one that delegates to it where that was called; none for init code.
pub(super) fn code_owner<S: StateView + ?Sized>(
    interpreter: &Interpreter<EthInterpreter>,
    context: &BlockContext<'_, S>,
) -> Option<(Address, Option<Address>)> {
    let at = interpreter.input.bytecode_address().copied()?;
    let delegate = known(&at, context).and_then(|code| code.eip7702_address());
    Some(match delegate {
        Some(to) => (to, Some(at)),
        None => (at, None),
    })
}

impl<S: StateView + ?Sized> BlockEvm<'_, S> {
    /// Runs the uppermost frame until it ends or calls, as revm does, and records what it reads of code.
    pub(super) fn frame_run_recorded(
        &mut self,
    ) -> Result<ItemOrResult<FrameInit, FrameResult>, ContextError<ViewError>> {
        let evm384 = self.interface();
        let frame = self.evm.frame_stack.get();
        let context = &mut self.evm.ctx;
        let (table, gas) = (
            self.evm.instruction.instruction_table(),
            self.evm.instruction.gas_table(),
        );
        let interpreter = &mut frame.interpreter;
        let owner = code_owner(interpreter, context);
        let mut own = BTreeSet::new();
        let mut others: Vec<(Address, Range<u32>)> = Vec::new();
        if let Some((_, Some(delegating))) = owner {
            others.push((delegating, 0..1));
        }
        let size = interpreter.bytecode.len();
        let mut last = None;
        loop {
            let CodeRead {
                own: here,
                more,
                other,
            } = CodeRead::next(interpreter, evm384);
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
            let own = owner.map(|(owner, _)| (owner, own));
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
