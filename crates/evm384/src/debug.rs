//! Execution step by step, with names: of source lines or routines, and of slots.
//!
//! Every operation is compared with [`mod@crate::reference`], and within a routine of a program that was built with what was written in
//! it ([`crate::build::Routine::expected`]): a value that was clobbered, put into a wrong place or computed from a wrong one is found where it happens.

use std::io::{self, BufRead, Write};
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, OnceLock};

use alloy_primitives::ruint::aliases::U768;
use revm::bytecode::opcode::OpCode;
use revm::interpreter::Interpreter;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{InputsTr, Jumps};

use crate::asm::{Assembly, NamedSlots, lines};
use crate::build::{Program, Routine, Slot};
use crate::interface::{immediate, registers, setmod};
use crate::reference::{self, U384};
use crate::{
    FrameView, Interface, MULTIPLICATION_MODULUS_BYTES, OPERAND_BYTES, Offsets, Operation,
    arithmetic::negated_inverse,
};

/// What is told of every instruction before it is executed.
pub trait Observer {
    /// Whether to go on.
    fn before(&mut self, interpreter: &Interpreter<EthInterpreter>, frame: FrameView<'_>) -> bool;
}

/// Names of positions in code and of slots in memory.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Ascending positions, each with what begins there: a source line, or a routine.
    places: Vec<(usize, String)>,
    slots: Vec<NamedSlots>,
    routines: Vec<(Range<usize>, Routine)>,
}

impl From<&Assembly> for Symbols {
    fn from(assembly: &Assembly) -> Self {
        let places = assembly.map.iter().map(|mapped| {
            let mut place = format!("{} line {}", mapped.place.file, mapped.place.line);
            for (name, used) in assembly.expansions(mapped) {
                place += &format!(", in {name} of line {}", used.line);
            }
            (mapped.position, place.trim_start().to_owned())
        });
        Self {
            places: places.collect(),
            slots: assembly.slots.clone(),
            routines: Vec::new(),
        }
    }
}

impl From<&Program> for Symbols {
    fn from(program: &Program) -> Self {
        let places = program.placed.iter().flat_map(|(range, routine)| {
            let behind = (range.end, "between routines".to_owned());
            [(range.start, routine.name().to_owned()), behind]
        });
        let mut places: Vec<_> = [(0, "between routines".to_owned())]
            .into_iter()
            .chain(places)
            .collect();
        // Where a routine begins directly behind another, its name stands.
        places.sort_by_key(|(position, name)| (*position, name != "between routines"));
        let slots = program.memory.iter().map(|region| NamedSlots {
            name: region.name.replace(' ', "_"),
            offset: region.offset,
            count: region.bytes.div_ceil(OPERAND_BYTES as u32),
        });
        Self {
            places,
            slots: slots.collect(),
            routines: program.placed.clone(),
        }
    }
}

impl Symbols {
    /// Names for code of which there is no text: each line of its disassembly is a place, named by its position.
    #[must_use]
    pub fn of_code(interface: Interface, code: &[u8]) -> Self {
        let places = lines(interface, code);
        Self {
            places: places
                .map(|(position, _)| (position, format!("{position:#06x}")))
                .collect(),
            ..Self::default()
        }
    }

    fn place(&self, position: usize) -> &str {
        let behind = self.places.partition_point(|(begin, _)| *begin <= position);
        match behind.checked_sub(1) {
            Some(index) => &self.places[index].1,
            None => "no source",
        }
    }

    /// The name of an offset, or its digits.
    fn name(&self, offset: u32) -> String {
        let bytes = OPERAND_BYTES as u32;
        let within = |slots: &&NamedSlots| {
            (slots.offset
                ..slots
                    .offset
                    .saturating_add(slots.count.saturating_mul(bytes)))
                .contains(&offset)
        };
        let Some(slots) = self.slots.iter().find(within) else {
            return offset.to_string();
        };
        let (index, rest) = (
            (offset - slots.offset) / bytes,
            (offset - slots.offset) % bytes,
        );
        match (slots.count, rest) {
            (1, 0) => slots.name.clone(),
            (_, 0) => format!("{}[{index}]", slots.name),
            _ => format!("{}+{}", slots.name, offset - slots.offset),
        }
    }

    /// The offsets of `f`, `f[3]` or a number.
    fn offsets(&self, text: &str) -> Vec<u32> {
        if let Ok(offset) = text.parse() {
            return vec![offset];
        }
        let (name, index) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((name, index)) => (name, index.parse::<u32>().ok()),
            None => (text, None),
        };
        let Some(slots) = self.slots.iter().find(|slots| slots.name == name) else {
            return Vec::new();
        };
        let indices = match index {
            Some(index) => index..index.saturating_add(1).min(slots.count),
            None => 0..slots.count,
        };
        indices
            .map_while(|index| {
                slots
                    .offset
                    .checked_add(index.checked_mul(OPERAND_BYTES as u32)?)
            })
            .collect()
    }
}

