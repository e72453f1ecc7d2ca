//! The machine on which a figure was measured.

use crate::process::{kib_field, text_field};
use serde::{Deserialize, Serialize};

/// Instruction set extensions worth naming beside a figure, as Linux spells them.
const SIMD_FEATURES: [&str; 16] = [
    "ssse3",
    "sse4_1",
    "avx",
    "avx2",
    "bmi2",
    "adx",
    "sha_ni",
    "gfni",
    "vaes",
    "avx512f",
    "avx512vl",
    "avx512ifma",
    "asimd",
    "sha2",
    "sha3",
    "sve",
];

/// A description of the hardware and operating system; it decides nothing.
///
/// Which instructions are used is the hashing crate's choice at run time. This is what the operating system shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor model as the operating system names it; `None` where it does not.
    pub cpu: Option<String>,
    /// Hardware threads this process may use.
    pub cores: Option<usize>,
    /// Memory of the whole machine, in bytes.
    pub memory_bytes: Option<u64>,
    /// Vector and cryptographic instruction sets offered, in the order of age; empty where unknown.
    pub simd: Vec<String>,
    /// Operating system and its release, for example `Linux 6.1.0`.
    pub os: String,
    /// Architecture the program was compiled for, for example `x86_64`.
    pub arch: String,
}

impl Machine {
    /// Describes the machine this process runs on, from `/proc` where that exists.
    pub fn detect() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let release = read("/proc/sys/kernel/osrelease");
        Self {
            cpu: cpu_model(&cpuinfo),
            cores: std::thread::available_parallelism().ok().map(usize::from),
            memory_bytes: kib_field(&read("/proc/meminfo"), "MemTotal"),
            simd: simd_features(&cpuinfo),
            os: os_name(release.trim()),
            arch: std::env::consts::ARCH.to_owned(),
        }
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    text_field(cpuinfo, "model name").map(str::to_owned)
}

/// The known features in a `/proc/cpuinfo`: line `flags` on x86, `Features` on Arm.
fn simd_features(cpuinfo: &str) -> Vec<String> {
    let offered: Vec<&str> = text_field(cpuinfo, "flags")
        .or_else(|| text_field(cpuinfo, "Features"))
        .unwrap_or_default()
        .split_ascii_whitespace()
        .collect();
    SIMD_FEATURES
        .iter()
        .filter(|name| offered.contains(name))
        .map(|&name| name.to_owned())
        .collect()
}

fn os_name(linux_release: &str) -> String {
    if linux_release.is_empty() {
        std::env::consts::OS.to_owned()
    } else {
        format!("Linux {linux_release}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpuinfo_of_both_architectures_is_understood() {
        let x86 = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx2 avx sse4_10\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("Some CPU"));
        assert_eq!(simd_features(x86), ["avx", "avx2"]);

        let arm = "processor\t: 0\nFeatures\t: fp asimd sha2\n";
        assert_eq!(cpu_model(arm), None);
        assert_eq!(simd_features(arm), ["asimd", "sha2"]);
        assert!(simd_features("").is_empty());
    }

    #[test]
    fn a_machine_without_proc_still_has_a_name() {
        assert_eq!(os_name(""), std::env::consts::OS);
        assert_eq!(os_name("6.1.0-x"), "Linux 6.1.0-x");
    }
}
