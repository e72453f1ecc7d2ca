//! A part of a conversion, that another machine may make, and the database that all parts make.
//!
//! A part is a folder: the flat records, the leaves and the codes of the accounts in one range of keys, and a file that
//! says which conversion and which part it is. The parts are [joined](Join): their records are loaded, and the nodes of
//! all leaves are made. What a range of accounts is spread to does not depend on the part that it is in, so that any
//! number of parts makes the same database.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use alloy_primitives::{B256, Bytes};
use arbor_state::{AccountOrder, BlockRef, Build, Computed, ReadError, State};
use arbor_store::{Table, Write};
use serde::{Deserialize, Serialize};

use crate::ConvertError;
use crate::building::{
    Building, LOADED_TOGETHER, RecordSink, SpreadFiles, SpreadPiece, load_lists, of_ranges, size,
    spread_together,
};
use crate::codes::CodeFile;
use crate::counts::Counts;
use crate::dead_frames::without_dead_frames;
use crate::done::{Done, DoneFile};
use crate::error::leaves_lost;
use crate::frames::{FrameFile, Frames, Origin};
use crate::job::{next_run, write_whole};
use crate::progress::{Hooks, Phase, PhaseDone, Timed, Watch};
use crate::sorted::CodeByHash;
use crate::sorting::Sorting;
use crate::source::{Source, SourceBlock, with_ordered};
use arbor_state::PartOf;

/// The name of the file that says what a part is.
const FILE: &str = "part.json";
/// The flat records: a frame for each list of each piece of a range. Its payload is the number of the list (1 byte), then for each record its table
/// (1), the lengths of key and value (2 and 4, big-endian), key and value.
const RECORDS: &str = "records";
/// The codes, a frame for each, which count if the list of the same name has the number 0.
const CODES: &str = "part-codes";

/// A block that a database remembers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PartBlock {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: B256,
    /// What is kept of its header.
    pub header: Bytes,
    /// The state root in its header; `None` without a header.
    pub state_root: Option<B256>,
}

/// What a part says that it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PartJob {
    /// The source: what it is, and which block.
    pub source: String,
    /// The target: tree, hash function and settings.
    pub target: String,
    /// Which part it is.
    pub part: PartOf,
    /// The name of the tree.
    pub tree: String,
    /// The hash function of the tree.
    pub hash: String,
    /// The settings of the tree.
    pub settings: Vec<String>,
    /// The number of the chain.
    pub chain_id: u64,
    /// The hash of the chain's genesis.
    pub genesis_hash: B256,
    /// The Merkle-Patricia root of the source; `None` if nothing says it.
    pub state_root: Option<B256>,
    /// The blocks that the database is to remember; the last one is that of the state.
    pub blocks: Vec<PartBlock>,
    /// The accounts and slots of the part; `None` if it is not finished.
    pub counts: Option<Counts>,
    /// The command that made it, or goes on with it.
    pub command: String,
}

impl PartJob {
    /// Sets the blocks that the database is to remember.
    #[must_use]
    pub fn with_blocks(mut self, blocks: &[SourceBlock]) -> Self {
        let blocks = blocks.iter().map(|block| PartBlock {
            number: block.block.number,
            hash: block.block.hash,
            header: block.block.record.clone().into(),
            state_root: block.state_root,
        });
        self.blocks = blocks.collect();
        self
    }

    /// The blocks that the database is to remember.
    pub fn blocks(&self) -> Vec<SourceBlock> {
        let blocks = self.blocks.iter().map(|block| SourceBlock {
            block: BlockRef {
                number: block.number,
                hash: block.hash,
                record: block.header.to_vec(),
            },
            state_root: block.state_root,
        });
        blocks.collect()
    }

    /// Describes a part that has no blocks yet and is not finished.
    pub fn new(source: String, target: String, part: PartOf) -> Self {
        Self {
            source,
            target,
            part,
            tree: String::new(),
            hash: String::new(),
            settings: Vec::new(),
            chain_id: 0,
            genesis_hash: B256::ZERO,
            state_root: None,
            blocks: Vec::new(),
            counts: None,
            command: String::new(),
        }
    }

