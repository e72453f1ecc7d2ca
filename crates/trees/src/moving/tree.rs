//! The move as a tree: a state over it is like any other.

use std::sync::atomic::Ordering;

use alloy_primitives::B256;
use arbor_state_tree::{
    AccountSlots, AccountSource, Check, CheckedPart, Computed, FlatRecords, Lookup, Moved, Moves,
    Nodes, RootPlace, Seen, StateChanges, StateError, StateTree, StoredRecord, Then, Tree,
    TreeKind, own_mut,
};
use arbor_store::{Table, Write};
use arbor_verify::Proof;
use arbor_versions::{Meta, TableKind, Versions, View, has_space, in_other_space};

use super::then::{BothNodes, OneTree, Side};
use super::{Moving, OWN_TABLES, PROGRESS, progress};

/// How one tree proves names of a version.
type Prove<'a> = &'a dyn Fn(&Tree, &dyn Then) -> Result<Box<dyn Proof>, StateError>;

impl Moving {
    /// How far the move is at a version that undo leads to.
    fn moved_at(&self, then: &[Write], now: Lookup<'_>) -> Result<Option<Moved>, StateError> {
        let written = then
            .iter()
            .find(|write| write.table == PROGRESS && *write.key == *progress::KEY);
        let record = match written {
            Some(write) => write.value.clone(),
            None => now(PROGRESS, progress::KEY)?,
        };
        record.map(|bytes| progress::decode(&bytes)).transpose()
    }

    /// The target's record of a version, once it is known that the version's root is that of both trees.
    fn meta_of_target(&self, to: &Meta, moved: &Moved) -> Result<Meta, StateError> {
        if moved.last_block.is_some_and(|last| to.block_number > last) {
            return Ok(to.clone());
        }
        match moved.root() == B256::from(to.root) {
            true => Ok(Meta {
                root: moved.target_root.0,
                ..to.clone()
            }),
            false => Err(StateError::RebuiltRoot {
                version: to.version.0,
                expected: to.root.into(),
                actual: moved.root(),
            }),
        }
    }

    /// Leads the target's nodes on.
    fn step_target(
        &self,
        view: View<'_>,
        nodes: &mut Nodes,
        (to, moved): (&Meta, &Moved),
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        let there = |table: Table, key: &[u8]| now(Side::Target.table(table), key);
        let (view, then) = (Side::Target.view(view), Side::Target.own(then));
        let to = self.meta_of_target(to, moved)?;
        self.target.step(view, nodes, &to, &then, &there)
    }
}

