//! `report.html`: the results as one page that opens without a network.

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
const SCRIPT: [&str; 4] = [
    include_str!("page/format.js"),
    include_str!("page/charts.js"),
    include_str!("page/comparison_plots.js"),
    include_str!("page/comparison.js"),
];

/// Writes `report.html`.
pub(crate) fn write(
    folder: &Folder,
    results: &Results,
    runs: &[Run],
    envelope: &Envelope,
) -> Result<(), CompareError> {
    let data = data(folder, results, runs, envelope)?;
    folder.write(&folder.path("report.html"), page(&data).as_bytes())
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
        "series": thin::series(folder, &results.trees, results.chain.blocks)?,
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
fn page(data: &Value) -> String {
    let data = data.to_string().replace('<', "\\u003c");
    // The data come last: nothing in them is taken for a place.
    PAGE.replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", &SCRIPT.concat())
        .replace("/*LIBRARY*/", LIBRARY)
        .replace("/*DATA*/", &data)
}

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use super::*;

    #[test]
    fn data_stay_within_their_element() {
        let page = page(&json!({ "name": "</script><script>alert(1)</script>/*SCRIPT*/" }));
        assert_eq!(page.matches("</script>").count(), 3);
        assert!(page.contains("\\u003c/script>") && page.contains("/*SCRIPT*/"));
        assert!(page.len() < 1_500_000, "{}", page.len());
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
        for text in [PAGE, STYLE].iter().chain(&SCRIPT) {
            for word in [
                "http:", "https:", "//cdn", "src=", "@import", "fetch(", "url(",
            ] {
                assert!(!text.contains(word), "{word}");
            }
        }
    }
}