    /// Reads what a folder says that it is; `None` if it is no part.
    ///
    /// # Errors
    /// A file that cannot be read, or that is damaged.
    pub fn read(folder: &Path) -> Result<Option<Self>, ConvertError> {
        let path = folder.join(FILE);
        match std::fs::read(&path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            read => {
                let text = read.map_err(ConvertError::file(&path))?;
                let job = serde_json::from_slice(&text);
                job.map(Some).map_err(|_| ConvertError::Damaged {
                    path,
                    offset: 0,
                    why: "it does not say which part of which conversion it is",
                })
            }
        }
    }

    fn write(&self, folder: &Path) -> Result<(), ConvertError> {
        let path = folder.join(FILE);
        let write = || write_whole(&path, &serde_json::to_vec_pretty(self)?);
        write().map_err(ConvertError::file(&path))
    }

    /// Whether the same command would make the same part, whether it is finished or not.
    fn is_same(&self, other: &Self) -> bool {
        let comparable = |job: &Self| Self {
            counts: None,
            command: String::new(),
            ..job.clone()
        };
        comparable(self) == comparable(other)
    }
}

/// The making of one part.
pub struct PartConversion<'a> {
    /// The source.
    pub source: Source<'a>,
    /// The target's tree.
    pub build: &'a dyn Build,
    /// The order of the tree.
    pub order: &'static AccountOrder,
    /// The part's folder.
    pub folder: &'a Path,
    /// Bytes for the accounts that are being sorted.
    pub memory: u64,
    /// What is called on the way.
    pub hooks: Hooks<'a>,
}

impl PartConversion<'_> {
    /// Makes a part in an empty folder, or goes on with an earlier run. A part that is finished is left as it is. Called on a thread of
    /// a rayon pool, it spreads the work over the pool.
    ///
    /// # Errors
    /// A folder of another part; a source that cannot be read; files that cannot be written.
    pub fn run(self, job: PartJob) -> Result<(PartJob, Vec<PhaseDone>), ConvertError> {
        let folder = self.folder;
        if let Some(found) = PartJob::read(folder)? {
            if !found.is_same(&job) {
                return Err(ConvertError::Parts(format!(
                    "{} is part {} of another conversion, from {} to {}: name another folder",
                    folder.display(),
                    found.part,
                    found.source,
                    found.target
                )));
            }
            if found.counts.is_some() {
                remove_sorted(folder)?;
                return Ok((found, Vec::new()));
            }
        }
        without_dead_frames(folder, || self.made(job))
    }

    fn made(self, mut job: PartJob) -> Result<(PartJob, Vec<PhaseDone>), ConvertError> {
        let folder = self.folder;
        job.write(folder)?;
        let run = next_run(folder)?;
        let ranges = job.part.ranges();
        let (mut phases, mut timed) = (Vec::new(), Timed::default());
        let by_state = self.source.state();
        if by_state.is_none_or(|source| source.order() != self.order) {
            let watch = Watch::new(&self.hooks, Phase::Sort);
            let memory = (self.memory, run);
            let sorting = Sorting::open_part(folder, self.order, memory, &watch, ranges.clone())?;
            self.source.sort(folder, sorting, &watch)?;
            phases.push(timed.end(&watch));
        }
        let watch = Watch::new(&self.hooks, Phase::Build);
        let building = Building {
            build: self.build,
            folder,
            watch: &watch,
            run,
            together: spread_together(self.memory),
            load_bytes: LOADED_TOGETHER,
        };
        let mut records = RecordFile {
            file: FrameFile::new(folder.join(RECORDS)),
            run,
        };
        let spread = with_ordered(by_state, (folder, self.order, self.memory), |ordered| {
            building.spread_all(ordered, ranges, &mut records)?;
            let spread = SpreadFiles::read(folder)?;
            keep_codes(folder, &spread, &|hash| ordered.code_bytes(hash), run)?;
            Ok(spread)
        })?;
        phases.push(timed.end(&watch));
        job.counts = Some(spread.counts()?);
        job.write(folder)?;
        remove_sorted(folder)?;
        Ok((job, phases))
    }
}

