//! Poseidon over the scalar field of BN254: two words to one, with the parameters that circom's circuits use (width 3, 8 full and 57 partial rounds, S-box x^5).
//!
//! Constants follow from those numbers, as the paper has it (Grassi and others, "Poseidon: A new hash function for zero-knowledge proof systems", 2021, appendix F): a shift register of
//! 80 bits gives the rounds' constants, and what the matrix is made of.

use crate::bls12_381::{Goal, Program};
use arbor_evm384::Interface;
use arbor_evm384::build::tower::Fp;
use arbor_evm384::build::{Body, Contract, Layout, Routine, Slots, Variable, Word};
use arbor_evm384::reference::U384;

use super::fields::PrimeField;

const WIDTH: usize = 3;
const FULL_ROUNDS: usize = 8;
const PARTIAL_ROUNDS: usize = 57;
const FIELD_BITS: usize = 254;
const FIELD: PrimeField = PrimeField::Bn254Scalars;

/// The hash: calldata is two words below the modulus, and the result is one.
#[must_use]
pub(super) fn poseidon(interface: Interface, goal: Goal) -> Program {
    let (constants, matrix) = parameters();
    let mut layout = Layout::new(FIELD.modulus());
    let radix_squared = layout.constant(layout.montgomery(layout.montgomery(U384::ONE)));
    let plain_one = layout.constant(U384::ONE);
    let matrix = matrix.map(|row| row.map(|number| layout.number(number)));
    let state = layout.variable::<WIDTH>("state");
    let added = layout.variable::<WIDTH>("constants of the round");
    let round = layout.word("round");
    let numbers = constants.iter().map(|&number| layout.montgomery(number));
    let table: Vec<u8> = numbers
        .flat_map(|number| number.to_le_bytes::<48>())
        .collect();
    let zero = layout.zero();
    let routine =
        |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, goal.weights(interface), write);
    let rounds = |b: &Body, full: bool| {
        let slots = state.each().into_iter().zip(added.each());
        let sums = slots.map(|(value, constant)| b.input(value) + b.input(constant));
        let raised: Vec<Fp<'_>> = sums
            .enumerate()
            .map(|(index, x)| {
                if full || index == 0 {
                    x.square().square() * x
                } else {
                    x
                }
            })
            .collect();
        for (index, row) in matrix.iter().enumerate() {
            let products = row
                .iter()
                .zip(&raised)
                .map(|(&factor, &x)| b.input(factor) * x);
            let sum = products.reduce(|sum, product| sum + product);
            b.store(state.part::<1>(index), sum.unwrap_or(b.zero()));
        }
    };
    let routines = vec![
        routine("begin", &|b| {
            for index in 1..WIDTH {
                let slot: Slots<1> = state.part(index);
                b.store(slot, b.load::<Fp<'_>, 1>(slot) * b.input(radix_squared));
            }
        }),
        routine("full round", &|b| rounds(b, true)),
        routine("partial round", &|b| rounds(b, false)),
        routine("end", &|b| {
            let slot: Slots<1> = state.part(0);
            b.store(slot, b.load::<Fp<'_>, 1>(slot) * b.input(plain_one));
        }),
    ];
    let mut c = Contract::new(interface, layout, routines);
    let table = c.table(table);
    c.load_constants();
    c.require(Word::calldata_size().is(64));
    for index in 1..WIDTH {
        c.decode_word(state.each()[index], Word::calldata(32 * (index - 1)));
    }
    c.inline("begin");
    c.set(round, 0);
    let halves = FULL_ROUNDS / 2;
    let until = |c: &mut Contract, last: usize, name| {
        c.loop_while(round.get().below(last), |c| {
            load_constants_of(c, table, added, round);
            c.inline(name);
        });
    };
    until(&mut c, halves, "full round");
    until(&mut c, halves + PARTIAL_ROUNDS, "partial round");
    until(&mut c, FULL_ROUNDS + PARTIAL_ROUNDS, "full round");
    c.inline("end");
    c.push(Word::memory(state.offset()));
    c.reverse_bytes();
    c.push(0);
    c.code.ops(&[revm::bytecode::opcode::MSTORE]);
    c.return_bytes(0, 32);
    c.finish()
}

fn load_constants_of(
    c: &mut Contract,
    table: arbor_evm384::build::Label,
    to: Slots<WIDTH>,
    round: Variable,
) {
    let bytes = Slots::<WIDTH>::BYTES;
    c.copy_code(to.offset(), round.get() * bytes + Word::from(table), bytes);
    c.set(round, round.get() + 1);
}

/// The constants of all rounds, and the matrix.
fn parameters() -> (Vec<U384>, [[U384; WIDTH]; WIDTH]) {
    let modulus = FIELD.modulus();
    let mut register = Register::new();
    let count = (FULL_ROUNDS + PARTIAL_ROUNDS) * WIDTH;
    let below = std::iter::repeat_with(|| register.number()).filter(|&number| number < modulus);
    let constants = below.take(count).collect();
    let points: Vec<U384> = (0..2 * WIDTH)
        .map(|_| register.number() % modulus)
        .collect();
    // Cauchy's matrix: 1 / (x + y).
    let (xs, ys) = points.split_at(WIDTH);
    let entry = |i: usize, j: usize| {
        let sum = xs[i].add_mod(ys[j], modulus);
        sum.pow_mod(modulus - U384::from(2), modulus)
    };
    let matrix = std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)));
    (constants, matrix)
}

/// Grain's register in the paper's form: of every two bits, the second counts if the first is one.
struct Register([bool; 80]);

impl Register {
    fn new() -> Self {
        let mut bits = Vec::new();
        let mut append = |number: usize, length: usize| {
            bits.extend((0..length).rev().map(|bit| number >> bit & 1 == 1));
        };
        // A prime field, a power for the S-box; the sizes; ones.
        append(1, 2);
        append(0, 4);
        append(FIELD_BITS, 12);
        append(WIDTH, 12);
        append(FULL_ROUNDS, 10);
        append(PARTIAL_ROUNDS, 10);
        append((1 << 30) - 1, 30);
        let mut register = Self(std::array::from_fn(|index| bits[index]));
        for _ in 0..160 {
            register.step();
        }
        register
    }

    fn step(&mut self) -> bool {
        let taps = [62, 51, 38, 23, 13, 0];
        let bit = taps.iter().fold(false, |sum, &tap| sum ^ self.0[tap]);
        self.0.rotate_left(1);
        self.0[79] = bit;
        bit
    }

    fn bit(&mut self) -> bool {
        loop {
            let (counts, bit) = (self.step(), self.step());
            if counts {
                return bit;
            }
        }
    }

    fn number(&mut self) -> U384 {
        (0..FIELD_BITS).fold(U384::ZERO, |number, _| {
            (number << 1) + U384::from(u64::from(self.bit()))
        })
    }
}
