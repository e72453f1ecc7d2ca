//! Replay of a generated chain: the same end on every way, and nothing left of a block that does not hold.

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use alloy_consensus::Transaction;
use alloy_primitives::{Address, B256, keccak256};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::{HeaderCheck, Options, Replay, ReplayError, Roots, Verify};
use arbor_chain::source::open_sources;
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_state::{Network, State, Tree};
use arbor_store::disk::{Disk, Limits};
use arbor_store::faulty::{Failure, FaultyStore};
use arbor_store::{MemoryStore, Reader, Scan, Store, StoreError, Table, Value, Write};
use arbor_trees::MPT;
use arbor_trees::verkle::{Committer, Verkle, VerkleSettings};
use arbor_versions::{Retain, Version};
use rayon::{ThreadPool, ThreadPoolBuilder};

const BLOCKS: u64 = 40;

struct Chain {
    genesis: Genesis,
    blocks: Vec<RecoveredBlock>,
}

static CHAIN: LazyLock<Chain> = LazyLock::new(|| chain(BLOCKS));

/// A chain of so many blocks; a longer one begins like a shorter one.
fn chain(blocks: u64) -> Chain {
    let folder = tempfile::tempdir().expect("temporary directory");
    let settings = GeneratorSettings {
        blocks,
        ..Preset::Tiny.settings()
    };
    generate(&settings, folder.path(), |_| ControlFlow::Continue(())).expect("generated");
    let chain = read(folder.path());
    assert_eq!(chain.blocks.len() as u64, blocks);
    chain
}

fn read(folder: &Path) -> Chain {
    let genesis = Genesis::from_file(&folder.join("genesis.json"));
    let genesis = genesis.expect("sound genesis");
    let mut source = open_sources(&[folder.to_owned()]).expect("sound chain");
    source.skip_to(1).expect("blocks");
    let rules = SignatureRules::new(&genesis.spec);
    let mut blocks = Vec::new();
    while let Some(raw) = source.next_raw().expect("sound chain") {
        blocks.push(prepare(raw, rules).expect("valid signatures"));
    }
    Chain { genesis, blocks }
}

fn open(store: Arc<dyn Store>, retain: Retain) -> Replay {
    let options = arbor_versions::Options {
        dirty_bytes: 100_000,
        retain,
        ..Default::default()
    };
    open_with(store, options)
}

fn open_with(store: Arc<dyn Store>, options: arbor_versions::Options) -> Replay {
    open_tree(store, MPT.tree(), options)
}

fn open_tree(store: Arc<dyn Store>, tree: Tree, options: arbor_versions::Options) -> Replay {
    let genesis = &CHAIN.genesis;
    let network = Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    };
    let state = State::open(store, None, tree, network, options).expect("opens");
    // Room for few names, so that what is not committed yet must be kept although there is none.
    Replay::new(state, genesis, 10_000).expect("genesis holds")
}

fn replay(
    replay: &mut Replay,
    blocks: &[RecoveredBlock],
    options: Options<'_>,
) -> (Vec<u64>, Result<(), ReplayError>) {
    let mut told = Vec::new();
    let mut blocks = blocks.iter().cloned().map(Ok);
    let outcome = replay.blocks(&mut blocks, options, &mut |block| told.push(block.number));
    (told, outcome)
}

static POOL: LazyLock<ThreadPool> = LazyLock::new(|| {
    let pool = ThreadPoolBuilder::new().num_threads(3);
    pool.build().expect("threads")
});

fn ways() -> impl Iterator<Item = Options<'static>> {
    let last = |blocks, each_from| Verify::Last { blocks, each_from };
    let verify = [
        Verify::Every,
        last(7, 30),
        last(16, u64::MAX),
        last(64, 20),
        last(8, 0),
    ];
    [Roots::Here, Roots::Beside, Roots::Spread(&POOL)]
        .into_iter()
        .flat_map(move |roots| {
            verify.map(|verify| Options {
                verify,
                roots,
                check_every: None,
            })
        })
}

