//! Results as one page that opens without a network: `report.html` of a comparison, and that of an inspection.

use std::collections::BTreeMap;

use arbor_metrics::Envelope;
use serde_json::{Value, json};

use crate::figure::{COUNTERS, HEADLINES};
use crate::run::Run;
use crate::{CompareError, Folder, Results, thin};

/// Apache ECharts, see `vendor/echarts/README.md`.
const LIBRARY: &str = include_str!("../vendor/echarts/echarts.common.min.js");

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The scripts that all pages share.
const SHARED: [&str; 4] = [
    include_str!("page/format.js"),
    include_str!("page/charts.js"),
    include_str!("page/drawing.js"),
    include_str!("page/inspection_plots.js"),
];

/// What one sort of page has of its own.
struct Kind {
    title: &'static str,
    heading: &'static str,
    /// The heading of the last section.
    about: &'static str,
    /// Where a reader without scripts finds the figures.
    elsewhere: &'static str,
    scripts: &'static [&'static str],
}

const COMPARISON: Kind = Kind {
    title: "Trees compared",
    heading: "The same blocks under each tree",
    about: "How it was measured",
    elsewhere: "All figures are in results.json next to it.",
    scripts: &[
        include_str!("page/comparison_plots.js"),
        include_str!("page/comparison.js"),
    ],
};

const ABLATION: Kind = Kind {
    title: "A tree without each of its techniques",
    heading: "The same blocks with all techniques, and without each",
    ..COMPARISON
};

const INSPECTION: Kind = Kind {
    title: "A database inspected",
    heading: "What the database consists of",
    about: "The largest, and where they are",
    elsewhere: "<code>arbor inspect --json</code> prints all figures.",
    scripts: &[include_str!("page/inspection.js")],
};

/// Returns the page of an inspection: of the envelope whose results are those of `arbor inspect --json`.
pub fn inspection_page(envelope: &Envelope) -> String {
    let found = &envelope.results;
    let tree = found["tree"].as_str().unwrap_or_default();
    let data = json!({
        "started": envelope.started,
        "versions": envelope.versions,
        "settings": envelope.settings,
        "trees": [{ "name": tree }],
        "inspections": { tree: found },
    });
    page(&INSPECTION, &data)
}

/// Writes `report.html`.
pub(crate) fn write(
    folder: &Folder,
    results: &Results,
    runs: &[Run],
    envelope: &Envelope,
) -> Result<(), CompareError> {
    let data = data(folder, results, runs, envelope)?;
    folder.write(
        &folder.path("report.html"),
        page(kind_of(envelope), &data).as_bytes(),
    )
}

/// The sort of page that a report gets: the results of `arbor bench ablation` have an ablation.
fn kind_of(envelope: &Envelope) -> &'static Kind {
    match envelope.results.get("ablation") {
        Some(_) => &ABLATION,
        None => &COMPARISON,
    }
}

/// All that the page's script is given.
fn data(
    folder: &Folder,
    results: &Results,
    runs: &[Run],
    envelope: &Envelope,
) -> Result<Value, CompareError> {
    let reports: BTreeMap<&str, &Envelope> = results
        .trees
        .iter()
        .filter_map(|column| {
            let name = column.side.name.as_str();
            let mut runs = runs.iter().filter(|run| run.side == name);
            let run = runs.find(|run| run.repetition == column.median_run)?;
            Some((name, &run.report))
        })
        .collect();
    let delays = reports.iter();
    let delays = delays.map(|(name, report)| (*name, &report.results["root_delay"]));
    let delays: BTreeMap<&str, &Value> = delays.filter(|(_, delay)| !delay.is_null()).collect();
    let ends = reports.iter().map(|(name, report)| (*name, end(report)));
    let ends: BTreeMap<&str, Value> = ends.collect();
    let mut data = json!({
        "started": envelope.started,
        "machine": envelope.machine,
        "versions": envelope.versions,
        "settings": envelope.settings,
        "headlines": HEADLINES,
        "counters": results.figures.iter().map(|row| &row.name).filter(|name| is_counter(name)).collect::<Vec<_>>(),
        "delays": delays,
        "ends": ends,
        "series": thin::series(folder, results)?,
        "ablation": envelope.results.get("ablation"),
    });
    if let (Value::Object(data), Ok(Value::Object(results))) =
        (&mut data, serde_json::to_value(results))
    {
        data.extend(results);
    }
    Ok(data)
}

/// Sums of a run after all its blocks, once the database is closed, by the names that the page's rows have.
fn end(report: &Envelope) -> Value {
    let bytes = report.results["database"]["bytes"].as_object();
    let kinds = bytes.into_iter().flat_map(|kinds| kinds.values());
    let store: u64 = kinds.filter_map(Value::as_u64).sum();
    json!({
        "store": bytes.map(|_| store),
        "written": report.process.written_bytes,
        "disk": report.results["disk_bytes"],
    })
}

fn is_counter(name: &str) -> bool {
    COUNTERS.contains(&name)
}

/// The page with its data. No `<` of the data can end the element that it stands in.
fn page(kind: &Kind, data: &Value) -> String {
    let data = data.to_string().replace('<', "\\u003c");
    let scripts = [&SHARED, kind.scripts].concat().concat();
    // The data come last: nothing in them is taken for a place.
    PAGE.replace("/*TITLE*/", kind.title)
        .replace("/*HEADING*/", kind.heading)
        .replace("/*ABOUT*/", kind.about)
        .replace("/*ELSEWHERE*/", kind.elsewhere)
        .replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", &scripts)
        .replace("/*LIBRARY*/", LIBRARY)
        .replace("/*DATA*/", &data)
}

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use super::*;

    #[test]
    fn data_stay_within_their_element() {
        let data = json!({ "name": "</script><script>alert(1)</script>/*SCRIPT*/" });
        for kind in [&COMPARISON, &ABLATION, &INSPECTION] {
            let page = page(kind, &data);
            assert_eq!(page.matches("</script>").count(), 3);
            assert!(page.contains("\\u003c/script>") && page.contains("/*SCRIPT*/"));
            assert!(page.contains(kind.heading) && !page.contains("/*ABOUT*/"));
            assert!(page.len() < 1_500_000, "{}", page.len());
        }
    }

    /// The library is the file that its page describes, unchanged.
    #[test]
    fn the_library_is_the_one_described() {
        let about = include_str!("../vendor/echarts/README.md");
        let found = sha2::Sha256::digest(LIBRARY.as_bytes());
        let found: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(about.contains(&found), "the library's SHA-256 is {found}");
        assert!(LIBRARY.contains("Licensed to the Apache Software Foundation"));
    }

    /// The page asks for nothing: no address of another place is in what we wrote.
    #[test]
    fn the_page_names_no_other_place() {
        for text in [PAGE, STYLE]
            .iter()
            .chain(&SHARED)
            .chain(COMPARISON.scripts)
            .chain(INSPECTION.scripts)
        {
            for word in [
                "http:", "https:", "//cdn", "src=", "@import", "fetch(", "url(",
            ] {
                assert!(!text.contains(word), "{word}");
            }
        }
    }
}
