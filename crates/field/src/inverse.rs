//! Inverses and Legendre symbols by division steps.
//!
//! Bernstein and Yang, "Fast constant-time gcd computation and modular inversion" (TCHES 2019/3), in the form that Pornin ("Optimized binary GCD
//! for modular inversion", eprint 2020/972) and Wuille ("The safegcd implementation in libsecp256k1 explained") gave it: 62 steps look at
//! the lowest 64 bits of `f` and `g` only and yield a 2x2 matrix; then the matrix is applied to the whole numbers. Nothing here is constant-time: a run of zeros is one
//! step, and several bits are cancelled at once.
//!
//! Numbers are five limbs of 62 bits, the topmost signed.

use crate::{
    Modulus,
    limbs::{self, Limbs},
};

const LIMB: u64 = u64::MAX >> 2;
const LIMB_I: i128 = LIMB as i128;

type Signed62 = [i64; 5];

/// What 62 steps do, times 2^62: f' = (u f + v g) / 2^62, g' = (q f + r g) / 2^62.
#[derive(Clone, Copy)]
struct Matrix {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

/// The inverse in Montgomery form of an `x` in Montgomery form. 0 for 0.
pub(crate) fn modulo<M: Modulus>(x: &Limbs) -> Limbs {
    const { &Inversion::with_factor(&M::MODULUS, &M::R2) }.invert(x)
}

/// Inverses modulo one odd number below 2^256.
///
/// ```
/// use arbor_field::Inversion;
///
/// const ODD: Inversion = Inversion::new(&[9, 0, 0, 0]);
/// assert_eq!(ODD.invert(&[2, 0, 0, 0]), [5, 0, 0, 0]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Inversion {
    modulus: Signed62,
    /// 1 / modulus modulo 2^64.
    inverse: u64,
    /// The inverse is multiplied by this number.
    factor: Signed62,
}

impl Inversion {
    /// Prepares inverses modulo `modulus`, which must be odd.
    #[must_use]
    pub const fn new(modulus: &Limbs) -> Self {
        Self::with_factor(modulus, &[1, 0, 0, 0])
    }

    const fn with_factor(modulus: &Limbs, factor: &Limbs) -> Self {
        Self {
            modulus: split(modulus),
            inverse: limbs::inverse_mod_word(modulus[0]),
            factor: split(factor),
        }
    }

    /// Returns the inverse of `x`, reduced; zero if `x` is zero. `x` is below the modulus and has no factor in common with it.
    #[must_use]
    pub fn invert(&self, x: &Limbs) -> Limbs {
        arbor_metrics::FIELD_INVERSIONS.add(1);
        let (mut d, mut e) = ([0; 5], self.factor);
        let (mut f, mut g) = (self.modulus, split(x));
        let mut eta = -1;
        let mut len = 5;
        // Invariants: f = d * x / factor and g = e * x / factor modulo the prime, up to the common power of two that
        // `update_cofactors` divides by.
        while g[..len].iter().any(|&limb| limb != 0) {
            let (next, steps) = division_steps(eta, f[0].cast_unsigned(), g[0].cast_unsigned());
            eta = next;
            self.update_cofactors(&mut d, &mut e, &steps);
            update_numbers(&mut f, &mut g, &steps, len);
            let (top_f, top_g) = (f[len - 1], g[len - 1]);
            if len > 1 && (top_f ^ (top_f >> 63)) | (top_g ^ (top_g >> 63)) == 0 {
                f[len - 2] |= top_f << 62;
                g[len - 2] |= top_g << 62;
                len -= 1;
            }
        }
        // f is now 1 or -1 (or the modulus, if x was zero, and then d is zero).
        normalize(d, f[len - 1] < 0, &self.modulus)
    }

