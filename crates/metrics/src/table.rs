//! Tables for a terminal.

/// Spaces between two columns.
const GAP: usize = 2;

/// Cells under headings, printed in lines that fit a terminal.
///
/// The first column names the rows and is aligned to the left; the others are aligned to the right. If a table is wider
/// than the terminal, the columns that do not fit follow below the others, next to the first column again.
///
/// ```
/// use arbor_metrics::Table;
///
/// let mut table = Table::new(["tree", "nodes", "bytes"]);
/// table.row(["mpt", "12", "3400"]);
/// assert_eq!(table.text(None), "tree  nodes  bytes\nmpt      12   3400\n");
/// assert_eq!(table.text(Some(12)), "tree  nodes\nmpt      12\n\ntree  bytes\nmpt    3400\n");
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    /// The headings, then the rows.
    lines: Vec<Vec<String>>,
}

impl Table {
    /// Starts a table with the headings of its columns.
    pub fn new<S: Into<String>>(headings: impl IntoIterator<Item = S>) -> Self {
        let headings = headings.into_iter().map(Into::into).collect();
        Self {
            lines: vec![headings],
        }
    }

    /// Adds a row. Columns without a cell stay empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.lines.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the table as text, in lines of at most `width` characters if the first column and one more fit that.
    pub fn text(&self, width: Option<usize>) -> String {
        let widths = self.widths();
        let mut parts: Vec<String> = Vec::new();
        let mut first = 1;
        loop {
            let end = Self::end_of_part(&widths, first, width);
            let columns: Vec<usize> = std::iter::once(0).chain(first..end).collect();
            let lines = self.lines.iter();
            let lines = lines.map(|cells| line(cells, &columns, &widths) + "\n");
            parts.push(lines.collect());
            first = end;
            if first >= widths.len() {
                return parts.join("\n");
            }
        }
    }

    /// Returns the characters of each column's widest cell.
    fn widths(&self) -> Vec<usize> {
        let columns = self.lines.iter().map(Vec::len).max().unwrap_or_default();
        let widest = |column| {
            let cells = self.lines.iter().filter_map(|cells| cells.get(column));
            cells.map(|cell: &String| cell.chars().count()).max()
        };
        let widths = (0..columns).map(|column| widest(column).unwrap_or_default());
        widths.collect()
    }

    /// Returns the column behind the last one that fits next to column `first` and the names of the rows.
    fn end_of_part(widths: &[usize], first: usize, width: Option<usize>) -> usize {
        let mut used = widths.first().copied().unwrap_or_default();
        for (column, of) in widths.iter().enumerate().skip(first) {
            used += GAP + of;
            if column > first && width.is_some_and(|width| used > width) {
                return column;
            }
        }
        widths.len()
    }
}

/// Returns these columns of a row, without spaces at the end.
fn line(cells: &[String], columns: &[usize], widths: &[usize]) -> String {
    let mut text = String::new();
    for &column in columns {
        let cell = cells.get(column).map_or("", String::as_str);
        let width = widths.get(column).copied().unwrap_or_default();
        if column == 0 {
            text += &format!("{cell:<width$}");
        } else {
            text += &format!("{:GAP$}{cell:>width$}", "");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(["", "one", "two", "three"]);
        table.row(["a row", "1", "22 µs", "4"]);
        table.row(["b", "100000"]);
        table
    }

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let wide = "          one    two  three\na row       1  22 µs      4\nb      100000\n";
        assert_eq!(table().text(None), wide);
        assert_eq!(table().text(Some(27)), wide);
    }

    #[test]
    fn what_does_not_fit_follows_below() {
        let two = "          one    two\na row       1  22 µs\nb      100000\n\
            \n       three\na row      4\nb\n";
        assert_eq!(table().text(Some(26)), two);
        // Every line fits, or has no more than the name of its row and one cell.
        for width in 0..30 {
            for line in table().text(Some(width)).lines() {
                let cells = line.split("  ").filter(|cell| !cell.trim().is_empty());
                assert!(
                    line.chars().count() <= width || cells.count() <= 2,
                    "{width}: {line}"
                );
            }
        }
    }

    #[test]
    fn a_table_may_have_one_column_or_none() {
        let mut names = Table::new(["name"]);
        names.row(["a"]);
        assert_eq!(names.text(Some(1)), "name\na\n");
        assert_eq!(Table::new(Vec::<String>::new()).text(Some(1)), "\n");
    }
}
