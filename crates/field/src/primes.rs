//! The two primes.

use crate::limbs::Limbs;
use crate::mulx;
use crate::{Base, Modulus, Scalar};

impl Modulus for Base {
    const MODULUS: Limbs = [
        0xffff_ffff_0000_0001,
        0x53bd_a402_fffe_5bfe,
        0x3339_d808_09a1_d805,
        0x73ed_a753_299d_7d48,
    ];
    const NAME: &'static str = "Fp";

    #[inline(always)]
    unsafe fn mul_mulx(a: &Limbs, b: &Limbs) -> Limbs {
        // SAFETY: this function's contract.
        unsafe { mulx::mul_base(a, b) }
    }
}

impl Modulus for Scalar {
    const MODULUS: Limbs = [
        0x74fd_06b5_2876_e7e1,
        0xff8f_8700_7419_0471,
        0x0cce_7602_0268_7600,
        0x1cfb_69d4_ca67_5f52,
    ];
    const NAME: &'static str = "Fr";

    #[inline(always)]
    unsafe fn mul_mulx(a: &Limbs, b: &Limbs) -> Limbs {
        // SAFETY: this function's contract.
        unsafe { mulx::mul_scalar(a, b) }
    }
}
