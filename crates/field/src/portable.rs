//! Montgomery multiplication in plain Rust: the reference for all other backends, and what compile-time constants are made with.

use crate::{
    Modulus,
    limbs::{self, Limbs, mul_add},
};

/// `a * b / 2^256` modulo the prime, reduced, for reduced `a` and any `b` below 2^256.
///
/// Multiplication and reduction alternate, a limb of `b` at a time (Koc, Acar and Kaliski, "Analyzing and comparing Montgomery
/// multiplication algorithms", CIOS). The running sum stays below `a` and a prime, so that it never needs a fifth limb
/// between the rounds; the result is below `a b / 2^256` and a prime, hence below two.
#[inline(always)]
pub(crate) const fn mul<M: Modulus>(a: &Limbs, b: &Limbs) -> Limbs {
    let m = &M::MODULUS;
    let mut t = [0u64; 4];
    let mut i = 0;
    while i < 4 {
        let (t0, c) = mul_add(t[0], a[0], b[i], 0);
        let (t1, c) = mul_add(t[1], a[1], b[i], c);
        let (t2, c) = mul_add(t[2], a[2], b[i], c);
        let (t3, t4) = mul_add(t[3], a[3], b[i], c);
        let q = t0.wrapping_mul(M::NEGATIVE_INVERSE);
        let (_, c) = mul_add(t0, q, m[0], 0);
        let (u0, c) = mul_add(t1, q, m[1], c);
        let (u1, c) = mul_add(t2, q, m[2], c);
        let (u2, c) = mul_add(t3, q, m[3], c);
        t = [u0, u1, u2, t4.wrapping_add(c)];
        i += 1;
    }
    limbs::reduce_once(&t, m)
}