/// What verification finds, of the headers too.
fn faults(state: &mut State) -> Vec<String> {
    let mut headers = HeaderCheck::new(state.tree());
    let snapshot = state.snapshot().expect("frozen");
    let report = snapshot.verify(&|_| {}, &mut |meta| headers.check(meta));
    report.expect("reads").faults
}

fn head_of(blocks: &[RecoveredBlock]) -> (u64, B256) {
    let last = blocks.last().expect("blocks");
    (last.block.header.number, last.hash)
}

/// Every way ends at the chain's last block with its root; every block is told of once, in order; and the database
/// goes on from there after it was closed, with the hashes that BLOCKHASH needs.
#[test]
fn every_way_leads_to_the_same_head() {
    let (first, rest) = CHAIN.blocks.split_at(25);
    for options in ways() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let mut road = open(Arc::clone(&store), Retain::Last(8));
        let (told, outcome) = replay(&mut road, first, options);
        outcome.unwrap_or_else(|error| panic!("{options:?}: {error}"));
        assert_eq!(told, (1..=25).collect::<Vec<_>>(), "{options:?}");
        assert_eq!(road.head(), head_of(first), "{options:?}");
        let mut state = road.into_state();
        state.flush().expect("flushes");
        drop(state);

        let mut road = open(store, Retain::Last(8));
        assert_eq!(road.head(), head_of(first), "{options:?}");
        let (told, outcome) = replay(&mut road, rest, options);
        outcome.unwrap_or_else(|error| panic!("{options:?}: {error}"));
        assert_eq!(told, (26..=BLOCKS).collect::<Vec<_>>(), "{options:?}");
        let mut state = road.into_state();
        assert_eq!(state.root(), rest[rest.len() - 1].block.header.state_root);
        assert_eq!(faults(&mut state), [""; 0], "{options:?}");
        state.flush().expect("flushes");
        assert_eq!(faults(&mut state), [""; 0], "{options:?}");
        for block in &CHAIN.blocks {
            let number = block.block.header.number;
            let version = state
                .versions()
                .view()
                .version_of_block(number)
                .expect("reads");
            let meta = state.versions().view().meta(version.expect("remembered"));
            let meta = meta.expect("reads").expect("remembered");
            assert_eq!(B256::from(meta.block_hash), block.hash);
            assert_eq!(B256::from(meta.root), block.block.header.state_root);
        }
    }
}

/// A Verkle tree with small tables.
fn verkle(together: bool) -> Tree {
    static COMMITTER: LazyLock<Arc<Committer>> =
        LazyLock::new(|| Arc::new(Committer::within(6_000_000)));
    let settings = VerkleSettings {
        together,
        ..VerkleSettings::default()
    };
    Arc::new(Verkle::with(COMMITTER.clone(), settings))
}

/// Blocks whose roots are computed together have the roots that they have one by one, and each is a version; on every way, whether the state is checked in between or not.
#[test]
fn roots_computed_together_are_those_of_each_block() {
    // More blocks than are computed together.
    let chain = chain(70);
    assert_eq!(chain.genesis.hash, CHAIN.genesis.hash);
    let kept = || arbor_versions::Options {
        dirty_bytes: 50_000,
        retain: Retain::All,
        ..Default::default()
    };
    let roots = |tree: Tree, options: Options<'_>| {
        let mut road = open_tree(Arc::new(MemoryStore::default()), tree, kept());
        let mut roots = Vec::new();
        let mut blocks = chain.blocks.iter().cloned().map(Ok);
        let outcome = road.blocks(&mut blocks, options, &mut |block| {
            assert_eq!(block.number, roots.len() as u64 + 1);
            roots.push(block.root.expect("each has its own"));
        });
        outcome.unwrap_or_else(|error| panic!("{options:?}: {error}"));
        let mut state = road.into_state();
        assert_eq!(faults(&mut state), [""; 0], "{options:?}");
        for (version, root) in (1..).map(Version).zip(&roots) {
            let meta = state.at(version).expect("retained").meta().root;
            assert_eq!(B256::from(meta), *root);
        }
        // Back into the midst of a run, and on from there.
        state.rollback(Version(21)).expect("retained");
        assert_eq!(state.root(), roots[20]);
        assert_eq!(faults(&mut state), [""; 0], "{options:?}");
        let mut road = Replay::new(state, &CHAIN.genesis, 10_000).expect("goes on");
        let (_, outcome) = replay(&mut road, &chain.blocks[21..], options);
        outcome.expect("goes on");
        assert_eq!(road.state().root(), roots[roots.len() - 1]);
        roots
    };
    let every = || ways().filter(|way| matches!(way.verify, Verify::Every));
    let alone = roots(verkle(false), every().next().expect("a way"));
    assert_eq!(alone.len(), chain.blocks.len());
    for way in every() {
        assert_eq!(roots(verkle(true), way), alone, "{way:?}");
        let check_every = NonZeroU64::new(9);
        let checked = Options { check_every, ..way };
        assert_eq!(roots(verkle(true), checked), alone, "{way:?}");
    }
}