/// Writes the codes that the accounts of a part have.
fn keep_codes(
    folder: &Path,
    spread: &SpreadFiles,
    code: CodeByHash<'_>,
    run: u32,
) -> Result<(), ConvertError> {
    let list = folder.join(format!("{CODES}-done"));
    let done = Done::read(&list)?;
    if done.has(0) {
        return Ok(());
    }
    let path = folder.join(CODES);
    let codes = CodeFile::open(path, &done)?;
    let origin = Origin { part: 0, run };
    for hash in spread.codes()? {
        codes.put(origin, hash, &code(hash)?)?;
    }
    DoneFile::open(list, &done)?.add(origin)
}

/// Removes the files of the sorting, which a finished part does not need.
fn remove_sorted(folder: &Path) -> Result<(), ConvertError> {
    let accounts = (0..=u8::MAX).map(|first| format!("accounts-{first:02x}"));
    let others = ["codes", "parts", "texts", "run"].map(str::to_owned);
    for name in accounts.chain(others) {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(ConvertError::file(&path))?,
        }
    }
    Ok(())
}

/// Writes flat records to a file.
struct RecordFile {
    file: FrameFile,
    run: u32,
}

impl RecordSink for RecordFile {
    fn put(&mut self, pieces: Vec<SpreadPiece>) -> Result<(), ConvertError> {
        for SpreadPiece { range, records, .. } in pieces {
            let origin = Origin {
                part: range,
                run: self.run,
            };
            for (number, list) in (0u8..).zip(records) {
                let mut payload = vec![number];
                list.iter().for_each(|write| encode(write, &mut payload));
                self.file.append(origin, &payload)?;
            }
        }
        Ok(())
    }
}

fn encode(write: &Write, out: &mut Vec<u8>) {
    let value = write.value.as_deref().unwrap_or_default();
    out.push(write.table.0);
    out.extend((write.key.len() as u16).to_be_bytes());
    out.extend((value.len() as u32).to_be_bytes());
    out.extend_from_slice(&write.key);
    out.extend_from_slice(value);
}

/// Reads a frame of records; `None` for bytes that are none.
fn decode(payload: &[u8]) -> Option<(u8, Vec<Write>)> {
    let (number, mut rest) = payload.split_first()?;
    let mut list = Vec::new();
    while !rest.is_empty() {
        let (table, after) = rest.split_first()?;
        let (key_len, after) = after.split_first_chunk()?;
        let (value_len, after) = after.split_first_chunk()?;
        let (key, after) = after.split_at_checked(u16::from_be_bytes(*key_len).into())?;
        let (value, after) = after.split_at_checked(u32::from_be_bytes(*value_len) as usize)?;
        list.push(Write::put(Table(*table), key, value));
        rest = after;
    }
    Some((*number, list))
}

/// All parts of one conversion, ascending.
pub struct Join {
    parts: Vec<(PathBuf, PartJob)>,
}

impl Join {
    /// Reads what folders say that they are, and checks that they are all parts of one conversion.
    ///
    /// # Errors
    /// [`ConvertError::Parts`]: a folder that is no part, is not finished, or belongs to another conversion; a part that is missing or
    /// there twice.
    pub fn open(folders: &[PathBuf]) -> Result<Self, ConvertError> {
        let refuse = |why: String| Err(ConvertError::Parts(why));
        let mut parts: Vec<(PathBuf, PartJob)> = Vec::new();
        for folder in folders {
            let name = folder.display();
            let Some(job) = PartJob::read(folder)? else {
                return refuse(format!(
                    "{name} is not a part of a conversion: name the folders that `arbor convert --part` has made"
                ));
            };
            if job.counts.is_none() {
                return refuse(format!(
                    "part {} in {name} is not finished: `{}` goes on with it",
                    job.part, job.command
                ));
            }
            if let Some((other, first)) = parts.first() {
                let alike = PartJob {
                    part: first.part,
                    ..job.clone()
                };
                if job.part.of != first.part.of || !alike.is_same(first) {
                    return refuse(format!(
                        "{name} is part {} from {} to {}, and {} is part {} from {} to {}: they do not belong together",
                        job.part,
                        job.source,
                        job.target,
                        other.display(),
                        first.part,
                        first.source,
                        first.target
                    ));
                }
            }
            let twice = parts.iter().find(|(_, other)| other.part == job.part);
            if let Some((other, _)) = twice {
                return refuse(format!(
                    "{} and {name} are both part {}",
                    other.display(),
                    job.part
                ));
            }
            parts.push((folder.clone(), job));
        }
        parts.sort_by_key(|(_, job)| job.part);
        let of = parts.first().map_or(1, |(_, job)| job.part.of);
        let is_there = |number: &u32| parts.iter().any(|(_, job)| job.part.number == *number);
        let missing: Vec<String> = (1..=of)
            .filter(|number| !is_there(number))
            .map(|number| PartOf { number, of }.to_string())
            .collect();
        match &missing[..] {
            [] => Ok(Self { parts }),
            [one] => refuse(format!("part {one} is missing")),
            [before @ .., last] => refuse(format!(
                "parts {} and {last} are missing",
                before.join(", ")
            )),
        }
    }

