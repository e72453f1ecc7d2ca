//! Proofs of each operation of a batch, with the root after each.

use arbor_cpu::threads::prelude::*;
use std::collections::HashMap;

use super::operation::{Operation, Outcome};
use super::sequence::{Beside, Ordered, Passed, pass};
use crate::apply::{Seen, change};
use crate::work::{Batch, leading};
use crate::{DEPTH, Entry, Hash, Hasher, LeafProof, LeafUpdate, Reader, TreeError, TreeUpdate};

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
    roots: Vec<Hash>,
    /// By key what was written, or read.
    updates: Vec<LeafUpdate>,
    /// By operation where it is among all by key.
    places: Vec<u32>,
    passed: Passed,
    /// Of reads of missing keys that end at another leaf.
    beside: HashMap<u32, Beside>,
}

impl OperationProofs {
    /// How many operations there were.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there were none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What an operation found.
    ///
    /// # Panics
    /// If there is none with this number.
    #[must_use]
    pub fn outcome(&self, operation: usize) -> Outcome {
        self.passed.outcome(self.places[operation] as usize)
    }

    /// The root after each operation.
    #[must_use]
    pub fn roots(&self) -> &[Hash] {
        &self.roots
    }

    /// The keys that were written, ascending, with what they hold after the batch.
    pub fn written(&self) -> impl Iterator<Item = (Hash, Entry)> {
        let updates = self.updates.iter();
        updates.filter_map(|update| Some((update.key, update.new?)))
    }

    /// The proof of an operation.
    ///
    /// # Panics
    /// If there is none with this number.
    #[must_use]
    pub fn get(&self, operation: usize) -> OperationProof {
        let siblings = self.passed.siblings(self.places[operation] as usize);
        let mut path = siblings.into_flattened();
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
            outcome: self.outcome(operation),
            path,
            root: self.roots[operation],
        }
    }
}

/// Applies operations in their order and proves each. A key may occur more than once.
///
/// The tree is changed once, to where all operations lead. The hashes between follow from passes over its levels, deepest first: below a node the operations, in
/// their order, each set one child, and what that makes of the node is one hash for each operation and level, all of a level side by side in lanes. Many operations are shared between threads as
/// updates are: each part is changed and passed over while it is in a core's cache, then what is above them all.
///
/// # Errors
/// As [`apply_unread`](crate::apply_unread).
pub fn apply_with_proofs<H: Hasher>(
    reader: &impl Reader,
    hasher: H,
    operations: &[Operation],
) -> Result<(TreeUpdate, OperationProofs), TreeError> {
    if let Some(zero) = operations
        .iter()
        .find(|op| op.new.is_some_and(|new| new.index == 0))
    {
        return Err(TreeError::Index(zero.key));
    }
    let order = order_of(operations, |operation| &operation.key);
    let sorted = order.par_iter().with_min_len(OPERATIONS_OF_A_THREAD);
    let sorted: Vec<Operation> = sorted.map(|at| operations[*at as usize]).collect();
    let mut updates = Vec::with_capacity(sorted.len());
    let mut reads = Vec::with_capacity(sorted.len());
    let mut starts = Vec::with_capacity(sorted.len() + 1);
    starts.push(0);
    for same in sorted.chunk_by(|a, b| a.key == b.key) {
        let new = same.iter().rev().find_map(|operation| operation.new);
        updates.push(LeafUpdate {
            key: same[0].key,
            existed: false,
            new,
        });
        reads.push(new.is_none());
        starts.push(starts[starts.len() - 1] + same.len() as u32);
    }
    let batch = Batch {
        updates: &updates,
        reads: &reads,
        unread: true,
        counted: true,
    };
    let ordered = Ordered {
        operations: &sorted,
        order: &order,
        starts: &starts,
    };
    let before = crate::root(reader, hasher)?;
    let look = |seen: Seen<'_, '_, _, H, Passed>| pass(reader, hasher, ordered, seen);
    let (update, mut passed) = change(reader, hasher, batch, &look)?;
    let mut roots = passed.take_states();
    let mut places = vec![0; operations.len()];
    for (at, place) in order.iter().zip(0..) {
        places[*at as usize] = place;
    }
    let mut root = before;
    for (operation, after) in operations.iter().zip(&mut roots) {
        match operation.new {
            Some(_) => root = *after,
            None => *after = root,
        }
    }
    let proofs = OperationProofs {
        updates,
        empty: hasher.empty(),
        roots,
        places,
        beside: passed.take_beside(),
        passed,
    };
    Ok((update, proofs))
}

/// Operations that a thread takes together.
const OPERATIONS_OF_A_THREAD: usize = 1 << 12;

/// The numbers of items by their keys, those of one key in their order.
pub fn order_of<T: Sync>(items: &[T], key: impl Fn(&T) -> &Hash + Sync) -> Vec<u32> {
    let key = |at: u32| key(&items[at as usize]);
    // The first bytes nearly always decide, and lie beside the numbers.
    let numbers = (0..items.len() as u32).into_par_iter();
    let numbers = numbers.with_min_len(OPERATIONS_OF_A_THREAD);
    let mut order: Vec<(u64, u32)> = numbers.map(|at| (leading(key(at)), at)).collect();
    order.par_sort_unstable_by(|a, b| {
        let whole = || key(a.1).cmp(key(b.1)).then(a.1.cmp(&b.1));
        a.0.cmp(&b.0).then_with(whole)
    });
    order.into_iter().map(|(_, at)| at).collect()
}
