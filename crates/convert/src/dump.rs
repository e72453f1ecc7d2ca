//! A dump in JSON lines: the state root, then an account on each line.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use alloy_primitives::B256;
use rayon::prelude::*;
use serde::Deserialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::ConvertError;
use crate::dump_line::{DumpLine, HashedLine, parse_hashed, why_no_json};
use crate::input::Input;
use crate::naming::Naming;
use crate::sorting::{PartSorting, Sorting};

/// Bytes of a part: its last line is the first that ends at or after so many.
const PART: u64 = 64 << 20;
/// Bytes of lines that are parsed together.
const TOGETHER: usize = 4 << 20;
/// The part whose frames have the codes of a dump of hashed keys.
const CODES: u32 = 256;
/// The longest first line: it has a root and little else.
const HEAD: usize = 1 << 12;
/// Bytes at the beginning of a dump by which it is recognised.
const BEGIN: u64 = 1 << 16;

/// A dump that was opened, and its first line read.
pub struct Dump {
    path: PathBuf,
    input: Input,
    head: Head,
    /// Bytes of the first line.
    head_bytes: u64,
    /// The XXH3 of the first [`BEGIN`] bytes, decompressed.
    begin: u128,
}

/// The first line of a dump.
#[derive(Deserialize)]
struct Head {
    root: B256,
    /// The tree that has this root, if the root is not the Merkle-Patricia root.
    #[serde(default)]
    tree: Option<String>,
    /// A field that the line of an account has, next to the root of the account's storage.
    #[serde(default)]
    balance: Option<serde::de::IgnoredAny>,
}

impl Dump {
    /// Opens a dump; `-` is standard input.
    ///
    /// # Errors
    /// An input that cannot be read, or whose first line does not name a state root.
    pub fn open(path: &Path) -> Result<Self, ConvertError> {
        let input = Input::open(path).map_err(ConvertError::file(path))?;
        Self::read(path, input)
    }

    /// Reads the first line of a dump; the path is for errors.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(path: &Path, mut input: Input) -> Result<Self, ConvertError> {
        let mut begin = Vec::new();
        let read = input.by_ref().take(BEGIN).read_to_end(&mut begin);
        read.map_err(ConvertError::file(path))?;
        let line_end = begin.iter().take(HEAD).position(|byte| *byte == b'\n');
        let head_bytes = line_end.map_or(begin.len().min(HEAD), |end| end + 1);
        let first = &begin[..head_bytes];
        let head: Head = serde_json::from_slice(first).map_err(|error| no_head(first, &error))?;
        if head.balance.is_some() {
            return Err(ConvertError::NoHead);
        }
        let hash = xxh3_128(&begin);
        input.unread(begin.split_off(head_bytes));
        Ok(Self {
            path: path.to_owned(),
            input,
            head,
            head_bytes: head_bytes as u64,
            begin: hash,
        })
    }

    /// The Merkle-Patricia root that the first line names; `None` if the line has the root of another tree.
    pub fn state_root(&self) -> Option<B256> {
        self.head.tree.is_none().then_some(self.head.root)
    }

    /// Names the dump by its root and a hash of its first 64 KiB.
    pub fn name(&self) -> String {
        let tree = self.head.tree.as_deref().unwrap_or("state");
        format!(
            "dump with {tree} root {} and first bytes {:032x}",
            self.head.root, self.begin
        )
    }

    /// The path that the dump was opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file, as it is compressed; `None` for a pipe.
    pub fn length(&self) -> Option<u64> {
        self.input.length()
    }

    /// Sorts a dump of hashed keys, with the names in files of preimages. A run that is interrupted begins again.
    pub(crate) fn sort_named(
        self,
        files: &[PathBuf],
        naming: &Naming<'_>,
        sorting: &Sorting<'_>,
    ) -> Result<(), ConvertError> {
        let names = naming.read_names(files)?;
        let is_read = naming.has_accounts();
        let mut lines = self.into_lines();
        // An earlier run may have kept all codes, and then found that names are missing.
        let codes = (!is_read && !sorting.has(CODES)).then(|| sorting.part(CODES));
        let mut accounts = std::iter::from_fn(|| lines.hashed().transpose()).map(|line| {
            let HashedLine { account, code, .. } = line?;
            if let (Some(codes), Some((hash, code))) = (&codes, code) {
                codes.code(hash, &code)?;
            }
            Ok(account)
        });
        let counts = naming.read_accounts(&mut accounts)?;
        drop(accounts);
        codes.map_or(Ok(()), PartSorting::finish)?;
        naming.finish_accounts(counts)?;
        let audit = naming.find_names(names, counts)?;
        if !audit.is_complete() {
            // The next run may be given more names.
            naming.remove()?;
            return Err(ConvertError::MissingNames(Box::new(audit)));
        }
        naming.for_each_first(|first| {
            if sorting.has(u32::from(first)) {
                return Ok(());
            }
            let mut part = sorting.part(u32::from(first));
            for account in naming.named(first)? {
                part.add(account)?;
            }
            part.finish()
        })?;
        naming.remove()
    }

    /// Returns the lines after the first.
    pub(crate) fn into_lines(self) -> Lines {
        Lines {
            path: self.path,
            input: self.input,
            offset: self.head_bytes,
            line: 1,
        }
    }

    /// Sorts the accounts. Lines of parts that are sorted already are read, and not parsed.
    pub(crate) fn sort(self, sorting: &Sorting<'_>) -> Result<(), ConvertError> {
        let (sender, batches) = sync_channel(1);
        let mut lines = self.into_lines();
        std::thread::scope(|scope| {
            let reading = scope.spawn(move || {
                loop {
                    let batch = lines.batch();
                    let is_over = batch.as_ref().map_or(true, Option::is_none);
                    // If nobody listens the sorting has failed, and returns why.
                    if sender.send(batch).is_err() || is_over {
                        return;
                    }
                }
            });
            let sorted = sort_batches(&batches, sorting);
            drop(batches);
            if let Err(panic) = reading.join() {
                std::panic::resume_unwind(panic);
            }
            sorted
        })
    }
}