impl StateTree for Moving {
    fn kind(&self) -> &'static TreeKind {
        self.kind
    }

    fn hash(&self) -> &'static str {
        self.source.hash()
    }

    fn empty_root(&self) -> B256 {
        self.source.empty_root()
    }

    fn moves(&self) -> Option<&dyn Moves> {
        Some(self)
    }

    fn root_place(&self, view: View<'_>) -> Result<RootPlace, StateError> {
        self.next_root(view)
    }

    fn writes_through(&self) -> bool {
        self.source.writes_through() || self.target.writes_through()
    }

    fn prepare(&self, placed: Box<dyn FnOnce() + '_>) {
        self.source.prepare(Box::new(|| ()));
        self.target.prepare(placed);
    }

    fn records(&self) -> &dyn FlatRecords {
        self
    }

    fn sort_bytes(&self) -> usize {
        self.source.sort_bytes().max(self.target.sort_bytes())
    }

    fn compute(
        &self,
        view: View<'_>,
        changes: &[&StateChanges],
    ) -> Result<Vec<Computed>, StateError> {
        arbor_state_tree::one_by_one(changes, |changes| self.compute_one(view, changes))
    }

    fn load(
        &self,
        versions: &mut Versions,
        source: &dyn AccountSource,
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Computed, StateError> {
        self.source.load(versions, source, progress)
    }

    fn prove(&self, then: &dyn Then, account: &AccountSlots) -> Result<Box<dyn Proof>, StateError> {
        let accounts = std::slice::from_ref(account);
        self.prove_by(then, accounts, &|tree, then| tree.prove(then, account))
    }

    fn prove_together(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
    ) -> Result<Box<dyn Proof>, StateError> {
        self.prove_by(then, accounts, &|tree, then| {
            tree.prove_together(then, accounts)
        })
    }

    fn nodes(&self, view: View<'_>) -> Nodes {
        Box::new(BothNodes {
            source: self.source.nodes(Side::Source.view(view)),
            target: Some(self.target.nodes(Side::Target.view(view))),
        })
    }

    fn step(
        &self,
        view: View<'_>,
        nodes: &mut Nodes,
        to: &Meta,
        then: &[Write],
        now: Lookup<'_>,
    ) -> Result<(), StateError> {
        let both: &mut BothNodes = own_mut(nodes);
        let Some(moved) = self.moved_at(then, now)? else {
            both.target = None;
            let own = Side::Source.own(then);
            return self
                .source
                .step(Side::Source.view(view), &mut both.source, to, &own, now);
        };
        if let Some(target) = &mut both.target {
            return self.step_target(view, target, (to, &moved), then, now);
        }
        // Forward into the move: from the latest version on back again.
        let undo = view.undo_since(to.version)?;
        let mut target = self.target.nodes(Side::Target.view(view));
        let head = |table: Table, key: &[u8]| Ok(view.get(table, key)?);
        self.step_target(view, &mut target, (to, &moved), &undo, &head)?;
        both.target = Some(target);
        Ok(())
    }

    fn writes_back(
        &self,
        view: View<'_>,
        to: &Meta,
        undo: &[Write],
    ) -> Result<Vec<Write>, StateError> {
        let is_begun = progress::read(&view)?.is_some();
        let now = |table: Table, key: &[u8]| Ok(view.get(table, key)?);
        let there = Side::Target.view(view);
        if let Some(moved) = self.moved_at(undo, &now)? {
            let (to, undo) = (self.meta_of_target(to, &moved)?, Side::Target.own(undo));
            let writes = self.target.writes_back(there, &to, &undo)?.into_iter();
            return Ok(writes.map(there_written).collect());
        }
        let undo = Side::Source.own(undo);
        let mut writes = self
            .source
            .writes_back(Side::Source.view(view), to, &undo)?;
        if is_begun {
            // All that the target has came since.
            let nodes = self.target.kind().tables.iter();
            let nodes = nodes.filter(|spec| spec.kind == TableKind::Nodes && has_space(spec.table));
            for spec in nodes {
                for entry in there.scan(spec.table, &[], &[])? {
                    let (table, key) = (spec.table, entry?.0);
                    let value = None;
                    writes.push(there_written(Write { table, key, value }));
                }
            }
        }
        Ok(writes)
    }

    /// A key does not say of which tree it is; a record of the other one is no node of this one.
    fn is_same_node(&self, key: &[u8], records: [&[u8]; 2]) -> Result<bool, StateError> {
        let of_target = self.target.is_same_node(key, records);
        match self.source.is_same_node(key, records) {
            Ok(true) => Ok(true),
            of_source => of_target.or(of_source),
        }
    }

    fn check_part(&self, check: &Check<'_>, firsts: &[u8]) -> Result<CheckedPart, StateError> {
        self.check_trees(check, firsts)
    }

    fn check_join(&self, check: &Check<'_>, parts: Vec<CheckedPart>) -> Result<B256, StateError> {
        self.join_trees(check, parts)
    }

    fn inspect(
        &self,
        record: StoredRecord<'_>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<(), StateError> {
        if record.table == PROGRESS {
            // It comes first.
            let moved = progress::decode(record.value)?;
            self.is_over
                .store(moved.last_block.is_some(), Ordering::Relaxed);
        }
        if OWN_TABLES.iter().any(|spec| spec.table == record.table) {
            return Ok(());
        }
        // Accounts and slots are counted once: in the target when all is moved, in the source before.
        let is_over = self.is_over.load(Ordering::Relaxed);
        let mut once = |seen: Seen<'_>, are_counted: bool| {
            if are_counted || matches!(seen, Seen::Nodes(_)) {
                see(seen);
            }
        };
        let table = in_other_space(record.table);
        match table.0 < record.table.0 {
            true => self
                .target
                .inspect(StoredRecord { table, ..record }, &mut |seen| {
                    once(seen, is_over);
                }),
            false => self
                .source
                .inspect(record, &mut |seen| once(seen, !is_over)),
        }
    }
}

/// A write of the target's, in the database's tables.
fn there_written(write: Write) -> Write {
    Write {
        table: in_other_space(write.table),
        ..write
    }
}

impl Moving {
    /// Proves names of a version by the tree or the trees that it has: `prove` is how a tree proves them.
    fn prove_by(
        &self,
        then: &dyn Then,
        accounts: &[AccountSlots],
        prove: Prove<'_>,
    ) -> Result<Box<dyn Proof>, StateError> {
        let by = |side: Side, root: B256| {
            let (root, meta) = (root.0, then.meta().clone());
            let one = OneTree {
                then,
                side,
                meta: Meta { root, ..meta },
            };
            match side {
                Side::Source => prove(&self.source, &one),
                Side::Target => prove(&self.target, &one),
            }
        };
        let root = then.meta().root.into();
        match progress::read(then)? {
            None => by(Side::Source, root),
            Some(moved) if moved.last_block.is_some() => by(Side::Target, root),
            Some(moved) => {
                let source = by(Side::Source, moved.source_root)?;
                let target = by(Side::Target, moved.target_root)?;
                self.together(then, accounts, &moved, (source, target))
            }
        }
    }
}