/// What makes execution stop.
#[derive(Debug, PartialEq, Eq)]
enum Until {
    /// So many more instructions.
    Instructions(u64),
    /// So many more changes of the source line or routine.
    Places(u64),
    /// So many more operations.
    Operations(u64),
    Break,
}

/// An operation that is about to be executed.
struct Pending {
    operation: Operation,
    offsets: Offsets,
    place: String,
    expected: U384,
    written: Option<U384>,
}

/// Executes commands, a line each, and answers.
pub struct Debugger<R, W> {
    interface: Interface,
    symbols: Symbols,
    commands: R,
    answers: W,
    until: Until,
    place: String,
    breaks: Vec<u32>,
    break_places: Vec<String>,
    pending: Option<Pending>,
    /// The routine that is executing, what its operations must leave, and how many are done.
    routine: Option<(usize, Vec<U384>, usize)>,
    modulus: Option<U384>,
    /// Why the commands could not be read.
    unread: Option<io::Error>,
    broken_off: Arc<OnceLock<Option<io::Error>>>,
}

/// The opcodes that the command `op` stops before under EIP-6690.
const REGISTER_OPERATIONS: RangeInclusive<u8> = registers::ADDMODX..=registers::MULMODX;

const HELP: &str = "step [N]: to the next source line or routine; op [N]: to the next operation; instruction [N]; continue
break SLOT: after an operation has written it; break at PLACE: where the name of a line or routine contains that
print SLOT...: as a field element and as it lies in memory; slots: all names; stack; where; quit
registers: EIP-6690's that are not zero, of the active field, as plain numbers; registers N...: these";

impl<R: BufRead, W: Write> Debugger<R, W> {
    /// Stops before the first instruction. At the end of the commands execution is broken off, as by `quit`.
    pub fn new(interface: Interface, symbols: Symbols, commands: R, answers: W) -> Self {
        Self {
            interface,
            symbols,
            commands,
            answers,
            until: Until::Instructions(0),
            place: String::new(),
            breaks: Vec::new(),
            break_places: Vec::new(),
            pending: None,
            routine: None,
            modulus: None,
            unread: None,
            broken_off: Arc::default(),
        }
    }

    /// Is set when execution is broken off before its end, with the error if commands could not be read.
    pub fn broken_off(&self) -> Arc<OnceLock<Option<io::Error>>> {
        Arc::clone(&self.broken_off)
    }

    /// Who reads the answers may be gone; that is no reason to stop computing.
    fn say(&mut self, line: &str) {
        let _ = writeln!(self.answers, "{line}");
    }

    /// The operation that is next, and where its operands are.
    fn operation(&self, interpreter: &Interpreter<EthInterpreter>) -> Option<(Operation, Offsets)> {
        let operation = Operation::from_opcode(interpreter.bytecode.opcode())?;
        let behind = || {
            let code = interpreter.bytecode.bytes_slice();
            code.get(interpreter.bytecode.pc() + 1..)
        };
        let offsets = match self.interface {
            Interface::V7 => {
                let [low, high, ..] = *interpreter.stack.peek(0).ok()?.as_limbs();
                Offsets::from_word(u128::from(high) << 64 | u128::from(low))
            }
            Interface::Immediate => immediate::offsets(*behind()?.first_chunk()?),
            Interface::SetMod => setmod::offsets(*behind()?.first_chunk()?),
            Interface::Registers | Interface::Stack => return None,
        };
        Some((operation, offsets))
    }

    /// Compares what the last operation has left.
    fn check(&mut self, interpreter: &Interpreter<EthInterpreter>) -> bool {
        let Some(pending) = self.pending.take() else {
            return false;
        };
        let Pending {
            operation,
            offsets,
            place,
            expected,
            written,
        } = pending;
        let left = read(interpreter, offsets.out);
        let name = self.symbols.name(offsets.out);
        let mnemonic = operation.mnemonic();
        let mut stop = false;
        if left != expected {
            self.say(&format!("difference at {place}: {mnemonic} leaves {left:#x} in {name}, the reference {expected:#x}"));
            stop = true;
        } else if let Some(written) = written.filter(|&written| written != left) {
            let [left, written] = [left, written].map(|value| self.plain(value));
            self.say(&format!("difference at {place}: {name} becomes {left}, but what was written there is {written}"));
            stop = true;
        }
        if self.breaks.contains(&offsets.out) {
            self.say(&format!("{name} was written at {place}"));
            self.print(interpreter, offsets.out);
            stop = true;
        }
        stop
    }

