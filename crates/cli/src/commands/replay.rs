//! `arbor replay`: imports, executes and verifies blocks.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use arbor_chain::genesis::{Alloc, Genesis, Population};
use arbor_chain::prepare::{Prefetch, PrefetchOptions, RecoveredBlock, SignatureRules};
use arbor_chain::replay::{
    BlockStats, Options, Publish, Replay, ReplayError, RootDelays, Roots, Series, Sums, Verify,
};
use arbor_chain::rules::ChainRules;
use arbor_chain::source::{ChainInput, ChainLength, open_sources};
use arbor_database::{Budget, ChainContext, Remembered, TreeSettings, in_memory, network};
use arbor_lab::execution::Floor;
use arbor_metrics::Measurement;
use arbor_remote::Node;
use arbor_serve::{Access, Limits, Live, Server};
use arbor_state::{Network, RootThreads, State, Tree, TreeKind};
use arbor_versions::Retain;
use serde_json::Value;

use super::replay_follow::Follower;
use super::{replay_flags, replay_move};
use crate::args::Replay as Args;
use crate::block_rows::BlockRows;
use crate::moves::MoveWatch;
use crate::progress::{PartDone, Progress};
use crate::report::{self, Head, Outcome, Spans};
use crate::trees::{self, TreeChoice};
use crate::{bytes, database, files, genesis, metrics_server, output, rules, stop};

pub(crate) fn run(args: &Args) -> Result<()> {
    if let (Some(dir), false) = (&args.db, args.witness.is_empty()) {
        bail!(
            "--db {} is of no use with --witness: witnesses are replayed without a database",
            dir.display()
        );
    }
    if args.convert_abort {
        return replay_move::abort(args);
    }
    if !args.witness.is_empty() {
        metrics_server::serve(args.metrics)?;
        return super::replay_witness::run(args);
    }
    // The parser asks for no --witness where there is a chain, which excludes it.
    if args.accept_partial {
        bail!(
            "--accept-partial is of no use without --witness: a database's verdicts are never partial"
        );
    }
    if args.assume_absent {
        bail!("--assume-absent is of no use without --witness: a database shows what is absent");
    }
    metrics_server::serve(args.metrics)?;
    let db = args.db.as_deref();
    replay_flags::check_files(args)?;
    let stored = args
        .db
        .as_deref()
        .and_then(|dir| database::folder(dir).tree());
    let of_database = TreeChoice::Tree(stored.unwrap_or_else(trees::usual));
    let tree = args.tree.unwrap_or(of_database);
    replay_flags::check_flags(args, tree)?;
    if let Some(dir) = db {
        database::refuse_without_chain(dir)?;
    }
    let settings = replay_flags::tree_settings(args)?;
    let choice = tree;
    let tree = choice.kind();
    let tree = tree.map(|kind| settings.tree(kind, replay_flags::hash_of(args, kind), args.memory));
    let mut tree = tree.transpose()?;
    if let (Some(dir), Some(known)) = (db, &tree) {
        tree = Some(replay_move::known(dir, known.clone(), args.memory)?);
    }
    let mut measurement = report::start(args, (choice, tree.as_ref()), &settings);
    // What is spread over threads without a pool of its own. Without a number, the pool has a thread for each core.
    let threads = rayon::ThreadPoolBuilder::new().num_threads(args.threads);
    if args.threads > 0 && threads.build_global().is_err() {
        tracing::debug!(
            "the process has a pool of {} threads already, which this replay shares",
            rayon::current_num_threads()
        );
    }
    if let Some(tree) = &tree {
        begin_tables(args, tree);
    }
    use_small_pages();
    stop::listen();
    let blocks = match &args.rpc {
        Some(url) => BlockSource::Node(Node::new(url)?),
        None => BlockSource::Files(Box::new(open_sources(&args.chain)?)),
    };
    let named = args.genesis.as_deref();
    let (mut genesis, text) = match &blocks {
        BlockSource::Node(node) => genesis::of_node(named, db, node)?,
        BlockSource::Files(input) => genesis::of_input(named, db, input)?,
    };
    let rules = rules::agreed(rules::asked(&args.rules), args.db.as_deref())?;
    rules.set(&mut genesis.spec);
    report::rules(&mut measurement, rules);
    for warning in &genesis.warnings {
        tracing::warn!("genesis: {warning}");
    }
    if let BlockSource::Files(input) = &blocks {
        genesis.check_chain(input)?;
    }
    match (tree, blocks) {
        (None, BlockSource::Files(input)) => floor(args, rules, measurement, *input, &genesis),
        (None, BlockSource::Node(_)) => {
            bail!("--tree none is of no use with --rpc: it keeps no state to go on from")
        }
        (Some(tree), blocks) => {
            let how = (tree, &settings, rules);
            full(args, how, measurement, blocks, (genesis, text))
        }
    }
}

