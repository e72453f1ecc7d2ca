//! Building the target in parts, with checkpoints.
//!
//! Accounts are spread range by range, a large range piece by piece: their flat records are loaded, and their leaves go to 256 files by the first byte
//! of the leaves' keys. Then the nodes of each file's leaves are made and loaded, and at last those above all files. What is
//! loaded is durable before its range is noted as done; a range that a kill interrupts is made again, and
//! writes the same.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use arbor_state::{
    AccountSource, Build, Computed, KeyedAccount, LoadedCodes, NumberedLeaf, PartOf, Spread, State,
    StateError, code_write,
};
use arbor_store::{Table, Write};
use rayon::prelude::*;

use crate::ConvertError;
use crate::counts::Counts;
use crate::done::{Done, DoneFile};
use crate::frames::{Frame, FrameFile, Frames, Origin};
use crate::job::remove_file;
use crate::leaf_records::{self, LeafRecords};
use crate::progress::Watch;
use crate::range_result::OfRange;
use crate::sorted::CodeByHash;

/// Accounts and slots that are spread together.
const CHUNK: usize = 1 << 15;
/// Bytes of records that are loaded together. A checkpoint comes at the end of the last range in them.
pub const LOADED_TOGETHER: usize = 64 << 20;
/// Bytes of memory that a write takes beside its key and value.
const OVERHEAD: usize = 80;

/// What is built, and in which folder.
pub(crate) struct Building<'a> {
    pub(crate) build: &'a dyn Build,
    pub(crate) folder: &'a Path,
    pub(crate) watch: &'a Watch<'a>,
    /// The number of this run of the conversion.
    pub(crate) run: u32,
    /// Accounts and slots that are read and spread together.
    pub(crate) together: usize,
    /// Bytes of records that are loaded together.
    pub(crate) load_bytes: usize,
}

/// How many accounts and slots are spread together within this memory, in bytes: enough for all threads, if it has room for them.
pub(crate) fn spread_together(memory: u64) -> usize {
    let most = CHUNK * rayon::current_num_threads();
    usize::try_from(memory >> 10).map_or(most, |together| together.clamp(64, most))
}

/// Takes the flat records of ranges that are spread.
pub(crate) trait RecordSink: Send {
    /// Keeps the lists of some pieces of ranges. They are durable on return.
    fn put(&mut self, pieces: Vec<SpreadPiece>) -> Result<(), ConvertError>;
}

/// Accounts of a range that are read together.
struct Piece {
    range: u32,
    accounts: Vec<KeyedAccount>,
    /// Whether the range has no more.
    is_last: bool,
}

/// A piece of a range whose accounts are spread, and whose leaves are written.
pub(crate) struct SpreadPiece {
    pub(crate) range: u32,
    /// Flat records in [lists](Spread::records).
    pub(crate) records: Vec<Vec<Write>>,
    /// What is known of the whole range, if this is its last piece.
    result: Option<OfRange>,
}

impl RecordSink for &mut State {
    fn put(&mut self, pieces: Vec<SpreadPiece>) -> Result<(), ConvertError> {
        load_lists(self, pieces.into_iter().map(|piece| piece.records))
    }
}

