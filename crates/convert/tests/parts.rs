//! A conversion in parts makes the same tables as a whole one, whatever the number of parts.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::trees::{block, empty, plain, trees};
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_convert::{
    Conversion, ConvertError, Dump, Hooks, Job, Join, Joining, LOADED_TOGETHER, PartConversion,
    PartJob, PartOf, Source, SourceBlock, Stage,
};
use arbor_state::{
    Account, AccountChange, DumpHead, Historical, SlotChange, State, StateChanges, StateError, Tree,
};
use tempfile::TempDir;

fn code(number: u64) -> Bytes {
    match number % 3 {
        0 => Bytes::new(),
        1 => b"\x60\x01".repeat(40).into(),
        _ => b"\x61\x02\x00".repeat(31 * 90).into(),
    }
}

fn state(tree: &Tree, accounts: u64) -> State {
    let mut changes = StateChanges::default();
    for number in 0..accounts {
        let code = code(number);
        let new = Account {
            code_hash: keccak256(&code),
            ..plain(number, number * 1_000)
        };
        changes.codes.insert(new.code_hash, code);
        let slots = [0, 63, 64, 256, 70_000]
            .into_iter()
            .take(number as usize % 6);
        let slots = slots.map(|slot| {
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
    let mut state = empty(tree);
    let computed = state.compute(&changes).unwrap();
    state.commit(&block(5), computed).unwrap();
    state
}

fn head(state: &State) -> Historical<'_> {
    state.at(state.head().unwrap().version).unwrap()
}

fn write_dump(state: &State, path: &Path) {
    let root = state.reader().flat_root().unwrap();
    let mut lines = vec![serde_json::to_string(&DumpHead { root, tree: None }).unwrap()];
    head(state)
        .dump(|account| {
            lines.push(serde_json::to_string(&account).unwrap());
            Ok::<(), StateError>(())
        })
        .unwrap();
    std::fs::write(path, lines.join("\n")).unwrap();
}

/// All records of all tables.
fn tables(state: &State) -> Vec<(u8, Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    for spec in state.tables() {
        let view = state.versions().view();
        for entry in view.scan(spec.table, &[], &[]).unwrap() {
            let (key, value) = entry.unwrap();
            records.push((spec.table.0, key.to_vec(), value.to_vec()));
        }
    }
    records
}

fn blocks(root: B256) -> Vec<SourceBlock> {
    let block = |number| SourceBlock {
        block: block(number),
        state_root: Some(root),
    };
    vec![block(4), block(5)]
}

fn hooks(stop: &(dyn Fn() -> bool + Sync)) -> Hooks<'_> {
    Hooks {
        progress: &|_, done, _| assert!((0.0..=1.0).contains(&done), "{done}"),
        stop,
    }
}

fn job(stage: Stage) -> Job {
    Job {
        source: "a state".to_owned(),
        target: "a tree".to_owned(),
        stage,
        command: String::new(),
        block: None,
    }
}

fn whole(source: Source<'_>, tree: &Tree, root: B256) -> State {
    let folder = tempfile::tempdir().unwrap();
    let (mut job, mut target) = (job(Stage::Sort), empty(tree));
    job.begin(folder.path()).unwrap();
    let conversion = Conversion {
        source,
        blocks: blocks(root),
        state_root: Some(root),
        folder: folder.path(),
        memory: 1 << 16,
        hooks: hooks(&|| false),
    };
    conversion.run(&mut job, &mut target).unwrap();
    target
}

/// A part, which is asked to stop after so many looks.
fn part(
    source: Source<'_>,
    tree: &Tree,
    folder: &Path,
    (part, root, looks): (PartOf, B256, u64),
) -> Result<PartJob, ConvertError> {
    let looked = AtomicU64::new(0);
    let stop = || looked.fetch_add(1, Ordering::Relaxed) >= looks;
    let conversion = PartConversion {
        source,
        build: tree.build().unwrap(),
        order: tree.order(),
        folder,
        memory: 1 << 16,
        hooks: hooks(&stop),
    };
    let job = PartJob {
        state_root: Some(root),
        tree: tree.kind().name.to_owned(),
        ..PartJob::new("a state".to_owned(), "a tree".to_owned(), part)
    };
    Ok(conversion.run(job.with_blocks(&blocks(root)))?.0)
}

/// Joins parts, and loads so many bytes of records together.
fn join(tree: &Tree, parts: &[PathBuf], load_bytes: usize) -> Result<State, ConvertError> {
    let folder = tempfile::tempdir().unwrap();
    let mut target = empty(tree);
    for looks in (1..).step_by(40) {
        let looked = AtomicU64::new(0);
        let mut job = job(Stage::Build);
        job.stage = job.begin(folder.path())?;
        let join = Join::open(parts)?;
        let stop = || looked.fetch_add(1, Ordering::Relaxed) >= looks;
        let joining = Joining {
            join: &join,
            folder: folder.path(),
            load_bytes,
            hooks: hooks(&stop),
        };
        match joining.run(&mut job, &mut target) {
            // As after a kill that came before it was noted that the target is whole.
            Err(ConvertError::Stopped) if target.head().is_some() => {
                job.reach(Stage::Build, folder.path())?;
            }
            Err(ConvertError::Stopped) => {}
            joined => {
                assert!(joined?.comparison.is_same());
                break;
            }
        }
    }
    Ok(target)
}

fn folders(parent: &TempDir, of: u32) -> Vec<PathBuf> {
    let folders = (1..=of).map(|number| parent.path().join(format!("part-{number}")));
    let folders: Vec<PathBuf> = folders.collect();
    folders
        .iter()
        .for_each(|path| std::fs::create_dir_all(path).unwrap());
    folders
}

#[test]
fn any_number_of_parts_makes_the_same_tables() {
    let trees = trees();
    let source = state(&trees[0], 400);
    let root = source.reader().flat_root().unwrap();
    let then = head(&source);
    let parent = tempfile::tempdir().unwrap();
    let lines = parent.path().join("dump");
    write_dump(&source, &lines);
    // The toy tree has no parts.
    let with_parts: Vec<&Tree> = trees.iter().filter(|tree| tree.build().is_some()).collect();
    let rows = arbor_trees::standard();
    assert_eq!(with_parts.len(), rows.rows().count());
    for tree in with_parts {
        let name = tree.kind().name;
        let wanted = tables(&whole(Source::State(&then), tree, root));
        for of in [1, 2, 5] {
            let parent = tempfile::tempdir().unwrap();
            let folders = folders(&parent, of);
            for (number, folder) in (1..).zip(&folders) {
                // A part that is stopped goes on, and a finished one is left as it is.
                let which = PartOf { number, of };
                let open = || match number % 2 {
                    0 => Source::Dump(Dump::open(&lines).unwrap()),
                    _ => Source::State(&then),
                };
                let first = part(open(), tree, folder, (which, root, 5));
                assert!(matches!(first, Err(ConvertError::Stopped)), "{name}");
                let made = part(open(), tree, folder, (which, root, u64::MAX)).unwrap();
                assert_eq!(part(open(), tree, folder, (which, root, 0)).unwrap(), made);
            }
            let mut backwards = folders.clone();
            backwards.reverse();
            // At once, or in pieces of ranges, after each of which the joining may stop.
            let load_bytes = if of == 2 { 4 << 10 } else { LOADED_TOGETHER };
            let joined = join(tree, &backwards, load_bytes).unwrap();
            assert!(tables(&joined) == wanted, "{name} in {of} parts");
        }
    }
}

/// A broken copy between machines.
#[test]
fn leaves_that_a_part_has_lost_are_missed() {
    let trees = trees();
    for tree in trees.iter().filter(|tree| tree.build().is_some()) {
        let source = state(tree, 300);
        let root = source.reader().flat_root().unwrap();
        let then = head(&source);
        for cut in [true, false] {
            let parent = tempfile::tempdir().unwrap();
            let folders = folders(&parent, 2);
            for (folder, number) in folders.iter().zip([1, 2]) {
                let which = (PartOf { number, of: 2 }, root, u64::MAX);
                part(Source::State(&then), tree, folder, which)
                    .map(drop)
                    .unwrap();
            }
            let files = std::fs::read_dir(&folders[1])
                .unwrap()
                .map(|entry| entry.unwrap().path());
            let mut leaves: Vec<PathBuf> = files
                .filter(|path| path.to_string_lossy().contains("leaves-"))
                .collect();
            leaves.sort();
            match cut {
                true => {
                    let file = std::fs::OpenOptions::new()
                        .write(true)
                        .open(&leaves[0])
                        .unwrap();
                    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
                }
                false => std::fs::remove_file(&leaves[0]).unwrap(),
            }
            let joined = join(tree, &folders, LOADED_TOGETHER).err();
            let what = (tree.kind().name, cut, &leaves[0]);
            let error = joined.unwrap_or_else(|| panic!("{what:?} is not missed"));
            let error = error.to_string();
            let folder = folders[1].display().to_string();
            assert!(
                error.contains(&format!(
                    "part 2/2 in {folder}: the files leaves-XX in {folder}"
                )) && error.contains("was cut, or is missing"),
                "{error}"
            );
        }
    }
}

/// Damage of other files than those of leaves named no part, or was found at the end, and named none.
#[test]
fn a_damaged_file_of_a_part_is_named_with_the_part() {
    let trees = trees();
    for tree in trees.iter().filter(|tree| tree.build().is_some()) {
        let source = state(tree, 300);
        let root = source.reader().flat_root().unwrap();
        let then = head(&source);
        let parent = tempfile::tempdir().unwrap();
        let folders = folders(&parent, 2);
        for (folder, number) in folders.iter().zip([1, 2]) {
            let which = (PartOf { number, of: 2 }, root, u64::MAX);
            part(Source::State(&then), tree, folder, which)
                .map(drop)
                .unwrap();
        }
        let check = |number: usize, name: &str, what: &str| {
            let joined = join(tree, &folders, LOADED_TOGETHER).err();
            let of = (tree.kind().name, name, what);
            let error = joined.unwrap_or_else(|| panic!("{of:?} is not missed"));
            let error = error.to_string();
            let folder = folders[number - 1].display();
            let wanted = format!("part {number}/2 in {folder}: ");
            assert!(
                error.contains(&wanted) && error.contains("make it again"),
                "{of:?}: {error}"
            );
        };
        for name in ["records", "part-codes", "ranges", "ranges-done"] {
            let path = folders[1].join(name);
            let whole = std::fs::read(&path).unwrap();
            let mut other = whole.clone();
            *other.last_mut().unwrap() ^= 0x20;
            std::fs::write(&path, other).unwrap();
            check(2, name, "flipped");
            // The first part has the same codes.
            if name != "part-codes" {
                std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
                check(2, name, "cut");
                std::fs::remove_file(&path).unwrap();
                check(2, name, "missing");
            }
            std::fs::write(&path, whole).unwrap();
        }
        let codes = [0, 1].map(|place: usize| folders[place].join("part-codes"));
        let whole = codes.each_ref().map(|path| std::fs::read(path).unwrap());
        codes
            .iter()
            .for_each(|path| std::fs::remove_file(path).unwrap());
        check(1, "part-codes", "missing in all parts");
        for (path, bytes) in codes.iter().zip(whole) {
            std::fs::write(path, bytes).unwrap();
        }
        join(tree, &folders, LOADED_TOGETHER).map(drop).unwrap();
    }
}

/// Bytes of all files in a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap();
    let lengths = entries.map(|entry| entry.unwrap().metadata().unwrap().len());
    lengths.sum()
}

