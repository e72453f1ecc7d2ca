//! A table that is written to a Parquet file row by row, in groups: memory does not grow with the number of rows.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::Compression as Codec;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

pub use parquet::errors::ParquetError;

/// Rows that are in memory at a time, and in one group of the file.
const GROUP: usize = 1 << 16;

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Numbers from 0 to below 2^64.
    U64,
    /// Numbers from 0 to below 2^32.
    U32,
    /// Numbers from -2^63 to below 2^63.
    I64,
    /// Floating-point numbers of 64 bits.
    F64,
    /// Yes or no.
    Flag,
    /// Text in UTF-8.
    Text,
    /// Byte strings of this length.
    Bytes(usize),
}

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    /// No value, in an optional column.
    Null,
    /// A number of a column [`Kind::U64`] or [`Kind::U32`].
    Number(u64),
    /// A number of a column [`Kind::I64`].
    Signed(i64),
    /// A number of a column [`Kind::F64`].
    Real(f64),
    /// A value of a column [`Kind::Flag`].
    Flag(bool),
    /// A value of a column [`Kind::Text`].
    Text(&'a str),
    /// A value of a column [`Kind::Bytes`], of the column's length.
    Bytes(&'a [u8]),
}

/// The compression of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compression {
    /// No compression.
    None,
    /// Snappy.
    Snappy,
}

/// A column, with its values of the rows that are not written yet.
#[derive(Debug)]
pub struct Column {
    name: String,
    kind: Kind,
    is_optional: bool,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Long(Vec<Option<i64>>),
    Short(Vec<Option<i32>>),
    Real(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
    Text(Vec<Option<ByteArray>>),
    Bytes(Vec<Option<FixedLenByteArray>>),
}

impl Column {
    /// Returns a column without nulls.
    pub fn required(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            is_optional: false,
            values: match kind {
                Kind::U64 | Kind::I64 => Values::Long(Vec::new()),
                Kind::U32 => Values::Short(Vec::new()),
                Kind::F64 => Values::Real(Vec::new()),
                Kind::Flag => Values::Flag(Vec::new()),
                Kind::Text => Values::Text(Vec::new()),
                Kind::Bytes(_) => Values::Bytes(Vec::new()),
            },
        }
    }

