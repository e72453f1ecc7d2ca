//! Stems as Pedersen hashes.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::Address;
use arbor_ipa::{AddressCommitment, Committer, Recent};
use foldhash::fast::RandomState;

use crate::stems::{Stem, StemHash, StemName};

/// What is remembered within so many bytes, as many entries as fill both generations' tables: these have a power of two of places, of which seven in eight
/// are used, and a byte beside each.
fn remembered<K: Eq + Hash, V: Copy>(bytes: usize) -> Recent<K, V> {
    let places = bytes / 2 / (size_of::<(K, V)>() + 1);
    let places = places.checked_ilog2().map_or(0, |log| 1 << log);
    Recent::new(2 * (places - places / 8))
}

/// Computes stems in batches. Stems, and the part of a stem that an address alone determines, are remembered as long as they are
/// in use and there is room.
pub struct Stems {
    committer: Arc<Committer>,
    known: Mutex<Known>,
}

struct Known {
    stems: Recent<StemName, Stem>,
    addresses: Recent<Address, AddressCommitment>,
}

impl Stems {
    /// Remembers nothing yet, and will take up to `bytes` of memory beside the committer's tables.
    pub fn new(committer: Arc<Committer>, bytes: usize) -> Self {
        let known = Known {
            stems: remembered(bytes / 4 * 3),
            addresses: remembered(bytes / 4),
        };
        Self {
            committer,
            known: Mutex::new(known),
        }
    }

    /// The tables that commitments are computed with.
    pub fn committer(&self) -> &Arc<Committer> {
        &self.committer
    }
}

impl StemHash for Stems {
    /// All stems that are not remembered are computed together.
    fn of(&self, names: &[StemName]) -> Vec<Stem> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stems = vec![[0; 31]; names.len()];
        let mut missing = Vec::new();
        for (place, name) in names.iter().enumerate() {
            match known.stems.get(name) {
                Some(stem) => stems[place] = stem,
                None => missing.push(place),
            }
        }
        if missing.is_empty() {
            return stems;
        }
        let parts = known.parts(
            &self.committer,
            missing.iter().map(|place| names[*place].address),
        );
        let key = |place: &usize| {
            let StemName { address, index } = names[*place];
            (parts[&address], index.to_le_bytes::<32>())
        };
        let keys: Vec<_> = missing.iter().map(key).collect();
        for (place, stem) in missing
            .into_iter()
            .zip(self.committer.stems_of_addresses(&keys))
        {
            known.stems.put(names[place], stem);
            stems[place] = stem;
        }
        stems
    }

    fn of_once(&self, names: &[StemName]) -> Vec<Stem> {
        let key = |name: &StemName| (name.address.into_word().0, name.index.to_le_bytes::<32>());
        let keys: Vec<_> = names.iter().map(key).collect();
        self.committer.stems(&keys)
    }
}

impl Known {
    /// The parts of keys that belong to addresses.
    fn parts(
        &mut self,
        committer: &Committer,
        addresses: impl Iterator<Item = Address>,
    ) -> HashMap<Address, AddressCommitment, RandomState> {
        let distinct: BTreeSet<Address> = addresses.collect();
        let mut parts = HashMap::with_capacity_and_hasher(distinct.len(), RandomState::default());
        let mut missing = Vec::new();
        for address in distinct {
            match self.addresses.get(&address) {
                Some(part) => drop(parts.insert(address, part)),
                None => missing.push(address),
            }
        }
        let padded: Vec<[u8; 32]> = missing
            .iter()
            .map(|address| address.into_word().0)
            .collect();
        for (address, part) in missing
            .into_iter()
            .zip(committer.address_commitments(&padded))
        {
            self.addresses.put(address, part);
            parts.insert(address, part);
        }
        parts
    }
}
