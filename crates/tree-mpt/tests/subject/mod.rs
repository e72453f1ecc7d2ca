//! The tree as a subject of the conformance suite.

use std::collections::BTreeMap;

use arbor_tree::conformance::{OuterChange, Subject};
use arbor_tree::naive::NaiveForest;
use arbor_tree::{Hash, MemoryNodes, NodeReader, Position};
use arbor_tree_mpt::{
    Access, EMPTY_ROOT, InnerUpdate, InnerValue, LeafTemplate, OuterUpdate, Overlay, TreeError,
    TreeUpdate, WitnessNodes, apply, apply_inner, apply_outer, build, prove, verify_value, witness,
};

/// A whole state in memory.
pub(crate) struct InMemory {
    pub(crate) nodes: MemoryNodes,
    pub(crate) root: Hash,
    pub(crate) inner_roots: BTreeMap<Hash, Hash>,
}

impl Default for InMemory {
    fn default() -> Self {
        Self {
            nodes: MemoryNodes::new(),
            root: EMPTY_ROOT,
            inner_roots: BTreeMap::new(),
        }
    }
}

/// Makes the tree's updates of the suite's changes.
pub(crate) fn outer_updates(
    changes: &[OuterChange],
    inner_roots: &BTreeMap<Hash, Hash>,
) -> Vec<OuterUpdate> {
    let update = |change: &OuterChange| OuterUpdate {
        key: change.key,
        existed: change.existed,
        inner_root: match inner_roots.get(&change.key) {
            Some(root) if !change.cleared => *root,
            _ => EMPTY_ROOT,
        },
        leaf: change.leaf.as_ref().map(|(before, after)| LeafTemplate {
            bytes: [before.as_slice(), &[0xee; 32], after].concat(),
            hole: before.len(),
        }),
        inner: change
            .inner
            .iter()
            .map(|inner| InnerUpdate {
                key: inner.key,
                existed: inner.existed,
                value: inner.value.clone().map(Into::into),
            })
            .collect(),
    };
    changes.iter().map(update).collect()
}

/// Applies updates in pieces: what comes together must be what comes at once.
fn check_parts(
    state: &InMemory,
    updates: &[OuterUpdate],
    at_once: &TreeUpdate,
) -> Result<(), String> {
    let text = |error: TreeError| error.to_string();
    let pieces = updates.chunks(1 + updates.len() / 3);
    let parts: Result<Vec<_>, _> = pieces
        .map(|piece| apply_inner(&state.nodes, piece))
        .collect();
    let parts = parts.map_err(text)?;
    let mut whole = apply_outer(&state.nodes, state.root, updates, parts).map_err(text)?;
    // The order, and the work, may be another.
    let mut at_once = at_once.clone();
    for update in [&mut whole, &mut at_once] {
        update.nodes.sort_by_key(|node| node.position);
        update.leaves.sort_by_key(|leaf| leaf.position);
        update.stats = Default::default();
    }
    if whole == at_once {
        return Ok(());
    }
    Err(format!("in parts {whole:?}\nat once {at_once:?}"))
}

impl InMemory {
    /// Stores the result of an update, as a caller with a node table and a flat table does.
    pub(crate) fn store(&mut self, updates: &[OuterUpdate], update: &TreeUpdate) {
        for key in &update.fresh {
            self.nodes.clear_trie(key);
        }
        self.nodes.change_nodes(&update.nodes);
        self.root = update.root;
        for (outer, inner_root) in updates.iter().zip(&update.inner_roots) {
            let leaf = outer.leaf.as_ref().map(|leaf| leaf.fill(inner_root));
            if leaf.is_some() {
                self.inner_roots.insert(outer.key, *inner_root);
            } else {
                self.inner_roots.remove(&outer.key);
            }
            self.nodes.set_leaf(None, outer.key, leaf);
            for inner in &outer.inner {
                let value = inner.value.clone();
                let value = value.map(InnerValue::into_vec);
                self.nodes.set_leaf(Some(outer.key), inner.key, value);
            }
        }
    }
}

