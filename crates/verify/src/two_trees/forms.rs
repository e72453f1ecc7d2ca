//! The form of the proofs.

use std::io::Write;
use std::{fmt, iter};

use alloy_primitives::{B256, U256};
use arbor_accounts::AccountSlots;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::gone::{self, Gone, Log};
use super::places::{Place, PlacesOfAccount, TwoPlaces};
use crate::kinds::standard;
use crate::proof::{Claims, Malformed, Proof, ProofForm, ProvenAccount, Verdict, write_with_form};

/// The name by which files call a state on its way, in place of a tree's.
pub(super) const TREE: &str = "two-trees";

pub(super) static FORMS: [ProofForm; 1] = [ProofForm::named::<TwoTrees>("two-trees/1")];

/// A proof of names of a state on its way.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TwoTrees {
    /// The tree that the state comes from.
    pub source: OneOfTwo,
    /// The tree that it goes to; `None` before the first block of the move. The root is then that
    /// of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<OneOfTwo>,
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
        let kinds = standard().only(&tree).filter(|_| tree != TREE);
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
        let mut verdict = self.verify_as_told(root)?;
        if let Verdict::True(claims) = &mut verdict {
            for of in iter::once(&self.source).chain(&self.target) {
                // Its roots do not show how accounts lie in it.
                let kind = standard().find(&of.tree);
                if let Some(twin) = kind.and_then(|kind| kind.twin) {
                    let doubt = format!("that the tree is {} and not {twin}", of.tree);
                    claims.doubtful.push(doubt);
                }
            }
        }
        Ok(verdict)
    }

    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()> {
        write_with_form(self.form(), self, out, pretty)
    }
}

impl TwoTrees {
    /// Verifies the proof like [`verify`](Proof::verify), but believes it of which trees it is.
    pub(super) fn verify_as_told(&self, root: B256) -> Result<Verdict, Malformed> {
        let log = match Log::new(&self.gone) {
            Ok(log) => log,
            Err(why) => return Ok(Verdict::False(format!("the log of what is gone: {why}"))),
        };
        let own = match &self.target {
            Some(target) => gone::root(self.source.root, target.root, log.hash()),
            None if self.gone.is_empty() => self.source.root,
            None => {
                let why = "it has a log of what is gone, and no tree that the state moves to";
                return Ok(Verdict::False(why.into()));
            }
        };
        if own != root {
            return Ok(Verdict::False(format!(
                "the roots of its trees and its log of what is gone make {own}, not {root}"
            )));
        }
        if self.names.is_empty() {
            return Ok(Verdict::False("it names no account".into()));
        }
        let (source, mut doubtful) = self.source.shows(&self.names)?;
        let target = self.target.as_ref().map(|of| of.shows(&self.names));
        let (target, of_target) = target.transpose()?.unzip();
        doubtful.extend(of_target.into_iter().flatten());
        let (source, target) = match (source, target.transpose()) {
            (Ok(source), Ok(target)) => (source, target),
            (Err(why), _) | (_, Err(why)) => return Ok(Verdict::False(why)),
        };
        let pairs = self.names.iter().zip(source).enumerate();
        let (accounts, places) = pairs
            .map(|(number, (of, source))| {
                let target = target.as_ref().map(|target| &target[number]);
                shown(&log, of, &source, target)
            })
            .unzip();
        Ok(Verdict::True(Claims {
            accounts,
            doubtful,
            places: Some(TwoPlaces {
                source: self.source.tree.clone(),
                target: self.target.as_ref().map(|of| of.tree.clone()),
                accounts: places,
            }),
            ..Claims::default()
        }))
    }
}

/// Returns what an account and slots of it are by what both trees show and the log, and where they
/// are.
fn shown(
    log: &Log,
    of: &AccountSlots,
    source: &ProvenAccount,
    target: Option<&ProvenAccount>,
) -> (ProvenAccount, PlacesOfAccount) {
    let address = of.address;
    let (account, place) = match (target.and_then(|of| of.account), source.account) {
        (Some(account), _) => (Some(account), Place::Target),
        (None, Some(account)) if !log.has_account(address) => (Some(account), Place::Source),
        (None, _) => (None, Place::Neither),
    };
    let slots = of.slots.iter().map(|slot| {
        let value = |of: &ProvenAccount| of.slot(*slot).unwrap_or_default();
        let (before, now) = (value(source), target.map(value).unwrap_or_default());
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
