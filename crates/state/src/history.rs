//! The state at an older version: flat values from the undo records, nodes rebuilt from them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use alloy_primitives::{Address, B256, Bytes, U256};
use arbor_store::{Table, Value, Write};
use arbor_verify::Proof;
use arbor_versions::{Meta, Version, View};

use crate::head::Head;
use crate::roots;
use crate::{
    Account, AccountSlots, HeadId, IntermediateRoots, ReadError, StateError, StateView, Tree,
};
use arbor_state_tree::{Flat, FlatEntries, overlaid};
use arbor_state_tree::{LeafLogs, Leaves, Nodes, Rewound, StateWitness, Then, Touched};

/// The state of a retained version, readable and provable.
///
/// Opening costs nothing, and an account or a slot some seeks. Where a database [keeps old nodes](crate::State::keep_nodes), so does each node. Else nodes are not
/// stored: the first proof or root applies the undo records since to the head's tree in memory, which costs what changed since, as the first scan does for the flat records alone; after
/// that everything costs what it costs at the head, and the [next](Self::next) version what that one changed. Under AR16MT the first proof does so by parts of the tree and keeps only the nodes that it takes,
/// so that its memory does not grow with what changed; the second one keeps all, for those to come.
pub struct Historical<'a> {
    head: Head<'a>,
    rebuilt: Arc<Rebuilt>,
}

/// A retained version, and what was rebuilt of it so far.
pub(crate) struct Rebuilt {
    meta: Meta,
    /// The version whose nodes are read and led here: this one, or a later one that is close; `None` for the head's.
    kept: Option<Meta>,
    /// A copy of the database that was taken back to this version or shortly before that, once something is rebuilt; `None` if the latest version is near.
    copy: OnceLock<Option<Arc<dyn Rewound>>>,
    flat: OnceLock<Records>,
    nodes: OnceLock<Nodes>,
    /// Whether a proof was made that kept only its own nodes.
    proved: AtomicBool,
}

impl fmt::Debug for Historical<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Historical")
            .field("tree", &self.tree().kind().name)
            .field("version", &HeadId::of(self.meta()))
            .finish_non_exhaustive()
    }
}

/// Flat records that may be other ones than the head has.
type Records = BTreeMap<(Table, Box<[u8]>), Option<Value>>;

impl<'a> Head<'a> {
    /// The state as it was at a retained version.
    ///
    /// # Errors
    /// A version that is not retained; the store's errors.
    pub fn at(self, version: Version) -> Result<Historical<'a>, StateError> {
        let rebuilt = Arc::new(Rebuilt::nothing_of(self, version)?);
        Ok(Historical {
            head: self,
            rebuilt,
        })
    }
}

impl Rebuilt {
    /// The version's block and root.
    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// A version of which nothing is rebuilt yet.
    fn nothing_of(head: Head<'_>, version: Version) -> Result<Self, StateError> {
        let view = head.view();
        view.retained(version)?;
        let meta = |version: Version| {
            let missing = || format!("no record of retained version {}", version.0);
            view.meta(version)?
                .ok_or_else(|| StateError::Read(missing()))
        };
        let at_head = head.meta().map(|head| head.version);
        let kept = view.kept_from(version)?;
        let kept = kept.filter(|kept| Some(*kept) != at_head).map(meta);
        Ok(Self {
            meta: meta(version)?,
            kept: kept.transpose()?,
            copy: OnceLock::new(),
            flat: OnceLock::new(),
            nodes: OnceLock::new(),
            proved: AtomicBool::new(false),
        })
    }

    /// The version over which flat records are laid that are other ones here. `view` is the head's.
    fn newest<'v>(&'v self, view: View<'v>) -> View<'v> {
        let Some(Some(copy)) = self.copy.get() else {
            return view;
        };
        let copy = copy.view();
        view.deadline()
            .map_or(copy, |deadline| copy.until(deadline))
    }
}

impl<'a> Historical<'a> {
    /// Reads a version through the head that it was opened with, or through another one of the same snapshot.
    pub(crate) fn of_rebuilt(head: Head<'a>, rebuilt: Arc<Rebuilt>) -> Self {
        Self { head, rebuilt }
    }

    /// What was rebuilt of the version so far.
    pub(crate) fn rebuilt(&self) -> &Arc<Rebuilt> {
        &self.rebuilt
    }

