//! The scalar field, one number at a time, and scalars as the digits that the lanes look up.

use arbor_field::{
    Inversion, Limbs,
    limbs::{add, less, reduce_once, sub},
};

/// The group's order n, a prime; least significant word first.
pub(crate) const ORDER: Limbs = [
    0xbfd2_5e8c_d036_4141,
    0xbaae_dce6_af48_a03b,
    0xffff_ffff_ffff_fffe,
    u64::MAX,
];
/// 2^256 - n.
const COMPLEMENT: [u64; 3] = [0x402d_a173_2fc9_bebf, 0x4551_2319_50b7_5fc4, 1];
/// p - n: what an `r` plus n must be below.
pub(crate) const PRIME_LESS_ORDER: Limbs = sub(&crate::base::PRIME, &ORDER).0;
/// (n - 1) / 2.
pub(crate) const HALF_ORDER: Limbs = [
    0xdfe9_2f46_681b_20a0,
    0x5d57_6e73_57a4_501d,
    u64::MAX,
    0x7fff_ffff_ffff_ffff,
];

const INVERSION: Inversion = Inversion::new(&ORDER);

/// Reads 32 bytes, most significant first.
pub(crate) fn from_be_bytes(bytes: &[u8; 32]) -> Limbs {
    let mut limbs = [0; 4];
    for (limb, word) in limbs.iter_mut().rev().zip(bytes.as_chunks::<8>().0) {
        *limb = u64::from_be_bytes(*word);
    }
    limbs
}

/// Writes 32 bytes, most significant first.
pub(crate) fn to_be_bytes(limbs: &Limbs, bytes: &mut [u8; 32]) {
    let words = bytes.as_chunks_mut::<8>().0;
    for (word, limb) in words.iter_mut().zip(limbs.iter().rev()) {
        *word = limb.to_be_bytes();
    }
}

/// Whether a number is at least one and below n.
pub(crate) fn is_scalar(number: &Limbs) -> bool {
    *number != [0; 4] && less(number, &ORDER)
}

/// Any number of 256 bits modulo n.
pub(crate) fn reduced(number: &Limbs) -> Limbs {
    reduce_once(number, &ORDER)
}

/// The negative modulo n.
pub(crate) fn negative(scalar: &Limbs) -> Limbs {
    reduced(&sub(&ORDER, scalar).0)
}

/// Adds `a * b` to the words of `to` from the first one on; the sum fits.
#[inline(always)]
fn add_product<const A: usize, const B: usize, const T: usize>(
    to: &mut [u64; T],
    a: &[u64; A],
    b: &[u64; B],
) {
    for (i, a) in a.iter().enumerate() {
        let mut carry = 0u128;
        for (j, b) in b.iter().enumerate() {
            let sum = u128::from(to[i + j]) + u128::from(*a) * u128::from(*b) + carry;
            to[i + j] = sum as u64;
            carry = sum >> 64;
        }
        for word in to.iter_mut().skip(i + B) {
            let sum = u128::from(*word) + carry;
            *word = sum as u64;
            carry = sum >> 64;
        }
    }
}

/// The product modulo n.
pub(crate) fn product(a: &Limbs, b: &Limbs) -> Limbs {
    let mut t = [0; 8];
    add_product(&mut t, a, b);
    // 256 bits times 129, and 256: below 2^386.
    let mut u = [t[0], t[1], t[2], t[3], 0, 0, 0];
    add_product(&mut u, &[t[4], t[5], t[6], t[7]], &COMPLEMENT);
    // 130 bits times 129, and 256: below 2^260.
    let mut v = [u[0], u[1], u[2], u[3], 0, 0];
    add_product(&mut v, &[u[4], u[5], u[6]], &COMPLEMENT);
    // 4 bits times 129, and 256: at most one bit above, and then less than 2^134 is left below.
    let mut w = [v[0], v[1], v[2], v[3], 0];
    add_product(&mut w, &[v[4]], &COMPLEMENT);
    let low = [w[0], w[1], w[2], w[3]];
    let again = COMPLEMENT.map(|word| word & w[4].wrapping_neg());
    let (sum, _) = add(&low, &[again[0], again[1], again[2], 0]);
    reduced(&sum)
}

