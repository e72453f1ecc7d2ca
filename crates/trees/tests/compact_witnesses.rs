//! Witnesses in compact form: they come back, lead to the same roots, and nothing else is taken for them.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::support::{Contents, Edit, Step, address, codes, edit_model, slots, step};
use crate::trees::{block, empty, trees};
use alloy_primitives::{B256, Bytes, hex, keccak256};
use arbor_state::{IntermediateRoots, Reads, State, StateChanges, StateWitness, Touched, Tree};
use arbor_verify::mpt::WitnessState;
use arbor_verify::verkle::Witness;
use arbor_verify::{PartialState, VerifyKind, WitnessParts, standard};
use arbor_versions::Version;
use proptest::prelude::*;

static TREES: LazyLock<Vec<Tree>> = LazyLock::new(|| {
    let mut trees = trees();
    trees.retain(|tree| tree.witnesses().is_some() && standard().find(tree.kind().name).is_some());
    trees
});

/// The witness of a block, and what it is of.
struct Made {
    kind: &'static VerifyKind,
    hash: &'static str,
    before: B256,
    changes: StateChanges,
    after: B256,
    nodes: Vec<Bytes>,
    codes: Vec<Bytes>,
    chunks: BTreeSet<[u8; 32]>,
}

impl Made {
    /// Commits the blocks but the last, whose witness is made. Some accounts and slots are read, present or not.
    fn of(tree: &Tree, blocks: &[Vec<Edit>]) -> Option<Self> {
        let (mut state, mut contents) = (empty(tree), Contents::new());
        let (last, earlier) = blocks.split_last().unwrap();
        for (number, edits) in (0..).zip(earlier) {
            let computed = state.compute(&applied(&mut contents, edits)).unwrap();
            state.commit(&block(number), computed).unwrap();
        }
        let changes = applied(&mut contents, last);
        // Whatever a block changes it has read.
        let mut reads: Reads = (0..4)
            .map(|number| (address(3 * number), slots()[..4].iter().copied().collect()))
            .collect();
        for (address, change) in &changes.accounts {
            reads
                .entry(*address)
                .or_default()
                .extend(change.slots.keys());
        }
        Self::with(tree, &state, changes, &reads)
    }

    fn with(tree: &Tree, state: &State, changes: StateChanges, reads: &Reads) -> Option<Self> {
        let parent = state.at(Version(state.head()?.version.0)).unwrap();
        let chunks = BTreeMap::from([(address(3), BTreeSet::from([0, 1, 4]))]);
        let touched = Touched {
            reads,
            chunks: &chunks,
            changes: &changes,
            transactions: &[],
            guarded: false,
        };
        let after = state.compute(&changes).unwrap().root();
        let (nodes, chunks) = match parent.witness(touched).unwrap().unwrap() {
            StateWitness::Nodes { nodes, .. } => (nodes, BTreeSet::new()),
            StateWitness::Leaves(leaves) => {
                let witness = leaves.proof.into::<Witness>().unwrap();
                (vec![witness.to_bytes().into()], leaves.chunks)
            }
        };
        Some(Self {
            kind: standard().find(tree.kind().name).unwrap(),
            hash: tree.hash(),
            before: parent.meta().root.into(),
            changes,
            after,
            nodes,
            codes: codes()[1..4].to_vec(),
            chunks,
        })
    }

    fn parts<'a>(&'a self, nodes: &'a [Bytes], codes: &'a [Bytes]) -> WitnessParts<'a> {
        WitnessParts {
            hash: self.hash,
            root: self.before,
            nodes,
            codes,
        }
    }

    /// The root after the changes over some nodes; `None` if they do not hold or do not suffice.
    fn root_over(&self, nodes: &[Bytes]) -> Option<B256> {
        let codes: Vec<Bytes> = codes().to_vec();
        let parts = self.parts(nodes, &codes);
        match self.kind.partial_state {
            None => {
                let state = WitnessState::new(self.before, nodes.to_vec(), codes);
                state.pending_roots().root_after(&self.changes).ok()
            }
            Some(partial_state) => {
                let state: Box<dyn PartialState> = partial_state(parts).unwrap();
                state.check().ok()?;
                state.pending_roots().root_after(&self.changes).ok()
            }
        }
    }

    fn compact(&self) -> Vec<u8> {
        let is_chunk = |key: &[u8; 32]| self.chunks.contains(key);
        let compact = self
            .kind
            .compact(&self.parts(&self.nodes, &self.codes), &is_chunk)
            .unwrap();
        assert_eq!(compact.sizes.total(), compact.bytes.len() as u64);
        compact.bytes
    }
}

fn applied(contents: &mut Contents, edits: &[Edit]) -> StateChanges {
    let (before, mut changes) = (contents.clone(), StateChanges::default());
    for edit in edits {
        edit_model(contents, &mut changes, &before, edit);
    }
    changes
        .accounts
        .retain(|_, change| change.old.is_some() || change.new.is_some());
    changes
}

