//! Building the target in parts, with checkpoints.
//!
//! Accounts are spread range by range: their flat records are loaded, and their leaves go to 256 files by the first byte
//! of the leaves' keys. Then the nodes of each file's leaves are made and loaded, and at last those above all files. What is
//! loaded is durable before its range is noted as done; a range that a kill interrupts is made again, and
//! writes the same.

use std::collections::{BTreeMap, BTreeSet};
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

/// Accounts and slots that are spread together.
const CHUNK: usize = 1 << 15;
/// Bytes that are loaded between two checkpoints, unless a range has more.
const BETWEEN: usize = 64 << 20;
/// Bytes of memory that a write takes beside its key and value.
const OVERHEAD: usize = 80;
/// Ranges of keys, by their first byte.
const RANGES: u32 = 256;

/// What is built, and of what.
pub(crate) struct Building<'a> {
    pub(crate) build: &'a dyn Build,
    pub(crate) source: &'a dyn AccountSource,
    pub(crate) folder: &'a Path,
    pub(crate) watch: &'a Watch<'a>,
    /// The number of this run of the conversion.
    pub(crate) run: u32,
}

/// The files of a step.
struct Step {
    /// A frame for each range that is done.
    results: PathBuf,
    done: PathBuf,
}

impl Building<'_> {
    fn step(&self, name: &str) -> Step {
        Step {
            results: self.folder.join(name),
            done: self.folder.join(format!("{name}-done")),
        }
    }

    fn leaves(&self, first: u8) -> PathBuf {
        self.folder.join(format!("leaves-{first:02x}"))
    }

    /// Builds all of it, or what earlier runs have not; returns what is then to be committed.
    pub(crate) fn run(&self, state: &mut State) -> Result<Computed, ConvertError> {
        let spread = self.step("ranges");
        let nodes = self.step("nodes");
        for path in [&spread.results, &nodes.results] {
            cut_torn(path)?;
        }
        let firsts: Vec<u8> = (0..=u8::MAX).collect();
        firsts
            .par_iter()
            .try_for_each(|first| cut_torn(&self.leaves(*first)))?;
        self.spread_all(state, &spread)?;
        let spread_done = Done::read(&spread.done)?;
        let ranges = read_results(&spread, &spread_done)?;
        let (numbers, codes) = of_ranges(&spread.results, &ranges)?;
        self.load_codes(state, &codes)?;
        self.make_nodes(state, &nodes, (&spread_done, &numbers))?;
        let parts = read_results(&nodes, &Done::read(&nodes.done)?)?;
        let leaves = numbers.iter().map(|of_range| of_range.leaves).sum();
        let joined = self.build.join(parts.into_values().collect(), leaves)?;
        let mut gathered = Gathered::default();
        gathered.add(joined.writes);
        gathered.load(state)?;
        Ok(Computed::of_load(joined.root, Default::default()))
    }

    /// Spreads the ranges that are not done.
    fn spread_all(&self, state: &mut State, step: &Step) -> Result<(), ConvertError> {
        let done = Done::read(&step.done)?;
        let done_file = DoneFile::open(step.done.clone(), &done)?;
        let results = FrameFile::new(step.results.clone());
        let wanted: Vec<u32> = (0..RANGES).filter(|range| !done.has(*range)).collect();
        let codes = LoadedCodes::of(self.source);
        let leaf_files: Vec<FrameFile> = (0..=u8::MAX)
            .map(|first| FrameFile::new(self.leaves(first)))
            .collect();
        // One batch is being loaded, one waits, one is being made.
        let (sender, batches) = sync_channel::<Loaded>(1);
        let before = done.len();
        thread::scope(|scope| {
            let loading = scope.spawn(|| {
                let loader = Loader {
                    state,
                    done_file: &done_file,
                    results: &results,
                    run: self.run,
                };
                loader.load_all(batches)
            });
            let made = (|| {
                let mut next = wanted.first().map(|range| self.accounts(*range));
                for (place, range) in wanted.iter().enumerate() {
                    self.watch.check()?;
                    let Some(accounts) = next.take() else { break };
                    let accounts = accounts?;
                    let after = wanted.get(place + 1);
                    let (read, spread) = rayon::join(
                        || after.map(|range| self.accounts(*range)),
                        || self.spread_range(*range, accounts, (&codes, &leaf_files)),
                    );
                    next = read;
                    // If nobody listens the load has failed, and returns why.
                    if sender.send(spread?).is_err() {
                        break;
                    }
                    self.watch
                        .done((before + place + 1) as f64 / f64::from(RANGES) / 2.0);
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

    fn accounts(&self, range: u32) -> Result<Vec<KeyedAccount>, ConvertError> {
        let accounts = self.source.stream(Some(range as u8))?;
        Ok(accounts.collect::<Result<_, _>>()?)
    }

    /// Spreads the accounts of a range, and writes its leaves.
    fn spread_range(
        &self,
        range: u32,
        accounts: Vec<KeyedAccount>,
        (codes, leaf_files): (&LoadedCodes<'_>, &[FrameFile]),
    ) -> Result<Loaded, ConvertError> {
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
        let mut loaded = Loaded {
            range,
            records: Vec::new(),
            result: OfRange {
                leaves: 0,
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
    fn load_codes(&self, state: &mut State, codes: &BTreeSet<B256>) -> Result<(), ConvertError> {
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
                let code = self.source.code_bytes(*hash)?;
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
        spread: (&Done, &[Numbers]),
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
                let leaves = self.numbered(*first as u8, spread)?;
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

    /// Reads the leaves of a range, ascending by key, with their numbers.
    fn numbered(
        &self,
        first: u8,
        (spread, numbers): (&Done, &[Numbers]),
    ) -> Result<Vec<NumberedLeaf>, ConvertError> {
        let path = self.leaves(first);
        let mut frames = Frames::open(&path)?;
        let mut leaves = Vec::new();
        while let Some(frame) = frames.next()? {
            if !spread.counts(frame.origin) {
                frames.skip(&frame)?;
                continue;
            }
            let payload = frames.payload(&frame)?;
            let base = numbers.get(frame.origin.part as usize).map(|of| of.first);
            let read = base.and_then(|base| leaf_records::read(&payload, base, &mut leaves));
            read.ok_or_else(|| malformed(&path, &frame))?;
        }
        leaves.sort_unstable_by_key(|leaf| leaf.key);
        Ok(leaves)
    }
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

/// What is known of a range once it is spread.
struct OfRange {
    leaves: u64,
    codes: BTreeSet<B256>,
}

impl OfRange {
    /// The number of leaves (8 bytes, big-endian), then the hashes of codes.
    fn encode(&self) -> Vec<u8> {
        let mut out = self.leaves.to_be_bytes().to_vec();
        self.codes
            .iter()
            .for_each(|hash| out.extend_from_slice(hash.as_slice()));
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (leaves, hashes) = bytes.split_first_chunk()?;
        let (hashes, rest) = hashes.as_chunks::<32>();
        rest.is_empty().then(|| Self {
            leaves: u64::from_be_bytes(*leaves),
            codes: hashes.iter().map(B256::from).collect(),
        })
    }
}

/// The numbers of a range's leaves.
struct Numbers {
    /// Leaves of the ranges before.
    first: u64,
    leaves: u64,
}

/// A range that was spread, and is to be loaded.
struct Loaded {
    range: u32,
    records: Vec<Vec<Write>>,
    result: OfRange,
}

/// Loads ranges, and notes them once they are durable.
struct Loader<'a> {
    state: &'a mut State,
    done_file: &'a DoneFile,
    results: &'a FrameFile,
    run: u32,
}

impl Loader<'_> {
    fn load_all(mut self, ranges: Receiver<Loaded>) -> Result<(), ConvertError> {
        let (mut lists, mut bytes, mut loaded) = (Vec::<Vec<Write>>::new(), 0, Vec::new());
        for Loaded {
            range,
            records,
            result,
        } in ranges
        {
            for (place, list) in records.into_iter().enumerate() {
                bytes += list.iter().map(size).sum::<usize>();
                match lists.get_mut(place) {
                    Some(all) => all.extend(list),
                    None => lists.push(list),
                }
            }
            loaded.push((range, result));
            if bytes >= BETWEEN {
                self.load(std::mem::take(&mut lists), loaded.drain(..))?;
                bytes = 0;
            }
        }
        self.load(lists, loaded.drain(..))
    }

    fn load(
        &mut self,
        lists: Vec<Vec<Write>>,
        ranges: impl Iterator<Item = (u32, OfRange)>,
    ) -> Result<(), ConvertError> {
        for list in lists {
            self.state.load_part(&mut list.into_iter())?;
        }
        for (part, result) in ranges {
            let origin = Origin {
                part,
                run: self.run,
            };
            self.results.append(origin, &result.encode())?;
            self.done_file.add(origin)?;
        }
        Ok(())
    }
}

fn size(write: &Write) -> usize {
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
fn of_ranges(
    path: &Path,
    results: &BTreeMap<u32, Vec<u8>>,
) -> Result<(Vec<Numbers>, BTreeSet<B256>), ConvertError> {
    let (mut numbers, mut codes, mut first) = (Vec::new(), BTreeSet::new(), 0);
    for range in 0..RANGES {
        let result = results.get(&range).and_then(|bytes| OfRange::decode(bytes));
        let mut result = result.ok_or_else(|| ConvertError::Damaged {
            path: path.to_owned(),
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
