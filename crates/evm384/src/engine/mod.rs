//! Code decoded once: runs of operations executed at one go, with the interpreter's results.
//!
//! A run is a sequence of operations, under v7 each with the push of its operand, that nothing interrupts. What it costs, how much memory and how much
//! stack it needs is known beforehand; where gas and stack are enough for the whole of it, its operations follow each other without stack, gas or bounds to care for. Where they are not, the interpreter
//! goes through it step by step, and halts where it must. Between runs, and in code without runs, revm's own loop does the work.

mod decode;
mod evm;

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use revm::interpreter::interpreter::{ExtBytecode, resize_memory};
use revm::interpreter::interpreter_types::{InputsTr, Jumps, LoopControl, StackTr};
use revm::interpreter::{
    GasTable, Host, InstructionTable, Interpreter, InterpreterAction, InterpreterTypes,
    STACK_LIMIT, SharedMemory, num_words,
};
use revm::primitives::B256;

use crate::arithmetic::{Arithmetic, Backend, with_arithmetic};
use crate::{HasFrames, Interface, Operation};
pub use decode::Decoded;
use decode::Run;
pub use evm::{EngineEvm, ExecutionError, FramesContext, Runner};

/// Bytes of decoded code that an engine keeps, by default.
const CACHE_BYTES: u64 = 16 << 20;

/// Codes without runs that are known without asking the cache.
const KNOWN_PLAIN: usize = 256;

/// Executes frames; to be used instead of [`Interpreter::run_plain`].
#[derive(Debug)]
pub struct Engine {
    interface: Interface,
    backend: Backend,
    decoded: Cache<B256, Arc<Decoded>, DecodedBytes>,
    /// By the last byte, the hash of a code that has no runs, as most code has none.
    plain: Box<[B256; KNOWN_PLAIN]>,
}

#[derive(Clone, Debug)]
struct DecodedBytes;

impl Weighter<B256, Arc<Decoded>> for DecodedBytes {
    fn weight(&self, _: &B256, decoded: &Arc<Decoded>) -> u64 {
        decoded.memory_bytes() as u64
    }
}

impl Engine {
    /// An engine for code in which this interface is switched on.
    #[must_use]
    pub fn new(interface: Interface, backend: Backend) -> Self {
        Self {
            interface,
            backend,
            decoded: Cache::with_weighter(1024, CACHE_BYTES, DecodedBytes),
            plain: Box::new([B256::ZERO; KNOWN_PLAIN]),
        }
    }

    /// Executes a frame until it returns, halts or calls, as [`Interpreter::run_plain`] does and with the same result.
    ///
    /// The instruction table must have the interface's opcodes ([`Interface::install`]). Code that has no hash, which is that of a creation, is left to the interpreter.
    pub fn run<W, H>(
        &mut self,
        interpreter: &mut Interpreter<W>,
        instructions: &InstructionTable<W, H>,
        gas_table: &GasTable,
        host: &mut H,
    ) -> InterpreterAction
    where
        W: InterpreterTypes<Bytecode = ExtBytecode, Memory = SharedMemory>,
        H: Host + HasFrames + ?Sized,
    {
        match self.runs_of(&interpreter.bytecode) {
            Some(decoded) => with_arithmetic!(self.backend, A => {
                run_decoded::<A, W, H>(self.interface, &decoded, interpreter, instructions, gas_table, host)
            }),
            None => run_plain(interpreter, instructions, gas_table, host),
        }
    }

    /// The code decoded, if it has runs.
    fn runs_of(&mut self, code: &ExtBytecode) -> Option<Arc<Decoded>> {
        if !Decoded::knows(self.interface) {
            return None;
        }
        let hash = code.hash()?;
        let known = &mut self.plain[usize::from(hash[31])];
        if *known == hash {
            return None;
        }
        let decoded = match self.decoded.get(&hash) {
            Some(decoded) => Arc::clone(decoded),
            None => {
                let decoded = Arc::new(Decoded::new(self.interface, code));
                self.decoded.insert(hash, Arc::clone(&decoded));
                decoded
            }
        };
        if decoded.has_runs() {
            return Some(decoded);
        }
        *known = hash;
        None
    }
}

