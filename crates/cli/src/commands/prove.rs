//! `arbor prove` and `arbor verify-proof`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use anyhow::{Context, Result, anyhow, bail};
use arbor_chain::bounded_input::{Bound, BoundedInput};
use arbor_chain::json;
use arbor_state::ar16mt::{
    AccountSlots, Ar16mt, Blake2s, RangeProof, StateMultiproof, StateProof, StorageLog, StorageLogs,
};
use arbor_state::verkle::{
    Committer, HeaderLayout, Stems, Verkle, Witness, WitnessError, proven_account,
};
use arbor_state::{Account, AccountProof, Historical};
use serde::Serialize;

use super::verify_witness::TABLE_BYTES;
use crate::args::{Prove, VerifyProof};
use crate::{bytes, database, files, output};

pub(crate) fn run(args: &Prove) -> Result<()> {
    let written = [("--out", &args.out), ("--storage-logs", &args.storage_logs)];
    for (flag, file) in written {
        if let Some(file) = file {
            files::not_of_database(flag, file, Some(&args.database.db))?;
            // A proof may take long.
            files::check(file).with_context(|| format!("{flag} {}", file.display()))?;
        }
    }
    let state = database::look(&args.database)?;
    let state = state.reader();
    let then = state.at(database::version_of(state, args.at)?)?;
    let out = args.out.as_deref();
    if out.is_some_and(is_binary) && then.tree().downcast::<Verkle>().is_none() {
        bail!(
            "proofs of this database's tree have no binary form: --out with another extension than .ssz"
        );
    }
    if let Some((from, to)) = args.range {
        return put(out, &then.prove_range(from, to)?);
    }
    if let Some(file) = &args.storage_logs {
        return write_logs(&then, file);
    }
    let address = args.address.context("which account is to be proven?")?;
    let slots = &args.slots;
    if args.together || !args.also.is_empty() {
        let slots = slots.clone();
        let mut accounts = vec![AccountSlots { address, slots }];
        accounts.extend_from_slice(&args.also);
        return put(out, &then.prove_many(&accounts)?);
    }
    if then.tree().downcast::<Ar16mt>().is_some() {
        return put(out, &then.prove_paths(address, slots)?);
    }
    if then.tree().downcast::<Verkle>().is_none() {
        return put(out, &then.prove(address, slots)?);
    }
    let witness = then.prove_leaves(address, slots)?;
    match out {
        Some(file) if is_binary(file) => write(file, &witness.to_bytes()),
        _ => put(out, &witness),
    }
}

/// Writes what a version changes in the form of zkSync's prover.
fn write_logs(then: &Historical<'_>, file: &Path) -> Result<()> {
    let logs = then.storage_logs()?;
    let encoded = logs.encode();
    let said = format!(
        "wrote {} logs of block {} in {}, the next index before it {}",
        logs.logs.len(),
        then.meta().block_number,
        bytes::show(encoded.len() as u64),
        logs.next_enumeration_index
    );
    write(file, &encoded)?;
    // Behind them it would be a part of them.
    match files::is_output(file) {
        true => output::tell(&said),
        false => output::line(&said)?,
    }
    Ok(())
}

/// Prints a proof as JSON, or writes it to a file.
fn put(out: Option<&Path>, proof: &impl Serialize) -> Result<()> {
    match out {
        None => output::json(proof),
        Some(file) => files::write_by(file, &mut |out| Ok(serde_json::to_writer(out, proof)?))
            .with_context(|| format!("writing {}", file.display())),
    }
}

/// Whether a name is that of a witness in the binary form.
fn is_binary(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "ssz")
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    files::write(file, bytes).with_context(|| format!("writing {}", file.display()))
}

/// Bytes of memory that a proof in JSON may take to be read: a range of a million leaves has 500 MB.
const MOST_HELD: u64 = 1 << 30;

