//! The contract for multiples on BLS12-377 against a model in affine coordinates.

use crate::common::{CODE_LIMIT, returned, run};
use arbor_evm384::reference::U384;
use arbor_evm384::{End, Interface};
use arbor_evm384_programs::bls12_381::Goal;
use arbor_evm384_programs::{BuiltIn, PrimeField};
use revm::primitives::{U256, uint};

/// The order of the group.
const ORDER: U256 = uint!(0x12ab655e9a2ca55660b44d1e5c37b00159aa76fed00000010a11800000000001_U256);

type Affine = Option<[U384; 2]>;

/// On y^2 = x^3 + 1, by chords and tangents.
fn add(p: Affine, q: Affine) -> Affine {
    let m = PrimeField::Bls12377.modulus();
    let (Some([x, y]), Some([u, v])) = (p, q) else {
        return p.or(q);
    };
    let minus = |a: U384, b: U384| a.add_mod(m - b, m);
    let (rise, run) = if x != u {
        (minus(v, y), minus(u, x))
    } else if y.add_mod(v, m).is_zero() {
        return None;
    } else {
        (U384::from(3).mul_mod(x.mul_mod(x, m), m), y.add_mod(y, m))
    };
    let slope = rise.mul_mod(run.inv_mod(m).expect("prime"), m);
    let sum = minus(minus(slope.mul_mod(slope, m), x), u);
    Some([sum, minus(slope.mul_mod(minus(x, sum), m), y)])
}

fn multiple(mut p: Affine, scalar: U256) -> Affine {
    let mut sum = None;
    for bit in 0..256 {
        if scalar.bit(bit) {
            sum = add(sum, p);
        }
        p = add(p, p);
    }
    sum
}

fn encoded(point: Affine) -> Vec<u8> {
    let coordinates = point
        .unwrap_or_default()
        .map(|c| [[0; 16].as_slice(), &c.to_be_bytes::<48>()].concat());
    coordinates.concat()
}

fn calldata(point: Affine, scalar: U256) -> Vec<u8> {
    [encoded(point), scalar.to_be_bytes_vec()].concat()
}

fn generator() -> Affine {
    let sample = BuiltIn::Bls12377Multiple.sample();
    let coordinate = |at: usize| U384::from_be_slice(&sample[at..at + 48]);
    Some([coordinate(16), coordinate(80)])
}

fn small(x: u64, y: u64) -> Affine {
    Some([x, y].map(U384::from))
}

/// (-1, 0), which is its own opposite.
fn of_order_two() -> Affine {
    let m = PrimeField::Bls12377.modulus();
    Some([m - U384::from(1), U384::ZERO])
}

#[test]
fn multiples_are_those_of_the_model() {
    let g = generator();
    assert_eq!(
        multiple(g, ORDER),
        None,
        "the generator has the group's order"
    );
    let scalars = [
        U256::ZERO,
        U256::from(1),
        U256::from(2),
        ORDER - U256::from(1),
        ORDER,
        ORDER + U256::from(17),
        U256::MAX,
        U256::from(0x5a5a) << 77,
    ];
    for interface in Interface::ON_MEMORY {
        for goal in [Goal::Time, Goal::Gas] {
            let code = BuiltIn::Bls12377Multiple.program(interface, goal).code;
            assert!(code.len() <= CODE_LIMIT);
            for point in [g, multiple(g, U256::from(5)), None] {
                for scalar in scalars {
                    let outcome = run(interface, &code, calldata(point, scalar));
                    let expected = encoded(multiple(point, scalar));
                    assert_eq!(
                        returned(&outcome),
                        hex::encode(expected),
                        "{point:?} {scalar}"
                    );
                }
            }
        }
    }
}

/// Points of even order are those for which the formulas do not hold; among the multiples that are made of them there are some whose difference has order two.
#[test]
fn what_is_not_in_the_group_is_refused() {
    let g = generator();
    let m = PrimeField::Bls12377.modulus();
    let outside = [
        of_order_two(),
        // Of orders 3 and 6.
        small(0, 1),
        small(2, 3),
        add(g, of_order_two()),
        add(g, small(0, 1)),
        add(g, small(2, 3)),
        // Not on the curve.
        small(1, 1),
        small(0, 0).map(|[x, _]| [x, m - U384::from(2)]),
    ];
    for interface in Interface::ON_MEMORY {
        let code = BuiltIn::Bls12377Multiple
            .program(interface, Goal::Time)
            .code;
        let refused =
            |calldata: Vec<u8>| matches!(run(interface, &code, calldata).end, End::Reverted(_));
        for point in outside {
            for scalar in [U256::ZERO, U256::from(2), ORDER] {
                assert!(refused(calldata(point, scalar)), "{point:?} {scalar}");
            }
        }
        let right = calldata(g, U256::from(1));
        assert!(!refused(right.clone()));
        assert!(refused(right[1..].to_vec()));
        assert!(refused([right.as_slice(), &[0]].concat()));
        // Coordinates that are no residues.
        let [x, y] = g.expect("it is not zero");
        assert!(refused(calldata(Some([x + m, y]), U256::from(1))));
        assert!(refused(calldata(Some([x, y + m]), U256::from(1))));
    }
}
