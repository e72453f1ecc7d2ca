//! The chain that the tests here replay, and the undisturbed replay of it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::B256;
use arbor_chain::source::open_sources;
use serde_json::Value;

use crate::support::{Folder, Run, roots};

/// How long any command may take before it counts as stuck.
const STUCK: Duration = Duration::from_secs(120);

/// Flags of replays that keep no old nodes.
pub(crate) const PLAIN: &[&str] = &[];
/// Flags of replays that keep old nodes.
pub(crate) const HISTORY_PROOFS: &[&str] = &["--history-proofs"];
/// Flags of replays that move to another tree, and keep both.
pub(crate) const MOVING: &[&str] = &[
    "--convert-to",
    "eip8297",
    "--at",
    "4",
    "--stride",
    "20",
    "--retain",
    "all",
];

/// A generated chain, and a database with all its history and without old nodes.
pub(crate) struct Chain {
    pub(crate) folder: Folder,
    /// The tree of all databases here.
    pub(crate) tree: &'static str,
    /// Memory of commands that compute roots: under a Verkle tree what leaves room for small tables, lest most kills find them being made.
    pub(crate) memory: [&'static str; 2],
    /// Further flags of the replays of a test.
    pub(crate) flags: &'static [&'static str],
    /// An account of the first block.
    account: String,
    /// Hash and root of each block.
    pub(crate) blocks: Vec<(B256, B256)>,
    /// How long the undisturbed replay took.
    pub(crate) replay: Duration,
}

/// Where a database stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Standing {
    pub(crate) block: u64,
    pub(crate) root: B256,
}

impl Chain {
    /// Generates a chain of so many blocks and transactions in each, and replays it into `whole`, a Merkle-Patricia database.
    pub(crate) fn new(blocks: u64, transactions: u64) -> Self {
        Self::under("mpt", blocks, transactions)
    }

    /// The same with another tree.
    pub(crate) fn under(tree: &'static str, blocks: u64, transactions: u64) -> Self {
        let folder = Folder::new();
        let (blocks, transactions) = (blocks.to_string(), transactions.to_string());
        let settings = [
            "--blocks",
            &blocks,
            "--txs",
            &transactions,
            "--gas-limit",
            "20000000",
        ];
        let words = ["generate", "--preset", "tiny", "--out", "chain"];
        folder.run(&[&words[..], &settings].concat()).ok();
        let start = Instant::now();
        let words = ["replay", "--db", "whole", "--tree", tree, "--retain", "all"];
        let memory = match tree {
            "verkle" => ["--memory", "64MiB"],
            _ => ["--memory", "2GiB"],
        };
        folder.run(&[&words[..], &memory, &["chain"]].concat()).ok();
        let replay = start.elapsed();
        let mut input = open_sources(&[folder.path("chain")]).expect("the chain opens");
        let mut headers = Vec::new();
        while let Some(block) = input.next_raw().expect("the chain reads") {
            headers.push((block.hash, block.header.state_root));
        }
        if tree != "mpt" {
            let lines = roots(&folder, "whole");
            for ((number, line), (_, root)) in lines.iter().enumerate().zip(&mut headers) {
                let (block, of_tree) = line.split_once(' ').expect("two words");
                assert_eq!(block, number.to_string());
                *root = of_tree.parse().expect("a root");
            }
            assert_eq!(lines.len(), headers.len());
        }
        let genesis = std::fs::read(folder.path("chain/genesis.json")).expect("a genesis");
        let genesis: Value = serde_json::from_slice(&genesis).expect("JSON");
        let mut accounts = genesis["alloc"].as_object().expect("accounts").keys();
        let account = accounts.next().expect("an account");
        Self {
            account: format!("0x{}", account.trim_start_matches("0x")),
            folder,
            tree,
            memory,
            flags: PLAIN,
            blocks: headers,
            replay,
        }
    }

