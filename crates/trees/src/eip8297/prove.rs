//! Proofs of accounts and slots, and what a block touches.

use std::collections::BTreeSet;

use super::failed;
use alloy_primitives::{B256, Bytes, U64, U256};
use arbor_state_tree::{
    AccountSlots, FlatRecords, Opened, StateError, StateWitness, Then, Touched, own,
};
use arbor_tree_eip8297::{NodeMessage, Path, prove, prove_many, witness};
use arbor_verify::eip8297::{
    AccountProof, Code, FIELDS, HashName, ProofFormat, SlotProof, StateMultiproof, code_leaves,
    header_key, keys_of, storage_ways,
};

use super::Eip8297;
use super::changes::flat_changes;
use super::leaves::leaf_updates;
use super::reader::{RECORDS, account_record};
use crate::binary::{AtHead, AtVersion};
use crate::stems::code_after;

pub(super) fn nodes<'t>(then: &'t dyn Then) -> Result<AtVersion<'t>, StateError> {
    Ok(AtVersion {
        undone: own(then.nodes()?),
        head: AtHead(then.view()),
    })
}

fn bytes(messages: Vec<NodeMessage>) -> Vec<Bytes> {
    messages.into_iter().map(Bytes::from).collect()
}

/// Proves an account and some of its slots, each by the nodes on its own way.
pub(super) fn prove_account(
    tree: Eip8297,
    then: &dyn Then,
    AccountSlots { address, slots }: &AccountSlots,
) -> Result<AccountProof, StateError> {
    let address = *address;
    let embedding = tree.embedding();
    let hash = embedding.account(address);
    let mut keys: Vec<Path> = FIELDS.map(|suffix| header_key(&hash, suffix)).to_vec();
    let names: Vec<_> = slots.iter().map(|slot| (hash, address, *slot)).collect();
    keys.extend(embedding.slots(&names));
    let (_, mut proofs) = prove(&nodes(then)?, tree.hasher, tree.packing, &keys).map_err(failed)?;
    let of_slots = proofs.split_off(FIELDS.len());
    // Each node once, in the order of the ways.
    let mut account_proof: Vec<NodeMessage> = Vec::new();
    for message in proofs.into_iter().flatten() {
        if !account_proof.contains(&message) {
            account_proof.push(message);
        }
    }
    let account = RECORDS.account(then, address)?;
    let storage_proof = slots.iter().zip(of_slots).map(|(slot, proof)| {
        Ok(SlotProof {
            key: *slot,
            value: RECORDS.storage(then, address, *slot)?,
            proof: bytes(proof),
        })
    });
    Ok(AccountProof {
        proof_format: ProofFormat::Eip8297,
        hash: HashName::of(tree.hasher.0),
        address,
        account_proof: bytes(account_proof),
        balance: account.map_or(U256::ZERO, |account| account.balance),
        code_hash: account.map_or(B256::ZERO, |account| account.code_hash),
        nonce: U64::from(account.map_or(0, |account| account.nonce)),
        storage_hash: B256::ZERO,
        storage_proof: storage_proof.collect::<Result<_, StateError>>()?,
    })
}

/// Proves several accounts and slots of them by one proof.
pub(super) fn prove_accounts(
    tree: Eip8297,
    then: &dyn Then,
    accounts: &[AccountSlots],
) -> Result<StateMultiproof, StateError> {
    let keys = keys_of(tree.embedding(), accounts);
    let (_, proof) = prove_many(&nodes(then)?, tree.hasher, tree.packing, &keys).map_err(failed)?;
    Ok(StateMultiproof {
        hash: HashName::of(tree.hasher.0),
        accounts: accounts.to_vec(),
        multiproof: proof.encode().into(),
    })
}

/// The nodes that it takes to read and change what a block does: also those that show whether an
/// account that a contract can be created at has slots, and whether a code that comes is there
/// already.
pub(super) fn block_nodes(
    tree: Eip8297,
    then: &dyn Then,
    touched: Touched<'_>,
) -> Result<StateWitness, StateError> {
    let embedding = tree.embedding();
    let code = code_after(then.view(), touched.changes);
    let flat = flat_changes(then, touched.changes, &code)?;
    let updates = leaf_updates(flat.flat(), embedding, &code)?;
    let (mut keys, mut ways) = (BTreeSet::<Path>::new(), BTreeSet::<Path>::new());
    let changed = touched.changes.accounts.iter();
    let changed =
        changed.map(|(address, change)| (address, change.slots.keys().copied().collect()));
    let reads = touched
        .reads
        .iter()
        .map(|(address, slots)| (address, slots.clone()));
    for (address, slots) in reads.chain(changed) {
        let hash = embedding.account(*address);
        keys.extend(FIELDS.map(|suffix| header_key(&hash, suffix)));
        let slots: Vec<_> = slots
            .into_iter()
            .map(|slot| (hash, *address, slot))
            .collect();
        keys.extend(embedding.slots(&slots));
        // Only the creation of a contract asks whether there are slots (EIP-7610), at an address
        // without nonce and code.
        let record = account_record(then, *address)?;
        if record.is_none_or(|of| of.code == Code::None && of.account.nonce == 0) {
            ways.extend(storage_ways(&hash));
        }
    }
    for change in touched.changes.accounts.values() {
        let old = change.old.map(|old| old.code_hash);
        if let Some(new) = change.new.filter(|new| Some(new.code_hash) != old)
            && new.code_hash != alloy_primitives::KECCAK256_EMPTY
        {
            let leaves = code_leaves(embedding, new.code_hash, &code(new.code_hash)?);
            keys.extend(leaves.first().map(|leaf| leaf.key));
        }
    }
    // Paths that show whether there is storage lead to no leaf.
    let updated = updates.iter().map(|update| update.key);
    let updated = updated.filter(|key| !keys.contains(key));
    let leaves = keys.len() + updated.collect::<BTreeSet<Path>>().len();
    let keys: Vec<Path> = keys.union(&ways).copied().collect();
    let (_, nodes) =
        witness(&nodes(then)?, tree.hasher, tree.packing, &keys, &updates).map_err(failed)?;
    let opened = Opened {
        nodes: Some(nodes.len() as u64),
        stems: None,
        leaves: leaves as u64,
    };
    Ok(StateWitness::Nodes {
        nodes: bytes(nodes),
        opened,
    })
}
