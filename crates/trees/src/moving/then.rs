//! One tree of a version that has two.

use arbor_state_tree::{Flat, FlatEntries, Nodes, StateError, Then, own};
use arbor_store::{Table, Value, Write};
use arbor_versions::{Meta, OTHER_SPACE, View, has_space, in_other_space};

use super::progress;

/// Nodes of older versions, of both trees.
pub(super) struct BothNodes {
    pub(super) source: Nodes,
    /// None once they were led to before the move.
    pub(super) target: Option<Nodes>,
}

/// Which of two trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Source,
    Target,
}

impl Side {
    /// The table of a database that moves, for the table of one tree.
    pub(super) fn table(self, table: Table) -> Table {
        match self {
            Self::Source => table,
            Self::Target => in_other_space(table),
        }
    }

    /// The view of this tree, with its root. If the record of the move cannot be read, whoever reads it next says so.
    pub(super) fn view(self, view: View<'_>) -> View<'_> {
        let moved = progress::read(&view).ok().flatten();
        let (own, root) = match self {
            Self::Source => (view, moved.map(|moved| moved.source_root)),
            Self::Target => {
                // Once all is moved, the version has the target's root, and the record that of then.
                let amid = moved.filter(|moved| moved.last_block.is_none());
                (view.in_other_space(), amid.map(|moved| moved.target_root))
            }
        };
        root.map_or(own, |root| own.with_root(root.0))
    }

    /// Those of some writes that are of this tree's tables, as the tree names them.
    pub(super) fn own(self, writes: &[Write]) -> Vec<Write> {
        let is_other = |table: Table| has_space(table) && table.0 & OTHER_SPACE != 0;
        let is_own = |write: &&Write| {
            has_space(write.table) && is_other(write.table) == (self == Self::Target)
        };
        let own = writes.iter().filter(is_own).map(|write| Write {
            table: self.table(write.table),
            ..write.clone()
        });
        own.collect()
    }
}

/// A version as one of the trees reads it.
pub(super) struct OneTree<'a> {
    pub(super) then: &'a dyn Then,
    pub(super) side: Side,
    /// With this tree's root.
    pub(super) meta: Meta,
}

impl Flat for OneTree<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError> {
        self.then.value(self.side.table(table), key)
    }

    fn values(&self, table: Table, keys: &[&[u8]]) -> Result<Vec<Option<Value>>, StateError> {
        self.then.values(self.side.table(table), keys)
    }

    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError> {
        self.then.entries(self.side.table(table), prefix)
    }
}

impl Then for OneTree<'_> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn view(&self) -> View<'_> {
        self.side.view(self.then.view())
    }

    fn nodes(&self) -> Result<&Nodes, StateError> {
        let both: &BothNodes = own(self.then.nodes()?);
        match (self.side, &both.target) {
            (Side::Source, _) => Ok(&both.source),
            (Side::Target, Some(nodes)) => Ok(nodes),
            (Side::Target, None) => Err(StateError::Read(
                "the version is from before the move to the other tree".into(),
            )),
        }
    }

    fn is_proven_again(&self) -> bool {
        self.then.is_proven_again()
    }
}