    /// As a field element.
    fn plain(&self, value: U384) -> String {
        match self.modulus {
            Some(m) if m.bit(0) => {
                let inverse = negated_inverse(m.as_limbs()[0]);
                format!("{:#x}", reference::mul(value, U384::ONE, m, inverse))
            }
            _ => "no field element yet".to_owned(),
        }
    }

    fn print(&mut self, interpreter: &Interpreter<EthInterpreter>, offset: u32) {
        let value = read(interpreter, offset);
        let (name, plain) = (self.symbols.name(offset), self.plain(value));
        self.say(&format!("{name} = {plain} (Montgomery {value:#x})"));
    }

    /// Notes what the next operation must leave.
    fn prepare(
        &mut self,
        interpreter: &Interpreter<EthInterpreter>,
        set: Option<&[u8; MULTIPLICATION_MODULUS_BYTES]>,
    ) {
        let position = interpreter.bytecode.pc();
        let routines = &self.symbols.routines;
        if let Some(index) = routines
            .iter()
            .position(|(range, _)| range.start == position)
        {
            // The layout of programs that are built has the modulus at 0.
            let modulus = read(interpreter, 0);
            let slot = |Slot(offset)| read(interpreter, offset);
            let expected = routines[index].1.expected(modulus, slot);
            self.routine = Some((index, expected, 0));
        }
        let Some((operation, offsets)) = self.operation(interpreter) else {
            return;
        };
        let bytes = |offset: u32, bytes: usize| memory(interpreter, offset, bytes);
        let modulus = match (self.interface, set) {
            (Interface::SetMod, Some(set)) => set.to_vec(),
            (Interface::SetMod, None) => return,
            _ => bytes(offsets.modulus, operation.modulus_bytes()),
        };
        let m = U384::from_le_slice(&modulus[..OPERAND_BYTES]);
        self.modulus = Some(m);
        let (x, y) = (read(interpreter, offsets.x), read(interpreter, offsets.y));
        let expected = match operation {
            Operation::Add => reference::add(x, y, m),
            Operation::Sub => reference::sub(x, y, m),
            Operation::Mul => {
                let inverse = modulus[OPERAND_BYTES..].first_chunk().copied();
                reference::mul(x, y, m, u64::from_le_bytes(inverse.unwrap_or_default()))
            }
        };
        let mut written = None;
        if let Some((index, values, done)) = &mut self.routine
            && self.symbols.routines[*index].0.contains(&position)
        {
            written = values.get(*done).copied();
            *done += 1;
        }
        self.pending = Some(Pending {
            operation,
            offsets,
            place: self.symbols.place(position).to_owned(),
            expected,
            written,
        });
    }

    /// Whether the next instruction is one to stop before.
    fn arrived(&mut self, interpreter: &Interpreter<EthInterpreter>) -> bool {
        let place = self.symbols.place(interpreter.bytecode.pc());
        let elsewhere = place != self.place;
        if elsewhere {
            self.place = place.to_owned();
            let wanted = |name: &String| self.place.contains(name.as_str());
            if self.break_places.iter().any(wanted) {
                return true;
            }
        }
        let operation = match self.interface {
            Interface::Registers => REGISTER_OPERATIONS.contains(&interpreter.bytecode.opcode()),
            _ => self.operation(interpreter).is_some(),
        };
        let left = match &mut self.until {
            Until::Break => return false,
            Until::Places(left) if elsewhere => left,
            Until::Operations(left) if operation => left,
            Until::Instructions(left) => left,
            Until::Places(_) | Until::Operations(_) => return false,
        };
        *left = left.saturating_sub(1);
        *left == 0
    }

    fn show(&mut self, interpreter: &Interpreter<EthInterpreter>) {
        let opcode = interpreter.bytecode.opcode();
        let extension = self
            .interface
            .opcodes()
            .iter()
            .find(|known| known.byte == opcode);
        let mnemonic = match (extension, OpCode::new(opcode)) {
            (Some(extension), _) => extension.mnemonic,
            (None, Some(known)) => known.as_str(),
            (None, None) => "unknown",
        };
        let mut line = format!("{}: {mnemonic}", self.place);
        if let (Interface::Registers, Some(extension)) = (self.interface, extension) {
            let code = interpreter.bytecode.bytes_slice();
            let operands = code.get(interpreter.bytecode.pc() + 1..);
            for (immediate, byte) in extension
                .immediates
                .iter()
                .zip(operands.unwrap_or_default())
            {
                line += &format!(" {} {byte}", immediate.name);
            }
        }
        if let Some((_, offsets)) = self.operation(interpreter) {
            let Offsets { out, x, y, .. } = offsets;
            for offset in [out, x, y] {
                line += &format!(" {}", self.symbols.name(offset));
            }
        }
        self.say(&line);
    }

