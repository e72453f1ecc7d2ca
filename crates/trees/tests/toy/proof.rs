//! The proof of anything: all records.

use std::io::Write;

use alloy_primitives::{B256, Bytes};
use arbor_state_tree::{ACCOUNTS, AccountSlots};
use arbor_store::Table;
use arbor_verify::{Claims, Malformed, Proof, ProofForm, ProvenAccount, Verdict, VerifyKind};
use serde::{Deserialize, Serialize};

use super::records::{decode_account, decode_slot, root, slot_key};
use super::{Records, of_account};

pub(super) static VERIFY: VerifyKind = VerifyKind {
    tree: "toy",
    forms: &FORMS,
    twin: None,
    account_of: None,
    partial_state: None,
    compact: None,
    leaves: None,
};

static FORMS: [ProofForm; 1] = [ProofForm {
    name: "toy/1",
    marks: &[],
    shared: &[],
    decode: |file| {
        Ok(Box::new(serde_path_to_error::deserialize::<_, AllRecords>(
            file,
        )?))
    },
    from_bytes: None,
}];

/// What is proven, and all records of the state.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllRecords {
    accounts: Vec<AccountSlots>,
    records: Vec<(u8, Bytes, Bytes)>,
}

impl AllRecords {
    pub(super) fn new(accounts: &[AccountSlots], records: &Records) -> Self {
        let records = records.iter().map(|((table, key), value)| {
            let bytes = |part: &[u8]| Bytes::copy_from_slice(part);
            (table.0, bytes(key), bytes(value))
        });
        Self {
            accounts: accounts.to_vec(),
            records: records.collect(),
        }
    }
}

impl Proof for AllRecords {
    fn form(&self) -> &'static ProofForm {
        &FORMS[0]
    }

    fn names(&self) -> Vec<AccountSlots> {
        self.accounts.clone()
    }

    fn verify(&self, expected: B256) -> Result<Verdict, Malformed> {
        let records = self.records.iter();
        let records =
            records.map(|(table, key, value)| ((Table(*table), key[..].into()), value[..].into()));
        let records: Records = records.collect();
        let actual = root(&records);
        if actual != expected {
            return Ok(Verdict::False(format!(
                "its records have the root {actual}"
            )));
        }
        let mut claims = Claims::default();
        for AccountSlots { address, slots } in &self.accounts {
            let account = records.get(&(ACCOUNTS, address.as_slice().into()));
            let account = account.map(|bytes| decode_account(address.as_slice(), bytes));
            let slots = slots.iter().map(|slot| {
                let key = slot_key(*address, *slot);
                let mut own = of_account(&records, *address);
                let found = own.find(|(of, _)| **of == *key);
                let value = found
                    .map(|(key, bytes)| decode_slot(key, bytes))
                    .transpose()?;
                Ok((*slot, value))
            });
            let slots: Result<_, arbor_state_tree::StateError> = slots.collect();
            claims.accounts.push(ProvenAccount {
                address: *address,
                account: account.transpose().map_err(Malformed::new)?,
                slots: slots.map_err(Malformed::new)?,
            });
        }
        Ok(Verdict::True(claims))
    }

    fn write_json(&self, out: &mut dyn Write, _: bool) -> serde_json::Result<()> {
        #[derive(Serialize)]
        struct WithForm<'a> {
            form: &'a str,
            #[serde(flatten)]
            proof: &'a AllRecords,
        }
        let form = self.form().name;
        serde_json::to_writer(out, &WithForm { form, proof: self })
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        None
    }
}