/// Where blocks come from.
enum BlockSource {
    Files(Box<ChainInput>),
    Node(Node),
}

/// Makes a Verkle tree's tables. With several threads they are filled beside what comes before the first root, which waits for them, as soon as they have their memory, in large
/// pages.
fn begin_tables(args: &Args, tree: &Tree) {
    if args.thread_count() == 1 {
        return tree.prepare(Box::new(|| ()));
    }
    let (placed, waiting) = channel::<()>();
    let fill = {
        let tree = Arc::clone(tree);
        move || tree.prepare(Box::new(|| drop(placed)))
    };
    if std::thread::Builder::new().spawn(fill).is_err() {
        return tree.prepare(Box::new(|| ()));
    }
    // Nothing is sent: the other end goes.
    let _ = waiting.recv();
}

/// Keeps the system from handing out memory in pages of 2 MiB, of which much lies idle where every thread has its own: a
/// replay's memory is less by a fifth to a half, its time the same. The tables under a Verkle tree are better off with them, and keep them if made before.
#[cfg(target_os = "linux")]
fn use_small_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!("large pages stay: {error}");
    }
}

#[cfg(not(target_os = "linux"))]
fn use_small_pages() {}

/// What every block goes through, whatever commits to the state.
struct ReplayRun<'a> {
    args: &'a Args,
    progress: Progress,
    sums: Sums,
    series: Series,
    delays: RootDelays,
    /// Of a state that moves to another tree.
    moving: Option<MoveWatch>,
    rows: Option<BlockRows>,
    /// The first error of writing the rows, after which no more are written.
    rows_failed: Option<anyhow::Error>,
    measurement: Measurement,
    spans: Spans,
    /// The part of the chain's files before the block that was taken last, if that is known.
    read: Rc<Cell<Option<f64>>>,
}

impl<'a> ReplayRun<'a> {
    fn new(
        args: &'a Args,
        measurement: Measurement,
        first: u64,
        last: Option<u64>,
    ) -> Result<Self> {
        let progress = Progress::new("replay", first, last);
        let begins = measurement.elapsed();
        let to = last.map_or("the chain's end".to_owned(), |last| format!("block {last}"));
        tracing::info!(
            "replaying blocks from {first} to {to}, threads: {}",
            args.thread_count()
        );
        let rows = args.blocks.as_deref().map(BlockRows::create).transpose()?;
        Ok(Self {
            args,
            progress,
            sums: Sums::default(),
            series: Series::default(),
            delays: RootDelays::default(),
            moving: None,
            rows,
            rows_failed: None,
            measurement,
            spans: Spans {
                start: begins,
                ..Spans::default()
            },
            read: Rc::default(),
        })
    }

    /// Takes the time of all blocks, after the last one.
    fn blocks_ended(&mut self) {
        self.spans.blocks = self.measurement.elapsed() - self.spans.start;
        tracing::info!(
            "replayed {} blocks, the last one {}",
            self.sums.blocks,
            self.sums.last_block
        );
    }

