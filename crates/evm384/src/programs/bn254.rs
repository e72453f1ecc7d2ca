//! Multiplication of a point of BN254 by a scalar, with EIP-196's calldata and result.

use alloy_primitives::U256;

use super::fields::PrimeField;
use crate::Interface;
use crate::bls12_381::{Goal, Program};
use crate::build::points::{Coordinate, Numbers, Point};
use crate::build::tower::Fp;
use crate::build::{Body, Contract, Layout, ODD_POWERS, Routine, Slots, Weights, Word, any_bit};
use crate::reference::U384;

/// Bits of a window of the scalar.
const WINDOW: usize = 4;
const POINT: u32 = Slots::<3>::BYTES;

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

fn written(mut layout: Layout, interface: Interface, often: Weights) -> Program {
    let modulus = PrimeField::Bn254.modulus();
    let numbers = Numbers::new(&mut layout, 3);
    let raw = layout.variable::<2>("raw");
    let difference = layout.variable::<1>("difference");
    let [point, addend] = ["point", "addend"].map(|name| layout.variable::<3>(name));
    let table = layout.bytes("multiples", POINT << WINDOW);
    let at = layout.word("multiple");
    let left = layout.word("windows that are left");
    let powers = layout.variable::<ODD_POWERS>("powers");
    let inverse = layout.variable::<1>("inverse");
    let zero = layout.zero();
    let coordinates = |slots: Slots<3>| slots.each().map(|slot| slot.0);
    let routine = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, Weights::SIZE, write);
    let hot = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, often, write);
    let routines = vec![
        // Zero is (0, 1, 0).
        routine("zero", &|b| b.store(point.part(1), b.input(numbers.one))),
        routine("read", &|b| {
            let [x, y] = raw
                .each()
                .map(|slot| b.input(slot) * b.input(numbers.radix_squared));
            let curve = x.square() * x + <Fp<'_> as Coordinate<'_>>::b(b, &numbers);
            b.store(difference, y.square() - curve);
            let z = b.input(numbers.one);
            Point { x, y, z }.store(b, coordinates(addend));
        }),
        hot("double", &|b| {
            let doubled = Point::<Fp<'_>>::load(b, coordinates(point)).double(b, &numbers);
            doubled.store(b, coordinates(point));
        }),
        hot("add", &|b| {
            let [p, q] = [point, addend].map(|at| Point::<Fp<'_>>::load(b, coordinates(at)));
            p.add(q, b, &numbers).store(b, coordinates(point));
        }),
        routine("norm", &|b| {
            b.store(powers.part(0), b.load::<Fp<'_>, 1>(point.part(2)));
        }),
        routine("plain coordinates", &|b| {
            let factor = b.load::<Fp<'_>, 1>(inverse) * b.input(numbers.plain_one);
            for index in 0..2 {
                b.store(
                    raw.part(index),
                    b.load::<Fp<'_>, 1>(point.part(index)) * factor,
                );
            }
        }),
    ];
    let mut c = Contract::new(interface, layout, routines);
    let add = c.code.label();
    c.load_constants();
    c.decode_word(raw.each()[0], Word::calldata(0));
    c.decode_word(raw.each()[1], Word::calldata(32));
    c.inline("zero");
    c.when(any_bit(raw.offset(), Slots::<2>::BYTES), |c| {
        c.inline("read");
        c.refuse(any_bit(difference.offset(), Slots::<1>::BYTES));
        c.set(at, table);
        c.loop_while(at.get().below(table + (POINT << WINDOW)), |c| {
            c.copy(at, point.offset(), POINT);
            c.code.call(add);
            c.set(at, at.get() + POINT);
        });
        c.copy(point.offset(), table, POINT);
        c.set(left, 256);
        c.loop_while(left.get(), |c| {
            c.set(left, left.get() - WINDOW);
            for _ in 0..WINDOW {
                c.inline("double");
            }
            let window = (Word::calldata(64) >> left.get()) & ((1u32 << WINDOW) - 1);
            c.copy(addend.offset(), window * POINT + table, POINT);
            c.code.call(add);
        });
    });
    c.when(
        any_bit(point.part::<1>(2).offset(), Slots::<1>::BYTES),
        |c| {
            c.inline("norm");
            c.power(inverse, powers, modulus - U384::from(2));
            c.inline("plain coordinates");
            for index in 0..2 {
                c.push(Word::memory(raw.part::<1>(index).offset()));
                c.reverse_bytes();
                c.push(table + 32 * index as u32);
                c.code.ops(&[revm::bytecode::opcode::MSTORE]);
            }
            c.return_bytes(table, 64);
        },
    );
    c.return_bytes(c.heap(), 64);
    c.subroutine(add, "add");
    c.finish()
}
