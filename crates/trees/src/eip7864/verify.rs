//! Checking a database: the tree rebuilt from the flat tables, in the order of stems, and compared
//! record by record.

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use arbor_state_tree::{Check, CheckedPart, StateError, corrupt};
use arbor_tree_eip7864::{Part, Path, join};
use rayon::prelude::*;

use super::load::part;
use super::{Eip7864, failed};
use crate::binary::{Comparison, check_keys};
use crate::stems::{OrderedLeaves, RecordCheck, check_records, first_bytes};

/// The tree, whose records are compared as they are packed.
fn as_stored(tree: Eip7864, comparison: &Comparison<'_>) -> Result<Eip7864, StateError> {
    Ok(Eip7864 {
        packing: comparison.packing()?.unwrap_or(tree.packing),
        ..tree
    })
}

/// Rebuilds the subtrees of some first bytes and compares them with what is stored; reads the
/// records of accounts and slots.
pub(super) fn check_part(
    check: &Check<'_>,
    tree: Eip7864,
    firsts: &[u8],
) -> Result<CheckedPart, StateError> {
    let comparison = Comparison::new(check);
    let tree = as_stored(tree, &comparison)?;
    let records = RecordCheck::new(check, Eip7864::LAYOUT);
    let subtrees = rebuilt(tree, (&comparison, &records), firsts)?;
    let mut part = records.finish(subtrees, (firsts, tree.sort_bytes))?;
    part.sums.extend(comparison.keys(firsts)?);
    Ok(part)
}

/// Rebuilds the nodes above all subtrees and compares them with what is stored; returns the
/// Merkle-Patricia root of the flat tables, zero if they have none.
pub(super) fn check_join(
    check: &Check<'_>,
    tree: Eip7864,
    parts: &[CheckedPart],
) -> Result<B256, StateError> {
    let comparison = Comparison::new(check);
    let tree = as_stored(tree, &comparison)?;
    let subtrees = CheckedPart::all_subtrees(parts).map(|bytes| {
        Part::decode(bytes).ok_or_else(|| corrupt("parts", bytes, "not a part of the tree"))
    });
    let subtrees: Vec<Part> = subtrees.collect::<Result<_, _>>()?;
    let mut built = Vec::new();
    let mut sink = |path, record| built.push((path, record));
    let root = join(tree.hasher, tree.packing, &subtrees, &mut sink).map_err(failed)?;
    comparison.compare(&mut built)?;
    comparison.check_root(root.into(), check.root(&tree));
    check_keys(&comparison, parts);
    check_records(check, parts)
}

/// Rebuilds the subtrees of some first bytes.
fn rebuilt(
    tree: Eip7864,
    (comparison, records): (&Comparison<'_>, &RecordCheck<'_>),
    firsts: &[u8],
) -> Result<Vec<Bytes>, StateError> {
    let (view, stems) = (records.check.view, tree.stems());
    let mut subtrees: Vec<Bytes> = Vec::with_capacity(firsts.len());
    for firsts in first_bytes(view, firsts, tree.leaf_bytes)? {
        // A record that cannot be read is reported once, when every record is read.
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
            stopped.map_or(Ok(part.encode().into()), Err)
        });
        let of_first: Result<Vec<Bytes>, StateError> = of_first.collect();
        subtrees.extend(of_first?);
    }
    Ok(subtrees)
}