    /// The folders of all parts, and what they say that they are.
    pub fn parts(&self) -> impl Iterator<Item = (&Path, &PartJob)> {
        let parts = self.parts.iter();
        parts.map(|(folder, job)| (folder.as_path(), job))
    }

    /// Names the part whose file an error is of.
    fn blamed(&self, error: ConvertError) -> ConvertError {
        let (path, what) = match &error {
            ConvertError::Damaged { path, offset, why } => (
                path,
                format!("{} is damaged at byte {offset}: {why}", path.display()),
            ),
            ConvertError::LeavesLost {
                folder,
                found,
                written,
            } => (folder, leaves_lost(folder, *found, *written)),
            _ => return error,
        };
        let found = self.parts.iter();
        let mut found = found.filter(|(folder, _)| path.starts_with(folder));
        match found.next() {
            Some(part) => damaged_part(part, &what),
            None => error,
        }
    }

    /// The first part, which has what all parts have in common.
    ///
    /// # Panics
    /// Never: there is a first part.
    pub fn first(&self) -> &PartJob {
        let first = self.parts.first();
        &first.expect("invariant: no part is missing").1
    }

    /// The accounts and slots of all parts.
    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        let counts = self.parts.iter().filter_map(|(_, job)| job.counts);
        counts.for_each(|counts| all.add(counts));
        all
    }

    /// Loads all records, codes and nodes, or those that earlier runs have not; returns what is then to be committed, and the hashes of
    /// all codes.
    pub(crate) fn build(
        &self,
        building: &Building<'_>,
        state: &mut State,
    ) -> Result<(Computed, BTreeSet<B256>), ConvertError> {
        let built = self.built(building, state);
        built.map_err(|error| self.blamed(error))
    }

    fn built(
        &self,
        building: &Building<'_>,
        state: &mut State,
    ) -> Result<(Computed, BTreeSet<B256>), ConvertError> {
        let spread = self.spread()?;
        self.load_records(building, &spread, state)?;
        let codes = self.parts.iter().map(|(folder, _)| {
            let done = Done::read(&folder.join(format!("{CODES}-done")))?;
            CodeFile::open(folder.join(CODES), &done)
        });
        let codes: Vec<CodeFile> = codes.collect::<Result<_, ConvertError>>()?;
        let code = |hash| {
            let found = codes.iter().map(|file| file.get(hash));
            let found = found.into_iter().find(|code| !is_missing(code));
            found.unwrap_or_else(|| Err(self.without_code(&spread, hash)))
        };
        building.finish(state, &spread, &code)
    }

    /// The error of a code that no part has: it names the part that was to have it.
    fn without_code(&self, spread: &[SpreadFiles], hash: B256) -> ReadError {
        for (part, files) in self.parts.iter().zip(spread) {
            match files.codes() {
                Ok(codes) if codes.contains(&hash) => {
                    let file = part.0.join(CODES);
                    let what = format!("{} lacks the code {hash}", file.display());
                    return damaged_part(part, &what).into();
                }
                Ok(_) => {}
                Err(error) => return error.into(),
            }
        }
        ReadError::MissingCode(hash)
    }

    fn spread(&self) -> Result<Vec<SpreadFiles>, ConvertError> {
        let spread = self.parts.iter().map(|part| {
            let (folder, job) = part;
            let files = SpreadFiles::read(folder)?;
            match files.ranges().eq(job.part.ranges()) {
                true => Ok(files),
                false => Err(damaged_part(
                    part,
                    "the file ranges or ranges-done lacks some of its ranges",
                )),
            }
        });
        spread.collect()
    }

    /// The hashes of all codes.
    pub(crate) fn codes(&self, folder: &Path) -> Result<BTreeSet<B256>, ConvertError> {
        Ok(of_ranges(folder, &self.spread()?)?.1)
    }

    fn load_records(
        &self,
        building: &Building<'_>,
        spread: &[SpreadFiles],
        state: &mut State,
    ) -> Result<(), ConvertError> {
        let list = building.folder.join("records-loaded-done");
        let done = Done::read(&list)?;
        let done_file = DoneFile::open(list, &done)?;
        let mut loading = Loading {
            state,
            done_file: &done_file,
            run: building.run,
            load_bytes: building.load_bytes,
            last: None,
            pieces: Vec::new(),
            bytes: 0,
        };
        let mut loaded = 0.0;
        for (part, files) in self.parts.iter().zip(spread) {
            let path = part.0.join(RECORDS);
            let mut frames = Frames::open(&path)?;
            let mut missing = files.ranges_with_accounts()?;
            while let Some(frame) = frames.next()? {
                let range = frame.origin.part;
                if files.has_frame(frame.origin) {
                    missing.remove(&range);
                }
                if !files.has_frame(frame.origin) || done.has(range) {
                    frames.skip(&frame)?;
                    continue;
                }
                building.watch.check()?;
                let payload = frames.payload(&frame)?;
                let (number, list) = decode(&payload).ok_or_else(|| ConvertError::Damaged {
                    path: path.clone(),
                    offset: frame.begin,
                    why: "a record is malformed",
                })?;
                if loading.add(range, usize::from(number), list)? {
                    loaded += 1.0;
                    building.watch.done(loaded / 512.0);
                }
            }
            if !frames.is_whole() || !missing.is_empty() {
                let what = format!("{} was cut, or is missing", path.display());
                return Err(damaged_part(part, &what));
            }
        }
        loading.load(true)
    }
}

