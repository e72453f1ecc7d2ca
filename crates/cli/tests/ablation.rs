//! `arbor bench ablation`: which sides there are, what is put next to each other, and refusals.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use arbor_compare::Side;

use crate::support::Folder;
use serde_json::Value;

/// The words that switch off techniques of every tree.
const COMMON: [&str; 3] = ["write-through", "portable", "in-turn"];

/// Runs `bench ablation` with two threads over the tiny chain, and returns its report.
fn ablation(folder: &Folder, tree: &str, out: &str) -> Value {
    let line = format!(
        "bench ablation chain --tree {tree} --out {out} --repeat 1 --threads 2 --memory 64MiB --json"
    );
    let words: Vec<&str> = line.split_whitespace().collect();
    folder.run(&words).ok().json()
}

fn strings<'a>(list: &'a Value, name: &str) -> Vec<&'a str> {
    let list = list.as_array().expect("a list");
    let named = list.iter().map(|of| of[name].as_str().expect("text"));
    named.collect()
}

/// Checks that the sides are the tree and the tree without each technique, all with the same root, and that each has
/// ratios.
fn check(folder: &Folder, tree: &str, out: &str, own: &[&str]) -> Value {
    let report = ablation(folder, tree, out);
    assert_eq!(report["command"], "bench ablation");
    assert_eq!(report["settings"]["tree"], tree);
    let found = &report["results"];
    let expected = own.iter().chain(&COMMON);
    let expected: Vec<String> = std::iter::once(tree.to_owned())
        .chain(expected.map(|word| format!("{tree}:{word}")))
        .collect();
    assert_eq!(strings(&found["trees"], "name"), expected);
    let roots: BTreeSet<_> = strings(&found["trees"], "root").into_iter().collect();
    assert_eq!(roots.len(), 1, "{roots:?}");
    let ablation = &found["ablation"];
    assert_eq!(ablation["side"], tree);
    assert_eq!(strings(&ablation["without"], "side"), expected[1..]);
    let techniques = strings(&ablation["without"], "technique");
    let different: BTreeSet<_> = techniques.iter().collect();
    assert_eq!(different.len(), techniques.len(), "{techniques:?}");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{ablation}"));
    for name in ["blocks_s", "cpu_s", "store_bytes", "disk_bytes"] {
        let all_on = number(&ablation["all_on"][name]);
        for without in ablation["without"].as_array().expect("a list") {
            let (cost, ratio) = (&without["costs"][name], &without["ratios"][name]);
            if name != "cpu_s" {
                assert!(all_on > 0.0);
            } else if all_on == 0.0 {
                // The kernel counts in hundredths of a second.
                assert!(ratio.is_null());
                continue;
            }
            assert!(
                (number(ratio) - number(cost) / all_on).abs() < 1e-9,
                "{name}"
            );
        }
    }
    let threads = |side: &str| {
        let columns = found["trees"].as_array().expect("a list");
        let column = columns.iter().find(|column| column["name"] == side);
        let command = &column.expect("the side")["commands"][0];
        let command = command.as_str().expect("text").to_owned();
        let (_, rest) = command.split_once("--threads ").expect("a flag");
        rest[..1].to_owned()
    };
    assert_eq!(threads(tree), "2");
    assert_eq!(threads(&format!("{tree}:in-turn")), "1");
    for file in ["report.html", "runs.csv", "blocks.csv", "blocks.parquet"] {
        assert!(folder.path(out).join(file).exists(), "{file}");
    }
    let page = fs::read_to_string(folder.path(out).join("report.html")).expect("a page");
    let (_, title) = page.split_once("<title>").expect("a title");
    assert!(
        title.starts_with("A tree without each of its techniques<"),
        "{}",
        &title[..80]
    );
    let (_, data) = page.split_once("\"ablation\":{").expect("the table's data");
    assert!(data.contains(r#""technique":"the processor's wide instructions""#));
    let written = fs::read_to_string(folder.path(out).join("results.json")).expect("results");
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(written, report);
    report
}

/// Each of Verkle's techniques is switched off by itself; what is handed to the store shows it.
#[test]
fn each_technique_of_a_tree_is_switched_off_by_itself() {
    let folder = Folder::with_chain();
    let own = [
        "compressed",
        "no-images",
        "leaf-commitments",
        "points-only",
        "single-images",
        "single-affine",
        "single-blocks",
        "narrow-tables",
    ];
    let report = check(&folder, "verkle", "v", &own);
    let without = &report["results"]["ablation"]["without"];
    let stored = |word: &str| {
        let list = without.as_array().expect("a list");
        let row = list.iter().find(|row| row["word"] == word);
        row.and_then(|row| row["ratios"]["store_bytes"].as_f64())
    };
    assert!(stored("compressed") < Some(1.0) && stored("leaf-commitments") > Some(1.0));
    assert!(stored("write-through") > Some(1.0));

    // The same command shows the table of the runs that are done; other arguments are refused.
    let words = "bench ablation chain --tree verkle --out v --repeat 1 --threads 2 --memory 64MiB";
    let words: Vec<&str> = words.split_whitespace().collect();
    let again = folder.run(&words);
    let (table, told) = (again.ok().stdout(), again.stderr());
    assert!(
        told.contains("verkle:in-turn, run 1: done before"),
        "{told}"
    );
    assert!(!told.contains("replaying"), "{told}");
    for word in [
        "ratios to verkle",
        "time of blocks",
        "CPU time",
        "spread of the time",
        "one inversion for the scalars of many commitments",
        "report: v/report.html",
    ] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let mut other = words.clone();
    other[4] = "mpt";
    let refused = [
        "other arguments",
        "trees: verkle,verkle:compressed",
        "--out",
    ];
    folder.run(&other).fails_with(&refused);
    other = words;
    other.extend(["--to", "3"]);
    folder
        .run(&other)
        .fails_with(&["other arguments", "to: none there, 3 now"]);
    // Its results are no comparison of trees.
    let baseline = "compare chain --trees verkle --out c --baseline v --repeat 1 --no-survey";
    let baseline: Vec<&str> = baseline.split_whitespace().collect();
    folder
        .run(&baseline)
        .fails_with(&["`arbor bench ablation`, not of `arbor compare`"]);
}

#[test]
fn every_tree_has_the_common_techniques() {
    let folder = Folder::with_chain();
    check(&folder, "mpt", "m", &[]);
    check(&folder, "ar16mt", "a", &["chunk=1"]);
    check(&folder, "eip8297", "b", &["levels=1", "inner-hashes"]);
    // One thread does everything in turn already.
    let words = "bench ablation chain --tree mpt --out one --repeat 1 --threads 1 --to 3 --json";
    let words: Vec<&str> = words.split_whitespace().collect();
    let one = folder.run(&words).ok().json();
    let sides = strings(&one["results"]["ablation"]["without"], "word");
    assert_eq!(sides, COMMON[..2]);
    assert_eq!(one["results"]["chain"]["blocks"], 3);
}

#[test]
fn a_tree_that_is_not_there_is_refused_by_name() {
    let folder = Folder::with_chain();
    let words = "bench ablation chain --tree oak --out o";
    let words: Vec<&str> = words.split_whitespace().collect();
    let run = folder.run(&words);
    run.fails_with(&["'oak'", "mpt, verkle", "--tree"]);
    assert_eq!(run.0.status.code(), Some(2));
    let words = "bench ablation chain --tree mpt --out chain --repeat 1";
    let words: Vec<&str> = words.split_whitespace().collect();
    folder
        .run(&words)
        .fails_with(&["chain is not empty", "--out"]);
    assert!(!folder.path("o").exists());
}

/// The guide's table of techniques is that of the trees' settings and of the words of sides.
#[test]
fn the_guide_has_a_row_for_each_technique() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/compare.md");
    let guide = fs::read_to_string(guide).expect("readable");
    let head = "| switched off by | technique | trees |";
    let rows = guide.lines().skip_while(|line| *line != head).skip(2);
    let rows: Vec<Vec<&str>> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let registry = arbor_trees::standard();
    let mut known: Vec<(&str, &str, String)> = Vec::new();
    for tree in registry.rows() {
        for technique in tree.settings.iter().filter_map(|setting| setting.technique) {
            let name = format!("`{}`", tree.name);
            let place = known.iter().position(|(word, ..)| *word == technique.off);
            match place {
                Some(place) => known[place].2 += &format!(", {name}"),
                None => known.push((technique.off, technique.name, name)),
            }
        }
    }
    known.extend(Side::WORDS.map(|known| (known.word, known.technique, "all".to_owned())));
    for (word, technique, trees) in &known {
        let word = format!("`{word}`");
        let row = rows.iter().find(|row| row[0] == word);
        let row = row.unwrap_or_else(|| panic!("no row {word}"));
        assert!(row[1].starts_with(technique), "{word}: {technique}");
        assert!(row[2].starts_with(trees.as_str()), "{word}: {trees}");
    }
    assert_eq!(rows.len(), known.len());
}
