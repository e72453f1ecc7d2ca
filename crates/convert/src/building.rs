//! Building the target in parts, with checkpoints.
//!
//! Accounts are spread range by range: their flat records are loaded, and their leaves go to 256 files by the first byte
//! of the leaves' keys. Then the nodes of each file's leaves are made and loaded, and at last those above all files. What is
//! loaded is durable before its range is noted as done; a range that a kill interrupts is made again, and
//! writes the same.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use arbor_state::{
    AccountSource, Build, Computed, KeyedAccount, LoadedCodes, NumberedLeaf, Spread, State,
    code_write,
};
use arbor_store::{Table, Write};
use rayon::prelude::*;

use crate::ConvertError;
use crate::counts::Counts;
use crate::done::{Done, DoneFile};
use crate::frames::{Frame, FrameFile, Frames, Origin, cut_torn};
use crate::leaf_records::{self, LeafRecords};
use crate::progress::Watch;
use crate::range_result::OfRange;
use crate::ranges::RANGES;
use crate::sorted::CodeByHash;

/// Accounts and slots that are spread together.
const CHUNK: usize = 1 << 15;
/// Bytes that are loaded between two checkpoints, unless a range has more.
pub(crate) const BETWEEN: usize = 64 << 20;
/// Bytes of memory that a write takes beside its key and value.
const OVERHEAD: usize = 80;

/// What is built, and in which folder.
pub(crate) struct Building<'a> {
    pub(crate) build: &'a dyn Build,
    pub(crate) folder: &'a Path,
    pub(crate) watch: &'a Watch<'a>,
    /// The number of this run of the conversion.
    pub(crate) run: u32,
}

/// Takes the flat records of ranges that are spread.
pub(crate) trait RecordSink: Send {
    /// Keeps the lists of some ranges. They are durable on return.
    fn put(&mut self, ranges: Vec<SpreadRange>) -> Result<(), ConvertError>;
}

/// A range whose accounts are spread, and whose leaves are written.
pub(crate) struct SpreadRange {
    pub(crate) range: u32,
    /// Flat records in [lists](Spread::records).
    pub(crate) records: Vec<Vec<Write>>,
    result: OfRange,
}

impl RecordSink for &mut State {
    fn put(&mut self, ranges: Vec<SpreadRange>) -> Result<(), ConvertError> {
        load_lists(self, ranges.into_iter().map(|range| range.records))
    }
}

/// Loads the lists of some ranges, which ascend: each list with the same list of the other ranges.
pub(crate) fn load_lists(
    state: &mut State,
    ranges: impl Iterator<Item = Vec<Vec<Write>>>,
) -> Result<(), ConvertError> {
    let mut lists: Vec<Vec<Write>> = Vec::new();
    for records in ranges {
        for (place, list) in records.into_iter().enumerate() {
            match lists.get_mut(place) {
                Some(all) => all.extend(list),
                None => lists.push(list),
            }
        }
    }
    for list in lists {
        state.load_part(&mut list.into_iter())?;
    }
    Ok(())
}

/// The files of ranges of accounts that are spread, in one folder.
pub(crate) struct SpreadFiles {
    folder: PathBuf,
    done: Done,
    /// What is known of each range.
    results: BTreeMap<u32, Vec<u8>>,
}