/// Accepts a bare proof and the whole JSON-RPC response around one, each also as a gzip. No field may be there twice.
pub(crate) fn verify(args: &VerifyProof) -> Result<()> {
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
    if binary {
        let witness = Witness::from_bytes(&input.bytes()?)
            .with_context(|| format!("{}: malformed witness", args.file.display()))?;
        return verify_leaves(args, &witness);
    }
    let value = json::read_within(input, MOST_HELD);
    let mut value = match value {
        // The error names the input.
        Err(unread) if unread.error.is_io() => bail!("{unread}"),
        value => value.with_context(|| format!("{}: malformed JSON", args.file.display()))?,
    };
    if let Some(error) = value.get("error").filter(|error| !error.is_null())
        && value.get("result").is_none_or(serde_json::Value::is_null)
    {
        let message = error.get("message").and_then(serde_json::Value::as_str);
        let said = message.map_or_else(|| error.to_string(), str::to_owned);
        bail!(
            "{}: the node answered with an error instead of a proof: {:?}",
            args.file.display(),
            said.chars().take(500).collect::<String>()
        );
    }
    if let Some(result) = value.get_mut("result") {
        value = result.take();
    }
    let has = |fields: &[&str]| fields.iter().any(|field| value.get(field).is_some());
    if has(&["executionWitness", "execution_witness"]) {
        bail!(
            "{} is a whole block: arbor verify-witness checks it",
            args.file.display()
        );
    }
    if has(&["verkleProof", "verkle_proof"]) {
        let witness = json::from_value(value).with_context(|| {
            format!("{} is not a witness of a Verkle tree", args.file.display())
        })?;
        return verify_leaves(args, &witness);
    }
    if has(&["nonceLeaf", "balanceLeaf", "codeHashLeaf", "exists"]) {
        return verify_paths(args, value);
    }
    if has(&["multiproof"]) {
        return verify_together(args, value);
    }
    if has(&["fromPath", "toPath"]) {
        return verify_range(args, value);
    }
    let proof: AccountProof = json::from_value(value).with_context(|| {
        format!(
            "{} is not a proof as eth_getProof gives it",
            args.file.display()
        )
    })?;
    let account = proof
        .verify(args.root)
        .with_context(|| format!("{}: malformed proof", args.file.display()))?
        .with_context(|| {
            format!(
                "{}: false proof against root {}",
                args.file.display(),
                args.root
            )
        })?;
    let address = proof.address;
    let slots = proof.storage_proof.iter().map(|slot| slot.key).collect();
    check_names(args, &[(address, slots)])?;
    let slots = proof.storage_proof.iter();
    show(address, account, slots.map(|slot| (slot.key, slot.value)))?;
    proven(args, address, proof.storage_proof.len())
}

/// Prints what an account and its slots hold.
fn show(
    address: Address,
    account: Option<Account>,
    slots: impl IntoIterator<Item = (U256, U256)>,
) -> Result<()> {
    show_account(address, account)?;
    for (slot, value) in slots {
        output::line(&format!("{address} slot {slot} {}", B256::from(value)))?;
    }
    Ok(())
}

fn show_account(address: Address, account: Option<Account>) -> Result<()> {
    output::line(&match account {
        None => format!("{address} absent"),
        Some(account) => format!(
            "{address} nonce {} balance {} code {}",
            account.nonce, account.balance, account.code_hash
        ),
    })
}

fn proven(args: &VerifyProof, address: Address, slots: usize) -> Result<()> {
    let root = args.root;
    output::line(&format!(
        "proven: account {address} and {slots} slots under root {root}"
    ))
}

/// Checks the paths of an account's and its slots' leaves under AR16MT.
fn verify_paths(args: &VerifyProof, value: serde_json::Value) -> Result<()> {
    let file = args.file.display();
    let proof: StateProof = json::from_value(value)
        .with_context(|| format!("{file} is not a proof of an ar16mt database"))?;
    let account = proof
        .verify(args.root)
        .with_context(|| format!("{file}: malformed proof"))?
        .with_context(|| format!("{file}: false proof against root {}", args.root))?;
    let slots = proof.slots.iter().map(|slot| slot.slot).collect();
    check_names(args, &[(proof.address, slots)])?;
    let slots = proof.slots.iter();
    show(
        proof.address,
        account,
        slots.map(|slot| (slot.slot, slot.value)),
    )?;
    proven(args, proof.address, proof.slots.len())
}

/// Checks a multiproof of accounts and slots under AR16MT, and prints what they hold.
fn verify_together(args: &VerifyProof, value: serde_json::Value) -> Result<()> {
    let (file, root) = (args.file.display(), args.root);
    let proof: StateMultiproof = json::from_value(value)
        .with_context(|| format!("{file} is not a multiproof of an ar16mt database"))?;
    let proven = proof.verify(root);
    let proven = proven
        .with_context(|| format!("{file}: malformed proof"))?
        .with_context(|| format!("{file}: false proof against root {root}"))?;
    let slots_of = |slots: &[(U256, U256)]| slots.iter().map(|(slot, _)| *slot).collect();
    let names = proven.iter();
    let names = names.map(|proven| (proven.address, slots_of(&proven.slots)));
    check_names(args, &names.collect::<Vec<_>>())?;
    let mut slots = 0;
    for proven in &proven {
        let values = proven.slots.iter().copied();
        show(proven.address, proven.account, values)?;
        slots += proven.slots.len();
    }
    output::line(&format!(
        "proven: {} accounts and {slots} slots under root {root}",
        proven.len()
    ))
}

/// Checks that a proof, which names its accounts, has those that it must say something of.
fn check_names(args: &VerifyProof, proven: &[(Address, Vec<U256>)]) -> Result<()> {
    let file = args.file.display();
    no_layout(args)?;
    for AccountSlots { address, slots } in &args.of {
        let mut of_account = proven.iter().filter(|(of, _)| of == address).peekable();
        if of_account.peek().is_none() {
            let others: Vec<_> = proven.iter().map(|(of, _)| of.to_string()).collect();
            bail!(
                "{file} is no proof of account {address} (--of), but of {}",
                others.join(", ")
            );
        }
        let known: Vec<U256> = of_account.flat_map(|(_, slots)| slots).copied().collect();
        if let Some(slot) = slots.iter().find(|slot| !known.contains(slot)) {
            bail!("{file} says nothing of slot {slot} of account {address} (--of)");
        }
    }
    Ok(())
}

