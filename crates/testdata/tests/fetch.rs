//! The script that fetches public test data, tried on a repository of this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The SHA-256 of "first\n" and of "second\n".
const FIRST: &str = "b640e840b19d378660b32fb51ae18d67dccb4a8596a29e7bd72c1b2ae5928f41";
const SECOND: &str = "480c2336b410f1ad5f8bf1b28944490255804b65350c527787e74ebdd511e3a4";

/// A folder with a repository `somebody/vectors`, in which a later commit has changed what the manifest lists.
struct Upstream {
    folder: tempfile::TempDir,
    commit: String,
}

fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
        .args(["-c", "commit.gpgsign=false", "-C"])
        .arg(folder)
        .args(words)
        .output()
        .expect("git runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {words:?}: {error}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.trim().to_owned()
}

/// Says whether the programs are here that the script needs, and records the test as skipped if not.
fn has_programs(test: &str) -> bool {
    for program in ["git", "python3"] {
        if Command::new(program).arg("--version").output().is_err() {
            arbor_testdata::skip(test, &format!("no {program}"));
            return false;
        }
    }
    true
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Upstream {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let repository = folder.path().join("somebody/vectors");
        std::fs::create_dir_all(repository.join("tests")).expect("made");
        let write = |name: &str, text: &str| {
            std::fs::write(repository.join(name), text).expect("written");
        };
        git(&repository, &["init", "-q"]);
        // As hosts of repositories do.
        git(&repository, &["config", "uploadpack.allowFilter", "true"]);
        let any = ["config", "uploadpack.allowAnySHA1InWant", "true"];
        git(&repository, &any);
        write("tests/one.txt", "first\n");
        write("two.txt", "second\n");
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "-q", "-m", "Add vectors"]);
        let commit = git(&repository, &["rev-parse", "HEAD"]);
        write("tests/one.txt", "changed\n");
        git(&repository, &["commit", "-q", "-a", "-m", "Change one"]);
        Self { folder, commit }
    }

    /// Runs the script with a manifest of two files, whose SHA-256 are given.
    fn fetch(&self, hashes: [&str; 2], words: &[&str]) -> Output {
        let [first, second] = hashes;
        let commit = &self.commit;
        let manifest = format!(
            "path\tform\tsha256\trepository\tcommit\tpath there\tlicence\n\
             vectors/a/one.txt\tas it is\t{first}\tsomebody/vectors\t{commit}\ttests/one.txt\tMIT\n\
             data/two.txt.gz\tgzip\t{second}\tsomebody/vectors\t{commit}\ttwo.txt\tMIT\n"
        );
        let file = self.folder.path().join("manifest.tsv");
        std::fs::write(&file, manifest).expect("written");
        let mut command = Command::new("python3");
        command.arg(root().join("scripts/fetch-testdata.py"));
        command.arg("--manifest").arg(&file);
        command.arg("--upstream").arg(self.folder.path());
        command.arg("--into").arg(self.place()).args(words);
        command.output().expect("the script runs")
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("into")
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        std::fs::read(self.place().join(name)).ok()
    }
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn files_of_the_commit_are_fetched_checked_and_kept() {
    if !has_programs("files_of_the_commit_are_fetched_checked_and_kept") {
        return;
    }
    let upstream = Upstream::new();
    let check = upstream.fetch([FIRST, SECOND], &["--check"]);
    let none = "0 files are there, 2 are not, 0 differ";
    assert!(
        check.status.success() && said(&check).contains(none),
        "{check:?}"
    );
    let fetched = upstream.fetch([FIRST, SECOND], &[]);
    assert!(fetched.status.success(), "{}", said(&fetched));
    assert_eq!(upstream.read("vectors/a/one.txt"), Some(b"first\n".into()));
    let packed = upstream.read("data/two.txt.gz").expect("fetched");
    assert_eq!(packed[..2], [0x1f, 0x8b]);
    // What is there is left, and what was changed is replaced.
    std::fs::write(upstream.place().join("vectors/a/one.txt"), "x").expect("written");
    let check = upstream.fetch([FIRST, SECOND], &["--check"]);
    let text = said(&check);
    assert_eq!(check.status.code(), Some(1));
    assert!(text.contains("vectors/a/one.txt: its SHA-256 is"), "{text}");
    assert!(
        text.contains("1 files are there, 0 are not, 1 differ"),
        "{text}"
    );
    let fetched = upstream.fetch([FIRST, SECOND], &["vectors/"]);
    assert!(fetched.status.success(), "{}", said(&fetched));
    assert_eq!(upstream.read("vectors/a/one.txt"), Some(b"first\n".into()));
    let again = upstream.fetch([FIRST, SECOND], &[]);
    assert!(said(&again).contains("2 of them were before"), "{again:?}");
}

#[test]
fn a_file_with_another_hash_is_refused() {
    if !has_programs("a_file_with_another_hash_is_refused") {
        return;
    }
    let upstream = Upstream::new();
    let fetched = upstream.fetch([SECOND, SECOND], &[]);
    let text = said(&fetched);
    assert_eq!(fetched.status.code(), Some(1), "{text}");
    assert!(
        text.contains(&format!("its SHA-256 is {FIRST}, expected {SECOND}")),
        "{text}"
    );
    assert_eq!(upstream.read("vectors/a/one.txt"), None);
    assert!(upstream.read("data/two.txt.gz").is_some());
}

/// The manifest and the files in the repository are of the same upstream.
#[test]
fn files_in_the_repository_are_those_of_the_manifest() {
    if !has_programs("files_in_the_repository_are_those_of_the_manifest") {
        return;
    }
    let mut command = Command::new("python3");
    command.arg(root().join("scripts/fetch-testdata.py"));
    let command = command
        .arg("--check")
        .arg("--into")
        .arg(root().join("testdata"));
    let output = command.output().expect("the script runs");
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    let there = text.split_whitespace().next().expect("a count");
    let there: usize = there.parse().expect("a count");
    assert!(there >= 30, "{text}");
}
