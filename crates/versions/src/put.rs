//! Putting what versions change into a layer.

use std::sync::Arc;

use arbor_store::Write;

use crate::changes::Changes;
use crate::hashed::KEYS_WARMED_TOGETHER;
use crate::identity::Schema;
use crate::layer::Layer;
use crate::slot::Base;
use crate::undo::{self, UndoRecord};

/// Changes of flat tables, and of others, from which on a second thread helps to put them.
const MANY_CHANGES: usize = 1 << 13;

/// How changes are put.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Putting {
    /// The largest chunk of the undo record; `None` if no record is wanted.
    pub(crate) undo_chunk: Option<usize>,
    /// Whether a second thread may help.
    pub(crate) with_help: bool,
}

/// Puts what a version changes, which was checked, into a layer; returns what undoes it, if that is wanted.
pub(crate) fn put_version(
    layer: &mut Layer,
    schema: &Schema,
    mut changes: Changes,
    how: Putting,
) -> Option<Arc<UndoRecord>> {
    let mut blobs = std::mem::take(&mut changes.blobs);
    let undo = put_changes(layer, schema, changes, how);
    blobs.retain(|blob| {
        let position = schema.known(blob.table);
        layer.get(position, &blob.key).is_none()
    });
    put_writes(layer, schema, blobs);
    undo
}

/// Puts writes, of tables that were checked, into a layer.
pub(crate) fn put_writes(
    layer: &mut Layer,
    schema: &Schema,
    writes: impl IntoIterator<Item = Write>,
) {
    for write in writes {
        let position = schema.known(write.table);
        layer.put(position, &write.key, write.value, Base::Unknown);
    }
}

/// Puts flat changes and nodes, of tables that were checked, into a layer; returns the record that undoes the flat ones, if it is wanted.
/// Very many are put by two threads.
fn put_changes(
    layer: &mut Layer,
    schema: &Schema,
    changes: Changes,
    how: Putting,
) -> Option<Arc<UndoRecord>> {
    let Changes {
        flat,
        mut nodes,
        buffer,
        ..
    } = changes;
    let (flat, buffer) = (&flat[..], &buffer);
    let two_threads = how.with_help && flat.len().min(nodes.len()) >= MANY_CHANGES;
    let [mut flat_tables, mut other_tables] = layer.flat_and_others();
    let mut put_nodes = || {
        for run in nodes.chunk_by_mut(|a, b| a.table == b.table) {
            let Some(table) = &mut other_tables[schema.known(run[0].table)] else {
                continue;
            };
            for some in run.chunks_mut(KEYS_WARMED_TOGETHER) {
                table.warm(some.iter().map(|entry| entry.key(buffer)));
                for entry in some {
                    let record = entry.take(buffer);
                    table.put(entry.key(buffer), record, Base::Unknown);
                }
            }
        }
    };
    let mut put_flat = || {
        let undo = how.undo_chunk.map(|chunk| {
            let entries = flat.iter().map(|entry| entry.change(buffer));
            let entries = entries.map(|change| (change.table, change.key, change.old));
            Arc::new(undo::encode(entries, chunk))
        });
        for run in flat.chunk_by(|a, b| a.table == b.table) {
            if let Some(table) = &mut flat_tables[schema.known(run[0].table)] {
                table.put_sorted(run, buffer);
            }
        }
        undo
    };
    if two_threads {
        std::thread::scope(|scope| {
            scope.spawn(put_nodes);
            put_flat()
        })
    } else {
        put_nodes();
        put_flat()
    }
}
