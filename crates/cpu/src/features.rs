//! Instructions beyond those that every processor of a backend has.

#[cfg(target_arch = "x86_64")]
use std::env;

/// Environment variable: set to `adx`, it makes [`Features::of_processor`] deny `mulx_adx`, so that the code for processors without
/// it is what runs. Emulators are known that compute `adox` wrongly.
pub const WITHOUT_VARIABLE: &str = "ARBOR_WITHOUT";

/// What this processor can do and its operating system saves the registers for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `mulx` (BMI2) with `adcx` and `adox` (ADX): 64-bit multiplication with two chains of carries. Intel since Broadwell, AMD since Zen.
    pub mulx_adx: bool,
    /// AVX-512 with 52-bit multiply-add (IFMA) and the DQ, VL and VBMI2 extensions. Intel since Ice Lake, AMD since Zen 4.
    pub avx512_ifma: bool,
}

impl Features {
    /// Asks the processor, and [`WITHOUT_VARIABLE`] what of it to leave unused.
    ///
    /// # Panics
    ///
    /// If the variable names anything else.
    #[must_use]
    #[cfg(target_arch = "x86_64")]
    pub fn of_processor() -> Self {
        Self {
            mulx_adx: is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("adx")
                && !is_adx_unwanted(),
            avx512_ifma: is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vbmi2")
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

#[cfg(target_arch = "x86_64")]
fn is_adx_unwanted() -> bool {
    match env::var_os(WITHOUT_VARIABLE) {
        None => false,
        Some(what) if what == "adx" => true,
        Some(what) => panic!(
            "{WITHOUT_VARIABLE} can be \"adx\", not {:?}",
            what.to_string_lossy()
        ),
    }
}
