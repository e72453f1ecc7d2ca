//! Records the commit and the compiler of the build, for `arbor --version` and the report envelope.
//!
//! Only this crate does, at the top of the layers: further down, each commit would recompile everything above.

use std::{path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // What moves when a commit is made or another branch is checked out; in a linked worktree it lies elsewhere.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = output("git", &["rev-parse", "--git-path", name])
            && Path::new(&path).exists()
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    if let Some(commit) = output("git", &["rev-parse", "--short=12", "HEAD"]) {
        let changed = output("git", &["status", "--porcelain", "--untracked-files=no"]);
        let suffix = if changed.is_some() { "-dirty" } else { "" };
        println!("cargo::rustc-env=ARBOR_COMMIT={commit}{suffix}");
    }
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    if let Some(version) = output(&compiler, &["--version"]) {
        println!("cargo::rustc-env=ARBOR_RUSTC={version}");
    }
}

/// What a program prints, trimmed; `None` if it cannot be run, fails, or prints nothing.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?.trim().to_owned();
    (done.status.success() && !text.is_empty()).then_some(text)
}