    /// Takes the time of the last flush.
    fn flushed(&mut self, took: Duration) {
        self.sums.add_store_time(took);
        self.spans.last_flush = took;
    }

    /// Looks how far a move is.
    fn look(&mut self, state: &State) -> Result<()> {
        match &mut self.moving {
            Some(moving) => moving.look(state.reader()),
            None => Ok(()),
        }
    }

    /// Counts a block that is done.
    fn passed(&mut self, block: &BlockStats) {
        self.sums.add(block);
        self.series.add(block);
        self.delays.add(block.root_delay, block.root_group);
        if let Some(moving) = &mut self.moving {
            moving.passed(block);
        }
        if let Some(rows) = &mut self.rows
            && let Err(error) = rows.add(block)
        {
            self.rows_failed = Some(anyhow::Error::new(error).context(rows.describe()));
            self.rows = None;
        }
        if let Some(part) = self.read.get() {
            self.progress.read(part);
        }
        self.progress.block(block.number, block.gas);
    }
}

/// The blocks to take: until the chain ends, `--to` is reached, or somebody asks to stop. `read` is set to the part of
/// the chain's files before each of them.
fn wanted(
    args: &Args,
    blocks: Prefetch,
    length: Option<ChainLength>,
    read: Rc<Cell<Option<f64>>>,
) -> impl Iterator<Item = Result<RecoveredBlock, ReplayError>> {
    let to = args.to.unwrap_or(u64::MAX);
    let within = move |block: &Result<RecoveredBlock, _>| {
        let beyond = block
            .as_ref()
            .is_ok_and(|block| block.block.header.number > to);
        !beyond && !stop::asked()
    };
    let taken = move |block: &Result<RecoveredBlock, _>| {
        if let (Ok(block), Some(length)) = (block, &length) {
            read.set(length.part_before(&block.position));
        }
    };
    blocks
        .map(|block| Ok(block?))
        .take_while(within)
        .inspect(taken)
}

/// Decoding and sender recovery ahead of execution; with one thread, on this one. The gas limit of the block before bounds what is decoded of the first.
fn ahead(
    args: &Args,
    mut input: ChainInput,
    genesis: &Genesis,
    parent_gas_limit: u64,
) -> Result<Prefetch> {
    input.after_gas_limit(parent_gas_limit);
    let pool = match args.threads {
        1 => None,
        threads => {
            let named = |index| format!("senders-{index}");
            Some(Arc::new(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .thread_name(named)
                    .build()?,
            ))
        }
    };
    let options = PrefetchOptions {
        pool,
        ..PrefetchOptions::default()
    };
    Ok(Prefetch::new(
        input,
        SignatureRules::new(&genesis.spec),
        options,
    ))
}

/// Blocks for a database that is yet to be made, whose senders are recovered while it is: neither the genesis nor a new store's files keep a processor busy. `None` where there
/// is a database, which tells what block it goes on with, or where the chain begins later; and where something is wrong with its first blocks, which whoever reads them once there is a
/// database will tell.
fn ahead_of_database(args: &Args, input: &ChainInput, genesis: &Genesis) -> Option<Prefetch> {
    let exists = args
        .db
        .as_deref()
        .and_then(|dir| database::folder(dir).tree())
        .is_some();
    if exists || input.first().number > 1 {
        return None;
    }
    let mut input = open_sources(&args.chain).ok()?;
    input.skip_to(1).ok()?;
    ahead(args, input, genesis, genesis.header.gas_limit).ok()
}

fn last_block(args: &Args, input: &ChainInput) -> Option<u64> {
    let last = input.last().map(|link| link.number);
    match (args.to, last) {
        (Some(to), Some(last)) => Some(to.min(last)),
        (to, last) => to.or(last),
    }
}

