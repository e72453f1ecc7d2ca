//! Comma-separated values: a row for each run, and a row for each block of each side.

use std::io::BufWriter;
use std::path::Path;

use csv::{Reader, StringRecord, Writer};

use crate::error::of_file;
use crate::figure;
use crate::run::Run;
use crate::{CompareError, Folder, Results};

/// Writes `runs.csv`: a row for each run, a column for each figure.
pub(crate) fn write_runs(folder: &Folder, runs: &[Run]) -> Result<(), CompareError> {
    let path = folder.path("runs.csv");
    let mut names: Vec<String> = Vec::new();
    for figure in runs.iter().flat_map(figure::of_run) {
        if !names.contains(&figure.name) {
            names.push(figure.name);
        }
    }
    let mut out = Writer::from_writer(Vec::new());
    let failed = failed(&path);
    let begin = ["tree", "run", "started"].map(str::to_owned);
    out.write_record(begin.iter().chain(&names))
        .map_err(&failed)?;
    for run in runs {
        let figures = figure::of_run(run);
        let value = |name: &String| {
            let found = figures.iter().find(|figure| figure.name == *name);
            found.map_or_else(String::new, |figure| figure.value.to_string())
        };
        let begin = [
            run.side.clone(),
            run.repetition.to_string(),
            run.report.started.clone(),
        ];
        let cells = begin.into_iter().chain(names.iter().map(value));
        out.write_record(cells).map_err(&failed)?;
    }
    let text = out.into_inner().map_err(|error| error.into_error());
    folder.write(&path, &text.map_err(of_file(&path))?)
}

/// Goes through the rows of the blocks of all sides, each side's from its median run: first the names of the
/// columns, then the rows, all of which begin with the side's name.
///
/// # Errors
/// A file without a row for each block, or with other columns than the first side's.
pub(crate) fn each_block(
    folder: &Folder,
    results: &Results,
    each: &mut dyn FnMut(&StringRecord) -> Result<(), CompareError>,
) -> Result<(), CompareError> {
    let mut columns_of_all = StringRecord::new();
    for (index, column) in results.trees.iter().enumerate() {
        let path = folder.of_run(&column.side, column.median_run, "csv");
        let mut input = Reader::from_path(&path).map_err(failed(&path))?;
        let with = |name: &str, record: &StringRecord| {
            let begin = std::iter::once(name);
            begin
                .chain(record)
                .map(str::to_owned)
                .collect::<StringRecord>()
        };
        let names = input.headers().map_err(damaged(&path))?;
        if index == 0 {
            columns_of_all = names.clone();
            each(&with("tree", names))?;
        }
        let damaged_by = |why: String| CompareError::Damaged {
            path: path.clone(),
            why,
        };
        if *names != columns_of_all {
            return Err(damaged_by(
                "its columns are not those of the first tree".to_owned(),
            ));
        }
        let mut blocks = 0;
        for record in input.records() {
            blocks += 1;
            each(&with(&column.side.name, &record.map_err(damaged(&path))?))?;
        }
        if blocks != results.chain.blocks {
            return Err(damaged_by(format!(
                "it has {blocks} rows for {} blocks",
                results.chain.blocks
            )));
        }
    }
    Ok(())
}

/// Writes `blocks.csv`.
pub(crate) fn write_blocks(folder: &Folder, results: &Results) -> Result<(), CompareError> {
    let path = folder.path("blocks.csv");
    folder.write_by(&path, &mut |file| {
        let mut out = Writer::from_writer(BufWriter::new(file));
        let write = failed(&path);
        each_block(folder, results, &mut |record| {
            out.write_record(record).map_err(&write)
        })?;
        out.flush().map_err(of_file(&path))
    })
}

/// Names the rows of a run that cannot be read.
fn damaged(path: &Path) -> impl Fn(csv::Error) -> CompareError {
    move |error| CompareError::Damaged {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

fn failed(path: &Path) -> impl Fn(csv::Error) -> CompareError {
    let of_file = of_file(path);
    move |error| of_file(std::io::Error::from(error))
}
