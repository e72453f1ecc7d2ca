//! A whole contract: routines, statements and loops around them, and what every contract needs.

use std::collections::BTreeMap;
use std::ops::Range;

use alloy_primitives::U256;
use revm::bytecode::opcode::*;

use super::Weights;
use super::code::Code;
use super::label::Label;
use super::layout::{Form, Layout, Region, Slot, Slots, Variable};
use super::routine::{Counts, Routine};
use super::word::Word;
use crate::{GasSchedule, Interface, OPERAND_BYTES};

/// What a contract is short of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Time.
    #[default]
    Time,
    /// Gas, by model A.
    Gas,
}

impl Goal {
    /// What operations weigh for this goal.
    #[must_use]
    pub const fn weights(self, interface: Interface) -> Weights {
        match self {
            Self::Time => Weights::TIME,
            Self::Gas => Weights::gas(interface, GasSchedule::MODEL_A),
        }
    }
}

/// A contract with what there is to say about it.
#[derive(Clone, Debug)]
pub struct Program {
    /// Runtime code.
    pub code: Vec<u8>,
    /// Names and operation counts of its routines, each as often as its code is there.
    pub routines: Vec<(&'static str, Counts)>,
    /// Its variables.
    pub memory: Vec<Region>,
    /// Where the code of routines is, in ascending order: for debugging.
    pub placed: Vec<(Range<usize>, Routine)>,
}

/// A contract being written.
///
/// Every statement leaves the stack as it found it, but for those whose documentation says otherwise. Subroutines that are asked for (`decode`, `reverse_bytes`, `fail`) and the constants are
/// put behind the rest by [`Self::finish`].
#[derive(Debug)]
pub struct Contract {
    /// The code so far.
    pub code: Code,
    layout: Layout,
    heap: u32,
    routines: BTreeMap<&'static str, Routine>,
    data: Label,
    /// Length of the constants up to the last that is read.
    constants: usize,
    written: Vec<(&'static str, Counts)>,
    placed: Vec<(Range<usize>, Routine)>,
    tables: Vec<(Label, Vec<u8>)>,
    decode: Option<Label>,
    reverse: Option<Label>,
    fail: Option<Label>,
}

impl Contract {
    /// Without code yet.
    #[must_use]
    pub fn new(interface: Interface, layout: Layout, routines: Vec<Routine>) -> Self {
        let temporaries = routines.iter().map(Routine::temporaries).max();
        let mut code = Code::for_layout(interface, &layout);
        let data = code.label();
        Self {
            code,
            heap: layout.end() + temporaries.unwrap_or(0) * Slots::<1>::BYTES,
            layout,
            routines: routines
                .into_iter()
                .map(|routine| (routine.name(), routine))
                .collect(),
            data,
            constants: 0,
            written: Vec::new(),
            placed: Vec::new(),
            tables: Vec::new(),
            decode: None,
            reverse: None,
            fail: None,
        }
    }

    /// Where memory begins that neither variables nor temporaries occupy.
    #[must_use]
    pub const fn heap(&self) -> u32 {
        self.heap
    }

    /// A routine's operations, here.
    ///
    /// # Panics
    ///
    /// If there is no routine of this name.
    pub fn inline(&mut self, name: &'static str) {
        let routine = &self.routines[name];
        self.written.push((name, routine.counts()));
        let begin = self.code.len();
        self.code.routine(routine, &self.layout);
        self.placed.push((begin..self.code.len(), routine.clone()));
        let operations = routine.operations(&self.layout);
        let read: Vec<u32> = operations.flat_map(|(_, at)| [at.x, at.y]).collect();
        for offset in read {
            self.reads_constant(Slot(offset));
        }
    }

    /// Notes that this constant is read by other code than that of routines.
    pub fn reads_constant(&mut self, slot: Slot) {
        let end = slot.0 as usize + OPERAND_BYTES;
        if end <= self.layout.initial_memory().len() {
            self.constants = self.constants.max(end);
        }
    }

    /// A routine as a subroutine.
    pub fn subroutine(&mut self, label: Label, name: &'static str) {
        self.code.place(label);
        self.inline(name);
        self.code.ret();
    }

