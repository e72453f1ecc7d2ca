//! Contracts over other fields: against whole integers, a published vector, and revm's precompile.

use crate::common::{CODE_LIMIT, returned, run};
use arbor_evm384::reference::U384;
use arbor_evm384::{End, Interface};
use arbor_evm384_programs::bls12_381::Goal;
use arbor_evm384_programs::{BuiltIn, PrimeField, polynomial};
use proptest::prelude::*;
use revm::precompile::bn254;
use revm::primitives::U256;

fn variants() -> impl Iterator<Item = (Interface, Goal)> {
    Interface::ON_MEMORY
        .into_iter()
        .flat_map(|interface| [Goal::Time, Goal::Gas].map(|goal| (interface, goal)))
}

fn encoded(number: U384) -> Vec<u8> {
    [vec![0; 16], number.to_be_bytes_vec()].concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn polynomials_have_the_values_of_whole_integers(
        numbers in prop::collection::vec(any::<[u64; 6]>(), 2..20),
        edges in prop::collection::vec(0usize..4, 20),
    ) {
        for field in PrimeField::ALL {
            let m = field.modulus();
            let one = U384::from(1);
            let pick = |(number, edge): (&[u64; 6], &usize)| match edge {
                0 => [U384::ZERO, one, m - one][number[0] as usize % 3],
                _ => U384::from_limbs(*number) % m,
            };
            let numbers: Vec<U384> = numbers.iter().zip(&edges).map(pick).collect();
            let (x, coefficients) = (numbers[0], &numbers[1..]);
            let value = coefficients
                .iter()
                .fold(U384::ZERO, |value, &c| value.mul_mod(x, m).add_mod(c, m));
            let calldata: Vec<u8> = numbers.iter().copied().flat_map(encoded).collect();
            for (interface, goal) in variants() {
                let outcome = run(interface, &polynomial(field, interface, goal).code, calldata.clone());
                prop_assert_eq!(returned(&outcome), hex::encode(encoded(value)));
            }
        }
    }
}

#[test]
fn polynomials_refuse_what_is_no_residue() {
    for field in PrimeField::ALL {
        let code = polynomial(field, Interface::V7, Goal::Time).code;
        let call = |calldata: Vec<u8>| run(Interface::V7, &code, calldata).end;
        let residue = encoded(field.modulus() - U384::from(1));
        let modulus = encoded(field.modulus());
        assert!(matches!(
            call([residue.clone(), residue.clone()].concat()),
            End::Returned(_)
        ));
        assert!(matches!(
            call([residue.clone(), modulus.clone()].concat()),
            End::Reverted(_)
        ));
        assert!(matches!(
            call([modulus, residue.clone()].concat()),
            End::Reverted(_)
        ));
        assert!(matches!(call(residue.clone()), End::Reverted(_)));
        assert!(matches!(
            call([&residue[..], &residue[1..]].concat()),
            End::Reverted(_)
        ));
    }
}

/// The value of circomlib's tests, which every implementation of these parameters has.
#[test]
fn poseidon_is_that_of_the_published_vector() {
    let vector = "7853200120776062878684798364095072458815029376092732009249414926327459813530";
    let expected: U256 = vector.parse().expect("a number");
    for (interface, goal) in variants() {
        let code = BuiltIn::Poseidon.program(interface, goal).code;
        assert!(code.len() <= CODE_LIMIT);
        let outcome = run(interface, &code, BuiltIn::Poseidon.sample());
        assert_eq!(returned(&outcome), hex::encode(expected.to_be_bytes_vec()));
        let modulus: [u8; 32] = U256::from(PrimeField::Bn254Scalars.modulus()).to_be_bytes();
        let refused = run(interface, &code, [modulus, [0; 32]].concat());
        assert!(matches!(refused.end, End::Reverted(_)));
    }
}

#[test]
fn multiples_on_bn254_are_those_of_the_precompile() {
    let word = |number: U256| number.to_be_bytes_vec();
    let [one, two] = [1, 2].map(U256::from);
    let p = U256::from(PrimeField::Bn254.modulus());
    let order = U256::from(PrimeField::Bn254Scalars.modulus());
    let point = |x, y| [word(x), word(y)].concat();
    let points = [
        point(one, two),
        point(one, p - two),
        point(U256::ZERO, U256::ZERO),
        point(one, one),
        point(p, two),
        point(one, two + p),
    ];
    let scalars = [
        U256::ZERO,
        one,
        two,
        order - one,
        order,
        order + one,
        U256::MAX,
        U256::MAX / U256::from(3),
    ];
    let mut cases: Vec<Vec<u8>> = points
        .iter()
        .flat_map(|point| scalars.map(|scalar| [point.clone(), word(scalar)].concat()))
        .collect();
    let whole = cases[7].clone();
    cases.extend([0, 1, 31, 32, 63, 64, 70, 95].map(|length| whole[..length].to_vec()));
    cases.push([&whole[..], &[1, 2, 3]].concat());
    let mut failures = 0;
    let contracts = variants().map(|variant| (BuiltIn::Bn254Multiple, variant));
    let words = (BuiltIn::Bn254MultipleOfWords, (Interface::V7, Goal::Gas));
    for (contract, (interface, goal)) in contracts.chain([words]) {
        let code = contract.program(interface, goal).code;
        for calldata in &cases {
            let judge = bn254::run_mul(calldata, 6_000, u64::MAX).ok();
            let outcome = run(interface, &code, calldata.clone());
            match judge {
                Some(judge) => assert_eq!(outcome.output(), Some(&judge.bytes)),
                None => {
                    failures += 1;
                    assert!(matches!(outcome.end, End::Reverted(_)), "{:?}", outcome.end);
                }
            }
        }
    }
    assert!(failures > 40, "points that are none were among the cases");
}

/// FIPS 180's example, the empty message, and lengths around those at which a block is added; digests by the sha1sum of GNU.
#[test]
fn sha1_is_that_of_the_standard() {
    let code = BuiltIn::Sha1.program(Interface::V7, Goal::Time).code;
    let long = |length: usize| vec![b'a'; length];
    for (message, digest) in [
        (b"abc".to_vec(), "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (Vec::new(), "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (long(55), "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
        (long(56), "c2db330f6083854c99d4b5bfb6e8f29f201be699"),
        (long(63), "03f09f5b158a7a8cdad920bddc29b81c18a551f5"),
        (long(64), "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
        (long(119), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56"),
        (long(120), "f34c1488385346a55709ba056ddd08280dd4c6d6"),
        (long(1000), "291e9a6c66994949b57ba5e650361e98fc36b1ba"),
    ] {
        let outcome = run(Interface::V7, &code, message);
        assert_eq!(returned(&outcome), "0".repeat(24) + digest);
    }
}
