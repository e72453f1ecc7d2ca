//! What a version keeps of its block.

use alloy_consensus::Header;
use alloy_primitives::{B256, U256, keccak256};
use alloy_rlp::{Decodable, EMPTY_STRING_CODE, Encodable};
use arbor_state::{ANCESTORS, Head, State, StateError};
use arbor_versions::{Meta, Version};

use super::ReplayError;
use crate::executor::{Ancestor, RecentBlocks};

/// The first byte of a record.
const VERSION: u8 = 1;
/// The least byte that the RLP of a list begins with: programs before 2026-11-27 wrote records that begin with the header.
const LIST: u8 = 0xc0;
/// The first bytes of the Keccak-256 of what follows the header, after it: nothing else that is stored vouches for that.
const CHECK: usize = 4;

/// A block as the blocks after it need it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BlockRecord {
    pub(crate) block: Ancestor,
    /// The difficulties of all blocks up to this one together; kept of proof-of-work blocks, whose children ask for it.
    pub(crate) total_difficulty: Option<U256>,
}

impl BlockRecord {
    /// Writes the version, the header's RLP, the list of the hashes of its ommers, the total difficulty as an RLP string (32 bytes, or none), and a
    /// check of all that follows the header.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Ancestor { header, ommers, .. } = &self.block;
        let mut bytes = Vec::with_capacity(1 + header.length() + 33 * ommers.len() + 36 + CHECK);
        bytes.push(VERSION);
        header.encode(&mut bytes);
        let after_header = bytes.len();
        ommers.encode(&mut bytes);
        match self.total_difficulty {
            Some(total) => B256::from(total).encode(&mut bytes),
            None => bytes.push(EMPTY_STRING_CODE),
        }
        let check = keccak256(&bytes[after_header..]);
        bytes.extend_from_slice(&check[..CHECK]);
        bytes
    }

    /// Reads the record of a version.
    ///
    /// # Errors
    /// [`ReplayError::DamagedHeader`]; [`ReplayError::RecordVersion`] for a record that a later program wrote, and
    /// [`ReplayError::UnversionedRecord`] for one that an earlier program wrote.
    pub(crate) fn decode(meta: &Meta) -> Result<Self, ReplayError> {
        let number = meta.block_number;
        if meta.extra.is_empty() {
            return Err(ReplayError::NoHeader(number));
        }
        let decoded = match meta.extra.split_first() {
            Some((&VERSION, rest)) => Self::decode_versioned(meta, rest),
            Some((&version, _)) if version < LIST => {
                return Err(ReplayError::RecordVersion {
                    number,
                    version,
                    reads: VERSION,
                });
            }
            _ => return Err(ReplayError::UnversionedRecord(number)),
        };
        decoded.ok_or(ReplayError::DamagedHeader(number))
    }

    /// Returns the bytes of a record from the header on.
    pub(crate) fn from_header(extra: &[u8]) -> &[u8] {
        extra.get(1..).unwrap_or_default()
    }

    fn decode_versioned(meta: &Meta, mut rest: &[u8]) -> Option<Self> {
        let header = Header::decode(&mut rest).ok()?;
        let (kept, check) = rest.split_at_checked(rest.len().checked_sub(CHECK)?)?;
        if !keccak256(kept).starts_with(check) {
            return None;
        }
        let mut rest = kept;
        let ommers = Vec::<B256>::decode(&mut rest).ok()?;
        let total_difficulty = match rest {
            [EMPTY_STRING_CODE] => None,
            _ => Some(B256::decode(&mut rest).ok()?.into()),
        };
        if total_difficulty.is_some() && !rest.is_empty() {
            return None;
        }
        Some(Self::new(meta, header, ommers, total_difficulty))
    }

    fn new(meta: &Meta, header: Header, ommers: Vec<B256>, total_difficulty: Option<U256>) -> Self {
        Self {
            block: Ancestor {
                hash: meta.block_hash.into(),
                header,
                ommers,
            },
            total_difficulty,
        }
    }

    /// The record of the latest version.
    pub(crate) fn of_head(state: &State) -> Result<Option<Self>, ReplayError> {
        state.head().map(Self::decode).transpose()
    }
}

/// Reads the blocks up to a version, as many as are remembered and needed.
///
/// # Errors
/// The store's errors; a damaged record.
pub fn recent_blocks(state: Head<'_>, head: Version) -> Result<RecentBlocks, ReplayError> {
    let mut recent = RecentBlocks::default();
    for version in head.0.saturating_sub(ANCESTORS)..=head.0 {
        let failed = |error: arbor_versions::VersionsError| ReplayError::State {
            number: version,
            error: StateError::from(error),
        };
        let meta = state.view().meta(Version(version));
        if let Some(meta) = meta.map_err(failed)? {
            recent.push(BlockRecord::decode(&meta)?.block);
        }
    }
    Ok(recent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(extra: Vec<u8>) -> Meta {
        Meta {
            version: Version(3),
            block_number: 3,
            block_hash: [7; 32],
            root: [0; 32],
            extra,
        }
    }

    fn record(ommers: usize, total_difficulty: Option<U256>) -> BlockRecord {
        let ommers = (1..=ommers).map(|byte| B256::with_last_byte(byte as u8));
        let block = Ancestor {
            hash: B256::repeat_byte(7),
            header: Header::default(),
            ommers: ommers.collect(),
        };
        BlockRecord {
            block,
            total_difficulty,
        }
    }

    #[test]
    fn comes_back_as_it_went() {
        for ommers in 0..=2 {
            for total in [None, Some(U256::from(5)), Some(U256::MAX)] {
                let record = record(ommers, total);
                let decoded = BlockRecord::decode(&meta(record.encode())).expect("whole");
                assert_eq!(decoded, record);
            }
        }
    }

    #[test]
    fn layout_is_fixed() {
        let header = alloy_rlp::encode(Header::default());
        let rest_of = |record: BlockRecord| {
            let bytes = record.encode();
            let (stored, rest) = bytes.split_at(1 + header.len());
            assert_eq!(stored, [&[1][..], &header].concat());
            alloy_primitives::hex::encode(rest)
        };
        let ommer = "0000000000000000000000000000000000000000000000000000000000000001";
        let total = "0000000000000000000000000000000000000000000000000000000000001234";
        assert_eq!(
            rest_of(record(1, Some(U256::from(0x1234)))),
            format!("e1a0{ommer}a0{total}7a5a4860")
        );
        assert_eq!(rest_of(record(0, None)), "c0805ae2489b");
    }

    #[test]
    fn damage_and_other_versions_are_refused() {
        let number = 3;
        let whole = record(2, Some(U256::from(9))).encode();
        for length in 0..whole.len() {
            assert!(BlockRecord::decode(&meta(whole[..length].to_vec())).is_err());
        }
        let after_header = 1 + alloy_rlp::encode(Header::default()).len();
        for place in after_header..whole.len() {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            assert!(BlockRecord::decode(&meta(bytes)).is_err(), "{place}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert!(BlockRecord::decode(&meta(longer)).is_err());
        let mut later = whole;
        later[0] = 2;
        let error = BlockRecord::decode(&meta(later)).expect_err("a later version");
        assert_eq!(
            error.to_string(),
            format!(
                "the database's record of block {number} is of version 2, and this program reads version {VERSION}: a later version of arbor wrote it"
            )
        );
        let unversioned = alloy_rlp::encode(Header::default());
        let error = BlockRecord::decode(&meta(unversioned)).expect_err("no version");
        assert!(
            matches!(error, ReplayError::UnversionedRecord(3)),
            "{error}"
        );
    }
}