/// Versions whose roots were computed together cannot be read, the last of them and all after it can.
#[test]
fn what_has_a_root_of_its_own_is_a_version() {
    let verify = Verify::Last {
        blocks: 16,
        each_from: 33,
    };
    let mut road = open(Arc::new(MemoryStore::default()), Retain::Last(8));
    let (_, outcome) = replay(
        &mut road,
        &CHAIN.blocks,
        Options {
            verify,
            roots: Roots::Beside,
            check_every: None,
        },
    );
    outcome.expect("holds");
    let state = road.state();
    assert_eq!(state.versions().view().oldest(), Some(Version(32)));
    for block in &CHAIN.blocks[31..] {
        let version = Version(block.block.header.number);
        let then = state.at(version).expect("retained");
        assert_eq!(B256::from(then.meta().root), block.block.header.state_root);
    }
    assert!(state.at(Version(31)).is_err());
}

/// The chain as it looks when execution went wrong in a block: no root after it holds either.
fn with_false_roots_from(at: usize) -> Vec<RecoveredBlock> {
    let mut blocks = CHAIN.blocks.clone();
    for block in &mut blocks[at..] {
        block.block.header.state_root = B256::repeat_byte(9);
    }
    blocks
}

/// The block is named, whatever was gathered with it and executed after it, and the database ends just before it. A chain
/// that holds is then replayed on.
#[test]
fn a_false_root_is_found_and_leaves_no_trace() {
    let at = 21;
    let blocks = with_false_roots_from(at);
    for options in ways() {
        let mut road = open(Arc::new(MemoryStore::default()), Retain::Last(8));
        let (told, outcome) = replay(&mut road, &blocks, options);
        let Err(ReplayError::StateRoot(failure)) = outcome else {
            panic!("{options:?}: {outcome:?}");
        };
        let wanted = &CHAIN.blocks[at].block.header;
        assert_eq!(
            (failure.number, failure.actual),
            (wanted.number, wanted.state_root)
        );
        let transactions = CHAIN.blocks[at].block.body.transactions.len();
        assert_eq!(failure.receipts.len(), transactions);
        assert_eq!(told, (1..wanted.number).collect::<Vec<_>>(), "{options:?}");
        assert_eq!(road.head(), head_of(&CHAIN.blocks[..at]), "{options:?}");
        let (told, outcome) = replay(&mut road, &CHAIN.blocks[at..], options);
        outcome.unwrap_or_else(|error| panic!("{options:?}: {error}"));
        assert_eq!(
            told,
            (wanted.number..=BLOCKS).collect::<Vec<_>>(),
            "{options:?}"
        );
        assert_eq!(faults(&mut road.into_state()), [""; 0], "{options:?}");
    }
}

/// Blocks up to and with one after which the state is checked: their roots are computed together.
const RUN: u64 = 7;

fn in_runs() -> impl Iterator<Item = Options<'static>> {
    let every = ways().filter(|way| matches!(way.verify, Verify::Every));
    every.map(|way| Options {
        check_every: NonZeroU64::new(RUN),
        ..way
    })
}

