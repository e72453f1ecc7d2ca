//! Times one pairing and the product of two pairs, without subgroup checks; results are compared first. Prints a JSON object of seconds, the fastest of so many rounds.
//!
//! Usage: `pairings-bench [ROUNDS [FOLDER]]`, the folder with what `wasmcurves/modules.js` writes.

mod wasm;

use std::path::Path;
use std::time::Instant;

use ark_bls12_381::{Bls12_381, G1Affine, G2Affine};
use ark_ec::{AffineRepr, pairing::Pairing};
use blst::{blst_fp12, blst_p1_affine, blst_p2_affine};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().and_then(|n| n.parse().ok());
    let rounds: u32 = rounds.unwrap_or(50);
    let mut rows = vec![blst(rounds), arkworks(rounds)];
    if let Some(folder) = arguments.next() {
        // Each takes some hundred times as long in an interpreter.
        rows.extend(wasm::rows(rounds.div_ceil(5), Path::new(&folder)));
    }
    let rows = rows.iter().map(|(name, pairing, two)| {
        format!("\"{name}\": {{\"pairing_s\": {pairing:e}, \"two_pairs_s\": {two:e}}}")
    });
    println!("{{{}}}", rows.collect::<Vec<_>>().join(", "));
}

fn fastest<T>(rounds: u32, mut run: impl FnMut() -> T) -> f64 {
    let times = (0..rounds).map(|_| {
        let begin = Instant::now();
        std::hint::black_box(run());
        begin.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

fn blst_product(pairs: &[(blst_p1_affine, blst_p2_affine)]) -> blst_fp12 {
    let mut product = blst_fp12::default();
    for (index, (p, q)) in pairs.iter().enumerate() {
        let mut f = blst_fp12::default();
        // SAFETY: all pointers are to values of their types.
        unsafe { blst::blst_miller_loop(&mut f, q, p) };
        product = if index == 0 { f } else { product * f };
    }
    let mut result = blst_fp12::default();
    // SAFETY: both pointers are to elements of Fp12.
    unsafe { blst::blst_final_exp(&mut result, &product) };
    result
}

fn blst(rounds: u32) -> (&'static str, f64, f64) {
    // SAFETY: blst returns pointers to constants.
    let (p, q) = unsafe {
        (
            *blst::blst_p1_affine_generator(),
            *blst::blst_p2_affine_generator(),
        )
    };
    let mut minus = p;
    // SAFETY: both pointers are to residues.
    unsafe { blst::blst_fp_cneg(&mut minus.y, &p.y, true) };
    let pairs = [(p, q), (minus, q)];
    // SAFETY: blst returns a pointer to a constant.
    assert!(blst_product(&pairs) == unsafe { *blst::blst_fp12_one() });
    assert!(first_limbs(&blst_product(&pairs[..1])) == arkworks_limbs());
    let one = fastest(rounds, || blst_product(&pairs[..1]));
    let two = fastest(rounds, || blst_product(&pairs));
    ("blst", one, two)
}

/// The real part of the first coordinate in Montgomery form.
fn first_limbs(f: &blst_fp12) -> [u64; 6] {
    f.fp6[0].fp2[0].fp[0].l
}

fn arkworks_limbs() -> [u64; 6] {
    let value = Bls12_381::pairing(G1Affine::generator(), G2Affine::generator()).0;
    value.c0.c0.c0.0.0
}

fn arkworks(rounds: u32) -> (&'static str, f64, f64) {
    let (p, q) = (G1Affine::generator(), G2Affine::generator());
    let product = || Bls12_381::multi_pairing([p, -p], [q, q]);
    assert!(product() == Default::default());
    let one = fastest(rounds, || Bls12_381::pairing(p, q));
    let two = fastest(rounds, || product());
    ("arkworks", one, two)
}
