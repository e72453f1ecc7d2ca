//! A conversion from its first phase to its last.

use std::path::Path;
use std::sync::Arc;

use alloy_primitives::B256;
use arbor_state::{AccountSource, Computed, RootPlace, State};
use arbor_versions::Version;

use crate::ConvertError;
use crate::blame::{SOURCE_IS_DAMAGED, compare_by_name, why_dump_is_wrong};
use crate::building::{Building, LOADED_TOGETHER, remove_leaves, spread_together};
use crate::compare::{Comparison, Verified, check_codes, compare};
use crate::dead_frames::without_dead_frames;
use crate::job::{Job, Stage, next_run};
use crate::parts::Join;
use crate::progress::{Hooks, Phase, PhaseDone, Timed, Watch};
use crate::sorting::Sorting;
use crate::source::{Source, SourceBlock, with_ordered};

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
        let files = Job::folder(self.folder);
        without_dead_frames(&files, || self.converted(&files, job, state))
    }

    fn converted(
        self,
        files: &Path,
        job: &mut Job,
        state: &mut State,
    ) -> Result<Converted, ConvertError> {
        let mut phases = Vec::new();
        let Self {
            source,
            blocks,
            state_root,
            folder,
            memory,
            hooks,
        } = self;
        let run = next_run(files)?;
        let order = state.tree().order();
        let mut timed = Timed::default();
        let is_ordered = source.state().is_some_and(|source| source.order() == order);
        let arranged = match source.state() {
            Some(state) if is_ordered || job.stage == Stage::Sort => {
                state.arrange(files, arrange_bytes(memory))?
            }
            _ => None,
        };
        let source = match &arranged {
            Some(arranged) => Source::State(&**arranged),
            None => source,
        };
        let (by_state, dump_path) = (source.state(), source.dump_path());
        if !is_ordered && job.stage == Stage::Sort {
            let watch = Watch::new(&hooks, Phase::Sort);
            let sorting = Sorting::open(files, order, (memory, run), &watch)?;
            source.sort(files, sorting, &watch)?;
            phases.push(timed.end(&watch));
        }
        let built = |ordered: &dyn AccountSource| {
            if job.stage < Stage::Verify {
                let watch = Watch::new(&hooks, Phase::Build);
                // A kill may have come before it was noted that the target is whole.
                if state.head().is_none() {
                    job.reach(Stage::Build, folder)?;
                    let computed = build(ordered, state, (files, memory, run), &watch)?;
                    commit(state, blocks, computed)?;
                }
                job.reach(Stage::Verify, folder)?;
                remove_leaves(files)?;
                phases.push(timed.end(&watch));
            }
            let watch = Watch::new(&hooks, Phase::Verify);
            let head = state.reader();
            let version = head.meta().map_or(Version(0), |meta| meta.version);
            let target = head.at(version)?;
            let (mut comparison, flat_root) = {
                let arranged = target.arranged(files, arrange_bytes(memory))?;
                let verified = Verified::in_folder(files, run, &watch);
                let comparison = compare(ordered, &arranged, &verified)?;
                (comparison, arranged.flat_root()?)
            };
            let wrong = state_root.filter(|root| *root != flat_root);
            if let Some(source) = by_state.filter(|_| !is_ordered)
                && (wrong.is_some() || !comparison.is_same())
            {
                // The files of the sorting may be what is wrong.
                let found = compare_by_name(source, &target, &comparison, &watch)?;
                if !found.is_same() {
                    comparison = found;
                }
            }
            phases.push(timed.end(&watch));
            let root = head.root();
            Ok::<_, ConvertError>((comparison, wrong, Roots { root, flat_root }))
        };
        let (comparison, wrong, Roots { root, flat_root }) =
            with_ordered(by_state, (files, order, memory), built)?;
        if comparison.is_same() {
            if let Some(expected) = wrong {
                return Err(ConvertError::Root {
                    expected,
                    actual: flat_root,
                    why: match dump_path {
                        None => SOURCE_IS_DAMAGED.to_owned(),
                        Some((path, is_hashed)) => why_dump_is_wrong(&path, is_hashed)?,
                    },
                });
            }
            check_root(state, state_root, root)?;
            job.finish(folder)?;
        }
        Ok(Converted {
            phases,
            comparison,
            root,
            flat_root,
        })
    }
}

/// Bytes of memory in which a state is [arranged](arbor_state::Historical::arranged).
fn arrange_bytes(memory: u64) -> usize {
    usize::try_from(memory / 4).unwrap_or(usize::MAX)
}

/// The root of the target's tree, and the Merkle-Patricia root of what was read of it.
struct Roots {
    root: B256,
    flat_root: B256,
}

