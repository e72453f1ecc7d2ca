//! The exit codes of docs/exit-codes.md.

use std::path::Path;

use crate::support::Folder;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exit-codes.md");
    std::fs::read_to_string(path).expect("the page is readable")
}

/// The commands that `arbor help` lists below a heading.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("Commands:").nth(1).expect("commands");
    let list = list.split("\n\n").next().expect("their list");
    let names = list.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty()).then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn the_page_has_every_command_and_code() {
    let folder = Folder::new();
    let help = folder.run(&["help"]).ok().stdout();
    let page = page();
    let listed = commands(&help);
    assert!(listed.len() >= 20, "{listed:?}");
    for command in listed {
        let named = [format!("`{command}`"), format!("`{command} ")];
        assert!(
            named.iter().any(|name| page.contains(name)),
            "the page does not name {command}"
        );
    }
    let codes = help.split("Exit codes:").nth(1).expect("the codes");
    for code in ["0", "1", "2", "3", "130"] {
        let is_it = |line: &str| line.split_whitespace().next() == Some(code);
        assert!(codes.lines().any(is_it), "{code} is not in: {codes}");
        assert!(page.contains(&format!("\n| {code} | ")), "{code}");
    }
}

#[test]
fn a_command_line_that_is_not_understood_ends_with_2() {
    let folder = Folder::new();
    let help = folder.run(&["help"]).ok().stdout();
    for command in commands(&help).iter().filter(|name| *name != "help") {
        let run = folder.run(&[command, "--no-such-flag"]);
        assert_eq!(run.0.status.code(), Some(2), "{command}: {}", run.stderr());
    }
    assert_eq!(folder.run(&["no-such-command"]).0.status.code(), Some(2));
}

#[test]
fn failures_end_with_1_and_true_results_with_0() {
    let folder = Folder::with_chain();
    let code = |words: &[&str]| folder.run(words).0.status.code();
    assert_eq!(code(&["replay", "--db", "db", "chain"]), Some(0));
    assert_eq!(code(&["verify", "--db", "db"]), Some(0));
    for command in ["status", "verify", "dump"] {
        assert_eq!(code(&[command, "--db", "absent"]), Some(1), "{command}");
    }
    let nobody = "0x00000000000000000000000000000000000000ab";
    assert_eq!(code(&["get", "--db", "db", nobody]), Some(0));
    let proof = folder.run(&["prove", "--db", "db", nobody]).ok().stdout();
    std::fs::write(folder.path("proof.json"), proof).expect("written");
    let (right, wrong) = (root(&folder), format!("0x{}", "11".repeat(32)));
    let verify = |root: &str| code(&["verify-proof", "proof.json", "--root", root]);
    assert_eq!(verify(&right), Some(0));
    assert_eq!(verify(&wrong), Some(1));
}

/// The root that `arbor status` prints.
fn root(folder: &Folder) -> String {
    let status = folder.run(&["status", "--db", "db"]).ok().stdout();
    let line = status
        .lines()
        .find(|line| line.contains("state root"))
        .expect("a root");
    let at = line.find("0x").expect("a hash");
    line[at..at + 66].to_owned()
}
