//! States that move from each tree to each other while blocks go on, beside a model in plain maps.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::sync::Arc;

use alloy_primitives::{B256, U256, keccak256};
use arbor_state::{
    AccountChange, AccountSlots, BlockRef, Historical, SlotChange, State, StateChanges, Tree, Zeros,
};
use arbor_trees::{Moving, naive_root};
use arbor_verify::{ProvenAccount, Verdict, standard};
use arbor_versions::{Retain, Version};
use proptest::prelude::*;

use crate::model::{Place, cases, check_contents, memory};
use crate::support::{Contents, Edit, Step, codes, edit, edit_model, step};
use crate::trees::trees;

/// One tree of each family, by its name.
const FAMILIES: [&str; 5] = ["mpt", "verkle", "ar16mt", "eip8297", "eip7864"];

fn tree(name: &str) -> Tree {
    let mut all = trees().into_iter();
    all.find(|tree| tree.kind().name == name).unwrap()
}

fn block(number: u64) -> BlockRef {
    BlockRef {
        number,
        hash: B256::from(U256::from(number)),
        record: vec![],
    }
}

/// A version: its contents, and its root once it is known.
#[derive(Clone, Default)]
struct Known {
    contents: Contents,
    changes: StateChanges,
    root: B256,
}

struct Move {
    place: Place,
    tree: Tree,
    source: Tree,
    target: Tree,
    state: Option<State>,
    history: Vec<Known>,
}

impl Move {
    fn new(source: &str, target: &str, at: u64, stride: u64) -> Self {
        let (source, target) = (tree(source), tree(target));
        let place = memory();
        let state = place.open(&source);
        let tree: Tree = Arc::new(Moving::new(source.clone(), target.clone(), at, stride));
        let state = state.open_again(tree.clone()).unwrap();
        Self {
            place,
            tree,
            source,
            target,
            state: Some(state),
            history: Vec::new(),
        }
    }

    fn state(&mut self) -> &mut State {
        self.state.as_mut().unwrap()
    }

    fn block(&mut self, edits: &[Edit]) {
        let before = self.history.last().cloned().unwrap_or_default();
        let (mut contents, mut changes) = (before.contents.clone(), StateChanges::default());
        for edit in edits {
            edit_model(&mut contents, &mut changes, &before.contents, edit);
        }
        let number = self.history.len() as u64;
        let computed = self.state().compute(&changes).unwrap();
        let root = computed.root();
        let flat = self
            .state()
            .flat_root_after(std::slice::from_ref(&computed));
        assert_eq!(flat.unwrap(), naive_root(&contents));
        self.state().commit(&block(number), computed).unwrap();
        self.history.push(Known {
            contents,
            changes,
            root,
        });
    }

    /// All that can be read is as the model has it, and is proven.
    fn check(&mut self) {
        let head = self.history.len() as u64 - 1;
        let history = self.history.clone();
        let state = self.state();
        for version in head.saturating_sub(6)..=head {
            if let Ok(then) = state.at(Version(version)) {
                let known = &history[version as usize];
                assert_eq!(B256::from(then.meta().root), known.root);
                check_proof(&then, &check_contents(&then, &known.contents));
            }
        }
        let report = state.verify().unwrap();
        let faults = report.faults;
        let trees = [&self.source, &self.target].map(|tree| tree.kind().name);
        assert!(faults.is_empty(), "{trees:?}, version {head}: {faults:?}");
        assert_eq!(
            report.flat_root,
            naive_root(&history[head as usize].contents)
        );
    }

    fn rollback(&mut self, back: u64) {
        let target = (self.history.len() as u64).saturating_sub(1 + back);
        if !self.history.is_empty() && self.state().rollback(Version(target)).is_ok() {
            self.history.truncate(target as usize + 1);
        }
    }

    /// The same blocks lead to the same roots again.
    fn back_and_forth(&mut self) {
        let before = self.history.clone();
        self.rollback(6);
        for known in &before[self.history.len()..] {
            let number = self.history.len() as u64;
            let computed = self.state().compute(&known.changes).unwrap();
            assert_eq!(computed.root(), known.root, "block {number}");
            self.state().commit(&block(number), computed).unwrap();
            self.history.push(known.clone());
        }
    }

    fn is_over(&mut self) -> bool {
        let moved = self.state().reader().moved().unwrap();
        moved.is_some_and(|(_, moved)| moved.last_block.is_some())
    }