/// Blocks whose last one neither clears storage nor removes accounts or codes, which not every witness shows.
fn blocks() -> impl Strategy<Value = Vec<Vec<Edit>>> {
    let edits = step().prop_filter_map("edits alone", |step| match step {
        Step::Block(edits) if !edits.is_empty() => Some(edits),
        _ => None,
    });
    let set = (
        0..crate::support::ACCOUNTS,
        0u8..4,
        prop::collection::vec((0..slots().len(), 0u8..4), 0..6),
    );
    let set = set.prop_map(|(account, balance, slots)| Edit::Set {
        account,
        balance,
        code: 3,
        slots,
    });
    let last = prop::collection::vec(set, 1..4);
    (prop::collection::vec(edits, 1..5), last).prop_map(|(mut blocks, last)| {
        // Accounts with code 3 keep it.
        for edits in &mut blocks {
            for edit in edits {
                if let Edit::Set { code, .. } = edit {
                    *code = 3;
                }
            }
        }
        blocks.push(last);
        blocks
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn a_compact_witness_comes_back_and_leads_to_the_same_roots(blocks in blocks()) {
        for tree in &*TREES {
            let made = Made::of(tree, &blocks).unwrap();
            let name = tree.kind().name;
            prop_assert_eq!(made.root_over(&made.nodes), Some(made.after), "{}", name);
            let bytes = made.compact();
            let expanded = made.kind.expand(made.hash, made.before, &bytes).unwrap();
            prop_assert_eq!(&expanded.codes, &made.codes);
            prop_assert_eq!(made.root_over(&expanded.nodes), Some(made.after), "{}", name);
            let parts = made.parts(&expanded.nodes, &expanded.codes);
            prop_assert_eq!(made.kind.compact(&parts, &|_| false).unwrap().bytes, bytes, "{}", name);
            if name != "verkle" && name != "verkle-2023" {
                let set = |nodes: &[Bytes]| nodes.iter().cloned().collect::<BTreeSet<Bytes>>();
                prop_assert_eq!(set(&expanded.nodes), set(&made.nodes), "{}", name);
            }
        }
    }
}

/// Several accounts with slots in several groups and with code; slots change, appear and go.
fn rich() -> Vec<Vec<Edit>> {
    let set = |account, slots: &[(usize, u8)]| Edit::Set {
        account,
        balance: 3,
        code: 3,
        slots: slots.to_vec(),
    };
    let many: Vec<(usize, u8)> = (0..12).map(|slot| (slot, 2)).collect();
    vec![
        (0..9)
            .map(|account| set(account, &many[..usize::from(account)]))
            .collect(),
        vec![
            set(3, &[(0, 0), (1, 3), (9, 4)]),
            set(6, &[(2, 0)]),
            set(9, &[(3, 1)]),
        ],
    ]
}

#[test]
fn nothing_else_is_taken_for_a_compact_witness() {
    for tree in &*TREES {
        let made = Made::of(tree, &rich()).unwrap();
        let name = tree.kind().name;
        let bytes = made.compact();
        let expand = |bytes: &[u8]| made.kind.expand(made.hash, made.before, bytes);
        let codes: usize = made.codes.iter().map(|code| 3 + code.len()).sum();
        let tree_end = bytes.len() - codes;
        for length in 0..bytes.len() {
            if let Ok(cut) = expand(&bytes[..length]) {
                // Whole codes may be missing at the end.
                assert!(
                    length >= tree_end && cut.codes.len() < made.codes.len(),
                    "{name}"
                );
            }
        }
        assert!(expand(&[&bytes[..], &[0]].concat()).is_err(), "{name}");
        let is_verkle = name.starts_with("verkle");
        // A false proof of Verkle is found by checking it, which takes long.
        for place in (0..tree_end).step_by(if is_verkle { 97 } else { 3 }) {
            for bit in [1, 0x80] {
                let mut flipped = bytes.clone();
                flipped[place] ^= bit;
                if let Ok(expanded) = expand(&flipped) {
                    assert!(is_verkle, "{name}: byte {place}");
                    // It may be a true witness of another key that is absent, which the block does not need.
                    let found = made.root_over(&expanded.nodes);
                    assert!(found.is_none_or(|root| root == made.after), "byte {place}");
                }
            }
        }
        let other = B256::repeat_byte(7);
        match made.kind.expand(made.hash, other, &bytes) {
            Ok(expanded) => {
                let parts = WitnessParts {
                    root: other,
                    ..made.parts(&expanded.nodes, &[])
                };
                let state = made.kind.partial_state.unwrap()(parts).unwrap();
                assert!(is_verkle && state.check().is_err(), "{name}");
            }
            Err(error) => assert!(error.to_string().contains("expected 0x0707"), "{error}"),
        }
    }
}

#[test]
fn a_block_that_touches_nothing_and_an_empty_state_have_compact_witnesses() {
    for tree in &*TREES {
        let mut state = empty(tree);
        let computed = state.compute(&StateChanges::default()).unwrap();
        state.commit(&block(0), computed).unwrap();
        let made = Made::with(tree, &state, StateChanges::default(), &Reads::default());
        let mut made = made.unwrap();
        if made.kind.tree.starts_with("verkle") {
            made.nodes.clear();
        }
        let expanded = made
            .kind
            .expand(made.hash, made.before, &made.compact())
            .unwrap();
        assert_eq!(expanded.codes, made.codes);
        let leaves = expanded.nodes.iter().filter(|node| !node.is_empty());
        assert_eq!(leaves.count(), 0, "{}", tree.kind().name);
    }
}

/// The compact form is a format of its own: its length, and the first bytes of its Keccak-256.
const BYTES: [&str; 4] = [
    "mpt 829 855f0324cff6e350",
    "verkle 1667 c7361d85bc88ab77",
    "eip8297 1205 c859ecd8f6ac468a",
    "eip7864 1109 c930a45850ca2a89",
];

#[test]
fn the_bytes_are_fixed() {
    let found = BYTES.map(|expected| {
        let name = expected.split(' ').next().unwrap();
        let tree = TREES.iter().find(|tree| tree.kind().name == name);
        let bytes = Made::of(tree.unwrap(), &rich()).unwrap().compact();
        let hash = hex::encode(&keccak256(&bytes)[..8]);
        format!("{name} {} {hash}", bytes.len())
    });
    assert_eq!(found, BYTES);
}