/// Replaces scalars, none of which is zero, by their inverses modulo n, with one inversion.
pub(crate) fn invert_all(scalars: &mut [Limbs]) {
    let mut before = Vec::with_capacity(scalars.len());
    let mut total = [1, 0, 0, 0];
    for scalar in scalars.iter() {
        before.push(total);
        total = product(&total, scalar);
    }
    let mut rest = INVERSION.invert(&total);
    for (scalar, before) in scalars.iter_mut().zip(before).rev() {
        (*scalar, rest) = (product(&rest, &before), product(&rest, scalar));
    }
}

/// Bits of half a scalar as digits: 26 windows of 5 bits, or 10 of 13.
pub(crate) const HALF_BITS: u32 = 130;

/// Three words, least significant first; negative numbers modulo 2^192.
type Half = [u64; 3];

// A basis of the pairs (a, b) with a + b lambda = 0 modulo n: (A1, -B1) and (A2, A1).
const A1: Half = [0xe86c_90e4_9284_eb15, 0x3086_d221_a7d4_6bcd, 0];
const B1: Half = [0x6f54_7fa9_0abf_e4c3, 0xe443_7ed6_010e_8828, 0];
const A2: Half = [0x57c1_108d_9d44_cfd8, 0x14ca_50f7_a8e2_f3f6, 1];
/// A1 and B1 times 2^384 / n, rounded.
const G1: Limbs = [
    0xe893_209a_45db_b031,
    0x3daa_8a14_71e8_ca7f,
    0xe86c_90e4_9284_eb15,
    0x3086_d221_a7d4_6bcd,
];
const G2: Limbs = [
    0x1571_b4ae_8ac4_7f71,
    0x2212_08ac_9df5_06c6,
    0x6f54_7fa9_0abf_e4c4,
    0xe443_7ed6_010e_8828,
];

/// A scalar k as two halves, k1 + k2 lambda = k modulo n, both odd and of at most 130 bits, as numbers
/// whose windows are digits: window m of w bits stands for the odd digit 2 m + 1 - 2^w.
///
/// A half h is the sum of 2^i or -2^i for each bit i. (h + 2^130 - 1) / 2 has a one for each that is added.
pub(crate) fn halves(scalar: &Limbs) -> [Half; 2] {
    let c1 = rounded(scalar, &G1);
    let c2 = rounded(scalar, &G2);
    let k = [scalar[0], scalar[1], scalar[2]];
    let mut k1 = minus(&minus(&k, &times(&c1, &A1)), &times(&c2, &A2));
    let mut k2 = minus(&times(&c1, &B1), &times(&c2, &A1));
    // Of the basis, modulo two, the first pair is (1, 1) and the second (0, 1).
    let first = mask(k1[0] & 1 == 0);
    k1 = plus(&k1, &A1.map(|word| word & first));
    k2 = minus(&k2, &B1.map(|word| word & first));
    let second = mask(k2[0] & 1 == 0);
    k1 = plus(&k1, &A2.map(|word| word & second));
    k2 = plus(&k2, &A1.map(|word| word & second));
    [encoded(&k1), encoded(&k2)]
}

fn mask(chosen: bool) -> u64 {
    u64::from(chosen).wrapping_neg()
}

/// Window number `at` of `width` bits.
#[inline(always)]
pub(crate) fn window(half: &Half, at: u32, width: u32) -> u32 {
    let (word, bit) = ((at * width / 64) as usize, at * width % 64);
    let high = if word < 2 { half[word + 1] } else { 0 };
    let bits = (half[word] >> bit) | (high << 1 << (63 - bit));
    (bits & ((1 << width) - 1)) as u32
}

fn encoded(half: &Half) -> Half {
    // 2^130 - 1.
    let sum = plus(half, &[u64::MAX, u64::MAX, 3]);
    let encoded = [
        sum[0] >> 1 | sum[1] << 63,
        sum[1] >> 1 | sum[2] << 63,
        sum[2] >> 1,
    ];
    assert!(encoded[2] < 4, "invariant: halves have at most 130 bits");
    encoded
}

