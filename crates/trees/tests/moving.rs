//! States that move from each tree to each other while blocks go on, beside a model in plain maps.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, keccak256};
use arbor_state::{
    AccountChange, AccountSlots, BlockRef, Historical, SlotChange, State, StateChanges, Tree, Zeros,
};
use arbor_trees::{Moving, naive_root};
use arbor_verify::two_trees::{Gone, Place as HeldBy, TwoTrees};
use arbor_verify::{Proof, ProvenAccount, Verdict, standard};
use arbor_versions::{Retain, Version};
use proptest::prelude::*;
use serde_json::{Value, json};

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
    /// The log of what is gone.
    log: Vec<Vec<Gone>>,
}

struct Move {
    place: Place,
    at: u64,
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
            at,
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
        let is_over = self.is_over();
        self.state().commit(&block(number), computed).unwrap();
        let mut log = before.log;
        // A block before the first version of the source has nothing to move.
        if number >= self.at.max(1) && !is_over {
            let source = &self.history[(self.at.max(1) - 1) as usize].contents;
            let entries = gone(source, &log, &contents, &changes);
            log.extend((!entries.is_empty()).then_some(entries));
        }
        self.history.push(Known {
            contents,
            changes,
            root,
            log,
        });
    }

    /// A proof of all names at a version.
    fn proof(&mut self, version: u64) -> Box<dyn Proof> {
        let contents = self.history[version as usize].contents.clone();
        let then = self.state().at(Version(version)).unwrap();
        then.prove_together(&names(&check_contents(&then, &contents)))
            .unwrap()
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
                let log = check_proof(&then, &check_contents(&then, &known.contents));
                if let Some(log) = log {
                    assert_eq!(log, known.log, "version {version}");
                }
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

/// What a block adds to the log, by comparing all that the source has with what there is after the
/// block.
fn gone(
    source: &Contents,
    log: &[Vec<Gone>],
    contents: &Contents,
    changes: &StateChanges,
) -> Vec<Gone> {
    let (mut accounts, mut slots) = (BTreeSet::new(), BTreeSet::new());
    for of in log.iter().flatten() {
        slots.extend(of.slots.iter().map(|slot| (of.address, *slot)));
        accounts.extend(of.slots.is_empty().then_some(of.address));
    }
    let is_new = |address: &Address| !accounts.contains(address);
    let mut entries = Vec::new();
    for (address, (_, of_source)) in source.iter().filter(|(address, _)| is_new(address)) {
        let change = changes.accounts.get(address);
        let is_gone = change.is_some_and(|of| of.storage_cleared || of.new.is_none());
        let now = contents.get(address).map(|(_, slots)| slots);
        let is_zero = |slot: &&U256| now.is_none_or(|now| !now.contains_key(slot));
        let missing = of_source.keys().filter(is_zero);
        let missing = missing.filter(|slot| !slots.contains(&(*address, **slot)));
        let slots: Vec<U256> = match is_gone {
            true => Vec::new(),
            false => missing.copied().collect(),
        };
        let address = *address;
        entries.extend((is_gone || !slots.is_empty()).then_some(Gone { address, slots }));
    }
    entries
}

fn names(accounts: &[ProvenAccount]) -> Vec<AccountSlots> {
    let names = accounts.iter().map(|proven| AccountSlots {
        address: proven.address,
        slots: proven.slots.iter().map(|(slot, _)| *slot).collect(),
    });
    names.collect()
}

fn written(proof: &dyn Proof) -> Value {
    let mut file = Vec::new();
    proof.write_json(&mut file, false).unwrap();
    serde_json::from_slice(&file).unwrap()
}

/// Returns the log of a proof amid a move, once the proof holds and shows what it should.
fn check_proof(then: &Historical, accounts: &[ProvenAccount]) -> Option<Vec<Vec<Gone>>> {
    let root = B256::from(then.meta().root);
    let proof = then.prove_together(&names(accounts)).unwrap();
    let read = standard().read_as_told(written(&*proof)).unwrap();
    assert_eq!(format!("{read:?}"), format!("{proof:?}"));
    let Verdict::True(mut claims) = read.verify(root).unwrap() else {
        panic!("{} at version {}", proof.form().name, then.meta().version.0);
    };
    let slots = claims.accounts.iter_mut().flat_map(|of| &mut of.slots);
    slots.for_each(|(_, value)| *value = Some(value.unwrap_or_default()));
    if !claims.accounts.is_empty() {
        assert_eq!(claims.accounts, accounts);
    }
    let is_of_twin = |doubt: &String| doubt.starts_with("that the tree is ");
    assert!(
        claims.doubtful.iter().all(is_of_twin),
        "{:?}",
        claims.doubtful
    );
    if let Some(places) = &claims.places {
        for (of, places) in claims.accounts.iter().zip(&places.accounts) {
            assert_eq!(of.account.is_some(), places.account != HeldBy::Neither);
            for ((_, value), place) in of.slots.iter().zip(&places.slots) {
                assert_eq!(*value == Some(U256::ZERO), *place == HeldBy::Neither);
            }
        }
    }
    let other = read.verify(B256::repeat_byte(1));
    assert!(!matches!(other, Ok(Verdict::True(_))));
    let of_two: Option<TwoTrees> = proof.into();
    of_two.map(|proof| proof.gone)
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

fn set(account: u8, slots: &[(usize, u8)]) -> Edit {
    Edit::Set {
        account,
        balance: 1,
        code: 0,
        slots: slots.to_vec(),
    }
}

/// A move of nine accounts from Merkle-Patricia, one unit a block, with a log of several blocks.
fn logged(target: &str) -> Move {
    let mut move_ = Move::new("mpt", target, 1, 1);
    first(&mut move_);
    move_.block(&[set(5, &[(1, 0), (2, 0)]), Edit::Remove { account: 3 }]);
    move_.block(&[]);
    move_.block(&[set(5, &[(1, 7), (3, 0)]), set(6, &[(0, 0)])]);
    move_.block(&[set(5, &[(1, 0)]), set(3, &[(0, 3)])]);
    move_.check();
    move_
}

/// Names that are deleted before their turn are proven gone, though the source has them; a name
/// that comes back is in the target; one that goes again adds nothing.
#[test]
fn what_is_gone_ahead_of_its_turn_is_proven_gone() {
    for target in ["eip8297", "ar16mt"] {
        let mut move_ = logged(target);
        let slots = |account: u8, numbers: &[usize]| Gone {
            address: crate::support::address(account),
            slots: numbers
                .iter()
                .map(|slot| crate::support::slots()[*slot])
                .collect(),
        };
        let log = vec![
            vec![slots(3, &[]), slots(5, &[1, 2])],
            vec![slots(5, &[3]), slots(6, &[0])],
        ];
        let head = move_.history.len() as u64 - 1;
        let mut place = |version: u64, account: u8, slot: usize| {
            let root = move_.history[version as usize].root;
            let Verdict::True(claims) = move_.proof(version).verify(root).unwrap() else {
                panic!("version {version}");
            };
            let places = claims.places.unwrap().accounts;
            let of = &places[usize::from(account)];
            (of.account, of.slots[slot])
        };
        use HeldBy::{Neither, Source, Target};
        assert_eq!(place(1, 3, 0), (Neither, Neither));
        assert_eq!(place(head, 3, 0), (Target, Target));
        assert_eq!(place(head, 3, 1), (Target, Neither));
        assert_eq!(place(1, 5, 1), (Target, Neither));
        assert_eq!(place(3, 5, 1), (Target, Target));
        assert_eq!(place(head, 5, 1), (Target, Neither));
        assert_eq!(place(head, 5, 4), (Target, Source));
        let proof: TwoTrees = move_.proof(head).into().unwrap();
        assert_eq!(proof.gone, log);
        // A rollback takes entries away, and pruning does not.
        move_.rollback(2);
        let proof: TwoTrees = move_.proof(2).into().unwrap();
        assert_eq!(proof.gone, log[..1]);
        move_.block(&[set(5, &[(1, 7), (3, 0)]), set(6, &[(0, 0)])]);
        move_.state().prune(Retain::Last(1)).unwrap();
        let proof: TwoTrees = move_.proof(3).into().unwrap();
        assert_eq!(proof.gone, log);
        move_.check();
        move_.arrive();
    }
}

/// Whoever makes a proof cannot leave anything out of the log, nor add to it or group it in another
/// way.
#[test]
fn a_lie_about_the_log_is_refused() {
    let mut move_ = logged("eip8297");
    let head = move_.history.len() as u64 - 1;
    let root = move_.history[head as usize].root;
    let honest = written(&*move_.proof(head));
    let judge = |file: &Value| {
        let read = standard().read(file.clone());
        read.map(|proof| proof.verify(root).unwrap())
    };
    let holds = judge(&honest).unwrap();
    let Verdict::True(claims) = holds else {
        panic!("{holds:?}");
    };
    assert!(claims.doubtful.is_empty(), "{:?}", claims.doubtful);
    let log = |file: &Value| file["gone"].as_array().unwrap().clone();
    assert_eq!(log(&honest).len(), 2);
    let entry = |account: u8| json!({"address": crate::support::address(account)});
    let word = |slot: u64| json!(U256::from(slot));
    type Lie = Box<dyn Fn(&mut Value)>;
    let lies: Vec<(&str, Lie)> = vec![
        ("make", Box::new(|log| *log = json!([]))),
        (
            "make",
            Box::new(|log| drop(log[0].as_array_mut().unwrap().remove(0))),
        ),
        (
            "make",
            Box::new(|log| drop(log.as_array_mut().unwrap().remove(1))),
        ),
        (
            "make",
            Box::new(|log| drop(log[0][1]["slots"].as_array_mut().unwrap().pop())),
        ),
        // Without its slots it is the whole account.
        (
            "make",
            Box::new(|log| drop(log[1][1].as_object_mut().unwrap().remove("slots"))),
        ),
        (
            "make",
            Box::new(|log| log[0][0]["slots"] = json!([U256::ZERO])),
        ),
        (
            "make",
            Box::new(move |log| log[1].as_array_mut().unwrap().push(entry(8))),
        ),
        (
            "make",
            Box::new(move |log| log.as_array_mut().unwrap().push(json!([entry(8)]))),
        ),
        (
            "make",
            Box::new(|log| {
                let first = log[0].as_array_mut().unwrap().pop();
                log.as_array_mut().unwrap().insert(1, json!([first]));
            }),
        ),
        (
            "make",
            Box::new(|log| log.as_array_mut().unwrap().swap(0, 1)),
        ),
        (
            "ascending order",
            Box::new(|log| log[0].as_array_mut().unwrap().swap(0, 1)),
        ),
        (
            "ascending order",
            Box::new(move |log| log[0][1]["slots"] = json!([word(2), word(1)])),
        ),
        (
            "ascending order",
            Box::new(move |log| log[0].as_array_mut().unwrap().push(entry(5))),
        ),
        (
            "has no entries",
            Box::new(|log| log.as_array_mut().unwrap().push(json!([]))),
        ),
        (
            "twice",
            Box::new(move |log| log.as_array_mut().unwrap().push(json!([entry(3)]))),
        ),
    ];
    for (number, (words, lie)) in lies.into_iter().enumerate() {
        let mut file = honest.clone();
        lie(&mut file["gone"]);
        assert_ne!(file, honest, "lie {number}");
        let Verdict::False(why) = judge(&file).unwrap() else {
            panic!("lie {number} holds: {}", file["gone"]);
        };
        assert!(why.contains(words), "lie {number}: {why}");
    }
    // Forms that are none.
    let wrongs: Vec<(&str, Lie)> = vec![
        (
            "gone",
            Box::new(|file| drop(file.as_object_mut().unwrap().remove("gone"))),
        ),
        ("gone", Box::new(|file| file["gone"] = json!(7))),
        (
            "address",
            Box::new(|file| file["gone"][0][0] = json!({"slots": []})),
        ),
        (
            "place",
            Box::new(|file| file["gone"][0][0]["place"] = json!("source")),
        ),
        (
            "gone",
            Box::new(|file| file["gone"][0][0]["slots"] = json!(["0x1", -1])),
        ),
        (
            "names",
            Box::new(|file| file["names"][0]["account"] = json!("target")),
        ),
        (
            "no tree that such a state has",
            Box::new(|file| file["source"]["tree"] = json!("two-trees")),
        ),
    ];
    for (words, wrong) in wrongs {
        let mut file = honest.clone();
        wrong(&mut file);
        let error = judge(&file).unwrap_err();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let why = format!("{error}: {}", cause.unwrap_or_default());
        assert!(why.contains(words), "{why}");
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
