//! A state that moves from one tree to another while blocks go on.
//!
//! Up to a block the state has one tree, the *source*. From that block on the source stands still, flat records and nodes, and the *target* grows in the other
//! [space](arbor_versions::OTHER_SPACE) of the database's tables. Each block first moves some accounts and slots of the source, in the source's order, and then makes its
//! own changes in the target. What blocks wrote since lies by name in two flat tables besides ([`since`]): a read asks these first and then the source, and what
//! has an entry there is not moved any more, since it is in the target already, or gone. When all is moved, the target alone is read. Once no version from before that is
//! retained, the database can be opened as one of the target's, and the source is dropped.
//!
//! How far the move is is one flat record ([`progress`]), which a rollback undoes like any other.
//! The root of a version amid the move is made of the source's root, the target's, and the hash of
//! a log of what is gone ([`gone`]). From the block on that moves the last it is the target's.
//!
//! EIP-7612 and EIP-7748 have such a move for Verkle. There the target keeps zeros, so that it needs no table of what was written since; a binary tree forgets them, and a slot
//! that was deleted before its turn would come back.

mod compute;
mod gone;
mod listing;
mod progress;
mod prove;
mod records;
mod since;
mod then;
mod tree;
mod units;
mod verify;

use std::sync::atomic::AtomicBool;

use arbor_state_tree::{
    BY_NAME, BlockMemory, CODE, Flat, Moved, Moves, OfOneTree, ROOTS, RootPlace, StateError, Then,
    Tree, TreeKind, Zeros,
};
use arbor_versions::{MovesTo, TableKind, TableSpec, in_other_space};

use then::{OneTree, Side};

/// A state that moves: see the module.
#[derive(Debug)]
pub struct Moving {
    source: Tree,
    target: Tree,
    at: u64,
    stride: u64,
    kind: &'static TreeKind,
    /// Whether the last version that was seen had all moved: where the keys lie that are soon asked for.
    is_over: AtomicBool,
}

/// Written since the move began: accounts by their keys in the source's order.
const SINCE_ACCOUNTS: arbor_store::Table = arbor_store::Table(0x10);
/// The same for slots, by the account's key and their own.
const SINCE_SLOTS: arbor_store::Table = arbor_store::Table(0x11);
/// One record: how far the move is.
const PROGRESS: arbor_store::Table = arbor_versions::MOVE;
/// The log of what is gone: what each block adds, by its number (8 bytes, big-endian).
const GONE: arbor_store::Table = arbor_store::Table(0x13);

const OWN_TABLES: [TableSpec; 4] = [
    TableSpec {
        table: SINCE_ACCOUNTS,
        name: "accounts since",
        kind: TableKind::Flat,
    },
    TableSpec {
        table: SINCE_SLOTS,
        name: "slots since",
        kind: TableKind::Flat,
    },
    TableSpec {
        table: PROGRESS,
        name: "move",
        kind: TableKind::Flat,
    },
    TableSpec {
        table: GONE,
        name: "gone",
        kind: TableKind::Flat,
    },
];

impl Moving {
    /// The state of a database under `source` that moves to `target`: from the block `at` on, `stride` accounts and slots a block, of which there is at least one.
    ///
    /// The row of such a tree stays in memory as long as the program runs.
    pub fn new(source: Tree, target: Tree, at: u64, stride: u64) -> Self {
        let (from, to) = (source.kind(), target.kind());
        let mut tables = OWN_TABLES.to_vec();
        tables.extend(from.tables);
        let others = to.tables.iter().map(|spec| TableSpec {
            table: in_other_space(spec.table),
            ..*spec
        });
        for spec in others {
            if !tables.iter().any(|other| other.table == spec.table) {
                tables.push(spec);
            }
        }
        debug_assert!(tables.iter().any(|spec| spec.table == CODE));
        let roots = TableSpec {
            table: ROOTS,
            name: "roots",
            kind: TableKind::Nodes,
        };
        if !tables.iter().any(|spec| spec.table == ROOTS) {
            tables.push(roots);
        }
        let kind = TreeKind {
            tables: tables.leak(),
            roots: RootPlace::Apart,
            zeros: Zeros::Kept,
            has_witnesses: false,
            block_memory: BlockMemory {
                first: from.block_memory.first.max(to.block_memory.first),
                later: from.block_memory.later + to.block_memory.later,
            },
            model: None,
            ..*from
        };
        Self {
            source,
            target,
            at,
            stride: stride.max(1),
            kind: Box::leak(Box::new(kind)),
            is_over: AtomicBool::new(false),
        }
    }
}

impl Moves for Moving {
    fn source(&self) -> &Tree {
        &self.source
    }

    fn target(&self) -> &Tree {
        &self.target
    }

    fn at(&self) -> u64 {
        self.at
    }

    fn stride(&self) -> u64 {
        self.stride
    }

    fn moved(&self, flat: &dyn Flat) -> Result<Option<Moved>, StateError> {
        progress::read(flat)
    }

    fn alone<'a>(&'a self, then: &'a dyn Then) -> Result<Option<OfOneTree<'a>>, StateError> {
        let is_next = then.meta().block_number.saturating_add(1) >= self.at;
        let (tree, side) = match progress::read(then)? {
            None if is_next => return Ok(None),
            None => (&self.source, Side::Source),
            Some(moved) if moved.last_block.is_none() => return Ok(None),
            Some(_) => (&self.target, Side::Target),
        };
        let meta = then.meta().clone();
        Ok(Some((tree, Box::new(OneTree { then, side, meta }))))
    }

    fn part(&self, moved: &Moved) -> Option<f64> {
        if moved.last_block.is_some() {
            return Some(1.0);
        }
        let Some(cursor) = moved.cursor else {
            return Some(0.0);
        };
        let order = self.source.order();
        if *order == BY_NAME {
            return None;
        }
        let mut first = [0; 8];
        first.copy_from_slice(&units::account_key(order, cursor.address)[..8]);
        Some(u64::from_be_bytes(first) as f64 / 2f64.powi(64))
    }

    fn identity(&self) -> MovesTo {
        let kind = self.target.kind();
        MovesTo {
            at: self.at,
            stride: self.stride,
            tree: kind.stored_as.tree.into(),
            revision: kind.stored_as.revision.into(),
            hash: self.target.hash().into(),
            layout: kind.layout,
        }
    }
}
