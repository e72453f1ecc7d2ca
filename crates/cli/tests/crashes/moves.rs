//! Kills amid a move to another tree, from its beginning to the loss of the tree before: every reopening finds a whole database, and the chain goes on to the same end.

use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::crashes::chain::{Chain, Random, number};
use crate::support::copy;

/// Kills of an ordinary test run, of each pair of trees.
const FEW: u64 = 10;

fn status(chain: &Chain) -> Value {
    chain.run(&["status", "--db", "db", "--json"]).ok().json()
}

fn dump(chain: &Chain) -> Vec<String> {
    let text = chain.run(&["dump", "--db", "db"]).ok().stdout();
    let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_killed_move_goes_on_to_the_same_end() {
    kill_often("mpt", "eip8297");
    kill_often("ar16mt", "mpt");
}

fn kill_often(source: &'static str, target: &'static str) {
    let kills = number("ARBOR_KILLS").unwrap_or(FEW);
    let mut random = Random::from_environment("kills of a move");
    let chain = Chain::under(source, 300, 2);
    // Each part ends with the chain's end: the first amid the move, the last behind it.
    let first = [
        "replay", "--db", "db", "--tree", source, "--retain", "6", "--to", "40", "chain",
    ];
    chain.run(&first).ok();
    copy(&chain.path("db"), &chain.path("begun"));
    let words = [
        "replay",
        "--db",
        "db",
        "--convert-to",
        target,
        "--at",
        "60",
        "--stride",
        "4",
        "--write-back",
        "16KiB",
        "chain",
    ];
    let start = Instant::now();
    chain.run(&words).ok();
    let replay = start.elapsed().as_micros() as u64;
    let (wanted, contents) = (status(&chain), dump(&chain));
    assert_eq!(wanted["moving"], Value::Null, "it has arrived: {wanted}");
    std::fs::remove_dir_all(chain.path("db")).expect("removed");

    copy(&chain.path("begun"), &chain.path("db"));
    let (mut killed, mut places) = (0, Vec::new());
    // Before the move is known the flags are needed, and afterwards they are not.
    let later = ["replay", "--db", "db", "--write-back", "16KiB", "chain"];
    while killed < kills {
        let knows =
            status(&chain)["moving"] != Value::Null || status(&chain)["tree"] == wanted["tree"];
        let words = if knows { &later[..] } else { &words[..] };
        let mut child = chain
            .command(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        thread::sleep(Duration::from_micros(random.below(replay / 2)));
        let ended = child.try_wait().expect("waited for").is_some();
        child.kill().expect("killed");
        child.wait().expect("waited for");
        killed += 1;
        let now = status(&chain);
        places.push((now["block"].clone(), now["moving"]["units"].clone()));
        chain.run(&["verify", "--db", "db"]).ok();
        if ended {
            break;
        }
    }
    let knows = status(&chain)["moving"] != Value::Null || status(&chain)["tree"] == wanted["tree"];
    chain.run(if knows { &later[..] } else { &words[..] }).ok();
    let now = status(&chain);
    for field in ["tree", "block", "stateRoot", "moving"] {
        assert_eq!(
            now[field], wanted[field],
            "{field} after kills at {places:?}"
        );
    }
    assert_eq!(dump(&chain), contents);
    chain.run(&["verify", "--db", "db"]).ok();
    println!("{source} to {target}: killed {killed} times, at {places:?}");
}
