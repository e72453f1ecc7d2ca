//! Every tree is converted to every other one, from a database and from a dump, in one run and in many.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::trees::{block, empty, plain, trees};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_convert::{
    Conversion, ConvertError, Converted, Difference, Dump, Hooks, Job, Source, SourceBlock, Stage,
};
use arbor_state::{
    Account, AccountChange, BlockRef, DumpAccount, DumpHead, Historical, SlotChange, State,
    StateChanges, StateError, StateView, Tree,
};
use arbor_versions::Version;

/// No code, code of a few chunks, and of more chunks than lie beside an account's fields.
fn codes() -> [Bytes; 3] {
    [
        Bytes::new(),
        b"\x60\x01".repeat(40).into(),
        b"\x61\x02\x00".repeat(31 * 70).into(),
    ]
}

/// Accounts of all shapes: more than are sorted together.
fn contents(accounts: u64) -> StateChanges {
    let mut changes = StateChanges::default();
    for code in codes() {
        changes.codes.insert(keccak256(&code), code);
    }
    for number in 0..accounts {
        let new = Account {
            code_hash: keccak256(&codes()[number as usize % 3]),
            ..plain(number, number * 1_000)
        };
        let slots = [0, 1, 63, 64, 65, 255, 256, 70_000].into_iter();
        let slots = slots.take(number as usize % 9).map(|slot| {
            let (old, new) = (U256::ZERO, U256::from(slot + number + 1));
            (U256::from(slot), SlotChange { old, new })
        });
        let change = AccountChange {
            new: Some(new),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        let mut address = Address::from_word(keccak256(number.to_be_bytes()));
        // Many addresses may begin alike: then one range of names has them all.
        if number % 2 == 0 {
            address[0] = 0x69;
        }
        changes.accounts.insert(address, change);
    }
    changes
}

fn state(tree: &Tree, accounts: u64) -> State {
    let mut state = empty(tree);
    let computed = state.compute(&contents(accounts)).unwrap();
    state.commit(&block(5), computed).unwrap();
    state
}

/// All accounts by address: the order of a dump is that of the tree.
fn dump(state: &State) -> BTreeMap<Address, DumpAccount> {
    let mut dumped = BTreeMap::new();
    let version = state.head().unwrap().version;
    state
        .at(version)
        .unwrap()
        .dump(|account| {
            assert!(dumped.insert(account.address, account).is_none());
            Ok::<(), StateError>(())
        })
        .unwrap();
    dumped
}

/// Writes a dump whose lines are in no order.
fn write_dump(state: &State, path: &Path) {
    let mut out = std::fs::File::create(path).unwrap();
    let root = state.reader().flat_root().unwrap();
    writeln!(
        out,
        "{}",
        serde_json::to_string(&DumpHead { root, tree: None }).unwrap()
    )
    .unwrap();
    let mut accounts: Vec<DumpAccount> = dump(state).into_values().collect();
    accounts.sort_by_key(|account| keccak256(account.key));
    for account in accounts {
        writeln!(out, "{}", serde_json::to_string(&account).unwrap()).unwrap();
    }
}

/// A conversion into a folder, which is asked to stop after so many looks.
struct Run<'a> {
    folder: &'a Path,
    root: Option<B256>,
    looks: u64,
}

impl Run<'_> {
    fn run(&self, source: Source<'_>, target: &mut State) -> Result<Converted, ConvertError> {
        let looks = AtomicU64::new(0);
        let (name, kind) = ("a state".to_owned(), target.tree().kind().name.to_owned());
        let mut job = Job {
            source: name,
            target: kind,
            stage: Stage::Sort,
            command: String::new(),
            block: None,
        };
        job.stage = job.begin(self.folder)?;
        let conversion = Conversion {
            source,
            blocks: vec![SourceBlock {
                block: block(5),
                state_root: self.root,
            }],
            state_root: self.root,
            folder: self.folder,
            memory: 1 << 13,
            hooks: Hooks {
                progress: &|_, done, _| assert!((0.0..=1.0).contains(&done)),
                stop: &|| looks.fetch_add(1, Ordering::Relaxed) >= self.looks,
            },
        };
        conversion.run(&mut job, target)
    }

    /// Converts in one go.
    fn whole(source: Source<'_>, tree: &Tree, root: B256) -> (State, Converted) {
        let folder = tempfile::tempdir().unwrap();
        let run = Run {
            folder: folder.path(),
            root: Some(root),
            looks: u64::MAX,
        };
        let mut target = empty(tree);
        let converted = run.run(source, &mut target).unwrap();
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        let left: Vec<_> = left
            .into_iter()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["converted.json"]);
        (target, converted)
    }
}

fn head(state: &State) -> Historical<'_> {
    state.at(state.head().unwrap().version).unwrap()
}

