//! The roots of a tree that no header carries, each written with its version.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use alloy_primitives::{B256, hex};
use arbor_store::Write;
use arbor_versions::{Changes, Version, View};

use crate::{Head, StateError, TreeKind};
use arbor_state_tree::{Check, ROOTS, RootPlace, Tree, corrupt};

/// Enters the root after a block into what its version writes.
pub(crate) fn put(changes: &mut Changes, number: u64, root: B256) {
    changes.put_node(ROOTS, &number.to_be_bytes(), Some(root.as_slice()));
}

/// Whether the next block's version is written with its root: no header has it.
pub(crate) fn are_written(tree: &Tree, view: View<'_>) -> Result<bool, StateError> {
    Ok(are_kept(tree.kind()) && tree.root_place(view)? == RootPlace::Apart)
}

/// The writes that take away the roots of all blocks above one.
pub(crate) fn above(view: View<'_>, number: u64) -> Result<Vec<Write>, StateError> {
    let Some(from) = number.checked_add(1) else {
        return Ok(Vec::new());
    };
    let rows = view.scan(ROOTS, &[], &from.to_be_bytes())?;
    let writes = rows.map(|row| {
        let (key, _) = row?;
        let (table, value) = (ROOTS, None);
        Ok(Write { table, key, value })
    });
    writes.collect()
}

/// Whether a tree's databases have the table.
pub(crate) fn are_kept(kind: &TreeKind) -> bool {
    kind.tables.iter().any(|spec| spec.table == ROOTS)
}

/// Blocks' numbers and the roots after them, ascending.
pub type BlockRoots<'a> = Box<dyn Iterator<Item = Result<(u64, B256), StateError>> + 'a>;

impl<'a> Head<'a> {
    /// The roots after blocks, from the block `from` on. Under a tree that headers do not carry these are those of all blocks
    /// whose root was computed since the database was made; before them, and under any other tree, those of the retained blocks.
    ///
    /// # Errors
    /// The store's errors; a row that is none.
    pub fn block_roots(self, from: u64) -> Result<BlockRoots<'a>, StateError> {
        let view = self.view();
        let rows = match are_kept(self.tree().kind()) {
            false => None,
            true => Some(view.scan(ROOTS, &[], &from.to_be_bytes())?.map(|row| {
                let (key, root) = row?;
                let number = <[u8; 8]>::try_from(&key[..]);
                let root = <[u8; 32]>::try_from(&root[..]);
                match (number, root) {
                    (Ok(number), Ok(root)) => Ok((u64::from_be_bytes(number), B256::from(root))),
                    _ => Err(corrupt("roots", &key, "not a block's number and a root")),
                }
            })),
        };
        let mut rows = rows.into_iter().flatten().peekable();
        let first = match rows.peek() {
            Some(Ok((number, _))) => Some(*number),
            _ => None,
        };
        let versions = match (view.oldest(), view.head()) {
            (Some(oldest), Some(head)) => oldest.0..head.version.0 + 1,
            _ => 0..0,
        };
        let retained = move || {
            let retained =
                versions
                    .clone()
                    .filter_map(move |version| match view.meta(Version(version)) {
                        Ok(meta) => meta.map(|meta| Ok((meta.block_number, B256::from(meta.root)))),
                        Err(error) => Some(Err(error.into())),
                    });
            retained.skip_while(move |row| matches!(row, Ok((number, _)) if *number < from))
        };
        let before = retained().take_while(move |row| match (row, first) {
            (Ok((number, _)), Some(first)) => *number < first,
            _ => true,
        });
        // A state that has moved to a tree that headers carry has no rows from then on.
        let last = Rc::new(Cell::new(None));
        let seen = Rc::clone(&last);
        let rows = rows.inspect(move |row| {
            if let Ok((number, _)) = row {
                seen.set(Some(*number));
            }
        });
        let moves = self.tree().moves().is_some();
        let after = std::iter::once_with(move || {
            let last = last.get();
            let is_behind = move |row: &Result<(u64, B256), StateError>| match (row, last) {
                (Ok((number, _)), Some(last)) => *number > last,
                (Ok(_), None) => false,
                (Err(_), _) => true,
            };
            moves.then(|| retained().filter(is_behind))
        });
        Ok(Box::new(
            before.chain(rows).chain(after.flatten().flatten()),
        ))
    }
}

/// Checks the rows: each is of a block that the database has, with the root of that block's version where it is remembered,
/// and the head has one if any block has. Of a state that moves, only some versions have one.
pub(crate) fn check(check: &Check<'_>, moves: bool) -> Result<(), StateError> {
    let view = check.view;
    let head = view.head().map(|head| head.block_number);
    let (mut last, mut first) = (None, None);
    let mut found = BTreeSet::new();
    for row in check.scan(ROOTS, &[], &[])? {
        let (key, root) = row?;
        let Ok(number) = <[u8; 8]>::try_from(&key[..]) else {
            check.tell_fault(format!(
                "root of block 0x{}: not a block's number",
                hex::encode(&key)
            ));
            continue;
        };
        let number = u64::from_be_bytes(number);
        last = Some(number);
        first.get_or_insert(number);
        found.insert(number);
        if head.is_none_or(|head| number > head) {
            check.tell_fault(format!(
                "root of block {number}: the database has no such block"
            ));
            continue;
        }
        let version = view.version_of_block(number)?;
        let meta = version
            .map(|version| view.meta(version))
            .transpose()?
            .flatten();
        if meta.is_some_and(|meta| meta.root[..] != root[..]) || root.len() != 32 {
            check.tell_fault(format!(
                "root of block {number}: its version has another one"
            ));
        }
    }
    if moves {
        return Ok(());
    }
    let (oldest, newest) = (view.oldest(), view.head().map(|head| head.version));
    if let (Some(first), Some(oldest), Some(newest)) = (first, oldest, newest) {
        for version in oldest.0..=newest.0 {
            let number = view.meta(Version(version))?.map(|meta| meta.block_number);
            if let Some(number) =
                number.filter(|number| *number >= first && !found.contains(number))
            {
                check.tell_fault(format!("root of block {number}: missing"));
            }
        }
    }
    if last.is_some() && last != head {
        check.tell_fault("the head's root is not among those of blocks".to_owned());
    }
    Ok(())
}
