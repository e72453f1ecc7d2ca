//! State from a witness of a tree of stems: the leaves and codes that one block needs.
//!
//! Nothing leads from a stem back to a name, so a witness cannot say which slots an account has.
//! Two things follow:
//!
//! - Whether an account without code and nonce has storage (EIP-7610) is not known, and taken as no.
//! - An account with code or nonce that loses all its storage (before EIP-6780) is an error: which
//!   leaves become zero is not known.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_accounts::{
    Account, AccountChange, IntermediateRoots, ReadError, StateChanges, StateView,
};

use super::LeafValue;
use super::chunks::{CHUNK, chunk_code, partial_code};
use super::hash::{Stem, StemHash};
use super::header::{HeaderLayout, NoAccount};
use super::places::{StemName, chunk_place, slot_place};
use crate::kinds::{PartialState, Reached};

/// A leaf under its key: stem and suffix.
pub type KeyedLeaf = ((Stem, u8), LeafValue);

/// The leaves that a witness has.
pub trait WitnessLeaves: Clone {
    /// Checks that the witness is one of its root.
    ///
    /// # Errors
    /// A malformed or false one.
    fn check(&self) -> Result<(), ReadError>;

    /// The value of a key; `None` if the witness shows that it is absent.
    ///
    /// # Errors
    /// A key of which it says nothing.
    fn leaf(&self, stem: &Stem, suffix: u8) -> Result<Option<LeafValue>, ReadError>;

    /// Sets leaves, ascending by key, and returns the root after that.
    ///
    /// # Errors
    /// Nodes that the witness lacks.
    fn set(&mut self, leaves: &[KeyedLeaf]) -> Result<B256, ReadError>;

    /// The leaves that are there with their keys, and the number of nodes beside them.
    fn present(&self) -> (Vec<KeyedLeaf>, usize);

    /// Whether chunks of code are among the leaves that a block reads. Otherwise whole codes are beside them.
    const HAS_CHUNKS: bool;

    /// Counts the stems whose absence holds only if whoever made the witness was honest.
    fn doubtful(&self) -> usize {
        0
    }
}

/// A read that a witness cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum UnreadLeaf {
    /// A key that the witness does not have.
    #[error("witness: {what} of {address:#x}: {cause}")]
    Missing {
        /// What was read.
        what: String,
        /// Whose it is.
        address: Address,
        /// Why it failed.
        cause: ReadError,
    },
    /// Leaves that no account has.
    #[error("witness: account {address:#x}: {cause}")]
    Account {
        /// Whose they should be.
        address: Address,
        /// What is wrong.
        cause: NoAccount,
    },
    /// An account that may have slots loses them.
    #[error(
        "witness: account {address:#x} loses its storage: which slots it had cannot be known without the whole state"
    )]
    LostStorage {
        /// The account.
        address: Address,
    },
}

/// A partial state built from a witness.
pub struct WitnessState<L> {
    layout: HeaderLayout,
    stems: Box<dyn StemHash>,
    leaves: L,
    codes: HashMap<B256, Bytes>,
}

impl<L: WitnessLeaves> WitnessState<L> {
    /// The state that has these leaves, and codes in any order.
    pub fn new(
        layout: HeaderLayout,
        stems: Box<dyn StemHash>,
        leaves: L,
        codes: impl IntoIterator<Item = Bytes>,
    ) -> Self {
        let codes = codes.into_iter();
        Self {
            layout,
            stems,
            leaves,
            codes: codes.map(|code| (keccak256(&code), code)).collect(),
        }
    }

    fn stem(&self, address: Address, index: U256) -> Stem {
        self.stems.of(&[StemName { address, index }])[0]
    }

    /// The leaves of an account's fields, by suffix.
    fn fields(&self, leaves: &L, address: Address) -> Result<Fields, ReadError> {
        let stem = self.stem(address, U256::ZERO);
        let suffixes = self.layout.suffixes().iter();
        let fields = suffixes.map(|suffix| {
            let value = leaves.leaf(&stem, *suffix);
            Ok((
                *suffix,
                value.map_err(|cause| missing("account", address, cause))?,
            ))
        });
        Ok(Fields {
            stem,
            values: fields.collect::<Result<_, ReadError>>()?,
        })
    }

    fn named(&self, address: Address, fields: &Fields) -> Result<Option<Account>, ReadError> {
        let account = self.layout.account(|suffix| fields.get(suffix));
        account.map_err(|cause| ReadError::below(UnreadLeaf::Account { address, cause }))
    }
}

/// The leaves of an account's fields.
struct Fields {
    stem: Stem,
    values: Vec<(u8, Option<LeafValue>)>,
}

impl Fields {
    fn get(&self, suffix: u8) -> Option<LeafValue> {
        let found = self.values.iter().find(|(of, _)| *of == suffix);
        found.and_then(|(_, value)| *value)
    }
}