    /// The version after this one. Where nodes of this version were rebuilt they lead to those of the next, which then costs as much as that one changed; where
    /// none were it costs nothing.
    ///
    /// # Errors
    /// The head, after which there is none; the store's errors.
    pub fn next(self) -> Result<Self, StateError> {
        let head = self.head;
        let next = Rebuilt::nothing_of(head, Version(self.meta().version.0 + 1))?;
        let made = |rebuilt| Ok(Self::of_rebuilt(head, Arc::new(rebuilt)));
        if self.rebuilt.kept.is_some() || next.kept.is_some() {
            return made(next);
        }
        // Others may go on to read this version: then the next one begins with nothing.
        let Some(mut rebuilt) = Arc::into_inner(self.rebuilt) else {
            return made(next);
        };
        let (Some(mut flat), Some(mut nodes)) = (rebuilt.flat.take(), rebuilt.nodes.take()) else {
            return made(next);
        };
        let mut changed = head.view().undo_of(next.meta.version)?;
        for write in &mut changed {
            let now = head.view();
            write.value = now.get_at(next.meta.version, write.table, &write.key)?;
        }
        let view = rebuilt.newest(head.view());
        let now = |table: Table, key: &[u8]| match flat.get(&(table, Box::from(key))) {
            Some(value) => Ok(value.clone()),
            None => Ok(view.get(table, key)?),
        };
        head.tree()
            .step(view, &mut nodes, &next.meta, &changed, &now)?;
        flat.extend(records(changed));
        made(Rebuilt {
            copy: rebuilt.copy,
            flat: flat.into(),
            nodes: nodes.into(),
            ..next
        })
    }

    /// The version whose nodes are read, as if it were the head.
    fn base(&self) -> View<'_> {
        match &self.rebuilt.kept {
            Some(kept) => self.head.view().as_of(kept),
            None => self.newest(),
        }
    }

    /// The version over which flat records are laid that are other ones here.
    fn newest(&self) -> View<'_> {
        self.rebuilt.newest(self.head.view())
    }

    /// Has a copy of the database taken back, unless all that changed since this version may be in memory.
    fn nearby(&self) -> Result<&Self, StateError> {
        let rebuilt = &*self.rebuilt;
        if rebuilt.kept.is_none()
            && rebuilt.nodes.get().is_none()
            && rebuilt.copy.get().is_none()
            && let Some(rewind) = self.head.rewind()
        {
            let copy = rewind.near(self.head.view(), &rebuilt.meta)?;
            rebuilt.copy.get_or_init(|| copy);
        }
        Ok(self)
    }

    /// The flat records that may be other ones than the head has, read at the first call.
    fn flat(&self) -> Result<&Records, StateError> {
        if let Some(flat) = self.rebuilt.flat.get() {
            return Ok(flat);
        }
        let undo = self.newest().undo_since(self.meta().version)?;
        Ok(self.rebuilt.flat.get_or_init(|| records(undo).collect()))
    }

    /// Proves an account and some of its slots, present or absent.
    ///
    /// # Errors
    /// The store's errors; nodes that do not lead to the version's root.
    pub fn prove(&self, address: Address, slots: &[U256]) -> Result<Box<dyn Proof>, StateError> {
        let slots = slots.to_vec();
        self.tree().prove(self, &AccountSlots { address, slots })
    }

    /// Proves several accounts and slots of them by one proof, present or absent.
    ///
    /// # Errors
    /// Those of [`prove`](Self::prove).
    pub fn prove_together(&self, accounts: &[AccountSlots]) -> Result<Box<dyn Proof>, StateError> {
        self.tree().prove_together(self, accounts)
    }

    /// The leaves of this version by their keys alone; none of a tree that does not give them.
    pub fn leaves(&self) -> Option<LeavesThen<'_>> {
        let leaves = self.tree().leaves()?;
        Some(LeavesThen { then: self, leaves })
    }

    /// What a block on top of this version touches, proven; none of a tree without witnesses.
    ///
    /// # Errors
    /// Changes that contradict this state; the store's errors; nodes that do not lead to the version's root.
    pub fn witness(&self, touched: Touched<'_>) -> Option<Result<StateWitness, StateError>> {
        Some(self.tree().witnesses()?.of_block(self, touched))
    }

    /// The head of the database.
    pub fn head(&self) -> Head<'a> {
        self.head
    }

    /// The version's block and root.
    pub fn meta(&self) -> &Meta {
        &self.rebuilt.meta
    }

    /// The tree that commits to the state.
    pub fn tree(&self) -> &'a Tree {
        self.head.tree()
    }

    /// Roots of changes laid over this version, for receipts from before Byzantium; none of a tree other than the one
    /// that those receipts mean.
    pub fn intermediate_roots(&self) -> Option<Box<dyn IntermediateRoots + '_>> {
        Some(self.tree().inner_roots()?.at_version(self))
    }
}

/// The writes of flat records and of nodes that make a retained version the head again.
pub(crate) fn way_back(
    head: Head<'_>,
    to: Version,
) -> Result<(Vec<Write>, Vec<Write>), StateError> {
    let then = head.at(to)?;
    let undo = head.view().undo_since(to)?;
    let mut nodes = then.tree().writes_back(head.view(), then.meta(), &undo)?;
    if roots::are_kept(then.tree().kind()) {
        nodes.append(&mut roots::above(head.view(), then.meta().block_number)?);
    }
    Ok((undo, nodes))
}