    /// Goes through a subroutine several times, the first time from `entry` on. It finds itself as the way back, as often as it is to be repeated: that takes
    /// half the gas of a counter.
    ///
    /// # Panics
    ///
    /// If `times` is zero.
    pub fn call_times(&mut self, times: u64, entry: Label, subroutine: Label) {
        assert!(times > 0, "a subroutine is entered before it is counted");
        let back = self.code.label();
        self.code.push_label(back);
        if times > 1 {
            self.code.push_label(subroutine);
        }
        for _ in 2..times {
            self.code.ops(&[DUP1]);
        }
        self.code.jump(entry);
        self.code.place(back);
    }

    /// Pushes a word.
    pub fn push(&mut self, word: impl Into<Word>) {
        word.into().write(&mut self.code);
    }

    /// Puts a word into a variable.
    pub fn set(&mut self, variable: Variable, word: impl Into<Word>) {
        self.store(variable.0, word);
    }

    /// Puts a word into memory.
    pub fn store(&mut self, at: impl Into<Word>, word: impl Into<Word>) {
        self.push(word);
        self.push(at);
        self.code.ops(&[MSTORE]);
    }

    /// Puts the lowest byte of a word into memory.
    pub fn store_byte(&mut self, at: impl Into<Word>, word: impl Into<Word>) {
        self.push(word);
        self.push(at);
        self.code.ops(&[MSTORE8]);
    }

    /// Copies memory.
    pub fn copy(&mut self, to: impl Into<Word>, from: impl Into<Word>, bytes: impl Into<Word>) {
        self.push(bytes);
        self.push(from);
        self.push(to);
        self.code.ops(&[MCOPY]);
    }

    /// Copies calldata to memory.
    pub fn copy_calldata(
        &mut self,
        to: impl Into<Word>,
        from: impl Into<Word>,
        bytes: impl Into<Word>,
    ) {
        self.push(bytes);
        self.push(from);
        self.push(to);
        self.code.ops(&[CALLDATACOPY]);
    }

    /// What is done only if the condition is not zero.
    pub fn when(&mut self, condition: impl Into<Word>, then: impl FnOnce(&mut Self)) {
        let after = self.code.label();
        self.push(condition.into().is_zero());
        self.code.jump_if(after);
        then(self);
        self.code.place(after);
    }

    /// What is done once, and again as long as the condition is not zero then.
    pub fn loop_while(&mut self, condition: impl Into<Word>, body: impl FnOnce(&mut Self)) {
        let start = self.code.here();
        body(self);
        self.push(condition);
        self.code.jump_if(start);
    }

    /// Reverts unless the condition holds.
    pub fn require(&mut self, condition: impl Into<Word>) {
        self.refuse(condition.into().is_zero());
    }

    /// Reverts if the word is not zero.
    pub fn refuse(&mut self, word: impl Into<Word>) {
        let fail = self.fail();
        self.push(word);
        self.code.jump_if(fail);
    }

    /// Where to jump in order to revert.
    pub fn fail(&mut self) -> Label {
        *self.fail.get_or_insert_with(|| self.code.label())
    }

    /// Returns a range of memory.
    pub fn return_bytes(&mut self, from: impl Into<Word>, bytes: impl Into<Word>) {
        self.push(bytes);
        self.push(from);
        self.code.ops(&[RETURN]);
    }

    /// Returns a word.
    pub fn return_word(&mut self, word: impl Into<Word>) {
        self.store(0, word);
        self.return_bytes(0, 32);
    }

    /// Calls a contract or precompile without value or state, and leaves on the stack whether it succeeded.
    pub fn static_call(&mut self, to: impl Into<Word>, input: (Word, Word), output: (Word, Word)) {
        let (output, output_bytes) = output;
        let (input, input_bytes) = input;
        for word in [output_bytes, output, input_bytes, input, to.into()] {
            self.push(word);
        }
        self.code.ops(&[GAS, STATICCALL]);
    }

    /// Loads the constants; the first thing that a contract does.
    pub fn load_constants(&mut self) {
        self.code.push(self.layout.initial_memory().len() as u64);
        self.code.push_label(self.data);
        self.code.push(0);
        self.code.ops(&[CODECOPY]);
        self.code.set_modulus(&self.layout);
    }

