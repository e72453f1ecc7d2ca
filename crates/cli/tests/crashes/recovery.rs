//! Kills amid a recovery from a list of entries: what is flushed stays, and the same command goes on to the same root.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::crashes::chain::{Random, number};
use crate::support::Folder;

/// Kills of an ordinary test run, for each order of leaves.
const FEW: u64 = 4;

/// `ARBOR_KILLS` says how many.
#[test]
fn a_killed_recovery_goes_on() {
    let folder = Folder::new();
    let words = ["loadtest", "3", "8000", "--db", "db"];
    let out = folder.run(&words).ok().stdout();
    let root = out.lines().last().expect("a root").to_owned();
    let root = root.strip_prefix("root: ").expect("a root");
    let mut random = Random::from_environment("recoveries");
    for order in ["key", "index"] {
        let words = ["snapshot", "--db", "db", "--out", order];
        let chunks = ["--order", order, "--chunk-size", "1500"];
        folder.run(&[&words[..], &chunks].concat()).ok();
        kill_often(&folder, order, root, &mut random);
    }
}

fn kill_often(folder: &Folder, file: &str, root: &str, random: &mut Random) {
    let recover = |db: &str| {
        let mut words = vec!["recover", "--db", db, "--root", root, file];
        // Flushes of a chunk, or of some.
        words.extend(["--write-back", if db == "whole" { "1" } else { "300k" }]);
        words.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let start = Instant::now();
    let words = recover("whole");
    folder
        .run(&words.iter().map(|word| &**word).collect::<Vec<_>>())
        .ok();
    let span = start.elapsed().as_micros() as u64;
    std::fs::remove_dir_all(folder.path("whole")).expect("removed");
    let kills = number("ARBOR_KILLS").unwrap_or(FEW);
    let (mut kept, mut ended) = (0, 0);
    for kill in 0..kills {
        let mut tries = 0;
        let words = recover("killed");
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        // Twice on the way, then to the end.
        while tries < 2 {
            tries += 1;
            let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_arbor"))
                .args(&words)
                .current_dir(folder.0.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("the binary runs");
            std::thread::sleep(Duration::from_micros(random.below(span)));
            ended += u64::from(child.try_wait().expect("waited for").is_some());
            child.kill().expect("killed");
            child.wait().expect("waited for");
        }
        let rest = folder.run(&words).ok().stdout();
        kept += u64::from(rest.contains("that were there"));
        let verified = folder.run(&["verify", "--db", "killed"]).ok().stdout();
        assert!(verified.contains(root), "kill {kill} by {file}: {verified}");
        std::fs::remove_dir_all(folder.path("killed")).expect("removed");
    }
    println!(
        "recoveries by {file} killed twice each: {kills}; {kept} kept chunks, {ended} had ended before a kill"
    );
}
