//! Proofs under a Verkle tree: of an account's fields and slots, and of all that a block touches.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::Verkle;
use super::failed;
use super::nodes::{AtHead, AtVersion};
use super::{Stem, StemHash};
use crate::stems::{AccountRecord, Leaves, StemChanges, code_after, flat_changes, leaf_changes};
use arbor_state_tree::ACCOUNTS;
use arbor_state_tree::{AccountSlots, BlockLeaves, StateError};
use arbor_state_tree::{Then, Touched, own};
use arbor_tree::{Hash, ReadError};
use arbor_tree_verkle::{NodeKey, NodeReader, Value, ValueReader, Witness, prove, prove_guarded};
use arbor_verify::verkle::{AccountsWitness, StemName, account_places, chunk_place};

/// What proofs read: nodes and leaves of one version.
struct Version<'b> {
    nodes: AtVersion<'b>,
    leaves: Leaves<'b>,
    /// The names of all stems asked for: only their values are read.
    names: HashMap<Stem, StemName>,
}

impl NodeReader for Version<'_> {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        self.nodes.nodes(keys)
    }
}

impl ValueReader for Version<'_> {
    fn values(&self, stems: &[Stem]) -> Result<Vec<Vec<(u8, Value)>>, ReadError> {
        let values = stems.iter().map(|stem| match self.names.get(stem) {
            Some(name) => Ok(self.leaves.under(name)?),
            None => Ok(Vec::new()),
        });
        values.collect()
    }
}

/// Proves leaves by the names of their stems, present or absent, whatever they hold; and guards what is absent, if wanted.
fn prove_places(
    verkle: &Verkle,
    state: &dyn Then,
    places: &[(StemName, u8)],
    guarded: bool,
) -> Result<Witness, StateError> {
    let names: Vec<StemName> = places.iter().map(|(name, _)| *name).collect();
    let stems = verkle.stems().of(&names);
    let suffixes = places.iter().map(|(_, suffix)| *suffix);
    let keys: Vec<(Stem, u8)> = stems.iter().copied().zip(suffixes).collect();
    let reader = Version {
        nodes: AtVersion {
            undone: own(state.nodes()?),
            head: AtHead(state.view()),
        },
        leaves: Leaves {
            flat: state,
            view: state.view(),
            layout: verkle.settings().layout,
        },
        names: stems.into_iter().zip(names).collect(),
    };
    let committer = verkle.stems().committer();
    Ok(match guarded {
        true => prove_guarded(&reader, committer, &keys).map_err(failed)?,
        false => prove(&reader, committer, &keys).map_err(failed)?,
    })
}

/// Proves accounts' fields and some of their slots, present or absent: the leaves that the layout gives them, whatever they
/// hold. None is absent with a doubt.
pub(super) fn prove_accounts(
    verkle: &Verkle,
    state: &dyn Then,
    accounts: &[AccountSlots],
) -> Result<AccountsWitness, StateError> {
    let layout = verkle.settings().layout;
    let places = accounts.iter();
    let places =
        places.flat_map(|account| account_places(layout, account.address, account.slots.iter()));
    let places: BTreeSet<_> = places.collect();
    let places: Vec<_> = places.into_iter().collect();
    Ok(AccountsWitness {
        layout,
        accounts: accounts.to_vec(),
        witness: prove_places(verkle, state, &places, true)?,
    })
}

/// Proves all that a block touches, and says what becomes of it. The witness of a block that touches nothing is empty.
pub(super) fn block_leaves(
    verkle: &Verkle,
    state: &dyn Then,
    touched: Touched<'_>,
) -> Result<BlockLeaves, StateError> {
    let layout = verkle.settings().layout;
    let code = code_after(state.view(), touched.changes);
    let flat = flat_changes(state, touched.changes, &code)?;
    let changed = leaf_changes(flat.flat(), layout, verkle.stems(), &code)?;

    let (mut places, mut chunks) = (BTreeSet::new(), Vec::new());
    for (address, slots) in touched.reads {
        places.extend(account_places(layout, *address, slots.iter()));
    }
    for (address, numbers) in touched.chunks {
        let key = address.as_slice();
        let record = state.value(ACCOUNTS, key)?;
        let record = record.map(|bytes| AccountRecord::decode(key, &bytes));
        let present = record.transpose()?.map_or(0, |record| record.chunks);
        for chunk in numbers.range(..present) {
            let (index, suffix) = chunk_place(*chunk);
            let address = *address;
            chunks.push((StemName { address, index }, suffix));
        }
    }
    places.extend(chunks.iter().copied());
    for of in &changed {
        let suffixes = of.changes.iter().map(|change| change.suffix);
        places.extend(suffixes.map(|suffix| (of.name, suffix)));
    }
    if places.is_empty() {
        return Ok(BlockLeaves {
            proof: Box::new(Witness::default()),
            chunks: BTreeSet::new(),
        });
    }
    let places: Vec<_> = places.into_iter().collect();
    let mut witness = prove_places(verkle, state, &places, touched.guarded)?;
    set_new(&mut witness, &changed);
    Ok(BlockLeaves {
        proof: Box::new(witness),
        chunks: keys_of(verkle, &chunks),
    })
}

/// The keys of places.
fn keys_of(verkle: &Verkle, places: &[(StemName, u8)]) -> BTreeSet<Hash> {
    let names: Vec<StemName> = places.iter().map(|(name, _)| *name).collect();
    let stems = verkle.stems().of(&names).into_iter().zip(places);
    let keys = stems.map(|(stem, (_, suffix))| {
        let mut key = [*suffix; 32];
        key[..31].copy_from_slice(&stem);
        key
    });
    keys.collect()
}

/// Enters new values. All of their keys are in the witness; both ascend.
fn set_new(witness: &mut Witness, updates: &[StemChanges]) {
    let mut diffs = witness.state_diff.iter_mut();
    for update in updates {
        let Some(diff) = diffs.find(|diff| diff.stem == update.stem) else {
            break;
        };
        let mut suffixes = diff.suffixes.iter_mut();
        for change in &update.changes {
            if let Some(entry) = suffixes.find(|entry| entry.suffix == change.suffix) {
                entry.new = change.new;
            }
        }
    }
}