    /// Once all is moved the target is what a state with the same contents is under it; it can be opened alone, and blocks go on.
    fn arrive(mut self) {
        while !self.is_over() {
            self.block(&[]);
        }
        self.check();
        self.back_and_forth();
        self.check();
        let contents = self.history.last().unwrap().contents.clone();
        let root = self.state().root();
        // A block without changes keeps the root.
        if self.target.kind().zeros == Zeros::Forgotten && self.target.kind().name != "ar16mt" {
            assert_eq!(root, whole(&self.target, &contents));
        }
        self.block(&[]);
        self.state().prune(Retain::Last(1)).unwrap();
        let arrived = self.state().arrived().unwrap().unwrap();
        assert_eq!(arrived.kind().name, self.target.kind().name);
        let state = self.state.take().unwrap().open_again(arrived).unwrap();
        assert_eq!(state.root(), root);
        drop(state);
        // The database says that it is one of the target's.
        self.state = Some(self.place.open(&self.target));
        self.tree = self.target.clone();
        assert_eq!(self.state().root(), root);
        for number in 0..3 {
            let slots = vec![(number, 1 + number as u8), (0, 0)];
            let account = number as u8;
            self.block(&[
                Edit::Set {
                    account,
                    balance: 3,
                    code: 2,
                    slots,
                },
                Edit::Remove {
                    account: account + 4,
                },
            ]);
        }
        self.check_alone();
        self.rollback(1);
        self.check_alone();
    }

    fn check_alone(&mut self) {
        let known = self.history.last().unwrap().clone();
        let head = Version(self.history.len() as u64 - 1);
        let state = self.state();
        let then = state.at(head).unwrap();
        check_proof(&then, &check_contents(&then, &known.contents));
        let report = state.verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.faults);
        assert_eq!(report.flat_root, naive_root(&known.contents));
    }
}

