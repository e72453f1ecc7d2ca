//! Routines against a direct evaluation of what was written: whatever the order of loads and stores, nothing is clobbered.

use std::collections::HashMap;

use arbor_evm384::build::tower::Fp;
use arbor_evm384::build::{Body, Code, Contract, Layout, Routine, Slot, Slots};
use arbor_evm384::reference::{self, U384};
use arbor_evm384::{
    Backend, GasSchedule, Interface, Machine, OPERAND_BYTES, Operation, Setup, apply,
};
use arbor_evm384_programs::PrimeField;
use proptest::prelude::*;

const VARIABLES: usize = 6;

/// An operation on two earlier values, by their indices modulo how many there are.
type Line = (Operation, usize, usize);

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let operation = prop::sample::select(Operation::ALL.to_vec());
    prop::collection::vec((operation, any::<usize>(), any::<usize>()), 1..60)
}

/// Which value goes to which variable.
fn stores() -> impl Strategy<Value = HashMap<usize, usize>> {
    prop::collection::hash_map(0..VARIABLES, any::<usize>(), 1..=VARIABLES)
}

fn modulus() -> U384 {
    U384::from(0xffff_ffff_ffff_ffc5u64)
}

/// The values themselves, computed one by one.
fn evaluated(inputs: &[U384], lines: &[Line], stores: &HashMap<usize, usize>) -> Vec<U384> {
    let inverse = {
        let m = modulus().as_limbs()[0];
        (0..6)
            .fold(1u64, |i, _| {
                i.wrapping_mul(2u64.wrapping_sub(m.wrapping_mul(i)))
            })
            .wrapping_neg()
    };
    let mut values = inputs.to_vec();
    values.push(U384::ZERO);
    for &(operation, x, y) in lines {
        let (x, y) = (values[x % values.len()], values[y % values.len()]);
        values.push(match operation {
            Operation::Add => reference::add(x, y, modulus()),
            Operation::Sub => reference::sub(x, y, modulus()),
            Operation::Mul => reference::mul(x, y, modulus(), inverse),
        });
    }
    (0..VARIABLES)
        .map(|variable| match stores.get(&variable) {
            Some(index) => values[index % values.len()],
            None => inputs[variable],
        })
        .collect()
}

fn written(
    layout: &Layout,
    variables: Slots<VARIABLES>,
    lines: &[Line],
    stores: &HashMap<usize, usize>,
) -> Routine {
    let body = Body::new(layout.zero());
    let mut values: Vec<Fp<'_>> = variables
        .each()
        .iter()
        .map(|&slot| body.input(slot))
        .collect();
    values.push(body.zero());
    for &(operation, x, y) in lines {
        let (x, y) = (values[x % values.len()], values[y % values.len()]);
        values.push(match operation {
            Operation::Add => x + y,
            Operation::Sub => x - y,
            Operation::Mul => x * y,
        });
    }
    for (&variable, &index) in stores {
        body.store(variables.part::<1>(variable), values[index % values.len()]);
    }
    Routine::new("test", body)
}

fn memory_with(
    layout: &Layout,
    routine: &Routine,
    variables: Slots<VARIABLES>,
    inputs: &[U384],
) -> Vec<u8> {
    let end = layout.end() + routine.temporaries() * OPERAND_BYTES as u32;
    let mut memory = vec![0; end as usize];
    memory[..layout.initial_memory().len()].copy_from_slice(layout.initial_memory());
    for (Slot(at), input) in variables.each().into_iter().zip(inputs) {
        memory[at as usize..][..OPERAND_BYTES].copy_from_slice(&input.to_le_bytes::<48>());
    }
    memory
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn routines_compute_what_was_written(
        inputs in prop::collection::vec(any::<u64>(), VARIABLES),
        lines in lines(),
        stores in stores(),
    ) {
        let inputs: Vec<U384> = inputs.into_iter().map(|x| U384::from(x) % modulus()).collect();
        let mut layout = Layout::new(modulus());
        let variables = layout.variable("variables");
        let routine = written(&layout, variables, &lines, &stores);
        let mut memory = memory_with(&layout, &routine, variables, &inputs);
        for (operation, offsets) in routine.operations(&layout) {
            apply(Backend::detect(), operation, &mut memory, offsets);
        }
        let held = variables.each().map(|Slot(at)| U384::from_le_slice(&memory[at as usize..][..OPERAND_BYTES]));
        prop_assert_eq!(held.to_vec(), evaluated(&inputs, &lines, &stores));
    }
}

#[test]
fn values_that_are_not_needed_or_written_twice_cost_nothing() {
    let mut layout = Layout::new(modulus());
    let x = layout.variable::<1>("x");
    let body = Body::new(layout.zero());
    let value: Fp<'_> = body.load(x);
    let _unused = value * value;
    body.store(x, (value + value) - (value + value) * -value);
    let counts = Routine::new("test", body).counts();
    assert_eq!(
        (counts.add, counts.sub, counts.mul, counts.copies),
        (1, 2, 1, 0)
    );
}

