//! Scalars as digits.

use arbor_field::{
    Fr, Limbs, Modulus, Scalar,
    limbs::{add, less, reduce_once, sub},
};

/// A scalar as sign and magnitude, the smaller of s and n - s: below 2^252, and short for small numbers of either sign.
#[derive(Clone, Copy)]
pub(crate) struct Signed {
    pub(crate) negative: bool,
    pub(crate) magnitude: Limbs,
}

impl From<Fr> for Signed {
    #[inline]
    fn from(scalar: Fr) -> Self {
        Self::from(scalar.to_limbs())
    }
}

/// From a number below the group's order.
impl From<Limbs> for Signed {
    #[inline]
    fn from(magnitude: Limbs) -> Self {
        if less(&Scalar::HALF, &magnitude) {
            Self {
                negative: true,
                magnitude: sub(&Scalar::MODULUS, &magnitude).0,
            }
        } else {
            Self {
                negative: false,
                magnitude,
            }
        }
    }
}

/// A number below the base field's prime, which is a little more than four times the group's order, modulo that order.
#[inline]
pub(crate) fn modulo_order(number: &Limbs) -> Limbs {
    const ORDER: Limbs = Scalar::MODULUS;
    const TWICE: Limbs = add(&ORDER, &ORDER).0;
    const FOUR: Limbs = add(&TWICE, &TWICE).0;
    let once = reduce_once(number, &FOUR);
    reduce_once(&reduce_once(&once, &TWICE), &ORDER)
}

/// Number of signed digits of `bits` bits that hold a [`Signed`]'s magnitude with the last carry.
pub(crate) const fn digits_of(bits: usize) -> usize {
    253usize.div_ceil(bits)
}

/// `count` bits from `from` on; at most 32, and zeros above 256.
#[inline]
pub(crate) fn window(limbs: &Limbs, from: usize, count: usize) -> u64 {
    let (word, shift) = (from / 64, from % 64);
    if word >= 4 {
        return 0;
    }
    let mut bits = limbs[word] >> shift;
    if shift + count > 64 && word < 3 {
        bits |= limbs[word + 1] << (64 - shift);
    }
    bits & ((1 << count) - 1)
}

/// Calls `digit(position, value)` for the non-zero signed digits, -2^(bits-1) < value <= 2^(bits-1), from the lowest up; sign applied.
#[inline]
pub(crate) fn for_digits(scalar: &Signed, bits: usize, mut digit: impl FnMut(usize, i32)) {
    let half = 1i32 << (bits - 1);
    let top = length(&scalar.magnitude);
    let mut carry = 0;
    let mut position = 0;
    while position * bits < top || carry != 0 {
        let mut value = window(&scalar.magnitude, position * bits, bits) as i32 + carry;
        carry = i32::from(value > half);
        value -= carry << bits;
        if value != 0 {
            digit(position, if scalar.negative { -value } else { value });
        }
        position += 1;
    }
}

/// All digits of [`for_digits`] but the sign of none waits for a carry: what is added to the magnitude makes every digit but the topmost too large by half its range.
/// Those digits lie from -2^(bits-1) to 2^(bits-1) - 1, the topmost one from 0 to 2^(bits-1).
#[derive(Clone, Copy)]
pub(crate) struct Raised {
    bits: usize,
    offset: Limbs,
}

/// The size of a digit of at most 14 bits times two, and one more if it is negative.
pub(crate) type Digit = u16;

impl Raised {
    /// For digits of so many bits.
    pub(crate) fn new(bits: usize) -> Self {
        let mut offset = [0; 4];
        for position in 0..digits_of(bits) - 1 {
            let bit = position * bits + bits - 1;
            offset[bit / 64] |= 1 << (bit % 64);
        }
        Self { bits, offset }
    }

    /// The digits, lowest first.
    #[inline]
    pub(crate) fn digits(self, scalar: Signed) -> impl Iterator<Item = Digit> {
        let Self { bits, offset } = self;
        let number = add(&scalar.magnitude, &offset).0;
        let negative = scalar.negative;
        (0..digits_of(bits)).map(move |position| {
            let raised = position + 1 < digits_of(bits);
            let raise = i32::from(raised) << (bits - 1);
            let digit = window(&number, position * bits, bits) as i32 - raise;
            (digit.unsigned_abs() << 1) as Digit | Digit::from(negative != (digit < 0))
        })
    }
}

/// Number of bits up to the highest one.
pub(crate) fn length(limbs: &Limbs) -> usize {
    (0..4)
        .rev()
        .find(|&i| limbs[i] != 0)
        .map_or(0, |i| 64 * i + 64 - limbs[i].leading_zeros() as usize)
}