/// Where headers do not have the tree's roots, the state is compared with them when that is asked for. A block that this shows to be
/// false stayed in the database, with all that was computed together with it.
#[test]
fn a_block_whose_checked_state_is_false_leaves_no_trace() {
    let at = 20;
    let wanted = &CHAIN.blocks[at].block.header;
    assert!(wanted.number.is_multiple_of(RUN));
    let mut blocks = CHAIN.blocks.clone();
    blocks[at].block.header.state_root = B256::repeat_byte(9);
    for (way, together) in ways().flat_map(|way| [(way, true), (way, false)]) {
        let options = Options {
            check_every: NonZeroU64::new(RUN),
            ..way
        };
        let kept = arbor_versions::Options {
            retain: Retain::None,
            ..Default::default()
        };
        let mut road = open_tree(Arc::new(MemoryStore::default()), verkle(together), kept);
        let (told, outcome) = replay(&mut road, &blocks, options);
        let Err(ReplayError::StateRoot(failure)) = outcome else {
            panic!("{options:?}: {outcome:?}");
        };
        assert_eq!(failure.number, wanted.number, "{options:?}");
        assert_eq!(failure.expected, B256::repeat_byte(9));
        assert_eq!(failure.actual, wanted.state_root);
        assert_eq!(told, (1..wanted.number).collect::<Vec<_>>(), "{options:?}");
        assert_eq!(road.head(), head_of(&CHAIN.blocks[..at]), "{options:?}");
        let root = road.state().reader().flat_root().expect("reads");
        assert_eq!(root, CHAIN.blocks[at - 1].block.header.state_root);
        let (told, outcome) = replay(&mut road, &CHAIN.blocks[at..], options);
        outcome.unwrap_or_else(|error| panic!("{options:?}: {error}"));
        let rest: Vec<u64> = (wanted.number..=BLOCKS).collect();
        assert_eq!(told, rest, "{options:?}");
        assert_eq!(faults(&mut road.into_state()), [""; 0], "{options:?}");
    }
}

/// The state is right after every block that is checked, and each such block is told to have been. An account that only the flat tables have, which no root of
/// the tree's nodes shows, is found by the first check, and nothing from there on is committed.
#[test]
fn an_account_that_only_the_flat_tables_have_is_found_by_the_check() {
    const EVERY: u64 = 9;
    const HASHED: Table = Table(0x80);
    const BY_ADDRESS: Table = Table(1);
    let in_headers = ways().map(|way| (MPT.tree(), HASHED, way));
    let others = ways().filter(|way| matches!(way.verify, Verify::Every));
    let others =
        others.flat_map(|way| [true, false].map(|together| (verkle(together), BY_ADDRESS, way)));
    for (tree, table, way) in in_headers.chain(others) {
        let options = Options {
            check_every: NonZeroU64::new(EVERY),
            ..way
        };
        let open = |store: &Arc<MemoryStore>| {
            let kept = arbor_versions::Options::default();
            open_tree(store.clone(), tree.clone(), kept)
        };
        let mut road = open(&Arc::default());
        let mut checked = Vec::new();
        let mut blocks = CHAIN.blocks.iter().cloned().map(Ok);
        let outcome = road.blocks(&mut blocks, options, &mut |block| {
            if !block.times.check.is_zero() {
                checked.push(block.number);
            }
        });
        outcome.unwrap_or_else(|error| panic!("{options:?}: {error}"));
        assert_eq!(checked, [9, 18, 27, 36], "{options:?}");
        assert_eq!(road.head(), head_of(&CHAIN.blocks), "{options:?}");

        let store = Arc::new(MemoryStore::default());
        let mut state = open(&store).into_state();
        state.flush().expect("flushes");
        drop(state);
        let key = |address: Address| match table {
            HASHED => keccak256(address).to_vec().into_boxed_slice(),
            _ => address.to_vec().into_boxed_slice(),
        };
        let somebody = CHAIN
            .genesis
            .alloc
            .iter()
            .find(|account| account.code.is_empty());
        let somebody = key(somebody.expect("a sender").address);
        let value = store.get(table, &somebody).expect("reads");
        assert!(value.is_some());
        let key = key(Address::repeat_byte(0xee));
        store
            .write(&[Write { table, key, value }], true)
            .expect("written");
        let mut road = open(&store);
        let (told, outcome) = replay(&mut road, &CHAIN.blocks, options);
        let number = match (outcome, table) {
            // Under Merkle-Patricia a record has its address, which is not this key's.
            (Err(ReplayError::State { number, .. }), HASHED) => number,
            (Err(ReplayError::StateRoot(failure)), BY_ADDRESS) => failure.number,
            (outcome, _) => panic!("{options:?}: {outcome:?}"),
        };
        assert_eq!(number, EVERY, "{options:?}");
        assert_eq!(told, (1..EVERY).collect::<Vec<_>>(), "{options:?}");
        assert_eq!(road.head().0, EVERY - 1, "{options:?}");
    }
}

