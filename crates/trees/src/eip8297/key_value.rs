//! Keys and values of 32 bytes without accounts, in a database of their own.
//!
//! Every key has the same length, so no key is a prefix of another. A record is its value of 32
//! bytes. Zero is absence, so a value of zeros deletes.

use std::sync::Arc;
use std::time::Instant;

use alloy_primitives::B256;
use arbor_state_tree::{
    COMMON, Check, CheckedPart, Computed, KeyValue, KeyValueEntry, KeyValueWrite, StateError, Then,
};
use arbor_store::Table;
use arbor_tree_eip8297::{Builder, Part, Path, join, prove_many};
use arbor_verify::Proof;
use arbor_verify::eip8297::{HashName, KeysProof};
use arbor_versions::{Change, Changes, TableKind, TableSpec, View};
use rayon::prelude::*;

use super::entries::{ENTRIES, decode, entry_update, path};
use super::prove::nodes;
use super::{Eip8297, failed};
use crate::binary::{Comparison, NODES_TABLE, check_keys, computed};

/// The tables of a database that has entries alone.
const TABLES: [TableSpec; 4] = [
    TableSpec {
        table: ENTRIES,
        name: "entries",
        kind: TableKind::Flat,
    },
    NODES_TABLE,
    COMMON[2],
    COMMON[3],
];

/// Bits of the first byte of a key, by which a check is split between threads.
const FIRST_BITS: usize = 8;

impl KeyValue for Eip8297 {
    fn tables(&self) -> &'static [TableSpec] {
        &TABLES
    }

    fn entries(&self) -> Table {
        ENTRIES
    }

    fn decode(&self, key: &[u8], record: &[u8]) -> Result<KeyValueEntry, StateError> {
        path(key)?;
        Ok(KeyValueEntry {
            index: None,
            value: decode(key, record)?.into(),
        })
    }

    fn can_delete(&self) -> bool {
        true
    }

    fn compute(&self, view: View<'_>, batch: &[KeyValueWrite]) -> Result<Computed, StateError> {
        let start = Instant::now();
        let mut batch: Vec<&KeyValueWrite> = batch.iter().collect();
        batch.sort_unstable_by_key(|write| write.key);
        let keys: Vec<&[u8]> = batch.iter().map(|write| write.key.as_slice()).collect();
        let (mut changes, mut updates) = (Changes::default(), Vec::new());
        for (write, old) in batch.iter().zip(view.multi_get(ENTRIES, &keys)?) {
            let new = write.value.filter(|value| !value.is_zero());
            let change = Change {
                table: ENTRIES,
                key: write.key.as_slice(),
                old: old.as_deref(),
                new: new.as_ref().map(|value| value.as_slice()),
            };
            if change.old != change.new {
                updates.push(entry_update(&change)?);
                changes.put_flat(change);
            }
        }
        computed(self, view, start, changes, &updates)
    }

    fn prove(&self, then: &dyn Then, keys: &[B256]) -> Result<Box<dyn Proof>, StateError> {
        let paths = keys.iter().map(|key| path(key.as_slice()));
        let paths: Vec<Path> = paths.collect::<Result<_, _>>()?;
        let (_, proof) =
            prove_many(&nodes(then)?, self.hasher, self.packing, &paths).map_err(failed)?;
        Ok(Box::new(KeysProof {
            hash: HashName::of(self.hasher.0),
            keys: keys.to_vec(),
            multiproof: proof.encode().into(),
        }))
    }

    fn check(&self, check: &Check<'_>) -> Result<(), StateError> {
        let comparison = Comparison::new(check);
        // The records are compared as they are packed.
        let packing = comparison.packing()?.unwrap_or(self.packing);
        let tree = Self { packing, ..*self };
        if check.view.get(ENTRIES, &[])?.is_some() {
            check.tell_fault("an entry without a key".to_owned());
        }
        let firsts: Vec<u8> = (0..=u8::MAX).collect();
        let parts = firsts.par_iter().map(|first| {
            let part = tree.rebuilt(&comparison, *first);
            check.part_done();
            part
        });
        let parts: Vec<Part> = parts.collect::<Result<_, StateError>>()?;
        let above = Comparison::new(check);
        let mut built = Vec::new();
        let mut sink = |path, record| built.push((path, record));
        let root = join(tree.hasher, packing, &parts, &mut sink).map_err(failed)?;
        above.compare(&mut built)?;
        above.check_root(root.into(), check.root(self));
        let found = CheckedPart {
            sums: comparison.keys(&firsts)?.collect(),
            ..CheckedPart::default()
        };
        check_keys(&above, &[found]);
        Ok(())
    }
}

impl Eip8297 {
    /// Rebuilds the part of the tree whose keys begin with a byte, and compares its records.
    fn rebuilt(&self, comparison: &Comparison<'_>, first: u8) -> Result<Part, StateError> {
        let check = comparison.check;
        let mut builder = Builder::part(self.hasher, self.packing, FIRST_BITS);
        let mut built: Vec<(Path, Arc<[u8]>)> = Vec::new();
        for entry in check.scan(ENTRIES, &[first], &[])? {
            let (key, record) = entry?;
            check.count(&check.counts.slots);
            match path(&key).and_then(|path| Ok((path, decode(&key, &record)?))) {
                Ok((path, value)) => {
                    let mut sink = |path, record| built.push((path, record));
                    builder.add(path, value, &mut sink).map_err(failed)?;
                }
                Err(error) => check.tell_fault(error.to_string()),
            }
            if built.len() >= Comparison::TOGETHER {
                comparison.compare(&mut built)?;
            }
        }
        let mut sink = |path, record| built.push((path, record));
        let part = builder.finish_part(&mut sink).map_err(failed)?;
        comparison.compare(&mut built)?;
        Ok(part)
    }
}
