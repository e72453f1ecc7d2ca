//! Portable code, assembly and the reference on whole integers agree on every operand.

use arbor_evm384::reference::{self, U384};
use arbor_evm384::{Backend, OPERAND_BYTES, Offsets, Operation, apply};
use proptest::prelude::*;

/// Values at which carries begin and end: of the limbs, of the whole, and of the field of BLS12-381.
fn operand() -> impl Strategy<Value = U384> {
    let p = modulus_of_bls12_381();
    let edge = U384::from(1) << 383;
    let edges = vec![
        U384::ZERO,
        U384::from(1),
        U384::from(u64::MAX),
        U384::from(1) << 64,
        p - U384::from(1),
        p,
        p + U384::from(1),
        p << 1,
        edge - U384::from(1),
        edge,
        edge + U384::from(1),
        U384::MAX - U384::from(1),
        U384::MAX,
    ];
    prop_oneof![
        prop::sample::select(edges),
        any::<[u64; 6]>().prop_map(U384::from_limbs),
        any::<[bool; 6]>().prop_map(|bits| U384::from_limbs(bits.map(|b| if b {
            u64::MAX
        } else {
            0
        }))),
        any::<[u64; 6]>().prop_map(move |limbs| U384::from_limbs(limbs) % p),
    ]
}

fn modulus_of_bls12_381() -> U384 {
    "0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab"
        .parse()
        .expect("hexadecimal")
}

/// What the opcodes do to memory, from the specification's words and the reference.
fn model(operation: Operation, memory: &mut [u8], at: Offsets) {
    let read = |offset: u32| U384::from_le_slice(&memory[offset as usize..][..OPERAND_BYTES]);
    let (x, y, m) = (read(at.x), read(at.y), read(at.modulus));
    let result = match operation {
        Operation::Add => reference::add(x, y, m),
        Operation::Sub => reference::sub(x, y, m),
        Operation::Mul => {
            let inverse = &memory[at.modulus as usize + OPERAND_BYTES..][..8];
            reference::mul(
                x,
                y,
                m,
                u64::from_le_bytes(inverse.try_into().expect("eight bytes")),
            )
        }
    };
    memory[at.out as usize..][..OPERAND_BYTES].copy_from_slice(&result.to_le_bytes::<48>());
}

fn operation() -> impl Strategy<Value = Operation> {
    prop::sample::select(Operation::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_backend_does_what_the_reference_does(
        operation in operation(),
        operands in [operand(), operand(), operand()],
        inverse in prop_oneof![any::<u64>(), Just(0x89f3_fffc_fffc_fffd), Just(0), Just(u64::MAX)],
    ) {
        let mut memory = Vec::new();
        for operand in operands {
            memory.extend_from_slice(&operand.to_le_bytes::<48>());
        }
        memory.extend_from_slice(&inverse.to_le_bytes());
        memory.extend_from_slice(&[0; 48]);
        let offsets = Offsets { out: 152, x: 0, y: 48, modulus: 96 };
        let mut expected = memory.clone();
        model(operation, &mut expected, offsets);
        for backend in Backend::available() {
            let mut actual = memory.clone();
            apply(backend, operation, &mut actual, offsets);
            prop_assert_eq!(&actual, &expected, "{}", backend.name());
        }
    }

    /// Where the highest limb of a sum is that of the modulus, the limbs below decide whether it is reduced.
    #[test]
    fn sums_beside_the_modulus_are_reduced_as_by_the_reference(
        m in operand(),
        shorter in 0usize..6,
        x in operand(),
        distance in prop_oneof![Just(0), Just(1), any::<u64>()],
        limb in 0usize..6,
        above in any::<bool>(),
    ) {
        let m = m >> (64 * shorter);
        let x = x.checked_rem(m).unwrap_or(x);
        let distance = U384::from(distance) << (64 * limb);
        let y = m.wrapping_sub(x);
        let y = if above { y.wrapping_add(distance) } else { y.wrapping_sub(distance) };
        let mut memory: Vec<u8> = [x, y, m].iter().flat_map(|number| number.to_le_bytes::<48>()).collect();
        memory.extend_from_slice(&[0; 48]);
        let offsets = Offsets { out: 144, x: 0, y: 48, modulus: 96 };
        let mut expected = memory.clone();
        model(Operation::Add, &mut expected, offsets);
        for backend in Backend::available() {
            let mut actual = memory.clone();
            apply(backend, Operation::Add, &mut actual, offsets);
            prop_assert_eq!(&actual, &expected, "{}", backend.name());
        }
    }

    #[test]
    fn operands_may_overlap_the_result_and_each_other(
        operation in operation(),
        memory in prop::collection::vec(any::<u8>(), 160),
        [out, x, y, modulus] in [0u32..=104, 0u32..=104, 0u32..=104, 0u32..=104],
    ) {
        let offsets = Offsets { out, x, y, modulus };
        let mut expected = memory.clone();
        model(operation, &mut expected, offsets);
        for backend in Backend::available() {
            let mut actual = memory.clone();
            apply(backend, operation, &mut actual, offsets);
            prop_assert_eq!(&actual, &expected, "{}", backend.name());
        }
    }
}

#[test]
fn montgomery_multiplication_is_multiplication() {
    let p = modulus_of_bls12_381();
    let r: U384 = U384::from(1) << 383;
    let r: U384 = (r % p).add_mod(r % p, p);
    let (x, y) = (U384::from(0x1234_5678u64), U384::MAX >> 5);
    let form = |value: U384| value.mul_mod(r, p);
    let product = reference::mul(form(x), form(y), p, 0x89f3_fffc_fffc_fffd);
    assert_eq!(product, form(x.mul_mod(y, p)));
}

#[test]
fn negation_of_zero_by_subtracting_from_the_modulus_gives_the_modulus() {
    let p = modulus_of_bls12_381();
    assert_eq!(reference::sub(p, U384::ZERO, p), p);
    assert_eq!(reference::add(p, U384::ZERO, p), U384::ZERO);
}

#[test]
fn offsets_lie_in_a_word_most_significant_first() {
    let offsets = Offsets::from_word(0x00000001_00000002_00000003_fffffffc);
    assert_eq!(
        (offsets.out, offsets.x, offsets.y, offsets.modulus),
        (1, 2, 3, 0xffff_fffc)
    );
    assert_eq!(offsets.to_word(), 0x00000001_00000002_00000003_fffffffc);
    assert_eq!(offsets.memory_end(Operation::Add), 0xffff_fffc + 48);
    assert_eq!(offsets.memory_end(Operation::Mul), 0xffff_fffc + 56);
}
