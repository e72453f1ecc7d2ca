//! The leaves of a state with what each stands for, which `arbor oracle` prints and `arbor diff` compares.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::genesis::Genesis;
use arbor_convert::AccountList;
use arbor_database::{Budget, in_memory};
use arbor_state::recovery::{AccountsFile, EntriesReader, Recovery};
use arbor_state::{AccountSource, Historical, KeptAccount, StateSnapshot, TreeKind};
use arbor_verify::{LeafValues, NamedLeaves, Origin, WholeAccount};
use arbor_versions::Retain;

use crate::database;
use crate::trees::TREES;

/// Bytes for a database that is read once.
const MEMORY: u64 = 64 << 20;

/// A leaf: its value, and what it stands for if that is known.
pub(crate) struct ListedLeaf {
    pub(crate) value: B256,
    pub(crate) of: Option<String>,
}

/// Leaves by their keys.
pub(crate) type LeafList = BTreeMap<Vec<u8>, ListedLeaf>;

/// A tree and its hash function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HashedTree {
    pub(crate) tree: String,
    pub(crate) hash: String,
}

impl HashedTree {
    pub(crate) fn new(tree: &TreeKind, hash: &str) -> Self {
        Self {
            tree: tree.name.to_owned(),
            hash: hash.to_owned(),
        }
    }
}

impl std::fmt::Display for HashedTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.tree, self.hash)
    }
}

/// Where the leaves of a state come from.
pub(crate) enum LeafSource {
    /// Accounts without a history: of a genesis, a dump or a test.
    Accounts(AccountList),
    /// A database, or a snapshot of one: it has a tree and, of some trees, the leaves of what is gone.
    Database(OfDatabase),
}

impl LeafSource {
    /// Reads a file (`-` is standard input), a database or a network's genesis.
    pub(crate) fn read(state: &str) -> Result<Self> {
        let path = Path::new(state);
        let read = || -> Result<Self> {
            match (path.is_dir(), state == "-" || path.exists()) {
                (true, _) => Ok(Self::Database(OfDatabase::open(path)?)),
                (false, true) if path.is_file() && AccountsFile::is_one(path)? => {
                    Ok(Self::Database(OfDatabase::recovered(path)?))
                }
                (false, true) => Ok(Self::Accounts(AccountList::read(path)?)),
                (false, false) => {
                    let text = Genesis::text_of(state)?;
                    Ok(Self::Accounts(AccountList::from_json(text.as_bytes())?))
                }
            }
        };
        read().with_context(|| format!("reading {state}"))
    }
}

/// The latest block of a database, on the disk or in memory.
pub(crate) struct OfDatabase(StateSnapshot);