#[test]
fn every_tree_is_converted_to_every_other_one_and_back() {
    const ACCOUNTS: u64 = 200;
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("dump");
    let trees = trees();
    let roots: Vec<B256> = trees
        .iter()
        .map(|tree| state(tree, ACCOUNTS).root())
        .collect();
    for (place, from) in trees.iter().enumerate() {
        let source = state(from, ACCOUNTS);
        let root = source.reader().flat_root().unwrap();
        let wanted = dump(&source);
        for (to, of_block) in trees.iter().zip(&roots) {
            let what = format!("{} to {}", from.kind().name, to.kind().name);
            let (target, converted) = Run::whole(Source::State(&head(&source)), to, root);
            let found = &converted.comparison;
            assert!(found.is_same(), "{what}: {:?}", found.differences);
            assert_eq!(
                (found.counts.accounts, found.codes),
                (ACCOUNTS, 2),
                "{what}"
            );
            assert_eq!(converted.flat_root, root, "{what}");
            assert_eq!(dump(&target), wanted, "{what}");
            assert_eq!(target.root(), *of_block, "{what}");
            // Every target has the root that executing a block gives, so one tree suffices for what follows.
            if place > 0 {
                continue;
            }
            let (mut back, _) = Run::whole(Source::State(&head(&target)), from, root);
            assert_eq!(back.root(), source.root(), "{what}");
            let report = back.verify().unwrap();
            assert!(report.is_ok(), "{what}: {:?}", report.faults);

            write_dump(&source, &lines);
            let of_dump = Source::Dump(Dump::open(&lines).unwrap());
            let (of_dump, _) = Run::whole(of_dump, to, root);
            assert_eq!(of_dump.root(), target.root(), "{what}");
            assert_eq!(dump(&of_dump), wanted, "{what}");
        }
    }
}

/// Blocks before the last can be named, and not read.
#[test]
fn earlier_blocks_are_remembered() {
    let trees = trees();
    let source = state(&trees[0], 10);
    for to in &trees {
        let folder = tempfile::tempdir().unwrap();
        let mut target = empty(to);
        let mut job = Job {
            source: String::new(),
            target: String::new(),
            stage: Stage::Sort,
            command: String::new(),
            block: None,
        };
        job.begin(folder.path()).unwrap();
        let blocks = (3..=5).map(|number| SourceBlock {
            block: BlockRef {
                record: vec![number as u8],
                ..block(number)
            },
            state_root: Some(source.root()),
        });
        let conversion = Conversion {
            source: Source::State(&head(&source)),
            blocks: blocks.collect(),
            state_root: Some(source.root()),
            folder: folder.path(),
            memory: 1 << 20,
            hooks: Hooks {
                progress: &|_, _, _| (),
                stop: &|| false,
            },
        };
        conversion.run(&mut job, &mut target).unwrap();
        let meta = target.head().unwrap();
        assert_eq!((meta.version, meta.block_number), (Version(2), 5));
        let view = target.versions().view();
        assert_eq!(view.oldest(), Some(Version(2)));
        let before = view.meta(Version(0)).unwrap().unwrap();
        assert_eq!((before.block_number, before.extra), (3, vec![3]));
    }
}

#[test]
fn a_conversion_that_is_stopped_goes_on() {
    const ACCOUNTS: u64 = 600;
    let trees = trees();
    let source = state(&trees[0], ACCOUNTS);
    let root = source.reader().flat_root().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("dump");
    write_dump(&source, &lines);
    let mut stops_behind_the_build = 0;
    let others = trees
        .iter()
        .filter(|tree| tree.order() != source.tree().order());
    for to in others {
        for is_dump in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let then = head(&source);
            let open = || match is_dump {
                true => Source::Dump(Dump::open(&lines).unwrap()),
                false => Source::State(&then),
            };
            let mut stops = 0;
            let mut target = empty(to);
            // A dump of a single part begins again; each run gets further here.
            for looks in (3..).step_by(97) {
                let run = Run {
                    folder: folder.path(),
                    root: Some(root),
                    looks,
                };
                match run.run(open(), &mut target) {
                    Err(ConvertError::Stopped) => {
                        stops += 1;
                        // As after a kill that came before it was noted that the target is whole.
                        if target.head().is_some() {
                            let mut job = Job::read(folder.path()).unwrap().unwrap();
                            job.reach(Stage::Build, folder.path()).unwrap();
                            stops_behind_the_build += 1;
                        }
                    }
                    converted => {
                        assert!(converted.unwrap().comparison.is_same());
                        break;
                    }
                }
            }
            assert!(stops > 1, "{stops}");
            assert_eq!(dump(&target), dump(&source));
        }
    }
    assert!(stops_behind_the_build > 0);
}

#[test]
fn another_conversion_is_refused_in_the_same_folder() {
    let folder = tempfile::tempdir().unwrap();
    let job = |source: &str, target: &str| Job {
        source: source.to_owned(),
        target: target.to_owned(),
        stage: Stage::Sort,
        command: String::new(),
        block: None,
    };
    assert_eq!(job("a", "b").begin(folder.path()).unwrap(), Stage::Sort);
    job("a", "b").reach(Stage::Verify, folder.path()).unwrap();
    assert_eq!(job("a", "b").begin(folder.path()).unwrap(), Stage::Verify);
    for (source, target) in [("x", "b"), ("a", "x")] {
        let error = job(source, target).begin(folder.path()).unwrap_err();
        assert!(matches!(error, ConvertError::OtherJob { .. }), "{error}");
    }
}

