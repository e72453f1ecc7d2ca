//! Nodes of a trie that no proof of a block's names has: siblings that join when a branch collapses.
//!
//! A branch with two children of which one goes becomes a leaf or an extension, for which the other
//! child has to be known. Two ways lead to it:
//!
//! 1. **The state after the block.** There, the proof of the name that went ends at the joined node.
//!    If the sibling is a leaf or an extension, the joined node is the sibling with a longer path.
//! 2. **A name below it.** If the sibling is a branch, the proof of any name whose hashed key leads
//!    through it has it. Such a name is found by trying, 16 times as long for each nibble.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use alloy_primitives::{Address, B256, U256, keccak256};
use arbor_hashing::keccak256_fixed;
use arbor_state::{AccountSlots, StateChanges};
use arbor_verify::mpt::{MissingNode, account_key, shortened, slot_key};

use crate::client::Node;
use crate::error::{RemoteError, TRIED_NIBBLES};
use crate::proven_state::{ProvenState, proofs};

/// From this length on it takes so long that it is reported.
const LONG: usize = 7;
/// Names that are hashed together.
const TOGETHER: u64 = 1 << 12;

/// Fetches siblings of a block's names.
pub(crate) struct Siblings<'a> {
    pub(crate) node: &'a Node,
    /// The state before the block.
    pub(crate) state: &'a ProvenState<'a>,
    /// The number and hash of the block.
    pub(crate) block: (u64, B256),
}

impl Siblings<'_> {
    /// Adds a missing node to the state. `changes` are those that collapse the branch above it.
    ///
    /// # Errors
    /// [`RemoteError::Sibling`] if neither way leads to it; the node's errors.
    pub(crate) fn fetch(
        &self,
        missing: MissingNode,
        changes: &[&StateChanges],
    ) -> Result<(), RemoteError> {
        if self.after_block(missing, changes)? {
            return Ok(());
        }
        let nibbles = missing.position.path.len();
        let (block, hash, position) = (self.block.0, missing.hash, missing.position.to_string());
        if nibbles > TRIED_NIBBLES {
            return Err(RemoteError::DeepSibling {
                block,
                hash,
                position,
                nibbles,
            });
        }
        match self.by_trying(missing, changes)? {
            true => Ok(()),
            false => Err(RemoteError::Sibling {
                block,
                hash,
                position,
            }),
        }
    }

    /// Looks for the node in the state after the block.
    fn after_block(
        &self,
        missing: MissingNode,
        changes: &[&StateChanges],
    ) -> Result<bool, RemoteError> {
        let Some(gone) = gone_beside(missing, changes) else {
            return Ok(false);
        };
        let proofs = proofs(self.node, self.block.1, std::slice::from_ref(&gone))?;
        let nodes = proofs
            .into_iter()
            .flat_map(|proof| match gone.slots.is_empty() {
                true => proof.account_proof,
                false => proof
                    .storage_proof
                    .into_iter()
                    .flat_map(|slot| slot.proof)
                    .collect(),
            });
        let mut candidates = nodes.flat_map(|node| shortened(&node));
        let found = candidates.find(|node| keccak256(node) == missing.hash);
        let is_found = found.is_some();
        if let Some(node) = found {
            self.state.add(node.into());
        }
        Ok(is_found)
    }

    /// Looks for a name whose hashed key leads through the node, and fetches its proof.
    fn by_trying(
        &self,
        missing: MissingNode,
        changes: &[&StateChanges],
    ) -> Result<bool, RemoteError> {
        let path = missing.position.path;
        if path.len() >= LONG {
            tracing::info!(
                "trying names until one leads below {}: about {} million",
                missing.position,
                (1_u64 << (4 * path.len())) / 1_000_000
            );
        }
        let leads = |key: &[u8; 32]| path.is_prefix_of(key);
        let name = match missing.position.trie {
            None => name_below::<20>(leads).map(|address| AccountSlots {
                address: address.into(),
                slots: Vec::new(),
            }),
            Some(trie) => {
                let address = accounts(changes).find(|address| account_key(*address) == trie);
                let Some(address) = address else {
                    return Ok(false);
                };
                name_below::<32>(leads).map(|slot| AccountSlots {
                    address,
                    slots: vec![U256::from_be_bytes(slot)],
                })
            }
        };
        let Some(name) = name else { return Ok(false) };
        self.state.prove(std::slice::from_ref(&name))?;
        Ok(self.state.witness().node(&missing.hash).is_some())
    }
}

fn accounts<'a>(changes: &'a [&StateChanges]) -> impl Iterator<Item = Address> + 'a {
    changes
        .iter()
        .flat_map(|changes| changes.accounts.keys().copied())
}

/// Returns a name that the block removes, below the branch that the missing node hangs at.
fn gone_beside(missing: MissingNode, changes: &[&StateChanges]) -> Option<AccountSlots> {
    let mut branch = missing.position.path;
    branch.pop()?;
    let changed = changes.iter().flat_map(|changes| &changes.accounts);
    for (address, change) in changed {
        let key = account_key(*address);
        match missing.position.trie {
            None if change.new.is_none() && branch.is_prefix_of(&key) => {
                return Some(AccountSlots {
                    address: *address,
                    slots: Vec::new(),
                });
            }
            Some(trie) if trie == key => {
                let mut gone = change
                    .slots
                    .iter()
                    .filter(|(_, change)| change.new.is_zero());
                let gone = gone.find(|(slot, _)| branch.is_prefix_of(&slot_key(**slot)));
                if let Some((slot, _)) = gone {
                    return Some(AccountSlots {
                        address: *address,
                        slots: vec![*slot],
                    });
                }
            }
            _ => {}
        }
    }
    None
}

/// Finds a name of `N` bytes whose Keccak-256 is as asked for, on all cores.
fn name_below<const N: usize>(leads: impl Fn(&[u8; 32]) -> bool + Sync) -> Option<[u8; N]> {
    // 16 times as many as there are paths: that none leads there is out of the question.
    let most = 1_u64 << (4 * (TRIED_NIBBLES + 1));
    let (next, found) = (AtomicU64::new(0), OnceLock::new());
    let search = || {
        let mut keys = vec![[0; 32]; TOGETHER as usize];
        while found.get().is_none() {
            let begin = next.fetch_add(TOGETHER, Ordering::Relaxed);
            if begin >= most {
                return;
            }
            let names: Vec<[u8; N]> = (begin..begin + TOGETHER).map(numbered).collect();
            keccak256_fixed(&names, &mut keys);
            if let Some(place) = keys.iter().position(&leads) {
                // Another thread may have been first: any name will do.
                let _ = found.set(names[place]);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(search);
        }
    });
    found.into_inner()
}

/// The name that ends with this number.
fn numbered<const N: usize>(number: u64) -> [u8; N] {
    let mut name = [0; N];
    name[N - 8..].copy_from_slice(&number.to_be_bytes());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_below_every_path() {
        for path in [[0, 0], [0xab, 0xcd], [0xff, 0xf0]] {
            let leads = |key: &[u8; 32]| key[..2] == path;
            let address = name_below::<20>(leads).expect("found");
            assert_eq!(keccak256(address)[..2], path);
            let slot = name_below::<32>(leads).expect("found");
            assert_eq!(keccak256(slot)[..2], path);
        }
    }
}
