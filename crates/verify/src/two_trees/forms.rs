//! The form of the proofs.

use std::fmt;
use std::io::Write;

use alloy_primitives::{B256, U256, keccak256};
use arbor_accounts::AccountSlots;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::kinds::{VerifyKind, standard};
use crate::proof::{Claims, Malformed, Proof, ProofForm, ProvenAccount, Verdict, write_with_form};

/// A state on its way, as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: "two-trees",
    forms: &FORMS,
    twin: None,
    account_of: None,
    partial_state: None,
    compact: None,
    leaves: None,
};

static FORMS: [ProofForm; 1] = [ProofForm::named::<TwoTrees>("two-trees/1")];

/// A proof of names of a state on its way.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TwoTrees {
    /// The tree that the state comes from.
    pub source: OneOfTwo,
    /// The tree that it goes to.
    pub target: OneOfTwo,
    /// Where each name is, in the order of the names.
    pub names: Vec<Held>,
}

/// The proof of one of the trees.
pub struct OneOfTwo {
    /// The tree's name.
    pub tree: String,
    /// Its root.
    pub root: B256,
    /// The proof.
    pub proof: Box<dyn Proof>,
}

/// Where an account and slots of it are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Held {
    /// Whose they are.
    pub address: alloy_primitives::Address,
    /// Where the account itself is.
    pub account: Place,
    /// Slots, and where each is.
    pub slots: Vec<(U256, Place)>,
}

/// Which tree has what a name has now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// The source: it was not moved yet, nor written since.
    Source,
    /// The target: it was moved or written. If the target does not have it, it is gone.
    Target,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tree: String,
    root: B256,
    proof: Value,
}

impl fmt::Debug for OneOfTwo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneOfTwo")
            .field("tree", &self.tree)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl Serialize for OneOfTwo {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut json = Vec::new();
        let written = self.proof.write_json(&mut json, false);
        let proof = written.and_then(|()| serde_json::from_slice(&json));
        let written = Written {
            tree: self.tree.clone(),
            root: self.root,
            proof: proof.map_err(serde::ser::Error::custom)?,
        };
        written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for OneOfTwo {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Written { tree, root, proof } = Written::deserialize(from)?;
        let kinds = standard().only(&tree).filter(|_| tree != VERIFY.tree);
        let kinds = kinds.ok_or_else(|| {
            let name: String = tree.chars().take(80).collect();
            D::Error::custom(format!("\"{name}\" is no tree that such a state has"))
        })?;
        let proof = kinds.read(proof).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            D::Error::custom(format!("{error}{}", cause.unwrap_or_default()))
        })?;
        Ok(Self { tree, root, proof })
    }
}

/// What one tree shows of the names, in their order.
type Shown = Result<Vec<ProvenAccount>, String>;

impl OneOfTwo {
    fn shows(&self, names: &[AccountSlots]) -> Result<(Shown, Vec<String>), Malformed> {
        let claims = match self.proof.verify(self.root)? {
            Verdict::True(claims) => claims,
            Verdict::False(why) => return Ok((Err(format!("{}: {why}", self.tree)), Vec::new())),
        };
        let kind = standard().find(&self.tree);
        let account_of = kind.and_then(|kind| kind.account_of);
        let accounts = names.iter().map(|of| {
            let shown = match account_of {
                Some(account_of) => {
                    account_of(&claims.leaves, of).map_err(|why| why.to_string())?
                }
                None => {
                    let account = claims.account(of.address).cloned();
                    account.ok_or_else(|| {
                        format!("{}: it shows nothing of {}", self.tree, of.address)
                    })?
                }
            };
            match of.slots.iter().find(|slot| shown.slot(**slot).is_none()) {
                None => Ok(shown),
                Some(slot) => Err(format!(
                    "{}: it shows nothing of slot {slot} of {}",
                    self.tree, of.address
                )),
            }
        });
        Ok((accounts.collect(), claims.doubtful))
    }
}

impl Proof for TwoTrees {
    fn form(&self) -> &'static ProofForm {
        &FORMS[0]
    }

    fn names(&self) -> Vec<AccountSlots> {
        let names = self.names.iter().map(|held| AccountSlots {
            address: held.address,
            slots: held.slots.iter().map(|(slot, _)| *slot).collect(),
        });
        names.collect()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let both = keccak256([self.source.root.0, self.target.root.0].concat());
        if both != root {
            return Ok(Verdict::False(format!(
                "the roots of its two trees make {both}, not {root}"
            )));
        }
        let names = self.names();
        if names.is_empty() {
            return Ok(Verdict::False("it names no account".into()));
        }
        let (source, mut doubtful) = self.source.shows(&names)?;
        let (target, of_target) = self.target.shows(&names)?;
        doubtful.extend(of_target);
        for tree in [&self.source.tree, &self.target.tree] {
            // Its roots do not show how accounts lie in it.
            if let Some(twin) = standard().find(tree).and_then(|kind| kind.twin) {
                doubtful.push(format!("that the tree is {tree} and not {twin}"));
            }
        }
        let (source, target) = match (source, target) {
            (Ok(source), Ok(target)) => (source, target),
            (Err(why), _) | (_, Err(why)) => return Ok(Verdict::False(why)),
        };
        let mut accounts = Vec::with_capacity(names.len());
        for ((held, source), target) in self.names.iter().zip(source).zip(target) {
            let account = match (target.account, held.account) {
                (None, place) => {
                    if source.account.is_some() {
                        doubtful.push(format!("{}", held.address));
                    }
                    source.account.filter(|_| place == Place::Source)
                }
                (account, Place::Target) => account,
                (Some(_), Place::Source) => return Ok(said_wrongly(&held.address.to_string())),
            };
            let mut slots = Vec::with_capacity(held.slots.len());
            for (slot, place) in &held.slots {
                let value = |of: &ProvenAccount| of.slot(*slot).unwrap_or_default();
                let (before, now) = (value(&source), value(&target));
                let value = match (now.is_zero(), place) {
                    (true, place) => {
                        if !before.is_zero() {
                            doubtful.push(format!("{}/{slot:#x}", held.address));
                        }
                        if *place == Place::Source {
                            before
                        } else {
                            U256::ZERO
                        }
                    }
                    (false, Place::Target) => now,
                    (false, Place::Source) => {
                        return Ok(said_wrongly(&format!("{}/{slot:#x}", held.address)));
                    }
                };
                slots.push((*slot, Some(value)));
            }
            accounts.push(ProvenAccount {
                address: held.address,
                account,
                slots,
            });
        }
        Ok(Verdict::True(Claims {
            accounts,
            doubtful,
            ..Claims::default()
        }))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

fn said_wrongly(name: &str) -> Verdict {
    Verdict::False(format!(
        "it says that {name} is in the source, and the target has it"
    ))
}
