//! A version's entries, for a file.

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroUsize;

use alloy_primitives::{Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state_tree::{CODE, Flat, KeptAccount, LeafWrite, Leaves, Then, Zeros};
use arbor_versions::Version;

use super::{
    AccountEntry, CODE_BYTES, Chunk, EntriesBlock, EntriesHead, EntriesWriter, Order,
    RecoveryError, Totals,
};
use crate::{Account, Historical, StateError};

/// Blocks before the last that are kept, for `BLOCKHASH`.
const BLOCKS: u64 = 256;

/// Bytes of a chunk of code in a leaf (EIP-6800, EIP-7864).
const CODE_CHUNK: usize = 31;

/// Bytes of accounts and slots from which on a chunk is not added to.
const ACCOUNT_BYTES: usize = 64 << 20;
/// Bytes that an account without slots takes at most, and a slot.
const ENTRY: usize = 100;
const SLOT: usize = 66;

impl Historical<'_> {
    /// What a list of this version's entries begins with.
    ///
    /// # Errors
    /// [`RecoveryError::NoLeaves`] if leaves are to be in the order of indices and the tree has none; the store's errors.
    pub fn entries_head(
        &self,
        network: crate::Network,
        genesis_json: Option<String>,
        (order, together): (Order, NonZeroUsize),
    ) -> Result<EntriesHead, RecoveryError> {
        if order == Order::Index && self.tree().leaves().is_none() {
            return Err(RecoveryError::NoLeaves(self.tree().kind().name));
        }
        let last = self.meta().version.0;
        let mut blocks = Vec::new();
        for version in last.saturating_sub(BLOCKS)..=last {
            let meta = self
                .view()
                .meta(Version(version))
                .map_err(StateError::from)?;
            blocks.extend(meta.map(|meta| EntriesBlock {
                number: meta.block_number,
                hash: meta.block_hash.into(),
                root: meta.root.into(),
                record: meta.extra.into(),
            }));
        }
        let identity = self.tree().identity(network);
        Ok(EntriesHead {
            tree: identity.tree,
            revision: identity.revision,
            hash: identity.hash,
            chain_id: identity.chain_id,
            genesis: network.genesis_hash,
            rules: None,
            genesis_json,
            order,
            together,
            blocks,
        })
    }

    /// Writes all entries of this version behind a [head](Self::entries_head). `progress` is called after each chunk of
    /// leaves or accounts with the part that is written, 0 to 1, and what the file has.
    ///
    /// # Errors
    /// The store's errors; what keeps the file from being written.
    pub fn write_entries<W: Write>(
        &self,
        out: W,
        head: &EntriesHead,
        progress: &dyn Fn(f64, Totals),
    ) -> Result<(W, Totals), RecoveryError> {
        let mut out = EntriesWriter::new(out, head)?;
        let leaves = self.tree().leaves();
        if let Some(leaves) = leaves {
            // Of names and codes none goes.
            gathered(leaves.names(self.view())?, head.together.get(), |names| {
                out.chunk(&Chunk::Names(names))
            })?;
        }
        self.write_codes(&mut out)?;
        match leaves {
            Some(leaves) => self.write_leaves(leaves, &mut out, head, progress)?,
            None => {
                if self.tree().kind().zeros == Zeros::Kept {
                    self.write_past(&mut out, head)?;
                }
                self.write_accounts(&mut out, head, progress)?;
            }
        }
        out.finish()
    }

    fn write_codes<W: Write>(&self, out: &mut EntriesWriter<W>) -> Result<(), RecoveryError> {
        let (mut codes, mut bytes) = (Vec::new(), 0);
        for entry in self.view().entries(CODE, &[])? {
            let (_, code) = entry?;
            bytes += code.len();
            codes.push(Bytes::copy_from_slice(&code));
            if bytes >= CODE_BYTES {
                out.chunk(&Chunk::Codes(std::mem::take(&mut codes)))?;
                bytes = 0;
            }
        }
        match codes.is_empty() {
            true => Ok(()),
            false => out.chunk(&Chunk::Codes(codes)),
        }
    }

    fn write_leaves<W: Write>(
        &self,
        tree: &dyn Leaves,
        out: &mut EntriesWriter<W>,
        head: &EntriesHead,
        progress: &dyn Fn(f64, Totals),
    ) -> Result<(), RecoveryError> {
        let together = head.together.get();
        let leaves = tree.entries(self)?;
        match head.order {
            Order::Key => gathered(leaves, together, |leaves| {
                let part = leaves.last().map_or(0.0, |leaf| part_of_keys(&leaf.key));
                out.chunk(&Chunk::Leaves(leaves))?;
                progress(part, out.totals());
                Ok(())
            }),
            Order::Index => {
                let leaves: Result<Vec<LeafWrite>, StateError> = leaves.collect();
                let mut leaves = leaves?;
                leaves.sort_unstable_by_key(|leaf| (leaf.index, leaf.key));
                let all = leaves.len();
                for some in leaves.chunks(together) {
                    out.chunk(&Chunk::Leaves(some.to_vec()))?;
                    progress(out.totals().leaves as f64 / all as f64, out.totals());
                }
                Ok(())
            }
        }
    }

    /// Writes what has left leaves of zeros behind, as it might have been: slots with the value 1, and codes of as many
    /// chunks. What follows removes it, and the leaves stay.
    fn write_past<W: Write>(
        &self,
        out: &mut EntriesWriter<W>,
        head: &EntriesHead,
    ) -> Result<(), RecoveryError> {
        let (mut chunk, mut lengths) = (AccountChunk::of(head), BTreeSet::new());
        for kept in self.tree().records().kept_listing(self)? {
            let Some(past) = past_of(kept?) else {
                continue;
            };
            if let Some(length) = past.code_length
                && lengths.insert(length)
            {
                out.chunk(&Chunk::Codes(vec![past_code(length)]))?;
            }
            chunk.add(past.entry, |entries| out.chunk(&Chunk::Past(entries)))?;
        }
        chunk.end(|entries| out.chunk(&Chunk::Past(entries)))
    }

    fn write_accounts<W: Write>(
        &self,
        out: &mut EntriesWriter<W>,
        head: &EntriesHead,
        progress: &dyn Fn(f64, Totals),
    ) -> Result<(), RecoveryError> {
        if self.tree().moves().is_some() {
            return Err(StateError::Read(
                "the state moves to another tree, and a snapshot is of one: let the move end first and prune the blocks that need the tree before, or give it up".into(),
            )
            .into());
        }
        let (order, mut chunk) = (self.tree().order(), AccountChunk::of(head));
        for kept in self.tree().records().kept_listing(self)? {
            let KeptAccount {
                address,
                account,
                mut slots,
                ..
            } = kept?;
            if account.is_none() {
                slots.clear();
            }
            let entry = AccountEntry {
                address,
                account,
                slots,
            };
            chunk.add(entry, |entries| {
                out.chunk(&Chunk::Accounts(entries))?;
                let mut key = [[0; 32]];
                (order.account_keys)(&[address], &mut key);
                progress(part_of_keys(&key[0]), out.totals());
                Ok(())
            })?;
        }
        chunk.end(|entries| out.chunk(&Chunk::Accounts(entries)))
    }
}

