//! The file of roots: what a tree makes of each block, so that two machines can compare.
//!
//! One line a block, ascending: the block's number in decimal, its hash and the root after it, both as 0x and 64 digits, with a space
//! between. Blocks that no root was computed for have no line.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use alloy_primitives::B256;
use anyhow::{Context, Result, bail};
use arbor_chain::replay::BlockStats;
use arbor_state::State;

/// A file of roots that a replay adds to.
pub(crate) struct RootsFile {
    path: PathBuf,
    out: BufWriter<File>,
    failed: Option<std::io::Error>,
}

impl RootsFile {
    /// Goes on with a file where the database stands: lines of later blocks, and what a crash left of a line, are cut off. A new file
    /// begins with the database's head, which is the genesis in a new database.
    ///
    /// # Errors
    /// A file that cannot be written, or that is none of roots.
    pub(crate) fn open(path: &Path, state: &State) -> Result<Self> {
        let context = || format!("the file of roots {}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).with_context(context)?;
        let head = state.head().map_or(0, |head| head.block_number);
        let end = end_of(BufReader::new(&file), head).with_context(context)?;
        file.set_len(end).with_context(context)?;
        let mut out = BufWriter::new(file);
        out.seek(SeekFrom::End(0)).with_context(context)?;
        let mut roots = Self {
            path: path.to_owned(),
            out,
            failed: None,
        };
        if let Some(head) = state.head().filter(|_| end == 0) {
            roots.line(head.block_number, head.block_hash.into(), head.root.into());
        }
        Ok(roots)
    }

    /// Adds a block.
    pub(crate) fn block(&mut self, block: &BlockStats) {
        if let Some(root) = block.root {
            self.line(block.number, block.hash, root);
        }
    }

    fn line(&mut self, number: u64, hash: B256, root: B256) {
        if self.failed.is_none() {
            self.failed = writeln!(self.out, "{number} {hash} {root}").err();
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first thing that could not be written.
    pub(crate) fn finish(mut self) -> Result<()> {
        let flushed = self.out.flush();
        self.failed
            .map_or(flushed, Err)
            .with_context(|| format!("writing the file of roots {}", self.path.display()))
    }
}

/// Bytes of the lines of blocks up to `head`.
fn end_of(mut file: impl BufRead, head: u64) -> Result<u64> {
    let (mut end, mut line, mut count, mut previous) = (0, Vec::new(), 0, None);
    loop {
        line.clear();
        let length = file.read_until(b'\n', &mut line)?;
        count += 1;
        let Some(text) = line.strip_suffix(b"\n") else {
            return Ok(end);
        };
        match number_of(text) {
            Some(number) if previous.is_some_and(|previous| previous >= number) => {
                bail!("line {count}: block {number} does not follow the line before")
            }
            Some(number) if number > head => return Ok(end),
            Some(number) => previous = Some(number),
            None => bail!("line {count} is not a block's number, its hash and a root"),
        }
        end += length as u64;
    }
}

fn number_of(line: &[u8]) -> Option<u64> {
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let number = words.next()?.parse().ok()?;
    let mut hash = || words.next()?.parse::<B256>().ok();
    hash().and_then(|_| hash())?;
    words.next().is_none().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64) -> String {
        let hash = B256::with_last_byte(number as u8);
        format!("{number} {hash} {hash}\n")
    }

    #[test]
    fn later_blocks_and_broken_lines_are_cut_off() {
        let text: String = (3..6).map(line).collect();
        let each = line(3).len() as u64;
        let end =
            |text: &str, head| end_of(text.as_bytes(), head).map_err(|error| error.to_string());
        assert_eq!(end("", 9), Ok(0));
        assert_eq!(end(&text, 9), Ok(3 * each));
        assert_eq!(end(&text, 4), Ok(2 * each));
        assert_eq!(end(&text, 2), Ok(0));
        assert_eq!(end(&text[..text.len() - 1], 9), Ok(2 * each));
        assert_eq!(end(&text[..each as usize + 5], 9), Ok(each));
        for (bad, why) in [
            ("a file of something else\n".to_owned(), "line 1 is not"),
            (line(3) + "4\n", "line 2 is not"),
            (line(3) + &line(3), "line 2: block 3 does not follow"),
            (line(3).replace('\n', " 0\n"), "line 1 is not"),
        ] {
            let error = end(&bad, 9).expect_err("refused");
            assert!(error.starts_with(why), "{error}");
        }
    }
}