fn missing(what: impl Into<String>, address: Address, cause: ReadError) -> ReadError {
    ReadError::below(UnreadLeaf::Missing {
        what: what.into(),
        address,
        cause,
    })
}

impl<L: WitnessLeaves> StateView for WitnessState<L> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        let fields = self.fields(&self.leaves, address)?;
        self.named(address, &fields)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let (index, suffix) = slot_place(slot);
        let value = self.leaves.leaf(&self.stem(address, index), suffix);
        let value = value.map_err(|cause| missing(format!("slot {slot:#x}"), address, cause))?;
        Ok(value.map(U256::from_be_bytes).unwrap_or_default())
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        let code = self.codes.get(&code_hash).cloned();
        code.ok_or(ReadError::MissingCode(code_hash))
    }

    fn code_of(&self, address: Address, code_hash: B256) -> Result<Option<Bytes>, ReadError> {
        if !L::HAS_CHUNKS {
            return Ok(None);
        }
        let fields = self.fields(&self.leaves, address)?;
        let account = self.named(address, &fields)?;
        if account.is_none_or(|account| account.code_hash != code_hash) {
            return Ok(None);
        }
        let size = self.code_size(&fields, address)?;
        let chunks: Vec<Option<LeafValue>> = self.chunks_of(address, size).collect();
        Ok(Some(partial_code(&chunks, size as usize).into()))
    }
}

impl<L: WitnessLeaves> WitnessState<L> {
    /// The size of an account's code.
    fn code_size(&self, fields: &Fields, address: Address) -> Result<u32, ReadError> {
        let size = self.layout.code_size(|suffix| fields.get(suffix));
        match size <= LONGEST_CODE {
            true => Ok(size),
            false => Err(ReadError::new(format!(
                "witness: account {address:#x} has {size} bytes of code, which no account has"
            ))),
        }
    }

    /// The chunks of an account's code of this size: `None` for those that the witness lacks.
    fn chunks_of(
        &self,
        address: Address,
        size: u32,
    ) -> impl Iterator<Item = Option<LeafValue>> + '_ {
        let count = size.div_ceil(CHUNK as u32);
        let places: Vec<(U256, u8)> = (0..count).map(chunk_place).collect();
        let names = places.iter().map(|(index, _)| StemName {
            address,
            index: *index,
        });
        let stems = self.stems.of(&names.collect::<Vec<_>>());
        let keys = stems.into_iter().zip(places);
        keys.map(|(stem, (_, suffix))| self.leaves.leaf(&stem, suffix).ok().flatten())
    }
}

/// Bytes of code that the packed leaf has room for.
const LONGEST_CODE: u32 = (1 << 24) - 1;

impl<L: WitnessLeaves> PartialState for WitnessState<L> {
    fn pending_roots(&self) -> Box<dyn IntermediateRoots + '_> {
        Box::new(PendingRoots {
            state: self,
            leaves: self.leaves.clone(),
        })
    }

    fn check(&self) -> Result<(), ReadError> {
        self.leaves.check()
    }

    fn reached(&self) -> Reached {
        let (leaves, nodes) = self.leaves.present();
        let hashes: HashSet<B256> = leaves.iter().map(|(_, value)| (*value).into()).collect();
        let codes = self.codes.keys().filter(|hash| hashes.contains(*hash));
        Reached {
            nodes: nodes + leaves.len(),
            codes: codes.count(),
        }
    }

    fn has_chunks(&self) -> bool {
        L::HAS_CHUNKS
    }

    fn check_chunks(&self, chunks: &BTreeMap<Address, BTreeSet<u32>>) -> Result<(), ReadError> {
        for (address, numbers) in chunks {
            let fields = self.fields(&self.leaves, *address)?;
            let size = match self.named(*address, &fields)? {
                Some(_) => self.code_size(&fields, *address)?,
                None => 0,
            };
            let known: Vec<_> = self.chunks_of(*address, size).collect();
            let lacks = |number: &&u32| known.get(**number as usize).is_some_and(Option::is_none);
            if let Some(number) = numbers.iter().find(lacks) {
                let cause = ReadError::new("the witness does not have it".to_owned());
                return Err(missing(
                    format!("chunk {number} of the code"),
                    *address,
                    cause,
                ));
            }
        }
        Ok(())
    }

    fn doubtful(&self) -> usize {
        self.leaves.doubtful()
    }
}

/// Changes laid over a witness.
struct PendingRoots<'a, L> {
    state: &'a WitnessState<L>,
    leaves: L,
}

/// Leaves to be set, by key.
type Updates = BTreeMap<(Stem, u8), LeafValue>;