    /// Bytes that will lie behind all code, at the label.
    pub fn table(&mut self, bytes: Vec<u8>) -> Label {
        let label = self.code.label();
        self.tables.push((label, bytes));
        label
    }

    /// Copies code to memory.
    pub fn copy_code(
        &mut self,
        to: impl Into<Word>,
        from: impl Into<Word>,
        bytes: impl Into<Word>,
    ) {
        self.push(bytes);
        self.push(from);
        self.push(to);
        self.code.ops(&[CODECOPY]);
    }

    /// Brings a residue that is one word, most significant byte first, to a slot whose upper 16 bytes are zero already. Reverts unless it is below the modulus, which must be below
    /// 2^256.
    pub fn decode_word(&mut self, to: Slot, word: Word) {
        let modulus = self.layout.modulus_value();
        self.require(word.clone().below(U256::from(modulus)));
        self.push(word);
        self.reverse_bytes();
        self.push(to.0);
        self.code.ops(&[MSTORE]);
    }

    /// Brings `count` residues of 64 bytes each, most significant first, from calldata to slots. Reverts unless each is below the modulus. The 16 bytes behind
    /// the last slot become zero.
    pub fn decode(&mut self, to: u32, from: impl Into<Word>, count: usize) {
        self.push(from);
        self.decode_next(to, count);
        self.code.ops(&[POP]);
    }

    /// The same from the offset on top of the stack, which moves behind them.
    pub fn decode_next(&mut self, to: u32, count: usize) {
        let decode = *self.decode.get_or_insert_with(|| self.code.label());
        for index in 0..count {
            let back = self.code.label();
            self.code.push_label(back);
            self.code
                .push(u64::from(to) + (index * OPERAND_BYTES) as u64);
            self.code.ops(&[DUP3]);
            self.code.jump(decode);
            self.code.place(back);
            self.code.push(64);
            self.code.ops(&[ADD]);
        }
    }

    /// Replaces the word on top of the stack by that of its bytes in the opposite order, unless slots hold plain words.
    pub fn reverse_bytes(&mut self) {
        if self.layout.form() == Form::Word {
            return;
        }
        let reverse = *self.reverse.get_or_insert_with(|| self.code.label());
        let back = self.code.label();
        self.code.push_label(back);
        self.code.ops(&[SWAP1]);
        self.code.jump(reverse);
        self.code.place(back);
    }

    /// The inverse of [`Self::decode`], to memory that begins with zeros: what is written are the 48 bytes behind the first 16 of every 64.
    pub fn encode(&mut self, to: impl Into<Word>, from: u32, count: usize) {
        let to = to.into();
        for index in 0..count {
            let slot = from + (index * OPERAND_BYTES) as u32;
            // The upper 32 bytes first: they bring along 16 of the lower ones, in their place.
            for (offset, at) in [(16, 16), (0, 32)] {
                self.push(Word::memory(slot + offset));
                self.reverse_bytes();
                self.push(to.clone() + (index * 64 + at));
                self.code.ops(&[MSTORE]);
            }
        }
    }

    /// Brings residues in EVM384's form from calldata to slots.
    pub fn residues_from_calldata<const N: usize>(&mut self, to: Slots<N>, from: u32) {
        if self.layout.form() == Form::Residues {
            return self.copy_calldata(to.offset(), from, Slots::<N>::BYTES);
        }
        self.reversed(to.offset(), N, |at| Word::calldata(from + at));
    }

    /// Returns what slots hold, in EVM384's form.
    pub fn return_residues<const N: usize>(&mut self, from: Slots<N>) {
        let mut at = from.offset();
        if self.layout.form() != Form::Residues {
            at = self.heap();
            self.reversed(at, N, |index| Word::memory(from.offset() + index));
        }
        self.return_bytes(at, Slots::<N>::BYTES);
    }

    /// Brings so many residues to memory, the bytes of each in the opposite order. The words of one overlap.
    fn reversed(&mut self, to: u32, count: usize, word: impl Fn(u32) -> Word) {
        for at in (0..count).map(|index| (index * OPERAND_BYTES) as u32) {
            for (from, to) in [(at + 16, to + at), (at, to + at + 16)] {
                self.push(word(from));
                self.reverse_bytes();
                self.push(to);
                self.code.ops(&[MSTORE]);
            }
        }
    }

