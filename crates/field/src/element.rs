//! One residue in Montgomery form, and its arithmetic.

use crate::{
    Modulus, inverse,
    limbs::{self, Limbs},
    mulx::mul,
    portable,
};
use std::{
    fmt,
    iter::{Product, Sum},
    marker::PhantomData,
    ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign},
};

/// A residue modulo `M`'s prime: `value * 2^256`, always fully reduced, so that equal residues have equal limbs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Element<M> {
    limbs: Limbs,
    field: PhantomData<M>,
}

/// Bytes that are not the canonical encoding of an element: the number is not below the prime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number is not below the prime of {field}")]
pub struct NotReduced {
    /// [`Modulus::NAME`].
    pub field: &'static str,
}

impl<M: Modulus> Element<M> {
    /// The neutral element of addition.
    pub const ZERO: Self = Self::from_montgomery([0; 4]);
    /// The neutral element of multiplication.
    pub const ONE: Self = Self::from_montgomery(M::R);

    /// Takes limbs that are already in Montgomery form and reduced.
    #[inline(always)]
    pub(crate) const fn from_montgomery(limbs: Limbs) -> Self {
        Self {
            limbs,
            field: PhantomData,
        }
    }

    /// `value * 2^256` modulo the prime, least significant limb first: the form in memory.
    #[inline(always)]
    #[must_use]
    pub const fn montgomery(&self) -> &Limbs {
        &self.limbs
    }

    #[inline(always)]
    pub(crate) const fn to_montgomery(self) -> Limbs {
        self.limbs
    }

    /// From a number below the prime, at compile time.
    ///
    /// # Panics
    ///
    /// If it is not below the prime.
    #[must_use]
    pub const fn constant(number: Limbs) -> Self {
        assert!(limbs::less(&number, &M::MODULUS));
        Self::from_montgomery(portable::mul::<M>(&number, &M::R2))
    }

    /// From a number of 256 bits, modulo the prime.
    #[inline]
    #[must_use]
    pub fn reduced(number: Limbs) -> Self {
        // Below 2^256 the second factor may be anything.
        Self::from_montgomery(mul::<M>(&M::R2, &number))
    }

    /// The residue as a number below the prime, least significant limb first.
    #[inline]
    #[must_use]
    pub fn to_limbs(self) -> Limbs {
        mul::<M>(&self.limbs, &[1, 0, 0, 0])
    }

    /// From 32 bytes, least significant first, modulo the prime.
    #[must_use]
    pub fn from_le_bytes_reduced(bytes: &[u8; 32]) -> Self {
        Self::reduced(limbs::from_le_bytes(bytes))
    }

    /// From the canonical encoding in 32 bytes, least significant first.
    ///
    /// # Errors
    ///
    /// [`NotReduced`] if the number is not below the prime.
    pub fn from_le_bytes(bytes: &[u8; 32]) -> Result<Self, NotReduced> {
        let number = limbs::from_le_bytes(bytes);
        if limbs::less(&number, &M::MODULUS) {
            Ok(Self::from_montgomery(mul::<M>(&number, &M::R2)))
        } else {
            Err(NotReduced { field: M::NAME })
        }
    }

    /// From the canonical encoding in 32 bytes, most significant first.
    ///
    /// # Errors
    ///
    /// [`NotReduced`] if the number is not below the prime.
    pub fn from_be_bytes(bytes: &[u8; 32]) -> Result<Self, NotReduced> {
        let mut reversed = *bytes;
        reversed.reverse();
        Self::from_le_bytes(&reversed)
    }

    /// From 16 bytes, least significant first: half of a leaf's value.
    #[inline]
    #[must_use]
    pub fn from_le_half(bytes: &[u8; 16]) -> Self {
        Self::from(u128::from_le_bytes(*bytes))
    }

    /// The canonical encoding, least significant byte first.
    #[must_use]
    pub fn to_le_bytes(self) -> [u8; 32] {
        limbs::to_le_bytes(&self.to_limbs())
    }

    /// The canonical encoding, most significant byte first.
    #[must_use]
    pub fn to_be_bytes(self) -> [u8; 32] {
        let mut bytes = self.to_le_bytes();
        bytes.reverse();
        bytes
    }