/// Returns threads of their own for large roots, if there are many threads and the tree gains by it. Two threads have enough to do with senders, execution and the thread of
/// roots.
fn roots_pool(args: &Args, tree: &Tree) -> Result<Option<rayon::ThreadPool>> {
    let threads = args.thread_count() / 2;
    if threads < 2 || tree.kind().threads == RootThreads::Shared {
        return Ok(None);
    }
    let named = |index| format!("roots-{index}");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    Ok(Some(pool.thread_name(named).build()?))
}

fn floor(
    args: &Args,
    rules: ChainRules,
    measurement: Measurement,
    mut input: ChainInput,
    genesis: &Genesis,
) -> Result<()> {
    if genesis.alloc.population().is_some() {
        bail!(
            "--tree none keeps the state as it is listed in memory, but this genesis counts a population instead"
        );
    }
    let last = last_block(args, &input);
    input.skip_to(1)?;
    let mut floor = Floor::new(genesis).with_executor(rules.executor().with_max_gas(args.max_gas));
    let length = input.length().cloned();
    let mut run = ReplayRun::new(args, measurement, 1, last)?;
    let blocks = ahead(args, input, genesis, genesis.header.gas_limit)?;
    let mut blocks = wanted(args, blocks, length, Rc::clone(&run.read));
    let outcome = floor.blocks(&mut blocks, &mut |block| run.passed(block));
    drop(blocks);
    run.blocks_ended();
    dump_failure(args, &outcome, None);
    finish(run, None, outcome, Duration::ZERO)
}

/// A replay into a state. The effects have an order, whose numbers and reasons are in docs/design/replay.md.
fn full(
    args: &Args,
    (tree, settings, rules): (Tree, &TreeSettings, ChainRules),
    mut measurement: Measurement,
    source: BlockSource,
    (mut genesis, text): (Genesis, String),
) -> Result<()> {
    // 1. What is refused before anything is made.
    replay_flags::check_place(args)?;
    replay_flags::check_verification(args, &tree)?;
    let budget = budget(args, &tree)?;
    report::retain(&mut measurement, budget.retain);
    // 2 to 5. The database.
    let early = match &source {
        BlockSource::Files(input) => ahead_of_database(args, input, &genesis),
        BlockSource::Node(_) => None,
    };
    let state = open(args, tree, network(&genesis), budget)?;
    let mut state = replay_move::begin(args, state)?;
    remember(args, state.tree().kind(), (&text, settings, rules))?;
    // The database has it, and soon its accounts; together they may be larger than its caches.
    drop(text);
    if state.head().is_none() && genesis.is_loaded() {
        load(&mut state, &genesis, args.json)?;
    }
    let mut replay = Replay::new(state, &genesis, budget.names())?;
    if !args.chain.is_empty() {
        replay.look_further_back(&args.chain)?;
    }
    genesis.alloc = Alloc::default();
    // 6. The chain, from the head on.
    let mut replay = replay.with_executor(rules.executor().with_max_gas(args.max_gas));
    if args.thread_count() == 1 {
        replay = replay.without_execution_ahead();
    }
    let server = match args.serve {
        Some(address) => Some(serve(&mut replay, address, (&genesis, rules))?),
        None => None,
    };
    let (head, _) = replay.head();
    let input = match source {
        BlockSource::Files(input) => *input,
        BlockSource::Node(node) => {
            let run = ReplayRun::new(args, measurement, head + 1, args.to)?;
            let rules = SignatureRules::new(&genesis.spec);
            let to = args.to.unwrap_or(u64::MAX);
            let follow = |replay: &mut Replay, options: Options<'_>, each: Each<'_>| {
                Follower {
                    node: &node,
                    rules,
                    to,
                }
                .run(replay, options, each)
                .map(|()| false)
            };
            return execute(run, replay, follow, (budget.retain, args.to), server);
        }
    };
    let last = last_block(args, &input);
    let length = input.length().cloned();
    let input = go_on_at(&replay, args, input)?;
    let blocks = match early.filter(|_| head == 0) {
        Some(early) => early,
        None => {
            let parent = replay.gas_limit().unwrap_or(genesis.header.gas_limit);
            ahead(args, input, &genesis, parent)?
        }
    };
    // 7 to 10.
    let run = ReplayRun::new(args, measurement, head + 1, last)?;
    let mut blocks = wanted(args, blocks, length, Rc::clone(&run.read)).peekable();
    let all = |replay: &mut Replay, options: Options<'_>, each: Each<'_>| {
        let some = match replay.state().tree().moves() {
            Some(_) => replay_move::LOOK_EVERY,
            None => usize::MAX,
        };
        replay.blocks(&mut blocks.by_ref().take(some), options, each)?;
        Ok(blocks.peek().is_some())
    };
    execute(run, replay, all, (budget.retain, last), server)
}