    /// Subroutines and data behind everything else.
    ///
    /// # Panics
    ///
    /// If a label that is used was never placed.
    #[must_use]
    pub fn finish(mut self) -> Program {
        if let Some(decode) = self.decode {
            self.decode_subroutine(decode);
        }
        if let Some(reverse) = self.reverse {
            self.reverse_subroutine(reverse);
        }
        if let Some(fail) = self.fail {
            self.code.place(fail);
            self.code.ops(&[PUSH0, PUSH0, REVERT]);
        }
        self.code.arithmetic();
        self.code.mark(self.data);
        // What CODECOPY asks for behind the end of the code is zero.
        let constants = &self.layout.initial_memory()[..self.constants];
        self.code.data(constants);
        for (label, bytes) in &self.tables {
            self.code.mark(*label);
            self.code.data(bytes);
        }
        Program {
            code: self.code.finish(),
            routines: self.written,
            memory: self.layout.regions().to_vec(),
            placed: self.placed,
        }
    }

    /// Takes an address in memory and one in calldata above it: 64 bytes there, most significant first, become 48 here, least significant first, and 16 zeros
    /// behind them. Fails unless the number is below the modulus.
    fn decode_subroutine(&mut self, decode: Label) {
        let modulus = self.layout.modulus_value();
        let modulus = modulus.to_be_bytes::<OPERAND_BYTES>();
        let (high, low) = modulus.split_at(16);
        let fail = self.fail();
        self.code.place(decode);
        self.code.ops(&[DUP1, CALLDATALOAD, SWAP1]);
        self.code.push(32);
        self.code.ops(&[ADD, CALLDATALOAD]);
        // high < m's || (high == m's && low < m's)
        self.code.push_bytes(low);
        self.code.ops(&[DUP2, LT]);
        self.code.push_bytes(high);
        self.code.ops(&[DUP4, EQ, AND]);
        self.code.push_bytes(high);
        self.code.ops(&[DUP4, LT, OR, ISZERO]);
        self.code.jump_if(fail);
        if self.layout.form() == Form::TwoWords {
            // high << 128 to the slot, low 16 bytes behind.
            self.code.ops(&[SWAP1]);
            self.code.push(128);
            self.code.ops(&[SHL, DUP3, MSTORE, SWAP1]);
            self.code.push(16);
            self.code.ops(&[ADD, MSTORE]);
            self.code.ret();
            return;
        }
        self.reverse_bytes();
        self.code.ops(&[DUP3, MSTORE]);
        self.reverse_bytes();
        self.code.ops(&[SWAP1]);
        self.code.push(32);
        self.code.ops(&[ADD, MSTORE]);
        self.code.ret();
    }

    /// Reverses the bytes of a word: neighbours change places, then pairs of them, and so on.
    fn reverse_subroutine(&mut self, reverse: Label) {
        self.code.place(reverse);
        for bits in [8usize, 16, 32, 64] {
            let low_halves: Vec<u8> = (0..32)
                .map(|byte| if byte * 8 / bits % 2 == 1 { 0xff } else { 0 })
                .collect();
            self.code.push_bytes(&low_halves);
            // (x & mask) << bits | (x >> bits) & mask
            self.code.ops(&[DUP1, DUP3, AND]);
            self.code.push(bits as u64);
            self.code.ops(&[SHL, SWAP2]);
            self.code.push(bits as u64);
            self.code.ops(&[SHR, AND, OR]);
        }
        self.code.ops(&[DUP1]);
        self.code.push(128);
        self.code.ops(&[SHL, SWAP1]);
        self.code.push(128);
        self.code.ops(&[SHR, OR, SWAP1]);
        self.code.ret();
    }
}

/// A word that is zero exactly if these bytes of memory are, 32 at least.
#[must_use]
pub fn any_bit(offset: u32, bytes: u32) -> Word {
    // The last word overlaps the one before where the bytes are no whole words.
    let words =
        (0..bytes.div_ceil(32)).map(|word| Word::memory(offset + (word * 32).min(bytes - 32)));
    words
        .reduce(|any, word| word | any)
        .unwrap_or(Word::Number(U256::ZERO))
}
