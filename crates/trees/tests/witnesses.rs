//! The nodes of a Merkle-Patricia witness, when receipts name a root after each transaction.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;

use crate::support::{Contents, Edit, Step, edit_model, step};
use crate::trees::{block, empty};
use arbor_state::{AccountChange, IntermediateRoots, Reads, StateChanges, StateWitness, Touched};
use arbor_trees::MPT;
use arbor_verify::mpt::WitnessState;
use arbor_versions::Version;
use proptest::prelude::*;

/// Edits of one block or transaction.
fn edits() -> impl Strategy<Value = Vec<Edit>> {
    step().prop_filter_map("edits alone", |step| match step {
        Step::Block(edits) => Some(edits),
        _ => None,
    })
}

fn applied(contents: &mut Contents, edits: &[Edit]) -> StateChanges {
    let before = contents.clone();
    let mut changes = StateChanges::default();
    for edit in edits {
        edit_model(contents, &mut changes, &before, edit);
    }
    // A transaction's changes hold nothing that is absent before and after.
    let absent = |change: &AccountChange| change.old.is_none() && change.new.is_none();
    changes.accounts.retain(|_, change| !absent(change));
    changes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A transaction may put into a trie what another takes away again: the root between them needs nodes that the
    /// block as a whole leaves alone.
    #[test]
    fn the_root_after_each_transaction_follows_from_the_witness(
        before in prop::collection::vec(edits(), 1..6),
        transactions in prop::collection::vec(edits(), 1..6),
    ) {
        let (mut contents, mut sum) = (Contents::new(), StateChanges::default());
        for edits in &before {
            sum.extend(&applied(&mut contents, edits));
        }
        let tree = MPT.tree();
        let mut state = empty(&tree);
        let computed = state.compute(&sum).unwrap();
        state.commit(&block(0), computed).unwrap();

        let transactions: Vec<StateChanges> =
            transactions.iter().map(|edits| applied(&mut contents, edits)).collect();
        let mut changes = StateChanges::default();
        transactions.iter().for_each(|one| changes.extend(one));
        let parent = state.at(Version(0)).unwrap();
        let touched = Touched {
            reads: &Reads::default(),
            chunks: &BTreeMap::new(),
            changes: &changes,
            transactions: &transactions,
            guarded: false,
        };
        let StateWitness::Nodes { nodes, .. } = parent.witness(touched).unwrap().unwrap() else {
            panic!("a witness of another form");
        };
        let root = parent.meta().root.into();
        let witness = WitnessState::new(root, nodes, []);
        let (mut wanted, mut roots) = (parent.intermediate_roots().unwrap(), witness.pending_roots());
        for transaction in &transactions {
            let wanted = wanted.root_after(transaction).unwrap();
            prop_assert_eq!(roots.root_after(transaction).unwrap(), wanted);
        }
        let (mut whole, mut last) = (witness.pending_roots(), parent.intermediate_roots().unwrap());
        prop_assert_eq!(whole.root_after(&changes).unwrap(), last.root_after(&changes).unwrap());
    }
}
