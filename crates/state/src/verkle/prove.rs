//! Proofs under a Verkle tree: of an account's fields and slots, and of all that a block touches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::changes::{flat_changes, leaf_changes};
use super::header::HeaderLayout;
use super::nodes::{AtHead, AtVersion};
use super::places::{StemName, chunk_place, slot_place};
use super::records::AccountRecord;
use super::stems::{Stem, Stems};
use super::values::Leaves;
use super::{Verkle, stored_code};
use crate::state_tree::{Then, own};
use crate::tables::ACCOUNTS;
use crate::{Account, Reads, StateChanges, StateError};
use alloy_primitives::{Address, U256};
use arbor_tree::ReadError;
use arbor_tree_verkle::{
    NodeKey, NodeReader, StemUpdate, Value, ValueReader, Verified, Witness, prove, prove_guarded,
};

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
        true => prove_guarded(&reader, committer, &keys)?,
        false => prove(&reader, committer, &keys)?,
    })
}

/// The places of an account's fields and some of its slots.
fn account_places<'a>(
    layout: HeaderLayout,
    address: Address,
    slots: impl Iterator<Item = &'a U256>,
) -> impl Iterator<Item = (StemName, u8)> {
    let fields = layout.suffixes().iter();
    let fields = fields.map(|suffix| (U256::ZERO, *suffix));
    let places = fields.chain(slots.map(|slot| slot_place(*slot)));
    places.map(move |(index, suffix)| (StemName { address, index }, suffix))
}

/// Proves an account's fields and some of its slots, present or absent: the leaves that the layout gives them, whatever they hold. None is absent with a doubt.
pub(crate) fn prove_account(
    verkle: &Verkle,
    state: &dyn Then,
    (address, slots): (Address, &[U256]),
) -> Result<Witness, StateError> {
    let places: Vec<_> = account_places(verkle.settings().layout, address, slots.iter()).collect();
    prove_places(verkle, state, &places, true)
}

/// What a proof shows of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProvenAccount {
    /// None where all leaves of its fields are absent or zero, as a deleted account's are.
    pub account: Option<Account>,
    /// The values of the slots asked for, in their order; none where a slot's leaf is absent.
    pub slots: Vec<Option<U256>>,
}

/// What a proof has no key of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotProven {
    /// The leaf of an account's field, by its suffix.
    #[error("it says nothing of leaf {suffix} of account {address}")]
    Field {
        /// The account.
        address: Address,
        /// The suffix of the field's leaf.
        suffix: u8,
    },
    /// A slot.
    #[error("it says nothing of slot {slot} of account {address}")]
    Slot {
        /// The account.
        address: Address,
        /// The slot.
        slot: U256,
    },
}

/// What a proof that holds shows of an account and some of its slots. Proofs have keys and no names: whoever asks for an account computes its keys.
///
/// # Errors
/// A field or a slot of which the proof says nothing.
pub fn proven_account(
    verified: &Verified<'_>,
    layout: HeaderLayout,
    stems: &Stems,
    (address, slots): (Address, &[U256]),
) -> Result<ProvenAccount, NotProven> {
    let (names, suffixes): (Vec<StemName>, Vec<u8>) =
        account_places(layout, address, slots.iter()).unzip();
    let values: HashMap<[u8; 32], Option<Value>> = verified.values().collect();
    let keys = stems.of(&names).into_iter().zip(suffixes);
    let mut values = keys.map(|(stem, suffix)| {
        let mut key = [suffix; 32];
        key[..31].copy_from_slice(&stem);
        values.get(&key).copied()
    });
    let mut fields = HashMap::new();
    for (suffix, value) in layout.suffixes().iter().zip(&mut values) {
        let value = value.ok_or(NotProven::Field {
            address,
            suffix: *suffix,
        })?;
        fields.insert(*suffix, value);
    }
    let of_slots = slots.iter().zip(values);
    let of_slots = of_slots.map(|(slot, value)| {
        let slot = *slot;
        let value = value.ok_or(NotProven::Slot { address, slot })?;
        Ok(value.map(U256::from_be_bytes))
    });
    Ok(ProvenAccount {
        slots: of_slots.collect::<Result<_, _>>()?,
        account: layout.account(|suffix| fields.get(&suffix).copied().flatten()),
    })
}

/// What a block touches of its parent's state, by plain name.
#[derive(Clone, Copy, Debug)]
pub struct Touched<'a> {
    /// Accounts read, present or not, with the slots read.
    pub reads: &'a Reads,
    /// Chunks of code read, by account; those that a code does not have are passed over.
    pub chunks: &'a BTreeMap<Address, BTreeSet<u32>>,
    /// What the block makes of the state.
    pub changes: &'a StateChanges,
    /// Whether keys are added that leave no absence in doubt ([`prove_guarded`]).
    pub guarded: bool,
}

/// The witness of a block's state access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockLeaves {
    /// All leaves that the block touches as they are before it, and the new values of those that it changes.
    pub witness: Witness,
    /// How many of its keys are chunks of code that are read. All of them are there before the block.
    pub chunks: usize,
}

/// Proves all that a block touches, and says what becomes of it. The witness of a block that touches nothing is empty.
pub(crate) fn block_leaves(
    verkle: &Verkle,
    state: &dyn Then,
    touched: Touched<'_>,
) -> Result<BlockLeaves, StateError> {
    let layout = verkle.settings().layout;
    let code = |hash| match touched.changes.codes.get(&hash) {
        Some(code) => Ok(code.clone()),
        None => stored_code(state.view(), hash),
    };
    let flat = flat_changes(state, touched.changes, &code)?;
    let changed = leaf_changes(flat.flat(), layout, verkle.stems(), &code)?;

    let (mut places, mut chunks_read) = (BTreeSet::new(), 0);
    for (address, slots) in touched.reads {
        places.extend(account_places(layout, *address, slots.iter()));
    }
    for (address, chunks) in touched.chunks {
        let key = address.as_slice();
        let record = state.value(ACCOUNTS, key)?;
        let record = record.map(|bytes| AccountRecord::decode(key, &bytes));
        let present = record.transpose()?.map_or(0, |record| record.chunks);
        for chunk in chunks.range(..present) {
            let (index, suffix) = chunk_place(*chunk);
            let address = *address;
            places.insert((StemName { address, index }, suffix));
            chunks_read += 1;
        }
    }
    for (name, update) in changed.names.iter().zip(&changed.updates) {
        let suffixes = update.changes.iter().map(|change| change.suffix);
        places.extend(suffixes.map(|suffix| (*name, suffix)));
    }
    if places.is_empty() {
        return Ok(BlockLeaves {
            witness: Witness::default(),
            chunks: 0,
        });
    }
    let places: Vec<_> = places.into_iter().collect();
    let mut witness = prove_places(verkle, state, &places, touched.guarded)?;
    set_new(&mut witness, &changed.updates);
    Ok(BlockLeaves {
        witness,
        chunks: chunks_read,
    })
}

/// Enters new values. All of their keys are in the witness; both ascend.
fn set_new(witness: &mut Witness, updates: &[StemUpdate]) {
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