impl Subject for InMemory {
    fn apply(&mut self, changes: &[OuterChange]) -> Result<(), String> {
        let updates = outer_updates(changes, &self.inner_roots);
        let update = apply(&self.nodes, self.root, &updates).map_err(|e| e.to_string())?;
        check_parts(self, &updates, &update)?;
        self.store(&updates, &update);
        Ok(())
    }

    fn root(&self) -> Hash {
        self.root
    }

    fn inner_root(&self, key: &Hash) -> Hash {
        self.inner_roots[key]
    }

    fn stored(&self) -> Option<BTreeMap<Position, Vec<u8>>> {
        let nodes = self.nodes.records().iter();
        Some(
            nodes
                .map(|(position, record)| (*position, record.to_vec()))
                .collect(),
        )
    }

    fn built(&self, model: &NaiveForest) -> BTreeMap<Position, Vec<u8>> {
        build_all(model)
    }

    fn prove(&self, trie: Option<Hash>, key: &Hash) -> Result<Vec<Vec<u8>>, String> {
        let root = trie.map_or(self.root, |owner| self.inner_roots[&owner]);
        prove_with(&self.nodes, trie, root, key)
    }

    fn verify(&self, root: &Hash, key: &Hash, proof: &[Vec<u8>], value: Option<&[u8]>) -> bool {
        verify_value(root, key, proof, value).unwrap_or(false)
    }
}

/// Proves with a reader; errors as text.
pub(crate) fn prove_with(
    reader: &dyn NodeReader,
    trie: Option<Hash>,
    root: Hash,
    key: &Hash,
) -> Result<Vec<Vec<u8>>, String> {
    prove(reader, trie, root, key).map_err(|error| error.to_string())
}

/// Builds every trie of a model and returns all records.
pub(crate) fn build_all(model: &NaiveForest) -> BTreeMap<Position, Vec<u8>> {
    let mut nodes = BTreeMap::new();
    let mut sink = |position, record: std::sync::Arc<[u8]>| {
        assert!(nodes.insert(position, record.to_vec()).is_none());
    };
    for (key, outer) in &model.outer {
        let root = build(Some(*key), outer.inner.clone(), &mut sink).expect("inner build");
        assert_eq!(root, outer.inner_root());
    }
    let leaves = model.outer.iter().map(|(key, outer)| (*key, outer.leaf()));
    let root = build(None, leaves, &mut sink).expect("outer build");
    assert_eq!(root, model.root());
    nodes
}

/// A state that is only an overlay over an empty one: nothing is ever stored.
pub(crate) struct Overlaid {
    overlay: Overlay<MemoryNodes>,
    root: Hash,
    inner_roots: BTreeMap<Hash, Hash>,
}

impl Default for Overlaid {
    fn default() -> Self {
        Self {
            overlay: Overlay::new(MemoryNodes::new()),
            root: EMPTY_ROOT,
            inner_roots: BTreeMap::new(),
        }
    }
}

impl Subject for Overlaid {
    fn apply(&mut self, changes: &[OuterChange]) -> Result<(), String> {
        let updates = outer_updates(changes, &self.inner_roots);
        let update = apply(&self.overlay, self.root, &updates).map_err(|e| e.to_string())?;
        self.overlay.push(&update);
        self.root = update.root;
        for (outer, root) in updates.iter().zip(&update.inner_roots) {
            self.inner_roots.insert(outer.key, *root);
        }
        Ok(())
    }

    fn root(&self) -> Hash {
        self.root
    }

    fn inner_root(&self, key: &Hash) -> Hash {
        self.inner_roots[key]
    }

    fn stored(&self) -> Option<BTreeMap<Position, Vec<u8>>> {
        None
    }

    fn built(&self, model: &NaiveForest) -> BTreeMap<Position, Vec<u8>> {
        build_all(model)
    }