/// Refuses `--tree` for what is no proof of a Verkle tree.
fn no_layout(args: &VerifyProof) -> Result<()> {
    match args.tree {
        Some(_) => bail!(
            "--tree tells Verkle trees apart, and {} is a proof of another tree",
            args.file.display()
        ),
        None => Ok(()),
    }
}

/// How the Verkle tree of a proof lays accounts out. No proof tells that: the leaves of one layout have a meaning in the other, too.
fn layout(args: &VerifyProof) -> Result<HeaderLayout> {
    let file = args.file.display();
    match args.tree {
        Some(kind) => match kind.tree().downcast::<Verkle>() {
            Some(verkle) => Ok(verkle.settings().layout),
            None => bail!(
                "{file} is a proof of a Verkle tree, not of --tree {}",
                kind.name
            ),
        },
        None => bail!(
            "{file} is a proof of a Verkle tree, and does not say how accounts lie in it: --of needs --tree verkle, or --tree verkle-2023"
        ),
    }
}

/// Checks that some leaves are all there are between two keys under AR16MT, and prints them.
fn verify_range(args: &VerifyProof, value: serde_json::Value) -> Result<()> {
    let (file, root) = (args.file.display(), args.root);
    if let Some(of) = args.of.first() {
        bail!(
            "{file} is a range of leaves, and names no account (--of {})",
            of.address
        );
    }
    let proof: RangeProof = json::from_value(value)
        .with_context(|| format!("{file} is not a range of an ar16mt database"))?;
    let holds = proof.verify(root);
    if !holds.with_context(|| format!("{file}: malformed proof"))? {
        bail!("{file}: false proof against root {root}");
    }
    for leaf in &proof.entries {
        output::line(&format!("{} {} {}", leaf.key, leaf.index, leaf.value))?;
    }
    output::line(&format!(
        "proven: {} leaves, and no others from {} to {}, under root {root}",
        proof.entries.len(),
        proof.from,
        proof.to
    ))
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
    output::line(&format!(
        "proven: {} logs, {} of them writes, {new} of these of new leaves, lead from root {root} to root {}, and from next index {next}{} to {}",
        logs.logs.len(),
        count(|log| log.is_write),
        B256::from(after),
        match args.next_index {
            Some(_) => "",
            None => " (as the file says, which no root shows: give --next-index)",
        },
        next + new as u64,
    ))
}

/// Checks a witness of a Verkle tree, and prints the keys that it proves.
fn verify_leaves(args: &VerifyProof, witness: &Witness) -> Result<()> {
    let file = args.file.display();
    let committer = Arc::new(Committer::within(TABLE_BYTES));
    let verified = witness.verify(&committer, &args.root.0);
    let verified = verified
        .map_err(|error| match error {
            WitnessError::Root(why) => {
                anyhow!("--root {} is no root of a Verkle tree: {why}", args.root)
            }
            error => anyhow!("{file}: malformed witness: {error}"),
        })?
        .with_context(|| format!("{file}: false proof against root {}", args.root))?;
    if let Some(stem) = verified.doubtful().next() {
        bail!(
            "{file}: nothing shows that stem 0x{} is absent: its way ends below a node that may be a leaf, since neither index 0 of it is opened nor a child \
             beyond index 3 (`arbor prove` opens one)",
            alloy_primitives::hex::encode(stem)
        );
    }
    let keys = verified.values().count();
    let root = args.root;
    if args.of.is_empty() {
        for (key, value) in verified.values() {
            output::line(&format!(
                "{} {}",
                B256::from(key),
                shown(value.map(B256::from))
            ))?;
        }
        output::line(&format!("proven: {keys} keys under root {root}"))?;
    } else {
        let (layout, stems) = (layout(args)?, Stems::new(committer.clone(), 0));
        let proven = args.of.iter().map(|AccountSlots { address, slots }| {
            proven_account(&verified, layout, &stems, (*address, slots))
        });
        let proven = proven
            .collect::<Result<Vec<_>, _>>()
            .with_context(|| format!("{file} does not show what --of asks for"))?;
        for (AccountSlots { address, slots }, proven) in args.of.iter().zip(&proven) {
            show_account(*address, proven.account)?;
            for (slot, value) in slots.iter().zip(&proven.slots) {
                let value = shown(value.map(B256::from));
                output::line(&format!("{address} slot {slot} {value}"))?;
            }
        }
        let accounts: BTreeSet<Address> = args.of.iter().map(|of| of.address).collect();
        let slots = args.of.iter().map(|of| of.slots.len()).sum::<usize>();
        output::line(&format!(
            "proven: {} accounts and {slots} slots, by some of {keys} keys, under root {root}",
            accounts.len()
        ))?;
    }
    let new = witness.keys().filter(|(_, diff)| diff.new.is_some());
    match new.count() {
        0 => Ok(()),
        new => output::line(&format!(
            "{new} new values are beside them, of which no proof says anything: see verify-witness"
        )),
    }
}

/// A value, or that there is none.
fn shown(value: Option<B256>) -> String {
    value.map_or("absent".to_owned(), |value| value.to_string())
}
