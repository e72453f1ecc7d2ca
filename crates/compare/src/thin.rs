//! The rows of a side for a page: neighbouring blocks together, so that a chain of any length has few points.

use csv::StringRecord;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::rows::each_block;
use crate::{CompareError, Folder, Results};

/// The most points that a line of the page has.
const POINTS: u64 = 150;

/// Least, mean and greatest value of a few neighbouring blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Range(f64, f64, f64);

/// What becomes of a column within neighbouring blocks.
#[derive(Clone, Copy)]
enum Thinned {
    /// The last value: of a sum along the chain.
    Last,
    /// The sum of all values.
    Sum,
    /// Least, mean and greatest value.
    Range,
}

/// The columns of the page: its name there, the column of the rows, and what becomes of it.
const COLUMNS: [(&str, &str, Thinned); 9] = [
    ("block", "block_number", Thinned::Last),
    ("elapsed", "elapsed_s", Thinned::Last),
    ("gas", "gas_used", Thinned::Sum),
    ("delay", "root_delay_s", Thinned::Range),
    ("memory", "memory_bytes", Thinned::Range),
    ("store", "store_bytes", Thinned::Last),
    ("written", "written_bytes", Thinned::Last),
    ("disk", "disk_bytes", Thinned::Last),
    ("hits", "cache_hits", Thinned::Last),
];

/// The column that is read along with `cache_hits`.
const MISSES: (&str, &str, Thinned) = ("misses", "cache_misses", Thinned::Last);

/// The thinned rows of all sides, by name.
pub(crate) fn series(
    folder: &Folder,
    results: &Results,
) -> Result<Map<String, Value>, CompareError> {
    let mut names: Option<StringRecord> = None;
    let mut sides: Vec<(String, Side)> = Vec::new();
    let each = results.chain.blocks.div_ceil(POINTS).max(1);
    each_block(folder, results, &mut |record| {
        let Some(names) = &names else {
            names = Some(record.clone());
            return Ok(());
        };
        let side = record.get(0).unwrap_or_default();
        if sides.last().is_none_or(|(last, _)| last != side) {
            sides.push((side.to_owned(), Side::new(names, each)));
        }
        if let Some((_, rows)) = sides.last_mut() {
            rows.add(record);
        }
        Ok(())
    })?;
    Ok(sides
        .into_iter()
        .map(|(name, side)| (name, side.finish()))
        .collect())
}

/// A side's rows under way.
struct Side {
    /// Blocks to a point.
    each: u64,
    /// Blocks of the point under way.
    blocks: u64,
    lines: Vec<Line>,
    counts: Vec<u64>,
}

struct Line {
    name: &'static str,
    thinned: Thinned,
    /// Where the rows have the column, if they do.
    place: Option<usize>,
    /// Values of the point under way; unknown ones are left out.
    values: Vec<f64>,
    points: Vec<Value>,
}

impl Side {
    fn new(names: &StringRecord, each: u64) -> Self {
        let lines = COLUMNS.iter().chain([&MISSES]);
        let line = |&(name, column, thinned): &(&'static str, &str, Thinned)| Line {
            name,
            thinned,
            place: names.iter().position(|name| name == column),
            values: Vec::new(),
            points: Vec::new(),
        };
        Self {
            each,
            blocks: 0,
            lines: lines.map(line).collect(),
            counts: Vec::new(),
        }
    }

    fn add(&mut self, record: &StringRecord) {
        for line in &mut self.lines {
            let text = line.place.and_then(|place| record.get(place));
            line.values
                .extend(text.and_then(|text| text.parse::<f64>().ok()));
        }
        self.blocks += 1;
        if self.blocks == self.each {
            self.close();
        }
    }

    fn close(&mut self) {
        for line in &mut self.lines {
            line.close();
        }
        self.counts.push(self.blocks);
        self.blocks = 0;
    }

    fn finish(mut self) -> Value {
        if self.blocks > 0 {
            self.close();
        }
        let lines = self.lines.into_iter();
        let mut fields: Map<String, Value> = lines
            .map(|line| (line.name.to_owned(), Value::Array(line.points)))
            .collect();
        fields.insert("blocks".to_owned(), json!(self.counts));
        Value::Object(fields)
    }
}

impl Line {
    fn close(&mut self) {
        let values = std::mem::take(&mut self.values);
        let sum: f64 = values.iter().sum();
        self.points.push(match (values.last(), self.thinned) {
            (None, _) => Value::Null,
            (Some(last), Thinned::Last) => json!(last),
            (Some(_), Thinned::Sum) => json!(sum),
            (Some(_), Thinned::Range) => {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                json!(Range(least, sum / values.len() as f64, most))
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_put_together() {
        let record = |cells: &[&str]| cells.iter().copied().collect::<StringRecord>();
        let names = record(&[
            "tree",
            "block_number",
            "gas_used",
            "root_delay_s",
            "disk_bytes",
        ]);
        let mut side = Side::new(&names, 2);
        for (block, gas, delay, disk) in [
            ("1", "10", "0.5", ""),
            ("2", "20", "1.5", ""),
            ("3", "5", "4", "7"),
        ] {
            side.add(&record(&["oak", block, gas, delay, disk]));
        }
        let series = side.finish();
        assert_eq!(series["block"], json!([2.0, 3.0]));
        assert_eq!(series["gas"], json!([30.0, 5.0]));
        assert_eq!(series["delay"], json!([[0.5, 1.0, 1.5], [4.0, 4.0, 4.0]]));
        assert_eq!(series["disk"], json!([null, 7.0]));
        assert_eq!(
            series["memory"],
            json!([null, null]),
            "a column that is not there"
        );
        assert_eq!(series["blocks"], json!([2, 1]));
    }
}