    /// `(d, e)` by the matrix over 2^62, modulo the prime; both stay above -2 primes and below one.
    #[inline(always)]
    fn update_cofactors(&self, d: &mut Signed62, e: &mut Signed62, t: &Matrix) {
        let (modulus, inverse) = (&self.modulus, self.inverse);
        // The prime is added once where d or e is negative, and as often as makes the sum divisible by 2^62.
        let (negative_d, negative_e) = (d[4] >> 63, e[4] >> 63);
        let mut times_d = (t.u & negative_d) + (t.v & negative_e);
        let mut times_e = (t.q & negative_d) + (t.r & negative_e);
        let mut carry_d = product(t.u, d[0]) + product(t.v, e[0]);
        let mut carry_e = product(t.q, d[0]) + product(t.r, e[0]);
        let adjust = |times: i64, carry: i128| {
            let excess = inverse
                .wrapping_mul(carry as u64)
                .wrapping_add(times.cast_unsigned());
            times - (excess & LIMB).cast_signed()
        };
        times_d = adjust(times_d, carry_d);
        times_e = adjust(times_e, carry_e);
        carry_d = (carry_d + product(modulus[0], times_d)) >> 62;
        carry_e = (carry_e + product(modulus[0], times_e)) >> 62;
        for i in 1..5 {
            carry_d += product(t.u, d[i]) + product(t.v, e[i]) + product(modulus[i], times_d);
            carry_e += product(t.q, d[i]) + product(t.r, e[i]) + product(modulus[i], times_e);
            d[i - 1] = (carry_d & LIMB_I) as i64;
            e[i - 1] = (carry_e & LIMB_I) as i64;
            carry_d >>= 62;
            carry_e >>= 62;
        }
        d[4] = carry_d as i64;
        e[4] = carry_e as i64;
    }
}

/// The Jacobi symbol (x / prime), unless it took more steps than it practically can.
///
/// Steps that keep `f` and `g` non-negative and follow the symbol through reciprocity and the supplementary law for 2
/// (Hamburg, "Computing the Jacobi symbol using Bernstein-Yang", eprint 2021/1271). No bound on their number is proven.
pub(crate) fn jacobi<M: Modulus>(x: &Limbs) -> Option<i32> {
    if *x == [0; 4] {
        return Some(0);
    }
    let (mut f, mut g) = (const { split(&M::MODULUS) }, split(x));
    let (mut eta, mut negative) = (-1, 0);
    let mut len = 5;
    for _ in 0..25 {
        let low = |n: &Signed62| n[0].cast_unsigned() | (n[1] << 62).cast_unsigned();
        let (next, steps) = positive_steps(eta, low(&f), low(&g), &mut negative);
        eta = next;
        update_numbers(&mut f, &mut g, &steps, len);
        if f[0] == 1 && f[1..len].iter().all(|&limb| limb == 0) {
            return Some(if negative & 1 == 0 { 1 } else { -1 });
        }
        if len > 2 && f[len - 1] | g[len - 1] == 0 {
            len -= 1;
        }
    }
    None
}

const fn split(n: &Limbs) -> Signed62 {
    [
        (n[0] & LIMB).cast_signed(),
        ((n[0] >> 62 | n[1] << 2) & LIMB).cast_signed(),
        ((n[1] >> 60 | n[2] << 4) & LIMB).cast_signed(),
        ((n[2] >> 58 | n[3] << 6) & LIMB).cast_signed(),
        (n[3] >> 56).cast_signed(),
    ]
}

/// For limbs that are all in 0..2^62 and a number below 2^256.
fn join(n: &Signed62) -> Limbs {
    let n = n.map(i64::cast_unsigned);
    [
        n[0] | n[1] << 62,
        n[1] >> 2 | n[2] << 60,
        n[2] >> 4 | n[3] << 58,
        n[3] >> 6 | n[4] << 56,
    ]
}

/// The multiple of `f`, modulo 2^6 or 2^4, that cancels the low bits of `g`; `limit` says how many steps may still be taken.
#[inline(always)]
fn cancelling(f: u64, g: u64, after_swap: bool, limit: u32) -> u64 {
    let mask = u64::MAX >> (64 - limit);
    if after_swap {
        // f (f^2 - 2) is -1/f modulo 2^6.
        f.wrapping_mul(g)
            .wrapping_mul(f.wrapping_mul(f).wrapping_sub(2))
            & mask
            & 63
    } else {
        // f + 8 [f = 3 or 5 mod 8 in the third bit of f + 1] is 1/f modulo 2^4.
        let inverse = f.wrapping_add((f.wrapping_add(1) & 4) << 1);
        inverse.wrapping_neg().wrapping_mul(g) & mask & 15
    }
}

