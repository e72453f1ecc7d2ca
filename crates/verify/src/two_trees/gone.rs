//! The log of what is gone.

use std::collections::BTreeSet;

use alloy_primitives::{Address, B256, U256, keccak256};
use serde::{Deserialize, Serialize};

/// Names that the source has and that do not count any more: an account with all that the source
/// has of it, or some of its slots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gone {
    /// The account.
    pub address: Address,
    /// The slots by number, in ascending order. An empty list stands for the account and all its
    /// slots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slots: Vec<U256>,
}

/// Why something is not what a block adds to a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongLog {
    /// The bytes end within an entry, or go on behind the last one.
    #[error("the entries of a block are cut short")]
    Cut,
    /// Only blocks that add something have entries.
    #[error("a block in the log has no entries")]
    Empty,
    /// Accounts or slots are not in ascending order.
    #[error("the entries of a block are not in ascending order at account {0}")]
    Order(Address),
    /// A name is in the log already, or its account is.
    #[error("the log has account {0} or one of its slots twice")]
    Twice(Address),
}

/// Returns the root of a version amid a move: the Keccak-256 of the root of the source, the root of
/// the target and the hash of the log, 32 bytes each.
pub fn root(source: B256, target: B256, gone: B256) -> B256 {
    keccak256([source.0, target.0, gone.0].concat())
}

/// Returns the hash of a log after a block with entries: the Keccak-256 of the hash before and the
/// block's entries as bytes. The hash of an empty log is zero.
pub fn chained(gone: B256, entries: &[u8]) -> B256 {
    keccak256([&gone[..], entries].concat())
}

/// Encodes what a block adds: of each account its address (20 bytes), the number of slots (4 bytes,
/// big-endian; zero for the account with all its slots) and the slots (32 bytes each, big-endian).
pub fn encode(entries: &[Gone]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Gone { address, slots } in entries {
        bytes.extend(address);
        bytes.extend((slots.len() as u32).to_be_bytes());
        bytes.extend(slots.iter().flat_map(|slot| slot.to_be_bytes::<32>()));
    }
    bytes
}

/// Decodes what a block adds.
///
/// # Errors
/// [`WrongLog`]: bytes that [`encode`] does not make of entries in ascending order.
pub fn decode(mut bytes: &[u8]) -> Result<Vec<Gone>, WrongLog> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let (address, rest) = bytes.split_first_chunk::<20>().ok_or(WrongLog::Cut)?;
        let (count, rest) = rest.split_first_chunk::<4>().ok_or(WrongLog::Cut)?;
        let length = u64::from(u32::from_be_bytes(*count)) * 32;
        let length = usize::try_from(length).map_err(|_| WrongLog::Cut)?;
        let (slots, rest) = rest.split_at_checked(length).ok_or(WrongLog::Cut)?;
        let slots = slots.chunks_exact(32).map(U256::from_be_slice).collect();
        let address = address.into();
        entries.push(Gone { address, slots });
        bytes = rest;
    }
    check(&entries)?;
    Ok(entries)
}

/// Checks that a block's entries are in ascending order, and that there are any.
fn check(entries: &[Gone]) -> Result<(), WrongLog> {
    if entries.is_empty() {
        return Err(WrongLog::Empty);
    }
    if let Some(pair) = entries
        .windows(2)
        .find(|pair| pair[0].address >= pair[1].address)
    {
        return Err(WrongLog::Order(pair[1].address));
    }
    let of_slots = entries
        .iter()
        .find(|of| of.slots.windows(2).any(|pair| pair[0] >= pair[1]));
    of_slots.map_or(Ok(()), |of| Err(WrongLog::Order(of.address)))
}

/// A log as it is looked up.
#[derive(Clone, Default, Debug)]
pub struct Log {
    accounts: BTreeSet<Address>,
    slots: BTreeSet<(Address, U256)>,
    hash: B256,
}

