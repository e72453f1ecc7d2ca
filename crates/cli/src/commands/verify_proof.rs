//! `arbor verify-proof`.

use std::collections::BTreeSet;

use alloy_primitives::{Address, B256, U256};
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::bounded_input::{Bound, BoundedInput};
use arbor_chain::json::{self, JsonError};
use arbor_state::{AccountSlots, TreeKind};
use arbor_verify::ar16mt::{Blake2s, StorageLog, StorageLogs};
use arbor_verify::{Claims, NotRead, Proof, ProvenAccount, ProvenLeaf, Verdict, answered};
use serde::Serialize;

use crate::args::VerifyProof;
use crate::names::show_word;
use crate::{files, output};

/// Bytes of memory that a proof in JSON may take to be read: a range of a million leaves has 500 MB.
const MOST_HELD: u64 = 1 << 30;

/// Accepts a bare proof and the whole JSON-RPC response around one, each also as a gzip. No field may be there twice.
pub(crate) fn run(args: &VerifyProof) -> Result<()> {
    let binary = files::has_extension(&args.file, "ssz");
    let bound = match args.storage_logs {
        true => Bound::STORAGE_LOGS,
        false if binary => Bound::BINARY_PROOF,
        false => Bound::PROOF,
    };
    let input = BoundedInput::open(&args.file, bound)?.unpacked()?;
    if args.storage_logs {
        return verify_logs(args, &input.bytes()?);
    }
    let file = args.file.display();
    let kinds = arbor_verify::standard();
    let proof = match binary {
        true => {
            let proof = kinds
                .read_bytes(&input.bytes()?)
                .context("no tree has a binary form")?;
            proof.with_context(|| format!("{file}: malformed witness"))?
        }
        false => {
            let value = match json::read_within(input, MOST_HELD) {
                // The error names the input.
                Err(unread) if unread.error.is_io() => bail!("{unread}"),
                value => value.with_context(|| format!("{file}: malformed JSON"))?,
            };
            let not_read = |error| match error {
                NotRead::Field { error: field, form } => anyhow!(JsonError::from(*field))
                    .context(format!("{file} is no proof of the form {form}")),
                error => anyhow!("{file} is no proof: {error}"),
            };
            let value = answered(value).map_err(not_read)?;
            let blocks = ["executionWitness", "execution_witness"];
            if blocks.iter().any(|field| value.get(field).is_some()) {
                bail!("{file} is a whole block: arbor verify-witness checks it");
            }
            // The name of its tree is compared with --tree below.
            kinds.read_as_told(value).map_err(not_read)?
        }
    };
    let root = args.root;
    let verdict = proof.verify(root);
    match verdict.with_context(|| format!("{file}: malformed proof"))? {
        Verdict::False(why) => bail!("{file}: false proof against root {root}: {why}"),
        Verdict::True(claims) => tell(args, &*proof, &claims),
    }
}

/// Prints what a proof that holds shows.
fn tell(args: &VerifyProof, proof: &dyn Proof, claims: &Claims) -> Result<()> {
    let (file, root) = (args.file.display(), args.root);
    let is_of_two = proof.form().name == TWO_TREES;
    if let Some(stem) = claims.doubtful.first().filter(|_| !is_of_two) {
        bail!(
            "{file}: nothing shows that stem {stem} is absent: its way ends below a node that may be a leaf, since neither index 0 of it is opened nor a child \
             beyond index 3 (`arbor prove` opens one)"
        );
    }
    let accounts = asked(args, proof, claims)?;
    match args.json {
        true => output::json(&Shown::new(root, proof, claims, &accounts))?,
        false => print(root, claims, &accounts)?,
    }
    match claims.doubtful.is_empty() {
        true => Ok(()),
        false => Err(Doubtful {
            file: file.to_string(),
            names: claims.doubtful.join(", "),
        }
        .into()),
    }
}

/// A proof that holds, and part of which is so only if its maker is honest.
#[derive(Debug, thiserror::Error)]
#[error("{file}: the proof holds, but only if its maker is honest does it show this: {names}")]
pub(crate) struct Doubtful {
    file: String,
    names: String,
}

/// The form of proofs of a state on its way from one tree to another.
const TWO_TREES: &str = "two-trees/1";

