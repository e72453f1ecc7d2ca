//! Kills at random moments. Every reopening must find a whole database at a version that was flushed, and not
//! further back than the flush budget allows.
//!
//! `ARBOR_KILLS` says how many (default: few), `ARBOR_SEED` which: `just kills 100`. The moments come from the
//! seed, but what the process does at them depends on the machine too.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::crashes::chain::{Chain, HISTORY_PROOFS, PLAIN, Random, number};

/// Kills of an ordinary test run.
const FEW: u64 = 8;

/// Makes a replay tell what is not flushed.
const LOG: &str = "off,arbor_chain=debug";

/// Flush budgets: flushes through the journal every few blocks, rarer ones, and bulk ingestions.
const BUDGETS: [u64; 3] = [16 << 10, 256 << 10, 3 << 20];

#[test]
fn a_killed_process_leaves_a_whole_database_on_fjall() {
    kill_often("fjall", "mpt", PLAIN);
}

#[test]
fn a_killed_process_leaves_a_whole_database_on_fjall_with_old_nodes() {
    kill_often("fjall", "mpt", HISTORY_PROOFS);
}

#[test]
fn a_killed_process_leaves_a_whole_database_on_fjall_under_ar16mt() {
    kill_often("fjall", "ar16mt", PLAIN);
}

#[test]
fn a_killed_process_leaves_a_whole_database_on_fjall_under_verkle() {
    kill_often("fjall", "verkle", PLAIN);
}