/// Each run that ended before a part of its work was done left the part's frames for ever.
#[test]
fn runs_that_fail_take_no_more_room_than_the_first() {
    let trees = trees();
    let source = state(&trees[0], 1_500);
    let root = source.reader().flat_root().unwrap();
    let parent = tempfile::tempdir().unwrap();
    let lines = parent.path().join("dump");
    write_dump(&source, &lines);
    let dump = std::fs::read_to_string(&lines).unwrap();
    // The only part of the dump ends with a line that is none.
    std::fs::write(&lines, dump + "\n{}").unwrap();
    let mut stuck = 0;
    for tree in trees.iter().filter(|tree| tree.build().is_some()) {
        let name = tree.kind().name;
        let folder = tempfile::tempdir().unwrap();
        let mut room = Vec::new();
        for _ in 0..4 {
            let mut job = job(Stage::Sort);
            job.stage = job.begin(folder.path()).unwrap();
            let conversion = Conversion {
                source: Source::Dump(Dump::open(&lines).unwrap()),
                blocks: blocks(root),
                state_root: Some(root),
                folder: folder.path(),
                memory: 1 << 10,
                hooks: hooks(&|| false),
            };
            let error = conversion.run(&mut job, &mut empty(tree)).unwrap_err();
            assert!(
                matches!(error, ConvertError::Line { .. }),
                "{name}: {error}"
            );
            room.push(bytes(&Job::folder(folder.path())));
        }
        assert_eq!(room, [room[0]; 4], "{name}");
        // A range with very many accounts, which a part is stopped in again and again.
        let own = state(tree, 400);
        let folder = tempfile::tempdir().unwrap();
        let mut before = (u64::MAX, 0);
        for _ in 0..60 {
            let which = (PartOf::whole(), root, 5);
            match part(Source::State(&head(&own)), tree, folder.path(), which) {
                Err(ConvertError::Stopped) => {}
                made => drop(made.unwrap()),
            }
            let lists = ["parts", "ranges-done"].map(|name| folder.path().join(name));
            let lengths = lists.map(|path| std::fs::metadata(path).map_or(0, |list| list.len()));
            let now = (lengths.iter().sum(), bytes(folder.path()));
            if now.0 == before.0 {
                stuck += 1;
                // The number of the run may have one more digit.
                assert!(now.1 <= before.1 + 1, "{name}: {before:?} {now:?}");
            }
            before = now;
        }
    }
    assert!(stuck > 20, "{stuck}");
}