    /// Returns a column that may have nulls.
    pub fn optional(name: impl Into<String>, kind: Kind) -> Self {
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
            Kind::I64 => format!("{presence} INT64 {name};"),
            Kind::F64 => format!("{presence} DOUBLE {name};"),
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
            (Values::Real(values), _, Cell::Null) => values.push(None),
            (Values::Flag(values), _, Cell::Null) => values.push(None),
            (Values::Text(values), _, Cell::Null) => values.push(None),
            (Values::Bytes(values), _, Cell::Null) => values.push(None),
            // The column's type says that the bits are those of a number without sign.
            (Values::Long(values), Kind::U64, Cell::Number(number)) => {
                values.push(Some(number.cast_signed()));
            }
            (Values::Long(values), Kind::I64, Cell::Signed(number)) => values.push(Some(number)),
            (Values::Real(values), _, Cell::Real(number)) => values.push(Some(number)),
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
            Values::Real(values) => write_column::<DoubleType>(group, is_optional, values),
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

/// A table that is being written. A group of 65,536 rows is in memory until it is written.
pub struct ParquetTable {
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
    /// Begins a table in an empty file. `name` is the table's name in the file's schema.
    ///
    /// # Errors
    /// A name that a schema cannot have, and errors of writing the file.
    pub fn new(
        file: File,
        name: &str,
        columns: Vec<Column>,
        compression: Compression,
    ) -> Result<Self, ParquetError> {
        let fields: String = columns.iter().map(Column::schema).collect();
        let schema = parse_message_type(&format!("message {name} {{ {fields} }}"))?;
        let properties = WriterProperties::builder().set_compression(match compression {
            Compression::None => Codec::UNCOMPRESSED,
            Compression::Snappy => Codec::SNAPPY,
        });
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
    ///
    /// # Errors
    /// Another number of values than of columns; a value of another type than its column; errors of writing a group. The table is of no
    /// use afterwards.
    pub fn add(&mut self, row: &[Cell<'_>]) -> Result<(), ParquetError> {
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

    /// Writes the last rows and the end of the file, and makes the file durable.
    ///
    /// # Errors
    /// Errors of writing the file.
    pub fn finish(mut self) -> Result<(), ParquetError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.writer.close()?;
        Ok(self.file.sync_all()?)
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn columns() -> Vec<Column> {
        vec![
            Column::required("number", Kind::U64),
            Column::optional("short", Kind::U32),
            Column::optional("signed", Kind::I64),
            Column::optional("real", Kind::F64),
            Column::required("flag", Kind::Flag),
            Column::optional("text", Kind::Text),
            Column::optional("bytes", Kind::Bytes(3)),
        ]
    }

    fn table(file: &File) -> ParquetTable {
        let file = file.try_clone().expect("cloned");
        ParquetTable::new(file, "rows", columns(), Compression::Snappy).expect("begun")
    }

    /// More rows than a group has come back as they were added.
    #[test]
    fn rows_come_back_from_several_groups() {
        let file = tempfile::tempfile().expect("made");
        let mut table = table(&file);
        let rows = GROUP as u64 + 3;
        for row in 0..rows {
            let text = format!("row {row}");
            let is_odd = row % 2 == 1;
            let odd = |cell| if is_odd { cell } else { Cell::Null };
            let cells = [
                Cell::Number(u64::MAX - row),
                odd(Cell::Number(u32::MAX.into())),
                odd(Cell::Signed(-5)),
                odd(Cell::Real(0.25)),
                Cell::Flag(is_odd),
                odd(Cell::Text(&text)),
                odd(Cell::Bytes(b"abc")),
            ];
            table.add(&cells).expect("added");
        }
        table.finish().expect("written");
        let reader = SerializedFileReader::new(file).expect("a Parquet file");
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let mut count = 0;
        for row in reader.get_row_iter(None).expect("rows") {
            let row = row.expect("a row");
            let fields: Vec<Field> = row
                .get_column_iter()
                .map(|(_, field)| field.clone())
                .collect();
            assert_eq!(fields[0], Field::ULong(u64::MAX - count));
            let rest = match count % 2 {
                1 => [
                    Field::UInt(u32::MAX),
                    Field::Long(-5),
                    Field::Double(0.25),
                    Field::Bool(true),
                    Field::Str(format!("row {count}")),
                    Field::Bytes(b"abc".to_vec().into()),
                ],
                _ => [
                    Field::Null,
                    Field::Null,
                    Field::Null,
                    Field::Bool(false),
                    Field::Null,
                    Field::Null,
                ],
            };
            assert_eq!(fields[1..], rest);
            count += 1;
        }
        assert_eq!(count, rows);
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let good = [
            Cell::Number(1),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Flag(true),
            Cell::Null,
            Cell::Null,
        ];
        let file = tempfile::tempfile().expect("made");
        table(&file).add(&good).expect("a row");
        let wrong = [
            (0, Cell::Null),
            (0, Cell::Signed(1)),
            (1, Cell::Number(1 << 32)),
            (2, Cell::Number(1)),
            (3, Cell::Signed(1)),
            (4, Cell::Number(1)),
            (5, Cell::Bytes(b"abc")),
            (6, Cell::Bytes(b"abcd")),
        ];
        for (place, cell) in wrong {
            let mut row = good;
            row[place] = cell;
            let error = table(&file).add(&row).expect_err("refused").to_string();
            assert!(error.contains("is no value of"), "{error}");
        }
        assert!(table(&file).add(&good[1..]).is_err());
    }
}
