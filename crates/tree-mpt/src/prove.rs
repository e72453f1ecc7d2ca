//! Making proofs.

use std::collections::HashMap;

use arbor_tree::{Hash, NodeReader, NodeRequest, Path, Position, nibble_of};

use crate::EMPTY_ROOT;
use crate::error::TreeError;
use crate::load::read_leaf;
use crate::node::{Reference, write_leaf};
use crate::record::Record;

/// Proves that a key has its value, or is absent, in the trie with the given root.
///
/// `trie` is `None` for the outer trie, else the outer key that the trie hangs under. Returns the
/// RLP nodes from the root down in the form of EIP-1186: extensions and branches apart, nodes that
/// their parent inlines not listed, nothing for an empty trie.
///
/// # Errors
/// When a node cannot be read or does not have the hash that its parent says.
pub fn prove(
    reader: &dyn NodeReader,
    trie: Option<Hash>,
    root: Hash,
    key: &Hash,
) -> Result<Vec<Vec<u8>>, TreeError> {
    let proofs = prove_many(reader, trie, root, std::slice::from_ref(key))?;
    Ok(proofs.into_iter().next().unwrap_or_default())
}

/// Proves many keys of one trie; nodes that proofs share are read once.
///
/// # Errors
/// As [`prove`].
pub fn prove_many(
    reader: &dyn NodeReader,
    trie: Option<Hash>,
    root: Hash,
    keys: &[Hash],
) -> Result<Vec<Vec<Vec<u8>>>, TreeError> {
    if root == EMPTY_ROOT {
        return Ok(vec![Vec::new(); keys.len()]);
    }
    let mut prover = Prover {
        reader,
        trie,
        found: HashMap::new(),
    };
    let mut proofs = vec![Vec::new(); keys.len()];
    let mut level: Vec<Step> = (0..keys.len())
        .map(|key| Step {
            key,
            path: Path::ROOT,
            reference: Reference::hash(root),
            leaf: false,
        })
        .collect();
    while !level.is_empty() {
        prover.read(&level)?;
        let mut next = Vec::new();
        for step in level {
            let found = &prover.found[&step.path];
            proofs[step.key].extend_from_slice(found.rlp_for(&step, &keys[step.key]));
            next.extend(found.below(&step, &keys[step.key]));
        }
        level = next;
    }
    Ok(proofs)
}

/// Where a key has led so far.
struct Step {
    /// Index of the key.
    key: usize,
    path: Path,
    reference: Reference,
    leaf: bool,
}

/// What hangs at a path.
struct Found {
    /// Its RLP nodes, without those inlined.
    rlp: Vec<Vec<u8>>,
    /// `None` for a leaf.
    record: Option<Record>,
}

impl Found {
    fn leaf(rlp: Vec<Vec<u8>>) -> Self {
        Self { rlp, record: None }
    }

    /// Whether a key goes on below the extension.
    fn leads_on(&self, step: &Step, key: &Hash) -> bool {
        self.record.as_ref().is_none_or(|record| {
            let prefix = record.prefix();
            prefix.shared_with_key(key, step.path.len()) == prefix.len()
        })
    }

    /// The RLP nodes that a key passes: where it parts within the extension, not the branch.
    fn rlp_for(&self, step: &Step, key: &Hash) -> &[Vec<u8>] {
        let count = if self.leads_on(step, key) {
            self.rlp.len()
        } else {
            self.rlp.len().min(1)
        };
        &self.rlp[..count]
    }

    /// Follows a key one node down.
    fn below(&self, step: &Step, key: &Hash) -> Option<Step> {
        let record = self.record.as_ref()?;
        if !self.leads_on(step, key) {
            return None;
        }
        let prefix = record.prefix();
        if let Some(branch) = record.bare_branch() {
            return Some(Step {
                key: step.key,
                path: step.path.join(prefix),
                reference: Reference::hash(branch),
                leaf: false,
            });
        }
        let nibble = nibble_of(key, step.path.len() + prefix.len());
        let reference = record.child(nibble);
        (!reference.is_none()).then(|| Step {
            key: step.key,
            path: step.path.join(prefix).child(nibble),
            reference,
            leaf: record.leaves() & (1 << nibble) != 0,
        })
    }
}