/// An error with all that caused it.
fn causes(mut error: &dyn Error) -> String {
    let mut causes = error.to_string();
    while let Some(cause) = error.source() {
        causes = format!("{causes}: {cause}");
        error = cause;
    }
    causes
}

/// A run is committed as a whole or not at all: the store's failure is that of its first block, and the runs before stay.
#[test]
fn a_store_that_cannot_write_keeps_the_runs_before() {
    let flushes = [
        (false, "store failed while flushing"),
        (true, "flush of version"),
    ];
    let failures = [Failure::Refused, Failure::Landed, Failure::Unsynced];
    let cases = (0..3).flat_map(|runs| failures.map(|failure| (runs, failure)));
    for ((runs, failure), way) in cases.flat_map(|case| in_runs().map(move |way| (case, way))) {
        for ((background, said), crashed) in
            flushes.into_iter().flat_map(|f| [(f, false), (f, true)])
        {
            let context = format!("{runs} {failure:?} {background} {crashed} {way:?}");
            let store = FaultyStore::new(Arc::new(MemoryStore::default()));
            let options = arbor_versions::Options {
                dirty_bytes: 1,
                background,
                ..Default::default()
            };
            let open = || open_tree(store.clone(), verkle(true), options.clone());
            let mut road = open();
            store.fail_after(runs, failure);
            let (told, outcome) = replay(&mut road, &CHAIN.blocks, way);
            let Err(ReplayError::State { number, error }) = outcome else {
                panic!("{context}: {outcome:?}");
            };
            // In the background the run after the failed flush is the one that hears of it.
            assert_eq!(
                number,
                1 + RUN * (runs + u64::from(background)),
                "{context}"
            );
            let causes = causes(&ReplayError::State { number, error });
            assert!(
                causes.starts_with(&format!("block {number}: {said}")),
                "{causes}"
            );
            assert!(causes.ends_with("a fault was asked for"), "{causes}");
            assert_eq!(told, (1..number).collect::<Vec<_>>(), "{context}");
            assert_eq!(road.head().0, number - 1, "{context}");
            if crashed {
                drop(road);
                store.reopen();
                road = open();
                assert!(road.head().0 < number, "{context}");
                assert!(road.head().0.is_multiple_of(RUN), "{context}");
            }
            store.heal();
            let head = road.head().0;
            let (told, outcome) = replay(&mut road, &CHAIN.blocks[head as usize..], way);
            outcome.unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(told, (head + 1..=BLOCKS).collect::<Vec<_>>(), "{context}");
            assert_eq!(faults(&mut road.into_state()), [""; 0], "{context}");
        }
    }
}

/// The nodes of a Verkle tree that a store has.
fn nodes(store: &dyn Reader) -> BTreeMap<Box<[u8]>, Value> {
    let nodes = store.scan(NODES, b"", b"").expect("scans");
    nodes.map(|node| node.expect("reads")).collect()
}

