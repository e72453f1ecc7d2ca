//! Backups of a database: while it is written, killed, without room, and of a damaged one.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use arbor_store::{Reader, Store, Table, Write};
use arbor_store_fjall::FjallStore;

use crate::crashes::chain::{Chain, HISTORY_PROOFS, PLAIN, Random};
use crate::crashes::disk::{MOUNTS, script, tmpfs_works};

const COPY: [&str; 5] = ["backup", "--db", "db", "--to", "copy"];

/// Whatever a backup left, nothing of it may look like a database.
fn assert_absent(chain: &Chain, place: &str) {
    assert!(!chain.path("copy").exists(), "{place}");
    chain
        .run(&["status", "--db", "copy.unfinished"])
        .fails_with(&[]);
}

/// Each copy is whole and at a block that was flushed, the writer goes on, and so does a replay
/// over the copy.
#[test]
fn a_database_is_backed_up_while_a_replay_writes_it() {
    for (tree, flags) in [("mpt", HISTORY_PROOFS), ("ar16mt", PLAIN)] {
        let chain = Chain::under(tree, 150, 30).with_flags(flags);
        let replay = |db, store| {
            let words = ["replay", "--db", db, "--store", store, "--tree", tree];
            let rest = ["--retain", "all", "--write-back", "40kB", "chain"];
            [&words[..], flags, &rest].concat()
        };
        let mut writer = chain
            .command(&replay("db", "fjall"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        while chain.standing("db").is_none() {
            thread::sleep(Duration::from_millis(5));
        }
        let mut beside = 0;
        let mut last = 0;
        loop {
            let is_writing = writer.try_wait().expect("waited for").is_none();
            let run = chain.run(&[&COPY[..], &["--json"]].concat());
            let made = run.ok().json();
            let standing = chain.assert_whole("copy", "beside a replay");
            assert_eq!(made["block"], standing.block);
            assert_eq!(made["root"], standing.root.to_string());
            assert!(standing.block >= last);
            last = standing.block;
            beside += u64::from(is_writing);
            if !is_writing {
                break;
            }
            chain.run(&replay("copy", "fjall")).ok();
            let standing = chain.assert_whole("copy", "replayed");
            assert_eq!(standing.block, chain.last());
            fs::remove_dir_all(chain.path("copy")).expect("removed");
        }
        assert!(beside > 0, "no backup was made while the replay ran");
        assert!(writer.wait().expect("waited for").success());
        assert_eq!(last, chain.last());
        let remembered = |db: &str, name: &str| fs::read(chain.path(db).join(name)).ok();
        for name in ["genesis.json", "retain", "rules", "tree-settings"] {
            assert_eq!(remembered("copy", name), remembered("db", name), "{name}");
        }
        println!("{beside} backups beside a replay under {tree}");
    }
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_rocksdb_database_is_backed_up() {
    let chain = Chain::new(60, 20);
    let replay = [
        "replay", "--db", "db", "--store", "rocksdb", "--to", "50", "chain",
    ];
    chain.run(&replay).ok();
    chain.run(&COPY).ok();
    chain.run(&["replay", "--db", "copy", "chain"]).ok();
    assert_eq!(chain.assert_whole("copy", "rocksdb").block, chain.last());
}

/// A kill at any moment leaves no folder of the target's name, or the whole copy. A command takes the
/// unfinished folder for a database only if that is whole. The next backup is not disturbed.
#[test]
fn a_killed_backup_leaves_no_folder_that_looks_whole() {
    let chain = Chain::new(120, 30);
    fs::rename(chain.path("whole"), chain.path("db")).expect("renamed");
    let start = std::time::Instant::now();
    chain.run(&COPY).ok();
    let span = start.elapsed().as_micros() as u64;
    fs::rename(chain.path("db"), chain.path("whole")).expect("renamed");
    assert_eq!(
        chain.assert_whole("copy", "undisturbed").block,
        chain.last()
    );
    fs::remove_dir_all(chain.path("copy")).expect("removed");
    fs::rename(chain.path("whole"), chain.path("db")).expect("renamed");
    let mut random = Random::from_environment("killed backups");
    let mut killed = 0;
    for round in 0..12 {
        let mut backup = chain
            .command(&COPY)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        thread::sleep(Duration::from_micros(random.below(span + span / 8)));
        backup.kill().expect("killed");
        let ended = backup.wait().expect("waited for").success();
        if ended || chain.path("copy").exists() {
            // It was renamed, so it was whole.
            chain.run(&["verify", "--db", "copy"]).ok();
            fs::remove_dir_all(chain.path("copy")).expect("removed");
            continue;
        }
        killed += 1;
        let status = chain.run(&["status", "--db", "copy.unfinished"]);
        match status.0.status.success() {
            // Killed between the last step of the copy, which is its HEAD, and the new name.
            true => drop(chain.run(&["verify", "--db", "copy.unfinished"]).ok()),
            false => assert_absent(&chain, &format!("after kill {round}")),
        }
    }
    println!("{killed} of 12 backups were killed before they ended");
    chain.run(&COPY).ok();
    assert!(!chain.path("copy.unfinished").exists());
    fs::rename(chain.path("db"), chain.path("whole")).expect("renamed");
    assert_eq!(
        chain.assert_whole("copy", "after kills").block,
        chain.last()
    );
}

#[test]
fn wrong_backups_are_errors_and_leave_nothing() {
    let chain = Chain::new(20, 10);
    fs::rename(chain.path("whole"), chain.path("db")).expect("renamed");
    let to = |to| ["backup", "--db", "db", "--to", to];
    chain.run(&to("db")).fails_with(&["the database's own"]);
    fs::create_dir(chain.path("there")).expect("made");
    let words = ["there exists already", "does not exist yet"];
    chain.run(&to("there")).fails_with(&words);
    fs::write(chain.path("file"), "text").expect("written");
    chain.run(&to("file")).fails_with(&["file exists already"]);
    chain.run(&to("file/copy")).fails_with(&["file/copy"]);
    chain
        .run(&["backup", "--db", "none", "--to", "copy"])
        .fails_with(&["none"]);
    assert_absent(&chain, "without a source");
    assert!(!chain.path("copy.unfinished").exists());
    chain.run(&to("db/copy")).fails_with(&["inside db"]);

    // Files that no backup has made stay.
    fs::create_dir(chain.path("copy.unfinished")).expect("made");
    fs::write(chain.path("copy.unfinished/notes"), "precious").expect("written");
    let words = ["copy.unfinished/notes", "move it away"];
    chain.run(&COPY).fails_with(&words);
    let notes = fs::read_to_string(chain.path("copy.unfinished/notes"));
    assert_eq!(notes.expect("it is there"), "precious");
    fs::remove_dir_all(chain.path("copy.unfinished")).expect("removed");

    // Of several at once one makes the copy.
    let mut backups = Vec::new();
    for _ in 0..4 {
        let mut command = chain.command(&COPY);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        backups.push(command.spawn().expect("the binary runs"));
    }
    let ended = backups
        .iter_mut()
        .map(|backup| backup.wait().expect("waited for").success());
    assert_eq!(ended.filter(|ended| *ended).count(), 1);
    chain.run(&["verify", "--db", "copy"]).ok();
    fs::remove_dir_all(chain.path("copy")).expect("removed");
    assert!(!chain.path("copy.unfinished").exists());

    // A record that nobody but the check would miss.
    let store = FjallStore::open(&chain.path("db/fjall"), &Default::default()).expect("opened");
    let nodes = Table(3);
    let first = store.scan(nodes, &[], &[]).expect("scanned").next();
    let (key, value) = first.expect("a node").expect("read");
    let mut damaged = value.to_vec();
    damaged[0] ^= 1;
    let write = |value: &[u8]| store.write(&[Write::put(nodes, &key, value)], true);
    write(&damaged).expect("written");
    drop(store);
    let run = chain.run(&COPY);
    run.fails_with(&["fault: ", "has the faults of its source", "is damaged"]);
    assert_absent(&chain, "of a damaged source");
    assert!(!chain.path("copy.unfinished").exists());
    let store = FjallStore::open(&chain.path("db/fjall"), &Default::default()).expect("opened");
    store
        .write(&[Write::put(nodes, &key, &value)], true)
        .expect("written");
    drop(store);
    chain.run(&COPY).ok();
}

#[test]
fn a_full_disk_is_an_error_and_leaves_room() {
    if !tmpfs_works("a_full_disk_is_an_error_and_leaves_room") {
        return;
    }
    let chain = Chain::new(120, 30);
    for kilobytes in [40, 400, 900] {
        let run = script(
            &chain.folder,
            &MOUNTS,
            &format!(
                "mkdir -p small && mount -t tmpfs -o size={kilobytes}k none small || exit 99
                 timeout 100 $ARBOR backup --db whole --to small/copy 2>err.txt; echo $? >code.txt
                 ls -A small >left.txt"
            ),
        );
        let place = format!("{kilobytes} kB");
        run.ok();
        let read = |name| fs::read_to_string(chain.path(name)).expect("written");
        let (said, left) = (read("err.txt"), read("left.txt"));
        assert_eq!(read("code.txt").trim(), "1", "{place}: {said}");
        assert!(
            said.to_lowercase().contains("no space left"),
            "{place}: {said}"
        );
        assert!(!said.contains("panicked"), "{place}: {said}");
        assert_eq!(left.trim(), "", "{place}");
    }
}