impl OfDatabase {
    /// Opens the database in a folder.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        Self::new(database::folder(dir).open_to_read(MEMORY)?)
    }

    /// Takes a database that has a block.
    pub(crate) fn new(snapshot: StateSnapshot) -> Result<Self> {
        database::head(snapshot.reader())?;
        Ok(Self(snapshot))
    }

    /// Whether the state moves to another tree, or has moved and keeps the tree before.
    pub(crate) fn moves(&self) -> bool {
        self.0.reader().tree().moves().is_some()
    }

    /// Recovers in memory what a snapshot file has.
    fn recovered(file: &Path) -> Result<Self> {
        let (file, size) = (File::open(file)?, file.metadata()?.len());
        let mut entries = EntriesReader::new(BufReader::new(file), size)?;
        let head = entries.head().clone();
        let budget = Budget {
            retain: Retain::None,
            ..Budget::new(MEMORY)
        };
        let mut state = in_memory(head.tree(&TREES)?, head.network(), budget)?;
        let mut recovery = Recovery::new(&mut state, head)?;
        while let Some(chunk) = entries.next_chunk()? {
            recovery.add(chunk, entries.place())?;
        }
        recovery.finish(entries.place())?;
        Self::new(state.snapshot()?)
    }

    /// The tree, and the hash function that it is made with.
    pub(crate) fn tree(&self) -> (&'static TreeKind, &'static str) {
        let reader = self.0.reader();
        (reader.tree().kind(), reader.tree().hash())
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> B256 {
        self.0.reader().root()
    }

    /// The latest version.
    pub(crate) fn then(&self) -> Result<Historical<'_>> {
        let reader = self.0.reader();
        Ok(reader.at(database::head(reader)?.version)?)
    }

    /// Counts the accounts.
    pub(crate) fn count_accounts(&self) -> Result<usize> {
        let then = self.then()?;
        let mut accounts = then.full_accounts()?;
        Ok(accounts.try_fold(0, |count, account| account.map(|_| count + 1))?)
    }

    /// Returns the leaves of the database's own tree, of which the root follows. A tree that keeps what is gone has
    /// leaves of zeros. `None` if the leaves of the tree have no names.
    ///
    /// # Errors
    /// Leaves that have another root than the database: the database is damaged.
    pub(crate) fn own_leaves(&self) -> Result<Option<LeafList>> {
        let (tree, hash) = self.tree();
        let Some(leaves) = tree.verify.leaves else {
            return Ok(None);
        };
        let then = self.then()?;
        let accounts = then.tree().records().kept_listing(&then)?;
        let accounts = accounts.map(|account| Ok(account?));
        let list = listed((leaves, hash), &then, accounts)?;
        // A second opinion: from the leaves alone.
        let values = list.iter().map(|(key, leaf)| (key.clone(), leaf.value));
        let values: LeafValues = values.collect();
        let root = (leaves.root)(hash, &values).ok_or_else(|| unknown_hash(tree, hash))?;
        let (root, own) = (root.map_err(|error| anyhow!(error))?, self.root());
        if root != own {
            bail!(
                "the leaves lead to root {root}, and the tree has {own}: if this is a database, check it with arbor verify; \
                 if that finds nothing, or it is none, please report it"
            );
        }
        Ok(Some(list))
    }

    /// Returns the leaves that the accounts have in a tree that has never had others.
    pub(crate) fn leaves_in(&self, tree: &TreeKind, hash: &str) -> Result<LeafList> {
        let leaves = tree.verify.leaves.ok_or_else(|| no_names(tree))?;
        let then = self.then()?;
        let accounts = then.tree().records().listing(&then, None)?;
        let accounts = accounts.map(|account| Ok(account?.into()));
        listed((leaves, hash), &then, accounts)
    }
}

/// The error for a tree whose leaves have no names.
pub(crate) fn no_names(tree: &TreeKind) -> anyhow::Error {
    let named = TREES.rows().filter(|kind| kind.verify.leaves.is_some());
    let named: Vec<&str> = named.map(|kind| kind.name).collect();
    anyhow!(
        "the leaves of {} cannot be listed; those of {} can (--tree)",
        tree.name,
        named.join(", ")
    )
}

fn unknown_hash(tree: &TreeKind, hash: &str) -> anyhow::Error {
    anyhow!("the tree {} is not hashed with {hash}", tree.name)
}

/// The leaves that a tree has of accounts under a hash function. Code that accounts share is there once.
fn listed(
    (leaves, hash): (NamedLeaves, &str),
    codes: &dyn AccountSource,
    accounts: impl Iterator<Item = Result<KeptAccount>>,
) -> Result<LeafList> {
    let mut found = LeafList::new();
    for kept in accounts {
        let kept = kept?;
        let code_hash = kept
            .account
            .map_or(KECCAK256_EMPTY, |account| account.code_hash);
        let code = match code_hash == KECCAK256_EMPTY {
            true => None,
            false => Some(codes.code_bytes(code_hash)?),
        };
        let whole = WholeAccount {
            address: kept.address,
            account: kept.account,
            code: code.as_ref().map_or(&[], |code| &code[..]),
            past_chunks: kept.past_chunks,
            slots: &kept.slots,
        };
        let of = (leaves.of)(hash, whole).ok_or_else(|| anyhow!("no hash function {hash}"))?;
        for leaf in of.map_err(|error| anyhow!(error))? {
            let listed = ListedLeaf {
                value: leaf.value,
                of: Some(described(leaf.origin)),
            };
            found.insert(leaf.key, listed);
        }
    }
    Ok(found)
}

fn described(origin: Origin) -> String {
    match origin {
        Origin::Field { address, field } => format!("account {address:#x} {field}"),
        Origin::Slot { address, slot } => format!("account {address:#x} slot {slot:#x}"),
        Origin::AccountChunk { address, chunk } => format!("account {address:#x} chunk {chunk}"),
        Origin::Chunk { code_hash, chunk } => format!("code {code_hash} chunk {chunk}"),
    }
}