/// Builds the target, or loads it at once if its tree is not built in parts.
fn build(
    source: &dyn AccountSource,
    state: &mut State,
    (folder, memory, run): (&Path, u64, u32),
    watch: &Watch<'_>,
) -> Result<Computed, ConvertError> {
    let tree = Arc::clone(state.tree());
    let Some(build) = tree.build() else {
        let progress = |done: u64, of: u64| watch.done(done as f64 / of.max(1) as f64);
        return Ok(state.load(source, &progress)?);
    };
    let building = Building {
        build,
        folder,
        watch,
        run,
        together: spread_together(memory),
        load_bytes: LOADED_TOGETHER,
    };
    building.run(source, state)
}

/// Fails if the nodes of a target have another root than the source's header, under a tree whose root headers have.
fn check_root(state: &State, state_root: Option<B256>, root: B256) -> Result<(), ConvertError> {
    let is_in_headers = state.tree().kind().roots == RootPlace::InHeaders;
    match state_root.filter(|expected| is_in_headers && *expected != root) {
        None => Ok(()),
        Some(expected) => Err(ConvertError::Root {
            expected,
            actual: root,
            why: "the target's accounts are right, and its nodes are not. Remove the target's folder, and begin again".to_owned(),
        }),
    }
}

/// Makes a state that was built the first version of a database, which remembers some blocks.
fn commit(
    state: &mut State,
    blocks: Vec<SourceBlock>,
    computed: Computed,
) -> Result<(), ConvertError> {
    let is_in_headers = state.tree().kind().roots == RootPlace::InHeaders;
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
    Ok(state.commit_loaded(blocks, computed)?)
}

/// The joining of all parts of a conversion.
pub struct Joining<'a> {
    /// The parts.
    pub join: &'a Join,
    /// The target's folder.
    pub folder: &'a Path,
    /// Bytes of records that are loaded together, usually [`LOADED_TOGETHER`].
    pub load_bytes: usize,
    /// What is called on the way.
    pub hooks: Hooks<'a>,
}

impl Joining<'_> {
    /// Joins the parts into an empty database, or goes on with an earlier run. The database is then read again: its codes are hashed, and
    /// its accounts and slots have the Merkle-Patricia root of the source, if that is known.
    ///
    /// # Errors
    /// Parts that cannot be read; another root; a target that cannot be written.
    pub fn run(self, job: &mut Job, state: &mut State) -> Result<Converted, ConvertError> {
        let files = Job::folder(self.folder);
        without_dead_frames(&files, || self.joined(&files, job, state))
    }

    fn joined(
        self,
        files: &Path,
        job: &mut Job,
        state: &mut State,
    ) -> Result<Converted, ConvertError> {
        let Self {
            join,
            folder,
            load_bytes,
            hooks,
        } = self;
        let run = next_run(files)?;
        let (mut phases, mut timed) = (Vec::new(), Timed::default());
        if job.stage < Stage::Verify {
            let watch = Watch::new(&hooks, Phase::Build);
            // As in a conversion at once.
            if state.head().is_none() {
                job.reach(Stage::Build, folder)?;
                let tree = Arc::clone(state.tree());
                let Some(build) = tree.build() else {
                    return Err(ConvertError::Parts(format!(
                        "the tree {} is not built in parts",
                        tree.kind().name
                    )));
                };
                let building = Building {
                    build,
                    folder: files,
                    watch: &watch,
                    run,
                    together: spread_together(0),
                    load_bytes,
                };
                let computed = join.build(&building, state)?.0;
                commit(state, join.first().blocks(), computed)?;
            }
            job.reach(Stage::Verify, folder)?;
            phases.push(timed.end(&watch));
        }
        let watch = Watch::new(&hooks, Phase::Verify);
        let head = state.reader();
        let version = head.meta().map_or(Version(0), |meta| meta.version);
        let target = head.at(version)?;
        let mut comparison = Comparison::of(join.counts());
        check_codes(&target, join.codes(files)?, &watch, &mut comparison)?;
        let arranged = target.arranged(files, state.tree().sort_bytes())?;
        let flat_root = arranged.flat_root()?;
        let root = head.root();
        phases.push(timed.end(&watch));
        if let Some(expected) = join.first().state_root.filter(|root| *root != flat_root) {
            return Err(ConvertError::Root {
                expected,
                actual: flat_root,
                why: "a part is damaged, or the source is: make the parts again".to_owned(),
            });
        }
        if comparison.is_same() {
            check_root(state, join.first().state_root, root)?;
            job.finish(folder)?;
        }
        Ok(Converted {
            phases,
            comparison,
            root,
            flat_root,
        })
    }
}
