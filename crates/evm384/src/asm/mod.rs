//! Text to code and back.
//!
//! A line holds instructions, labels, a constant, or a part of a macro; `;` begins a comment.
//!
//! ```text
//! include "field.easm"      ; that file's lines, here; its name is relative to this one's
//! size = 48                 ; a constant; numbers are decimal or 0x-hex
//! slot f = 96+2*size 12     ; a constant, and for the debugger the name of twelve slots of 48 bytes from there on
//! CALLDATASIZE
//! @done JUMPI               ; a label's position, in a PUSH2
//! ADDMOD384 f f g 0         ; out x y modulus: with its push under v7, with its immediate bytes otherwise
//! push size 1000            ; the shortest push, for each number
//! PUSH4 0x00001234          ; a push of this length
//! done:                     ; a JUMPDEST
//! DATA 0x0102               ; bytes as they are
//! macro power x times       ; a macro with two parameters
//!   push times
//!   again:                  ; a label of this expansion alone
//!   MULMODMONT384 x x x 0
//!   push 1 SWAP1 SUB DUP1 @again JUMPI POP
//! end
//! power f+size 3            ; sums, differences and products, without spaces
//! ```
//!
//! Several instructions may stand on a line. Mnemonics are those of revm and of the interface, and may be written in small letters. What stands behind an opcode of an interface is
//! named in [`crate::Interface::opcodes`].

mod assemble;
mod disassemble;
mod source;

pub use assemble::{Assembly, Mapped, NamedSlots, assemble, assemble_file};
pub use disassemble::disassemble;
pub(crate) use disassemble::lines;
pub use source::{AssemblyError, Fault, Place};
