//! `fuzz/run.sh` with a program in the place of libFuzzer.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Fails on the target `bad` as libFuzzer does after a panic: with exit code 77, and its input beside it.
const FUZZER: &str = "#!/bin/sh
for word; do case $word in -artifact_prefix=*) prefix=${word#*=};; esac; done
if [ \"$ARBOR_FUZZ_TARGET\" = bad ]; then
    echo \"thread '<unnamed>' panicked at targets.rs:1: planted\" >&2
    echo x >\"${prefix}crash-1\"
    exit 77
fi
echo 'Done 7 runs in 1 second(s)'
";

fn run(folder: &Path, targets: &[&str]) -> Output {
    let fuzzer = folder.join("fuzzer");
    std::fs::write(&fuzzer, FUZZER).expect("written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&fuzzer, mode).expect("made a program");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/run.sh");
    let mut command = Command::new("bash");
    command.arg(script).arg("1").args(targets);
    command.env("ARBOR_FUZZER", &fuzzer);
    command.env("ARBOR_FUZZ_FOLDER", folder);
    command.output().expect("bash runs")
}

/// A crash ended the script with 0: `|| true` was for the filter of the output.
#[test]
fn a_planted_panic_ends_fuzzing_with_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for target in ["bad", "good", "well"] {
        std::fs::create_dir_all(folder.path().join("corpus").join(target)).expect("made");
    }
    let all = run(folder.path(), &[]);
    let (out, err) = (
        String::from_utf8_lossy(&all.stdout),
        String::from_utf8_lossy(&all.stderr),
    );
    assert_eq!(all.status.code(), Some(1), "{out}{err}");
    assert!(err.contains("failed: bad;"), "{err}");
    assert!(out.contains("planted"), "{out}");
    // The others are fuzzed all the same.
    assert_eq!(out.matches("Done 7 runs").count(), 2, "{out}");
    assert!(folder.path().join("artifacts/bad/crash-1").exists());
    let good = run(folder.path(), &["good", "well"]);
    assert!(good.status.success(), "{good:?}");
}
