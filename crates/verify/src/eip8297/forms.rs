//! The forms of proofs.

use std::io::Write;

use alloy_primitives::B256;
use arbor_accounts::AccountSlots;
use arbor_tree_eip8297::Hasher;

use super::multi::StateMultiproof;
use super::named::LEAVES;
use super::proof::AccountProof;
use super::witness::WitnessState;
use crate::kinds::VerifyKind;
use crate::proof::{
    Claims, Malformed, Proof, ProofForm, ProvenAccount, Verdict, fields, write_with_form,
};

/// EIP-8297's tree as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: "eip8297",
    forms: &FORMS,
    account_of: None,
    partial_state: Some(|parts| {
        let hasher = Hasher::named(parts.hash)?;
        let codes = parts.codes.iter().cloned();
        let state = WitnessState::new(hasher, parts.root, parts.nodes, codes);
        Some(Box::new(state))
    }),
    leaves: Some(LEAVES),
};

static FORMS: [ProofForm; 2] = [
    ProofForm {
        name: "eip8297/1",
        // An answer to eth_getProof, which has the field of Merkle-Patricia's, too.
        marks: &["proofFormat"],
        shared: &["accountProof"],
        decode: |file| Ok(Box::new(fields::<AccountProof>(file)?)),
        from_bytes: None,
    },
    ProofForm {
        name: "eip8297-accounts/1",
        marks: &[],
        shared: &[],
        decode: |file| Ok(Box::new(fields::<StateMultiproof>(file)?)),
        from_bytes: None,
    },
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
        let account = match self.verify(root) {
            Ok(account) => account,
            Err(why) => return Ok(Verdict::False(why.to_string())),
        };
        let slots = self.storage_proof.iter();
        let proven = ProvenAccount {
            address: self.address,
            account,
            slots: slots.map(|slot| (slot.key, Some(slot.value))).collect(),
        };
        Ok(Verdict::True(Claims {
            accounts: vec![proven],
            ..Claims::default()
        }))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        None
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
        Ok(match self.verify(root).map_err(Malformed::new)? {
            Err(why) => Verdict::False(why.to_string()),
            Ok(accounts) => Verdict::True(Claims {
                accounts,
                ..Claims::default()
            }),
        })
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        None
    }
}
