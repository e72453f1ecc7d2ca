//! A state that is built at once, and what is left of it when that is cut short: it is whole, or said not to be and begun again.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::chain::{Random, number};
use crate::flips::in_words;
use crate::support::{Folder, Run};

/// Kills of an ordinary test run.
const FEW: u64 = 6;

/// A folder with a chain over many accounts, how long it takes to build their state, and its root.
struct Loads {
    folder: Folder,
    takes: Duration,
    root: String,
}

const REPLAY: [&str; 6] = ["replay", "--db", "db", "--to", "0", "chain"];

impl Loads {
    fn new() -> Self {
        let folder = Folder::new();
        let words =
            "generate --preset tiny --out chain --population 40000 --mix visit=1 --blocks 2";
        folder.run(&words.split(' ').collect::<Vec<_>>()).ok();
        let start = Instant::now();
        folder.run(&REPLAY).ok();
        let takes = start.elapsed();
        let status = folder.status("db");
        let root = status["stateRoot"].as_str().expect("a root").to_owned();
        let loads = Self {
            folder,
            takes,
            root,
        };
        loads.remove();
        loads
    }

    fn remove(&self) {
        std::fs::remove_dir_all(self.folder.path("db")).expect("removed");
    }

    /// Takes the database up again, anew where it says that it cannot be; returns whether it could.
    fn take_up(&self, place: &str) -> bool {
        let again = self.folder.run(&REPLAY);
        let goes_on = again.0.status.success();
        if !goes_on {
            let told = ["interrupted", "delete it and begin again"];
            again.fails_with(&told);
            self.folder.run(&["verify", "--db", "db"]).fails_with(&[]);
            self.remove();
            self.folder.run(&REPLAY).ok();
        }
        let verified = self.folder.run(&["verify", "--db", "db"]).ok().stdout();
        assert!(verified.contains(&self.root), "{place}: {verified}");
        self.folder.run(&["replay", "--db", "db", "chain"]).ok();
        self.remove();
        goes_on
    }
}

/// `ARBOR_KILLS` says how many.
#[test]
fn a_killed_load_is_whole_or_begun_again() {
    let loads = Loads::new();
    let mut random = Random::from_environment("loads");
    let span = loads.takes.as_micros() as u64;
    let (kills, mut whole) = (number("ARBOR_KILLS").unwrap_or(FEW), 0);
    for kill in 0..kills {
        let moment = Duration::from_micros(random.below(span));
        let mut child = Command::new(env!("CARGO_BIN_EXE_arbor"))
            .args(REPLAY)
            .current_dir(loads.folder.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        std::thread::sleep(moment);
        child.kill().expect("killed");
        child.wait().expect("waited for");
        let place = format!("kill {kill}, after {moment:?}");
        // Killed before it had made its folder.
        if !loads.folder.path("db").exists() {
            std::fs::create_dir(loads.folder.path("db")).expect("made");
        }
        whole += u64::from(loads.take_up(&place));
    }
    println!(
        "kills of a load of {:?}: {kills}, of which {whole} left a database that went on",
        loads.takes
    );
}

/// Files may not grow beyond a limit (in 512 bytes, or in 1,024 for some shells), so that the load ends with an error whatever the machine's speed.
#[test]
fn a_load_without_room_is_an_error_and_begun_again() {
    let loads = Loads::new();
    for limit in [1_000, 4_000] {
        let place = format!("limit {limit}");
        let script = format!(
            "trap '' XFSZ; ulimit -f {limit}; exec timeout 100 $ARBOR {}",
            REPLAY.join(" ")
        );
        let run = Command::new("sh")
            .args(["-c", &script])
            .env("ARBOR", env!("CARGO_BIN_EXE_arbor"))
            .current_dir(loads.folder.0.path())
            .output();
        in_words(&Run(run.expect("a shell")), &place);
        assert!(!loads.take_up(&place), "{place}: it went on from a part");
    }
}