struct Prover<'a> {
    reader: &'a dyn NodeReader,
    trie: Option<Hash>,
    found: HashMap<Path, Found>,
}

impl Prover<'_> {
    /// Reads what hangs at the ends of the steps.
    fn read(&mut self, level: &[Step]) -> Result<(), TreeError> {
        let mut requests = Vec::new();
        let mut asked = Vec::new();
        for step in level {
            if self.found.contains_key(&step.path) {
                continue;
            }
            let request = self.request(step);
            if step.leaf {
                let found = self.read_leaf(&request, &step.reference)?;
                self.found.insert(step.path, found);
            } else if step.reference.as_hash().is_none() {
                let found = inlined(&request, &step.reference)?;
                self.found.insert(step.path, found);
            } else {
                // Keys of one batch may lead to the same node.
                let pending = Found::leaf(Vec::new());
                self.found.insert(step.path, pending);
                requests.push(request);
                asked.push(step);
            }
        }
        if requests.is_empty() {
            return Ok(());
        }
        let records = self.reader.nodes(&requests)?;
        for ((step, request), record) in asked.into_iter().zip(&requests).zip(records) {
            let found = match record {
                Some(bytes) => check(request, &bytes)?,
                None if step.path.is_empty() => self.read_leaf(request, &step.reference)?,
                None => {
                    let position = request.position;
                    return Err(TreeError::MissingNode { position });
                }
            };
            self.found.insert(step.path, found);
        }
        Ok(())
    }

    fn request(&self, step: &Step) -> NodeRequest {
        NodeRequest {
            position: Position {
                trie: self.trie,
                path: step.path,
            },
            expected: step.reference.as_hash(),
        }
    }

    fn read_leaf(&self, request: &NodeRequest, reference: &Reference) -> Result<Found, TreeError> {
        if reference.as_inline().is_some() {
            return Ok(Found::leaf(Vec::new()));
        }
        let leaf = read_leaf(self.reader, request, reference)?;
        let mut rlp = Vec::new();
        write_leaf(
            &mut rlp,
            &leaf.key,
            request.position.path.len(),
            &leaf.value,
        );
        expect_hash(request, &Reference::to_rlp_node(&rlp), &rlp)?;
        Ok(Found::leaf(vec![rlp]))
    }
}

/// Decodes a record and checks it against the expected hash.
fn check(request: &NodeRequest, bytes: &[u8]) -> Result<Found, TreeError> {
    let position = request.position;
    let record = Record::decode(bytes).map_err(|error| TreeError::Record { position, error })?;
    if position.path.len() + record.prefix().len() >= Path::MAX {
        return Err(TreeError::TooDeep { position });
    }
    let (rlp, reference) = record.rlp_nodes();
    expect_hash(request, &reference, &rlp[0])?;
    Ok(Found {
        rlp,
        record: Some(record),
    })
}

fn inlined(request: &NodeRequest, reference: &Reference) -> Result<Found, TreeError> {
    let position = request.position;
    let rlp = reference.as_inline().unwrap_or_default();
    match Record::from_rlp(rlp, &|_| None) {
        Ok(record) => Ok(Found {
            rlp: Vec::new(),
            record,
        }),
        Err(error) => Err(TreeError::Node { position, error }),
    }
}

/// Checks a node against its expected hash; a root may be shorter than 32 bytes and is hashed all
/// the same.
fn expect_hash(request: &NodeRequest, reference: &Reference, rlp: &[u8]) -> Result<(), TreeError> {
    let hash = match reference.as_hash() {
        Some(hash) => hash,
        None => arbor_hashing::keccak256(rlp),
    };
    if request.expected == Some(hash) {
        return Ok(());
    }
    let position = request.position;
    Err(TreeError::WrongHash { position })
}
