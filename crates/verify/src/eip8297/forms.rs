//! The forms of proofs.

use std::io::Write;

use alloy_primitives::{B256, Bytes};
use arbor_accounts::AccountSlots;
use arbor_tree_eip8297::{Hasher, Multiproof, messages_of, witness_tree};

use super::keys::KeysProof;
use super::multi::StateMultiproof;
use super::named::LEAVES;
use super::proof::AccountProof;
use super::witness::WitnessState;
use crate::compact::{CompactForm, CompactSizes, NotCompact, check_root};
use crate::kinds::VerifyKind;
use crate::proof::{Malformed, Proof, ProofForm, ProvenAccount, Verdict, fields, write_with_form};

/// EIP-8297's tree as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: "eip8297",
    forms: &FORMS,
    twin: None,
    account_of: None,
    partial_state: Some(|parts| {
        let hasher = Hasher::named(parts.hash)?;
        let codes = parts.codes.iter().cloned();
        let state = WitnessState::new(hasher, parts.root, parts.nodes, codes);
        Some(Box::new(state))
    }),
    compact: Some(COMPACT),
    leaves: Some(LEAVES),
};

/// The nodes as one multiproof.
const COMPACT: CompactForm = CompactForm {
    encode: |parts, _| {
        let hasher = hasher_of(parts.hash)?;
        let nodes = parts.nodes.iter().map(|node| &node[..]);
        let proof = witness_tree(hasher, parts.root.0, nodes).multiproof();
        let sizes = proof.sizes();
        let sizes = CompactSizes {
            keys: sizes.keys as u64,
            values: sizes.values as u64,
            siblings: sizes.siblings as u64,
            structure: sizes.structure as u64,
            ..CompactSizes::default()
        };
        Ok((proof.encode(), sizes))
    },
    decode: |hash, root, bytes| {
        let proof = Multiproof::decode(bytes);
        let proof = proof.map_err(|error| NotCompact::Malformed(error.to_string()))?;
        let (found, messages) = messages_of(hasher_of(hash)?, &proof);
        check_root(root, found)?;
        Ok(messages.into_iter().map(Bytes::from).collect())
    },
};

fn hasher_of(hash: &str) -> Result<Hasher, NotCompact> {
    Hasher::named(hash).ok_or_else(|| NotCompact::Hash(hash.to_owned()))
}

static FORMS: [ProofForm; 3] = [
    ProofForm {
        name: "eip8297/1",
        // An answer to eth_getProof, which has the field of Merkle-Patricia's, too.
        marks: &["proofFormat"],
        shared: &["accountProof"],
        decode: |file| Ok(Box::new(fields::<AccountProof>(file)?)),
        from_bytes: None,
    },
    ProofForm::named::<StateMultiproof>("eip8297-accounts/1"),
    ProofForm::named::<KeysProof>("eip8297-keys/1"),
];

impl Proof for AccountProof {
    fn form(&self) -> &'static ProofForm {
        &FORMS[0]
    }

    fn names(&self) -> Vec<AccountSlots> {
        vec![AccountSlots {
            address: self.address,
            slots: self.storage_proof.iter().map(|slot| slot.key).collect(),
        }]
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let slots = self.storage_proof.iter();
        let proven = |account| ProvenAccount {
            address: self.address,
            account,
            slots: slots.map(|slot| (slot.key, Some(slot.value))).collect(),
        };
        let shown = self.verify(root);
        Ok(Verdict::of_accounts(
            shown.map(|account| vec![proven(account)]),
        ))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

impl Proof for StateMultiproof {
    fn form(&self) -> &'static ProofForm {
        &FORMS[1]
    }

    fn names(&self) -> Vec<AccountSlots> {
        self.accounts.clone()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let shown = self.verify(root).map_err(Malformed::new)?;
        Ok(Verdict::of_accounts(shown))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

impl Proof for KeysProof {
    fn form(&self) -> &'static ProofForm {
        &FORMS[2]
    }

    fn names(&self) -> Vec<AccountSlots> {
        Vec::new()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let shown = self.verify(root).map_err(Malformed::new)?;
        Ok(Verdict::of_leaves(shown))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}
