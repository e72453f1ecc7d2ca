//! A table that is written to a Parquet file row by row.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, FixedLenByteArray, FixedLenByteArrayType,
    Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Rows that are in memory at a time, and in one group of the file.
const GROUP: usize = 1 << 16;

/// What a column has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Numbers below 2^64.
    U64,
    /// Numbers below 2^32.
    U32,
    Flag,
    Text,
    /// So many bytes.
    Bytes(usize),
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Null,
    Number(u64),
    Flag(bool),
    Text(&'static str),
    Bytes(&'a [u8]),
}

/// A column with its values of the rows that are not written yet.
#[derive(Debug)]
pub(super) struct Column {
    name: String,
    kind: Kind,
    is_optional: bool,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Long(Vec<Option<i64>>),
    Short(Vec<Option<i32>>),
    Flag(Vec<Option<bool>>),
    Text(Vec<Option<ByteArray>>),
    Bytes(Vec<Option<FixedLenByteArray>>),
}

impl Column {
    /// A column without nulls.
    pub(super) fn required(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            is_optional: false,
            values: match kind {
                Kind::U64 => Values::Long(Vec::new()),
                Kind::U32 => Values::Short(Vec::new()),
                Kind::Flag => Values::Flag(Vec::new()),
                Kind::Text => Values::Text(Vec::new()),
                Kind::Bytes(_) => Values::Bytes(Vec::new()),
            },
        }
    }

    /// A column that may have nulls.
    pub(super) fn optional(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            is_optional: true,
            ..Self::required(name, kind)
        }
    }

    fn schema(&self) -> String {
        let presence = match self.is_optional {
            true => "OPTIONAL",
            false => "REQUIRED",
        };
        let name = &self.name;
        match self.kind {
            Kind::U64 => format!("{presence} INT64 {name} (INTEGER(64,false));"),
            Kind::U32 => format!("{presence} INT32 {name} (INTEGER(32,false));"),
            Kind::Flag => format!("{presence} BOOLEAN {name};"),
            Kind::Text => format!("{presence} BYTE_ARRAY {name} (UTF8);"),
            Kind::Bytes(length) => format!("{presence} FIXED_LEN_BYTE_ARRAY({length}) {name};"),
        }
    }

    fn add(&mut self, cell: Cell<'_>) -> Result<(), ParquetError> {
        let wrong = || ParquetError::General(format!("{cell:?} is no value of {}", self.name));
        if matches!(cell, Cell::Null) && !self.is_optional {
            return Err(wrong());
        }
        match (&mut self.values, self.kind, cell) {
            (Values::Long(values), _, Cell::Null) => values.push(None),
            (Values::Short(values), _, Cell::Null) => values.push(None),
            (Values::Flag(values), _, Cell::Null) => values.push(None),
            (Values::Text(values), _, Cell::Null) => values.push(None),
            (Values::Bytes(values), _, Cell::Null) => values.push(None),
            // The column's type says that the bits are those of a number without sign.
            (Values::Long(values), _, Cell::Number(number)) => {
                values.push(Some(number.cast_signed()));
            }
            (Values::Short(values), _, Cell::Number(number)) => {
                let number = u32::try_from(number).map_err(|_| wrong())?;
                values.push(Some(number.cast_signed()));
            }
            (Values::Flag(values), _, Cell::Flag(flag)) => values.push(Some(flag)),
            (Values::Text(values), _, Cell::Text(text)) => values.push(Some(text.into())),
            (Values::Bytes(values), Kind::Bytes(length), Cell::Bytes(bytes))
                if bytes.len() == length =>
            {
                let bytes = ByteArray::from(bytes.to_vec());
                values.push(Some(bytes.into()));
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, File>,
    ) -> Result<(), ParquetError> {
        let is_optional = self.is_optional;
        match &mut self.values {
            Values::Long(values) => write_column::<Int64Type>(group, is_optional, values),
            Values::Short(values) => write_column::<Int32Type>(group, is_optional, values),
            Values::Flag(values) => write_column::<BoolType>(group, is_optional, values),
            Values::Text(values) => write_column::<ByteArrayType>(group, is_optional, values),
            Values::Bytes(values) => {
                write_column::<FixedLenByteArrayType>(group, is_optional, values)
            }
        }
    }
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    is_optional: bool,
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
        .write_batch(&values, is_optional.then_some(&present[..]), None)?;
    column.close()
}

/// A table under way. A group of rows is in memory until it is written.
pub(super) struct ParquetTable {
    writer: SerializedFileWriter<File>,
    /// To make the file durable at the end.
    file: File,
    columns: Vec<Column>,
    rows: usize,
}

impl std::fmt::Debug for ParquetTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetTable")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl ParquetTable {
    /// Begins a table in an empty file.
    pub(super) fn new(file: File, name: &str, columns: Vec<Column>) -> Result<Self, ParquetError> {
        let fields: String = columns.iter().map(Column::schema).collect();
        let schema = parse_message_type(&format!("message {name} {{ {fields} }}"))?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let properties = Arc::new(properties.build());
        let written = file.try_clone()?;
        Ok(Self {
            writer: SerializedFileWriter::new(written, Arc::new(schema), properties)?,
            file,
            columns,
            rows: 0,
        })
    }

    /// Adds a row, with a value for each column.
    pub(super) fn add(&mut self, row: &[Cell<'_>]) -> Result<(), ParquetError> {
        if row.len() != self.columns.len() {
            let (cells, columns) = (row.len(), self.columns.len());
            let why = format!("a row of {cells} values for {columns} columns");
            return Err(ParquetError::General(why));
        }
        for (column, cell) in self.columns.iter_mut().zip(row) {
            column.add(*cell)?;
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

    /// Writes what is left, and makes the file durable.
    pub(super) fn finish(mut self) -> Result<(), ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.writer.close()?;
        Ok(self.file.sync_all()?)
    }
}
