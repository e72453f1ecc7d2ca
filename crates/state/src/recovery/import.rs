//! A database from a list of entries.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, U256};
use arbor_state_tree::{Leaves, check_consistent, code_writes};
use arbor_versions::{Changes, Version};

use super::marker::{RECOVERING, is_recovering};
use super::{AccountEntry, Chunk, EntriesHead, Place, RecoveryError};
use crate::{
    Account, AccountChange, BlockRef, Computed, SlotChange, State, StateChanges, StateError, roots,
};

/// Takes in a list of entries, in which order ever they come.
///
/// Each chunk is a version, of which the latest alone can be read, and reaches the disk with the next flush, whole or not at all. Its record has how many chunks
/// are in, and the [`Place`] behind the last, so that only the same list goes on. The last version of all has the list's blocks in the place of these.
pub struct Recovery<'a> {
    state: &'a mut State,
    head: EntriesHead,
    /// The place behind the last chunk that is in, if one is.
    last: Option<B256>,
    done: u64,
    finished: bool,
}

impl<'a> Recovery<'a> {
    /// Begins, or goes on where an earlier one of the same list ended.
    ///
    /// # Errors
    /// A state that has a block already (unless it is the list's, when nothing is left to do), or whose record is damaged; a list of no block, or of a block that
    /// cannot be.
    pub fn new(state: &'a mut State, head: EntriesHead) -> Result<Self, RecoveryError> {
        let root = head.root()?;
        if let Some(block) = head.blocks.iter().find(|block| block.hash == RECOVERING) {
            return Err(RecoveryError::Hash(block.number));
        }
        let (last, done, finished) = match state.head() {
            None => (None, 0, false),
            Some(meta) if is_recovering(&meta.block_hash) => {
                let split = meta.extra.split_at_checked(32);
                let (begun, done) = split.unwrap_or_default();
                let done = <[u8; 8]>::try_from(done).map_err(|_| {
                    StateError::Read("the record of a recovery is damaged".to_owned())
                })?;
                let last = B256::from_slice(begun);
                (Some(last), u64::from_be_bytes(done), false)
            }
            Some(meta) => {
                let last = head.blocks.last().ok_or(RecoveryError::NoBlock)?;
                let block = meta.block_number;
                if (meta.block_hash, meta.root) != (last.hash.0, root.0) {
                    return Err(RecoveryError::NotEmpty { block });
                }
                (None, 0, true)
            }
        };
        Ok(Self {
            state,
            head,
            last,
            done,
            finished,
        })
    }

