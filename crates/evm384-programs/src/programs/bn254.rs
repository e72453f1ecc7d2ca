//! Multiplication of a point of BN254 by a scalar, with EIP-196's calldata and result.

use alloy_primitives::U256;

use super::fields::PrimeField;
use super::multiples::Multiples;
use crate::bls12_381::{Goal, Program};
use arbor_evm384::Interface;
use arbor_evm384::build::{Layout, Weights, Word};

/// The contract: as the precompile of EIP-196 does, it takes what is missing of calldata for zero and ignores what is too much; it reverts where that fails.
#[must_use]
pub(super) fn multiplication(interface: Interface, goal: Goal) -> Program {
    written(
        Layout::new(PrimeField::Bn254.modulus()),
        interface,
        goal.weights(interface),
    )
}

/// The same with MULMOD and ADDMOD instead of EVM384. A multiplication takes 29 gas, an addition as much.
pub(super) fn multiplication_of_words() -> Program {
    let layout = Layout::of_words(U256::from(PrimeField::Bn254.modulus()));
    written(layout, Interface::V7, Weights { mul: 29, add: 32 })
}

fn written(layout: Layout, interface: Interface, often: Weights) -> Program {
    let (mut c, multiples) = Multiples::begin(interface, layout, 3, often);
    let [x, y] = multiples.raw.each();
    c.decode_word(x, Word::calldata(0));
    c.decode_word(y, Word::calldata(32));
    multiples.clear(&mut c);
    c.when(multiples.is_some(), |c| {
        multiples.read(c);
        multiples.multiply(c, &Word::calldata(64));
    });
    c.when(multiples.has(2), |c| {
        multiples.bring_out(c);
        for (index, slot) in multiples.raw.each().into_iter().enumerate() {
            c.push(Word::memory(slot.0));
            c.reverse_bytes();
            c.push(multiples.table + 32 * index as u32);
            c.code.ops(&[revm::bytecode::opcode::MSTORE]);
        }
        c.return_bytes(multiples.table, 64);
    });
    c.return_bytes(c.heap(), 64);
    multiples.end(&mut c);
    c.finish()
}
