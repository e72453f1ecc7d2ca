//! The forms of proofs: the testnets' witness, and one that names its accounts.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use alloy_primitives::{B256, hex};
use arbor_accounts::AccountSlots;
use arbor_ipa::Committer;
use arbor_tree_verkle::{Stem, Witness, WitnessError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::named::{leaves_of, root_of};
use super::stems::Stems;
use super::witness::partial_state;
use crate::compact::{CompactForm, CompactSizes, NotCompact, one_node};
use crate::kinds::{NotProven, VerifyKind};
use crate::named_leaves::NamedLeaves;
use crate::proof::{
    Claims, Malformed, Proof, ProofForm, ProvenAccount, ProvenLeaf, Verdict, WrongField, fields,
    write_with_form,
};
use crate::stems::{HeaderLayout, account_of};

/// Verkle (EIP-6800) as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: "verkle",
    forms: &FORMS,
    twin: Some("verkle-2023"),
    account_of: Some(|leaves, names| named(HeaderLayout::BasicData, leaves, names)),
    partial_state: Some(|parts| partial_state(HeaderLayout::BasicData, committer(), parts)),
    compact: Some(COMPACT),
    leaves: Some(NamedLeaves {
        of: |hash, account| leaves_of(HeaderLayout::BasicData, committer(), hash, account),
        root: |hash, leaves| root_of(committer(), hash, leaves),
    }),
};

/// Verkle as testnets before July 2024 laid accounts out.
pub static VERIFY_2023: VerifyKind = VerifyKind {
    tree: "verkle-2023",
    forms: &FORMS_2023,
    twin: Some("verkle"),
    account_of: Some(|leaves, names| named(HeaderLayout::FiveLeaves, leaves, names)),
    partial_state: Some(|parts| partial_state(HeaderLayout::FiveLeaves, committer(), parts)),
    compact: Some(COMPACT),
    leaves: Some(NamedLeaves {
        of: |hash, account| leaves_of(HeaderLayout::FiveLeaves, committer(), hash, account),
        root: |hash, leaves| root_of(committer(), hash, leaves),
    }),
};

/// The one node of a witness is its binary form, without offsets and new values here. The witness of a block that touches
/// nothing has no node.
const COMPACT: CompactForm = CompactForm {
    encode: |parts, is_chunk| {
        let Some(node) = one_node(parts)? else {
            return Ok(Default::default());
        };
        let malformed = |why: String| NotCompact::Malformed(why);
        let witness = Witness::from_bytes(node).map_err(|error| malformed(error.to_string()))?;
        let is_chosen = |stem: &Stem, suffix: u8| {
            let mut key = [suffix; 32];
            key[..31].copy_from_slice(stem);
            is_chunk(&key)
        };
        let written = witness.to_compact(&is_chosen);
        let (bytes, sizes) =
            written.ok_or_else(|| malformed("ways that are not those of its stems".to_owned()))?;
        let sizes = CompactSizes {
            keys: sizes.keys as u64,
            values: (sizes.values - sizes.chosen_values) as u64,
            codes: sizes.chosen_values as u64,
            commitments: sizes.commitments as u64,
            proof: sizes.multiproof as u64,
            structure: sizes.structure as u64,
            ..CompactSizes::default()
        };
        Ok((bytes, sizes))
    },
    decode: |_, _, bytes| {
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let witness = Witness::from_compact(bytes);
        let witness = witness.map_err(|error| NotCompact::Malformed(error.to_string()))?;
        Ok(vec![witness.to_bytes().into()])
    },
};

/// The proof of the leaves, which all forms have, in both spellings.
const MARKS: [&str; 2] = ["verkleProof", "verkle_proof"];

static FORMS: [ProofForm; 2] = [
    ProofForm {
        name: "verkle/1",
        marks: &[],
        shared: &MARKS,
        decode: |file| AccountsWitness::decode(HeaderLayout::BasicData, file),
        from_bytes: None,
    },
    // That of the testnets, which have used both spellings. It has keys and no names, and does not tell the layout.
    ProofForm {
        name: "verkle-witness/1",
        marks: &MARKS,
        shared: &[],
        decode: |file| Ok(Box::new(fields::<Witness>(file)?)),
        from_bytes: Some(|bytes| {
            let witness = Witness::from_bytes(bytes).map_err(Malformed::new)?;
            Ok(Box::new(witness))
        }),
    },
];