    /// Shows these registers, or all that are not zero.
    fn registers(&mut self, frame: FrameView<'_>, indices: &[&str]) {
        let Some((modulus, count)) = frame.field() else {
            return self.say("no field is active");
        };
        self.say(&format!("{count} registers modulo {modulus:#x}"));
        let registers: Vec<(String, Option<U768>)> = if indices.is_empty() {
            let all = (0..count).map(|index| (index.to_string(), frame.register(index)));
            all.filter(|(_, value)| value.is_some_and(|value| !value.is_zero()))
                .collect()
        } else {
            let named = |&name: &&str| {
                let value = name.parse().ok().and_then(|index| frame.register(index));
                (name.to_owned(), value)
            };
            indices.iter().map(named).collect()
        };
        for (name, value) in registers {
            match value {
                Some(value) => self.say(&format!("register {name} = {value:#x}")),
                None => self.say(&format!("there is no register '{name}'")),
            }
        }
    }

    /// Takes commands until one goes on; false to end.
    fn prompt(&mut self, interpreter: &Interpreter<EthInterpreter>, frame: FrameView<'_>) -> bool {
        loop {
            let mut line = String::new();
            match self.commands.read_line(&mut line) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => {
                    self.unread = Some(error);
                    return false;
                }
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            let times = |rest: &[&str]| match rest {
                [] => Some(1),
                [times] => times.parse().ok().filter(|&times: &u64| times > 0),
                _ => None,
            };
            match words.as_slice() {
                [] => {}
                ["quit" | "q"] => return false,
                ["where" | "w"] => self.show(interpreter),
                ["continue" | "c"] => {
                    self.until = Until::Break;
                    return true;
                }
                [
                    word @ ("step" | "s" | "op" | "o" | "instruction" | "i"),
                    rest @ ..,
                ] => match (times(rest), word.as_bytes()[0]) {
                    (None, _) => self.say(HELP),
                    (Some(times), first) => {
                        self.until = match first {
                            b's' => Until::Places(times),
                            b'o' => Until::Operations(times),
                            _ => Until::Instructions(times),
                        };
                        return true;
                    }
                },
                ["break" | "b", "at", rest @ ..] if !rest.is_empty() => {
                    let name = rest.join(" ");
                    let mut places = self.symbols.places.iter();
                    if places.any(|(_, place)| place.contains(&name)) {
                        self.break_places.push(name);
                    } else {
                        self.say(&format!("there is no line or routine '{name}'"));
                    }
                }
                ["break" | "b", name] => match self.symbols.offsets(name).as_slice() {
                    [] => self.say(&format!("there is no slot '{name}'")),
                    offsets => self.breaks.extend_from_slice(offsets),
                },
                ["print" | "p", names @ ..] if !names.is_empty() => {
                    for name in names {
                        let offsets = self.symbols.offsets(name);
                        if offsets.is_empty() {
                            self.say(&format!("there is no slot '{name}'"));
                        }
                        for offset in offsets {
                            self.print(interpreter, offset);
                        }
                    }
                }
                ["slots"] => {
                    let names =
                        self.symbols.slots.iter().map(|slots| {
                            format!("{:>6} {} {}", slots.offset, slots.name, slots.count)
                        });
                    let names: Vec<String> = names.collect();
                    self.say(&names.join("\n"));
                }
                ["registers" | "r", indices @ ..] => self.registers(frame, indices),
                ["stack"] => {
                    let words = interpreter.stack.data().iter().rev();
                    let words: Vec<String> = words.map(|word| format!("{word:#x}")).collect();
                    self.say(&words.join(" "));
                }
                _ => self.say(HELP),
            }
        }
    }
}

impl<R: BufRead, W: Write> Observer for Debugger<R, W> {
    fn before(&mut self, interpreter: &Interpreter<EthInterpreter>, frame: FrameView<'_>) -> bool {
        // What the contract calls is executed without stops.
        if interpreter.input.depth() > 0 {
            return true;
        }
        let stop = self.check(interpreter);
        let arrived = self.arrived(interpreter);
        if stop || arrived {
            self.show(interpreter);
            if !self.prompt(interpreter, frame) {
                // It is set once: execution ends here.
                let _ = self.broken_off.set(self.unread.take());
                return false;
            }
        }
        self.prepare(interpreter, frame.modulus());
        true
    }
}

/// Bytes of memory, zero beyond what there is.
fn memory(interpreter: &Interpreter<EthInterpreter>, offset: u32, bytes: usize) -> Vec<u8> {
    let memory = interpreter.memory.context_memory();
    let rest = memory.get(offset as usize..).unwrap_or_default();
    let mut found = rest[..rest.len().min(bytes)].to_vec();
    found.resize(bytes, 0);
    found
}

fn read(interpreter: &Interpreter<EthInterpreter>, offset: u32) -> U384 {
    U384::from_le_slice(&memory(interpreter, offset, OPERAND_BYTES))
}