/// A node that only a block in the midst of a run needs cannot be read: the blocks before it are committed, those of its run too.
#[test]
fn a_store_that_cannot_read_stops_at_the_block_that_needs_it() {
    let durable = arbor_versions::Options {
        durable_each: true,
        ..Default::default()
    };
    let store = Arc::new(MemoryStore::default());
    let mut road = open_tree(store.clone(), verkle(false), durable);
    let genesis = nodes(&*store);
    let mut roots = vec![road.state().root()];
    let first_changes = CHAIN.blocks[..13].iter().map(|block| {
        road.block(block.clone()).expect("holds");
        roots.push(road.state().root());
        let now = nodes(&*store);
        let other = genesis
            .iter()
            .filter(|(key, node)| now.get(*key) != Some(*node));
        other.map(|(key, _)| key.clone()).collect::<HashSet<_>>()
    });
    let changed: Vec<HashSet<_>> = first_changes.collect();
    let needs = |at: usize| changed[at].difference(&changed[at - 1]).min();
    let (at, node) = (9..13)
        .find_map(|at| Some((at, needs(at)?)))
        .expect("a node of genesis that a block in the midst changes first");
    let number = CHAIN.blocks[at].block.header.number;
    for way in in_runs() {
        let watched = Arc::new(Watched::default());
        let options = arbor_versions::Options {
            cache_bytes: 0,
            dirty_bytes: 1,
            background: false,
            ..Default::default()
        };
        let mut road = open_tree(watched.clone(), verkle(true), options);
        *watched.unreadable.lock().expect("no panic before") = Some(node.clone());
        let (told, outcome) = replay(&mut road, &CHAIN.blocks, way);
        let Err(error @ ReplayError::State { .. }) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        let causes = causes(&error);
        assert!(causes.starts_with(&format!("block {number}: ")), "{causes}");
        // The message of the tree's error alone does not have the store's own cause.
        assert!(causes.ends_with("unreadable"), "{causes}");
        assert_eq!(told, (1..number).collect::<Vec<_>>(), "{way:?}");
        assert_eq!(road.head(), head_of(&CHAIN.blocks[..at]), "{way:?}");
        assert_eq!(road.state().root(), roots[at], "{way:?}");
        *watched.unreadable.lock().expect("no panic before") = None;
        let (_, outcome) = replay(&mut road, &CHAIN.blocks[at..], way);
        outcome.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        assert_eq!(faults(&mut road.into_state()), [""; 0], "{way:?}");
    }
}

/// A block that breaks another rule does so while earlier roots are still open: they are settled first.
#[test]
fn what_was_executed_before_a_bad_block_is_committed() {
    let at = 18;
    let mut blocks = CHAIN.blocks.clone();
    blocks[at].block.header.gas_used += 1;
    for options in ways() {
        let mut road = open(Arc::new(MemoryStore::default()), Retain::Last(8));
        let (told, outcome) = replay(&mut road, &blocks, options);
        assert!(
            matches!(outcome, Err(ReplayError::Execution(_))),
            "{options:?}: {outcome:?}"
        );
        assert_eq!(told, (1..=at as u64).collect::<Vec<_>>(), "{options:?}");
        assert_eq!(road.head(), head_of(&CHAIN.blocks[..at]), "{options:?}");
        assert_eq!(
            road.state().head().map(|head| head.block_number),
            Some(at as u64)
        );
    }
}

/// Of a false root and a later block that breaks a rule, the former is the one told of.
#[test]
fn the_earlier_of_two_bad_blocks_counts() {
    let mut blocks = with_false_roots_from(20);
    blocks[22].block.header.gas_used += 1;
    for options in ways() {
        let mut road = open(Arc::new(MemoryStore::default()), Retain::Last(8));
        let (_, outcome) = replay(&mut road, &blocks, options);
        match outcome {
            Err(ReplayError::StateRoot(failure)) => assert_eq!(failure.number, 21),
            other => panic!("{options:?}: {other:?}"),
        }
    }
}

