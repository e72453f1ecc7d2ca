//! The contracts for points of both groups against EIP-2537's vectors.

use crate::common::{CODE_LIMIT, bytes, expected, returned, run, vectors};
use arbor_evm384::{End, Interface};
use arbor_evm384_programs::bls12_381::{Goal, Group, ORDER, PARAMETER, Sum};
use revm::precompile::bls12_381::g2_msm::g2_msm;
use revm::primitives::U256;

fn variants(group: Group, scalars: bool) -> impl Iterator<Item = Sum> {
    Interface::ON_MEMORY.into_iter().flat_map(move |interface| {
        [Goal::Time, Goal::Gas].map(|goal| Sum {
            group,
            scalars,
            interface,
            goal,
        })
    })
}

fn passes(file: &str, sums: impl Iterator<Item = Sum>) {
    let cases = vectors(&format!("eip-2537/{file}_bls.json"));
    for sum in sums {
        let code = sum.program().code;
        for case in &cases {
            let outcome = run(sum.interface, &code, bytes(case, "Input"));
            let name = &case["Name"];
            assert_eq!(
                returned(&outcome),
                expected(case, "Expected"),
                "{name}, {sum:?}"
            );
        }
    }
}

fn fails(file: &str, sums: impl Iterator<Item = Sum>) {
    let cases = vectors(&format!("eip-2537/fail-{file}_bls.json"));
    for sum in sums {
        let code = sum.program().code;
        for case in &cases {
            let outcome = run(sum.interface, &code, bytes(case, "Input"));
            let reverted = matches!(outcome.end, End::Reverted(_));
            let name = &case["Name"];
            assert!(reverted, "{name}, {sum:?}: {:?}", outcome.end);
        }
    }
}

#[test]
fn sums_of_two_points_pass_the_vectors() {
    for (group, name) in [(Group::G1, "add_G1"), (Group::G2, "add_G2")] {
        passes(name, variants(group, false));
        fails(name, variants(group, false));
    }
}

#[test]
fn multiples_pass_the_vectors() {
    for (group, name) in [(Group::G1, "mul_G1"), (Group::G2, "mul_G2")] {
        passes(name, variants(group, true));
        fails(name, variants(group, true));
    }
}

/// Up to hundreds of points a case: under one variant, the others having had shorter sums.
#[test]
fn sums_of_many_multiples_pass_the_vectors() {
    passes("msm_G1", variants(Group::G1, true).take(1));
    fails("msm_G1", variants(Group::G1, true));
    fails("msm_G2", variants(Group::G2, true));
}

/// No vectors add up multiples in G2: revm's precompile is the judge. The longest sum has wide windows, and the scalars are those where digits change.
#[test]
fn multiples_add_up_in_g2_as_the_precompile_says() {
    let points: Vec<Vec<u8>> = vectors("eip-2537/mul_G2_bls.json")
        .iter()
        .map(|case| bytes(case, "Input")[..256].to_vec())
        .collect();
    let z = U256::from(PARAMETER);
    let scalars = [
        U256::ZERO,
        U256::from(1),
        z >> 1,
        (z >> 1) + U256::from(1),
        z,
        z * z,
        ORDER >> 1,
        (ORDER >> 1) + U256::from(1),
        ORDER - U256::from(1),
        ORDER,
        U256::MAX,
        U256::MAX / U256::from(3),
    ];
    let pairs: Vec<u8> = points
        .iter()
        .cycle()
        .zip(scalars)
        .flat_map(|(point, scalar)| [point.clone(), scalar.to_be_bytes_vec()].concat())
        .collect();
    for count in [2, 3, 12] {
        let Some(calldata) = pairs.get(..count * 288) else {
            return;
        };
        let result = g2_msm(calldata, u64::MAX).expect("valid").bytes;
        for sum in variants(Group::G2, true) {
            let outcome = run(sum.interface, &sum.program().code, calldata.to_vec());
            assert_eq!(outcome.output(), Some(&result), "{count}, {sum:?}");
        }
    }
}

/// 0 P is zero, and so is P + (r - 1) P: sums in which buckets hold equal and opposite points.
#[test]
fn equal_and_opposite_points_meet_in_buckets() {
    for group in Group::ALL {
        let generator = group.generator();
        let pair = |scalar: U256| [generator.clone(), scalar.to_be_bytes_vec()].concat();
        let opposite = [pair(U256::from(7)), pair(ORDER - U256::from(7))].concat();
        let equal = [pair(U256::from(7)), pair(U256::from(7))].concat();
        for sum in variants(group, true) {
            let code = sum.program().code;
            let call = |calldata| run(sum.interface, &code, calldata);
            let zero = call(opposite.clone());
            assert_eq!(returned(&zero), hex::encode(vec![0; generator.len()]));
            let twice = call(equal.clone());
            let fourteenfold = call(pair(U256::from(14)));
            assert_eq!(returned(&twice), returned(&fourteenfold), "{sum:?}");
        }
    }
}

#[test]
fn contracts_fit_the_code_size_limit() {
    for group in Group::ALL {
        for scalars in [false, true] {
            for sum in variants(group, scalars) {
                let size = sum.program().code.len();
                assert!(size <= CODE_LIMIT, "{sum:?}: {size}");
            }
        }
    }
}
