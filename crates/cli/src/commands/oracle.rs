//! `arbor oracle`: what a state's root is made of.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::genesis::Genesis;
use arbor_database::{Budget, NO_CHAIN, in_memory};
use arbor_state::{Account, BlockRef, FullAccount, ReadError, SortedAccounts, State, TreeKind};
use arbor_verify::{LeafValues, NamedLeaves, Origin, WholeAccount};
use arbor_versions::Version;
use serde::Serialize;
use serde_json::Value;

use crate::args::Oracle as Args;
use crate::output;

/// Bytes for a state of a few accounts.
const MEMORY: u64 = 64 << 20;

/// An account of a state that is given as JSON.
struct Given {
    account: Account,
    code: Bytes,
    slots: BTreeMap<U256, U256>,
}

type Accounts = BTreeMap<Address, Given>;

/// A leaf, as `--json` prints it and `arbor diff` reads it.
#[derive(Serialize)]
struct Leaf {
    key: Bytes,
    value: B256,
    /// What the leaf stands for.
    of: String,
}

/// What is printed.
#[derive(Serialize)]
struct Found {
    tree: &'static str,
    hash: String,
    root: B256,
    accounts: usize,
    leaves: Vec<Leaf>,
    proofs: Vec<Value>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let leaves = args.tree.verify.leaves;
    let leaves = leaves.ok_or_else(|| anyhow!("the leaves of {} have no names", args.tree.name))?;
    let text = Genesis::text_of(&args.state).with_context(|| args.state.clone())?;
    let accounts = accounts_of(&text).with_context(|| args.state.clone())?;
    let state = loaded(args, &accounts)?;
    let hash = state.tree().hash();
    let (names, values) = named(leaves, hash, &accounts)?;
    let root = state.root();
    // A second opinion: from the leaves alone.
    let from_leaves = (leaves.root)(hash, &values).ok_or_else(|| unknown_hash(args.tree, hash))?;
    let from_leaves = from_leaves.map_err(|error| anyhow!(error))?;
    if from_leaves != root {
        bail!("the leaves lead to root {from_leaves}, and the tree has {root}: please report it");
    }
    let mut proofs = Vec::new();
    for named in &args.prove {
        let then = state.at(Version(0))?;
        let mut proof = Vec::new();
        then.prove(named.address, &named.slots)?
            .write_json(&mut proof, false)?;
        proofs.push(serde_json::from_slice(&proof)?);
    }
    let leaves = values.into_iter().map(|(key, value)| Leaf {
        of: names[&key].clone(),
        key: key.into(),
        value,
    });
    let found = Found {
        tree: args.tree.name,
        hash: hash.to_owned(),
        root,
        accounts: accounts.len(),
        leaves: leaves.collect(),
        proofs,
    };
    match args.json {
        true => output::json(&found),
        false => print(&found),
    }
}

fn print(found: &Found) -> Result<()> {
    output::line(&format!("root {}", found.root))?;
    for Leaf { key, value, of } in &found.leaves {
        output::line(&format!("{key} {value} {of}"))?;
    }
    for proof in &found.proofs {
        output::line(&format!("proof {proof}"))?;
    }
    Ok(())
}

fn unknown_hash(kind: &TreeKind, hash: &str) -> anyhow::Error {
    anyhow!("the tree {} is not hashed with {hash}", kind.name)
}

/// The leaves of all accounts with their names. Code that accounts share is there once.
fn named(
    leaves: NamedLeaves,
    hash: &str,
    accounts: &Accounts,
) -> Result<(BTreeMap<Vec<u8>, String>, LeafValues)> {
    let (mut names, mut values) = (BTreeMap::new(), LeafValues::new());
    for (address, given) in accounts {
        let slots: Vec<(U256, U256)> = given
            .slots
            .iter()
            .map(|(slot, value)| (*slot, *value))
            .collect();
        let whole = WholeAccount {
            address: *address,
            account: given.account,
            code: &given.code,
            slots: &slots,
        };
        let of = (leaves.of)(hash, whole).ok_or_else(|| anyhow!("no hash function {hash}"))?;
        for leaf in of.map_err(|error| anyhow!(error))? {
            names.insert(leaf.key.clone(), described(leaf.origin));
            values.insert(leaf.key, leaf.value);
        }
    }
    Ok((names, values))
}

fn described(origin: Origin) -> String {
    match origin {
        Origin::Field { address, field } => format!("account {address:#x} {field}"),
        Origin::Slot { address, slot } => format!("account {address:#x} slot {slot:#x}"),
        Origin::AccountChunk { address, chunk } => format!("account {address:#x} chunk {chunk}"),
        Origin::Chunk { code_hash, chunk } => format!("code {code_hash} chunk {chunk}"),
    }
}

