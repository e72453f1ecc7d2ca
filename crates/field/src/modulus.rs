//! What a prime is to the arithmetic, and the constants that follow from it.

use crate::limbs::{self, Limbs};

/// An odd prime below 2^255, and what Montgomery arithmetic modulo it needs.
///
/// Everything but [`Self::MODULUS`] and the names is computed from it at compile time.
pub trait Modulus: Copy + Eq + Ord + Default + std::hash::Hash + Send + Sync + 'static {
    /// The prime, least significant limb first.
    const MODULUS: Limbs;
    /// How error messages and `Debug` call the field.
    const NAME: &'static str;
    /// Number of bits of the prime: 255 or 253.
    const BITS: u32 = 256 - Self::MODULUS[3].leading_zeros();
    /// The prime less one, halved.
    const HALF: Limbs = limbs::halve(Self::MODULUS);
    /// -1/prime modulo 2^64.
    const NEGATIVE_INVERSE: u64 = limbs::inverse_mod_word(Self::MODULUS[0]).wrapping_neg();
    /// 2^256 modulo the prime: one in Montgomery form.
    const R: Limbs = limbs::power_of_two(256, &Self::MODULUS);
    /// 2^512 modulo the prime: what brings into Montgomery form.
    const R2: Limbs = limbs::power_of_two(512, &Self::MODULUS);

    /// Multiplies in Montgomery form with `mulx`, `adcx` and `adox`.
    ///
    /// # Safety
    ///
    /// The processor has BMI2 and ADX.
    #[doc(hidden)]
    unsafe fn mul_mulx(a: &Limbs, b: &Limbs) -> Limbs;
}

/// The scalar field of BLS12-381, over which Banderwagon's curve is defined. Two-adicity 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Base;

/// The scalar field of Banderwagon: its prime is the group's order. Two-adicity 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scalar;
