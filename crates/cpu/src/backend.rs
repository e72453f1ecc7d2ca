//! The one place where the instructions to compute with are chosen.

use std::{env, fmt, str::FromStr, sync::OnceLock};

/// Environment variable that overrides [`Backend::detect`]: `portable`, `avx2` or `avx512`.
pub const BACKEND_VARIABLE: &str = "ARBOR_BACKEND";

/// A set of instructions for which the project has code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    /// Plain Rust with whatever the compiler's target has, without wide registers or assembly. The reference.
    Portable,
    /// x86-64 with AVX2, BMI1 and BMI2 (Intel since Haswell, AMD since Zen): four 64-bit lanes.
    Avx2,
    /// As [`Self::Avx2`], and AVX-512F: eight 64-bit lanes.
    Avx512,
}

/// A backend that the processor cannot run, or that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedBackend {
    /// Some instructions of this backend are missing from the processor, or the operating system does not save its registers.
    #[error(
        "this processor cannot run the backend '{0}'; it can run: {available}",
        available = list_available()
    )]
    Missing(Backend),
    /// Not the name of a backend.
    #[error("'{0}' is not a backend; there are: portable, avx2, avx512")]
    Unknown(String),
}

impl Backend {
    /// All backends, narrowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The backend that this process uses wherever none is named: the widest that the processor
    /// has, or the one that [`BACKEND_VARIABLE`] names. Decided at the first call.
    ///
    /// # Panics
    ///
    /// If [`BACKEND_VARIABLE`] holds no backend's name, or one that the processor cannot run. Whoever
    /// sets it wants that backend measured or tested, and falling back would spoil the result.
    #[must_use]
    pub fn detect() -> Self {
        static CHOICE: OnceLock<Backend> = OnceLock::new();
        *CHOICE.get_or_init(|| match env::var_os(BACKEND_VARIABLE) {
            None => Self::widest(),
            Some(name) => match Self::named(&name.to_string_lossy()) {
                Ok(backend) => backend,
                Err(error) => panic!("{BACKEND_VARIABLE}: {error}"),
            },
        })
    }

    /// The backends that this processor can run, narrowest first; never empty.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .filter(|backend| backend.is_available())
    }

    /// Whether this processor has the instructions, and the operating system saves their registers.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Avx2 => has_avx2(),
            Self::Avx512 => has_avx512(),
        }
    }

    /// The name that [`BACKEND_VARIABLE`] and reports use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    fn widest() -> Self {
        Self::available().last().unwrap_or(Self::Portable)
    }

    fn named(name: &str) -> Result<Self, UnsupportedBackend> {
        let backend: Self = name.parse()?;
        if backend.is_available() {
            Ok(backend)
        } else {
            Err(UnsupportedBackend::Missing(backend))
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parses [`Backend::name`]; says nothing about the processor.
impl FromStr for Backend {
    type Err = UnsupportedBackend;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|backend| backend.name() == name)
            .ok_or_else(|| UnsupportedBackend::Unknown(name.to_owned()))
    }
}

fn list_available() -> String {
    let names: Vec<_> = Backend::available().map(Backend::name).collect();
    names.join(", ")
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2() && is_x86_feature_detected!("avx512f")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx512() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for backend in Backend::ALL {
            assert_eq!(backend.to_string().parse(), Ok(backend));
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
        let error = Backend::named("sse9").expect_err("there is no such backend");
        assert_eq!(
            error.to_string(),
            "'sse9' is not a backend; there are: portable, avx2, avx512"
        );
    }

    #[test]
    fn a_backend_is_named_exactly_if_it_can_run() {
        for backend in Backend::ALL {
            let expected = if backend.is_available() {
                Ok(backend)
            } else {
                Err(UnsupportedBackend::Missing(backend))
            };
            assert_eq!(Backend::named(backend.name()), expected);
        }
    }

    #[test]
    fn the_reference_runs_everywhere() {
        assert_eq!(Backend::available().next(), Some(Backend::Portable));
    }
}
