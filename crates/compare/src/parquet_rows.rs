//! `blocks.parquet`: the rows of `blocks.csv` in columns with types.

use std::fs::File;
use std::sync::Arc;

use csv::StringRecord;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::error::of_file;
use crate::rows::each_block;
use crate::{CompareError, Folder, Results};

/// Rows that are in memory at a time, and in one group of the file.
const GROUP: usize = 1 << 16;

/// Writes `blocks.parquet`.
pub(crate) fn write_blocks(folder: &Folder, results: &Results) -> Result<(), CompareError> {
    let path = folder.path("blocks.parquet");
    let failed = |error: ParquetError| of_file(&path)(std::io::Error::other(error));
    folder.write_by(&path, &mut |file| {
        let mut table: Option<Table> = None;
        each_block(folder, results, &mut |record| match &mut table {
            None => {
                let file = file.try_clone().map_err(of_file(&path))?;
                table = Some(Table::new(file, record).map_err(failed)?);
                Ok(())
            }
            Some(table) => table.add(record).map_err(failed),
        })?;
        table.map_or(Ok(()), |table| table.finish().map_err(failed))
    })
}

/// A column's rows of one group. A value that is missing is null.
enum Values {
    Text(Vec<Option<ByteArray>>),
    Seconds(Vec<Option<f64>>),
    Whole(Vec<Option<i64>>),
}

impl Values {
    /// The type that a column has by its name.
    fn of_column(name: &str) -> Self {
        match name {
            "tree" | "block_hash" => Self::Text(Vec::new()),
            name if name.ends_with("_s") => Self::Seconds(Vec::new()),
            _ => Self::Whole(Vec::new()),
        }
    }

    fn schema(&self, name: &str) -> String {
        match self {
            Self::Text(_) => format!("OPTIONAL BYTE_ARRAY {name} (UTF8);"),
            Self::Seconds(_) => format!("OPTIONAL DOUBLE {name};"),
            Self::Whole(_) => format!("OPTIONAL INT64 {name};"),
        }
    }

    fn add(&mut self, text: &str) -> Result<(), ParquetError> {
        let wrong = || ParquetError::General(format!("'{text}' is not a number"));
        let is_there = !text.is_empty();
        match self {
            Self::Text(values) => values.push(is_there.then(|| text.into())),
            Self::Seconds(values) => values.push(match is_there {
                true => Some(text.parse().map_err(|_| wrong())?),
                false => None,
            }),
            Self::Whole(values) => values.push(match is_there {
                true => Some(text.parse().map_err(|_| wrong())?),
                false => None,
            }),
        }
        Ok(())
    }

    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, File>,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Text(values) => write_column::<ByteArrayType>(group, values),
            Self::Seconds(values) => write_column::<DoubleType>(group, values),
            Self::Whole(values) => write_column::<Int64Type>(group, values),
        }
    }
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &mut Vec<Option<T::T>>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("a column too many".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let present: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let values: Vec<T::T> = values.drain(..).flatten().collect();
    column
        .typed::<T>()
        .write_batch(&values, Some(&present), None)?;
    column.close()
}

struct Table {
    writer: SerializedFileWriter<File>,
    columns: Vec<Values>,
    rows: usize,
}

impl Table {
    fn new(file: File, names: &StringRecord) -> Result<Self, ParquetError> {
        let columns: Vec<Values> = names.iter().map(Values::of_column).collect();
        let fields = names.iter().zip(&columns);
        let fields: String = fields.map(|(name, values)| values.schema(name)).collect();
        let schema = parse_message_type(&format!("message blocks {{ {fields} }}"))?;
        let properties = Arc::new(WriterProperties::builder().build());
        Ok(Self {
            writer: SerializedFileWriter::new(file, Arc::new(schema), properties)?,
            columns,
            rows: 0,
        })
    }

    fn add(&mut self, record: &StringRecord) -> Result<(), ParquetError> {
        for (column, text) in self.columns.iter_mut().zip(record) {
            column.add(text)?;
        }
        self.rows += 1;
        match self.rows == GROUP {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<(), ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.writer.close().map(drop)
    }
}
