//! Proofs of each operation of a batch, with the root after each.

use std::collections::HashMap;

use crate::{
    DEPTH, Entry, Hash, Hasher, LeafProof, LeafUpdate, NodeChange, Reader, TreeError, TreeUpdate,
    apply,
};

use super::sequence::{Beside, Level, Sequence};

/// One operation of a batch, on what the operations before it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The key.
    pub key: Hash,
    /// What the tree holds under it before the whole batch, the same for all operations on a key.
    pub old: Option<Entry>,
    /// What is written; `None` reads.
    pub new: Option<Entry>,
}

/// What an operation found and did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The key was written and held nothing before.
    Inserted,
    /// The key was written and held this before.
    Updated(Entry),
    /// The key was read and holds this.
    Read(Entry),
    /// The key was read and holds nothing.
    ReadMissing,
}

impl Outcome {
    /// What the key held before the operation.
    #[must_use]
    pub fn before(&self) -> Option<Entry> {
        match self {
            Self::Inserted | Self::ReadMissing => None,
            Self::Updated(entry) | Self::Read(entry) => Some(*entry),
        }
    }
}

/// One operation's proof.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationProof {
    /// What was found.
    pub outcome: Outcome,
    /// The hashes beside the way, as in [`LeafProof::path`].
    pub path: Vec<Hash>,
    /// The root after the operation.
    pub root: Hash,
}

impl OperationProof {
    /// Whether the proof leads from the root before the operation to that after it.
    #[must_use]
    pub fn verify<H: Hasher>(
        &self,
        hasher: H,
        before: &Hash,
        key: &Hash,
        new: Option<Entry>,
    ) -> bool {
        let writes = matches!(self.outcome, Outcome::Inserted | Outcome::Updated(_));
        let proof = LeafProof {
            entry: self.outcome.before(),
            path: self.path.clone(),
        };
        let after = match new {
            None => Some(*before),
            Some(entry) => proof.root_after(hasher, key, entry),
        };
        writes == new.is_some() && proof.verify(hasher, before, key) && after == Some(self.root)
    }
}

/// The proofs of a batch. Hashes beside ways are held once for each four levels, and a path is put together when it is asked for.
#[derive(Debug)]
pub struct OperationProofs {
    empty: &'static [Hash; DEPTH + 1],
    outcomes: Vec<Outcome>,
    roots: Vec<Hash>,
    levels: Vec<Level>,
    /// Of reads of missing keys that end at another leaf.
    beside: HashMap<u32, Beside>,
}

impl OperationProofs {
    /// How many operations there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.outcomes.len()
    }

    /// Whether there were none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.outcomes.is_empty()
    }

    /// What each operation found.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The root after each operation.
    #[must_use]
    pub fn roots(&self) -> &[Hash] {
        &self.roots
    }

    /// The proof of an operation.
    ///
    /// # Panics
    /// If there is none with this number.
    #[must_use]
    pub fn get(&self, operation: usize) -> OperationProof {
        let mut path: Vec<Hash> = Vec::new();
        for level in &self.levels {
            let Some(siblings) = level.siblings(operation) else {
                break;
            };
            path.extend(siblings);
        }
        if let Some(beside) = self.beside.get(&(operation as u32)) {
            path.extend((path.len()..beside.level - 1).map(|level| self.empty[DEPTH - level - 1]));
            path.push(beside.hash);
        }
        path.reverse();
        let lowest = DEPTH - path.len();
        let empty = self.empty[lowest..].iter();
        let left_out = path.iter().zip(empty).take_while(|(a, b)| a == b).count();
        path.drain(..left_out);
        OperationProof {
            outcome: self.outcomes[operation],
            path,
            root: self.roots[operation],
        }
    }
}

/// Applies operations in their order and proves each. A key may occur more than once.
///
/// The tree is changed once, to where all operations lead. The hashes between follow from passes over its levels, deepest first: below a node the operations, in
/// their order, each set one child, and what that makes of the node is one hash for each operation and level, all of a level side by side in lanes.
///
/// # Errors
/// As [`apply`]; operations on one key that differ in what it held before.
pub fn apply_with_proofs<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    operations: &[Operation],
) -> Result<(TreeUpdate, OperationProofs), TreeError> {
    let order = by_key(operations);
    let mut outcomes = vec![Outcome::ReadMissing; operations.len()];
    let mut updates: Vec<LeafUpdate> = Vec::new();
    let key = |at: &u32| operations[*at as usize].key;
    for same in order.chunk_by(|a, b| key(a) == key(b)) {
        let (old, key) = (operations[same[0] as usize].old, key(&same[0]));
        let mut current = old;
        for at in same {
            let operation = &operations[*at as usize];
            if operation.old != old {
                return Err(TreeError::Disagree(key));
            }
            if operation.new.is_some_and(|entry| entry.index == 0) {
                return Err(TreeError::Index(key));
            }
            outcomes[*at as usize] = match (current, operation.new) {
                (None, None) => Outcome::ReadMissing,
                (None, Some(_)) => Outcome::Inserted,
                (Some(entry), None) => Outcome::Read(entry),
                (Some(entry), Some(_)) => Outcome::Updated(entry),
            };
            current = operation.new.or(current);
        }
        if same.iter().any(|at| operations[*at as usize].new.is_some()) {
            updates.push(LeafUpdate {
                key,
                existed: old.is_some(),
                new: current,
            });
        }
    }
    let update = apply(reader, hasher, &updates)?;
    let mut changed: Vec<&NodeChange> = update.nodes.iter().collect();
    changed.sort_unstable_by_key(|node| (node.path.len(), node.path));
    let before = crate::root(reader, hasher)?;
    let sequence = Sequence::descend(reader, hasher, operations, &order, changed)?;
    let (levels, beside, mut roots) = sequence.rise();
    let mut root = before;
    for (after, operation) in roots.iter_mut().zip(operations) {
        match operation.new {
            Some(_) => root = *after,
            None => *after = root,
        }
    }
    let proofs = OperationProofs {
        empty: hasher.empty(),
        outcomes,
        roots,
        levels,
        beside,
    };
    Ok((update, proofs))
}

/// The numbers of operations by key, those of one key in their order.
fn by_key(operations: &[Operation]) -> Vec<u32> {
    let key = |at: u32| &operations[at as usize].key;
    // The first bytes nearly always decide, and lie beside the numbers.
    let first = |key: &Hash| {
        key.first_chunk()
            .map_or(0, |bytes| u64::from_be_bytes(*bytes))
    };
    let keys = operations.iter().map(|operation| first(&operation.key));
    let mut order: Vec<(u64, u32)> = keys.zip(0..).collect();
    order.sort_unstable_by(|a, b| {
        let whole = || key(a.1).cmp(key(b.1)).then(a.1.cmp(&b.1));
        a.0.cmp(&b.0).then_with(whole)
    });
    order.into_iter().map(|(_, at)| at).collect()
}
