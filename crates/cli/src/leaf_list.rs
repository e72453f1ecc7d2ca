//! The leaves of a state with what each stands for, which `arbor oracle` prints and `arbor diff` compares.

use std::collections::BTreeMap;
use std::path::Path;

use alloy_primitives::{B256, KECCAK256_EMPTY};
use anyhow::{Context, Result, anyhow};
use arbor_chain::genesis::Genesis;
use arbor_convert::AccountList;
use arbor_state::TreeKind;
use arbor_state::recovery::AccountsFile;
use arbor_verify::{NamedLeaves, Origin, WholeAccount};

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

/// Reads the accounts of a file (`-` is standard input), of the latest block of a database, or of a network's genesis.
pub(crate) fn accounts(state: &str) -> Result<AccountList> {
    let path = Path::new(state);
    let read = || -> Result<AccountList> {
        match (path.is_dir(), state == "-" || path.exists()) {
            (true, _) => Ok(of_database(path)?.accounts),
            (false, true) if path.is_file() && AccountsFile::is_one(path)? => {
                Ok(AccountList::of(&AccountsFile::open(path, &TREES)?)?)
            }
            (false, true) => Ok(AccountList::read(path)?),
            (false, false) => Ok(AccountList::from_json(Genesis::text_of(state)?.as_bytes())?),
        }
    };
    read().with_context(|| format!("reading {state}"))
}

/// The state of a database after its latest block.
pub(crate) struct OfDatabase {
    pub(crate) accounts: AccountList,
    pub(crate) tree: &'static TreeKind,
    pub(crate) hash: String,
}

/// Reads all accounts of a database's latest block.
pub(crate) fn of_database(dir: &Path) -> Result<OfDatabase> {
    let snapshot = database::folder(dir).open_to_read(MEMORY)?;
    let reader = snapshot.reader();
    let then = reader.at(database::head(reader)?.version)?;
    Ok(OfDatabase {
        accounts: AccountList::of(&then)?,
        tree: reader.tree().kind(),
        hash: reader.tree().hash().to_owned(),
    })
}

/// The leaves that a tree has of accounts under a hash function. Code that accounts share is there once.
pub(crate) fn leaves_of(leaves: NamedLeaves, hash: &str, list: &AccountList) -> Result<LeafList> {
    let mut found = LeafList::new();
    for account in &list.accounts {
        let code_hash = account.account.code_hash;
        let code = match code_hash == KECCAK256_EMPTY {
            true => Some(&[][..]),
            false => list.codes.get(&code_hash).map(|code| &code[..]),
        };
        let whole = WholeAccount {
            address: account.address,
            account: account.account,
            code: code.with_context(|| format!("no code with the hash {code_hash}"))?,
            slots: &account.slots,
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