#[test]
fn exchanging_two_variables_takes_copies() {
    let mut layout = Layout::new(modulus());
    let [x, y] = [layout.variable::<1>("x"), layout.variable::<1>("y")];
    let body = Body::new(layout.zero());
    let (a, b): (Fp<'_>, Fp<'_>) = (body.load(x), body.load(y));
    body.store(x, b);
    body.store(y, a);
    let routine = Routine::new("exchange", body);
    assert_eq!(
        (
            routine.counts().total(),
            routine.counts().copies,
            routine.temporaries()
        ),
        (3, 1, 1)
    );
}

#[test]
fn the_better_of_two_ways_is_taken() {
    let mut layout = Layout::new(modulus());
    let x = layout.variable::<1>("x");
    let write = |body: &Body| {
        let value: Fp<'_> = body.load(x);
        let fourfold = if body.choose() {
            value * value
        } else {
            value.double().double()
        };
        body.store(x, fourfold);
    };
    let muls = |mul, add| {
        let weights = arbor_evm384::build::Weights { mul, add };
        Routine::cheapest("test", layout.zero(), weights, write)
            .counts()
            .mul
    };
    assert_eq!((muls(9, 5), muls(9, 4)), (1, 0));
}

#[test]
fn labels_point_where_they_were_placed() {
    let mut code = Code::new(Interface::V7);
    let (subroutine, after) = (code.label(), code.label());
    code.push(7);
    code.call(subroutine);
    code.jump(after);
    code.place(subroutine);
    // Above the way back, 7 becomes 14.
    code.ops(&[0x90, 0x80, 0x01, 0x90]);
    code.ret();
    code.place(after);
    code.ops(&[0x5f, 0x52]);
    code.push(32);
    code.ops(&[0x5f, 0xf3]);
    let setup = Setup::new(Interface::V7, GasSchedule::DRAFT);
    let mut machine = Machine::new(setup, code.finish());
    let outcome = machine
        .call(Vec::new().into(), 1000)
        .expect("an ordinary call");
    assert_eq!(outcome.output().and_then(|output| output.last()), Some(&14));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Two words of plain EVM code stand for the three operations: residues, results and forms are the same, edges included.
    #[test]
    fn operations_on_two_words_are_evm384s(
        modulus in prop::sample::select(vec![
            PrimeField::Bls12381.modulus(),
            PrimeField::Bls12377.modulus(),
            (U384::ONE << 383) - U384::ONE,
            (U384::ONE << 382) + U384::ONE,
            (U384::ONE << 256) + U384::ONE,
            (U384::ONE << 257) - U384::ONE,
        ]),
        limbs in any::<[[u64; 6]; 2]>(),
        edges in any::<[u8; 2]>(),
    ) {
        let one = U384::ONE;
        let word: U384 = U384::ONE << 256;
        let operands = [0, 1].map(|index| match edges[index] % 16 {
            0 => U384::ZERO,
            1 => one,
            2 => modulus - one,
            3 => word % modulus,
            4 => (word - one) % modulus,
            5 => modulus >> 1,
            _ => U384::from_limbs(limbs[index]) % modulus,
        });
        let mut layout = Layout::of_two_words(modulus);
        let at = layout.variable::<2>("operands");
        let results = layout.variable::<4>("results");
        let body = Body::new(layout.zero());
        let [x, y] = at.each().map(|slot| body.input(slot));
        for (slot, value) in [x + y, x - y, x * y, -x].into_iter().enumerate() {
            body.store(results.part::<1>(slot), value);
        }
        let mut c = Contract::new(Interface::V7, layout, vec![Routine::new("all", body)]);
        c.load_constants();
        c.residues_from_calldata(at, 0);
        c.inline("all");
        c.return_residues(results);
        let calldata: Vec<u8> = operands.iter().flat_map(|x| x.to_le_bytes::<48>()).collect();
        let setup = Setup::new(Interface::V7, GasSchedule::MODEL_A);
        let outcome = Machine::new(setup, c.finish().code).call(calldata.into(), 1_000_000);
        let outcome = outcome.expect("an ordinary call");
        let [x, y] = operands;
        let m = modulus;
        let negated = |x: U384| if x == U384::ZERO { m } else { m - x };
        let radix: U384 = U384::ONE << 383;
        let radix = radix % m;
        let by_radix = |x: U384| x.mul_mod(radix.add_mod(radix, m).inv_mod(m).expect("odd"), m);
        let expected = [
            x.add_mod(y, m),
            x.add_mod(negated(y) % m, m),
            by_radix(x.mul_mod(y, m)),
            negated(x) % m,
        ];
        let expected: Vec<u8> = expected.iter().flat_map(|x| x.to_le_bytes::<48>()).collect();
        prop_assert_eq!(outcome.output().map(|output| output.to_vec()), Some(expected));
    }
}
