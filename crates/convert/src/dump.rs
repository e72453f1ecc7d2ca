//! A dump in JSON lines: the state root, then an account on each line.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use alloy_primitives::B256;
use rayon::prelude::*;
use serde::Deserialize;

use crate::ConvertError;
use crate::dump_line::{DumpLine, HashedLine, parse_hashed};
use crate::input::Input;
use crate::naming::Naming;
use crate::sorting::Sorting;

/// Bytes of a part: its last line is the first that ends at or after so many.
const PART: u64 = 64 << 20;
/// Bytes of lines that are parsed together.
const TOGETHER: usize = 4 << 20;
/// The part whose frames have the codes of a dump of hashed keys.
const CODES: u32 = 256;
/// The longest first line: it has a root and little else.
const HEAD: u64 = 1 << 12;

/// A dump that was opened, and its first line read.
pub struct Dump {
    path: PathBuf,
    input: Input,
    root: B256,
    /// Bytes of the first line.
    head: u64,
}

/// The first line of a dump.
#[derive(Deserialize)]
struct Head {
    root: B256,
}

impl Dump {
    /// Opens a dump; `-` is standard input.
    ///
    /// # Errors
    /// An input that cannot be read, or whose first line does not name a state root.
    pub fn open(path: &Path) -> Result<Self, ConvertError> {
        let failed = ConvertError::file(path);
        let input = Input::open(path);
        let mut input = match input {
            Ok(input) => input,
            Err(error) => return Err(failed(error)),
        };
        let mut line = Vec::new();
        let read = input.by_ref().take(HEAD).read_until(b'\n', &mut line);
        if let Err(error) = read {
            return Err(failed(error));
        }
        let head: Head = serde_json::from_slice(&line).map_err(|error| ConvertError::Line {
            line: 1,
            why: format!("it is not {{\"root\": \"0x...\"}}, with which a dump begins: {error}"),
        })?;
        Ok(Self {
            path: path.to_owned(),
            input,
            root: head.root,
            head: line.len() as u64,
        })
    }

    /// The state root that the first line names.
    pub fn root(&self) -> B256 {
        self.root
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
        let mut lines = self.into_lines();
        // An earlier run may have kept all codes, and then found that names are missing.
        let codes = (!sorting.has(CODES)).then(|| sorting.part(CODES));
        let mut accounts = std::iter::from_fn(|| lines.hashed().transpose()).map(|line| {
            let (account, code) = line?;
            if let (Some(codes), Some((hash, code))) = (&codes, code) {
                codes.code(hash, &code)?;
            }
            Ok(account)
        });
        let counts = naming.read_accounts(&mut accounts)?;
        drop(accounts);
        codes.map_or(Ok(()), |codes| codes.finish())?;
        let audit = naming.find_names(names, counts)?;
        if !audit.is_complete() {
            return Err(ConvertError::MissingNames(Box::new(audit)));
        }
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
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
            offset: self.head,
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

fn sort_batches(
    batches: &Receiver<Result<Option<Batch>, ConvertError>>,
    sorting: &Sorting<'_>,
) -> Result<(), ConvertError> {
    let mut current = None;
    for batch in batches {
        let Some(batch) = batch? else { break };
        sorting.watch.check()?;
        sorting.watch.done(batch.read.unwrap_or(0.0));
        if sorting.has(batch.part) {
            continue;
        }
        let mut part = match current.take() {
            Some((number, part)) if number == batch.part => part,
            before => {
                if let Some((_, part)) = before {
                    crate::sorting::PartSorting::finish(part)?;
                }
                sorting.part(batch.part)
            }
        };
        for line in batch.parse()? {
            if let Some((hash, code)) = &line.code {
                part.code(*hash, code)?;
            }
            part.add(line.account)?;
        }
        current = Some((batch.part, part));
    }
    match current {
        Some((_, part)) => part.finish(),
        None => Ok(()),
    }
}
