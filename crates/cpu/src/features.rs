//! Instructions beyond those that every processor of a backend has.

/// What this processor can do and its operating system saves the registers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `mulx` (BMI2) with `adcx` and `adox` (ADX): 64-bit multiplication with two chains of carries. Intel since Broadwell, AMD since Zen.
    pub mulx_adx: bool,
    /// AVX-512 with 52-bit multiply-add (IFMA) and the DQ and VL extensions. Intel since Ice Lake, AMD since Zen 4.
    pub avx512_ifma: bool,
}

impl Features {
    /// Asks the processor.
    #[must_use]
    #[cfg(target_arch = "x86_64")]
    pub fn of_processor() -> Self {
        Self {
            mulx_adx: is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("adx"),
            avx512_ifma: is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512ifma"),
        }
    }

    /// None: this is not x86-64.
    #[must_use]
    #[cfg(not(target_arch = "x86_64"))]
    pub fn of_processor() -> Self {
        Self {
            mulx_adx: false,
            avx512_ifma: false,
        }
    }
}
