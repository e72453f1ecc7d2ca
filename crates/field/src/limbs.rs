//! Integers of 256 bits as four 64-bit limbs, least significant first.

/// Four 64-bit limbs, least significant first.
pub type Limbs = [u64; 4];

/// `a + b + carry` as the low word and the carry out.
#[inline(always)]
pub(crate) const fn add_carry(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// `a - b - borrow` as the low word and the borrow out, 0 or 1.
#[inline(always)]
pub(crate) const fn sub_borrow(a: u64, b: u64, borrow: u64) -> (u64, u64) {
    let difference = (a as u128).wrapping_sub(b as u128 + borrow as u128);
    (difference as u64, (difference >> 127) as u64)
}

/// `a + b * c + carry` as low and high word; it cannot overflow.
#[inline(always)]
pub(crate) const fn mul_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 * c as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// The sum modulo 2^256, and the carry.
#[inline(always)]
#[must_use]
pub const fn add(a: &Limbs, b: &Limbs) -> (Limbs, u64) {
    let (s0, carry) = add_carry(a[0], b[0], 0);
    let (s1, carry) = add_carry(a[1], b[1], carry);
    let (s2, carry) = add_carry(a[2], b[2], carry);
    let (s3, carry) = add_carry(a[3], b[3], carry);
    ([s0, s1, s2, s3], carry)
}

/// The difference modulo 2^256, and the borrow.
#[inline(always)]
#[must_use]
pub const fn sub(a: &Limbs, b: &Limbs) -> (Limbs, u64) {
    let (d0, borrow) = sub_borrow(a[0], b[0], 0);
    let (d1, borrow) = sub_borrow(a[1], b[1], borrow);
    let (d2, borrow) = sub_borrow(a[2], b[2], borrow);
    let (d3, borrow) = sub_borrow(a[3], b[3], borrow);
    ([d0, d1, d2, d3], borrow)
}

/// `a - m` if that is not negative, else `a`. Without branches: the outcome is a coin toss.
#[inline(always)]
#[must_use]
pub const fn reduce_once(a: &Limbs, m: &Limbs) -> Limbs {
    let (reduced, borrow) = sub(a, m);
    let keep = borrow.wrapping_neg();
    [
        (a[0] & keep) | (reduced[0] & !keep),
        (a[1] & keep) | (reduced[1] & !keep),
        (a[2] & keep) | (reduced[2] & !keep),
        (a[3] & keep) | (reduced[3] & !keep),
    ]
}

/// Whether `a < b`.
#[inline(always)]
#[must_use]
pub const fn less(a: &Limbs, b: &Limbs) -> bool {
    sub(a, b).1 == 1
}

/// The integer part of half.
pub(crate) const fn halve(a: Limbs) -> Limbs {
    [
        (a[0] >> 1) | (a[1] << 63),
        (a[1] >> 1) | (a[2] << 63),
        (a[2] >> 1) | (a[3] << 63),
        a[3] >> 1,
    ]
}

/// 1/a modulo 2^64 for odd `a`, by Newton's iteration: each step doubles the number of right bits.
pub(crate) const fn inverse_mod_word(a: u64) -> u64 {
    // 3a ^ 2 is right to 5 bits.
    let mut inverse = a.wrapping_mul(3) ^ 2;
    let mut bits = 5;
    while bits < 64 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(a.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse
}

/// 2^exponent modulo `m`, by doubling; for constants.
pub(crate) const fn power_of_two(exponent: u32, m: &Limbs) -> Limbs {
    let mut power = [1, 0, 0, 0];
    let mut i = 0;
    while i < exponent {
        let (doubled, _) = add(&power, &power);
        power = reduce_once(&doubled, m);
        i += 1;
    }
    power
}

/// Reads 32 bytes, least significant first.
#[inline]
pub(crate) const fn from_le_bytes(bytes: &[u8; 32]) -> Limbs {
    let mut limbs = [0u64; 4];
    let mut i = 0;
    while i < 32 {
        limbs[i / 8] |= (bytes[i] as u64) << (8 * (i % 8));
        i += 1;
    }
    limbs
}

/// 32 bytes, least significant first.
#[inline]
pub(crate) const fn to_le_bytes(limbs: &Limbs) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut i = 0;
    while i < 32 {
        bytes[i] = (limbs[i / 8] >> (8 * (i % 8))) as u8;
        i += 1;
    }
    bytes
}