/// The error of a part that another machine may have, with the command that makes it.
fn damaged_part((folder, job): &(PathBuf, PartJob), what: &str) -> ConvertError {
    ConvertError::Parts(format!(
        "part {} in {}: {what}. Copy the part again if it was copied, or remove its folder and make it again: `{}`",
        job.part,
        folder.display(),
        job.command
    ))
}

fn is_missing(code: &Result<Bytes, ReadError>) -> bool {
    matches!(code, Err(ReadError::MissingCode(_)))
}

/// Records on their way into a database.
struct Loading<'a> {
    state: &'a mut State,
    done_file: &'a DoneFile,
    run: u32,
    load_bytes: usize,
    /// The range of the list that came last.
    last: Option<u32>,
    /// Pieces of ranges that are read and not loaded, with their lists.
    pieces: Vec<(u32, Vec<Vec<Write>>)>,
    bytes: usize,
}

impl Loading<'_> {
    /// Adds a list of a piece of a range. All lists of a piece come one after another, from number 0 on, and all pieces of a range.
    /// Returns whether the range is another one than before.
    fn add(&mut self, range: u32, number: usize, list: Vec<Write>) -> Result<bool, ConvertError> {
        let is_new = self.last != Some(range);
        if number == 0 && self.bytes >= self.load_bytes {
            self.load(is_new)?;
        }
        self.last = Some(range);
        self.bytes += list.iter().map(size).sum::<usize>();
        if number == 0 || self.pieces.is_empty() {
            self.pieces.push((range, Vec::new()));
        }
        if let Some((_, lists)) = self.pieces.last_mut() {
            lists.resize(lists.len().max(number + 1), Vec::new());
            lists[number] = list;
        }
        Ok(is_new)
    }

    /// Loads the pieces, and notes their ranges: the last one only if it is whole.
    fn load(&mut self, is_whole: bool) -> Result<(), ConvertError> {
        self.bytes = 0;
        let (mut ranges, lists): (Vec<u32>, Vec<Vec<Vec<Write>>>) =
            std::mem::take(&mut self.pieces).into_iter().unzip();
        load_lists(self.state, lists.into_iter())?;
        ranges.dedup();
        if !is_whole {
            ranges.pop();
        }
        for part in ranges {
            let run = self.run;
            self.done_file.add(Origin { part, run })?;
        }
        Ok(())
    }
}