impl SpreadFiles {
    /// Reads what there is in a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, ConvertError> {
        let step = Step::of(folder, RANGES_STEP);
        let done = Done::read(&step.done)?;
        Ok(Self {
            folder: folder.to_owned(),
            results: read_results(&step, &done)?,
            done,
        })
    }

    /// Whether a frame of a range counts.
    pub(crate) fn has_frame(&self, origin: Origin) -> bool {
        self.done.counts(origin)
    }

    /// The ranges.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = u32> + '_ {
        self.results.keys().copied()
    }

    fn leaves(&self, first: u8) -> PathBuf {
        leaves_file(&self.folder, first)
    }

    fn decoded(&self) -> Result<Vec<OfRange>, ConvertError> {
        let results = self.results.values().map(|bytes| {
            OfRange::decode(bytes).ok_or_else(|| ConvertError::Damaged {
                path: self.folder.join(RANGES_STEP),
                offset: 0,
                why: "what it says of a range is malformed",
            })
        });
        results.collect()
    }

    /// The hashes of the codes that accounts have.
    pub(crate) fn codes(&self) -> Result<BTreeSet<B256>, ConvertError> {
        let ranges = self.decoded()?.into_iter();
        Ok(ranges.flat_map(|range| range.codes).collect())
    }

    /// The accounts and slots.
    pub(crate) fn counts(&self) -> Result<Counts, ConvertError> {
        let mut all = Counts::default();
        let ranges = self.decoded()?.into_iter();
        ranges.for_each(|range| all.add(range.counts));
        Ok(all)
    }
}

/// The name of the step that spreads ranges of accounts.
const RANGES_STEP: &str = "ranges";

fn leaves_file(folder: &Path, first: u8) -> PathBuf {
    folder.join(format!("leaves-{first:02x}"))
}

/// The files of a step.
struct Step {
    /// A frame for each range that is done.
    results: PathBuf,
    done: PathBuf,
}

impl Step {
    fn of(folder: &Path, name: &str) -> Self {
        Self {
            results: folder.join(name),
            done: folder.join(format!("{name}-done")),
        }
    }
}

