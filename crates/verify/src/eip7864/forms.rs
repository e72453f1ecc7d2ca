//! The form of proofs: accounts and slots by name, with one proof of all their leaves.

use std::io::Write;

use alloy_primitives::{B256, Bytes};
use arbor_accounts::AccountSlots;
use arbor_tree_eip7864::{HashFunction, Hasher, Multiproof, MultiproofError, Path, Shown, key};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::named::{leaves_of, root_of};
use super::stems::{Revision, Stems};
use super::witness::partial_state;
use crate::compact::{CompactForm, CompactSizes, NotCompact, check_root, one_node};
use crate::hash_name::HashName;
use crate::kinds::VerifyKind;
use crate::named_leaves::NamedLeaves;
use crate::proof::{
    Claims, Malformed, Proof, ProofForm, ProvenLeaf, Verdict, WrongField, fields, write_with_form,
};
use crate::stems::{HeaderLayout, StemHash, StemName, account_of, account_places};

/// EIP-7864's tree, revision of 9 March 2026, as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: "eip7864",
    forms: &FORMS,
    twin: Some("eip7864-a"),
    account_of: None,
    partial_state: Some(|parts| partial_state(Revision::B, parts)),
    compact: Some(COMPACT),
    leaves: Some(NamedLeaves {
        of: |hash, account| leaves_of(Revision::B, hash, account),
        root: root_of,
    }),
};

/// EIP-7864's tree, revision of January 2025.
pub static VERIFY_A: VerifyKind = VerifyKind {
    tree: "eip7864-a",
    forms: &FORMS_A,
    twin: Some("eip7864"),
    account_of: None,
    partial_state: Some(|parts| partial_state(Revision::A, parts)),
    compact: Some(COMPACT),
    leaves: Some(NamedLeaves {
        of: |hash, account| leaves_of(Revision::A, hash, account),
        root: root_of,
    }),
};

/// The one node of a witness is a multiproof, which is compact already.
const COMPACT: CompactForm = CompactForm {
    encode: |parts, _| {
        let node = one_node(parts)?.unwrap_or_default();
        let proof = Multiproof::decode(node).map_err(malformed)?;
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
        let function =
            HashFunction::named(hash).ok_or_else(|| NotCompact::Hash(hash.to_owned()))?;
        let proof = Multiproof::decode(bytes).map_err(malformed)?;
        check_root(root, proof.root(Hasher(function)))?;
        Ok(vec![Bytes::copy_from_slice(bytes)])
    },
};

fn malformed(error: MultiproofError) -> NotCompact {
    NotCompact::Malformed(error.to_string())
}

static FORMS: [ProofForm; 1] = [form("eip7864/1", |file| decode(Revision::B, file))];
static FORMS_A: [ProofForm; 1] = [form("eip7864-a/1", |file| decode(Revision::A, file))];

const fn form(
    name: &'static str,
    decode: fn(Value) -> Result<Box<dyn Proof>, WrongField>,
) -> ProofForm {
    ProofForm {
        name,
        marks: &[],
        shared: &[],
        decode,
        from_bytes: None,
    }
}

fn decode(revision: Revision, file: Value) -> Result<Box<dyn Proof>, WrongField> {
    let file = fields(file)?;
    Ok(Box::new(AccountsMultiproof { revision, file }))
}

/// Accounts, present or absent, and slots of them, with one proof of all their leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountsMultiproof {
    /// The revision of the embedding.
    pub revision: Revision,
    /// What the file has.
    pub file: MultiproofFile,
}

/// The fields of a proof in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiproofFile {
    /// The hash function of the tree.
    #[serde(default)]
    pub hash: HashName,
    /// What it proves.
    pub accounts: Vec<AccountSlots>,
    /// The proof of the leaves of the accounts' fields and of the slots, as [`Multiproof::encode`]
    /// writes it.
    pub multiproof: Bytes,
}

/// What does not hold of a well-formed proof.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FalseProof {
    /// The proof leads to another root.
    #[error("its hashes lead to root {0}")]
    Root(B256),
    /// A key of which the proof says nothing.
    #[error("it says nothing of key {0}")]
    Unsaid(Path),
}

impl AccountsMultiproof {
    /// The leaves that the proof shows under a root: those of all fields of its accounts, and of
    /// their slots.
    ///
    /// # Errors
    /// The outer one for bytes that are no proof, the inner one for what is not proven.
    fn leaves(&self, root: B256) -> Result<Result<Vec<ProvenLeaf>, FalseProof>, Malformed> {
        let MultiproofFile {
            hash,
            accounts,
            multiproof,
        } = &self.file;
        if accounts.is_empty() {
            return Err(Malformed::new("it names no account"));
        }
        let proof = Multiproof::decode(multiproof).map_err(Malformed::new)?;
        let found = proof.root(Hasher(hash.function()));
        if found != root.0 {
            return Ok(Err(FalseProof::Root(found.into())));
        }
        let keys = keys_of(self.stems(), accounts).into_iter();
        let leaves = keys.map(|key| {
            let value = match proof.show(&key) {
                Some(Shown::Value(value)) => Some(value.into()),
                Some(Shown::Absent) => None,
                None => return Err(FalseProof::Unsaid(key)),
            };
            Ok(ProvenLeaf {
                key: B256::from_slice(key.packed()),
                index: None,
                value,
            })
        });
        Ok(leaves.collect())
    }

    fn stems(&self) -> Stems {
        Stems {
            revision: self.revision,
            function: self.file.hash.function(),
        }
    }
}

/// The keys of the leaves of accounts' fields and of those of their slots.
#[must_use]
pub fn keys_of(stems: Stems, accounts: &[AccountSlots]) -> Vec<Path> {
    let places = accounts.iter().flat_map(|named| {
        account_places(HeaderLayout::BasicData, named.address, named.slots.iter())
    });
    let (names, suffixes): (Vec<StemName>, Vec<u8>) = places.unzip();
    let stems = stems.of(&names).into_iter().zip(suffixes);
    stems.map(|(stem, suffix)| key(&stem, suffix)).collect()
}

impl Proof for AccountsMultiproof {
    fn form(&self) -> &'static ProofForm {
        match self.revision {
            Revision::A => &FORMS_A[0],
            Revision::B => &FORMS[0],
        }
    }

    fn names(&self) -> Vec<AccountSlots> {
        self.file.accounts.clone()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let leaves = match self.leaves(root)? {
            Ok(leaves) => leaves,
            Err(why) => return Ok(Verdict::False(why.to_string())),
        };
        let stems = self.stems();
        let accounts = self.file.accounts.iter();
        let accounts =
            accounts.map(|names| account_of(HeaderLayout::BasicData, &stems, &leaves, names));
        let accounts: Result<Vec<_>, _> = accounts.collect();
        Ok(Verdict::True(Claims {
            accounts: accounts.map_err(Malformed::new)?,
            ..Claims::default()
        }))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), &self.file, out, pretty)
    }
}