/// `scalar * g / 2^384`, rounded: 128 bits.
fn rounded(scalar: &Limbs, g: &Limbs) -> [u64; 2] {
    let mut t = [0; 8];
    add_product(&mut t, scalar, g);
    let quotient = u128::from(t[6]) | u128::from(t[7]) << 64;
    let quotient = quotient + u128::from(t[5] >> 63);
    [quotient as u64, (quotient >> 64) as u64]
}

/// The product modulo 2^192.
fn times(a: &[u64; 2], b: &Half) -> Half {
    let mut t = [0; 5];
    add_product(&mut t, a, b);
    [t[0], t[1], t[2]]
}

fn plus(a: &Half, b: &Half) -> Half {
    let (sum, _) = add(&[a[0], a[1], a[2], 0], &[b[0], b[1], b[2], 0]);
    [sum[0], sum[1], sum[2]]
}

fn minus(a: &Half, b: &Half) -> Half {
    let (difference, _) = sub(&[a[0], a[1], a[2], 0], &[b[0], b[1], b[2], 0]);
    [difference[0], difference[1], difference[2]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::{BigInt, BigUint};
    use proptest::prelude::*;

    fn big(limbs: &[u64]) -> BigUint {
        let high_first = limbs.iter().rev();
        high_first.fold(BigUint::ZERO, |sum, limb| (sum << 64) + *limb)
    }

    /// Any 256 bits, often near the order, zero or 2^256.
    fn number() -> impl Strategy<Value = Limbs> {
        let near = |base: Limbs| (0u64..4).prop_map(move |by| add(&base, &[by, 0, 0, 0]).0);
        prop_oneof![
            any::<Limbs>(),
            near([0; 4]),
            near(sub(&ORDER, &[2, 0, 0, 0]).0),
            near([u64::MAX - 3, u64::MAX, u64::MAX, u64::MAX]),
            near(HALF_ORDER),
            any::<Limbs>().prop_map(|n| n.map(|word| if word & 1 == 1 { u64::MAX } else { 0 })),
        ]
    }

    #[test]
    fn constants_follow_from_the_primes() {
        let n = big(&ORDER);
        assert_eq!((BigUint::from(1u8) << 256) - &n, big(&COMPLEMENT));
        assert_eq!(big(&HALF_ORDER), (&n - 1u8) / 2u8);
        assert_eq!(big(&PRIME_LESS_ORDER), big(&crate::base::PRIME) - &n);
        let rounded = |a: &Half| ((big(a) << 385) + &n) / (&n * 2u8);
        assert_eq!((big(&G1), big(&G2)), (rounded(&A1), rounded(&B1)));
    }

    proptest! {
        #[test]
        fn products_and_inverses(a in number(), b in number()) {
            let n = big(&ORDER);
            // Any 256 bits may be factors.
            prop_assert_eq!(big(&product(&a, &b)), big(&a) * big(&b) % &n);
            let a = reduced(&a);
            prop_assert_eq!((big(&a) + big(&negative(&a))) % &n, BigUint::ZERO);
            if is_scalar(&a) && is_scalar(&b) {
                let mut inverses = [a, b, a];
                invert_all(&mut inverses);
                prop_assert_eq!(product(&inverses[1], &b), [1, 0, 0, 0]);
                prop_assert_eq!(product(&inverses[2], &a), [1, 0, 0, 0]);
            }
        }

        /// The digits of both halves are odd, and add up to the scalar.
        #[test]
        fn halves_add_up(scalar in number()) {
            let scalar = reduced(&scalar);
            let lambda = BigUint::parse_bytes(
                b"5363ad4cc05c30e0a5261c028812645a122e22ea20816678df02967c1b23bd72", 16,
            ).expect("a number");
            let halves = halves(&scalar);
            for width in [5, 13] {
                let value = |half| {
                    let digits = (0..HALF_BITS / width).rev();
                    digits.fold(BigInt::ZERO, |sum, at| {
                        let digit = 2 * i64::from(window(half, at, width)) + 1 - (1 << width);
                        (sum << width) + digit
                    })
                };
                let sum = value(&halves[0]) + value(&halves[1]) * BigInt::from(lambda.clone());
                let n = BigInt::from(big(&ORDER));
                let sum = ((sum % &n) + &n) % &n;
                prop_assert_eq!(sum, BigInt::from(big(&scalar)));
            }
        }
    }
}
