//! `arbor compare`: counts against a committed comparison, interruptions, refusals, and what a failing run leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::{self, Folder};
use serde_json::Value;

/// The trees of the committed comparison.
const TREES: &str = "mpt,verkle,ar16mt";

/// A comparison of the demo chain, made by the command in `testdata/README.md`.
fn baseline() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/compare/demo.json")
}

fn results(folder: &Folder, out: &str) -> Value {
    let text = fs::read_to_string(folder.path(out).join("results.json")).expect("results");
    serde_json::from_str(&text).expect("JSON")
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).expect("rows");
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    text.lines().map(cells).collect()
}

/// One comparison of the demo chain on one thread, whose counts do not vary, and all that is made of it.
#[test]
fn the_demo_chain_costs_what_it_did() {
    let folder = Folder::new();
    folder
        .run(&["generate", "--preset", "demo", "--out", "chain"])
        .ok();
    let baseline = baseline();
    let baseline = baseline.to_str().expect("a name");
    let compare = |allowed: &str, baseline: &str| {
        let words = [
            "compare",
            "chain",
            "--trees",
            TREES,
            "--out",
            "c",
            "--threads",
            "1",
            "--repeat",
            "1",
            "--witnesses",
            "16",
            "--growth",
            "3",
            "--baseline",
            baseline,
            "--allow",
            allowed,
        ];
        folder.run(&words)
    };
    let run = compare("1", baseline);
    let printed = run.ok().stdout();
    for word in [
        "wall time",
        "verkle",
        "size on disk",
        "report: c/report.html",
        "none grew",
    ] {
        assert!(printed.contains(word), "{word}: {printed}");
    }
    let envelope = results(&folder, "c");
    assert_eq!(
        (&envelope["schema"], &envelope["command"]),
        (&"arboretum/1".into(), &"compare".into())
    );
    let found = &envelope["results"];
    assert_eq!(found["chain"]["blocks"], 200);
    assert_eq!(found["trees"].as_array().map(Vec::len), Some(3));
    for tree in ["mpt", "verkle", "ar16mt"] {
        let survey = &found["surveys"][tree];
        for list in ["proofs", "updates"] {
            assert!(
                survey[list].as_array().is_some_and(|rows| rows.len() > 2),
                "{tree}: {list}"
            );
        }
        check_inspection(&found["inspections"][tree], &found["growth"][tree], tree);
    }
    assert_eq!(
        found["surveys"]["verkle"]["witnesses"]
            .as_array()
            .map(Vec::len),
        Some(16)
    );
    check_rows(&folder);
    let page = fs::read_to_string(folder.path("c/report.html")).expect("a page");
    assert!(
        page.len() < 3_000_000 && page.contains("root-delay"),
        "{}",
        page.len()
    );

    // The same comparison against one whose counts were smaller: all its runs are done, and the growth is named.
    let text = fs::read_to_string(baseline).expect("the baseline");
    let mut smaller: Value = serde_json::from_str(&text).expect("JSON");
    let figures = smaller["results"]["figures"]
        .as_array_mut()
        .expect("figures");
    let nodes = figures
        .iter_mut()
        .find(|row| row["name"] == "nodes")
        .expect("nodes");
    let median = nodes["trees"][1]["median"].as_f64().expect("a number");
    nodes["trees"][1]["median"] = (median * 0.9).into();
    let file = folder.path("smaller.json");
    fs::write(&file, smaller.to_string()).expect("written");
    compare("1", "smaller.json").fails_with(&["grown by more than 1 %", "nodes of verkle"]);
    assert!(
        compare("12", "smaller.json")
            .ok()
            .stderr()
            .contains("done before")
    );
}

