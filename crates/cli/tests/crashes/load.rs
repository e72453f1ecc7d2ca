//! A state that is built at once, and what is left of it when that is cut short: it is whole, or said not to be and begun again.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::crashes::chain::{Random, number};
use crate::crashes::disk::{MOUNTS, script, tmpfs_works};
use crate::support::Folder;

/// Kills of an ordinary test run.
const FEW: u64 = 4;

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
            "generate --preset tiny --out chain --population 20000 --mix visit=1 --blocks 2";
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

/// A small tmpfs in a namespace of its own fills up amid the load.
#[test]
fn a_load_on_a_full_disk_is_an_error_and_begun_again() {
    if !tmpfs_works("a_load_on_a_full_disk_is_an_error_and_begun_again") {
        return;
    }
    let loads = Loads::new();
    for megabytes in [2, 5] {
        let run = script(
            &loads.folder,
            &MOUNTS,
            &format!(
                "mkdir -p small && mount -t tmpfs -o size={megabytes}m none small && cd small || exit 99
                 load() {{ timeout 100 $ARBOR replay --db db --to 0 ../chain; }}
                 load 2>../full.txt && exit 98
                 grep -iq 'no space left' ../full.txt || {{ cat ../full.txt; exit 97; }}
                 mount -o remount,size=300m . || exit 99
                 load 2>../again.txt && exit 96
                 grep -q 'interrupted: delete it and begin again' ../again.txt || {{ cat ../again.txt; exit 95; }}
                 rm -r db && load && $ARBOR verify --db db"
            ),
        );
        let place = format!("{megabytes} MB");
        let text = format!("{}{}", run.stdout(), run.stderr());
        assert!(run.0.status.success(), "{place}: {:?} {text}", run.0.status);
        assert!(text.contains(&loads.root), "{place}: {text}");
    }
}