/// Says why the first line of a dump is none.
fn no_head(line: &[u8], error: &serde_json::Error) -> ConvertError {
    let line = line.trim_ascii();
    let why = why_no_json(error);
    if line.is_empty() {
        return ConvertError::NoAccounts("it is empty".to_owned());
    }
    // A genesis may be one long line, of which this is the beginning.
    if error.is_eof() && line.starts_with(br#"{"root""#) {
        return ConvertError::NoAccounts(format!("line 1: {why}"));
    }
    ConvertError::Line {
        line: 1,
        why: format!("it is not {{\"root\": \"0x...\"}}, with which a dump begins: {why}"),
    }
}

/// Lines that lie in one part.
struct Batch {
    text: Vec<u8>,
    /// Where each line ends in the text.
    ends: Vec<usize>,
    /// The number of the first line.
    line: u64,
    part: u32,
    /// How much of the input was read, 0 to 1; `None` for a pipe.
    read: Option<f64>,
}

/// The lines of a dump that were not read yet.
pub(crate) struct Lines {
    path: PathBuf,
    input: Input,
    /// Bytes before the next line.
    offset: u64,
    /// Lines before it.
    line: u64,
}

impl Lines {
    /// The next account; `None` at the end.
    pub(crate) fn line(&mut self) -> Result<Option<DumpLine>, ConvertError> {
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        let line = self.line;
        let parsed = DumpLine::parse(text.trim_ascii());
        parsed
            .map(Some)
            .map_err(|why| ConvertError::Line { line, why })
    }

    /// The next line that is not empty.
    fn text(&mut self) -> Result<Option<Vec<u8>>, ConvertError> {
        loop {
            let mut text = Vec::new();
            let read = self.input.read_until(b'\n', &mut text);
            if read.map_err(ConvertError::file(&self.path))? == 0 {
                return Ok(None);
            }
            self.line += 1;
            if !text.trim_ascii().is_empty() {
                return Ok(Some(text));
            }
        }
    }

    /// The next account of a dump of hashed keys; `None` at the end.
    pub(crate) fn hashed(&mut self) -> Result<Option<HashedLine>, ConvertError> {
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        let line = self.line;
        let parsed = parse_hashed(text.trim_ascii());
        parsed
            .map(Some)
            .map_err(|why| ConvertError::Line { line, why })
    }

    /// The number of the line that was read last, from 1 on.
    pub(crate) fn number(&self) -> u64 {
        self.line
    }

    /// The part of the input that was read, 0 to 1; 1 for a pipe.
    pub(crate) fn part(&self) -> f64 {
        self.input.part().unwrap_or(1.0)
    }

    /// The next lines, all of one part; `None` at the end.
    fn batch(&mut self) -> Result<Option<Batch>, ConvertError> {
        let part = self.offset / PART;
        let mut batch = Batch {
            text: Vec::with_capacity(TOGETHER + (1 << 16)),
            ends: Vec::new(),
            line: self.line + 1,
            part: u32::try_from(part).unwrap_or(u32::MAX - 1),
            read: None,
        };
        while batch.text.len() < TOGETHER && self.offset / PART == part {
            let read = self.input.read_until(b'\n', &mut batch.text);
            let read = read.map_err(ConvertError::file(&self.path))?;
            if read == 0 {
                break;
            }
            self.offset += read as u64;
            self.line += 1;
            batch.ends.push(batch.text.len());
        }
        batch.read = self.input.part();
        Ok((!batch.ends.is_empty()).then_some(batch))
    }
}

impl Batch {
    fn parse(&self) -> Result<Vec<DumpLine>, ConvertError> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let lines: Vec<(u64, &[u8])> = (self.line..)
            .zip(begins.zip(&self.ends))
            .map(|(line, (begin, end))| (line, self.text[begin..*end].trim_ascii()))
            .filter(|(_, text)| !text.is_empty())
            .collect();
        let parsed = lines.par_iter().map(|(line, text)| {
            DumpLine::parse(text).map_err(|why| ConvertError::Line { line: *line, why })
        });
        parsed.collect()
    }
}

