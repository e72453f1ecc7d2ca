//! Text to code and back.
//!
//! A line holds an instruction, a label, or a constant; `;` begins a comment.
//!
//! ```text
//! size = 48                 ; a constant; numbers are decimal or 0x-hex
//! CALLDATASIZE
//! @done JUMPI               ; a label's position, in a PUSH2
//! ADDMOD384 f f g 0         ; out x y modulus: with its push under v7, with its immediate bytes otherwise
//! push size 1000            ; the shortest push, for each number
//! PUSH4 0x00001234          ; a push of this length
//! done:                     ; a JUMPDEST
//! DATA 0x0102               ; bytes as they are
//! ```
//!
//! Several instructions may stand on a line. Mnemonics are those of revm and may be written in small letters.

mod assemble;
mod disassemble;

pub use assemble::{AssemblyError, Fault, assemble};
pub use disassemble::disassemble;
