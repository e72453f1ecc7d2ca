//! Dumps of hashed keys, whose names come from files.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::trees::{block, empty, plain, trees};
use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};
use arbor_convert::{
    Conversion, ConvertError, Dump, HashedSource, Hooks, Job, Preimages, Source, SourceBlock,
    Stage, WrittenForm,
};
use arbor_state::{AccountChange, Historical, SlotChange, State, StateChanges, StateError};
use serde_json::json;

fn state(accounts: u64) -> State {
    let code = Bytes::from_static(b"\x60\x01");
    let mut changes = StateChanges::default();
    for number in 0..accounts {
        let mut new = plain(number, number);
        if number % 3 == 0 {
            new.code_hash = keccak256(&code);
        }
        // Many accounts have slots with the same numbers.
        let slots = (0..number % 5).map(|slot| {
            let (old, new) = (U256::ZERO, U256::from(slot + number + 1));
            (U256::from(slot * 100), SlotChange { old, new })
        });
        let change = AccountChange {
            new: Some(new),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        let address = Address::from_word(keccak256(number.to_be_bytes()));
        changes.accounts.insert(address, change);
    }
    changes.codes.insert(keccak256(&code), code);
    let mut state = empty(&trees()[0]);
    let computed = state.compute(&changes).unwrap();
    state.commit(&block(5), computed).unwrap();
    state
}

fn head(state: &State) -> Historical<'_> {
    state.at(state.head().unwrap().version).unwrap()
}

fn dump(state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    head(state)
        .dump(|account| {
            lines.push(serde_json::to_string(&account).unwrap());
            Ok::<(), StateError>(())
        })
        .unwrap();
    lines.sort();
    lines
}

/// Writes a dump as `geth snapshot dump` does.
fn write_hashed(state: &State, path: &Path) -> B256 {
    let root = state.reader().flat_root().unwrap();
    let mut lines = vec![json!({ "root": root }).to_string()];
    head(state)
        .dump(|account| {
            let slots = account.storage.iter().map(|(slot, value)| {
                let value = hex::decode(value).unwrap();
                let rlp = match value[..] {
                    [byte] if byte < 0x80 => value,
                    _ => [&[0x80 + value.len() as u8], &value[..]].concat(),
                };
                (keccak256(slot).to_string(), json!(hex::encode(rlp)))
            });
            let slots: serde_json::Map<_, _> = slots.collect();
            let line = json!({
                "balance": account.balance,
                "nonce": account.nonce,
                "root": account.root,
                "codeHash": account.code_hash,
                "code": account.code,
                "storage": slots,
                "key": account.key,
            });
            lines.push(line.to_string());
            Ok::<(), StateError>(())
        })
        .unwrap();
    std::fs::write(path, lines.join("\n")).unwrap();
    root
}

/// Calls a work with preimages in a folder for its files.
fn with_preimages<T>(each: impl FnOnce(&Preimages<'_>) -> T) -> T {
    let folder = tempfile::tempdir().unwrap();
    each(&Preimages {
        folder: folder.path(),
        memory: 1 << 20,
        hooks: Hooks {
            progress: &|_, _, _| (),
            stop: &|| false,
        },
    })
}

fn export(state: &State, form: WrittenForm, path: &Path) {
    let mut file = Vec::new();
    with_preimages(|work| work.export(&head(state), form, &mut file)).unwrap();
    std::fs::write(path, file).unwrap();
}

struct Run<'a> {
    folder: &'a Path,
    lines: &'a Path,
    names: PathBuf,
    root: B256,
}

impl Run<'_> {
    fn run(&self, looks: u64, target: &mut State) -> Result<(), ConvertError> {
        let looked = AtomicU64::new(0);
        let mut job = Job {
            source: "a dump".to_owned(),
            target: target.tree().kind().name.to_owned(),
            stage: Stage::Sort,
            command: String::new(),
            block: None,
        };
        job.stage = job.begin(self.folder)?;
        let conversion = Conversion {
            source: Source::Hashed(Dump::open(self.lines)?, vec![self.names.clone()]),
            blocks: vec![SourceBlock {
                block: block(5),
                state_root: Some(self.root),
            }],
            state_root: Some(self.root),
            folder: self.folder,
            memory: 1 << 16,
            hooks: Hooks {
                progress: &|_, _, _| (),
                stop: &|| looked.fetch_add(1, Ordering::Relaxed) >= looks,
            },
        };
        let converted = conversion.run(&mut job, target)?;
        assert!(converted.comparison.is_same());
        Ok(())
    }
}

#[test]
fn a_conversion_goes_on_wherever_it_is_stopped() {
    let source = state(600);
    let files = tempfile::tempdir().unwrap();
    let (lines, names) = (files.path().join("lines"), files.path().join("names"));
    let root = write_hashed(&source, &lines);
    for (tree, form) in trees().into_iter().zip(
        [WrittenForm::Strings, WrittenForm::Eip8347]
            .into_iter()
            .cycle(),
    ) {
        export(&source, form, &names);
        let folder = tempfile::tempdir().unwrap();
        let run = Run {
            folder: folder.path(),
            lines: &lines,
            names: names.clone(),
            root,
        };
        let mut target = empty(&tree);
        let mut stops = 0;
        // A run that did not get past a step would be stopped in it for ever: one of them has 256 looks.
        while let Err(error) = run.run(if stops == 0 { 3 } else { 700 }, &mut target) {
            assert!(matches!(error, ConvertError::Stopped), "{error}");
            stops += 1;
            assert!(stops < 20, "it does not go on");
        }
        assert!(stops > 1, "{stops}");
        assert_eq!(dump(&target), dump(&source), "{}", tree.kind().name);
    }
}

/// Each account's record is to have all of its slots: a number that other accounts' records have does not count.
#[test]
fn a_slot_that_is_listed_for_another_account_alone_has_no_name() {
    let source = state(200);
    let files = tempfile::tempdir().unwrap();
    let names = files.path().join("names");
    export(&source, WrittenForm::Eip8347, &names);
    let audit = || {
        let audit = with_preimages(|work| {
            work.audit(
                HashedSource::State(&head(&source)),
                std::slice::from_ref(&names),
            )
        });
        audit.unwrap()
    };
    assert!(audit().is_complete());
    // Without the last slot of the first record that has one.
    let mut records = std::fs::read(&names).unwrap();
    let mut at = 0;
    let account = loop {
        let slots = u32::from_be_bytes(records[at + 20..at + 24].try_into().unwrap());
        if slots > 0 {
            let end = at + 24 + 32 * slots as usize;
            records[at + 20..at + 24].copy_from_slice(&(slots - 1).to_be_bytes());
            records.drain(end - 32..end);
            break Address::from_slice(&records[at..at + 20]);
        }
        at += 24;
    };
    std::fs::write(&names, records).unwrap();
    let found = audit();
    assert_eq!((found.missing_accounts, found.missing_slots), (0, 1));
    assert_eq!(found.missing[0].address, Some(account));
}