/// revm's own loop: one copy of it for all that leave code to it, so that none is slower than another.
#[inline(never)]
fn run_plain<W, H>(
    interpreter: &mut Interpreter<W>,
    instructions: &InstructionTable<W, H>,
    gas_table: &GasTable,
    host: &mut H,
) -> InterpreterAction
where
    W: InterpreterTypes,
    H: Host + ?Sized,
{
    interpreter.run_plain(instructions, gas_table, host)
}

fn run_decoded<A, W, H>(
    interface: Interface,
    decoded: &Decoded,
    interpreter: &mut Interpreter<W>,
    instructions: &InstructionTable<W, H>,
    gas_table: &GasTable,
    host: &mut H,
) -> InterpreterAction
where
    A: Arithmetic,
    W: InterpreterTypes<Bytecode = ExtBytecode, Memory = SharedMemory>,
    H: Host + HasFrames + ?Sized,
{
    let halt = loop {
        if decoded.may_begin_run(interpreter.bytecode.opcode())
            && let Some(run) = decoded.run_at(interpreter.bytecode.pc())
            && execute::<A, W, H>(run, (interface, decoded), interpreter, gas_table, host)
        {
            continue;
        }
        if let Err(result) = interpreter.step(instructions, gas_table, host) {
            break result;
        }
    };
    if interpreter.bytecode.action().is_none() {
        interpreter.halt(halt);
    }
    interpreter.take_next_action()
}

/// Executes a run if that cannot halt; else says no, and has done nothing.
#[inline(always)]
fn execute<A, W, H>(
    run: &Run,
    (interface, decoded): (Interface, &Decoded),
    interpreter: &mut Interpreter<W>,
    gas_table: &GasTable,
    host: &mut H,
) -> bool
where
    A: Arithmetic,
    W: InterpreterTypes<Bytecode = ExtBytecode, Memory = SharedMemory>,
    H: Host + HasFrames + ?Sized,
{
    let Interpreter {
        bytecode,
        gas,
        stack,
        memory,
        ..
    } = interpreter;
    let modulus = match interface {
        Interface::SetMod => {
            let frames = host.frames();
            let frame = frames.and_then(|frames| frames.get(interpreter.input.depth()));
            match frame.and_then(|frame| frame.modulus) {
                Some(modulus) => Some(modulus),
                None => return false,
            }
        }
        _ => None,
    };
    let words = num_words(run.memory_end());
    let grown = gas.memory();
    let expansion = if words > grown.words_num {
        let whole = host.gas_params().memory_cost(words);
        whole.saturating_sub(grown.expansion_cost)
    } else {
        0
    };
    let cost = run.cost(gas_table);
    if gas.remaining() < cost.saturating_add(expansion)
        || stack.len() + run.stack_words() > STACK_LIMIT
        || resize_memory(gas, memory, host.gas_params(), 0, run.memory_end()).is_err()
        || !gas.record_regular_cost(cost)
    {
        return false;
    }
    let mut memory = memory.context_memory_mut();
    let memory = &mut memory[..run.memory_end()];
    let memory = memory.as_mut_ptr();
    // Asked once: within the loop it would be asked for every operation. SETMOD's operations have 0 for the offset of the modulus.
    let moduli = match &modulus {
        Some(modulus) => modulus.as_ptr(),
        None => memory.cast_const(),
    };
    for &(operation, offsets) in decoded.operations(run) {
        // SAFETY: all operands of the run end at or before `memory_end`, but for a modulus that lies elsewhere, and `with_arithmetic` has asked the
        // processor.
        unsafe {
            let modulus = moduli.add(offsets.modulus as usize);
            match operation {
                Operation::Add => A::apply_modulo(Operation::Add, memory, offsets, modulus),
                Operation::Sub => A::apply_modulo(Operation::Sub, memory, offsets, modulus),
                Operation::Mul => A::apply_modulo(Operation::Mul, memory, offsets, modulus),
            }
        }
    }
    bytecode.relative_jump(run.code_bytes());
    true
}
