//! The form of the proofs.

use std::fmt;
use std::io::Write;

use alloy_primitives::{B256, U256};
use arbor_accounts::AccountSlots;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::gone::{self, Gone, Log};
use super::places::{Place, PlacesOfAccount, TwoPlaces};
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
    /// The names.
    pub names: Vec<AccountSlots>,
    /// The log of what is gone: the entries of each block that has any, in the blocks' order.
    pub gone: Vec<Vec<Gone>>,
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
        self.names.clone()
    }

    fn verify(&self, root: B256) -> Result<Verdict, Malformed> {
        let log = match Log::new(&self.gone) {
            Ok(log) => log,
            Err(why) => return Ok(Verdict::False(format!("the log of what is gone: {why}"))),
        };
        let of_all = gone::root(self.source.root, self.target.root, log.hash());
        if of_all != root {
            return Ok(Verdict::False(format!(
                "the roots of its two trees and its log of what is gone make {of_all}, not {root}"
            )));
        }
        if self.names.is_empty() {
            return Ok(Verdict::False("it names no account".into()));
        }
        let (source, mut doubtful) = self.source.shows(&self.names)?;
        let (target, of_target) = self.target.shows(&self.names)?;
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
        let pairs = self.names.iter().zip(source.iter().zip(&target));
        let (accounts, places) = pairs
            .map(|(of, (source, target))| shown(&log, of, source, target))
            .unzip();
        Ok(Verdict::True(Claims {
            accounts,
            doubtful,
            places: Some(TwoPlaces {
                source: self.source.tree.clone(),
                target: self.target.tree.clone(),
                accounts: places,
            }),
            ..Claims::default()
        }))
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

/// Returns what an account and slots of it are by what both trees show and the log, and where they
/// are.
fn shown(
    log: &Log,
    of: &AccountSlots,
    source: &ProvenAccount,
    target: &ProvenAccount,
) -> (ProvenAccount, PlacesOfAccount) {
    let address = of.address;
    let (account, place) = match (target.account, source.account) {
        (Some(account), _) => (Some(account), Place::Target),
        (None, Some(account)) if !log.has_account(address) => (Some(account), Place::Source),
        (None, _) => (None, Place::Neither),
    };
    let slots = of.slots.iter().map(|slot| {
        let value = |of: &ProvenAccount| of.slot(*slot).unwrap_or_default();
        let (before, now) = (value(source), value(target));
        let (value, place) = match (now.is_zero(), before.is_zero()) {
            (false, _) => (now, Place::Target),
            (true, false) if !log.has_slot(address, *slot) => (before, Place::Source),
            (true, _) => (U256::ZERO, Place::Neither),
        };
        ((*slot, Some(value)), place)
    });
    let (slots, of_slots) = slots.unzip();
    let places = PlacesOfAccount {
        account: place,
        slots: of_slots,
    };
    let proven = ProvenAccount {
        address,
        account,
        slots,
    };
    (proven, places)
}