    /// Chunks that are in: what comes next follows these.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Whether there is nothing to do: the state is that of the list.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    fn follow(&self, before: B256) -> Result<(), RecoveryError> {
        match self.last {
            Some(last) if last != before => Err(RecoveryError::OtherFile(self.done)),
            _ => Ok(()),
        }
    }

    /// Takes in the next chunk, behind which the list's reader stands at `place`. Called on a thread of a rayon pool, it spreads the work over the pool.
    ///
    /// # Errors
    /// [`RecoveryError::OtherFile`] if the chunks before were others; a leaf that is there already, a name that is not one, index 0; an account or a slot that comes
    /// twice; leaves for a tree without leaves by key; the store's errors.
    pub fn add(&mut self, chunk: Chunk, place: Place) -> Result<(), RecoveryError> {
        self.follow(place.before)?;
        let computed = match chunk {
            Chunk::Leaves(leaves) => {
                let tree = self.leaves()?;
                let computed = tree.compute_new(self.state.versions.view(), &leaves)?;
                computed.map_err(|key| RecoveryError::Twice(key.into()))?
            }
            Chunk::Names(names) => {
                let tree = self.leaves()?;
                let write = |name: Vec<u8>| {
                    let write = tree.name_write(&name);
                    write.ok_or(RecoveryError::Name(name))
                };
                let blobs: Result<Vec<_>, RecoveryError> = names.into_iter().map(write).collect();
                self.unchanged(blobs?)
            }
            Chunk::Codes(codes) => {
                let hashed = codes.into_iter();
                let hashed: Vec<_> = hashed
                    .map(|code| (alloy_primitives::keccak256(&code), code))
                    .collect();
                let blobs = code_writes(hashed.iter().map(|(hash, code)| (hash, code)));
                self.unchanged(blobs)
            }
            Chunk::Accounts(entries) | Chunk::Past(entries) => self.set(entries)?,
        };
        let number = self.head.blocks.first().map_or(0, |block| block.number);
        let done = self.done + 1;
        let block = BlockRef {
            number,
            hash: RECOVERING,
            record: [&place.after[..], &done.to_be_bytes()].concat(),
        };
        let root = computed.root();
        self.state.apply_as_one([(block, root)], computed)?;
        (self.last, self.done) = (Some(place.after), done);
        Ok(())
    }

    fn leaves(&self) -> Result<&dyn Leaves, RecoveryError> {
        let tree = self.state.tree();
        tree.leaves()
            .ok_or(RecoveryError::NoLeaves(tree.kind().name))
    }

    /// Sets accounts and slots, whatever they were before.
    fn set(&self, entries: Vec<AccountEntry>) -> Result<Computed, RecoveryError> {
        let (view, tree) = (self.state.versions.view(), self.state.tree());
        let addresses: Vec<Address> = entries.iter().map(|entry| entry.address).collect();
        let before = tree.records().accounts(&view, &addresses)?;
        let mut changes = StateChanges::default();
        for (entry, old) in entries.into_iter().zip(before) {
            let address = entry.address;
            let change = self.change(entry, old)?;
            if changes.accounts.insert(address, change).is_some() {
                let why = "comes twice in a chunk";
                return Err(RecoveryError::Account { address, why });
            }
        }
        changes
            .accounts
            .retain(|_, change| change.old.is_some() || change.new.is_some());
        check_consistent(view, &[&changes])?;
        let mut computed = tree.compute(view, &[&changes])?;
        Ok(computed.pop().expect("invariant: one for each"))
    }

    fn change(
        &self,
        entry: AccountEntry,
        old: Option<Account>,
    ) -> Result<AccountChange, RecoveryError> {
        let AccountEntry {
            address,
            account,
            slots,
        } = entry;
        let (view, records) = (self.state.versions.view(), self.state.tree().records());
        let mut changed = BTreeMap::new();
        for (slot, new) in slots {
            let old = match old {
                Some(_) => records.storage(&view, address, slot)?,
                None => U256::ZERO,
            };
            if changed.insert(slot, SlotChange { old, new }).is_some() {
                let why = "has a slot twice";
                return Err(RecoveryError::Account { address, why });
            }
        }
        changed.retain(|_, change| change.old != change.new);
        Ok(AccountChange {
            old,
            new: account,
            storage_cleared: account.is_none() && old.is_some(),
            slots: changed,
        })
    }

    /// The leaves as they are, with blobs.
    fn unchanged(&self, blobs: Vec<arbor_store::Write>) -> Computed {
        let (view, root) = (self.state.versions.view(), self.state.root());
        Computed::on_head(view, root, Changes::of_blobs(blobs))
    }

    /// Makes what is in durable, to go on later.
    ///
    /// # Errors
    /// The store's.
    pub fn pause(self) -> Result<(), RecoveryError> {
        Ok(self.state.flush()?)
    }

    /// Compares the root of what is in with the list's, and makes it the state of the list's block, durable. The reader stands at `place`, behind the list's end.
    ///
    /// # Errors
    /// [`RecoveryError::OtherFile`], [`RecoveryError::Root`]; the store's.
    pub fn finish(self, place: Place) -> Result<(), RecoveryError> {
        if self.finished {
            return Ok(());
        }
        self.follow(place.before)?;
        let (expected, actual) = (self.head.root()?, self.state.root());
        if expected != actual {
            return Err(RecoveryError::Root { expected, actual });
        }
        let mut computed = self.unchanged(Vec::new());
        if let Some(last) = self.head.blocks.last()
            && roots::are_kept(self.state.tree().kind())
        {
            roots::put(&mut computed.changes, last.number, last.root);
        }
        let blocks = self.head.blocks.into_iter().map(|block| {
            let at = BlockRef {
                number: block.number,
                hash: block.hash,
                record: block.record.to_vec(),
            };
            (at, block.root)
        });
        let first = self.state.head().map_or(0, |head| head.version.0 + 1);
        self.state.apply_as_one(blocks, computed)?;
        self.state.versions.forget_beginning(Version(first));
        Ok(self.state.flush()?)
    }
}