    /// Whether this is zero.
    #[inline(always)]
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.limbs[0] | self.limbs[1] | self.limbs[2] | self.limbs[3] == 0
    }

    /// Whether the number is above (prime - 1) / 2: the larger one of it and its negative.
    #[inline]
    #[must_use]
    pub fn is_large(self) -> bool {
        limbs::less(&M::HALF, &self.to_limbs())
    }

    /// Twice.
    #[inline(always)]
    #[must_use]
    pub fn double(self) -> Self {
        self + self
    }

    /// The square.
    #[inline(always)]
    #[must_use]
    pub fn square(self) -> Self {
        self * self
    }

    /// The square of the square and so on, `count` times.
    #[inline]
    #[must_use]
    pub fn square_times(mut self, count: usize) -> Self {
        for _ in 0..count {
            self = self.square();
        }
        self
    }

    /// Raises to a power, by squaring and multiplying: for tests and constants.
    #[must_use]
    pub fn pow(self, exponent: &Limbs) -> Self {
        (0..256).rev().fold(Self::ONE, |power, bit| {
            let power = power.square();
            if exponent[bit / 64] >> (bit % 64) & 1 == 1 {
                power * self
            } else {
                power
            }
        })
    }

    /// The multiplicative inverse; zero's is said to be zero.
    ///
    /// By division steps, in time that depends on the value.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self::from_montgomery(inverse::modulo::<M>(&self.limbs))
    }

    /// 1 for a square other than zero, 0 for zero, -1 else; by division steps, without exponentiation.
    #[must_use]
    pub fn legendre(self) -> i32 {
        // 2^256 is a square, so that Montgomery form has the value's symbol.
        inverse::jacobi::<M>(&self.limbs).unwrap_or_else(|| self.legendre_by_power())
    }

    /// As [`Self::legendre`], by Euler's criterion: where the division steps do not end in time, and in tests.
    #[must_use]
    pub fn legendre_by_power(self) -> i32 {
        let power = self.pow(&M::HALF);
        if power.is_zero() {
            0
        } else if power == Self::ONE {
            1
        } else {
            -1
        }
    }
}

impl<M: Modulus> Add for Element<M> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        // Below twice the prime, which is below 2^256.
        let (sum, _) = limbs::add(&self.limbs, &other.limbs);
        Self::from_montgomery(limbs::reduce_once(&sum, &M::MODULUS))
    }
}

impl<M: Modulus> Sub for Element<M> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let (difference, borrow) = limbs::sub(&self.limbs, &other.limbs);
        let mask = borrow.wrapping_neg();
        let m = &M::MODULUS;
        let correction = [m[0] & mask, m[1] & mask, m[2] & mask, m[3] & mask];
        Self::from_montgomery(limbs::add(&difference, &correction).0)
    }
}

impl<M: Modulus> Neg for Element<M> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

impl<M: Modulus> Mul for Element<M> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::from_montgomery(mul::<M>(&self.limbs, &other.limbs))
    }
}

impl<M: Modulus> AddAssign for Element<M> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<M: Modulus> SubAssign for Element<M> {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<M: Modulus> MulAssign for Element<M> {
    #[inline(always)]
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

impl<M: Modulus> Sum for Element<M> {
    fn sum<I: Iterator<Item = Self>>(elements: I) -> Self {
        elements.fold(Self::ZERO, Add::add)
    }
}

impl<M: Modulus> Product for Element<M> {
    fn product<I: Iterator<Item = Self>>(elements: I) -> Self {
        elements.fold(Self::ONE, Mul::mul)
    }
}

impl<M: Modulus> Default for Element<M> {
    fn default() -> Self {
        Self::ZERO
    }
}

impl<M: Modulus> From<u64> for Element<M> {
    #[inline]
    fn from(number: u64) -> Self {
        Self::from_montgomery(mul::<M>(&[number, 0, 0, 0], &M::R2))
    }
}

impl<M: Modulus> From<u128> for Element<M> {
    #[inline]
    fn from(number: u128) -> Self {
        let limbs = [number as u64, (number >> 64) as u64, 0, 0];
        Self::from_montgomery(mul::<M>(&limbs, &M::R2))
    }
}

impl<M: Modulus> fmt::Debug for Element<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(0x", M::NAME)?;
        for byte in self.to_be_bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}