impl Log {
    /// Reads the entries of all blocks that have any, in the blocks' order.
    ///
    /// # Errors
    /// [`WrongLog`]: entries that no move makes.
    pub fn new<'a>(blocks: impl IntoIterator<Item = &'a Vec<Gone>>) -> Result<Self, WrongLog> {
        let mut log = Self::default();
        for entries in blocks {
            log.add(entries)?;
        }
        Ok(log)
    }

    /// Adds the entries of a block.
    ///
    /// # Errors
    /// [`WrongLog`]: entries that no move makes.
    pub fn add(&mut self, entries: &[Gone]) -> Result<(), WrongLog> {
        check(entries)?;
        for Gone { address, slots } in entries {
            let is_new = match &slots[..] {
                [] => self.accounts.insert(*address),
                slots => {
                    !self.accounts.contains(address)
                        && slots
                            .iter()
                            .all(|slot| self.slots.insert((*address, *slot)))
                }
            };
            if !is_new {
                return Err(WrongLog::Twice(*address));
            }
        }
        self.hash = chained(self.hash, &encode(entries));
        Ok(())
    }

    /// The hash of the log.
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// Whether nothing that the source has of an account counts any more.
    pub fn has_account(&self, address: Address) -> bool {
        self.accounts.contains(&address)
    }

    /// Whether the source's value of a slot does not count any more.
    pub fn has_slot(&self, address: Address, slot: U256) -> bool {
        self.has_account(address) || self.slots.contains(&(address, slot))
    }

    /// The accounts of which nothing in the source counts any more.
    pub fn accounts(&self) -> impl Iterator<Item = Address> + '_ {
        self.accounts.iter().copied()
    }

    /// The slots that were logged by themselves. The account of some may have been logged
    /// afterwards.
    pub fn slots(&self) -> impl Iterator<Item = (Address, U256)> + '_ {
        self.slots.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(account: u8, slots: &[u64]) -> Gone {
        Gone {
            address: Address::repeat_byte(account),
            slots: slots.iter().copied().map(U256::from).collect(),
        }
    }

    #[test]
    fn entries_come_back_and_others_are_refused() {
        let entries = vec![gone(1, &[]), gone(2, &[3, 900]), gone(7, &[0])];
        let bytes = encode(&entries);
        assert_eq!(bytes.len(), 3 * 24 + 3 * 32);
        assert_eq!(decode(&bytes), Ok(entries));
        for cut in 0..bytes.len() {
            let whole = [0, 24, 24 + 24 + 64].contains(&cut);
            let refused = decode(&bytes[..cut]);
            match (cut, whole) {
                (0, _) => assert_eq!(refused, Err(WrongLog::Empty)),
                (_, true) => assert!(refused.is_ok(), "{cut}"),
                (_, false) => assert_eq!(refused, Err(WrongLog::Cut), "{cut}"),
            }
        }
        let mut many = bytes;
        many[20..24].copy_from_slice(&[0xff; 4]);
        assert_eq!(decode(&many), Err(WrongLog::Cut));
        for wrong in [
            vec![gone(2, &[]), gone(1, &[])],
            vec![gone(1, &[]), gone(1, &[4])],
            vec![gone(1, &[4, 4])],
            vec![gone(1, &[5, 4])],
        ] {
            let address = Address::repeat_byte(1);
            let why = Err(WrongLog::Order(address));
            assert_eq!(decode(&encode(&wrong)), why, "{wrong:?}");
            assert_eq!(Log::default().add(&wrong), Err(WrongLog::Order(address)));
        }
    }

    #[test]
    fn a_log_has_each_name_once() {
        let first = vec![gone(1, &[]), gone(2, &[3])];
        let log = |second: Vec<Gone>| Log::new(&[first.clone(), second]);
        for again in [gone(1, &[]), gone(1, &[9]), gone(2, &[3]), gone(2, &[1, 3])] {
            let address = again.address;
            let refused = log(vec![again]).expect_err("twice");
            assert_eq!(refused, WrongLog::Twice(address));
        }
        assert_eq!(log(vec![]).expect_err("empty"), WrongLog::Empty);
        // An account may be logged after some of its slots.
        let log = log(vec![gone(2, &[]), gone(3, &[5])]).expect("a log");
        let [one, two, three, four] = [1, 2, 3, 4].map(Address::repeat_byte);
        let slot = U256::from(5);
        assert!(log.has_account(one) && log.has_account(two));
        assert!(!log.has_account(three) && log.has_slot(three, slot));
        assert!(log.has_slot(one, slot) && log.has_slot(two, slot));
        assert!(!log.has_slot(three, U256::ZERO) && !log.has_slot(four, slot));
    }

    /// The hash depends on each entry, on the order, and on which entries are of one block.
    #[test]
    fn the_hash_is_of_the_entries_block_by_block() {
        let (one, two) = (gone(1, &[2]), gone(3, &[]));
        let hash = |blocks: &[Vec<Gone>]| Log::new(blocks).expect("a log").hash();
        assert_eq!(hash(&[]), B256::ZERO);
        let hashes = BTreeSet::from([
            B256::ZERO,
            hash(&[vec![one.clone()]]),
            hash(&[vec![two.clone()]]),
            hash(&[vec![one.clone(), two.clone()]]),
            hash(&[vec![one.clone()], vec![two.clone()]]),
            hash(&[vec![two], vec![one.clone()]]),
            hash(&[vec![gone(1, &[2, 3])]]),
        ]);
        assert_eq!(hashes.len(), 7);
        let bytes = [&[0; 32][..], &[1; 20], &[0, 0, 0, 1], &[0; 31], &[2]].concat();
        assert_eq!(hash(&[vec![one]]), keccak256(bytes));
    }
}
