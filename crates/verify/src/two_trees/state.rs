//! The part of a state that a proof amid a move shows, over which a block is executed.

use std::collections::{BTreeMap, HashMap};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use arbor_accounts::{Account, IntermediateRoots, ReadError, StateChanges, StateView};
use serde_json::Value;

use super::forms::{FORMS, TwoTrees};
use crate::kinds::{PartialState, Reached};
use crate::proof::{Verdict, fields};
use crate::witness_parts::WitnessParts;

/// The hash function of the roots amid a move.
const HASH: &str = "keccak256";

/// An account that a proof shows, with slots.
type Shown = (Option<Account>, BTreeMap<U256, U256>);

/// The names of a proof that holds.
struct Names {
    accounts: BTreeMap<Address, Shown>,
    /// Names that are absent only if the maker of the proof is honest.
    doubtful: usize,
}

/// The part of a state that a proof shows.
struct ProvenState {
    /// The names, or why the proof shows none.
    names: Result<Names, String>,
    codes: HashMap<B256, Bytes>,
}

/// Makes a state of the one proof in a witness, in JSON, and of its codes.
pub(super) fn partial_state(parts: WitnessParts<'_>) -> Option<Box<dyn PartialState>> {
    if parts.hash != HASH {
        return None;
    }
    let codes = parts.codes.iter();
    let names = match parts.nodes {
        [proof] => names(parts.root, proof),
        others => Err(format!("it has {} proofs, and needs one", others.len())),
    };
    Some(Box::new(ProvenState {
        names,
        codes: codes.map(|code| (keccak256(code), code.clone())).collect(),
    }))
}

fn names(root: B256, proof: &[u8]) -> Result<Names, String> {
    let mut file: Value = serde_json::from_slice(proof).map_err(|error| error.to_string())?;
    let form = file
        .as_object_mut()
        .and_then(|fields| fields.remove("form"));
    let [own] = &FORMS;
    if form.as_ref().and_then(Value::as_str) != Some(own.name) {
        return Err(format!("it is not of the form {}", own.name));
    }
    let proof: TwoTrees = fields(file).map_err(|error| error.to_string())?;
    let verdict = proof.verify_as_told(root);
    let claims = match verdict.map_err(|error| error.to_string())? {
        Verdict::True(claims) => claims,
        Verdict::False(why) => return Err(why),
    };
    let mut accounts: BTreeMap<Address, Shown> = BTreeMap::new();
    for proven in claims.accounts {
        let (account, slots) = accounts.entry(proven.address).or_default();
        *account = proven.account;
        let values = proven.slots.into_iter();
        slots.extend(values.map(|(slot, value)| (slot, value.unwrap_or_default())));
    }
    Ok(Names {
        accounts,
        doubtful: claims.doubtful.len(),
    })
}

impl ProvenState {
    fn shown(&self, address: Address) -> Result<&Shown, ReadError> {
        let names = self.names.as_ref();
        let names = names.map_err(|why| ReadError::new(format!("the proof: {why}")))?;
        let shown = names.accounts.get(&address);
        shown.ok_or_else(|| {
            ReadError::new(format!("the proof says nothing of account {address:#x}"))
        })
    }
}

impl StateView for ProvenState {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        Ok(self.shown(address)?.0)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let (_, slots) = self.shown(address)?;
        slots.get(&slot).copied().ok_or_else(|| {
            ReadError::new(format!(
                "the proof says nothing of slot {slot:#x} of account {address:#x}"
            ))
        })
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        let code = self.codes.get(&code_hash).cloned();
        code.ok_or(ReadError::MissingCode(code_hash))
    }
}

impl PartialState for ProvenState {
    fn pending_roots(&self) -> Box<dyn IntermediateRoots + '_> {
        Box::new(NoRoots)
    }

    fn has_roots(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), ReadError> {
        match &self.names {
            Ok(_) => Ok(()),
            Err(why) => Err(ReadError::new(format!("the proof: {why}"))),
        }
    }

    fn reached(&self) -> Reached {
        let accounts = self.names.iter().flat_map(|names| names.accounts.values());
        let hashes = accounts.filter_map(|(account, _)| Some(account.as_ref()?.code_hash));
        let hashes: std::collections::BTreeSet<B256> = hashes.collect();
        let codes = self.codes.keys().filter(|hash| hashes.contains(*hash));
        Reached {
            nodes: usize::from(self.names.is_ok()),
            codes: codes.count(),
        }
    }

    fn doubtful(&self) -> usize {
        self.names.as_ref().map_or(0, |names| names.doubtful)
    }
}

/// The proof does not have what the block moves, so that no root after it follows.
struct NoRoots;

impl IntermediateRoots for NoRoots {
    fn root_after(&mut self, _: &StateChanges) -> Result<B256, ReadError> {
        Err(ReadError::new(
            "the root after a block amid a move does not follow from its witness",
        ))
    }
}