/// What an account has left behind, as if it were still there.
struct Past {
    entry: AccountEntry,
    /// Bytes of its code, if that had more chunks than the account's code has now.
    code_length: Option<usize>,
}

fn past_of(kept: KeptAccount) -> Option<Past> {
    let KeptAccount {
        address,
        account,
        past_chunks,
        slots,
    } = kept;
    let slots = slots.into_iter().filter(|(_, value)| value.is_zero());
    let slots: Vec<(U256, U256)> = slots.map(|(slot, _)| (slot, U256::ONE)).collect();
    if account.is_some() && past_chunks.is_none() && slots.is_empty() {
        return None;
    }
    let code_length = past_chunks.map(|chunks| chunks as usize * CODE_CHUNK);
    let mut account = account.unwrap_or(Account {
        nonce: 1,
        balance: U256::ZERO,
        code_hash: KECCAK256_EMPTY,
    });
    if let Some(length) = code_length {
        account.code_hash = keccak256(past_code(length));
    }
    let account = Some(account);
    Some(Past {
        entry: AccountEntry {
            address,
            account,
            slots,
        },
        code_length,
    })
}

fn past_code(length: usize) -> Bytes {
    vec![0; length].into()
}

/// Entries that become a chunk.
struct AccountChunk {
    entries: Vec<AccountEntry>,
    weight: usize,
    bytes: usize,
    together: usize,
}

impl AccountChunk {
    fn of(head: &EntriesHead) -> Self {
        Self {
            entries: Vec::new(),
            weight: 0,
            bytes: 0,
            together: head.together.get(),
        }
    }

    /// Adds an account, and passes on each chunk that is full. Slots without room go on in the next chunk.
    fn add(
        &mut self,
        entry: AccountEntry,
        mut put: impl FnMut(Vec<AccountEntry>) -> Result<(), RecoveryError>,
    ) -> Result<(), RecoveryError> {
        let AccountEntry {
            address,
            account,
            mut slots,
        } = entry;
        loop {
            let room = (self.together - self.weight).min(ACCOUNT_BYTES / SLOT);
            let rest = slots.split_off(slots.len().min(room));
            let entry = AccountEntry {
                address,
                account,
                slots,
            };
            self.weight += entry.weight();
            self.bytes += ENTRY + SLOT * entry.slots.len();
            self.entries.push(entry);
            if self.weight >= self.together || self.bytes >= ACCOUNT_BYTES {
                (self.weight, self.bytes) = (0, 0);
                put(std::mem::take(&mut self.entries))?;
            }
            if rest.is_empty() {
                return Ok(());
            }
            slots = rest;
        }
    }

    fn end(
        self,
        mut put: impl FnMut(Vec<AccountEntry>) -> Result<(), RecoveryError>,
    ) -> Result<(), RecoveryError> {
        match self.entries.is_empty() {
            true => Ok(()),
            false => put(self.entries),
        }
    }
}

/// Returns the part of the keys that is below a key, 0 to 1. Keys are hashes, so about that part of the leaves.
fn part_of_keys(key: &[u8; 32]) -> f64 {
    let first = key.first_chunk().expect("invariant: 32 bytes");
    f64::from(u32::from_be_bytes(*first)) / f64::from(u32::MAX)
}

/// Passes items on, so many at a time.
fn gathered<T>(
    items: impl Iterator<Item = Result<T, StateError>>,
    together: usize,
    mut put: impl FnMut(Vec<T>) -> Result<(), RecoveryError>,
) -> Result<(), RecoveryError> {
    let mut some = Vec::new();
    for item in items {
        some.push(item?);
        if some.len() == together {
            put(std::mem::take(&mut some))?;
        }
    }
    match some.is_empty() {
        true => Ok(()),
        false => put(some),
    }
}
