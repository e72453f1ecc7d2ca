//! What is known of a range of keys once it is spread or verified.

use std::collections::BTreeSet;

use alloy_primitives::B256;

use crate::counts::Counts;

/// Figures of a range.
#[derive(Default)]
pub(crate) struct OfRange {
    /// Leaves of the target's tree.
    pub(crate) leaves: u64,
    pub(crate) counts: Counts,
    /// The hashes of the codes that accounts have.
    pub(crate) codes: BTreeSet<B256>,
}

impl OfRange {
    /// The numbers of leaves, accounts and slots (8 bytes each, big-endian), then the hashes of codes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Counts { accounts, slots } = self.counts;
        let numbers = [self.leaves, accounts, slots].map(u64::to_be_bytes);
        let mut out = numbers.concat();
        self.codes
            .iter()
            .for_each(|hash| out.extend_from_slice(hash.as_slice()));
        out
    }

    /// Reads what [`encode`](Self::encode) writes; `None` for other bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (leaves, rest) = bytes.split_first_chunk()?;
        let (accounts, rest) = rest.split_first_chunk()?;
        let (slots, hashes) = rest.split_first_chunk()?;
        let (hashes, rest) = hashes.as_chunks::<32>();
        rest.is_empty().then(|| Self {
            leaves: u64::from_be_bytes(*leaves),
            counts: Counts {
                accounts: u64::from_be_bytes(*accounts),
                slots: u64::from_be_bytes(*slots),
            },
            codes: hashes.iter().map(B256::from).collect(),
        })
    }
}