impl<L: WitnessLeaves> IntermediateRoots for PendingRoots<'_, L> {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
        let mut updates = Updates::new();
        for (address, change) in &changes.accounts {
            self.account(*address, change, changes, &mut updates)?;
        }
        let updates: Vec<_> = updates.into_iter().collect();
        self.leaves.set(&updates)
    }
}

impl<L: WitnessLeaves> PendingRoots<'_, L> {
    /// What becomes of an account's leaves. A tree of stems forgets none: what is gone is zero.
    fn account(
        &self,
        address: Address,
        change: &AccountChange,
        changes: &StateChanges,
        updates: &mut Updates,
    ) -> Result<(), ReadError> {
        let state = self.state;
        let fields = state.fields(&self.leaves, address)?;
        let before = state.named(address, &fields)?;
        let had_storage = before.is_some_and(may_have_storage);
        if had_storage && (change.storage_cleared || change.new.is_none()) {
            return Err(ReadError::below(UnreadLeaf::LostStorage { address }));
        }
        let old_size = match before {
            Some(_) => state.layout.code_size(|suffix| fields.get(suffix)),
            None => 0,
        };
        let code = self.code_after(before, change, changes)?;
        let new_size = match &code {
            Code::Stays => old_size,
            Code::Is(code) => code.len() as u32,
        };
        let mut after = match &change.new {
            Some(new) => state
                .layout
                .leaves(new, new_size)
                .map_err(ReadError::below)?,
            None => Vec::new(),
        };
        for (suffix, value) in &fields.values {
            // A field that the account has no more.
            if value.is_some() && after.iter().all(|(present, _)| present != suffix) {
                after.push((*suffix, [0; 32]));
            }
        }
        for (suffix, value) in after {
            if fields.get(suffix) != Some(value) {
                updates.insert((fields.stem, suffix), value);
            }
        }
        if let Code::Is(code) = code {
            self.chunks(address, &code, old_size, updates);
        }
        self.slots(address, change, updates)
    }

    /// The code that an account has after a change.
    fn code_after(
        &self,
        before: Option<Account>,
        change: &AccountChange,
        changes: &StateChanges,
    ) -> Result<Code, ReadError> {
        let hash =
            |account: Option<Account>| account.map_or(KECCAK256_EMPTY, |account| account.code_hash);
        let (old, new) = (hash(before), hash(change.new));
        if old == new {
            return Ok(Code::Stays);
        }
        if new == KECCAK256_EMPTY {
            return Ok(Code::Is(Bytes::new()));
        }
        let code = changes
            .codes
            .get(&new)
            .or_else(|| self.state.codes.get(&new));
        let code = code.cloned().ok_or(ReadError::MissingCode(new))?;
        Ok(Code::Is(code))
    }

    /// The chunks of new code, and zeros for those that only the old one had.
    fn chunks(&self, address: Address, code: &[u8], old_size: u32, updates: &mut Updates) {
        let mut chunks = chunk_code(code);
        let old = (old_size as usize).div_ceil(CHUNK);
        chunks.resize(chunks.len().max(old), [0; 32]);
        let places: Vec<(U256, u8)> = (0..chunks.len() as u32).map(chunk_place).collect();
        let names = places.iter().map(|(index, _)| StemName {
            address,
            index: *index,
        });
        let stems = self.state.stems.of(&names.collect::<Vec<_>>());
        let keys = stems.into_iter().zip(places);
        let leaves = keys.zip(chunks);
        updates.extend(leaves.map(|((stem, (_, suffix)), value)| ((stem, suffix), value)));
    }

    fn slots(
        &self,
        address: Address,
        change: &AccountChange,
        updates: &mut Updates,
    ) -> Result<(), ReadError> {
        let places: Vec<(U256, u8)> = change.slots.keys().map(|slot| slot_place(*slot)).collect();
        let names = places.iter().map(|(index, _)| StemName {
            address,
            index: *index,
        });
        let stems = self.state.stems.of(&names.collect::<Vec<_>>());
        for ((stem, (_, suffix)), (slot, change)) in
            stems.into_iter().zip(places).zip(&change.slots)
        {
            if change.old == change.new {
                continue;
            }
            let old = self.leaves.leaf(&stem, suffix);
            let old = old.map_err(|cause| missing(format!("slot {slot:#x}"), address, cause))?;
            // Zeros are written only over a leaf that is there.
            if old.is_some() || !change.new.is_zero() {
                updates.insert((stem, suffix), change.new.to_be_bytes());
            }
        }
        Ok(())
    }
}

/// Whether an account may have slots: one without code and nonce has none, but for artificial states
/// (EIP-7610).
fn may_have_storage(account: Account) -> bool {
    account.nonce != 0 || account.code_hash != KECCAK256_EMPTY
}

/// What a change makes of an account's code.
enum Code {
    /// It stays.
    Stays,
    /// It is this now.
    Is(Bytes),
}
