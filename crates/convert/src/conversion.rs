//! A conversion from its first phase to its last.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes};
use arbor_state::{AccountSource, BlockRef, ReadError, RootPlace, State};
use arbor_versions::Version;

use crate::ConvertError;
use crate::building::Building;
use crate::compare::{Comparison, compare};
use crate::counts::Counts;
use crate::dump::Dump;
use crate::job::{Job, Stage};
use crate::naming::Naming;
use crate::progress::{Hooks, Phase, Watch};
use crate::sorted::SortedFiles;
use crate::sorting::{Sorting, sort_ranges};

/// The state to convert.
pub enum Source<'a> {
    /// A state that is read by ranges of keys.
    State(&'a dyn AccountSource),
    /// A dump, whose accounts come in any order.
    Dump(Dump),
    /// A dump of hashed keys, and files with their preimages.
    Hashed(Dump, Vec<PathBuf>),
}

/// A block that the target is to remember.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceBlock {
    /// Number, hash, and what is kept of the header.
    pub block: BlockRef,
    /// The state root in the header; `None` without a header.
    pub state_root: Option<B256>,
}

/// What is to be converted, and how.
pub struct Conversion<'a> {
    /// The source.
    pub source: Source<'a>,
    /// The last block is that of the state. Those before it, if there are any, come right before it.
    pub blocks: Vec<SourceBlock>,
    /// The Merkle-Patricia root of the source; `None` if nothing says it.
    pub state_root: Option<B256>,
    /// The target's folder.
    pub folder: &'a Path,
    /// Bytes for the accounts that are being sorted.
    pub memory: u64,
    /// What is called on the way.
    pub hooks: Hooks<'a>,
}

/// A phase that is over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PhaseDone {
    /// The phase.
    pub phase: Phase,
    /// How long it took in this run.
    pub time: Duration,
    /// What it read in this run.
    pub counts: Counts,
}

/// A conversion that is over.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The phases of this run.
    pub phases: Vec<PhaseDone>,
    /// What the comparison of target and source found.
    pub comparison: Comparison,
    /// The root of the target's tree.
    pub root: B256,
    /// The Merkle-Patricia root of what was read of the target.
    pub flat_root: B256,
}

impl Conversion<'_> {
    /// Converts into an empty database, or goes on with an earlier run. Called on a thread of a rayon pool, it spreads the
    /// work over the pool.
    ///
    /// The target is a whole database, and durable, before it is compared with the source. What differs is in the
    /// result. If nothing differs the files of the conversion are removed.
    ///
    /// # Errors
    /// A source that cannot be read, or that has an account or a slot twice; accounts that do not have the source's
    /// state root; a target that cannot be written, for example because the disk is full: the same conversion then goes
    /// on with what was done.
    pub fn run(self, job: &mut Job, state: &mut State) -> Result<Converted, ConvertError> {
        let mut phases = Vec::new();
        let Self {
            source,
            blocks,
            state_root,
            folder,
            memory,
            hooks,
        } = self;
        let files = Job::folder(folder);
        let run = Job::next_run(folder)?;
        let order = state.tree().order();
        let mut timed = Timed::default();
        let (by_state, dump) = match source {
            Source::State(source) => (Some(source), None),
            Source::Dump(dump) => (None, Some((dump, Vec::new()))),
            Source::Hashed(dump, preimages) => (None, Some((dump, preimages))),
        };
        let is_ordered = by_state.is_some_and(|source| source.order() == order);
        if !is_ordered && job.stage == Stage::Sort {
            let watch = Watch::new(&hooks, Phase::Sort);
            let sorting = Sorting::open(&files, order, (memory, run), &watch)?;
            if !sorting.is_complete() {
                match (by_state, dump) {
                    (Some(source), _) => sort_ranges(source, &sorting)?,
                    (None, Some((dump, preimages))) if preimages.is_empty() => {
                        dump.sort(&sorting)?;
                    }
                    (None, Some((dump, preimages))) => {
                        let naming = Naming::begin(&files, &watch)?;
                        dump.sort_named(&preimages, &naming, &sorting)?;
                    }
                    (None, None) => {}
                }
                sorting.finish()?;
            }
            phases.push(timed.end(&watch));
        }
        let code = by_state.map(|source| {
            move |hash| -> Result<Bytes, ReadError> { AccountSource::code_bytes(source, hash) }
        });
        let code = code
            .as_ref()
            .map(|code| code as crate::sorted::CodeByHash<'_>);
        let sorted;
        let ordered: &dyn AccountSource = match by_state {
            Some(source) if is_ordered => source,
            _ => {
                sorted = SortedFiles::open(&files, order, code)?;
                &sorted
            }
        };
        if job.stage < Stage::Verify {
            job.reach(Stage::Build, folder)?;
            let watch = Watch::new(&hooks, Phase::Build);
            let tree = Arc::clone(state.tree());
            let computed = match tree.build() {
                Some(build) => Building {
                    build,
                    source: ordered,
                    folder: &files,
                    watch: &watch,
                    run,
                }
                .run(state)?,
                None => {
                    let progress = |done: u64, of: u64| watch.done(done as f64 / of.max(1) as f64);
                    state.load(ordered, &progress)?
                }
            };
            let is_in_headers = state.tree().kind().roots == RootPlace::InHeaders;
            if let Some(expected) =
                state_root.filter(|root| is_in_headers && *root != computed.root())
            {
                let actual = computed.root();
                return Err(ConvertError::Root { expected, actual });
            }
            let last = blocks.len().saturating_sub(1);
            let blocks = blocks.into_iter().enumerate().map(|(place, block)| {
                let of_header = block.state_root.filter(|_| is_in_headers);
                let root = match place == last {
                    true => computed.root(),
                    false => of_header.unwrap_or_default(),
                };
                (block.block, root)
            });
            let blocks = blocks.collect();
            state.commit_loaded(blocks, computed)?;
            job.reach(Stage::Verify, folder)?;
            phases.push(timed.end(&watch));
        }
        let watch = Watch::new(&hooks, Phase::Verify);
        let head = state.reader();
        let version = head.meta().map_or(Version(0), |meta| meta.version);
        let target = head.at(version)?;
        let comparison = compare(ordered, &target, &watch)?;
        let flat_root = head.flat_root()?;
        let root = head.root();
        phases.push(timed.end(&watch));
        if comparison.is_same() {
            if let Some(expected) = state_root.filter(|root| *root != flat_root) {
                return Err(ConvertError::Root {
                    expected,
                    actual: flat_root,
                });
            }
            Job::remove(folder)?;
        }
        Ok(Converted {
            phases,
            comparison,
            root,
            flat_root,
        })
    }
}

/// The time since the last phase.
struct Timed(Instant);

impl Default for Timed {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Timed {
    fn end(&mut self, watch: &Watch<'_>) -> PhaseDone {
        let begin = std::mem::replace(&mut self.0, Instant::now());
        PhaseDone {
            phase: watch.phase(),
            time: self.0 - begin,
            counts: watch.counts(),
        }
    }
}