/// What a proof that holds shows, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    holds: bool,
    root: B256,
    /// The form of the proof, by name.
    form: &'static str,
    accounts: Vec<ShownAccount>,
    /// Leaves by key; none if accounts are shown.
    leaves: Vec<ShownLeaf>,
    /// Between these keys the leaves are all that there are.
    range: Option<ShownRange>,
    /// Values in the file that the proof does not cover.
    unproven: usize,
    /// Parts of the proof that are so only if its maker is honest; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubtful: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownAccount {
    address: Address,
    absent: bool,
    nonce: Option<u64>,
    balance: Option<String>,
    code_hash: Option<B256>,
    /// The tree that has the account, if the state is on its way from one to another; left out
    /// otherwise, and if neither has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
    slots: Vec<ShownSlot>,
}

#[derive(Serialize)]
struct ShownSlot {
    slot: String,
    absent: bool,
    value: Option<String>,
    /// As of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<String>,
}

#[derive(Serialize)]
struct ShownLeaf {
    key: B256,
    index: Option<u64>,
    absent: bool,
    value: Option<B256>,
}

#[derive(Serialize)]
struct ShownRange {
    from: B256,
    to: B256,
}

impl Shown {
    fn new(root: B256, proof: &dyn Proof, claims: &Claims, accounts: &[ProvenAccount]) -> Self {
        let leaves = match accounts {
            [] => &claims.leaves[..],
            _ => &[],
        };
        Self {
            holds: true,
            root,
            form: proof.form().name,
            accounts: with_places(claims, accounts)
                .map(|(proven, places)| ShownAccount::new(proven, places))
                .collect(),
            leaves: leaves.iter().map(ShownLeaf::new).collect(),
            range: claims.range.map(|range| ShownRange {
                from: range.from,
                to: range.to,
            }),
            unproven: claims.unproven,
            doubtful: claims.doubtful.clone(),
        }
    }
}

/// The names of the trees that have an account and its slots, if the state is on its way from one
/// to another.
#[derive(Default)]
struct InTrees<'a> {
    account: Option<&'a str>,
    slots: Vec<Option<&'a str>>,
}

/// Returns accounts with the trees that have them.
fn with_places<'a>(
    claims: &'a Claims,
    accounts: &'a [ProvenAccount],
) -> impl Iterator<Item = (&'a ProvenAccount, InTrees<'a>)> {
    let places = claims.places.as_ref();
    accounts.iter().enumerate().map(move |(number, proven)| {
        let of = places.and_then(|places| Some((places, places.accounts.get(number)?)));
        let of = of.map(|(places, of)| InTrees {
            account: places.tree(of.account),
            slots: of.slots.iter().map(|place| places.tree(*place)).collect(),
        });
        (proven, of.unwrap_or_default())
    })
}

impl ShownAccount {
    fn new(proven: &ProvenAccount, places: InTrees<'_>) -> Self {
        let account = proven.account;
        let trees = places.slots.into_iter().chain(std::iter::repeat(None));
        let slots = proven.slots.iter().zip(trees);
        let slots = slots.map(|((slot, value), tree)| ShownSlot {
            slot: show_word(*slot),
            absent: value.is_none(),
            value: value.map(show_word),
            tree: tree.map(str::to_owned),
        });
        Self {
            address: proven.address,
            absent: account.is_none(),
            nonce: account.map(|account| account.nonce),
            balance: account.map(|account| account.balance.to_string()),
            code_hash: account.map(|account| account.code_hash),
            tree: places.account.map(str::to_owned),
            slots: slots.collect(),
        }
    }
}

impl ShownLeaf {
    fn new(leaf: &ProvenLeaf) -> Self {
        Self {
            key: leaf.key,
            index: leaf.index,
            absent: leaf.value.is_none(),
            value: leaf.value,
        }
    }
}

/// Prints what a proof that holds shows, in words.
fn print(root: B256, claims: &Claims, accounts: &[ProvenAccount]) -> Result<()> {
    match accounts {
        [] => print_leaves(root, claims)?,
        accounts => print_accounts(root, claims, accounts)?,
    }
    match claims.unproven {
        0 => Ok(()),
        new => output::line(&format!(
            "the file also has {new} new values, which a proof does not cover: see verify-witness"
        )),
    }
}

