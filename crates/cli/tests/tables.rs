//! Tables fit the terminal, and lose nothing by it.

use crate::support::Folder;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Columns of a narrow terminal.
const NARROW: usize = 50;

/// Checks that a command prints all `headings`, and that no line from the first heading on is wider than a narrow
/// terminal. At full width some line must be wider, or the command's tables have nothing to fit.
fn fits(folder: &Folder, line: &str, headings: &[&str]) {
    let table = |text: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.contains(headings[0]));
        lines.map(str::to_owned).collect()
    };
    let is_wide = |line: &String| line.chars().count() > NARROW;
    let narrow = folder.run_in_columns(NARROW, &words(line)).ok().stdout();
    let narrow = table(&narrow);
    for heading in headings {
        assert!(
            narrow.iter().any(|line| line.contains(heading)),
            "{line}: {heading} is not in {narrow:#?}"
        );
    }
    assert!(!narrow.iter().any(is_wide), "{line}: {narrow:#?}");
    let wide = folder.run_in_columns(200, &words(line)).ok().stdout();
    assert!(table(&wide).iter().any(is_wide), "{line}: {wide}");
}

#[test]
fn tables_fit_a_narrow_terminal() {
    let folder = Folder::with_chain();
    folder.run(&words("replay --db db chain")).ok();
    fits(
        &folder,
        "inspect --db db --top 0",
        &[
            "records",
            "values",
            "accounts branch",
            "storage leaf",
            "earlier values",
        ],
    );
    fits(
        &folder,
        "bench database --db db --proofs 1,3 --updates 1,3 --repeat 1",
        &["proof of slots", "checked in ms", "us a slot"],
    );
    fits(
        &folder,
        "bench witnesses chain --trees mpt --to 3",
        &["least", "median", "mean"],
    );
}

/// The columns of a comparison are its trees: those that do not fit stand below.
#[test]
fn a_comparison_fits_a_narrow_terminal() {
    let folder = Folder::with_chain();
    let compare = words(
        "compare chain --trees mpt,verkle,ar16mt --out c --repeat 1 --no-survey --baseline c/results.json",
    );
    folder.run(&compare[..compare.len() - 2]).ok();
    let printed = folder.run_in_columns(NARROW, &compare).ok().stdout();
    for part in ["verkle", "ar16mt", "since the baseline", "growth"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let prose = [
        "; medians, and ratios to",
        "report: ",
        "counts and bytes none grew",
    ];
    for line in printed.lines() {
        assert!(
            line.chars().count() <= NARROW || prose.iter().any(|part| line.contains(part)),
            "{line}"
        );
    }
    // The names of the rows stand next to each tree.
    assert_eq!(printed.matches("\nwall time ").count(), 3, "{printed}");
}
