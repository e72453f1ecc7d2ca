//! EVM384: addition, subtraction and Montgomery multiplication of residues of up to 384 bits as EVM opcodes.
//!
//! | opcode | operation | effect |
//! |---|---|---|
//! | `0xc0` | ADDMOD384 | out = x + y mod m |
//! | `0xc1` | SUBMOD384 | out = x - y mod m |
//! | `0xc2` | MULMODMONT384 | out = x y / 2^384 mod m |
//!
//! Operands are 48 bytes of EVM memory, little-endian, at any offset; the 8 bytes behind the modulus of a multiplication are
//! -1/m modulo 2^64. Nothing is checked: operands need not be reduced, m need not be odd. The result is then still
//! defined, as what the steps in [`mod@reference`] give. All operands are read before the result is written.
//!
//! An [`Interface`] says where the offsets come from, a [`GasSchedule`] what an operation costs. One of the interfaces is that of EIP-6690, whose
//! operands are registers of up to 768 bits.
//!
//! ```
//! use arbor_evm384::{Backend, GasSchedule, Interface};
//! use revm::handler::instructions::EthInstructions;
//! use revm::interpreter::{host::DummyHost, interpreter::EthInterpreter};
//! use revm::primitives::hardfork::SpecId;
//!
//! let mut table = EthInstructions::<EthInterpreter, DummyHost>::new_mainnet_with_spec(SpecId::OSAKA);
//! Interface::V7.install(&mut table, GasSchedule::MODEL_A, Backend::detect());
//! assert_eq!(table.gas_table()[0xc2], 6);
//! ```

mod arithmetic;
pub mod asm;
pub mod build;
pub mod debug;
pub mod engine;
mod frames;
mod gas;
mod interface;
mod machine;
pub mod reference;
pub mod vectors;

pub use arithmetic::{
    Backend, MULTIPLICATION_MODULUS_BYTES, OPERAND_BYTES, Offsets, Operation, apply,
};
pub use frames::{FrameView, Frames, HasFrames};
pub use gas::{GasSchedule, RegisterGas};
pub use interface::{
    ADDMOD384, Immediate, Interface, MULMODMONT384, Opcode, SUBMOD384, UnknownInterface,
};
pub use machine::{End, Machine, Outcome, Refused, SPEC, Setup};
