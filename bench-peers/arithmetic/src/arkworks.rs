//! Arkworks' rows.

use ark_ec::{AffineRepr, CurveGroup, PrimeGroup, VariableBaseMSM};
use ark_ed_on_bls12_381_bandersnatch::{EdwardsAffine, EdwardsProjective, Fq, Fr};
use ark_ff::{AdditiveGroup, BigInteger, Field, LegendreSymbol, PrimeField, batch_inversion};

use crate::{COUNT, DIVISOR, Rows, TERMS};

fn bytes<F: PrimeField>(elements: impl IntoIterator<Item = F>) -> Vec<u8> {
    elements
        .into_iter()
        .flat_map(|element| element.into_bigint().to_bytes_be())
        .collect()
}

fn inverse<F: Field>(x: &F) -> F {
    x.inverse().expect("not zero")
}

/// x/y as numbers modulo the order, the group's images (EIP-6800).
fn images(points: &[EdwardsProjective]) -> Vec<u8> {
    let affine = EdwardsProjective::normalize_batch(points);
    let quotient = |p: &EdwardsAffine| (p.x * inverse(&p.y)).into_bigint().to_bytes_le();
    bytes(
        affine
            .iter()
            .map(|p| Fr::from_le_bytes_mod_order(&quotient(p))),
    )
}

pub fn rows(rows: &mut Rows) {
    let step = inverse(&Fq::from(DIVISOR));
    let a: Vec<Fq> = (1..=COUNT as u64).map(|i| Fq::from(i) * step).collect();
    let b = a[17];
    let squares: Vec<Fq> = a.iter().map(Field::square).collect();
    rows.time(
        "field/mul",
        COUNT,
        || a.iter().map(|x| *x * b).collect::<Vec<_>>(),
        bytes,
    );
    rows.time(
        "field/mul, each on the last",
        COUNT,
        || (0..COUNT).fold(a[3], |x, _| x * b),
        |x| bytes([x]),
    );
    rows.time(
        "field/square",
        COUNT,
        || a.iter().map(Field::square).collect::<Vec<_>>(),
        bytes,
    );
    rows.time(
        "field/inverse",
        COUNT,
        || a.iter().map(inverse).collect::<Vec<_>>(),
        bytes,
    );
    let inverted = || {
        let mut all = a.clone();
        batch_inversion(&mut all);
        all
    };
    rows.time("field/inverse, together", COUNT, inverted, bytes);
    let symbol = |x: &Fq| match x.legendre() {
        LegendreSymbol::QuadraticResidue => 1,
        LegendreSymbol::QuadraticNonResidue => 255,
        LegendreSymbol::Zero => 0,
    };
    rows.time(
        "field/legendre",
        COUNT,
        || a.iter().map(symbol).collect(),
        |symbols| symbols,
    );
    let even = |root: Option<Fq>| {
        let root = root.expect("a square");
        if root.into_bigint().is_even() {
            root
        } else {
            -root
        }
    };
    let roots = || squares.iter().map(Field::sqrt).collect::<Vec<_>>();
    rows.time("field/sqrt", COUNT, roots, |roots| {
        bytes(roots.into_iter().map(even))
    });

    let scalar_step = inverse(&Fr::from(DIVISOR));
    let scalars: Vec<Fr> = (1..=TERMS as u64)
        .map(|i| Fr::from(i) * scalar_step)
        .collect();
    let generator = EdwardsProjective::generator();
    let points: Vec<EdwardsAffine> = (1..=TERMS as u64)
        .map(|i| (generator * Fr::from(i)).into_affine())
        .collect();
    let start = points[7].into_group();
    let sum = || points.iter().fold(start, |sum, point| sum + point);
    rows.time("curve/add", TERMS, sum, |p| images(&[p]));
    let doubled = || {
        let mut point = start;
        for _ in 0..256 {
            point.double_in_place();
        }
        point
    };
    rows.time("curve/double", 256, doubled, |p| images(&[p]));
    let multiples = || scalars.iter().map(|s| start * s).collect::<Vec<_>>();
    rows.time("curve/multiple", TERMS, multiples, |all| images(&all));
    let sum = || EdwardsProjective::msm(&points, &scalars).expect("as many of each");
    rows.time("curve/256 products' sum", 1, sum, |p| images(&[p]));
}