fn budget(args: &Args, tree: &Tree) -> Result<Budget> {
    Ok(Budget {
        memory: args.memory,
        write_back: Some(args.write_back(Some(tree))),
        retain: replay_flags::retention(args)?,
        history_proofs: args.history_proofs,
        durable: args.durable,
        throttle: args.throttle,
        in_turn: args.thread_count() == 1,
    })
}

fn open(args: &Args, tree: Tree, network: Network, budget: Budget) -> Result<State> {
    let state = match args.db.as_deref() {
        Some(dir) => database::folder(dir).open_or_create((args.store, tree), network, budget)?,
        None => in_memory(tree, network, budget)?,
    };
    Ok(state)
}

/// Has the folder of the open database remember what later replays go on by. History is remembered if it was asked for.
fn remember(
    args: &Args,
    tree: &TreeKind,
    (genesis, settings, rules): (&str, &TreeSettings, ChainRules),
) -> Result<()> {
    let Some(dir) = args.db.as_deref() else {
        return Ok(());
    };
    let what = Remembered {
        genesis: Some(genesis),
        retain: args.retain,
        rules: Some(rules),
        tree_settings: Some(settings),
    };
    database::remember(dir, tree, what)
}

/// Checks that the chain goes on from the database's head, and returns the chain from the block after it.
fn go_on_at(replay: &Replay, args: &Args, mut input: ChainInput) -> Result<ChainInput> {
    let (head, _) = replay.head();
    let first = input.first().number;
    if first > head + 1 {
        return Err(ReplayError::Missing { first, head }.into());
    }
    // The block at the head, or the chain's last one below it, tells whether both are of one chain.
    let passed = input.skip_to(head.max(first))?;
    let next = input.next_raw()?;
    if let (None, Some(last)) = (&next, passed)
        && !replay.check_known(last.number, last.hash)?
    {
        tracing::warn!(
            "the chain ends at block {}, of which the database remembers nothing any more: whether both are of one chain is not known",
            last.number
        );
    }
    if let Some(block) = next {
        replay.check_known(block.header.number, block.hash)?;
        if block.header.number > head {
            input = open_sources(&args.chain)?;
            input.skip_to(head + 1)?;
        }
    }
    Ok(input)
}

/// Takes the figures of each block that was committed.
type Each<'a> = &'a mut dyn FnMut(&BlockStats);

