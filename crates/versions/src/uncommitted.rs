//! Snapshots with versions on top that no writer has.

use std::sync::Arc;

use arbor_store::Write;

use crate::changes::{Changes, check_writes};
use crate::error::VersionsError;
use crate::filters::Filters;
use crate::identity::TableKind;
use crate::index;
use crate::layer::Layer;
use crate::meta::{Meta, check_order};
use crate::options::Options;
use crate::put::{Putting, put_version, put_writes};
use crate::snapshot::Snapshot;
use crate::unflushed::{Pending, Unflushed};
use crate::version::Version;

impl Snapshot {
    /// Returns this snapshot with one more version on top, which no writer has. This one stays as it is, and any number of versions can
    /// follow it.
    ///
    /// # Errors
    /// Those of [`Versions::apply`](crate::Versions::apply) before anything is applied.
    pub fn with_version(&self, meta: Meta, mut changes: Changes) -> Result<Self, VersionsError> {
        check_order(self.view().head(), [&meta].into_iter())?;
        changes.prepare(&self.unflushed.schema, meta.version)?;
        let mut layer = Layer::new(&self.unflushed.schema);
        let how = Putting {
            undo_chunk: (meta.version.0 > 0).then_some(Options::default().undo_chunk),
            with_help: true,
        };
        let undo = put_version(&mut layer, &self.unflushed.schema, changes, how);
        let mut next = self.with_layer(layer);
        let meta = Arc::new(meta);
        next.unflushed.head = Some(meta.clone());
        let nodes = None;
        next.unflushed.pending.push(Pending { meta, undo, nodes });
        Ok(next)
    }

    /// Returns this snapshot as it would be after a [rollback](crate::Versions::rollback), which no writer does.
    ///
    /// # Errors
    /// Those of the rollback before anything is changed.
    pub fn rolled_back(
        &self,
        to: Version,
        flat: Vec<Write>,
        nodes: Vec<Write>,
    ) -> Result<Self, VersionsError> {
        let schema = &self.unflushed.schema;
        let head = self.unflushed.retained(to)?;
        let meta = self.view().meta(to)?.ok_or_else(|| {
            VersionsError::malformed(format!("meta of version {}", to.0), "missing")
        })?;
        let (flat, nodes) = (schema.placed(flat), schema.placed(nodes));
        check_writes(schema, &flat, TableKind::Flat)?;
        check_writes(schema, &nodes, TableKind::Nodes)?;
        let mut layer = Layer::new(schema);
        put_writes(&mut layer, schema, flat.into_iter().chain(nodes));
        let mut before = self.with_layer(layer);
        let Unflushed {
            pending, indexed, ..
        } = &mut before.unflushed;
        let undone = usize::try_from(head - to.0).unwrap_or(usize::MAX);
        pending.truncate(pending.len().saturating_sub(undone));
        let length = self.unflushed.epoch;
        let is_before = |epoch: &u64| index::last_version(*epoch, length) <= to.0;
        *indexed = Arc::new(indexed.iter().copied().filter(is_before).collect());
        before.unflushed.head = Some(Arc::new(meta));
        Ok(before)
    }

    /// Lays a layer over all others. Layers that no writer has are merged, so that many versions leave only logarithmically many.
    fn with_layer(&self, mut layer: Layer) -> Self {
        let mut next = self.clone();
        let layers = &mut next.unflushed.layers;
        while layers.len() > self.of_writer
            && let Some(older) = layers.pop_if(|older| older.bytes() <= 2 * layer.bytes())
        {
            let mut merged = Arc::unwrap_or_clone(older);
            merged.absorb(&layer);
            layer = merged;
        }
        layers.push(Arc::new(layer));
        // Versions on top of different snapshots have the same numbers, by which filters are found.
        next.unflushed.filters = Arc::new(Filters::default());
        // They would have to be read for each version that may never be committed.
        next.unflushed.nodes = None;
        next
    }
}