impl Building<'_> {
    fn step(&self, name: &str) -> Step {
        Step::of(self.folder, name)
    }

    /// Builds all of it, or what earlier runs have not; returns what is then to be committed.
    pub(crate) fn run(
        &self,
        source: &dyn AccountSource,
        state: &mut State,
    ) -> Result<Computed, ConvertError> {
        self.spread_all(source, 0..RANGES, &mut &mut *state)?;
        let files = [SpreadFiles::read(self.folder)?];
        let code = |hash| source.code_bytes(hash);
        Ok(self.finish(state, &files, &code)?.0)
    }

    /// Builds the rest of a state whose ranges are spread and loaded: its codes and nodes, or what earlier runs have not. Returns what is
    /// then to be committed, and the hashes of all codes.
    pub(crate) fn finish(
        &self,
        state: &mut State,
        spread: &[SpreadFiles],
        code: CodeByHash<'_>,
    ) -> Result<(Computed, BTreeSet<B256>), ConvertError> {
        let nodes = self.step("nodes");
        cut_torn(&nodes.results)?;
        let (numbers, codes) = of_ranges(self.folder, spread)?;
        self.load_codes(state, &codes, code)?;
        self.make_nodes(state, &nodes, (spread, &numbers))?;
        let parts = read_results(&nodes, &Done::read(&nodes.done)?)?;
        let leaves = numbers.iter().map(|of_range| of_range.leaves).sum();
        let joined = self.build.join(parts.into_values().collect(), leaves)?;
        let mut gathered = Gathered::default();
        gathered.add(joined.writes);
        gathered.load(state)?;
        Ok((Computed::of_load(joined.root, Default::default()), codes))
    }

    /// Spreads those of some ranges that are not done.
    pub(crate) fn spread_all(
        &self,
        source: &dyn AccountSource,
        ranges: Range<u32>,
        sink: &mut dyn RecordSink,
    ) -> Result<(), ConvertError> {
        let step = self.step(RANGES_STEP);
        cut_torn(&step.results)?;
        let firsts: Vec<u8> = (0..=u8::MAX).collect();
        firsts
            .par_iter()
            .try_for_each(|first| cut_torn(&leaves_file(self.folder, *first)))?;
        let done = Done::read(&step.done)?;
        let done_file = DoneFile::open(step.done.clone(), &done)?;
        let results = FrameFile::new(step.results.clone());
        let all = ranges.len();
        let wanted: Vec<u32> = ranges.filter(|range| !done.has(*range)).collect();
        let codes = LoadedCodes::of(source);
        let leaf_files: Vec<FrameFile> = (0..=u8::MAX)
            .map(|first| FrameFile::new(leaves_file(self.folder, first)))
            .collect();
        // One batch is being loaded, one waits, one is being made.
        let (sender, batches) = sync_channel::<SpreadRange>(1);
        let before = done.len();
        thread::scope(|scope| {
            let loading = scope.spawn(|| {
                let loader = Loader {
                    sink,
                    done_file: &done_file,
                    results: &results,
                    run: self.run,
                };
                loader.load_all(batches)
            });
            let made = (|| {
                let mut next = wanted.first().map(|range| accounts(source, *range));
                for (place, range) in wanted.iter().enumerate() {
                    self.watch.check()?;
                    let Some(of_range) = next.take() else { break };
                    let of_range = of_range?;
                    let after = wanted.get(place + 1);
                    let (read, spread) = rayon::join(
                        || after.map(|range| accounts(source, *range)),
                        || self.spread_range(*range, of_range, (&codes, &leaf_files)),
                    );
                    next = read;
                    // If nobody listens the load has failed, and returns why.
                    if sender.send(spread?).is_err() {
                        break;
                    }
                    self.watch
                        .done((before + place + 1) as f64 / all as f64 / 2.0);
                }
                Ok::<(), ConvertError>(())
            })();
            drop(sender);
            match loading.join() {
                Ok(loaded) => loaded.and(made),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Spreads the accounts of a range, and writes its leaves.
    fn spread_range(
        &self,
        range: u32,
        accounts: Vec<KeyedAccount>,
        (codes, leaf_files): (&LoadedCodes<'_>, &[FrameFile]),
    ) -> Result<SpreadRange, ConvertError> {
        let hashes = accounts.iter().map(|account| account.account.code_hash);
        let hashes: BTreeSet<B256> = hashes.filter(|hash| *hash != KECCAK256_EMPTY).collect();
        let slots: usize = accounts.iter().map(|account| account.slots.len()).sum();
        let counts = Counts {
            accounts: accounts.len() as u64,
            slots: slots as u64,
        };
        let chunks = in_chunks(accounts);
        let spread = chunks.into_par_iter().map(|accounts| {
            let Spread { records, leaves } = self.build.spread(accounts, codes)?;
            Ok((records, LeafRecords::of(leaves)))
        });
        let spread: Vec<(Vec<Vec<Write>>, LeafRecords)> =
            spread.collect::<Result<_, ConvertError>>()?;
        let mut loaded = SpreadRange {
            range,
            records: Vec::new(),
            result: OfRange {
                leaves: 0,
                counts,
                codes: hashes,
            },
        };
        let origin = Origin {
            part: range,
            run: self.run,
        };
        for (records, leaves) in spread {
            leaves.append(origin, loaded.result.leaves, leaf_files)?;
            loaded.result.leaves += leaves.count;
            for (place, list) in records.into_iter().enumerate() {
                match loaded.records.get_mut(place) {
                    Some(all) => Vec::extend(all, list),
                    None => loaded.records.push(list),
                }
            }
        }
        self.watch.count(counts);
        Ok(loaded)
    }

    /// Loads all codes, ascending by hash. A run that is interrupted is made again.
    fn load_codes(
        &self,
        state: &mut State,
        codes: &BTreeSet<B256>,
        code: CodeByHash<'_>,
    ) -> Result<(), ConvertError> {
        let step = self.step("codes-loaded");
        let done = Done::read(&step.done)?;
        let done_file = DoneFile::open(step.done.clone(), &done)?;
        let (mut writes, mut bytes, mut firsts) = (Vec::new(), 0, Vec::new());
        for first in 0..RANGES {
            if done.has(first) {
                continue;
            }
            self.watch.check()?;
            let mut from = B256::ZERO;
            from[0] = first as u8;
            let of_first = codes
                .range(from..)
                .take_while(|hash| u32::from(hash[0]) == first);
            for hash in of_first {
                let code = code(*hash)?;
                bytes += code.len() + OVERHEAD;
                writes.push(code_write(hash, &code));
            }
            firsts.push(first);
            if bytes < BETWEEN && first + 1 < RANGES {
                continue;
            }
            state.load_part(&mut std::mem::take(&mut writes).into_iter())?;
            bytes = 0;
            for part in firsts.drain(..) {
                let run = self.run;
                done_file.add(Origin { part, run })?;
            }
        }
        Ok(())
    }

    /// Makes the nodes of the ranges of leaves that are not done, as many at a time as there are threads.
    fn make_nodes(
        &self,
        state: &mut State,
        step: &Step,
        spread: (&[SpreadFiles], &[Numbers]),
    ) -> Result<(), ConvertError> {
        let done = Done::read(&step.done)?;
        let done_file = DoneFile::open(step.done.clone(), &done)?;
        let results = FrameFile::new(step.results.clone());
        let wanted: Vec<u32> = (0..RANGES).filter(|range| !done.has(*range)).collect();
        let mut made = done.len();
        let (mut gathered, mut parts) = (Gathered::default(), Vec::new());
        for group in wanted.chunks(rayon::current_num_threads()) {
            self.watch.check()?;
            let view = state.versions().view();
            let built = group.par_iter().map(|first| {
                let leaves = numbered(*first as u8, spread)?;
                Ok(self.build.part(view, *first as u8, leaves)?)
            });
            let built: Vec<_> = built.collect::<Result<_, ConvertError>>()?;
            for (first, built) in group.iter().zip(built) {
                gathered.add_records(built.records);
                gathered.add(built.nodes);
                parts.push((*first, built.part));
            }
            made += group.len();
            if gathered.bytes >= BETWEEN || made == RANGES as usize {
                std::mem::take(&mut gathered).load(state)?;
                for (part, bytes) in parts.drain(..) {
                    let origin = Origin {
                        part,
                        run: self.run,
                    };
                    results.append(origin, &bytes)?;
                    done_file.add(origin)?;
                }
            }
            self.watch.done(0.5 + made as f64 / f64::from(RANGES) / 2.0);
        }
        Ok(())
    }
}

/// Reads the accounts of a range.
fn accounts(source: &dyn AccountSource, range: u32) -> Result<Vec<KeyedAccount>, ConvertError> {
    let accounts = source.stream(Some(range as u8))?;
    Ok(accounts.collect::<Result<_, _>>()?)
}

/// Reads the leaves of a range, ascending by key, with their numbers.
fn numbered(
    first: u8,
    (spread, numbers): (&[SpreadFiles], &[Numbers]),
) -> Result<Vec<NumberedLeaf>, ConvertError> {
    let mut leaves = Vec::new();
    for files in spread {
        let path = files.leaves(first);
        let mut frames = Frames::open(&path)?;
        while let Some(frame) = frames.next()? {
            if !files.has_frame(frame.origin) {
                frames.skip(&frame)?;
                continue;
            }
            let payload = frames.payload(&frame)?;
            let base = numbers.get(frame.origin.part as usize).map(|of| of.first);
            let read = base.and_then(|base| leaf_records::read(&payload, base, &mut leaves));
            read.ok_or_else(|| malformed(&path, &frame))?;
        }
    }
    leaves.sort_unstable_by_key(|leaf| leaf.key);
    Ok(leaves)
}

fn malformed(path: &Path, frame: &Frame) -> ConvertError {
    ConvertError::Damaged {
        path: path.to_owned(),
        offset: frame.begin,
        why: "a record is malformed",
    }
}

/// Accounts in chunks that are spread next to each other.
fn in_chunks(accounts: Vec<KeyedAccount>) -> Vec<Vec<KeyedAccount>> {
    let (mut chunks, mut chunk, mut size) = (Vec::new(), Vec::new(), 0);
    for account in accounts {
        size += 1 + account.slots.len();
        chunk.push(account);
        if size >= CHUNK {
            chunks.push(std::mem::take(&mut chunk));
            size = 0;
        }
    }
    chunks.push(chunk);
    chunks
}

/// The numbers of a range's leaves.
pub(crate) struct Numbers {
    /// Leaves of the ranges before.
    first: u64,
    leaves: u64,
}

/// Has ranges kept, and notes them once they are durable.
struct Loader<'a> {
    sink: &'a mut dyn RecordSink,
    done_file: &'a DoneFile,
    results: &'a FrameFile,
    run: u32,
}

impl Loader<'_> {
    fn load_all(mut self, ranges: Receiver<SpreadRange>) -> Result<(), ConvertError> {
        let (mut together, mut bytes) = (Vec::new(), 0);
        for range in ranges {
            bytes += range.records.iter().flatten().map(size).sum::<usize>();
            together.push(range);
            if bytes >= BETWEEN {
                self.load(std::mem::take(&mut together))?;
                bytes = 0;
            }
        }
        self.load(together)
    }

    fn load(&mut self, ranges: Vec<SpreadRange>) -> Result<(), ConvertError> {
        let results: Vec<(u32, Vec<u8>)> = ranges
            .iter()
            .map(|range| (range.range, range.result.encode()))
            .collect();
        self.sink.put(ranges)?;
        for (part, result) in results {
            let origin = Origin {
                part,
                run: self.run,
            };
            self.results.append(origin, &result)?;
            self.done_file.add(origin)?;
        }
        Ok(())
    }
}

pub(crate) fn size(write: &Write) -> usize {
    OVERHEAD + write.key.len() + write.value.as_ref().map_or(0, |value| value.len())
}

/// Reads the results of the ranges that are done, by range.
fn read_results(step: &Step, done: &Done) -> Result<BTreeMap<u32, Vec<u8>>, ConvertError> {
    let mut frames = Frames::open(&step.results)?;
    let mut results = BTreeMap::new();
    while let Some(frame) = frames.next()? {
        match done.counts(frame.origin) {
            true => {
                let payload = frames.payload(&frame)?;
                results.insert(frame.origin.part, payload);
            }
            false => frames.skip(&frame)?,
        }
    }
    Ok(results)
}

/// The numbers of the leaves of each range, and all codes.
pub(crate) fn of_ranges(
    folder: &Path,
    spread: &[SpreadFiles],
) -> Result<(Vec<Numbers>, BTreeSet<B256>), ConvertError> {
    let (mut numbers, mut codes, mut first) = (Vec::new(), BTreeSet::new(), 0);
    for range in 0..RANGES {
        let mut results = spread.iter().filter_map(|files| files.results.get(&range));
        let result = results.next().and_then(|bytes| OfRange::decode(bytes));
        let mut result = result.ok_or_else(|| ConvertError::Damaged {
            path: folder.join(RANGES_STEP),
            offset: 0,
            why: "it lacks a range that is noted as done",
        })?;
        numbers.push(Numbers {
            first,
            leaves: result.leaves,
        });
        first += result.leaves;
        codes.append(&mut result.codes);
    }
    Ok((numbers, codes))
}

/// Writes that are loaded together, in runs that do not interleave with those before: the store leaves such runs as they are, and
/// would merge others.
#[derive(Default)]
struct Gathered {
    /// Records by table.
    records: BTreeMap<Table, Vec<Write>>,
    /// Nodes by table and depth.
    runs: BTreeMap<(Table, Option<u8>), Vec<Write>>,
    bytes: usize,
}

impl Gathered {
    fn add_records(&mut self, records: Vec<Write>) {
        for write in records {
            self.bytes += size(&write);
            self.records.entry(write.table).or_default().push(write);
        }
    }

    fn add(&mut self, writes: Vec<Write>) {
        for write in writes {
            self.bytes += size(&write);
            let run = (write.table, write.key.first().copied());
            self.runs.entry(run).or_default().push(write);
        }
    }

    fn load(self, state: &mut State) -> Result<(), ConvertError> {
        for run in self.records.into_values() {
            state.load_part(&mut run.into_iter())?;
        }
        for mut run in self.runs.into_values() {
            run.par_sort_unstable_by(Write::cmp_place);
            state.load_part(&mut run.into_iter())?;
        }
        Ok(())
    }
}