/// The state in memory, under the tree.
fn loaded(args: &Args, accounts: &Accounts) -> Result<State> {
    let settings = arbor_state::Settings {
        hash: args.hash.clone(),
        ..Default::default()
    };
    let tree = (args.tree.make)(&settings).context("--hash")?;
    let order = tree.order();
    let mut state = in_memory(tree, NO_CHAIN, Budget::new(MEMORY))?;
    let full = accounts.iter().map(|(address, given)| {
        Ok(FullAccount {
            address: *address,
            account: given.account,
            slots: given
                .slots
                .iter()
                .map(|(slot, value)| (*slot, *value))
                .collect(),
        })
    });
    let codes: BTreeMap<B256, &Bytes> = accounts
        .values()
        .map(|given| (given.account.code_hash, &given.code))
        .collect();
    let code = |hash| {
        let code = codes.get(&hash).map(|code| (*code).clone());
        code.ok_or(ReadError::MissingCode(hash))
    };
    let source = SortedAccounts::of(order, full, code, usize::MAX)?;
    let computed = state.load(&source, &|_, _| ())?;
    let block = BlockRef {
        number: 0,
        hash: B256::ZERO,
        record: Vec::new(),
    };
    state.commit(&block, computed)?;
    drop(source);
    Ok(state)
}

/// Accounts of a genesis (`alloc`), a dump of a whole state (`accounts`, or a line for each), or an allocation alone.
fn accounts_of(text: &str) -> Result<Accounts> {
    if let Ok(mut whole) = serde_json::from_str::<Value>(text) {
        let part = ["alloc", "accounts", "pre"];
        let part = part
            .iter()
            .find(|name| whole.get(**name).is_some_and(Value::is_object));
        let accounts = match part {
            Some(name) => whole[*name].take(),
            None => whole,
        };
        let fields = accounts
            .as_object()
            .context("it is no JSON object of accounts")?;
        let accounts = fields.iter();
        return accounts
            .map(|(address, fields)| given(address, fields))
            .collect();
    }
    let mut accounts = Accounts::new();
    for (number, line) in (1..).zip(text.lines()) {
        let fields: Value =
            serde_json::from_str(line).with_context(|| format!("line {number} is no JSON"))?;
        // The first line of a dump has the root.
        if let Some(address) = fields["address"].as_str() {
            let (address, given) =
                given(address, &fields).with_context(|| format!("line {number}"))?;
            accounts.insert(address, given);
        }
    }
    Ok(accounts)
}

fn given(address: &str, fields: &Value) -> Result<(Address, Given)> {
    let context = || format!("account {address}");
    let parsed: Address = address.parse().with_context(context)?;
    let field =
        |name: &str| number(&fields[name]).with_context(|| format!("{}: {name}", context()));
    let code = fields["code"].as_str().unwrap_or_default();
    let code = hex::decode(code).with_context(|| format!("{}: code", context()))?;
    let account = Account {
        nonce: u64::try_from(field("nonce")?).with_context(context)?,
        balance: field("balance")?,
        code_hash: match code.is_empty() {
            true => KECCAK256_EMPTY,
            false => keccak256(&code),
        },
    };
    let mut slots = BTreeMap::new();
    for (slot, value) in fields["storage"].as_object().into_iter().flatten() {
        let context = || format!("{}: slot {slot}", context());
        let slot = parse(slot, 16).with_context(context)?;
        let value = match value {
            Value::String(value) => parse(value, 16).with_context(context)?,
            value => number(value).with_context(context)?,
        };
        if !value.is_zero() {
            slots.insert(slot, value);
        }
    }
    let code = code.into();
    Ok((
        parsed,
        Given {
            account,
            code,
            slots,
        },
    ))
}

/// A number, decimal or hexadecimal after `0x`; zero if there is none.
fn number(value: &Value) -> Result<U256> {
    match value {
        Value::Null => Ok(U256::ZERO),
        Value::String(text) => parse(text, 10),
        value => parse(&value.to_string(), 10),
    }
}

/// A number of 256 bits: hexadecimal after `0x`, else of this base.
fn parse(text: &str, base: u64) -> Result<U256> {
    let (digits, base) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, base),
    };
    match digits.is_empty() {
        true => Ok(U256::ZERO),
        false => U256::from_str_radix(digits, base)
            .map_err(|error| anyhow!("'{text}' is no number of 256 bits: {error}")),
    }
}
