//! What a version keeps of its block.

use alloy_consensus::Header;
use alloy_primitives::{B256, U256, keccak256};
use alloy_rlp::{Decodable, Encodable};
use arbor_state::{Head, State, StateError};
use arbor_versions::{Meta, Version};

use super::ReplayError;
use crate::executor::{Ancestor, RecentBlocks};

/// Blocks that `BLOCKHASH` and ommer validation look back on.
const RECENT: u64 = 256;
/// The first bytes of the Keccak-256 of what follows the header, after it: nothing else that is stored vouches for that.
const CHECK: usize = 4;
/// What the total difficulty and the check add to a multiple of 32.
const TOTAL_AND_CHECK: usize = 1 + CHECK;

/// A block as the blocks after it need it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BlockRecord {
    pub(super) block: Ancestor,
    /// The difficulties of all blocks up to this one together; kept of proof-of-work blocks, whose children ask for it.
    pub(super) total_difficulty: Option<U256>,
}

impl BlockRecord {
    /// The header's RLP, the hashes of its ommers, the total difficulty as an RLP string of 32 bytes, and where there
    /// is anything after the header a check of it.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Ancestor { header, ommers, .. } = &self.block;
        let mut bytes = Vec::with_capacity(header.length() + 32 * ommers.len() + 33 + CHECK);
        header.encode(&mut bytes);
        let after_header = bytes.len();
        for hash in ommers {
            bytes.extend_from_slice(hash.as_slice());
        }
        if let Some(total) = self.total_difficulty {
            B256::from(total).encode(&mut bytes);
        }
        if bytes.len() > after_header {
            let check = keccak256(&bytes[after_header..]);
            bytes.extend_from_slice(&check[..CHECK]);
        }
        bytes
    }

    pub(super) fn decode(meta: &Meta) -> Result<Self, ReplayError> {
        let decoded = Self::decode_extra(meta);
        decoded.ok_or(ReplayError::DamagedHeader(meta.block_number))
    }

    /// The check may be missing: the first databases had none.
    fn decode_extra(meta: &Meta) -> Option<Self> {
        let mut rest = &meta.extra[..];
        let header = Header::decode(&mut rest).ok()?;
        if matches!(rest.len() % 32, CHECK | TOTAL_AND_CHECK) {
            let (kept, check) = rest.split_at(rest.len() - CHECK);
            if kept.is_empty() || !keccak256(kept).starts_with(check) {
                return None;
            }
            rest = kept;
        }
        // Hashes are 32 bytes each, the total difficulty has one more.
        let (ommers, total) = match rest.len() % 32 {
            0 => (rest, None),
            1 if rest.len() >= 33 => {
                let (ommers, mut total) = rest.split_at(rest.len() - 33);
                (ommers, Some(B256::decode(&mut total).ok()?.into()))
            }
            _ => return None,
        };
        Some(Self {
            block: Ancestor {
                hash: meta.block_hash.into(),
                header,
                ommers: ommers.chunks(32).map(B256::from_slice).collect(),
            },
            total_difficulty: total,
        })
    }

    /// The record of the latest version.
    pub(super) fn of_head(state: &State) -> Result<Option<Self>, ReplayError> {
        state.head().map(Self::decode).transpose()
    }
}

/// The blocks up to a version, as many as are remembered and needed.
pub(super) fn recent_blocks(state: Head<'_>, head: Version) -> Result<RecentBlocks, ReplayError> {
    let mut recent = RecentBlocks::default();
    for version in head.0.saturating_sub(RECENT)..=head.0 {
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
        let bytes = record(1, Some(U256::from(0x1234))).encode();
        let (stored, rest) = bytes.split_at(header.len());
        assert_eq!(stored, header);
        let check = "b1fea61c";
        let ommer = "0000000000000000000000000000000000000000000000000000000000000001";
        let total = "a00000000000000000000000000000000000000000000000000000000000001234";
        assert_eq!(
            alloy_primitives::hex::encode(rest),
            format!("{ommer}{total}{check}")
        );
    }

    /// The first databases have no check, and those before them no total difficulty.
    #[test]
    fn records_without_check_are_read() {
        for total in [None, Some(U256::from(5))] {
            let record = record(2, total);
            let mut bytes = record.encode();
            bytes.truncate(bytes.len() - CHECK);
            assert_eq!(BlockRecord::decode(&meta(bytes)).ok(), Some(record));
        }
    }

    #[test]
    fn every_other_length_is_damage() {
        let whole = record(2, Some(U256::from(9))).encode();
        let header = alloy_rlp::encode(Header::default()).len();
        for length in 0..whole.len() {
            let rest = length.checked_sub(header);
            // Cut after the header or an ommer it is what an old database has of a proof-of-stake block, and without the
            // check what it has of this one. One byte more than an ommer is the first of a hash instead of a string's head.
            let holds = rest.is_some_and(|rest| rest % 32 == 0 || rest == 2 * 32 + 33);
            let decoded = BlockRecord::decode(&meta(whole[..length].to_vec()));
            assert_eq!(decoded.is_ok(), holds, "{length}");
        }
    }
}
