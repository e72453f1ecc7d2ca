//! A converted database that is kept level with its source while another process writes the source.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::support::{Folder, Run};

/// Longer than any step takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program under way, and the lines that it prints.
struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn begin(folder: &Folder, tree: &str) -> Self {
        let words = ["convert", "--memory", "64MiB", "--from", "db", "--to", "to"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_arbor"))
            .args(words)
            .args(["--follow", "--tree", tree])
            .current_dir(folder.0.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    fn wait_for(&self, what: &str) {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no line with '{what}'"));
            if line.contains(what) {
                return;
            }
        }
    }

    fn stop(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status();
        assert!(sent.expect("kill runs").success());
        self.child.wait().expect("ended")
    }
}

fn replay(folder: &Folder, db: &str, more: &[&str]) -> Run {
    let words = ["replay", "--memory", "64MiB", "--db", db, "chain"];
    folder.run(&[&words[..], more].concat())
}

fn dump(folder: &Folder, db: &str) -> Vec<String> {
    let text = folder.run(&["dump", "--db", db]).ok().stdout();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The names of all trees.
fn trees() -> Vec<&'static str> {
    let rows = arbor_trees::standard();
    rows.rows().map(|row| row.name).collect()
}

#[test]
fn the_target_keeps_level_until_it_is_stopped() {
    for (from, to) in [("mpt", "verkle"), ("verkle", "ar16mt"), ("eip8297", "mpt")] {
        let folder = Folder::with_chain();
        replay(&folder, "db", &["--tree", from, "--to", "4"]).ok();
        let following = Following::begin(&folder, to);
        following.wait_for("level with the source at block 4");
        replay(&folder, "db", &["--to", "7"]).ok();
        following.wait_for("level with the source at block 7");
        assert_eq!(following.stop().code(), Some(130));
        // Blocks that come while nobody follows are taken over by the same command.
        replay(&folder, "db", &["--to", "9"]).ok();
        let following = Following::begin(&folder, to);
        following.wait_for("level with the source at block 9");
        replay(&folder, "db", &[]).ok();
        let last = folder.status("db")["block"].to_string();
        following.wait_for(&format!("level with the source at block {last}"));
        assert_eq!(following.stop().code(), Some(130));
        assert_eq!(dump(&folder, "to"), dump(&folder, "db"), "{from} to {to}");
        folder
            .run(&["verify", "--memory", "64MiB", "--db", "to"])
            .ok();
        // It is what executing the blocks makes of the converted state.
        let words = [
            "convert",
            "--memory",
            "64MiB",
            "--from",
            "chain/genesis.json",
        ];
        folder
            .run(&[&words[..], &["--to", "executed", "--tree", to]].concat())
            .ok();
        replay(&folder, "executed", &[]).ok();
        assert_eq!(dump(&folder, "to"), dump(&folder, "executed"));
    }
}

/// The writer keeps what the follower has not taken over, although it was told to keep one block alone.
#[test]
fn the_block_that_is_followed_from_is_not_pruned() {
    let folder = Folder::with_chain();
    replay(&folder, "db", &["--retain", "1", "--to", "4"]).ok();
    let following = Following::begin(&folder, "eip8297");
    following.wait_for("level with the source at block 4");
    let pid = following.child.id().to_string();
    // While the follower stands still, eight blocks come.
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill runs").success());
    };
    signal("-STOP");
    replay(&folder, "db", &[]).ok();
    let status = folder.status("db");
    assert_eq!(status["retained"]["oldest"], 4);
    signal("-CONT");
    following.wait_for(&format!(
        "level with the source at block {}",
        status["block"]
    ));
    assert_eq!(following.stop().code(), Some(130));
    assert_eq!(dump(&folder, "to"), dump(&folder, "db"));
    // Nobody follows any more, so the writer prunes again, and the target cannot be brought level.
    let rows = ["rollback", "--db", "db", "--to", "10"];
    folder.run(&rows).ok();
    replay(&folder, "db", &[]).ok();
    let oldest = folder.status("db")["retained"]["oldest"].clone();
    assert_ne!(oldest, 4);
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let folder = Folder::with_chain();
    for tree in trees() {
        let words = [
            "convert",
            "--memory",
            "64MiB",
            "--from",
            "chain/genesis.json",
        ];
        folder
            .run(&[&words[..], &["--to", "to", "--tree", tree, "--follow"]].concat())
            .fails_with(&["--follow is of no use with a genesis"]);
    }
    replay(&folder, "db", &["--tree", "ar16mt", "--to", "4"]).ok();
    let convert = ["convert", "--memory", "64MiB", "--from", "db", "--to", "to"];
    let convert = [&convert[..], &["--tree", "mpt"]].concat();
    // Before anything is converted, and after a conversion.
    let at_once = [&convert[..], &["--follow"]].concat();
    folder
        .run(&at_once)
        .fails_with(&["db", "ar16mt", "does not have the names"]);
    assert!(!folder.path("to").exists());
    folder.run(&convert).ok();
    replay(&folder, "db", &["--to", "5"]).ok();
    let follow = [&convert[..], &["--follow"]].concat();
    folder
        .run(&follow)
        .fails_with(&["ar16mt", "does not have the names"]);
    // A target that has a block that the source does not have.
    replay(&folder, "to", &["--to", "6"]).ok();
    folder.run(&follow).fails_with(&["does not have block 6"]);
}
