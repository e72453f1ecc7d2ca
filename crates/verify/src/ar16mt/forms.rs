//! The forms of proofs.

use std::io::Write;

use alloy_primitives::B256;
use arbor_accounts::AccountSlots;

use super::keys::KeysProof;
use super::multi::StateMultiproof;
use super::proof::StateProof;
use super::range::RangeProof;
use crate::kinds::VerifyKind;
use crate::proof::{
    Claims, Malformed, Proof, ProofForm, ProvenAccount, ProvenLeaf, Range, Verdict, write_with_form,
};

/// AR16MT as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: "ar16mt",
    forms: &FORMS,
    twin: None,
    account_of: None,
    partial_state: None,
    compact: None,
    leaves: None,
};

static FORMS: [ProofForm; 4] = [
    ProofForm::named::<StateProof>("ar16mt/1"),
    ProofForm::named::<StateMultiproof>("ar16mt-accounts/1"),
    ProofForm::named::<RangeProof>("ar16mt-range/1"),
    ProofForm::named::<KeysProof>("ar16mt-keys/1"),
];

impl Proof for StateProof {
    fn form(&self) -> &'static ProofForm {
        &FORMS[0]
    }

    fn names(&self) -> Vec<AccountSlots> {
        vec![AccountSlots {
            address: self.address,
            slots: self.slots.iter().map(|slot| slot.slot).collect(),
        }]
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let shown = self.verify(root).map_err(Malformed::new)?;
        let slots = self.slots.iter();
        let proven = |account| ProvenAccount {
            address: self.address,
            account,
            slots: slots.map(|slot| (slot.slot, Some(slot.value))).collect(),
        };
        Ok(Verdict::of_accounts(
            shown.map(|account| vec![proven(account)]),
        ))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

/// Why hashes do not lead to a root.
const FALSE: &str = "its hashes lead to another root";

impl Proof for StateMultiproof {
    fn form(&self) -> &'static ProofForm {
        &FORMS[1]
    }

    fn names(&self) -> Vec<AccountSlots> {
        self.accounts.clone()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let shown = self.verify(root).map_err(Malformed::new)?;
        Ok(Verdict::of_accounts(shown.ok_or(FALSE)))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

impl Proof for RangeProof {
    fn form(&self) -> &'static ProofForm {
        &FORMS[2]
    }

    fn names(&self) -> Vec<AccountSlots> {
        Vec::new()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        if !self.verify(root).map_err(Malformed::new)? {
            return Ok(Verdict::False(FALSE.into()));
        }
        let leaves = self.entries.iter().map(|leaf| ProvenLeaf {
            key: leaf.key,
            index: Some(leaf.index),
            value: Some(leaf.value),
        });
        let (from, to) = (self.from, self.to);
        Ok(Verdict::True(Claims {
            leaves: leaves.collect(),
            range: Some(Range { from, to }),
            ..Claims::default()
        }))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

impl Proof for KeysProof {
    fn form(&self) -> &'static ProofForm {
        &FORMS[3]
    }

    fn names(&self) -> Vec<AccountSlots> {
        Vec::new()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let shown = self.verify(root).map_err(Malformed::new)?;
        Ok(Verdict::of_leaves(shown.ok_or(FALSE)))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}
