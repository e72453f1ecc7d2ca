//! Receipts, their bloom filters and their root.

use alloy_consensus::{Eip658Value, Receipt, ReceiptEnvelope, ReceiptWithBloom, TxType};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{B256, Bloom, Log};
use arbor_hashing::keccak256;
use arbor_tree_mpt::ordered_root;

/// Puts a receipt of the given type together.
pub(super) fn receipt(
    tx_type: TxType,
    status: Eip658Value,
    cumulative_gas_used: u64,
    logs: Vec<Log>,
    blooms: &mut BloomCache,
) -> ReceiptEnvelope {
    let logs_bloom = blooms.bloom(&logs);
    let receipt = Receipt {
        status,
        cumulative_gas_used,
        logs,
    };
    let receipt = ReceiptWithBloom {
        receipt,
        logs_bloom,
    };
    match tx_type {
        TxType::Legacy => ReceiptEnvelope::Legacy(receipt),
        TxType::Eip2930 => ReceiptEnvelope::Eip2930(receipt),
        TxType::Eip1559 => ReceiptEnvelope::Eip1559(receipt),
        TxType::Eip4844 => ReceiptEnvelope::Eip4844(receipt),
        TxType::Eip7702 => ReceiptEnvelope::Eip7702(receipt),
    }
}

/// Returns the filter of all receipts together.
pub(super) fn logs_bloom(receipts: &[ReceiptEnvelope]) -> Bloom {
    receipts
        .iter()
        .fold(Bloom::ZERO, |bloom, receipt| bloom | *receipt.logs_bloom())
}

/// Returns the root of the receipts' trie.
pub(super) fn receipts_root(receipts: &[ReceiptEnvelope]) -> B256 {
    // One buffer for all: a block's receipts come to some hundred kilobytes.
    let mut encoded = Vec::with_capacity(receipts.iter().map(Encodable2718::encode_2718_len).sum());
    let ends: Vec<usize> = receipts
        .iter()
        .map(|receipt| {
            receipt.encode_2718(&mut encoded);
            encoded.len()
        })
        .collect();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let items: Vec<&[u8]> = starts
        .zip(&ends)
        .map(|(start, end)| &encoded[start..*end])
        .collect();
    ordered_root(&items).into()
}

/// Slots of the cache; a power of two.
const CACHE_SLOTS: usize = 1 << 13;

/// Computes filters of logs, and remembers which bits an address or topic sets: a few of them, the tokens and
/// the busiest accounts, are in most logs, and each costs a Keccak-256 otherwise.
pub(super) struct BloomCache {
    /// Direct-mapped: an entry gives way to the next one with the same slot.
    slots: Box<[Option<Entry>]>,
}

/// An address (padded at the end) or topic, its length, and its three bits.
#[derive(Clone, Copy)]
struct Entry {
    item: [u8; 32],
    length: u8,
    bits: [u16; 3],
}

impl Default for BloomCache {
    fn default() -> Self {
        Self {
            slots: vec![None; CACHE_SLOTS].into(),
        }
    }
}

impl BloomCache {
    fn bloom(&mut self, logs: &[Log]) -> Bloom {
        let mut bloom = Bloom::ZERO;
        for log in logs {
            self.accrue(&mut bloom, log.address.as_slice());
            for topic in log.topics() {
                self.accrue(&mut bloom, topic.as_slice());
            }
        }
        bloom
    }

    /// Sets the bits of an item of at most 32 bytes.
    fn accrue(&mut self, bloom: &mut Bloom, item: &[u8]) {
        let mut padded = [0; 32];
        padded[..item.len()].copy_from_slice(item);
        let length = item.len() as u8;
        let slot = &mut self.slots[slot_of(&padded)];
        let entry = match slot {
            Some(entry) if entry.item == padded && entry.length == length => *entry,
            _ => *slot.insert(Entry {
                item: padded,
                length,
                bits: bits_of(item),
            }),
        };
        for bit in entry.bits {
            bloom.0[255 - usize::from(bit / 8)] |= 1 << (bit % 8);
        }
    }
}

/// Mixes the first and last words of an item: topics are often small numbers or padded addresses.
fn slot_of(item: &[u8; 32]) -> usize {
    let word = |at: usize| {
        u64::from_le_bytes(item[at..at + 8].try_into().expect("invariant: eight bytes"))
    };
    let mixed = word(0) ^ word(8).rotate_left(32) ^ word(16).rotate_left(16) ^ word(24);
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % CACHE_SLOTS
}

/// Returns the three bits, 0 to 2047, that an item sets: the low eleven of the hash's first three pairs of bytes
/// (yellow paper, equation 30).
fn bits_of(item: &[u8]) -> [u16; 3] {
    let hash = keccak256(item);
    [0, 2, 4].map(|at| u16::from_be_bytes([hash[at], hash[at + 1]]) & 0x7ff)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{Address, BloomInput, LogData};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few different items, so that slots are hit; many, so that they collide.
        #[test]
        fn agrees_with_alloy(seeds in prop::collection::vec((any::<u16>(), 0usize..5), 1..200)) {
            let mut cache = BloomCache::default();
            for (seed, topics) in seeds {
                let word = B256::from(alloy_primitives::U256::from(seed));
                let address = if seed % 2 == 0 {
                    Address::from_word(word)
                } else {
                    // The same padded bytes as the topic.
                    Address::from_slice(&word[..20])
                };
                let data = LogData::new_unchecked(vec![word; topics], Default::default());
                let log = Log { address, data };
                let mut expected = Bloom::ZERO;
                expected.accrue(BloomInput::Raw(address.as_slice()));
                for topic in log.topics() {
                    expected.accrue(BloomInput::Raw(topic.as_slice()));
                }
                prop_assert_eq!(cache.bloom(&[log]), expected);
            }
        }
    }
}