/// Loads the lists of some pieces of ranges, which ascend: each list with the same list of the other pieces.
pub(crate) fn load_lists(
    state: &mut State,
    pieces: impl Iterator<Item = Vec<Vec<Write>>>,
) -> Result<(), ConvertError> {
    let mut lists: Vec<Vec<Write>> = Vec::new();
    for records in pieces {
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

    /// The ranges that have accounts.
    pub(crate) fn ranges_with_accounts(&self) -> Result<BTreeSet<u32>, ConvertError> {
        let ranges = self.ranges().zip(self.decoded()?);
        let ranges = ranges.filter(|(_, of_range)| of_range.counts.accounts > 0);
        Ok(ranges.map(|(range, _)| range).collect())
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

/// Removes the leaves of a target that is built.
pub(crate) fn remove_leaves(folder: &Path) -> Result<(), ConvertError> {
    (0..=u8::MAX).try_for_each(|first| remove_file(&leaves_file(folder, first)))
}

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
        self.spread_all(source, 0..PartOf::RANGES, &mut &mut *state)?;
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
        let nodes = self.step("node-parts");
        let (numbers, codes) = of_ranges(self.folder, spread)?;
        self.load_codes(state, &codes, code)?;
        self.make_nodes(state, &nodes, (spread, &numbers))?;
        let results = read_results(&nodes, &Done::read(&nodes.done)?)?;
        let results = results.values().map(|bytes| {
            PartOfNodes::decode(bytes, spread.len()).ok_or_else(|| ConvertError::Damaged {
                path: nodes.results.clone(),
                offset: 0,
                why: "what it says of a range is malformed",
            })
        });
        let results: Vec<PartOfNodes> = results.collect::<Result<_, _>>()?;
        check_leaves(spread, &results)?;
        let leaves = numbers.iter().map(|of_range| of_range.leaves).sum();
        let parts = results.into_iter().map(|result| result.part);
        let joined = self.build.join(parts.collect(), leaves)?;
        let mut gathered = Gathered::default();
        gathered.add(joined.writes);
        gathered.load(state)?;
        let computed = Computed::of_load(joined.root, Default::default());
        Ok((computed.of_database(state.versions().view()), codes))
    }

    /// Spreads those of some ranges that are not done.
    pub(crate) fn spread_all(
        &self,
        source: &dyn AccountSource,
        ranges: Range<u32>,
        sink: &mut dyn RecordSink,
    ) -> Result<(), ConvertError> {
        let step = self.step(RANGES_STEP);
        let done = Done::read(&step.done)?;
        let done_file = DoneFile::open(step.done.clone(), &done)?;
        let results = FrameFile::new(step.results.clone());
        let all = ranges.len();
        let wanted: Vec<u32> = ranges.filter(|range| !done.has(*range)).collect();
        let codes = LoadedCodes::of(source);
        let leaf_files: Vec<FrameFile> = (0..=u8::MAX)
            .map(|first| FrameFile::new(leaves_file(self.folder, first)))
            .collect();
        // One piece is read, one is spread, one waits, and some are being loaded.
        let (piece_sender, pieces) = sync_channel::<Result<Piece, ConvertError>>(0);
        let (sender, spread) = sync_channel::<SpreadPiece>(1);
        let together = self.together;
        let before = done.len();
        thread::scope(|scope| {
            let loading = scope.spawn(|| {
                let loader = Loader {
                    sink,
                    done_file: &done_file,
                    results: &results,
                    run: self.run,
                    load_bytes: self.load_bytes,
                };
                loader.load_all(spread)
            });
            scope.spawn(move || {
                if let Err(error) = read_pieces(source, &wanted, together, &piece_sender) {
                    // If nobody listens, another error came first.
                    drop(piece_sender.send(Err(error)));
                }
            });
            let made = (|| {
                let (mut result, mut ranges) = (OfRange::default(), before);
                for piece in pieces {
                    self.watch.check()?;
                    let spread = self.spread_piece(piece?, &mut result, (&codes, &leaf_files))?;
                    ranges += usize::from(spread.result.is_some());
                    // If nobody listens the load has failed, and returns why.
                    if sender.send(spread).is_err() {
                        break;
                    }
                    self.watch.done(ranges as f64 / all as f64 / 2.0);
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

    /// Spreads a piece of a range, and writes its leaves. `result` is of the pieces before, and is taken with the last one.
    fn spread_piece(
        &self,
        piece: Piece,
        result: &mut OfRange,
        (codes, leaf_files): (&LoadedCodes<'_>, &[FrameFile]),
    ) -> Result<SpreadPiece, ConvertError> {
        let Piece {
            range,
            accounts,
            is_last,
        } = piece;
        let hashes = accounts.iter().map(|account| account.account.code_hash);
        let hashes = hashes.filter(|hash| *hash != KECCAK256_EMPTY);
        result.codes.extend(hashes);
        let slots: usize = accounts.iter().map(|account| account.slots.len()).sum();
        let counts = Counts {
            accounts: accounts.len() as u64,
            slots: slots as u64,
        };
        result.counts.add(counts);
        let chunks = in_chunks(accounts);
        let spread = chunks.into_par_iter().map(|accounts| {
            let Spread { records, leaves } = self.build.spread(accounts, codes)?;
            Ok((records, LeafRecords::of(leaves)))
        });
        let spread: Vec<(Vec<Vec<Write>>, LeafRecords)> =
            spread.collect::<Result<_, ConvertError>>()?;
        let mut lists: Vec<Vec<Write>> = Vec::new();
        let origin = Origin {
            part: range,
            run: self.run,
        };
        for (records, leaves) in spread {
            leaves.append(origin, result.leaves, leaf_files)?;
            result.leaves += leaves.count;
            for (place, list) in records.into_iter().enumerate() {
                match lists.get_mut(place) {
                    Some(all) => all.extend(list),
                    None => lists.push(list),
                }
            }
        }
        self.watch.count(counts);
        Ok(SpreadPiece {
            range,
            records: lists,
            result: is_last.then(|| std::mem::take(result)),
        })
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
        for first in 0..PartOf::RANGES {
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
            if bytes < self.load_bytes && first + 1 < PartOf::RANGES {
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
        let wanted: Vec<u32> = (0..PartOf::RANGES)
            .filter(|range| !done.has(*range))
            .collect();
        let mut made = done.len();
        // From here on the database is one that is being loaded; what is loaded next to the work comes by its versions.
        state.load_part(&mut std::iter::empty())?;
        let versions = state.versions();
        let (sender, loads) = sync_channel::<NodeLoad>(0);
        thread::scope(|scope| {
            let loading = scope.spawn(|| {
                for NodeLoad { runs, parts } in loads {
                    for run in runs {
                        let loaded = versions.load(&mut run.into_iter());
                        loaded.map_err(StateError::from)?;
                    }
                    for (part, bytes) in parts {
                        let run = self.run;
                        results.append(Origin { part, run }, &bytes)?;
                        done_file.add(Origin { part, run })?;
                    }
                }
                Ok::<(), ConvertError>(())
            });
            let built = (|| {
                let (mut gathered, mut parts) = (Gathered::default(), Vec::new());
                for group in wanted.chunks(rayon::current_num_threads()) {
                    self.watch.check()?;
                    let built = group.par_iter().map(|first| {
                        let (leaves, read) = numbered(*first as u8, spread)?;
                        let built = self.build.part(versions.view(), *first as u8, leaves)?;
                        Ok((built, read))
                    });
                    let built: Vec<_> = built.collect::<Result<_, ConvertError>>()?;
                    for (first, (built, read)) in group.iter().zip(built) {
                        gathered.add_records(built.records);
                        gathered.add(built.nodes);
                        let part = built.part;
                        parts.push((*first, PartOfNodes { read, part }.encode()));
                    }
                    made += group.len();
                    if gathered.bytes >= self.load_bytes || made == PartOf::RANGES as usize {
                        let load = NodeLoad {
                            runs: std::mem::take(&mut gathered).into_runs(),
                            parts: std::mem::take(&mut parts),
                        };
                        // If nobody listens the load has failed, and returns why.
                        if sender.send(load).is_err() {
                            break;
                        }
                    }
                    self.watch
                        .done(0.5 + made as f64 / f64::from(PartOf::RANGES) / 2.0);
                }
                Ok::<(), ConvertError>(())
            })();
            drop(sender);
            match loading.join() {
                Ok(loaded) => loaded.and(built),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// The result of making the nodes of a range of leaves.
struct PartOfNodes {
    /// How many leaves of the range each folder had.
    read: Vec<u64>,
    /// The tree's part.
    part: Vec<u8>,
}

impl PartOfNodes {
    fn encode(&self) -> Vec<u8> {
        let read = self.read.iter().flat_map(|read| read.to_be_bytes());
        read.chain(self.part.iter().copied()).collect()
    }

    /// Reads what [`encode`](Self::encode) wrote for this number of folders.
    fn decode(bytes: &[u8], folders: usize) -> Option<Self> {
        let (read, part) = bytes.split_at_checked(8 * folders)?;
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        Some(Self {
            read: read.chunks(8).map(number).collect(),
            part: part.to_vec(),
        })
    }
}

/// Fails if a folder does not have all leaves that were written there: its files are not synced, and may have been copied.
fn check_leaves(spread: &[SpreadFiles], parts: &[PartOfNodes]) -> Result<(), ConvertError> {
    for (place, files) in spread.iter().enumerate() {
        let written = files.decoded()?.iter().map(|range| range.leaves).sum();
        let found = parts.iter().filter_map(|part| part.read.get(place)).sum();
        if found != written {
            return Err(ConvertError::LeavesLost {
                folder: files.folder.clone(),
                found,
                written,
            });
        }
    }
    Ok(())
}

/// Nodes that are loaded while others are made, and the ranges that are done then.
struct NodeLoad {
    /// Each is an ingestion of its own.
    runs: Vec<Vec<Write>>,
    parts: Vec<(u32, Vec<u8>)>,
}

/// Reads the accounts of ranges, about so many accounts and slots at a time.
fn read_pieces(
    source: &dyn AccountSource,
    ranges: &[u32],
    together: usize,
    out: &SyncSender<Result<Piece, ConvertError>>,
) -> Result<(), ConvertError> {
    for range in ranges {
        let mut stream = source.stream(Some(*range as u8))?;
        let mut is_last = false;
        while !is_last {
            let (mut accounts, mut size) = (Vec::new(), 0);
            while size < together && !is_last {
                match stream.next().transpose()? {
                    Some(account) => {
                        size += 1 + account.slots.len();
                        accounts.push(account);
                    }
                    None => is_last = true,
                }
            }
            let piece = Piece {
                range: *range,
                accounts,
                is_last,
            };
            // If nobody listens, the spreading has ended with an error.
            if out.send(Ok(piece)).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads the leaves of a range, ascending by key, with their numbers; and says how many each folder had.
fn numbered(
    first: u8,
    (spread, numbers): (&[SpreadFiles], &[Numbers]),
) -> Result<(Vec<NumberedLeaf>, Vec<u64>), ConvertError> {
    let (mut leaves, mut read_of) = (Vec::new(), Vec::with_capacity(spread.len()));
    for files in spread {
        let before = leaves.len();
        let path = files.leaves(first);
        let mut frames = Frames::open(&path)?;
        while let Some(frame) = frames.next_of(|origin| files.has_frame(origin))? {
            let payload = frames.payload(&frame)?;
            let base = numbers.get(frame.origin.part as usize).map(|of| of.first);
            let read = base.and_then(|base| leaf_records::read(&payload, base, &mut leaves));
            read.ok_or_else(|| malformed(&path, &frame))?;
        }
        read_of.push((leaves.len() - before) as u64);
    }
    leaves.sort_unstable_by_key(|leaf| leaf.key);
    Ok((leaves, read_of))
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
    load_bytes: usize,
}

impl Loader<'_> {
    fn load_all(mut self, pieces: Receiver<SpreadPiece>) -> Result<(), ConvertError> {
        let (mut together, mut bytes) = (Vec::new(), 0);
        for piece in pieces {
            bytes += piece.records.iter().flatten().map(size).sum::<usize>();
            together.push(piece);
            if bytes >= self.load_bytes {
                self.load(std::mem::take(&mut together))?;
                bytes = 0;
            }
        }
        self.load(together)
    }

    /// Loads pieces, and notes the ranges that end with them.
    fn load(&mut self, mut pieces: Vec<SpreadPiece>) -> Result<(), ConvertError> {
        let results = pieces.iter_mut().filter_map(|piece| {
            let result = piece.result.take()?;
            Some((piece.range, result.encode()))
        });
        let results: Vec<(u32, Vec<u8>)> = results.collect();
        self.sink.put(pieces)?;
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
    for range in 0..PartOf::RANGES {
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

    /// The runs, each ascending.
    fn into_runs(self) -> Vec<Vec<Write>> {
        let mut runs: Vec<Vec<Write>> = self.records.into_values().collect();
        for mut run in self.runs.into_values() {
            run.par_sort_unstable_by(Write::cmp_place);
            runs.push(run);
        }
        runs
    }

    fn load(self, state: &mut State) -> Result<(), ConvertError> {
        for run in self.into_runs() {
            state.load_part(&mut run.into_iter())?;
        }
        Ok(())
    }
}
