//! Where things lie in memory.

use std::fmt;

use alloy_primitives::{U256, Uint};

use crate::OPERAND_BYTES;
use crate::arithmetic::negated_inverse;
use crate::reference::U384;

/// A word of memory with a fixed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable(pub u32);

/// Byte offset in memory of one field element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(pub u32);

/// `N` consecutive slots: the coordinates of an element of an extension, or of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slots<const N: usize>(Slot);

impl<const N: usize> Slots<N> {
    /// Bytes of all slots.
    pub const BYTES: u32 = N as u32 * OPERAND_BYTES as u32;

    /// The slots that begin at an offset.
    #[must_use]
    pub const fn at(offset: u32) -> Self {
        Self(Slot(offset))
    }

    /// Byte offset of the first.
    #[must_use]
    pub const fn offset(self) -> u32 {
        self.0.0
    }

    /// The slots, in order.
    #[must_use]
    pub fn each(self) -> [Slot; N] {
        std::array::from_fn(|index| Slot(self.offset() + (index * OPERAND_BYTES) as u32))
    }

    /// `M` of the slots, from the one at `index`.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    #[must_use]
    pub fn part<const M: usize>(self, index: usize) -> Slots<M> {
        assert!(index + M <= N, "slots beyond the variable");
        Slots(Slot(self.offset() + (index * OPERAND_BYTES) as u32))
    }
}

/// A range of memory with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// What it holds.
    pub name: String,
    /// Byte offset.
    pub offset: u32,
    /// Length in bytes.
    pub bytes: u32,
}

/// The memory of a program: the modulus, constants, then variables; temporaries lie behind all of them.
#[derive(Debug)]
pub struct Layout {
    constants: Vec<u8>,
    known: Vec<(U384, Slot)>,
    regions: Vec<Region>,
    first_variable: u32,
    variables: u32,
    form: Form,
}

/// What slots hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// EVM384's residues, in Montgomery form, least significant byte first.
    Residues,
    /// Plain residues of up to 256 bits, most significant byte first, for the EVM's own arithmetic.
    Word,
    /// Residues in Montgomery form, 48 bytes, most significant first, for arithmetic on two words.
    TwoWords,
}

/// Bytes kept for the modulus, its inverse, and constants, unless said otherwise: variables begin behind them.
const CONSTANT_BYTES: u32 = 2048;

impl Layout {
    /// Memory for arithmetic modulo `modulus`, odd; the modulus and -1/modulus modulo 2^64 lie at offset 0, and 0 behind them.
    #[must_use]
    pub fn new(modulus: U384) -> Self {
        Self::with_room(modulus, CONSTANT_BYTES)
    }

    /// The same with so many bytes for the modulus and constants.
    #[must_use]
    pub fn with_room(modulus: U384, room: u32) -> Self {
        let mut constants = modulus.to_le_bytes::<OPERAND_BYTES>().to_vec();
        constants.extend_from_slice(&negated_inverse(modulus.as_limbs()[0]).to_le_bytes());
        let mut layout = Self {
            constants,
            known: Vec::new(),
            regions: Vec::new(),
            first_variable: room,
            variables: room,
            form: Form::Residues,
        };
        layout.constant(U384::ZERO);
        layout
    }

    /// Memory for the EVM's own arithmetic modulo a number below 2^256: each slot begins with a word.
    #[must_use]
    pub fn of_words(modulus: U256) -> Self {
        let mut layout = Self::new(U384::from(modulus));
        layout.form = Form::Word;
        layout
    }

    /// Memory for arithmetic on two words modulo an odd number between 2^256 and 2^383.
    ///
    /// # Panics
    ///
    /// If the modulus is not between these.
    #[must_use]
    pub fn of_two_words(modulus: U384) -> Self {
        assert!((257..384).contains(&modulus.bit_len()), "two words");
        let mut layout = Self::new(modulus);
        layout.form = Form::TwoWords;
        layout
    }

    /// What slots hold.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The modulus.
    #[must_use]
    pub fn modulus_value(&self) -> U384 {
        U384::from_le_slice(&self.constants[..OPERAND_BYTES])
    }

    /// Offset of the modulus.
    #[must_use]
    pub const fn modulus(&self) -> u32 {
        0
    }

    /// The slot that holds 0.
    #[must_use]
    pub const fn zero(&self) -> Slot {
        Slot(56)
    }

    /// A slot with this value, as it is (not brought into Montgomery form); the same slot for the same value.
    ///
    /// # Panics
    ///
    /// If there are more than there is room for: some forty in a layout from [`Self::new`].
    pub fn constant(&mut self, value: U384) -> Slot {
        if let Some(&(_, slot)) = self.known.iter().find(|(known, _)| *known == value) {
            return slot;
        }
        let slot = Slot(self.constants.len() as u32);
        let mut bytes = value.to_le_bytes::<OPERAND_BYTES>();
        match self.form {
            Form::Residues => {}
            Form::Word => bytes[..32].reverse(),
            Form::TwoWords => bytes.reverse(),
        }
        self.constants.extend_from_slice(&bytes);
        let room = self.first_variable;
        assert!(self.constants.len() as u32 <= room, "too many constants");
        self.known.push((value, slot));
        slot
    }

    /// A slot with a number in Montgomery form.
    ///
    /// # Panics
    ///
    /// As [`Self::constant`].
    pub fn number(&mut self, value: U384) -> Slot {
        self.constant(self.montgomery(value))
    }

    /// x 2^384 modulo the modulus; x itself where slots hold plain words.
    #[must_use]
    pub fn montgomery(&self, x: U384) -> U384 {
        if self.form == Form::Word {
            return x;
        }
        let modulus = self.modulus_value();
        let wide = |x: U384| Uint::<768, 12>::from(x);
        U384::from((wide(x) << 384) % wide(modulus))
    }

    /// New slots for a variable.
    pub fn variable<const N: usize>(&mut self, name: impl fmt::Display) -> Slots<N> {
        Slots(Slot(self.bytes(name, Slots::<N>::BYTES)))
    }

    /// New bytes, aligned to slots; returns their offset.
    pub fn bytes(&mut self, name: impl fmt::Display, bytes: u32) -> u32 {
        let offset = self.variables;
        self.regions.push(Region {
            name: name.to_string(),
            offset,
            bytes,
        });
        self.variables += bytes.next_multiple_of(OPERAND_BYTES as u32);
        offset
    }

    /// A new word.
    pub fn word(&mut self, name: impl fmt::Display) -> Variable {
        Variable(self.bytes(name, 32))
    }

    /// Variables in the order of their offsets.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// What memory must hold from offset 0 on before routines run.
    #[must_use]
    pub fn initial_memory(&self) -> &[u8] {
        &self.constants
    }

    /// Where temporaries begin.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.variables
    }
}
