//! Code to text.

use std::fmt::Write;

use revm::bytecode::opcode::{self, OpCode};

use crate::{Interface, Offsets, Operation};

/// Text from code, one instruction a line with its position in a comment; assembled under the same interface, it gives the same code.
///
/// Operations and the pushes of their operands become one line. What is no instruction, or cut off by the end of the code, becomes `DATA`.
#[must_use]
pub fn disassemble(interface: Interface, code: &[u8]) -> String {
    let mut text = String::new();
    for (position, line) in lines(interface, code) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line:<48} ; {position:#06x}");
    }
    text
}

/// The lines of [`disassemble`], each with the position where its code begins.
pub(crate) fn lines(interface: Interface, code: &[u8]) -> impl Iterator<Item = (usize, String)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let position = next;
        if position >= code.len() {
            return None;
        }
        let (line, length) = instruction(interface, code, position);
        next += length;
        Some((position, line))
    })
}

fn instruction(interface: Interface, code: &[u8], position: usize) -> (String, usize) {
    if let Some(line) = extension(interface, code, position) {
        return line;
    }
    let opcode = code[position];
    if opcode == opcode::JUMPDEST {
        return (format!("at_{position:04x}:"), 1);
    }
    let data = |bytes: &[u8]| format!("DATA {}", hexadecimal(bytes));
    let Some(known) = OpCode::new(opcode) else {
        return (data(&code[position..=position]), 1);
    };
    let length = 1 + usize::from(known.info().immediate_size());
    match code.get(position..position + length) {
        None => (data(&code[position..]), code.len() - position),
        Some([_]) => (known.as_str().to_owned(), 1),
        Some(bytes) => (
            format!("{} {}", known.as_str(), hexadecimal(&bytes[1..])),
            length,
        ),
    }
}

/// An operation with its push under v7, in the form that the assembler gives it.
fn packed(code: &[u8], position: usize) -> Option<(Operation, Offsets, usize)> {
    let first = *code.get(position)?;
    let digits = usize::from(first.checked_sub(opcode::PUSH0)?);
    let end = position + 1 + digits;
    let bytes = code.get(position + 1..end)?;
    let operation = Operation::from_opcode(*code.get(end)?)?;
    // A longer push than needed would not come back.
    let shortest = digits <= 16 && bytes.first() != Some(&0);
    let word = bytes.iter();
    let word = word.fold(0u128, |word, &byte| word << 8 | u128::from(byte));
    shortest.then(|| (operation, Offsets::from_word(word), digits + 2))
}

/// An opcode of the interface with all its immediates.
fn extension(interface: Interface, code: &[u8], position: usize) -> Option<(String, usize)> {
    if interface == Interface::V7 {
        let (operation, Offsets { out, x, y, modulus }, length) = packed(code, position)?;
        let mnemonic = operation.mnemonic();
        return Some((format!("{mnemonic} {out} {x} {y} {modulus}"), length));
    }
    let (&byte, mut rest) = code.get(position..)?.split_first()?;
    let opcode = interface
        .opcodes()
        .iter()
        .find(|opcode| opcode.byte == byte)?;
    let mut line = opcode.mnemonic.to_owned();
    for immediate in opcode.immediates {
        let (bytes, behind) = rest.split_at_checked(immediate.bytes)?;
        let number = bytes
            .iter()
            .rev()
            .fold(0u32, |number, &byte| number << 8 | u32::from(byte));
        // Writing to a string cannot fail.
        let _ = write!(line, " {number}");
        rest = behind;
    }
    Some((line, code.len() - position - rest.len()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::from("0x");
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
