//! Records the file operations of a command with `strace`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::crashes::chain::Chain;
use crate::crashes::unsynced::{Disk, Operation};

/// The calls that change files. Those of other architectures are optional.
const CALLS: &str = "openat,write,writev,pwrite64,ftruncate,fallocate,lseek,fsync,fdatasync,renameat2,linkat,mkdirat,\
                     unlinkat,?creat,?rename,?renameat,?link,?mkdir,?unlink,?rmdir";

/// Runs a command and returns its operations on the folder `db`.
pub(crate) fn record(chain: &Chain, words: &[&str]) -> Vec<Operation> {
    let here = chain.path("").canonicalize().expect("a folder");
    let trace = chain.path("trace");
    let mut command = Command::new("strace");
    // Whole calls that succeed, all bytes in hexadecimal, and each descriptor with its path.
    command
        .args(["-f", "-z", "-xx", "-y", "-s", "100000000", "-o"])
        .arg(&trace);
    command.args(["-e", &format!("trace={CALLS}")]);
    command
        .arg(env!("CARGO_BIN_EXE_arbor"))
        .args(words)
        .current_dir(&here);
    let output = command.output().expect("strace runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = fs::read_to_string(trace).expect("a trace");
    // With `-z` a call is written at its end, and the rest of an interrupted line follows at once.
    let text = text.replace(" <unfinished ...>\n", "");
    let mut recorder = Recorder {
        here,
        ..Recorder::default()
    };
    for line in text.lines().filter(|line| line.contains('(')) {
        recorder.call(&Call::parse(line));
    }
    recorder.operations
}

/// A system call in a line of `strace`.
struct Call<'a> {
    name: &'a str,
    /// The arguments without strings and paths of descriptors.
    rest: String,
    strings: Vec<Vec<u8>>,
    /// The paths of descriptors, the result's last.
    paths: Vec<PathBuf>,
    result: usize,
}

impl<'a> Call<'a> {
    fn parse(line: &'a str) -> Self {
        let (before, arguments) = line.split_once('(').expect("a call");
        let (mut rest, mut strings, mut paths) = (String::new(), Vec::new(), Vec::new());
        for (place, part) in arguments.split('"').enumerate() {
            if place % 2 == 1 {
                strings.push(decoded(part));
                continue;
            }
            for piece in part.split('<') {
                let (path, piece) = piece.split_once('>').unwrap_or(("", piece));
                rest.push_str(piece);
                if !path.is_empty() {
                    paths.push(String::from_utf8_lossy(&decoded(path)).into_owned().into());
                }
            }
        }
        let (_, result) = rest.rsplit_once(" = ").expect("a result");
        Self {
            name: before.rsplit(' ').next().expect("a name"),
            result: result.trim().parse().expect("a number"),
            rest,
            strings,
            paths,
        }
    }

    fn descriptor(&self) -> usize {
        let (descriptor, _) = self.rest.split_once([',', ')']).expect("arguments");
        descriptor.trim().parse().expect("a descriptor")
    }
}

/// Bytes in hexadecimal, each after `\x`.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.split("\\x").filter(|digits| !digits.is_empty());
    bytes
        .map(|digits| u8::from_str_radix(digits, 16).unwrap_or(b'?'))
        .collect()
}

/// Translates calls into operations.
#[derive(Default)]
struct Recorder {
    here: PathBuf,
    operations: Vec<Operation>,
    /// The disk, of which only the names are kept.
    disk: Disk,
    /// Where descriptors stand.
    offsets: HashMap<usize, usize>,
    files: usize,
}

impl Recorder {
    /// A path from the recorder's folder, if it is this folder, the database, or in it.
    fn ours(&self, path: &Path) -> Option<PathBuf> {
        let path = self.here.join(path);
        let path = path.strip_prefix(&self.here).ok()?;
        let first = path.components().next();
        (first.is_none() || path.starts_with("db")).then(|| path.to_owned())
    }

    /// The paths that are a call's arguments.
    fn named(&self, call: &Call<'_>) -> Option<Vec<PathBuf>> {
        let paths = call.strings.iter().enumerate().map(|(place, string)| {
            let string = String::from_utf8_lossy(string).into_owned();
            let base = call.paths.get(place).unwrap_or(&self.here);
            self.ours(&base.join(string))
        });
        paths.collect()
    }

    fn call(&mut self, call: &Call<'_>) {
        match call.name {
            "openat" => self.open(call),
            "mkdir" | "mkdirat" | "rename" | "renameat" | "renameat2" | "unlink" | "unlinkat"
            | "rmdir" => {
                let Some(paths) = self.named(call) else {
                    return;
                };
                self.push(match (call.name, &paths[..]) {
                    ("mkdir" | "mkdirat", [path]) => Operation::MakeFolder(path.clone()),
                    (_, [path]) => Operation::Remove(path.clone()),
                    (_, [from, to]) => Operation::Rename {
                        from: from.clone(),
                        to: to.clone(),
                    },
                    _ => panic!("{}: {paths:?}", call.name),
                });
            }
            _ => self.use_descriptor(call),
        }
    }

    fn open(&mut self, call: &Call<'_>) {
        self.offsets.insert(call.result, 0);
        let Some(path) = call.paths.last().and_then(|path| self.ours(path)) else {
            return;
        };
        assert!(!call.rest.contains("O_APPEND"), "{}", path.display());
        match self.disk.names.get(&path) {
            Some(&file) if call.rest.contains("O_TRUNC") => {
                self.push(Operation::Resize { file, length: 0 });
            }
            None if call.rest.contains("O_CREAT") => {
                self.files += 1;
                let file = self.files;
                self.push(Operation::MakeFile { path, file });
            }
            _ => {}
        }
    }

    fn use_descriptor(&mut self, call: &Call<'_>) {
        let Some(path) = call.paths.first().and_then(|path| self.ours(path)) else {
            return;
        };
        let Some(&file) = self.disk.names.get(&path) else {
            if call.name == "fsync" {
                self.push(Operation::SyncFolder(path));
            }
            return;
        };
        let offset = self.offsets.entry(call.descriptor()).or_default();
        let operation = match call.name {
            "lseek" => {
                *offset = call.result;
                return;
            }
            "write" | "writev" => {
                let at = *offset;
                *offset += call.result;
                let mut bytes = call.strings.concat();
                assert!(bytes.len() >= call.result, "the trace has all bytes");
                bytes.truncate(call.result);
                Operation::Write { file, at, bytes }
            }
            "ftruncate" => {
                let length = call.rest.split([',', ')']).nth(1).expect("a length");
                Operation::Resize {
                    file,
                    length: length.trim().parse().expect("a number"),
                }
            }
            "fsync" | "fdatasync" => Operation::SyncFile(file),
            other => panic!("the model of a disk does not know {other}"),
        };
        self.push(operation);
    }

    fn push(&mut self, operation: Operation) {
        if !matches!(
            operation,
            Operation::Write { .. } | Operation::Resize { .. }
        ) {
            self.disk.apply(&operation);
        }
        self.operations.push(operation);
    }
}