/// With a cache that is too small and a slow disk, counts of reads and hits differed from run to run: it depended on
/// times which blocks were executed ahead, when a flush ended, and which entries the cache evicted.
#[test]
fn counts_on_one_thread_are_the_same_in_every_run() {
    let folder = Folder::new();
    folder
        .run(&["generate", "--preset", "demo", "--out", "chain"])
        .ok();
    let words = [
        "compare",
        "chain",
        "--trees",
        "mpt,eip8297",
        "--out",
        "c",
        "--threads",
        "1",
        "--repeat",
        "3",
        "--no-survey",
        "--memory",
        "16MiB",
        "--write-back",
        "512KiB",
        "--throttle",
        "20000:100",
    ];
    folder.run(&words).ok();
    let envelope = results(&folder, "c");
    let figures = envelope["results"]["figures"].as_array().expect("figures");
    let mut compared = 0;
    for figure in figures {
        if !["count", "neutral", "bytes"].contains(&figure["kind"].as_str().expect("a kind")) {
            continue;
        }
        for tree in figure["trees"].as_array().expect("trees") {
            let Some(values) = tree["values"].as_array() else {
                continue;
            };
            assert!(
                values.len() >= 3 && values.iter().all(|value| *value == values[0]),
                "{figure}"
            );
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
    let median = |name: &str| {
        let row = figures.iter().find(|row| row["name"] == name);
        row.and_then(|row| row["trees"][0]["median"].as_f64())
    };
    assert!(median("store_reads") > Some(0.0) && median("cache_misses") > Some(0.0));
}

/// Returns the records of a table.
fn records(tables: &Value, name: &str) -> u64 {
    let tables = tables.as_array().expect("tables");
    let mut tables = tables.iter();
    let table = tables.find(|table| table["table"] == name);
    let records = &table.unwrap_or_else(|| panic!("no table {name}"))["records"];
    records.as_u64().expect("a number")
}

/// One node, the root, lies at the top of a tree; and the tables that were counted along the chain grow up to those at
/// its end.
fn check_inspection(found: &Value, growth: &Value, tree: &str) {
    let (trie, names) = match tree {
        "mpt" => ("accounts", "accounts"),
        "verkle" => ("state", "accounts"),
        _ => ("state", "names"),
    };
    let nodes = found["nodes"].as_array().expect("nodes");
    let at_the_top = nodes.iter().filter(|of| of["trie"] == trie);
    let at_the_top = at_the_top.filter_map(|of| of["byDepth"][0].as_u64());
    assert_eq!(at_the_top.sum::<u64>(), 1, "{tree}: {nodes:?}");
    let growth = growth.as_array().expect("a list");
    let blocks: Vec<u64> = growth
        .iter()
        .filter_map(|point| point["block"].as_u64())
        .collect();
    assert_eq!(blocks, [66, 133, 200], "{tree}");
    assert_eq!(growth[2]["tables"], found["tables"], "{tree}");
    let records: Vec<u64> = growth
        .iter()
        .map(|point| records(&point["tables"], names))
        .collect();
    assert!(
        records[0] > 0 && records.is_sorted() && records[0] < records[2],
        "{tree}: {records:?}"
    );
}

/// A row for each run, and for each block of each tree, in the order of the blocks.
fn check_rows(folder: &Folder) {
    let runs = rows(&folder.path("c/runs.csv"));
    assert_eq!((runs.len(), runs[0][0].as_str()), (1 + 3, "tree"));
    let blocks = rows(&folder.path("c/blocks.csv"));
    assert_eq!(blocks.len(), 1 + 3 * 200);
    let column = |name: &str| {
        let place = blocks[0].iter().position(|column| column == name);
        place.unwrap_or_else(|| panic!("no column {name}"))
    };
    let number = |row: &[String], name: &str| row[column(name)].parse::<f64>().expect("a number");
    for (index, row) in blocks[1..].iter().enumerate() {
        assert_eq!(number(row, "block_number"), (index % 200 + 1) as f64);
        assert!(row[column("block_hash")].starts_with("0x"));
        for name in [
            "timestamp",
            "gas_used",
            "root_group",
            "elapsed_s",
            "store_s",
        ] {
            assert!(number(row, name) > 0.0, "{name} of {row:?}");
        }
        assert!(number(row, "root_delay_s") < 60.0);
    }
    let sums = blocks[1..201].windows(2);
    let ascends = |name: &str| {
        let mut sums = sums.clone();
        sums.all(|pair| number(&pair[0], name) <= number(&pair[1], name))
    };
    for name in ["elapsed_s", "store_bytes", "cache_hits"] {
        assert!(ascends(name), "{name}");
    }
    let parquet = fs::read(folder.path("c/blocks.parquet")).expect("a file");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}

/// Ends a comparison after its first run; the same command goes on, and other arguments are refused.
#[cfg(unix)]
#[test]
fn an_interrupted_comparison_goes_on() {
    let folder = Folder::with_chain();
    let words = [
        "compare",
        "chain",
        "--trees",
        "mpt,ar16mt",
        "--out",
        "c",
        "--repeat",
        "3",
        "--no-survey",
    ];
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_arbor"))
        .args(words)
        .current_dir(folder.0.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("starts");
    let begin = Instant::now();
    let first = folder.path("c/runs/mpt-1.json");
    while !first.exists() {
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "no run was done"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("it has ended");
    let before = fs::read(&first).expect("the first run");
    let mut other = words.to_vec();
    other.extend(["--retain", "7"]);
    folder
        .run(&other)
        .fails_with(&["other arguments", "retain: 128 there, 7 now", "--out"]);
    let told = folder.run(&words).ok().stderr();
    assert!(told.contains("mpt, run 1: done before"), "{told}");
    assert_eq!(fs::read(&first).expect("the first run"), before);
    let runs = rows(&folder.path("c/runs.csv")).len() - 1;
    assert!(
        [6, 8].contains(&runs),
        "three repetitions, or four if they were spread: {runs}"
    );
    assert!(!folder.path("c/work").exists(), "databases are removed");
}

/// A folder of something else, a tree or a setting that is not there, a side named twice.
#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = Folder::with_chain();
    let compare = |trees: &str, out: &str| {
        folder.run(&[
            "compare", "chain", "--trees", trees, "--out", out, "--repeat", "1",
        ])
    };
    compare("mpt", "chain").fails_with(&["chain is not empty", "--out"]);
    compare("oak", "c").fails_with(&["no tree 'oak'", "mpt, verkle"]);
    compare("mpt:deep", "c").fails_with(&["mpt", "'deep'", "write-through"]);
    compare("mpt,mpt", "c").fails_with(&["mpt is named twice"]);
    compare("mpt:", "c").fails_with(&["empty part"]);
    assert!(!folder.path("c").exists());
    let words = [
        "compare",
        "chain",
        "--trees",
        "mpt",
        "--out",
        "c",
        "--baseline",
        "chain/genesis.json",
    ];
    folder
        .run(&words)
        .fails_with(&["--baseline chain/genesis.json", "no schema"]);
    let survey = [&words[..6], &["--no-survey", "--growth", "3"]].concat();
    folder
        .run(&survey)
        .fails_with(&["--growth 3", "--no-survey"]);
}

/// What a baseline cannot be compared with was found out after all runs.
#[test]
fn a_baseline_of_something_else_is_refused_before_the_first_run() {
    let folder = Folder::with_chain();
    let compare = |words: &str| {
        let words = format!("compare chain --threads 1 --repeat 1 --no-survey {words}");
        folder.run(&words.split_whitespace().collect::<Vec<_>>())
    };
    compare("--trees mpt,ar16mt --to 8 --out before").ok();
    let refused = |words: &str, why: &[&str]| {
        let run = compare(&format!("{words} --out after --baseline before"));
        run.fails_with(&[&["--baseline"], why].concat());
        assert!(!run.stderr().contains("replaying"), "{}", run.stderr());
    };
    refused(
        "--trees mpt --to 8",
        &["compared mpt,ar16mt", "--trees has no ar16mt"],
    );
    refused("--trees mpt,ar16mt", &["blocks 1 to 8", "--to 8"]);
    refused("--trees mpt,ar16mt --to 7", &["blocks 1 to 8", "--to is 7"]);
    let file = folder.path("before/results.json");
    let text = fs::read_to_string(&file).expect("results");
    let mut other: Value = serde_json::from_str(&text).expect("JSON");
    other["results"]["chain"]["last_hash"] = "0x01".into();
    fs::write(&file, other.to_string()).expect("written");
    refused(
        "--trees mpt,ar16mt --to 8",
        &["(0x01)", "block 8 of the chain is 0x"],
    );
    fs::write(&file, text).expect("written");
    let warned = compare("--trees mpt,ar16mt --to 8 --out after --baseline before --memory 64MiB");
    assert!(warned.ok().stderr().contains("another memory_bytes"));
}

/// Ctrl-C at a terminal reached the run itself, too, which was dropped although "after this run" was promised.
#[cfg(unix)]
#[test]
fn ctrl_c_lets_the_run_under_way_end() {
    use std::os::unix::process::CommandExt;
    let folder = Folder::with_chain();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_arbor"))
        .args([
            "compare",
            "chain",
            "--trees",
            "mpt,ar16mt",
            "--out",
            "c",
            "--repeat",
            "1",
        ])
        .args(["--no-survey", "--throttle", "1000:1000"])
        .current_dir(folder.0.path())
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .process_group(0)
        .spawn()
        .expect("starts");
    let begin = Instant::now();
    while !folder.path("c/runs/mpt-1.log").exists() {
        assert!(begin.elapsed() < Duration::from_secs(120), "no run began");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Like a terminal, to all processes of the group.
    let group = format!("-{}", child.id());
    let kill = std::process::Command::new("kill")
        .args(["-INT", "--", &group])
        .status();
    assert!(kill.expect("kill runs").success());
    let done = child.wait().expect("it ends");
    assert_eq!(done.code(), Some(130));
    assert!(folder.path("c/runs/mpt-1.json").exists(), "the run is kept");
    assert!(
        !folder.path("c/runs/ar16mt-1.json").exists(),
        "no other run began"
    );
}

/// One side's runs fail, and the other side's are compared: the exit code is 1, and the log is named.
#[test]
fn a_failing_run_is_named_with_its_log() {
    let folder = Folder::with_chain();
    folder
        .run(&[
            "replay", "--db", "at-5", "--to", "5", "--tree", "ar16mt", "chain",
        ])
        .ok();
    folder
        .run(&["replay", "--db", "at-5-mpt", "--to", "5", "chain"])
        .ok();
    // A database that the replay cannot open: the mark of its store is gone.
    fs::remove_file(folder.path("at-5/fjall/version")).expect("removed");
    let words = [
        "compare",
        "chain",
        "--trees",
        "mpt,ar16mt",
        "--out",
        "c",
        "--repeat",
        "1",
        "--no-survey",
        "--start",
        "at-5-mpt,at-5",
    ];
    let run = folder.run(&words);
    run.fails_with(&[
        "ar16mt, run 1: arbor replay ended with exit status: 1: opening the database",
        "c/runs/ar16mt-1.log",
        "compared without them",
    ]);
    assert!(run.stdout().contains("wall time"), "{}", run.stdout());
    let log = fs::read_to_string(folder.path("c/runs/ar16mt-1.log")).expect("a log");
    assert!(log.contains("error: ") && log.contains("fjall"), "{log}");
    assert_eq!(results(&folder, "c")["results"]["chain"]["first_block"], 6);
}

/// Settings after a colon and the cold cache reach the runs, as their commands tell.
#[test]
fn settings_of_a_side_reach_its_runs() {
    let folder = Folder::with_chain();
    let words = [
        "compare",
        "chain",
        "--trees",
        "verkle:compressed+portable,mpt:write-through",
        "--out",
        "c",
        "--repeat",
        "1",
        "--to",
        "8",
        "--cache",
        "cold",
        "--no-survey",
    ];
    folder.run(&words).ok();
    let found = results(&folder, "c");
    let command = |tree: usize| found["results"]["trees"][tree]["commands"][0].clone();
    let verkle = command(0).as_str().expect("a command").to_owned();
    assert!(
        verkle.starts_with("ARBOR_BACKEND=portable arbor replay --tree verkle "),
        "{verkle}"
    );
    assert!(verkle.contains("--tree-settings compressed"), "{verkle}");
    let mpt = command(1).as_str().expect("a command").to_owned();
    assert!(mpt.contains("--write-back 0"), "{mpt}");
    let cache = found["results"]["trees"][0]["cache"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(cache.starts_with("cold: posix_fadvise"), "{cache}");
    assert_eq!(found["results"]["chain"]["last_block"], 8);
}

/// A comparison of one tree, without a survey.
const SMALL: [&str; 9] = [
    "compare",
    "chain",
    "--trees",
    "mpt",
    "--out",
    "c",
    "--repeat",
    "1",
    "--no-survey",
];

/// A damaged plan was to be removed, after which the folder was refused; and of emptied rows the error named another
/// file.
#[test]
fn a_damaged_file_is_named_with_what_to_do() {
    let folder = Folder::with_chain();
    folder.run(&SMALL).ok();
    let damaged = |file: &str, text: &str, words: &[&str]| {
        let path = folder.path("c").join(file);
        let whole = fs::read(&path).expect("it is there");
        fs::write(&path, text).expect("written");
        folder.run(&SMALL).fails_with(&[file]).fails_with(words);
        fs::write(&path, whole).expect("written");
    };
    damaged("plan.json", "{", &["remove the folder", "another --out"]);
    let again = "remove it to do that run again";
    damaged("runs/mpt-1.json", "garbage", &[again]);
    for rows in ["", "block_number\n1\n", "\u{0}\n"] {
        damaged("runs/mpt-1.csv", rows, &["rows for", again]);
    }
    damaged("runs/mpt-1.csv", "a,b\n1\n", &[again]);
    assert!(folder.run(&SMALL).ok().stderr().contains("done before"));
    // The advice holds.
    for file in ["runs/mpt-1.csv", "runs/mpt-1.json"] {
        fs::remove_file(folder.path("c").join(file)).expect("removed");
        let told = folder.run(&SMALL).ok().stderr();
        assert!(told.contains("mpt, run 1: replaying"), "{told}");
    }
    #[cfg(unix)]
    folder
        .run(&[&SMALL[..], &["--baseline", "/dev/zero"]].concat())
        .fails_with(&["--baseline /dev/zero", "it is not text"]);
}

/// Runs a command that can write no file beyond 200 to 400 kB, like on a full disk.
#[cfg(unix)]
fn on_a_full_disk(folder: &Folder, words: &[&str]) -> support::Run {
    let arbor = env!("CARGO_BIN_EXE_arbor");
    let line = format!("ulimit -f 400; exec {arbor} {}", words.join(" "));
    let mut command = std::process::Command::new("sh");
    let command = command.args(["-c", &line]).current_dir(folder.0.path());
    support::Run(command.output().expect("sh runs"))
}

/// The page of a comparison or an inspection does not fit on the disk: the figures are printed before the error.
#[cfg(unix)]
#[test]
fn a_full_disk_costs_no_figures() {
    let folder = Folder::with_chain();
    folder.run(&SMALL).ok();
    let full = on_a_full_disk(&folder, &SMALL);
    full.fails_with(&["c/report.html", "too large"]);
    assert!(full.stdout().contains("wall time"), "{}", full.stdout());
    assert!(!folder.path("c/report.html.unfinished").exists());
    folder.run(&SMALL).ok();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    // A reader has a copy of the journal, which is larger than that until a merge empties it.
    folder.run(&["compact", "--db", "db"]).ok();
    let inspect = ["inspect", "--db", "db", "--html", "page.html"];
    let full = on_a_full_disk(&folder, &inspect);
    full.fails_with(&["page.html", "too large"]);
    assert!(full.stdout().contains("records"), "{}", full.stdout());
    assert!(!folder.path("page.html").exists() && !folder.path("page.html.unfinished").exists());
}

/// Chains over a large state have one genesis; the state is loaded once for each tree and its settings.
#[test]
fn a_large_state_is_loaded_once() {
    let folder = Folder::new();
    let small = ["--blocks", "3", "--txs", "20", "--accounts", "40"];
    let state = ["--state", "accounts=1K,slots=2", "--out", "state"];
    let words = [&["generate"][..], &state, &small].concat();
    let made = folder.run(&words).ok().stdout();
    assert!(made.contains("1000 accounts with two slots each"), "{made}");
    assert!(
        made.contains("visit 60") && made.contains("erc20 60"),
        "{made}"
    );
    let again = folder.run(&words).ok().stdout();
    assert!(again.contains("all chains are there already"), "{again}");
    assert!(!folder.path("state/erc20/.state").exists());
    let genesis = |load: &str| {
        fs::read(folder.path(&format!("state/{load}/genesis.json"))).expect("a genesis")
    };
    assert_eq!(genesis("read"), genesis("erc20"));

    let compare = |load: &str, out: &str| {
        let begin = ["compare", "--trees", "mpt,eip7864:levels=3..4", "--state"];
        let rest = ["state", "--workload", load, "--out", out, "--no-survey"];
        let once = ["--repeat", "1", "--threads", "1", "--cache", "cold"];
        folder.run(&[&begin[..], &rest, &once].concat())
    };
    let first = compare("read", "r").ok().stderr();
    let ran = |out: &str, run: &str| {
        let run = fs::read(folder.path(&format!("{out}/runs/{run}.json"))).expect("a run");
        let run: Value = serde_json::from_slice(&run).expect("JSON");
        let commands = run["commands"].as_array().expect("commands").clone();
        let commands = commands
            .into_iter()
            .map(|line| line.as_str().unwrap_or_default().to_owned());
        commands.collect::<Vec<_>>()
    };
    assert!(ran("r", "mpt-1")[1].starts_with("arbor verify --db "));
    // The whole database is checked after the first run of a side, or after none.
    let warm = "compare --trees mpt --state state --workload read --no-survey --repeat 2 --threads 1 --out";
    let warm: Vec<&str> = warm.split(' ').collect();
    folder.run(&[&warm[..], &["v"]].concat()).ok();
    assert_eq!(["mpt-1", "mpt-2"].map(|run| ran("v", run).len()), [2, 1]);
    folder
        .run(&[&warm[..], &["n", "--no-verify"]].concat())
        .ok();
    assert_eq!(["mpt-1", "mpt-2"].map(|run| ran("n", run).len()), [1, 1]);
    assert_eq!(first.matches("loading the state").count(), 3, "{first}");
    let second = compare("write", "w").ok().stderr();
    assert!(!second.contains("loading the state"), "{second}");
    let [read, written] = ["r", "w"].map(|out| results(&folder, out));
    let names = |results: &Value| {
        let trees = results["results"]["trees"].as_array().expect("sides");
        let names = trees.iter().map(|side| side["name"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        names(&read),
        ["mpt", "eip7864:levels=3", "eip7864:levels=4"]
    );
    let figure = |results: &Value, name: &str| {
        let figures = results["results"]["figures"].as_array().expect("figures");
        let found = figures.iter().find(|row| row["name"] == name);
        found.map(|row| row["trees"][0]["median"].as_f64().expect("a number"))
    };
    // A transaction that reads changes no slot of the population; the system's contracts change some in each block.
    let [few, many] = [&read, &written].map(|results| figure(results, "slots").expect("slots"));
    assert!(many >= few + 55.0, "{few} {many}");
    assert!(figure(&read, "cache_misses_per_transaction").is_some_and(|misses| misses > 0.0));

    for (words, said) in [
        (&["--state", "slots=2"][..], "accounts=N is missing"),
        (&["--state", "accounts=1K,slots=3"], "slots=2"),
        (&["--state", "accounts=5G"], "not a number from 1 to"),
        (&["--state", "accounts=1K", "--blocks", "251"], "--blocks"),
    ] {
        let words = [&["generate", "--out", "other"], words].concat();
        folder.run(&words).fails_with(&[said]);
    }
    let words = ["compare", "--trees", "mpt", "--state", "none", "--out", "o"];
    let words = [&words[..], &["--workload", "read"]].concat();
    folder
        .run(&words)
        .fails_with(&["--state none", "arbor generate --state"]);
}
