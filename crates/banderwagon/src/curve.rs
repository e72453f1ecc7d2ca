//! The curve's constants.

use arbor_field::{Base, Fp, Modulus};

/// d = 138827208126141220649022263972958607803 / 171449701953573178309673572579671231137 (SPECS, section 1; a = -5).
pub(crate) const D: Fp = Fp::constant([
    0xb369_f2f5_188d_58e7,
    0xcb66_6771_77e5_4f92,
    0xc66e_3bf8_6be3_b6d8,
    0x6389_c126_33c2_67cb,
]);

/// x of the generator.
pub(crate) const GENERATOR_X: Fp = Fp::constant([
    0xe1e7_1866_a252_ae18,
    0x2b79_c022_ad99_8465,
    0x7437_1177_7bbe_42f3,
    0x29c1_32cc_2c0b_34c5,
]);

/// y of the generator.
pub(crate) const GENERATOR_Y: Fp = Fp::constant([
    0x5e31_67b6_cc97_4166,
    0x358c_ad81_eee4_6460,
    0x157d_8b50_badc_d586,
    0x2a6c_669e_da12_3e0f,
]);

/// The constants of the same curve in short Weierstrass form, y^2 = x^3 + `linear` x + ..., as `short` explains.
pub(crate) struct Short {
    /// k = (a - d) / 4.
    pub(crate) scale: Fp,
    /// c = (a + d) / 6: the x coordinate of the point of order two, which stands for the neutral element.
    pub(crate) shift: Fp,
    /// The coefficient of x.
    pub(crate) linear: Fp,
}

impl Short {
    /// Computed once.
    pub(crate) fn get() -> &'static Self {
        static SHORT: std::sync::LazyLock<Short> = std::sync::LazyLock::new(|| {
            let a = -Fp::from(5u64);
            let scale = (a - D) * Fp::from(4u64).inverse();
            let shift = (a + D) * Fp::from(6u64).inverse();
            // From y^2 = x^3 + 3 c x^2 + k^2 x by x -> x - c: the linear coefficient is k^2 - 3 c^2.
            let linear = scale.square() - Fp::from(3u64) * shift.square();
            Short {
                scale,
                shift,
                linear,
            }
        });
        &SHORT
    }
}

/// 5 x, for -a x.
#[inline(always)]
pub(crate) fn times_five(x: Fp) -> Fp {
    let double = x + x;
    double + double + x
}

/// Number of bytes of a coordinate.
pub(crate) const BYTES: usize = 32;

const _: () = assert!(Base::BITS == 255);
