//! What this build of arbor is.

use std::sync::LazyLock;

use arbor_cpu::Backend;

/// The parts of a build.
pub(crate) struct Build {
    /// The package's version.
    pub(crate) version: &'static str,
    /// The commit, with `-dirty` if tracked files had changes.
    pub(crate) commit: &'static str,
    /// Cargo features that are switched on.
    pub(crate) features: &'static str,
    /// The processor instructions that are computed with.
    pub(crate) backend: &'static str,
}

/// Returns what this build is, on this processor.
pub(crate) fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("ARBOR_COMMIT").unwrap_or("unknown"),
        features: match cfg!(feature = "rocksdb") {
            true => "rocksdb",
            false => "none",
        },
        // A name in the environment that is none is reported when a command begins.
        backend: match crate::check_backend() {
            Ok(()) => Backend::detect().name(),
            Err(_) => "unknown",
        },
    }
}

/// The text of `arbor --version`, below the program's name.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let Build {
        version,
        commit,
        features,
        backend,
    } = build();
    let compiler = option_env!("ARBOR_RUSTC").unwrap_or("rustc unknown");
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!(
        "{version}\ncommit    {commit}\ncompiler  {compiler}\nfeatures  {features}\nbackend   {backend} ({arch}, {os})"
    )
});

/// Returns the text of `arbor --version`.
pub(crate) fn text() -> &'static str {
    &TEXT
}