/// A store that remembers which keys of Merkle-Patricia's table of slots it was asked for many at once, and of which a node of a Verkle tree can be unreadable.
#[derive(Default)]
struct Watched {
    store: MemoryStore,
    slots: Mutex<HashSet<Box<[u8]>>>,
    unreadable: Mutex<Option<Box<[u8]>>>,
}

const SLOTS: Table = Table(0x81);
const NODES: Table = Table(3);

impl Watched {
    fn check(&self, table: Table, keys: &[&[u8]]) -> Result<(), StoreError> {
        let unreadable = self.unreadable.lock().expect("no panic before");
        match &*unreadable {
            Some(key) if table == NODES && keys.contains(&&**key) => Err(StoreError::Engine {
                operation: "get",
                cause: "unreadable".into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Reader for Watched {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StoreError> {
        self.check(table, &[key])?;
        self.store.get(table, key)
    }

    fn multi_get(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StoreError> {
        self.check(table, keys)?;
        if table == SLOTS {
            let mut slots = self.slots.lock().expect("no panic before");
            slots.extend(keys.iter().map(|key| Box::from(*key)));
        }
        self.store.multi_get(table, keys)
    }

    fn scan<'a>(
        &'a self,
        table: Table,
        prefix: &[u8],
        from: &[u8],
    ) -> Result<Scan<'a>, StoreError> {
        self.store.scan(table, prefix, from)
    }
}

impl Store for Watched {
    fn write(&self, writes: &[Write], durable: bool) -> Result<(), StoreError> {
        self.store.write(writes, durable)
    }

    fn ingest(&self, sorted: &mut dyn Iterator<Item = Write>) -> Result<(), StoreError> {
        self.store.ingest(sorted)
    }

    fn delete_prefix(&self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        self.store.delete_prefix(table, prefix)
    }

    fn snapshot(&self) -> Result<Box<dyn Reader>, StoreError> {
        self.store.snapshot()
    }

    fn compact(&self) -> Result<(), StoreError> {
        self.store.compact()
    }

    fn disk_bytes(&self) -> Result<Option<u64>, StoreError> {
        self.store.disk_bytes()
    }
}

/// Over a slow disk, with nothing kept in memory, blocks are executed ahead: slots that no access list names are then asked for together. Every root holds all the same, and every
/// field of every header, also where blocks come one by one.
#[test]
fn blocks_that_wait_for_their_state_are_executed_ahead() {
    let listed = |block: &RecoveredBlock| {
        let transactions = block.block.body.transactions.iter();
        let lists = transactions.filter_map(|transaction| transaction.access_list().cloned());
        let slots = lists.flat_map(|list| list.0).flat_map(|item| {
            let account = keccak256(item.address);
            let slots = item.storage_keys.into_iter();
            slots.map(move |slot| [account, keccak256(slot)].concat().into())
        });
        slots.collect::<Vec<Box<[u8]>>>()
    };
    let listed: HashSet<Box<[u8]>> = CHAIN.blocks.iter().flat_map(listed).collect();
    let limits = Limits {
        per_second: 1_000_000,
        latency: Duration::from_millis(1),
    };
    let blocks = &CHAIN.blocks[..12];
    for one_by_one in [false, true] {
        let watched = Arc::new(Watched::default());
        let slow = Disk::new(Arc::clone(&watched) as Arc<dyn Store>, Some(limits));
        let options = arbor_versions::Options {
            cache_bytes: 0,
            dirty_bytes: 0,
            ..Default::default()
        };
        let mut road = open_with(slow, options);
        if one_by_one {
            for block in blocks {
                road.block(block.clone()).expect("holds");
            }
        } else {
            let options = Options {
                verify: Verify::Every,
                roots: Roots::Beside,
                check_every: None,
            };
            replay(&mut road, blocks, options).1.expect("holds");
        }
        assert_eq!(road.head(), head_of(blocks));
        let asked = watched.slots.lock().expect("no panic before");
        let foreseen = asked.difference(&listed).count();
        assert!(foreseen > 0, "one by one: {one_by_one}");
    }
}