/// 62 division steps from eta = -delta and the low bits of odd `f`, and `g`.
fn division_steps(mut eta: i64, mut f: u64, mut g: u64) -> (i64, Matrix) {
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = 62u32;
    loop {
        // A sentinel bit stops the count of zeros at the steps that are left.
        let zeros = (g | (u64::MAX << left)).trailing_zeros();
        g >>= zeros;
        u <<= zeros;
        v <<= zeros;
        eta -= i64::from(zeros);
        left -= zeros;
        if left == 0 {
            break;
        }
        let swap = eta < 0;
        if swap {
            eta = -eta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
        }
        let limit = (eta + 1).min(i64::from(left)) as u32;
        let w = cancelling(f, g, swap, limit);
        g = g.wrapping_add(f.wrapping_mul(w));
        q = q.wrapping_add(u.wrapping_mul(w));
        r = r.wrapping_add(v.wrapping_mul(w));
    }
    (eta, matrix(u, v, q, r))
}

/// As [`division_steps`] with non-negative numbers; flips the lowest bit of `negative` when the symbol changes sign.
fn positive_steps(mut eta: i64, mut f: u64, mut g: u64, negative: &mut u64) -> (i64, Matrix) {
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = 62u32;
    loop {
        let zeros = (g | (u64::MAX << left)).trailing_zeros();
        g >>= zeros;
        u <<= zeros;
        v <<= zeros;
        eta -= i64::from(zeros);
        left -= zeros;
        // (2 / f) = -1 if f is 3 or 5 modulo 8.
        *negative ^= u64::from(zeros) & (f >> 1 ^ f >> 2);
        if left == 0 {
            break;
        }
        let swap = eta < 0;
        if swap {
            eta = -eta;
            // (f / g) (g / f) = -1 if both are 3 modulo 4.
            *negative ^= (f & g) >> 1;
            (f, g) = (g, f);
            (u, q) = (q, u);
            (v, r) = (r, v);
        }
        let limit = (eta + 1).min(i64::from(left)) as u32;
        let w = cancelling(f, g, swap, limit);
        g = g.wrapping_add(f.wrapping_mul(w));
        q = q.wrapping_add(u.wrapping_mul(w));
        r = r.wrapping_add(v.wrapping_mul(w));
    }
    (eta, matrix(u, v, q, r))
}

fn matrix(u: u64, v: u64, q: u64, r: u64) -> Matrix {
    Matrix {
        u: u.cast_signed(),
        v: v.cast_signed(),
        q: q.cast_signed(),
        r: r.cast_signed(),
    }
}

#[inline(always)]
fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

/// `(f, g)` by the matrix, exactly divisible by 2^62; only the lowest `len` limbs are in use.
#[inline(always)]
fn update_numbers(f: &mut Signed62, g: &mut Signed62, t: &Matrix, len: usize) {
    let mut carry_f = (product(t.u, f[0]) + product(t.v, g[0])) >> 62;
    let mut carry_g = (product(t.q, f[0]) + product(t.r, g[0])) >> 62;
    for i in 1..len {
        carry_f += product(t.u, f[i]) + product(t.v, g[i]);
        carry_g += product(t.q, f[i]) + product(t.r, g[i]);
        f[i - 1] = (carry_f & LIMB_I) as i64;
        g[i - 1] = (carry_g & LIMB_I) as i64;
        carry_f >>= 62;
        carry_g >>= 62;
    }
    f[len - 1] = carry_f as i64;
    g[len - 1] = carry_g as i64;
}

/// Brings `d`, above -2 primes and below one, into 0..prime, negated first if asked.
fn normalize(mut d: Signed62, negate: bool, modulus: &Signed62) -> Limbs {
    let add_if_negative = |d: &mut Signed62| {
        if d[4] < 0 {
            for (limb, m) in d.iter_mut().zip(modulus) {
                *limb += m;
            }
        }
    };
    let carry = |d: &mut Signed62| {
        for i in 0..4 {
            d[i + 1] += d[i] >> 62;
            d[i] &= LIMB.cast_signed();
        }
    };
    add_if_negative(&mut d);
    if negate {
        d = d.map(|limb| -limb);
    }
    carry(&mut d);
    add_if_negative(&mut d);
    carry(&mut d);
    join(&d)
}
