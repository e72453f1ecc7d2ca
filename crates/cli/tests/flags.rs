//! Flags that all or many commands have: log lines, metrics, the environment, the version, help and man pages.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::support::{Folder, Run};
use serde_json::Value;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn arbor(folder: &Folder, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
    command.args(words(line)).current_dir(folder.0.path());
    for name in ["ARBOR_DB", "ARBOR_MEMORY", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}

fn run(mut command: Command) -> Run {
    Run(command.output().expect("the binary runs"))
}

#[test]
fn the_environment_names_database_and_memory() {
    let folder = Folder::with_chain();
    let with = |line: &str, db: &str, memory: &str| {
        let mut command = arbor(&folder, line);
        command.env("ARBOR_DB", db).env("ARBOR_MEMORY", memory);
        run(command)
    };
    let report = with("replay chain --json", "db", "64MiB").ok().json();
    assert_eq!(report["settings"]["db"], "db");
    assert_eq!(report["settings"]["memory_bytes"], 64 << 20);
    let status = with("status --json", "db", "64MiB").ok().json();
    assert!(status["block"].is_u64());
    // The command line comes first.
    with("status --db elsewhere", "db", "64MiB").fails_with(&["elsewhere"]);
    // It was blamed on the flag, which was not given.
    with("verify", "db", "1").fails_with(&["--memory", "16.0 MiB", "variable ARBOR_MEMORY"]);
    let given = with("verify --memory 1", "db", "64MiB");
    assert!(
        !given
            .fails_with(&["16.0 MiB"])
            .stderr()
            .contains("ARBOR_MEMORY")
    );
    // Work without a database does not take the one of the environment.
    let floor = with("replay --tree none chain --json", "db", "64MiB");
    assert_eq!(floor.ok().json()["settings"]["db"], Value::Null);
    with("replay --store memory chain", "db", "64MiB").ok();
    with("witness --block 3 chain --out w.json", "db", "64MiB").ok();
    with("replay --witness w.json --accept-partial", "db", "64MiB").ok();
    let named = run(arbor(&folder, "replay --witness w.json --db db"));
    named.fails_with(&["--db db is of no use with --witness"]);
    run(arbor(&folder, "status")).fails_with(&["--db"]);
}

#[test]
fn log_lines_are_ours_with_their_targets() {
    let folder = Folder::with_chain();
    let quiet = run(arbor(&folder, "replay --db quiet chain"));
    assert_eq!(quiet.ok().stderr(), "");
    let loud = run(arbor(&folder, "-vv replay --db loud chain"));
    let text = loud.ok().stderr();
    let is_ours = |line: &str| line.contains("arbor") && !line.contains("lsm_tree");
    assert!(text.lines().any(is_ours), "{text}");
    let lines = run(arbor(
        &folder,
        "-vvv --log-format json replay --db json chain",
    ));
    let text = lines.ok().stderr();
    let mut targets = std::collections::BTreeSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        assert!(line["level"].is_string() && line["timestamp"].is_string());
        targets.insert(line["target"].as_str().expect("a target").to_owned());
    }
    assert!(
        targets.iter().any(|target| target.starts_with("fjall")),
        "{targets:?}"
    );
    let info = run(arbor(&folder, "-v replay --db info chain"));
    let text = info.ok().stderr();
    // There was nothing in them.
    for line in [
        " INFO arbor_database::open: opened info to write: tree mpt, store fjall",
        " INFO arbor::commands::replay: replaying blocks from 1",
        " INFO arbor_versions::versions: flushed versions up to",
        " INFO arbor::commands::replay: closed the database",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(
        !text.contains(" INFO fjall") && !text.contains(" INFO lsm_tree"),
        "{text}"
    );
}

/// Reads the figures while a load test runs.
#[test]
fn metrics_are_served_while_a_command_runs() {
    let folder = Folder::new();
    let mut command = arbor(&folder, "loadtest 200 2000 -M --metrics 0");
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("piped"));
    while !said.starts_with("metrics at ") {
        said.clear();
        assert!(
            lines.read_line(&mut said).expect("a line") > 0,
            "no address"
        );
    }
    let address = said.trim().trim_start_matches("metrics at http://");
    let address = address.trim_end_matches("/metrics").to_owned();
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(&address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for name in [
        "arbor_blocks_total ",
        "arbor_store_writes_total ",
        "arbor_build_info{version=",
    ] {
        assert!(answer.contains(&format!("\n{name}")), "{name}: {answer}");
    }
    let length = answer
        .split("\r\n")
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length: usize = length.expect("a length").parse().expect("a number");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    assert_eq!(body.len(), length);
    assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(ask("GARBAGE\r\n\r\n").starts_with("HTTP/1.1 405 "));
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    // An address that is taken is an error before any work.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    run(arbor(
        &folder,
        &format!("loadtest 1 10 -M --metrics {port}"),
    ))
    .fails_with(&["--metrics: listening on 127.0.0.1"]);
    run(arbor(&folder, "verify --db db --metrics nowhere"))
        .fails_with(&["'nowhere' is neither PORT nor HOST:PORT"]);
}

#[test]
fn the_version_names_commit_features_and_backend() {
    let folder = Folder::new();
    for flag in ["-V", "--version", "replay -V"] {
        let text = run(arbor(&folder, flag)).ok().stdout();
        let first = text.lines().next().expect("a line");
        assert!(
            first.starts_with("arbor") && first.ends_with(env!("CARGO_PKG_VERSION")),
            "{text}"
        );
        for name in ["commit    ", "compiler  rustc ", "features  ", "backend   "] {
            assert!(text.contains(&format!("\n{name}")), "{name}: {text}");
        }
    }
    let mut command = arbor(&folder, "-V");
    command.env("ARBOR_BACKEND", "portable");
    assert!(run(command).ok().stdout().contains("backend   portable ("));
    let mut command = arbor(&folder, "-V");
    command.env("ARBOR_BACKEND", "abacus");
    assert!(run(command).ok().stdout().contains("backend   unknown ("));
}

#[test]
fn every_command_has_examples_and_a_man_page() {
    let folder = Folder::new();
    let out = run(arbor(&folder, "man --out man")).ok().stdout();
    assert!(out.starts_with("man has "), "{out}");
    let help = run(arbor(&folder, "help")).ok().stdout();
    let list = help.split("Commands:").nth(1).expect("commands");
    let is_first = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let names = list
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter(is_first);
    let names: Vec<&str> = names
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        if name == "help" {
            continue;
        }
        let page = std::fs::read_to_string(folder.path(&format!("man/arbor-{name}.1")));
        let page = page.unwrap_or_else(|why| panic!("{name}: {why}"));
        assert!(page.contains(".TH"), "{name}");
        assert!(page.contains(".SH EXAMPLES\n.nf\n"), "{name}: {page}");
        let help = run(arbor(&folder, &format!("{name} --help"))).ok().stdout();
        assert!(help.contains("Example"), "{name}: {help}");
        assert!(help.contains(&format!("arbor {name} ")), "{name}: {help}");
    }
    let replay = run(arbor(&folder, "replay --help")).ok().stdout();
    for heading in [
        "Database:",
        "History:",
        "Checks:",
        "Resources:",
        "Output:",
        "Log:",
    ] {
        assert!(
            replay.contains(&format!("\n{heading}\n")),
            "{heading}: {replay}"
        );
    }
    assert!(replay.contains("[env: ARBOR_DB="), "{replay}");
}
