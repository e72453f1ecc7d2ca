//! The forms of proofs: that of `eth_getProof`, and a list of such proofs.

use std::io::Write;

use alloy_primitives::B256;
use arbor_accounts::AccountSlots;
use serde::{Deserialize, Serialize};

use super::proof::AccountProof;
use crate::kinds::VerifyKind;
use crate::proof::{
    Claims, Malformed, Proof, ProofForm, ProvenAccount, Verdict, fields, write_with_form,
};

/// Merkle-Patricia as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: "mpt",
    forms: &FORMS,
    twin: None,
    account_of: None,
    partial_state: None,
    compact: Some(super::compact::COMPACT),
    leaves: None,
};

static FORMS: [ProofForm; 2] = [
    ProofForm {
        name: "mpt/1",
        // Of EIP-1186 as all clients write it.
        marks: &["accountProof"],
        shared: &[],
        decode: |file| Ok(Box::new(fields::<AccountProof>(file)?)),
        from_bytes: None,
    },
    ProofForm::named::<ManyAccounts>("mpt-accounts/1"),
];

/// Proofs of several accounts, each with slots of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManyAccounts {
    /// A proof for each account.
    pub accounts: Vec<AccountProof>,
}

impl AccountProof {
    fn name(&self) -> AccountSlots {
        AccountSlots {
            address: self.address,
            slots: self.storage_proof.iter().map(|slot| slot.key).collect(),
        }
    }

    /// What it shows under a root, or why it does not hold.
    fn claim(&self, root: B256) -> Result<Result<ProvenAccount, String>, Malformed> {
        let account = match self.verify(root).map_err(Malformed::new)? {
            Ok(account) => account,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let slots = self.storage_proof.iter();
        Ok(Ok(ProvenAccount {
            address: self.address,
            account,
            slots: slots.map(|slot| (slot.key, Some(slot.value))).collect(),
        }))
    }
}

impl Proof for AccountProof {
    fn form(&self) -> &'static ProofForm {
        &FORMS[0]
    }

    fn names(&self) -> Vec<AccountSlots> {
        vec![self.name()]
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        verdict([self], root)
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

impl Proof for ManyAccounts {
    fn form(&self) -> &'static ProofForm {
        &FORMS[1]
    }

    fn names(&self) -> Vec<AccountSlots> {
        self.accounts.iter().map(AccountProof::name).collect()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        verdict(&self.accounts, root)
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

/// What all proofs show together.
fn verdict<'a>(
    proofs: impl IntoIterator<Item = &'a AccountProof>,
    root: B256,
) -> Result<Verdict, Malformed> {
    let mut claims = Claims::default();
    for proof in proofs {
        match proof.claim(root)? {
            Ok(account) => claims.accounts.push(account),
            Err(why) => return Ok(Verdict::False(why)),
        }
    }
    match claims.accounts.is_empty() {
        true => Err(Malformed::new("it names no account")),
        false => Ok(Verdict::True(claims)),
    }
}
