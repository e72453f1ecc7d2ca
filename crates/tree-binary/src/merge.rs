//! Updates merged into the nodes that have been read.

use crate::arena::{Arena, Id, Kind};
use crate::node_hash::Value;
use crate::{LeafUpdate, Path, TreeError};

/// Merges updates, ascending, into the subtree of a node, and returns what is then at its place.
/// Branches on the way of an update have been read.
///
/// # Errors
/// Keys that are not free of prefixes; nodes that a witness does not have.
pub(crate) fn merge<V: Value>(
    arena: &mut Arena,
    node: Option<Id>,
    updates: &[LeafUpdate<V>],
) -> Result<Option<Id>, TreeError> {
    let (Some(first), Some(last)) = (updates.first(), updates.last()) else {
        return Ok(node);
    };
    let Some(id) = node else {
        return build(arena, updates);
    };
    let (path, kind) = {
        let node = arena.get(id);
        (node.path, node.kind)
    };
    if kind == Kind::Unknown {
        let hash = arena.get(id).hash;
        return Err(TreeError::MissingNode { path, hash });
    }
    let shared = first.key.shared(&path).min(last.key.shared(&path));
    if shared < path.len() {
        // Some updates lead away from this node, others maybe to it.
        let (zeros, ones) = split(updates, shared)?;
        let sides = match path.bit(shared) {
            false => [merge(arena, Some(id), zeros)?, build(arena, ones)?],
            true => [build(arena, zeros)?, merge(arena, Some(id), ones)?],
        };
        return Ok(join(arena, path.prefix(shared), sides));
    }
    match kind {
        Kind::Leaf { .. } => {
            if first.key != path || updates.len() > 1 {
                return Err(TreeError::Prefix(last.key));
            }
            let Some(value) = first.value.stored() else {
                return Ok(None);
            };
            let leaf = arena.get_mut(id);
            leaf.kind = Kind::Leaf { value };
            leaf.is_dirty = true;
            Ok(node)
        }
        Kind::Branch(children) => {
            let (zeros, ones) = split(updates, path.len())?;
            let sides = [
                merge(arena, Some(children[0]), zeros)?,
                merge(arena, Some(children[1]), ones)?,
            ];
            let [Some(left), Some(right)] = sides else {
                return Ok(sides[0].or(sides[1]));
            };
            let is_dirty = [left, right] != children
                || [left, right].iter().any(|child| arena.get(*child).is_dirty);
            let branch = arena.get_mut(id);
            branch.kind = Kind::Branch([left, right]);
            branch.is_dirty |= is_dirty;
            Ok(node)
        }
        // Read before, or a removal of what is not there.
        Kind::Unread | Kind::Unknown => unreachable!("invariant: {path} was read"),
    }
}

/// Builds the subtree of updates, ascending; removals have nothing to remove.
pub(crate) fn build<V: Value>(
    arena: &mut Arena,
    updates: &[LeafUpdate<V>],
) -> Result<Option<Id>, TreeError> {
    let (Some(first), Some(last)) = (updates.first(), updates.last()) else {
        return Ok(None);
    };
    if updates.len() == 1 {
        let value = first.value.stored();
        return Ok(value.map(|value| arena.add_leaf(first.key, value)));
    }
    let shared = first.key.shared(&last.key);
    let (zeros, ones) = split(updates, shared)?;
    let sides = [build(arena, zeros)?, build(arena, ones)?];
    Ok(join(arena, first.key.prefix(shared), sides))
}

fn join(arena: &mut Arena, path: Path, sides: [Option<Id>; 2]) -> Option<Id> {
    match sides {
        [Some(left), Some(right)] => Some(arena.add_branch(path, [left, right])),
        [one, other] => one.or(other),
    }
}

/// Updates with a zero, and those with a one.
type Sides<'u, V> = (&'u [LeafUpdate<V>], &'u [LeafUpdate<V>]);

/// Updates, ascending, by a bit.
fn split<V>(updates: &[LeafUpdate<V>], bit: usize) -> Result<Sides<'_, V>, TreeError> {
    // A key that ends there stands first.
    match updates.first() {
        Some(update) if update.key.len() <= bit => Err(TreeError::Prefix(update.key)),
        _ => Ok(updates.split_at(updates.partition_point(|update| !update.key.bit(bit)))),
    }
}