fn print_accounts(root: B256, claims: &Claims, accounts: &[ProvenAccount]) -> Result<()> {
    for (proven, places) in with_places(claims, accounts) {
        show(proven, &places)?;
    }
    let slots: usize = accounts.iter().map(|proven| proven.slots.len()).sum();
    let distinct: BTreeSet<Address> = accounts.iter().map(|proven| proven.address).collect();
    let of = match claims.leaves.len() {
        0 => String::new(),
        keys => format!(", by some of {keys} keys,"),
    };
    output::line(&match &distinct.iter().collect::<Vec<_>>()[..] {
        [address] => {
            let slots = output::counted(slots as u64, "slot");
            format!("proven: account {address:#x} and {slots}{of} under root {root}")
        }
        several => format!(
            "proven: {} accounts and {}{of} under root {root}",
            several.len(),
            output::counted(slots as u64, "slot")
        ),
    })
}

fn print_leaves(root: B256, claims: &Claims) -> Result<()> {
    for leaf in &claims.leaves {
        let index = leaf
            .index
            .map_or_else(String::new, |index| format!("{index} "));
        let value = leaf
            .value
            .map_or("absent".to_owned(), |value| value.to_string());
        output::line(&format!("{} {index}{value}", leaf.key))?;
    }
    if !claims.accounts.is_empty() {
        output::tell(
            "the root does not show how accounts lie in its tree, so these are keys alone: --tree T shows the accounts",
        );
    }
    let leaves = claims.leaves.len();
    output::line(&match claims.range {
        Some(range) => format!(
            "proven: {leaves} leaves, and no others from {} to {}, under root {root}",
            range.from, range.to
        ),
        None => format!("proven: {leaves} keys under root {root}"),
    })
}

/// Returns the proven accounts: those asked for, or else all that the proof names. The list is empty if the proof's tree is not known, so that only
/// keys are proven.
fn asked(args: &VerifyProof, proof: &dyn Proof, claims: &Claims) -> Result<Vec<ProvenAccount>> {
    let (file, form) = (args.file.display(), proof.form().name);
    let names = proof.names();
    let rows = arbor_trees::standard();
    let has = |tree: &TreeKind| tree.verify.forms.iter().any(|of| of.name == form);
    let by_names = !names.is_empty() || args.of.is_empty();
    if by_names {
        check_tree(args, form, &names)?;
        check_names(args, &names)?;
    }
    let twins = rows.rows().filter(|tree| has(tree));
    let mut twins = twins.filter_map(|tree| Some((tree.name, tree.verify.twin?)));
    // A root does not show which of two trees it is of: read in the other one, its leaves would be other accounts'.
    if args.tree.is_none()
        && let Some((tree, twin)) = twins.next()
    {
        if args.of.is_empty() && !claims.leaves.is_empty() {
            return Ok(Vec::new());
        }
        bail!(
            "the root does not show whether {file} is of the tree {tree} or {twin}, and the file may say so falsely: give --tree, for example --tree {tree}"
        );
    }
    if by_names {
        return Ok(claims.accounts.clone());
    }
    let address = args.of[0].address;
    if claims.range.is_some() {
        bail!("{file} is a range of leaves, and names no account (--of {address:#x})");
    }
    let tree = args.tree.or_else(|| rows.rows().find(|tree| has(tree)));
    let Some(account_of) = tree.and_then(|tree| tree.verify.account_of) else {
        let tree = tree.map_or("its tree", |tree| tree.name);
        bail!(
            "{file} has leaves by their keys alone, which are no account's under {tree} (--of {address:#x})"
        );
    };
    let proven = args.of.iter().map(|of| account_of(&claims.leaves, of));
    proven
        .collect::<Result<_, _>>()
        .with_context(|| format!("{file} does not show what --of asks for"))
}

