//! Checking a database: the tree rebuilt from the flat tables, in the order of stems, and compared
//! record by record.

use std::sync::Arc;

use alloy_primitives::B256;
use arbor_state_tree::{Check, StateError};
use arbor_tree_eip7864::{Part, Path, join};
use rayon::prelude::*;

use super::load::part;
use super::{Eip7864, failed};
use crate::binary::Comparison;
use crate::stems::{OrderedLeaves, RecordCheck, first_bytes};

/// Rebuilds the tree and compares it with what is stored; returns the Merkle-Patricia root of the
/// same flat tables, zero if they have none.
pub(super) fn check_state(
    check: &Check<'_>,
    tree: Eip7864,
    stored: B256,
) -> Result<B256, StateError> {
    // The records are compared as they are packed.
    let comparison = Comparison::new(check);
    let tree = Eip7864 {
        packing: comparison.packing()?.unwrap_or(tree.packing),
        ..tree
    };
    let records = RecordCheck::new(check, Eip7864::LAYOUT);
    let root = rebuilt(tree, &comparison, &records)?;
    if root != stored {
        comparison.fault(format!(
            "root: the flat state gives {root}, the head has {stored}"
        ));
    }
    comparison.spare_nodes()?;
    records.finish()
}

/// Rebuilds the tree, and returns its root.
fn rebuilt(
    tree: Eip7864,
    comparison: &Comparison<'_>,
    records: &RecordCheck<'_>,
) -> Result<B256, StateError> {
    let (view, stems) = (records.check.view, tree.stems());
    let mut parts: Vec<Part> = Vec::with_capacity(256);
    for firsts in first_bytes(view, tree.leaf_bytes)? {
        // What cannot be read is reported once, where every record is looked at.
        let leaves = OrderedLeaves::read(view, &stems, &firsts, &|_| Ok(()))?;
        let of_first = firsts.into_par_iter().map(|first| {
            let leaves = leaves.take(first);
            let mut built: Vec<(Path, Arc<[u8]>)> = Vec::new();
            let mut stopped = None;
            let found = leaves
                .stems()
                .map(|under| Ok((under.stem, records.values(&under)?)));
            let mut sink = |path, record| {
                built.push((path, record));
                if built.len() >= Comparison::TOGETHER
                    && let Err(error) = comparison.compare(&mut built)
                {
                    stopped.get_or_insert(error);
                }
            };
            let part = part(tree, found, &mut sink)?;
            comparison.compare(&mut built)?;
            records.check.part_done();
            stopped.map_or(Ok(part), Err)
        });
        let of_first: Result<Vec<Part>, StateError> = of_first.collect();
        parts.extend(of_first?);
    }
    let mut built = Vec::new();
    let mut sink = |path, record| built.push((path, record));
    let root = join(tree.hasher, tree.packing, &parts, &mut sink).map_err(failed)?;
    comparison.compare(&mut built)?;
    Ok(root.into())
}
