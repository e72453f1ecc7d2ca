//! Commands for contributors. `cargo xtask test` runs all tests and says at the end how many passed, failed, and were
//! skipped, and why.
#![forbid(unsafe_code)]

mod summary;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use summary::Summary;

const HELP: &str = "\
Usage: cargo xtask test [ARGUMENTS FOR cargo test]...

Runs all tests of the workspace but the RocksDB store's, and lists those that failed and those that were
skipped. The last line is `N passed, N failed, N skipped`.

Exit codes: 0 all passed or were skipped, 1 a test failed or did not compile, 2 the command line is not understood.";

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    match words.next().as_deref().and_then(|word| word.to_str()) {
        Some("test") => match test(words.collect()) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("cargo xtask test: {error}");
                ExitCode::FAILURE
            }
        },
        Some("help" | "--help" | "-h") => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{HELP}");
            ExitCode::from(2)
        }
    }
}

/// Runs the tests with `arguments` for `cargo test`; returns whether all passed.
fn test(arguments: Vec<OsString>) -> std::io::Result<bool> {
    let skipped = skipped_file();
    // What an earlier run left, if its process had the same number.
    let _ = fs::remove_file(&skipped);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut run = Command::new(cargo)
        .args(["test", "--workspace", "--exclude", "arbor-store-rocksdb"])
        .arg("--no-fail-fast")
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .env("ARBOR_SKIPPED", &skipped)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut summary = Summary::default();
    if let Some(output) = run.stdout.take() {
        let mut reader = BufReader::new(output);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            std::io::stdout().write_all(&line)?;
            summary.read_line(&String::from_utf8_lossy(&line));
            line.clear();
        }
    }
    let passed = run.wait()?.success();
    let recorded = fs::read_to_string(&skipped).unwrap_or_default();
    let _ = fs::remove_file(&skipped);
    recorded.lines().for_each(|line| summary.read_skipped(line));
    println!("\n{}", summary.text(passed));
    Ok(passed)
}

/// Returns the file in which tests record that they are skipped.
fn skipped_file() -> PathBuf {
    let name = format!("arbor-skipped-{}", std::process::id());
    std::env::temp_dir().join(name)
}