/// The root of a tree with these contents alone.
fn whole(tree: &Tree, contents: &Contents) -> B256 {
    let mut changes = StateChanges {
        codes: codes().map(|code| (keccak256(&code), code)).into(),
        ..StateChanges::default()
    };
    for (address, (account, slots)) in contents {
        let slots = slots.iter().map(|(slot, value)| {
            let (old, new) = (U256::ZERO, *value);
            (*slot, SlotChange { old, new })
        });
        let change = AccountChange {
            new: Some(*account),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        changes.accounts.insert(*address, change);
    }
    memory().open(tree).compute(&changes).unwrap().root()
}

fn check_proof(then: &Historical, accounts: &[ProvenAccount]) {
    let root = B256::from(then.meta().root);
    let names: Vec<AccountSlots> = accounts
        .iter()
        .map(|proven| AccountSlots {
            address: proven.address,
            slots: proven.slots.iter().map(|(slot, _)| *slot).collect(),
        })
        .collect();
    let proof = then.prove_together(&names).unwrap();
    let mut file = Vec::new();
    proof.write_json(&mut file, false).unwrap();
    let read = standard()
        .read_as_told(serde_json::from_slice(&file).unwrap())
        .unwrap();
    assert_eq!(format!("{read:?}"), format!("{proof:?}"));
    let Verdict::True(mut claims) = read.verify(root).unwrap() else {
        panic!("{} at version {}", proof.form().name, then.meta().version.0);
    };
    let slots = claims.accounts.iter_mut().flat_map(|of| &mut of.slots);
    slots.for_each(|(_, value)| *value = Some(value.unwrap_or_default()));
    if !claims.accounts.is_empty() {
        assert_eq!(claims.accounts, accounts);
    }
    let other = read.verify(B256::repeat_byte(1));
    assert!(!matches!(other, Ok(Verdict::True(_))));
}

fn run(move_: &mut Move, steps: Vec<Step>) {
    for step in steps {
        match step {
            Step::Block(edits) => move_.block(&edits),
            Step::Flush => move_.state().flush().unwrap(),
            Step::Reopen => {
                move_.state().flush().unwrap();
                drop(move_.state.take());
                move_.state = Some(move_.place.open(&move_.tree));
            }
            Step::Rollback(back) => move_.rollback(back),
            Step::Prune(keep) => drop(move_.state().prune(Retain::Last(keep)).unwrap()),
            Step::KeepNodes => move_.state().keep_nodes_back(&mut |_, _| true).unwrap(),
            Step::ForgetNodes => move_.state().forget_nodes().unwrap(),
        }
        if !move_.history.is_empty() {
            move_.check();
        }
    }
}

/// Some accounts of every kind, before anything moves.
fn first(move_: &mut Move) {
    let some = |account: u8| Edit::Set {
        account,
        balance: account % 3,
        code: usize::from(account) % codes().len(),
        slots: (0..usize::from(account) % 7)
            .map(|slot| (slot, 1 + account % 3))
            .collect(),
    };
    let edits: Vec<Edit> = (0..9).map(some).collect();
    move_.block(&edits);
}

/// Every pair of families: what is written on both sides of each move, deleted and made again.
#[test]
fn each_tree_moves_to_each_other() {
    for source in FAMILIES {
        for target in FAMILIES.into_iter().filter(|target| *target != source) {
            eprintln!("from {source} to {target}");
            let mut move_ = Move::new(source, target, 3, 4);
            first(&mut move_);
            for round in 0..14u8 {
                let account = round % 10;
                move_.block(&[
                    Edit::Set {
                        account,
                        balance: round % 4,
                        code: usize::from(round) % 3,
                        slots: vec![(usize::from(round) % 12, round % 3), (2, 0)],
                    },
                    match round % 3 {
                        0 => Edit::Remove {
                            account: (account + 3) % 10,
                        },
                        1 => Edit::Clear {
                            account: (account + 5) % 10,
                            slots: vec![(1, 2)],
                        },
                        _ => Edit::Set {
                            account: (account + 7) % 10,
                            balance: 1,
                            code: 0,
                            slots: vec![(3, 1)],
                        },
                    },
                ]);
                move_.check();
            }
            move_.back_and_forth();
            move_.arrive();
        }
    }
}

/// Trees that keep what is gone have records of an account that was deleted, and of slots that were: more of them than a block moves. Accounts behind them have their slots
/// all the same.
#[test]
fn what_is_gone_hides_nothing_behind_it() {
    for source in ["verkle", "eip7864"] {
        let mut move_ = Move::new(source, "eip8297", 4, 1);
        let slots = |value: u8| (0..12).map(|slot| (slot, value)).collect::<Vec<_>>();
        let set = |account, value| Edit::Set {
            account,
            balance: 1,
            code: 0,
            slots: slots(value),
        };
        move_.block(&[set(1, 1), set(2, 1), set(3, 1), set(4, 2)]);
        move_.block(&[Edit::Remove { account: 2 }, set(3, 0)]);
        move_.block(&[set(5, 3)]);
        move_.block(&[]);
        move_.check();
        move_.arrive();
    }
}

/// A move that is given up leaves nothing behind.
#[test]
fn a_move_that_is_given_up_leaves_the_source() {
    for target in ["eip8297", "ar16mt", "mpt"] {
        let source = if target == "mpt" { "verkle" } else { "mpt" };
        let mut move_ = Move::new(source, target, 2, 3);
        first(&mut move_);
        move_.block(&[]);
        let root = move_.history[1].root;
        for account in 0..3 {
            move_.block(&[Edit::Remove { account }]);
        }
        move_.rollback(3);
        assert_eq!((move_.history.len(), move_.state().root()), (2, root));
        let state = move_.state.take().unwrap();
        let state = state.open_again(move_.source.clone()).unwrap();
        drop(state);
        move_.state = Some(move_.place.open(&move_.source));
        move_.block(&[Edit::Remove { account: 1 }]);
        move_.check();
    }
}

proptest! {
    #![proptest_config(cases(6))]

    #[test]
    fn a_random_history_with_a_move_agrees_with_the_model(
        pair in (0..5usize, 1..5usize), at in 1u64..8, stride in 1u64..9,
        steps in prop::collection::vec(step(), 1..24),
    ) {
        let (source, target) = (FAMILIES[pair.0], FAMILIES[(pair.0 + pair.1) % 5]);
        let mut move_ = Move::new(source, target, at, stride);
        first(&mut move_);
        run(&mut move_, steps);
        move_.arrive();
    }

    #[test]
    fn edits_amid_a_move_agree_with_the_model(
        pair in (0..5usize, 1..5usize), stride in 1u64..5,
        blocks in prop::collection::vec(prop::collection::vec(edit(), 0..5), 1..16),
    ) {
        let (source, target) = (FAMILIES[pair.0], FAMILIES[(pair.0 + pair.1) % 5]);
        let mut move_ = Move::new(source, target, 1, stride);
        first(&mut move_);
        for edits in blocks {
            move_.block(&edits);
        }
        move_.check();
        move_.arrive();
    }
}