    fn prove(&self, trie: Option<Hash>, key: &Hash) -> Result<Vec<Vec<u8>>, String> {
        let root = trie.map_or(self.root, |owner| self.inner_roots[&owner]);
        prove_with(&self.overlay, trie, root, key)
    }

    fn verify(&self, root: &Hash, key: &Hash, proof: &[Vec<u8>], value: Option<&[u8]>) -> bool {
        verify_value(root, key, proof, value).unwrap_or(false)
    }
}

/// A state in memory whose every step is also applied statelessly, over a witness of it alone.
#[derive(Default)]
pub(crate) struct Witnessed(InMemory);

impl Witnessed {
    fn check_witness(&self, updates: &[OuterUpdate], root: Hash) -> Result<(), String> {
        let text = |error: TreeError| error.to_string();
        let state = &self.0;
        let accesses: Vec<Access> = updates
            .iter()
            .map(|update| Access {
                key: update.key,
                inner_root: *state.inner_roots.get(&update.key).unwrap_or(&EMPTY_ROOT),
                inner: update.inner.iter().map(|inner| inner.key).collect(),
            })
            .collect();
        let bag = witness(&state.nodes, state.root, &accesses, updates).map_err(text)?;
        let nodes = WitnessNodes::new(bag.iter().rev().cloned());
        let whole = apply(&nodes, state.root, updates).map_err(text)?;
        assert_eq!(whole.root, root, "root over the witness");
        for access in &accesses {
            let owner = Some(access.key);
            for key in &access.inner {
                let value = nodes.value(owner, access.inner_root, key).map_err(text)?;
                assert_eq!(value.as_deref(), state.nodes.get_leaf(owner, key));
            }
            let leaf = nodes.value(None, state.root, &access.key).map_err(text)?;
            assert_eq!(leaf.as_deref(), state.nodes.get_leaf(None, &access.key));
        }
        for missing in 0..bag.len() {
            let fewer = bag
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != missing);
            let nodes = WitnessNodes::new(fewer.map(|(_, node)| node.clone()));
            let applied = apply(&nodes, state.root, updates);
            // It may not have been needed for the update alone, but it never makes another root.
            if let Ok(update) = &applied {
                assert_eq!(
                    update.root, root,
                    "root over a witness without node {missing}"
                );
            }
            let read = accesses.iter().all(|access| {
                let mut inner = access.inner.iter();
                nodes.value(None, state.root, &access.key).is_ok()
                    && inner.all(|key| {
                        let owner = Some(access.key);
                        nodes.value(owner, access.inner_root, key).is_ok()
                    })
            });
            assert!(
                applied.is_err() || !read,
                "the witness has node {missing}, which nothing needs"
            );
        }
        Ok(())
    }
}

impl Subject for Witnessed {
    fn apply(&mut self, changes: &[OuterChange]) -> Result<(), String> {
        let updates = outer_updates(changes, &self.0.inner_roots);
        let update =
            apply(&self.0.nodes, self.0.root, &updates).map_err(|error| error.to_string())?;
        self.check_witness(&updates, update.root)?;
        self.0.store(&updates, &update);
        Ok(())
    }

    fn root(&self) -> Hash {
        self.0.root
    }

    fn inner_root(&self, key: &Hash) -> Hash {
        self.0.inner_roots[key]
    }

    fn stored(&self) -> Option<BTreeMap<Position, Vec<u8>>> {
        None
    }

    fn built(&self, model: &NaiveForest) -> BTreeMap<Position, Vec<u8>> {
        build_all(model)
    }

    fn prove(&self, trie: Option<Hash>, key: &Hash) -> Result<Vec<Vec<u8>>, String> {
        self.0.prove(trie, key)
    }

    fn verify(&self, root: &Hash, key: &Hash, proof: &[Vec<u8>], value: Option<&[u8]>) -> bool {
        self.0.verify(root, key, proof, value)
    }
}
