//! `blocks.parquet`: the rows of `blocks.csv` in columns with types.

use arbor_metrics::parquet_table::{Cell, Column, Compression, Kind, ParquetError, ParquetTable};
use csv::StringRecord;

use crate::error::of_file;
use crate::rows::each_block;
use crate::{CompareError, Folder, Results};

/// Writes `blocks.parquet`.
pub(crate) fn write_blocks(folder: &Folder, results: &Results) -> Result<(), CompareError> {
    let path = folder.path("blocks.parquet");
    let failed = |error: ParquetError| of_file(&path)(std::io::Error::other(error));
    folder.write_by(&path, &mut |file| {
        let mut table: Option<Blocks> = None;
        each_block(folder, results, &mut |record| match &mut table {
            None => {
                let kinds: Vec<Kind> = record.iter().map(kind).collect();
                let columns = record.iter().zip(&kinds);
                let columns = columns.map(|(name, kind)| Column::optional(name, *kind));
                let file = file.try_clone().map_err(of_file(&path))?;
                let begun = ParquetTable::new(file, "blocks", columns.collect(), Compression::None);
                table = Some(Blocks {
                    table: begun.map_err(failed)?,
                    kinds,
                });
                Ok(())
            }
            Some(table) => table.add(record).map_err(failed),
        })?;
        table.map_or(Ok(()), |table| table.table.finish().map_err(failed))
    })
}

/// Returns the type that a column has by its name.
fn kind(name: &str) -> Kind {
    match name {
        "tree" | "block_hash" => Kind::Text,
        name if name.ends_with("_s") => Kind::F64,
        _ => Kind::I64,
    }
}

struct Blocks {
    table: ParquetTable,
    kinds: Vec<Kind>,
}

impl Blocks {
    /// Adds a row. A value that is missing is null.
    fn add(&mut self, record: &StringRecord) -> Result<(), ParquetError> {
        let cells = self.kinds.iter().zip(record);
        let cells: Result<Vec<_>, _> = cells.map(|(kind, text)| cell(*kind, text)).collect();
        self.table.add(&cells?)
    }
}

fn cell(kind: Kind, text: &str) -> Result<Cell<'_>, ParquetError> {
    let wrong = || ParquetError::General(format!("'{text}' is not a number"));
    Ok(match kind {
        _ if text.is_empty() => Cell::Null,
        Kind::Text => Cell::Text(text),
        Kind::F64 => Cell::Real(text.parse().map_err(|_| wrong())?),
        _ => Cell::Signed(text.parse().map_err(|_| wrong())?),
    })
}