/// Replays the blocks, makes what holds durable, and reports. `retain` and `last` say which roots to compute. `server` serves until the last block.
fn execute(
    mut run: ReplayRun<'_>,
    mut replay: Replay,
    mut blocks: impl FnMut(&mut Replay, Options<'_>, Each<'_>) -> Result<bool, ReplayError>,
    (retain, last): (Retain, Option<u64>),
    server: Option<Server>,
) -> Result<()> {
    let args = run.args;
    let roots = roots_pool(args, replay.state().tree())?;
    let options = Options {
        verify: replay_move::each_from(
            replay_flags::verification(args, retain, last),
            replay.state(),
        ),
        roots: match &roots {
            Some(pool) => Roots::Spread(pool),
            None if args.thread_count() > 1 => Roots::Beside,
            None => Roots::Here,
        },
        check_every: args.check_state,
    };
    run.moving = MoveWatch::new(replay.state().reader())?;
    // 7. The blocks.
    let mut outcome = loop {
        match blocks(&mut replay, options, &mut |block| run.passed(block)) {
            Ok(true) => {
                run.look(replay.state())?;
                replay = replay_move::look(args, replay)?;
            }
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // Frees the blocks that were decoded ahead.
    drop(blocks);
    run.blocks_ended();
    if let Some(server) = server {
        server.stop(super::serve::FAREWELL);
    }
    // 8. The flush, also after a block that does not hold.
    let flushing = Instant::now();
    let mut state = replay.into_state();
    let flushed = state.flush().map_err(|error| ReplayError::State {
        number: run.sums.last_block,
        error,
    });
    outcome = outcome.and(flushed);
    run.look(&state)?;
    if outcome.is_ok() {
        state = replay_move::arrive(args, state)?;
    }
    run.flushed(flushing.elapsed());
    dump_failure(args, &outcome, Some(&state));
    tell_lost(&options, retain, &run);
    // 9. The merge, if everything holds.
    let (mut compacted, mut compacting) = (Ok(()), Duration::ZERO);
    if args.compact && outcome.is_ok() {
        let start = Instant::now();
        compacted = state.compact();
        compacting = start.elapsed();
    }
    // 10. The report.
    finish(run, Some(state), outcome, compacting)?;
    Ok(compacted?)
}

/// Serves the versions that a replay commits from now on.
fn serve(
    replay: &mut Replay,
    address: SocketAddr,
    (genesis, rules): (&Genesis, ChainRules),
) -> Result<Server> {
    let live = Arc::new(Live::default());
    replay.publish_to(Arc::clone(&live) as Arc<dyn Publish>)?;
    let chain = ChainContext::new(genesis.clone(), rules);
    let clients = (Limits::default(), Access::default());
    let server = super::serve::start(Box::new(live), (chain, None), address, clients)?;
    output::tell(&format!("serving at http://{}", server.address()));
    Ok(server)
}

/// Says what cannot be read because a replay ended before the block that it was to end at.
fn tell_lost(options: &Options<'_>, retain: Retain, run: &ReplayRun<'_>) {
    let Verify::Last { blocks, each_from } = options.verify else {
        return;
    };
    let last = run.sums.last_block;
    if retain != Retain::None && last > 0 && last < each_from {
        tracing::warn!(
            "it ended at block {last}, before the blocks whose versions are kept. Up to there --verify last has computed one root for up to {blocks} blocks: the states before block {last} cannot be read"
        );
    }
}

/// Loads the state of a genesis with a population or with many accounts, with progress.
fn load(state: &mut State, genesis: &Genesis, json: bool) -> Result<()> {
    let start = Instant::now();
    let progress = PartDone::new("load");
    genesis.commit(state, &|done, of| {
        progress.set(done as f64 / of as f64, &format!("part {done} of {of}"));
    })?;
    progress.finish();
    let seconds = start.elapsed().as_secs_f64();
    let Some(population) = genesis.alloc.population() else {
        let accounts = genesis.alloc.len();
        return output::remark(
            json,
            &format!(
                "loaded {} in {seconds:.1} s",
                output::counted(accounts as u64, "account")
            ),
        );
    };
    let Population { accounts, contract } = population;
    let more = population.slots(0) - Population::SLOTS;
    let leaves = f64::from(accounts) * (1 + Population::SLOTS) as f64 + more as f64;
    let large = match contract {
        0 => String::new(),
        _ => format!(", one of them with {}", population.slots(0)),
    };
    let loaded = format!(
        "loaded a population of {accounts} accounts with {} slots each{large} in {seconds:.1} s: {:.0} leaves/s",
        Population::SLOTS,
        leaves / seconds
    );
    output::remark(json, &loaded)
}

/// Writes what is known of a block that does not hold, if that is asked for.
fn dump_failure(args: &Args, outcome: &Result<(), ReplayError>, state: Option<&State>) {
    let (Some(file), Err(error)) = (&args.failure_dump, outcome) else {
        return;
    };
    let Some(dump) = error.failure_dump(state) else {
        return;
    };
    let text = serde_json::to_vec_pretty(&dump).map_err(std::io::Error::from);
    // Why the replay failed is told after it.
    if let Err(error) = text.and_then(|text| files::write(file, &text)) {
        tracing::warn!(
            "the failure dump {} is not written: {error}",
            file.display()
        );
    }
}

/// Prints the summary, writes the report, and returns how the replay ended.
fn finish(
    run: ReplayRun<'_>,
    state: Option<State>,
    outcome: Result<(), ReplayError>,
    compacting: Duration,
) -> Result<()> {
    let ReplayRun {
        args,
        progress,
        sums,
        series,
        delays,
        moving,
        rows,
        rows_failed,
        measurement,
        spans,
        ..
    } = run;
    progress.finish();
    let rows = match (rows, rows_failed) {
        (_, Some(failed)) => Err(failed),
        (rows, None) => rows.map_or(Ok(()), BlockRows::finish),
    };
    // What a flush that failed did not write is not the database's head.
    let head = match &state {
        Some(state) => match state.versions().flushed() {
            Some(version) => state.versions().view().meta(version).unwrap_or_default(),
            None => None,
        },
        None => None,
    };
    let head = head.map(|head| Head {
        block: head.block_number,
        hash: head.block_hash.into(),
        root: head.root.into(),
    });
    let kept = match &state {
        Some(_) => head.map(|head| head.block),
        None => Some(sums.last_block),
    };
    let database = state.as_ref().map_or(Value::Null, |state| {
        report::database_figures(&state.versions().stats())
    });
    let roots = match (&args.roots, &state) {
        (Some(file), Some(state)) => write_roots(file, state),
        _ => Ok(()),
    };
    let state_is_kept = state.is_some();
    // Closed before the process's figures are read, so that what closing writes is counted.
    drop(state);
    // A size that cannot be read does not hide how the replay ended.
    let disk_bytes = args
        .db
        .as_deref()
        .and_then(|dir| database::folder(dir).disk_bytes().ok());
    if let Some(bytes) = disk_bytes {
        tracing::info!("closed the database: {} on the disk", bytes::show(bytes));
    }
    let report = Outcome {
        total: sums,
        spans,
        series,
        root_delay: delays.summary(),
        moved: moving.as_ref().map(MoveWatch::summary),
        head,
        beside: args.thread_count() > 1 && state_is_kept,
        compacting,
        failed: outcome.is_err(),
        stopped: stop::asked(),
        to: args.to,
        kept,
        database,
        disk_bytes,
    };
    // A report that cannot be written does not hide why the replay failed.
    let reported = report.finish(measurement, args.report.as_deref(), args.json);
    outcome.map_err(anyhow::Error::from).and(roots).and(rows)?;
    reported?;
    if stop::asked() {
        output::remark(
            args.json,
            "stopped as asked; run the same command again to go on",
        )?;
    }
    Ok(())
}

/// Writes the roots of all blocks as `arbor roots` prints them.
fn write_roots(file: &Path, state: &State) -> Result<()> {
    let write = &mut |out: &mut dyn std::io::Write| {
        for row in state
            .reader()
            .block_roots(0)
            .map_err(std::io::Error::other)?
        {
            let (number, root) = row.map_err(std::io::Error::other)?;
            writeln!(out, "{number} {root}")?;
        }
        Ok(())
    };
    files::write_by(file, write).with_context(|| format!("--roots {}", file.display()))
}
