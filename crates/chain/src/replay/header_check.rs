//! Checking the records of blocks that a database keeps: nothing else looks at a header again, on which the next
//! block's rules depend.

use std::ops::Range;

use alloy_primitives::{B256, U256, keccak256};
use alloy_rlp::Encodable;
use arbor_state::{RootPlace, Tree};
use arbor_versions::Meta;

use super::record::BlockRecord;

/// Checks the headers that a database keeps, version after version: each against the number, hash and (if headers carry
/// the tree's roots) root stored beside it, and against the header before it.
#[derive(Debug)]
pub struct HeaderCheck {
    /// The blocks whose headers have the tree's roots.
    roots_in_headers: Range<u64>,
    previous: Option<Previous>,
}

#[derive(Clone, Copy, Debug)]
struct Previous {
    number: u64,
    hash: B256,
    state_root: Option<B256>,
    total_difficulty: Option<U256>,
}

impl HeaderCheck {
    /// Begins before the oldest version of a state over this tree.
    pub fn new(tree: &Tree) -> Self {
        Self {
            roots_in_headers: match tree.moves() {
                Some(moves) if moves.source().kind().roots == RootPlace::InHeaders => 0..moves.at(),
                None if tree.kind().roots == RootPlace::InHeaders => 0..u64::MAX,
                _ => 0..0,
            },
            previous: None,
        }
    }

    /// The same for a state that has moved to the tree: blocks before this one have other roots.
    #[must_use]
    pub fn since(mut self, block: u64) -> Self {
        self.roots_in_headers.start = block;
        self
    }

    /// The state root in the header that was checked last.
    pub fn state_root(&self) -> Option<B256> {
        self.previous?.state_root
    }

    /// Checks the next version, which follows the last one that was checked.
    ///
    /// # Errors
    /// What does not agree.
    pub fn check(&mut self, meta: &Meta) -> Result<(), String> {
        // A database that was made of accounts alone has no header to check.
        if meta.extra.is_empty() {
            self.previous = None;
            return Ok(());
        }
        let (number, hash) = (meta.block_number, B256::from(meta.block_hash));
        let record = BlockRecord::decode(meta);
        let total_difficulty = record.as_ref().ok().and_then(|kept| kept.total_difficulty);
        let previous = self.previous.replace(Previous {
            number,
            hash,
            state_root: record
                .as_ref()
                .ok()
                .map(|kept| kept.block.header.state_root),
            total_difficulty,
        });
        let header = match record {
            Ok(kept) => kept.block.header,
            Err(_) => return Err("its header does not decode".into()),
        };
        let rlp = BlockRecord::from_header(&meta.extra);
        let rlp = rlp.get(..header.length()).unwrap_or_default();
        let found = keccak256(rlp);
        let root = B256::from(meta.root);
        if found != hash {
            return Err(format!(
                "its header hashes to {found}, stored beside it is {hash}"
            ));
        }
        if header.number != number {
            let of = header.number;
            return Err(format!(
                "its header is of block {of}, stored beside it is {number}"
            ));
        }
        if self.roots_in_headers.contains(&number) && header.state_root != root {
            let of = header.state_root;
            return Err(format!(
                "its header has state root {of}, stored beside it is {root}"
            ));
        }
        let Some(before) = previous else {
            return Ok(());
        };
        if (header.number, header.parent_hash) != (before.number + 1, before.hash) {
            return Err(format!(
                "its header follows {}, but block {} before it is {}",
                header.parent_hash, before.number, before.hash
            ));
        }
        match (before.total_difficulty, total_difficulty) {
            (Some(before), Some(total)) if before.checked_add(header.difficulty) != Some(total) => {
                Err(format!(
                    "its total difficulty is {total}, after {before} and with {} of its own",
                    header.difficulty
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloy_consensus::Header;
    use arbor_trees::MPT;
    use arbor_versions::Version;

    use super::*;
    use crate::executor::Ancestor;

    fn meta(number: u64, parent_hash: B256, ommers: &[u8], total: Option<u64>) -> Meta {
        let header = Header {
            number,
            parent_hash,
            difficulty: U256::from(10),
            state_root: B256::repeat_byte(7),
            ..Header::default()
        };
        let (hash, root) = (header.hash_slow(), header.state_root);
        let record = BlockRecord {
            block: Ancestor {
                hash,
                header,
                ommers: ommers.iter().copied().map(B256::repeat_byte).collect(),
            },
            total_difficulty: total.map(U256::from),
        };
        Meta {
            version: Version(number),
            block_number: number,
            block_hash: hash.0,
            root: root.0,
            extra: record.encode(),
        }
    }

    fn check(first: &Meta, second: &Meta) -> Result<(), String> {
        let mut check = HeaderCheck::new(&MPT.tree());
        check.check(first).and_then(|()| check.check(second))
    }

    #[test]
    fn every_flipped_bit_of_what_is_kept_is_found() {
        let first = meta(5, B256::ZERO, &[], Some(20));
        let second = meta(6, first.block_hash.into(), &[1, 2], Some(30));
        assert_eq!(check(&first, &second), Ok(()));
        for place in 0..second.extra.len() {
            for bit in 0..8 {
                let mut damaged = second.clone();
                damaged.extra[place] ^= 1 << bit;
                assert!(
                    check(&first, &damaged).is_err(),
                    "bit {bit} of byte {place}"
                );
            }
        }
        for alter in [
            |meta: &mut Meta| meta.root[0] ^= 1,
            |meta: &mut Meta| meta.block_hash[0] ^= 1,
            |meta: &mut Meta| meta.block_number ^= 1,
        ] {
            let mut damaged = second.clone();
            alter(&mut damaged);
            assert!(check(&first, &damaged).is_err());
        }
    }

    #[test]
    fn blocks_follow_each_other() {
        let first = meta(5, B256::ZERO, &[], Some(20));
        let hash = first.block_hash.into();
        let fails = |first: Meta, second: Meta| check(&first, &second).expect_err("refused");
        let other = meta(5, B256::repeat_byte(9), &[], Some(20));
        assert!(fails(other, meta(6, hash, &[], None)).contains("follows"));
        assert!(fails(first.clone(), meta(7, hash, &[], None)).contains("follows"));
        let wrong_total = fails(first, meta(6, hash, &[], Some(31)));
        assert!(
            wrong_total.contains("total difficulty is 31"),
            "{wrong_total}"
        );
    }
}
