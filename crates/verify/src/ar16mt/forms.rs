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
    Claims, Malformed, Proof, ProofForm, ProvenAccount, ProvenLeaf, Range, Verdict, fields,
    write_with_form,
};

/// AR16MT as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: "ar16mt",
    forms: &FORMS,
    account_of: None,
    partial_state: None,
    compact: None,
    leaves: None,
};

static FORMS: [ProofForm; 4] = [
    ProofForm {
        name: "ar16mt/1",
        marks: &[],
        shared: &[],
        decode: |file| Ok(Box::new(fields::<StateProof>(file)?)),
        from_bytes: None,
    },
    ProofForm {
        name: "ar16mt-accounts/1",
        marks: &[],
        shared: &[],
        decode: |file| Ok(Box::new(fields::<StateMultiproof>(file)?)),
        from_bytes: None,
    },
    ProofForm {
        name: "ar16mt-range/1",
        marks: &[],
        shared: &[],
        decode: |file| Ok(Box::new(fields::<RangeProof>(file)?)),
        from_bytes: None,
    },
    ProofForm {
        name: "ar16mt-keys/1",
        marks: &[],
        shared: &[],
        decode: |file| Ok(Box::new(fields::<KeysProof>(file)?)),
        from_bytes: None,
    },
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
        let account = match self.verify(root).map_err(Malformed::new)? {
            Ok(account) => account,
            Err(why) => return Ok(Verdict::False(why.to_string())),
        };
        let slots = self.slots.iter();
        let proven = ProvenAccount {
            address: self.address,
            account,
            slots: slots.map(|slot| (slot.slot, Some(slot.value))).collect(),
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
        Ok(match self.verify(root).map_err(Malformed::new)? {
            None => Verdict::False(FALSE.into()),
            Some(accounts) => Verdict::True(Claims {
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

    fn to_bytes(&self) -> Option<Vec<u8>> {
        None
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
        Ok(match self.verify(root).map_err(Malformed::new)? {
            None => Verdict::False(FALSE.into()),
            Some(leaves) => Verdict::True(Claims {
                leaves,
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