/// Checks that the tree that is asked for may be that of a proof.
fn check_tree(args: &VerifyProof, form: &str, names: &[AccountSlots]) -> Result<()> {
    let Some(tree) = args.tree else { return Ok(()) };
    let has = |tree: &TreeKind| tree.verify.forms.iter().any(|of| of.name == form);
    let has_keys = |tree: &TreeKind| tree.verify.account_of.is_some();
    let rows = arbor_trees::standard();
    let is_by_keys = rows.rows().any(|tree| has(tree) && has_keys(tree));
    // The same leaves and nodes may hold accounts in another layout, which no form names if it has keys alone.
    let may_have = names.is_empty() && is_by_keys && has_keys(tree);
    if !has(tree) && !may_have {
        bail!(
            "{} is of the form {form}, which is none of --tree {}",
            args.file.display(),
            tree.name
        );
    }
    Ok(())
}

/// Checks that a proof, which names its accounts, has those that it must say something of.
fn check_names(args: &VerifyProof, names: &[AccountSlots]) -> Result<()> {
    let file = args.file.display();
    for AccountSlots { address, slots } in &args.of {
        let mut of_account = names.iter().filter(|of| of.address == *address).peekable();
        if of_account.peek().is_none() {
            let others: Vec<_> = names
                .iter()
                .map(|of| format!("{:#x}", of.address))
                .collect();
            bail!(
                "{file} is no proof of account {address:#x} (--of), but of {}",
                others.join(", ")
            );
        }
        let known: Vec<U256> = of_account.flat_map(|of| &of.slots).copied().collect();
        if let Some(slot) = slots.iter().find(|slot| !known.contains(slot)) {
            bail!("{file} says nothing of slot {slot:#x} of account {address:#x} (--of)");
        }
    }
    Ok(())
}

/// Prints what an account and its slots hold, and the trees that have them if the state has two.
fn show(proven: &ProvenAccount, places: &InTrees<'_>) -> Result<()> {
    let address = proven.address;
    let of_tree = |tree: Option<&str>| tree.map_or(String::new(), |tree| format!(" ({tree})"));
    let tree = of_tree(places.account);
    output::line(&match proven.account {
        None => format!("{address:#x} absent"),
        Some(account) => format!(
            "{address:#x} nonce {} balance {} code {}{tree}",
            account.nonce, account.balance, account.code_hash
        ),
    })?;
    for (number, (slot, value)) in proven.slots.iter().enumerate() {
        let value = value.map_or("absent".to_owned(), show_word);
        let tree = of_tree(places.slots.get(number).copied().flatten());
        output::line(&format!("{address:#x} slot {slot:#x} {value}{tree}"))?;
    }
    Ok(())
}

/// What storage logs that hold show, as `--json` prints it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProvenLogs {
    holds: bool,
    root_before: B256,
    root_after: B256,
    logs: usize,
    writes: usize,
    new_leaves: usize,
    next_index_before: u64,
    next_index_after: u64,
    /// Whether `--next-index` gave the index, which no root shows.
    next_index_is_checked: bool,
}

/// Checks what a block changes as zkSync's prover is given it, and prints the root that it leads to.
fn verify_logs(args: &VerifyProof, bytes: &[u8]) -> Result<()> {
    let (file, root) = (args.file.display(), args.root);
    let logs = StorageLogs::decode(bytes);
    let logs = logs.with_context(|| format!("{file}: malformed storage logs"))?;
    let after = logs.verify(Blake2s::new(), root.0);
    let after = after.with_context(|| format!("{file}: false from root {root} on"))?;
    let count = |is: fn(&StorageLog) -> bool| logs.logs.iter().filter(|log| is(log)).count();
    let new = count(|log| log.first_write);
    let next = logs.next_enumeration_index;
    if let Some(due) = args.next_index.filter(|due| *due != next) {
        bail!("{file}: its next index is {next}, and {due} is due (--next-index)");
    }
    let proven = ProvenLogs {
        holds: true,
        root_before: root,
        root_after: after.into(),
        logs: logs.logs.len(),
        writes: count(|log| log.is_write),
        new_leaves: new,
        next_index_before: next,
        next_index_after: next + new as u64,
        next_index_is_checked: args.next_index.is_some(),
    };
    if args.json {
        return output::json(&proven);
    }
    output::line(&format!(
        "proven: {} logs, {} of them writes, {new} of these of new leaves, lead from root {root} to root {}, and from next index {next}{} to {}",
        proven.logs,
        proven.writes,
        proven.root_after,
        match args.next_index {
            Some(_) => "",
            None => " (as the file says, which no root shows: give --next-index)",
        },
        proven.next_index_after,
    ))
}
