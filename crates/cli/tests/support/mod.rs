//! Running the binary in a temporary folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// What a command did.
pub(crate) struct Run(pub(crate) Output);

impl Run {
    pub(crate) fn ok(&self) -> &Self {
        assert!(
            self.0.status.success(),
            "{}\n{}",
            self.stdout(),
            self.stderr()
        );
        self
    }

    /// Asserts a failure whose message has all the words, and no panic.
    pub(crate) fn fails_with(&self, words: &[&str]) -> &Self {
        let stderr = self.stderr();
        assert!(!self.0.status.success(), "succeeded: {}", self.stdout());
        assert!(!stderr.contains("panicked"), "{stderr}");
        for word in words {
            assert!(stderr.contains(word), "'{word}' is not in: {stderr}");
        }
        self
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.0.stdout).expect("JSON on standard output")
    }
}

/// Copies a folder with its subfolders; holes stay holes.
pub(crate) fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp")
        .args(["-a", "--sparse=always"])
        .arg(from)
        .arg(to)
        .status();
    assert!(done.expect("cp runs").success());
}

/// Flips a bit of one byte of a file.
pub(crate) fn flip(path: &Path, place: usize) {
    let mut bytes = std::fs::read(path).expect("read");
    bytes[place] ^= 0x20;
    std::fs::write(path, bytes).expect("write");
}

/// The binary, without what the environment says of databases.
fn arbor() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
    for name in ["ARBOR_DB", "ARBOR_MEMORY", "COLUMNS", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}

/// A temporary folder in which commands run.
pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    /// A folder with the tiny generated chain in `chain/`.
    pub(crate) fn with_chain() -> Self {
        let folder = Self::new();
        folder
            .run(&["generate", "--preset", "tiny", "--out", "chain"])
            .ok();
        folder
    }

    /// Counts the accounts of a database's latest block, and their slots, in a dump.
    pub(crate) fn accounts_and_slots(&self, db: &str) -> (u64, u64) {
        let dump = self.run(&["dump", "--db", db]).ok().stdout();
        let slots = dump.lines().skip(1).map(|account| {
            let account: Value = serde_json::from_str(account).expect("JSON");
            let slots = account["storage"].as_object();
            slots.map_or(0, |slots| slots.len() as u64)
        });
        let slots: Vec<u64> = slots.collect();
        (slots.len() as u64, slots.iter().sum())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run(arbor()
            .args(args)
            .current_dir(self.0.path())
            .output()
            .expect("the binary runs"))
    }

    /// Runs a command as a terminal of this width would show it.
    pub(crate) fn run_in_columns(&self, columns: usize, args: &[&str]) -> Run {
        Run(arbor()
            .args(args)
            .env("COLUMNS", columns.to_string())
            .current_dir(self.0.path())
            .output()
            .expect("the binary runs"))
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Run {
        let file = self.0.path().join("standard input");
        std::fs::write(&file, input).expect("written");
        Run(arbor()
            .args(args)
            .current_dir(self.0.path())
            .stdin(std::fs::File::open(file).expect("it is there"))
            .output()
            .expect("the binary runs"))
    }

    pub(crate) fn status(&self, db: &str) -> Value {
        self.run(&["status", "--db", db, "--json"]).ok().json()
    }
}

/// An account of the database `db` that has storage, and one of its slots.
pub(crate) fn an_account(folder: &Folder) -> (String, String) {
    an_account_of(folder, "db")
}

/// An account of a database that has storage, and one of its slots.
pub(crate) fn an_account_of(folder: &Folder, db: &str) -> (String, String) {
    let dump = folder.run(&["dump", "--db", db]).ok().stdout();
    let with_storage: Value = dump
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"))
        .find(|account| account.get("storage").is_some())
        .expect("an account with storage");
    let slot = with_storage["storage"]
        .as_object()
        .and_then(|slots| slots.keys().next().cloned());
    (
        with_storage["address"].as_str().expect("address").into(),
        slot.expect("a slot"),
    )
}

/// The lines that `arbor roots` prints of a database.
pub(crate) fn roots(folder: &Folder, db: &str) -> Vec<String> {
    let text = folder.run(&["roots", "--db", db]).ok().stdout();
    text.lines().map(str::to_owned).collect()
}

/// A file or folder of the test data; none, after recording that the test is skipped, if it is not there.
pub(crate) fn shared(name: &str, test: &str) -> Option<PathBuf> {
    arbor_testdata::find(test, name)
}