    /// The same, with further flags of replays.
    pub(crate) fn with_flags(self, flags: &'static [&'static str]) -> Self {
        Self { flags, ..self }
    }

    /// An account of the first block.
    pub(crate) fn account(&self) -> &str {
        &self.account
    }

    /// Whether replays keep old nodes.
    pub(crate) fn keeps_old_nodes(&self) -> bool {
        self.flags == HISTORY_PROOFS
    }

    /// A replay into a database.
    pub(crate) fn replay_into<'a>(&self, db: &'a str, words: &[&'a str]) -> Vec<&'a str> {
        let begin = ["replay", "--db", db, "--tree", self.tree];
        [&begin[..], self.flags, words, &self.memory, &["chain"]].concat()
    }

    pub(crate) fn last(&self) -> u64 {
        self.blocks.len() as u64 - 1
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_arbor"));
        command.args(words).current_dir(self.folder.0.path());
        command
    }

    /// Runs a command to its end, which must come.
    pub(crate) fn run(&self, words: &[&str]) -> Run {
        let child = self
            .command(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.expect("the binary runs");
        let (id, start) = (child.id(), Instant::now());
        let (done, watched) = std::sync::mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            let stuck =
                watched.recv_timeout(STUCK) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
            if stuck {
                // The process is not waited for until it ends, so that its number is still its own.
                let _ = Command::new("kill").args(["-9", &id.to_string()]).status();
            }
            stuck
        });
        let output = child.wait_with_output().expect("waited for");
        drop(done);
        assert!(
            !watch.join().expect("the watch ends"),
            "stuck after {:?}: arbor {}",
            start.elapsed(),
            words.join(" ")
        );
        Run(output)
    }

    /// Where a database stands by its HEAD, which a kill may have kept from following the store; `None` before
    /// anything was flushed.
    pub(crate) fn standing(&self, db: &str) -> Option<Standing> {
        let run = self.run(&["status", "--db", db, "--json"]);
        if !run.0.status.success() {
            run.fails_with(&[]);
            return None;
        }
        let status = run.json();
        let hash =
            |value: &Value| -> B256 { value.as_str().expect("a hash").parse().expect("a hash") };
        let standing = Standing {
            block: status["block"].as_u64().expect("a block"),
            root: hash(&status["stateRoot"]),
        };
        if status["moving"] != Value::Null {
            // Its roots are in no header, and no other tree's.
            return Some(standing);
        }
        let found = (hash(&status["blockHash"]), standing.root);
        assert_eq!(found, self.blocks[standing.block as usize], "{db}");
        Some(standing)
    }

    /// Asserts that a database is at a block of this chain, whole, and has the very contents that the
    /// undisturbed replay had at that block.
    pub(crate) fn assert_whole(&self, db: &str, place: &str) -> Standing {
        let verify = self.run(&[&["verify", "--db", db][..], &self.memory].concat());
        let text = verify.stdout();
        assert!(
            verify.0.status.success(),
            "{place}: {text}{}",
            verify.stderr()
        );
        let after = |words: &str| {
            let (_, after) = text.split_once(words).expect("it says where it stands");
            after.lines().next().unwrap_or_default()
        };
        let standing = Standing {
            block: after(" at block ").parse().expect("a number"),
            root: root_of(&text),
        };
        let (_, root) = self.blocks[standing.block as usize];
        assert_eq!(standing.root, root, "{place}: block {}", standing.block);
        let block = standing.block.to_string();
        let wanted = self.run(&["dump", "--db", "whole", "--at", &block]);
        let found = self.run(&["dump", "--db", db]);
        assert!(
            wanted.ok().0.stdout == found.ok().0.stdout,
            "{place}: contents differ at block {block}"
        );
        self.assert_old_proofs(db, place);
        standing
    }

    /// Asserts that proofs are those of the undisturbed database at the oldest block of which old nodes are kept, if they are. Returns the block.
    pub(crate) fn assert_old_proofs(&self, db: &str, place: &str) -> Option<u64> {
        let status = self.run(&["status", "--db", db, "--json"]).ok().json();
        let block = status["oldNodes"]["oldest"].as_u64()?;
        let at = block.to_string();
        let absent = "0x00000000000000000000000000000000000abcde";
        for account in [&self.account, absent] {
            let [wanted, found] = ["whole", db]
                .map(|db| self.run(&["prove", "--db", db, "--at", &at, account, "0x0", "0x1"]));
            assert!(
                wanted.ok().0.stdout == found.ok().0.stdout,
                "{place}: the proof of {account} differs at block {block}"
            );
        }
        Some(block)
    }

    /// Asserts that a database has both trees, the contents and the roots of an undisturbed one that moved. It stands at the chain's end.
    pub(crate) fn assert_moved(&self, db: &str, place: &str) {
        if !self.path("moved").exists() {
            let words = ["replay", "--db", "moved", "--tree", self.tree];
            self.run(&[&words[..], MOVING, &["chain"]].concat()).ok();
        }
        self.run(&["verify", "--db", db]).ok();
        let [wanted, found] = ["moved", db].map(|db| {
            let status = self.run(&["status", "--db", db, "--json"]).ok().json();
            let dump = self.run(&["dump", "--db", db]).ok().0.stdout.clone();
            let fields = ["tree", "block", "stateRoot", "retained", "moving"];
            (fields.map(|field| status[field].clone()), dump)
        });
        assert_eq!(wanted.0, found.0, "{place}");
        assert_ne!(found.0[4], Value::Null, "{place}");
        assert!(wanted.1 == found.1, "{place}: contents differ");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }
}

/// The root that `verify` says that everything agrees with: the state root where headers have it.
fn root_of(text: &str) -> B256 {
    let (_, agrees) = text.split_once(" agrees with ").expect("it agrees");
    let (_, root) = agrees.split_once("root ").expect("with a root");
    root[..66].parse().expect("a hash")
}

/// Numbers from a seed: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The seed of `ARBOR_SEED`, else one from the clock; printed, so that a failure can be repeated.
    pub(crate) fn from_environment(what: &str) -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let clock = clock.expect("the clock is right").as_micros() as u64;
        let seed = number("ARBOR_SEED").unwrap_or(clock);
        println!("{what}: ARBOR_SEED={seed}");
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A number from the environment.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is not a number")),
    )
}
