//! Blst's rows: its scalar field is the curve's base field; it has neither roots in it nor the curve.

use blst::blst_fr;

use crate::{COUNT, DIVISOR, Rows};

macro_rules! of_two {
    ($function:ident) => {
        |a: &blst_fr, b: &blst_fr| {
            let mut result = blst_fr::default();
            // SAFETY: all pointers are to residues.
            unsafe { blst::$function(&mut result, a, b) };
            result
        }
    };
}

macro_rules! of_one {
    ($function:ident) => {
        |a: &blst_fr| {
            let mut result = blst_fr::default();
            // SAFETY: both pointers are to residues.
            unsafe { blst::$function(&mut result, a) };
            result
        }
    };
}

fn small(number: u64) -> blst_fr {
    let mut result = blst_fr::default();
    // SAFETY: the second pointer is to four limbs.
    unsafe { blst::blst_fr_from_uint64(&mut result, [number, 0, 0, 0].as_ptr()) };
    result
}

fn bytes(elements: impl IntoIterator<Item = blst_fr>) -> Vec<u8> {
    let one = |element: blst_fr| {
        let mut limbs = [0u64; 4];
        // SAFETY: the first pointer is to four limbs, the second to a residue.
        unsafe { blst::blst_uint64_from_fr(limbs.as_mut_ptr(), &element) };
        limbs.into_iter().rev().flat_map(u64::to_be_bytes)
    };
    elements.into_iter().flat_map(one).collect()
}

pub fn rows(rows: &mut Rows) {
    let mul = of_two!(blst_fr_mul);
    let (square, inverse) = (of_one!(blst_fr_sqr), of_one!(blst_fr_eucl_inverse));
    let step = inverse(&small(DIVISOR));
    let a: Vec<blst_fr> = (1..=COUNT as u64).map(|i| mul(&small(i), &step)).collect();
    let b = a[17];
    rows.time(
        "field/mul",
        COUNT,
        || a.iter().map(|x| mul(x, &b)).collect::<Vec<_>>(),
        bytes,
    );
    rows.time(
        "field/mul, each on the last",
        COUNT,
        || (0..COUNT).fold(a[3], |x, _| mul(&x, &b)),
        |x| bytes([x]),
    );
    rows.time(
        "field/square",
        COUNT,
        || a.iter().map(square).collect::<Vec<_>>(),
        bytes,
    );
    rows.time(
        "field/inverse",
        COUNT,
        || a.iter().map(inverse).collect::<Vec<_>>(),
        bytes,
    );
}