/// The nodes, as writes, that lead from a version whose nodes are kept to the one before.
pub(crate) fn way_to_before(head: Head<'_>, version: Version) -> Result<Vec<Write>, StateError> {
    let then = head.at(version)?;
    let before = head.at(Version(version.0 - 1))?;
    let undo = head.view().undo_of(version)?;
    let view = then.base();
    let mut nodes = then.tree().writes_back(view, before.meta(), &undo)?;
    if roots::are_kept(then.tree().kind()) {
        nodes.append(&mut roots::above(view, before.meta().block_number)?);
    }
    Ok(nodes)
}

/// The leaves of a version by their keys alone.
pub struct LeavesThen<'a> {
    then: &'a Historical<'a>,
    leaves: &'a dyn Leaves,
}

impl LeavesThen<'_> {
    /// Proves all leaves from one key to another, both included; neither needs to be a leaf's. They are held in memory.
    ///
    /// # Errors
    /// A range that ends before it begins; the store's errors.
    pub fn prove_range(&self, from: B256, to: B256) -> Result<Box<dyn Proof>, StateError> {
        self.leaves.prove_range(self.then, (from, to))
    }

    /// The leaves that this version writes, in the form that the tree's prover is given: first those that were there, then
    /// new ones, both ascending by index. Reads are not kept, so there are none. The version before must be retained.
    ///
    /// # Errors
    /// A version whose predecessor is not retained; the store's errors.
    pub fn storage_logs(&self) -> Result<LeafLogs, StateError> {
        let (head, meta) = (self.then.head, self.then.meta());
        let Some(before) = meta.version.0.checked_sub(1) else {
            return Err(StateError::Read(
                "the first version has none before it, on which its leaves were written".into(),
            ));
        };
        let oldest = head.view().oldest();
        if oldest.is_some_and(|oldest| before < oldest.0) {
            return Err(StateError::Read(format!(
                "block {} is the oldest that the database retains, and what it writes is proven on top of the one before: \
                 that was pruned, or the database was recovered, which begins without history",
                meta.block_number
            )));
        }
        let before = head.at(Version(before))?;
        self.leaves.storage_logs(&before, self.then)
    }
}

/// Writes by what they write.
fn records(writes: Vec<Write>) -> impl Iterator<Item = ((Table, Box<[u8]>), Option<Value>)> {
    let writes = writes.into_iter();
    writes.map(|write| ((write.table, write.key), write.value))
}

impl Flat for Historical<'_> {
    fn value(&self, table: Table, key: &[u8]) -> Result<Option<Value>, StateError> {
        let Some(flat) = self.rebuilt.flat.get() else {
            let version = self.meta().version;
            return Ok(self.head.view().get_at(version, table, key)?);
        };
        match flat.get(&(table, Box::from(key))) {
            Some(value) => Ok(value.clone()),
            None => Ok(self.newest().get(table, key)?),
        }
    }

    fn entries(&self, table: Table, prefix: &[u8]) -> Result<FlatEntries<'_>, StateError> {
        let flat = self.nearby()?.flat()?;
        let head = self.newest().scan(table, prefix, prefix)?;
        let head = head.map(|entry| entry.map_err(StateError::from));
        let prefix: Box<[u8]> = prefix.into();
        let start = (table, prefix.clone());
        let then = flat
            .range(start..)
            .take_while(move |((t, key), _)| *t == table && key.starts_with(&prefix))
            .map(|((_, key), value)| (key.clone(), value.clone()));
        Ok(overlaid(head, then))
    }
}

impl Then for Historical<'_> {
    fn meta(&self) -> &Meta {
        &self.rebuilt.meta
    }

    fn view(&self) -> View<'_> {
        self.base()
    }

    fn nodes(&self) -> Result<&Nodes, StateError> {
        let rebuilt = &*self.rebuilt;
        if let Some(nodes) = rebuilt.nodes.get() {
            return Ok(nodes);
        }
        let (view, tree) = (self.nearby()?.base(), self.head.tree());
        let undo = view.undo_since(rebuilt.meta.version)?;
        let mut nodes = tree.nodes(view);
        let now = |table: Table, key: &[u8]| Ok(view.get(table, key)?);
        tree.step(view, &mut nodes, &rebuilt.meta, &undo, &now)?;
        if rebuilt.kept.is_none() {
            rebuilt.flat.get_or_init(|| records(undo).collect());
        }
        Ok(rebuilt.nodes.get_or_init(|| nodes))
    }

    fn is_proven_again(&self) -> bool {
        let rebuilt = &*self.rebuilt;
        rebuilt.kept.is_some()
            || rebuilt.copy.get().is_some_and(Option::is_some)
            || rebuilt.nodes.get().is_some()
            || rebuilt.proved.swap(true, Ordering::Relaxed)
    }
}

impl StateView for Historical<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        Ok(self.tree().records().account(self, address)?)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        Ok(self.tree().records().storage(self, address, slot)?)
    }

    fn has_storage(&self, address: Address) -> Result<bool, ReadError> {
        Ok(self.tree().records().has_storage(self, address)?)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        self.head.code(code_hash)
    }
}
