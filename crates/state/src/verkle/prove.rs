//! Proofs of an account's fields and slots under a Verkle tree.

use std::collections::HashMap;
use std::sync::Arc;

use alloy_primitives::{Address, U256};
use arbor_tree::ReadError;
use arbor_tree_verkle::{NodeKey, NodeReader, Value, ValueReader, Witness, prove};
use arbor_versions::View;

use super::places::{StemName, slot_place};
use super::stems::Stem;
use super::values::Leaves;
use super::{STEMS, Undone, Verkle};
use crate::{Historical, StateError};

/// What proofs read: nodes and leaves of one version, and the names of stems.
struct Version<'b, 'a> {
    nodes: &'b Undone<'a>,
    leaves: Leaves<'b>,
    view: View<'a>,
    /// Those of the stems asked for, present or not.
    names: HashMap<Stem, StemName>,
}

impl NodeReader for Version<'_, '_> {
    fn nodes(&self, keys: &[NodeKey]) -> Result<Vec<Option<Arc<[u8]>>>, ReadError> {
        self.nodes.nodes(keys)
    }
}

impl ValueReader for Version<'_, '_> {
    fn values(&self, stems: &[Stem]) -> Result<Vec<Vec<(u8, Value)>>, ReadError> {
        let values = stems.iter().map(|stem| {
            let name = match self.names.get(stem) {
                Some(name) => *name,
                None => match self.view.get(STEMS, stem).map_err(StateError::from)? {
                    Some(bytes) => StemName::decode(stem, &bytes)?,
                    None => return Ok(Vec::new()),
                },
            };
            Ok(self.leaves.under(&name)?.values)
        });
        values.collect()
    }
}

/// Proves an account's fields and some of its slots, present or absent: the leaves that the layout gives them, whatever they hold.
pub(crate) fn prove_account(
    verkle: &Verkle,
    state: &Historical<'_>,
    view: View<'_>,
    (address, slots): (Address, &[U256]),
) -> Result<Witness, StateError> {
    let layout = verkle.settings().layout;
    let fields = layout.suffixes().iter().map(|suffix| (U256::ZERO, *suffix));
    let places = fields.chain(slots.iter().map(|slot| slot_place(*slot)));
    let (names, suffixes): (Vec<StemName>, Vec<u8>) = places
        .map(|(index, suffix)| (StemName { address, index }, suffix))
        .unzip();
    let stems = verkle.stems().of(&names);
    let keys: Vec<(Stem, u8)> = stems.iter().copied().zip(suffixes).collect();
    let reader = Version {
        nodes: state.undone_nodes()?,
        leaves: Leaves {
            flat: state,
            view,
            layout,
        },
        view,
        names: stems.into_iter().zip(names).collect(),
    };
    Ok(prove(&reader, verkle.stems().committer(), &keys)?)
}