/// Blocks whose roots are computed together have their nodes with the last of them.
#[test]
fn a_killed_process_leaves_a_whole_database_on_fjall_under_verkle_with_old_nodes() {
    kill_often("fjall", "verkle", HISTORY_PROOFS);
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_killed_process_leaves_a_whole_database_on_rocksdb() {
    kill_often("rocksdb", "mpt", PLAIN);
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_killed_process_leaves_a_whole_database_on_rocksdb_with_old_nodes() {
    kill_often("rocksdb", "mpt", HISTORY_PROOFS);
}

/// What a killed process had told of itself.
#[derive(Default)]
struct Told {
    /// The last block it applied.
    block: Option<u64>,
    /// The most bytes that were not flushed after any block.
    unflushed: u64,
    /// The most bytes that one block added, as far as no flush ended meanwhile.
    largest: u64,
    /// Whether it ended before it could be killed.
    ended: bool,
}

struct Harness<'a> {
    chain: &'a Chain,
    store: &'a str,
    random: Random,
    /// No block has more bytes.
    largest: u64,
    db: String,
    /// The block at which the database was last found.
    stands: Option<u64>,
    kills: u64,
    lost: Vec<u64>,
    kinds: [u64; 6],
}

fn kill_often(store: &str, tree: &'static str, flags: &'static [&'static str]) {
    let wanted = number("ARBOR_KILLS").unwrap_or(FEW);
    let chain = Chain::under(tree, if wanted > FEW { 400 } else { 120 }, 30).with_flags(flags);
    let mut harness = Harness {
        chain: &chain,
        store,
        random: Random::from_environment("kills"),
        largest: largest_block(&chain),
        db: String::new(),
        stands: None,
        kills: 0,
        lost: Vec::new(),
        kinds: [0; 6],
    };
    let mut rounds = 0;
    while harness.kills < wanted {
        harness.db = format!("db{rounds}");
        harness.stands = None;
        harness.round(wanted);
        std::fs::remove_dir_all(chain.path(&harness.db)).expect("removed");
        rounds += 1;
    }
    harness.lost.sort_unstable();
    let (lost, kinds) = (&harness.lost, harness.kinds);
    let [replays, openings, rollbacks, prunes, creations, old_nodes] = kinds;
    println!(
        "kills: {} in {rounds} databases of {tree} on {store}: {replays} replays, {creations} before the first flush, \
         {openings} at opening, {rollbacks} rollbacks, {prunes} prunes, {old_nodes} while old nodes were made or dropped; \
         blocks lost by a kill: median {}, most {}; no reopening failed",
        harness.kills,
        lost.get(lost.len() / 2).unwrap_or(&0),
        lost.last().unwrap_or(&0),
    );
}

/// The most bytes that are not flushed where each block's flush begins with the next one: a block's, or two blocks'.
fn largest_block(chain: &Chain) -> u64 {
    let run = chain
        .command(&["replay", "--db", "each", "--tree", chain.tree])
        .args(chain.memory)
        .args(["--write-back", "1", "chain"])
        .env("RUST_LOG", LOG)
        .output()
        .expect("the binary runs");
    assert!(run.status.success());
    listen(String::from_utf8_lossy(&run.stderr).lines()).unflushed
}

impl Harness<'_> {
    /// Fills a database, killing on the way, and compares it with the undisturbed one at the end.
    fn round(&mut self, wanted: u64) {
        let budget = BUDGETS[self.random.below(3) as usize];
        // So that a database sees some ten kills on its way; more where a flush takes longer to come.
        let least = self.chain.replay.as_millis() as u64 / 5 + 20;
        let mut span = least;
        while self.kills < wanted {
            let stood = self.stands;
            let old_nodes = self.chain.keeps_old_nodes() && self.stands.is_some();
            match self.random.below(8 + 2 * u64::from(old_nodes)) {
                0 if self.stands.is_some() => self.kill_at_opening(),
                1 if self.stands.is_some_and(|block| block > 8) => self.kill_rollback(),
                2 if self.stands.is_some_and(|block| block > 8) => self.kill_prune(),
                3 if old_nodes => self.kill_old_nodes(),
                _ => {
                    if self.kill_replay(budget, span) {
                        break;
                    }
                    span = if self.stands > stood { least } else { 2 * span };
                }
            }
        }
        let db = self.db.clone();
        let words = ["replay", "--db", &db, "--store", self.store];
        let tree = ["--tree", self.chain.tree, "chain"];
        let words = [&words[..], &self.chain.memory, self.chain.flags, &tree].concat();
        self.chain.run(&words).ok();
        if self.chain.keeps_old_nodes() {
            self.chain.run(&["history-proofs", "--db", &db]).ok();
        }
        let standing = self.chain.assert_whole(&db, "at the end");
        assert_eq!(standing.block, self.chain.last());
        let status = self.chain.run(&["status", "--db", &db, "--json"]);
        let status = status.ok().json();
        if self.chain.keeps_old_nodes() {
            let [kept, retained] = ["oldNodes", "retained"].map(|what| &status[what]["oldest"]);
            assert_eq!(kept, retained);
        }
    }

    /// Kills a replay; `true` if it had reached the chain's end.
    fn kill_replay(&mut self, budget: u64, span: u64) -> bool {
        let (db, budget_text) = (self.db.clone(), budget.to_string());
        let words = ["replay", "--db", &db, "--store", self.store];
        let words = [&words[..], &["--tree", self.chain.tree]].concat();
        // Now and then with one root for many blocks, of which there are no versions then; only where headers have the roots.
        let (kept, together): (&[&str], _) = match self.random.below(4) {
            0 if self.chain.tree == "mpt" => (&["--retain", "4", "--verify", "last"], 64),
            _ => (&["--retain", "all"], 1),
        };
        let rest = ["--write-back", &budget_text, "chain"];
        let flags = self.chain.flags;
        let words = [&words[..], &self.chain.memory, flags, kept, &rest].concat();
        let told = self.kill(&words, span);
        let place = format!("after kill {} of a replay with budget {budget}", self.kills);
        // One flush may be under way while the next one's data gather.
        let bound = 2 * (budget + told.largest.max(together * self.largest));
        assert!(
            told.unflushed <= bound,
            "{place}: {} bytes were not flushed, at most {bound} may be",
            told.unflushed
        );
        let flushed = self.chain.standing(&db);
        // A HEAD that says nothing may last for several kills, with a store ahead of it.
        if flushed.is_none() && self.stands.is_none() && self.never_flushed() {
            self.kinds[4] += 1;
            return told.ended;
        }
        let found = self.chain.assert_whole(&db, &place).block;
        assert!(
            flushed.is_none_or(|flushed| flushed.block <= found),
            "{place}: {flushed:?} was durable, {found} is found"
        );
        assert!(
            self.stands.is_none_or(|before| before <= found),
            "{place}: was at {:?}, is at {found}",
            self.stands
        );
        if let Some(applied) = told.block
            && !told.ended
        {
            self.lost.push(applied.saturating_sub(found));
        }
        self.stands = Some(found);
        self.kinds[0] += 1;
        told.ended
    }

    /// Whether a killed creation left nothing yet; then every command says so, and a replay begins anew.
    fn never_flushed(&mut self) -> bool {
        let verify = self.chain.run(&["verify", "--db", &self.db]);
        if verify.0.status.success() {
            // The store was ahead of a HEAD that said nothing yet.
            return false;
        }
        // Between HEAD and the genesis beside it the folder lacks the latter.
        let told = verify.fails_with(&[]).stderr();
        let says = |words: &str| told.contains(words);
        assert!(
            says("database") || says("genesis.json is missing"),
            "{told}"
        );
        true
    }

    /// Kills a command that opens the database, soon.
    fn kill_at_opening(&mut self) {
        let db = self.db.clone();
        let words: [&[&str]; 3] = [
            &["verify", "--db", &db],
            &["dump", "--db", &db],
            &["replay", "--db", &db, "chain", "--to", "0"],
        ];
        let chosen = self.random.below(3) as usize;
        self.kill(words[chosen], 25);
        self.stays(&format!(
            "after kill {} of {}",
            self.kills,
            words[chosen].join(" ")
        ));
        self.kinds[1] += 1;
    }

    fn kill_rollback(&mut self) {
        let (db, before) = (self.db.clone(), self.stands.expect("a block"));
        let to = before - 1 - self.random.below(8);
        self.kill(&["rollback", "--db", &db, "--to", &to.to_string()], 60);
        let place = format!(
            "after kill {} of a rollback from {before} to {to}",
            self.kills
        );
        let found = self.chain.assert_whole(&db, &place).block;
        // Or it could not be done, since that version was pruned.
        assert!(found == before || found == to, "{place}: {found}");
        self.stands = Some(found);
        self.kinds[2] += 1;
    }

    fn kill_prune(&mut self) {
        let (db, keep) = (self.db.clone(), self.random.below(6).to_string());
        self.kill(&["prune", "--db", &db, "--retain", &keep], 60);
        self.stays(&format!("after kill {} of a prune to {keep}", self.kills));
        self.kinds[3] += 1;
    }

    /// Kills the command that makes old nodes, or the one that drops them; mostly there is something to do.
    fn kill_old_nodes(&mut self) {
        let db = self.db.clone();
        let make = ["history-proofs", "--db", &db];
        let drop = [&make[..], &["--drop"]].concat();
        let (before, killed) = match self.random.below(2) {
            0 => (&drop[..], &make[..]),
            _ => (&make[..], &drop[..]),
        };
        self.chain.run(before).ok();
        self.kill(killed, 60);
        self.stays(&format!(
            "after kill {} of {}",
            self.kills,
            killed.join(" ")
        ));
        self.kinds[5] += 1;
    }

    fn stays(&self, place: &str) {
        let found = self.chain.assert_whole(&self.db, place).block;
        assert_eq!(Some(found), self.stands, "{place}");
    }

    /// Starts a command and kills it at a moment of the first `span` milliseconds.
    fn kill(&mut self, words: &[&str], span: u64) -> Told {
        let moment = Duration::from_micros(self.random.below(1_000 * span));
        let start = Instant::now();
        let mut child = self
            .chain
            .command(words)
            .env("RUST_LOG", LOG)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let listener = std::thread::spawn(move || listen(lines.map_while(Result::ok)));
        std::thread::sleep(moment.saturating_sub(start.elapsed()));
        let ended = child.try_wait().expect("waited for").is_some();
        child.kill().expect("killed");
        child.wait().expect("waited for");
        self.kills += u64::from(!ended);
        Told {
            ended,
            ..listener.join().expect("listened")
        }
    }
}

/// Takes in lines such as `... block 7: 1234 bytes not flushed`.
fn listen(lines: impl Iterator<Item = impl AsRef<str>>) -> Told {
    let (mut told, mut before) = (Told::default(), 0);
    for line in lines {
        let line = line.as_ref();
        assert!(!line.contains("panicked"), "{line}");
        let Some(bytes) = line.strip_suffix(" bytes not flushed") else {
            continue;
        };
        let Some((block, bytes)) = bytes.rsplit_once(": ") else {
            continue;
        };
        let block = block
            .rsplit(' ')
            .next()
            .and_then(|block| block.parse().ok());
        let bytes: u64 = bytes.parse().expect("a number");
        told.block = block.or(told.block);
        told.unflushed = told.unflushed.max(bytes);
        told.largest = told.largest.max(bytes.saturating_sub(before));
        before = bytes;
    }
    told
}
