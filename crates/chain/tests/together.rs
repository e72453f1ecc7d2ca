//! Blocks whose roots are computed together, under a tree whose roots headers carry.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::B256;
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::{Options, Replay, ReplayError, Roots, Verify};
use arbor_chain::source::open_sources;
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_state::{Network, State};
use arbor_state_tree::{
    AccountSlots, AccountSource, Check, CheckedPart, Computed, FlatRecords, Lookup, Nodes, Seen,
    StateChanges, StateError, StateTree, StoredRecord, Then, Tree, TreeKind,
};
use arbor_store::{MemoryStore, Write};
use arbor_trees::MPT;
use arbor_verify::Proof;
use arbor_versions::{Changes, Meta, Versions, View};

const BLOCKS: u64 = 12;

/// Merkle-Patricia, as if it gained by computing the roots of many blocks together: all that they change comes with
/// the last.
#[derive(Debug)]
struct Together(Tree);

impl StateTree for Together {
    fn kind(&self) -> &'static TreeKind {
        self.0.kind()
    }

    fn hash(&self) -> &'static str {
        self.0.hash()
    }

    fn empty_root(&self) -> B256 {
        self.0.empty_root()
    }

    fn computes_together(&self) -> bool {
        true
    }

    fn records(&self) -> &dyn FlatRecords {
        self.0.records()
    }

    fn sort_bytes(&self) -> usize {
        self.0.sort_bytes()
    }

    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError> {
        if changes.len() < 2 {
            return self.0.compute(view, changes);
        }
        let mut all = StateChanges::default();
        let mut roots = Vec::new();
        for changes in changes {
            all.extend(changes);
            let computed = self.0.compute(view, &[&all])?;
            roots.push(computed[0].root());
        }
        let mut last = self.0.compute(view, &[&all])?;
        let last = last.pop().map(|computed| computed.changes);
        let earlier = std::iter::repeat_with(Changes::default).take(changes.len() - 1);
        let of_blocks: Vec<Changes> = earlier.chain(last).collect();
        Ok(Computed::run(view, roots.into_iter().zip(of_blocks)))
    }

    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn AccountSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        self.0.load(versions, source, progress)
    }

    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError> {
        self.0.prove_together(then, accounts)
    }

    fn nodes(&self, view: View<'_>) -> Nodes {
        self.0.nodes(view)
    }

    fn step(
        &self,
        view: View<'_>,
        nodes: &mut Nodes,
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        self.0.step(view, nodes, to, then, now)
    }

    fn writes_back(
        &self,
        view: View<'_>,
        to: &Meta,
        undo: &[Write],
    ) -> Result<Vec<Write>, StateError> {
        self.0.writes_back(view, to, undo)
    }

    fn check_part(&self, check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError> {
        self.0.check_part(check, firsts)
    }

    fn check_join(&self, check: &Check<'_>, parts: Vec<CheckedPart>) -> Result<B256, StateError> {
        self.0.check_join(check, parts)
    }

    fn inspect(
        &self,
        record: StoredRecord<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError> {
        self.0.inspect(record, see)
    }
}

fn read(folder: &Path) -> (Genesis, Vec<RecoveredBlock>) {
    let genesis = Genesis::from_file(&folder.join("genesis.json")).expect("sound genesis");
    let mut source = open_sources(&[folder.to_owned()]).expect("sound chain");
    source.skip_to(1).expect("blocks");
    let rules = SignatureRules::new(&genesis.spec);
    let mut blocks = Vec::new();
    while let Some(raw) = source.next_raw().expect("sound chain") {
        blocks.push(prepare(raw, rules).expect("valid signatures"));
    }
    (genesis, blocks)
}

/// Replays blocks over a new database; returns the largest number of roots that were computed together, and the head.
fn replay(
    genesis: &Genesis,
    blocks: &[RecoveredBlock],
) -> (u64, (u64, B256), Result<(), ReplayError>) {
    let network = Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    };
    let tree: Tree = Arc::new(Together(MPT.tree()));
    let store = Arc::new(MemoryStore::default());
    let state = State::open(store, None, tree, network, Default::default()).expect("opens");
    let mut replay = Replay::new(state, genesis, 10_000).expect("genesis holds");
    let options = Options {
        verify: Verify::Every,
        roots: Roots::Here,
        check_every: None,
    };
    let mut largest = 0;
    let mut given = blocks.iter().cloned().map(Ok);
    let outcome = replay.blocks(&mut given, options, &mut |block| {
        largest = largest.max(block.root_group);
    });
    (largest, replay.head(), outcome)
}

/// Headers were not compared with roots that are computed together by any test, because no tree of this project does
/// both: it could have been left out.
#[test]
fn a_false_root_in_a_run_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = GeneratorSettings {
        blocks: BLOCKS,
        ..Preset::Tiny.settings()
    };
    generate(&settings, folder.path(), |_| ControlFlow::Continue(())).expect("generated");
    let (genesis, mut blocks) = read(folder.path());
    let (together, head, outcome) = replay(&genesis, &blocks);
    outcome.expect("a sound chain");
    assert_eq!(head.0, BLOCKS);
    assert!(together > 1, "no roots were computed together");

    let place = blocks.len() - 2;
    let number = blocks[place].block.header.number;
    blocks[place].block.header.state_root = B256::repeat_byte(9);
    let (_, head, outcome) = replay(&genesis, &blocks);
    let Err(ReplayError::StateRoot(failure)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(failure.number, number);
    assert_eq!(head.0, number - 1);
}
