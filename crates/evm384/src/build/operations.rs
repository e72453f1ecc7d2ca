//! Operations as code: instructions of an interface, or what stands for them without EVM384.

use alloy_primitives::U256;

use super::code::{Code, TwoWords, Words};
use super::layout::{Form, Layout};
use super::words::on_one_word;
use crate::arithmetic::negated_inverse;
use crate::interface::immediate::operand_bytes;
use crate::{Interface, Offsets, Operation};

impl Code {
    /// No code yet, for memory laid out so; without EVM384 if slots hold words.
    #[must_use]
    pub fn for_layout(interface: Interface, layout: &Layout) -> Self {
        let mut code = Self::new(interface);
        code.inverse = negated_inverse(layout.modulus_value().as_limbs()[0]);
        code.words = match layout.form() {
            Form::Residues => None,
            Form::Word => Some(Words::One(U256::from(layout.modulus_value()))),
            Form::TwoWords => {
                let words = TwoWords::new(&mut code, layout.modulus_value());
                Some(Words::Two(words))
            }
        };
        code
    }

    /// One operation.
    ///
    /// # Panics
    ///
    /// Under an interface whose operands are not in memory ([`Interface::ON_MEMORY`]), and with two-byte offsets beyond 64 KiB.
    pub fn operation(&mut self, operation: Operation, offsets: Offsets) {
        match self.words {
            Some(Words::One(modulus)) => return on_one_word(self, operation, offsets, modulus),
            Some(Words::Two(words)) => return words.call(self, operation, offsets),
            None => {}
        }
        match self.interface {
            Interface::V7 => {
                // With `out` below 64 KiB fourteen bytes are enough.
                self.push_bytes(&offsets.to_word().to_be_bytes());
                self.bytes.push(operation.opcode());
            }
            Interface::Immediate => {
                self.bytes.push(operation.opcode());
                self.bytes.extend_from_slice(&operand_bytes(offsets));
            }
            Interface::SetMod => {
                self.bytes.push(operation.opcode());
                for offset in [offsets.out, offsets.x, offsets.y] {
                    let offset = u16::try_from(offset).expect("slots lie below 64 KiB");
                    self.bytes.extend_from_slice(&offset.to_le_bytes());
                }
            }
            Interface::Stack => {
                if operation == Operation::Mul {
                    self.push(self.inverse);
                }
                let Offsets { out, x, y, modulus } = offsets;
                for offset in [modulus, y, x, out] {
                    self.push(u64::from(offset));
                }
                self.bytes.push(operation.opcode());
            }
            Interface::Registers => panic!("programs have their operands in memory"),
        }
    }

    /// The subroutines that stand for operations, if there are any.
    pub(super) fn arithmetic(&mut self) {
        if let Some(Words::Two(words)) = self.words {
            words.place(self);
        }
    }
}