/// A part of a dump that is being read.
struct Reading<'a> {
    part: u32,
    /// The number of its first line.
    line: u64,
    /// Of all its bytes.
    hash: Xxh3,
    /// `None` if an earlier run has sorted the part.
    sorting: Option<PartSorting<'a>>,
}

impl Reading<'_> {
    /// Ends the part. A part that an earlier run has sorted has the bytes that it had then.
    fn finish(self, all: &Sorting<'_>, next_line: u64) -> Result<(), ConvertError> {
        let hash = self.hash.digest128();
        match self.sorting {
            Some(sorting) => sorting.finish_text(hash),
            None if all.text_of(self.part).is_none_or(|before| before == hash) => Ok(()),
            None => Err(ConvertError::OtherDump {
                first: self.line,
                last: next_line.saturating_sub(1),
            }),
        }
    }
}

fn sort_batches(
    batches: &Receiver<Result<Option<Batch>, ConvertError>>,
    sorting: &Sorting<'_>,
) -> Result<(), ConvertError> {
    let mut current: Option<Reading<'_>> = None;
    let mut next_line = 1;
    for batch in batches {
        let Some(batch) = batch? else { break };
        sorting.watch.check()?;
        sorting.watch.done(batch.read.unwrap_or(0.0));
        let reading = match current.take() {
            Some(reading) if reading.part == batch.part => reading,
            before => {
                if let Some(before) = before {
                    before.finish(sorting, batch.line)?;
                }
                Reading {
                    part: batch.part,
                    line: batch.line,
                    hash: Xxh3::new(),
                    sorting: (!sorting.has(batch.part)).then(|| sorting.part(batch.part)),
                }
            }
        };
        let reading = current.insert(reading);
        reading.hash.update(&batch.text);
        next_line = batch.line + batch.ends.len() as u64;
        let Some(part) = &mut reading.sorting else {
            continue;
        };
        for line in batch.parse()? {
            if let Some((hash, code)) = &line.code {
                part.code(*hash, code)?;
            }
            part.add(line.account)?;
        }
    }
    match current {
        Some(part) => part.finish(sorting, next_line),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use arbor_state::BY_NAME;

    use super::*;
    use crate::progress::{Hooks, Phase, Watch};

    const ROOT: &str =
        "{\"root\":\"0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470\"}";

    fn line(number: u8, balance: u8) -> String {
        format!("{{\"balance\":\"{balance}\",\"address\":\"0x{number:040x}\"}}")
    }

    /// Another dump with the same first line was taken for the one that a conversion was begun with.
    #[test]
    fn another_dump_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        let hooks = Hooks {
            progress: &|_, _, _| (),
            stop: &|| false,
        };
        let sort = |lines: &[String], run| {
            std::fs::write(&path, [&[ROOT.to_owned()], lines].concat().join("\n")).unwrap();
            let watch = Watch::new(&hooks, Phase::Sort);
            let sorting = Sorting::open(folder.path(), &BY_NAME, (1 << 20, run), &watch).unwrap();
            Dump::open(&path).unwrap().sort(&sorting)
        };
        let lines: Vec<String> = (1..9).map(|number| line(number, number)).collect();
        sort(&lines, 1).unwrap();
        // The same dump goes on; one that goes on longer, ends earlier or has another line does not.
        sort(&lines, 2).unwrap();
        let mut other = lines.clone();
        other[4] = line(5, 9);
        let longer = [&lines[..], &[line(9, 9)]].concat();
        for (other, last) in [(&other[..], 9), (&longer, 10), (&lines[..7], 8)] {
            let error = sort(other, 3).unwrap_err();
            let is_named =
                matches!(error, ConvertError::OtherDump { first: 2, last: found } if found == last);
            assert!(is_named, "{error}");
        }
        sort(&lines, 4).unwrap();
    }

    #[test]
    fn a_dump_without_its_first_line_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dump");
        let open = |first: &str| {
            std::fs::write(&path, first).unwrap();
            Dump::open(&path)
        };
        let root = ROOT.trim_matches(['{', '}']);
        let account = format!(
            "{{\"balance\":\"1\",{root},\"address\":\"0x{:040x}\"}}\n",
            1
        );
        assert!(matches!(open(&account), Err(ConvertError::NoHead)));
        assert!(matches!(
            open("{}"),
            Err(ConvertError::Line { line: 1, .. })
        ));
        let dump = open(ROOT).unwrap();
        assert!(dump.state_root().is_some());
        let of_tree = format!("{},\"tree\":\"verkle\"}}\n", ROOT.trim_end_matches('}'));
        assert_eq!(open(&of_tree).unwrap().state_root(), None);
        // Dumps with the same root are told apart by what follows.
        let names =
            [line(1, 1), line(1, 2)].map(|line| open(&format!("{ROOT}\n{line}")).unwrap().name());
        assert_ne!(names[0], names[1]);
    }
}
