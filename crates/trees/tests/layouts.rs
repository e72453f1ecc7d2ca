//! The page of layouts names each tree's number in this program.

/// Returns the number in the last row of a name in the table, whose further rows leave the first cell empty.
fn newest(page: &str, name: &str) -> Option<u32> {
    let mut lines = page.lines();
    let quoted = format!("`{name}`");
    let is_named = |line: &&str| {
        let first = line.split('|').nth(1);
        let mut names = first.unwrap_or_default().split(", ").map(str::trim);
        line.starts_with('|') && names.any(|name| name == quoted)
    };
    let first = lines.find(is_named)?;
    let more = lines.take_while(|line| line.starts_with("| |"));
    let last = more.last().unwrap_or(first);
    let number = last.split('|').nth(2)?.split(',').next()?;
    number.trim().parse().ok()
}

#[test]
fn every_tree_has_its_layout_on_the_page() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/design/layouts.md");
    let page = std::fs::read_to_string(page).expect("the page of layouts");
    let trees = arbor_trees::standard();
    for kind in trees.rows() {
        let said = newest(&page, kind.name);
        assert_eq!(said, Some(kind.layout), "layout of {}", kind.name);
    }
}

#[test]
fn the_last_row_counts() {
    let page =
        "| tree | layout |\n|---|---|\n| `a`, `b` | 1 |\n| | 2, revision `x` |\n| `c` | 7 |\n";
    let found = ["a", "b", "c", "d"].map(|name| newest(page, name));
    assert_eq!(found, [Some(2), Some(2), Some(7), None]);
}