static FORMS_2023: [ProofForm; 1] = [ProofForm {
    name: "verkle-2023/1",
    marks: &[],
    shared: &MARKS,
    decode: |file| AccountsWitness::decode(HeaderLayout::FiveLeaves, file),
    from_bytes: None,
}];

/// Bytes for the tables that proofs are checked with: larger ones take longer to make than they save for one proof.
const TABLE_BYTES: usize = 6_000_000;

/// What proofs are checked with, made at the first call.
pub fn committer() -> &'static Arc<Committer> {
    static MADE: OnceLock<Arc<Committer>> = OnceLock::new();
    MADE.get_or_init(|| Arc::new(Committer::within(TABLE_BYTES)))
}

fn named(
    layout: HeaderLayout,
    leaves: &[ProvenLeaf],
    names: &AccountSlots,
) -> Result<ProvenAccount, NotProven> {
    account_of(
        layout,
        &Stems::new(Arc::clone(committer()), 0),
        leaves,
        names,
    )
}

/// Accounts and slots with one proof of all their leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountsWitness {
    /// Where accounts' fields lie.
    pub layout: HeaderLayout,
    /// What is proven.
    pub accounts: Vec<AccountSlots>,
    /// The leaves and the proof.
    pub witness: Witness,
}

impl AccountsWitness {
    fn decode(layout: HeaderLayout, mut file: Value) -> Result<Box<dyn Proof>, WrongField> {
        #[derive(Deserialize)]
        struct Named {
            accounts: Vec<AccountSlots>,
        }
        let accounts = file
            .as_object_mut()
            .and_then(|file| file.remove("accounts"));
        let accounts = accounts.map_or_else(|| json!({}), |accounts| json!({"accounts": accounts}));
        let Named { accounts } = fields(accounts)?;
        let witness = fields(file)?;
        Ok(Box::new(Self {
            layout,
            accounts,
            witness,
        }))
    }
}

impl Proof for AccountsWitness {
    fn form(&self) -> &'static ProofForm {
        match self.layout {
            HeaderLayout::BasicData => &FORMS[0],
            HeaderLayout::FiveLeaves => &FORMS_2023[0],
        }
    }

    fn names(&self) -> Vec<AccountSlots> {
        self.accounts.clone()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        if self.accounts.is_empty() {
            return Err(Malformed::new("it names no account"));
        }
        let Verdict::True(mut claims) = Proof::verify(&self.witness, root)? else {
            return Ok(Verdict::False(FALSE.into()));
        };
        if let Some(stem) = claims.doubtful.first() {
            return Ok(Verdict::False(format!(
                "nothing shows that stem {stem} is absent: its way ends below a node that may be a leaf"
            )));
        }
        let accounts = self.accounts.iter();
        let accounts = accounts.map(|names| named(self.layout, &claims.leaves, names));
        claims.accounts = accounts.collect::<Result<_, _>>().map_err(Malformed::new)?;
        Ok(Verdict::True(claims))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        #[derive(Serialize)]
        struct Named<'a> {
            accounts: &'a [AccountSlots],
            #[serde(flatten)]
            witness: &'a Witness,
        }
        let Self {
            accounts, witness, ..
        } = self;
        write_with_form(self.form(), &Named { accounts, witness }, out, pretty)
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        Some(self.witness.to_bytes())
    }
}

/// Why a multiproof does not hold.
const FALSE: &str = "the openings of the tree's commitments do not hold";

impl Proof for Witness {
    fn form(&self) -> &'static ProofForm {
        &FORMS[1]
    }

    fn names(&self) -> Vec<AccountSlots> {
        Vec::new()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let verified = self
            .verify(committer(), &root.0)
            .map_err(|error| match error {
                WitnessError::Root(why) => {
                    Malformed::new(format!("{root} is no root of a Verkle tree: {why}"))
                }
                error => Malformed::new(error),
            })?;
        let Some(verified) = verified else {
            return Ok(Verdict::False(FALSE.into()));
        };
        let leaves = verified.values().map(|(key, value)| ProvenLeaf {
            key: key.into(),
            index: None,
            value: value.map(B256::from),
        });
        Ok(Verdict::True(Claims {
            leaves: leaves.collect(),
            doubtful: verified
                .doubtful()
                .map(|stem| format!("0x{}", hex::encode(stem)))
                .collect(),
            unproven: self.keys().filter(|(_, diff)| diff.new.is_some()).count(),
            ..Claims::default()
        }))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }

    fn to_bytes(&self) -> Option<Vec<u8>> {
        Some(self.to_bytes())
    }
}