#[test]
fn a_false_source_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("dump");
    let trees = trees();
    let source = state(&trees[0], 300);
    write_dump(&source, &lines);
    let text = std::fs::read_to_string(&lines).unwrap();
    let all: Vec<&str> = text.lines().collect();
    let root = source.reader().flat_root().unwrap();
    for to in &trees {
        let refused = |lines: &[&str], why: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("dump");
            std::fs::write(&path, lines.join("\n")).unwrap();
            let run = Run {
                folder: folder.path(),
                root: Some(root),
                looks: u64::MAX,
            };
            let dump = Source::Dump(Dump::open(&path).unwrap());
            let error = run.run(dump, &mut empty(to)).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        };
        refused(&all[..all.len() - 1], "have the Merkle-Patricia root");
        refused(&[&all[..], &all[7..8]].concat(), "is listed twice");
        refused(
            &[&all[..], &["{\"balance\": 1}"]].concat(),
            &format!("line {}", all.len() + 1),
        );
    }
}

/// Files of a sorting that changed behind the conversion's back.
#[test]
fn damaged_files_are_named() {
    let trees = trees();
    let source = state(&trees[0], 3_000);
    let other = trees
        .iter()
        .find(|tree| tree.order() != source.tree().order());
    let to = other.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let root = Some(B256::ZERO);
    let run = |looks| Run {
        folder: folder.path(),
        root,
        looks,
    };
    // The sort looks once for each range and more, so that this stops amid the build.
    let then = head(&source);
    let mut target = empty(to);
    let error = run(300).run(Source::State(&then), &mut target);
    assert!(matches!(error, Err(ConvertError::Stopped)));
    let path = folder.path().join("convert/accounts-f0");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = run(u64::MAX)
        .run(Source::State(&then), &mut target)
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("accounts-f0"), "{text}");
}

#[test]
fn differences_are_named_by_address_and_slot() {
    let trees = trees();
    let source = state(&trees[0], 50);
    let changes = contents(50);
    let mut addresses = changes
        .accounts
        .iter()
        .filter(|(_, change)| change.slots.len() > 2);
    let mut next = || *addresses.next().unwrap().0;
    let (altered, lacking, richer) = (next(), next(), next());
    for to in &trees {
        // The target is another state than the source, as a fault of the build would make it.
        let mut changes = contents(50);
        let account = changes.accounts.get_mut(&altered).unwrap();
        account.slots.get_mut(&U256::ZERO).unwrap().new = U256::from(7);
        account.slots.remove(&U256::from(1));
        changes.accounts.remove(&lacking);
        let new = changes.accounts.get_mut(&richer).unwrap().new.as_mut();
        new.unwrap().balance += U256::ONE;
        let surplus = Address::repeat_byte(9);
        let change = AccountChange {
            new: Some(plain(1, 1)),
            ..AccountChange::default()
        };
        changes.accounts.insert(surplus, change);
        let mut target = empty(to);
        let computed = target.compute(&changes).unwrap();
        target.commit(&block(5), computed).unwrap();

        let folder = tempfile::tempdir().unwrap();
        let then = head(&source);
        let run = Run {
            folder: folder.path(),
            root: None,
            looks: u64::MAX,
        };
        // Sorted first, for trees of another order.
        let failed = Run {
            root: Some(B256::ZERO),
            ..run
        };
        let _ = failed.run(Source::State(&then), &mut empty(to));
        let mut job = Job::read(folder.path()).unwrap().unwrap();
        job.reach(Stage::Verify, folder.path()).unwrap();
        // What that run has compared was another target.
        let files = Job::folder(folder.path());
        std::fs::remove_file(files.join("verified")).unwrap();
        std::fs::remove_file(files.join("verified-done")).unwrap();
        let found = run
            .run(Source::State(&then), &mut target)
            .unwrap()
            .comparison;
        let account = |address| {
            let account = source.account(address).unwrap();
            account.unwrap()
        };
        let value = |slot: u64| contents(50).accounts[&altered].slots[&U256::from(slot)].new;
        let slot = |slot: u64, target| Difference::Slot {
            address: altered,
            slot: U256::from(slot),
            source: value(slot),
            target,
        };
        let expected = [
            slot(0, U256::from(7)),
            slot(1, U256::ZERO),
            Difference::AccountMissing(lacking),
            Difference::AccountSurplus(surplus),
            Difference::Account {
                address: richer,
                source: account(richer),
                target: Account {
                    balance: account(richer).balance + U256::ONE,
                    ..account(richer)
                },
            },
        ];
        assert_eq!(found.difference_count, 5);
        for difference in expected {
            assert!(found.differences.contains(&difference), "{difference}");
        }
    }
}
