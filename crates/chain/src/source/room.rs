//! How many things a block may hold, by its gas. Checked on the block's bytes, before anything of
//! it is decoded.
//!
//! What a block holds costs gas in the block, even after refunds: at least half of its price,
//! because up to London a refund was at most half of the gas used (EIP-3529 leaves a fifth). More
//! than the gas limit has room for is refused, and nothing that a valid block can hold.
//!
//! Withdrawals cost no gas, and consensus alone limits them. Like calldata and the hashes of blobs,
//! they take memory in proportion to the block's bytes, which are bounded
//! ([`MAX_BLOCK_BYTES`](super::MAX_BLOCK_BYTES)): at most 20 bytes for each, as
//! `crates/cli/tests/decoding.rs` checks.

use alloy_consensus::TxType;
use alloy_rlp::Header;

/// Least gas of a transaction: half of 21,000 (yellow paper, appendix G).
const TRANSACTION: u64 = 21_000 / 2;
/// Least gas of an address in an access list: half of 2,400 (EIP-2930).
const ENTRY: u64 = 2_400 / 2;
/// Least gas of a slot in an access list: half of 1,900 (EIP-2930).
const KEY: u64 = 1_900 / 2;
/// Least gas of an authorization: half of 12,500, which are left if the account exists (EIP-7702).
const AUTHORIZATION: u64 = 12_500 / 2;

/// So many transactions, and so many items of their lists, are decoded whatever the header says,
/// which takes no time to speak of: whoever executes such a block names the first rule that it
/// breaks.
const FEW: u64 = 1024;

/// The same for ommers, of which a block has at most two (yellow paper, equation 62).
const FEW_OMMERS: usize = 16;

/// Greatest gas limit that makes room. A header of a chain for tests may claim up to 2^64 - 1; no
/// block of 4 billion gas is executed in reasonable time.
const MOST: u64 = 1 << 32;

/// How much a block may hold.
#[derive(Clone, Copy)]
pub(super) struct DecodingRoom {
    /// The gas limit that the header claims.
    claimed: u64,
    /// The most that it may be after the parent's.
    allowed: u64,
}

impl DecodingRoom {
    /// Of the header's limit what the parent's allows: at London twice as much as before
    /// (EIP-1559), and one part in 1024 (yellow paper, equation 47). Which fork begins is not known
    /// here.
    pub(super) fn new(claimed: u64, parent: Option<u64>) -> Self {
        let allowed = parent.map_or(u64::MAX, |parent| {
            let doubled = parent.saturating_mul(2);
            doubled.saturating_add(doubled / 1024)
        });
        Self { claimed, allowed }
    }

    /// The header's gas limit, as far as the parent's allows it.
    pub(super) fn gas_limit(self) -> u64 {
        self.claimed.min(self.allowed)
    }

    /// Checks the number of transactions.
    ///
    /// # Errors
    /// More than there is room for.
    pub(super) fn check_transactions(self, transactions: usize) -> Result<(), String> {
        let transactions = transactions as u64;
        let most = self.gas_limit().min(MOST) / TRANSACTION;
        if transactions <= FEW.max(most) {
            return Ok(());
        }
        let limit = self.limit();
        Err(format!(
            "{transactions} transactions, but {limit} has room for {most}"
        ))
    }

    /// Checks what the lists of all transactions hold together.
    ///
    /// # Errors
    /// More than there is room for.
    pub(super) fn check_lists(self, lists: Lists) -> Result<(), String> {
        let Lists {
            entries,
            keys,
            authorizations,
        } = lists;
        let gas = entries * ENTRY + keys * KEY + authorizations * AUTHORIZATION;
        if entries + keys + authorizations <= FEW || gas <= self.gas_limit().min(MOST) {
            return Ok(());
        }
        let limit = self.limit();
        Err(format!(
            "access lists of {entries} addresses and {keys} slots, and {authorizations} authorizations, take at least {gas} gas, but {limit} has no room for them"
        ))
    }

    fn limit(self) -> String {
        let gas_limit = self.gas_limit();
        if gas_limit > MOST {
            return format!("{MOST}, the greatest gas limit that is read,");
        }
        match self.claimed <= self.allowed {
            true => format!("a gas limit of {gas_limit}"),
            false => format!("{gas_limit}, the greatest gas limit after the parent's,"),
        }
    }
}

/// Checks the number of ommers in their list.
///
/// # Errors
/// More than any block has.
pub(super) fn check_ommers(list: &[u8]) -> Result<(), String> {
    match count_items(list) {
        few if few <= FEW_OMMERS => Ok(()),
        many => Err(format!("ommers: {many}, and a block has at most 2")),
    }
}

/// What the lists of transactions hold.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Lists {
    /// Addresses in access lists.
    entries: u64,
    /// Slots in access lists.
    keys: u64,
    /// Authorizations of EIP-7702.
    authorizations: u64,
}

impl Lists {
    /// Adds the lists of a transaction in its EIP-2718 bytes, up to what is malformed.
    pub(super) fn add(&mut self, transaction: &[u8]) {
        let Some((kind, mut list)) = transaction.split_first() else {
            return;
        };
        let (access_list, authorizations) = match TxType::try_from(*kind) {
            Ok(TxType::Eip2930) => (7, None),
            Ok(TxType::Eip1559 | TxType::Eip4844) => (8, None),
            Ok(TxType::Eip7702) => (8, Some(9)),
            Ok(TxType::Legacy) | Err(_) => return,
        };
        let Some(fields) = next_list(&mut list) else {
            return;
        };
        for (place, mut field) in Items(fields).enumerate().take(10) {
            if place == access_list {
                for mut entry in Items(next_list(&mut field).unwrap_or_default()) {
                    self.entries += 1;
                    let parts = next_list(&mut entry).unwrap_or_default();
                    let keys = Items(parts).nth(1).unwrap_or_default();
                    self.keys += count_items(next_list(&mut &*keys).unwrap_or_default()) as u64;
                }
            } else if Some(place) == authorizations {
                let listed = next_list(&mut field).unwrap_or_default();
                self.authorizations += count_items(listed) as u64;
            }
        }
    }
}

/// The payload of the list that begins here.
fn next_list<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    Header::decode_bytes(from, true).ok()
}

/// The items of a list's payload with their heads, up to what is malformed.
struct Items<'a>(&'a [u8]);

impl<'a> Iterator for Items<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut rest = self.0;
        if rest.is_empty() {
            return None;
        }
        let head = Header::decode(&mut rest).ok()?;
        let length = self.0.len() - rest.len() + head.payload_length;
        let (item, after) = self.0.split_at_checked(length)?;
        self.0 = after;
        Some(item)
    }
}

/// How many items a list has, up to what is malformed.
pub(super) fn count_items(list: &[u8]) -> usize {
    Items(list).count()
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{SignableTransaction, TxEip1559, TxEip2930, TxEip4844, TxEip7702};
    use alloy_eips::eip2718::Encodable2718;
    use alloy_eips::eip2930::{AccessList, AccessListItem};
    use alloy_eips::eip7702::{Authorization, SignedAuthorization};
    use alloy_primitives::{Address, B256, Signature, U256};

    use super::*;

    /// Access lists of 0, 1 and 2 slots, and so many authorizations.
    fn access_list() -> AccessList {
        let item = |keys| AccessListItem {
            address: Address::repeat_byte(7),
            storage_keys: vec![B256::ZERO; keys],
        };
        AccessList((0..3).map(item).collect())
    }

    #[test]
    fn lists_are_counted_in_every_type_of_transaction() {
        let signature = Signature::new(U256::from(5), U256::from(7), false);
        let authorization = Authorization {
            chain_id: U256::ZERO,
            address: Address::ZERO,
            nonce: 0,
        };
        let authorization =
            SignedAuthorization::new_unchecked(authorization, 0, U256::ONE, U256::ONE);
        let access_list = access_list();
        let all = [
            TxEip2930 {
                access_list: access_list.clone(),
                ..Default::default()
            }
            .into_signed(signature)
            .encoded_2718(),
            TxEip1559 {
                access_list: access_list.clone(),
                ..Default::default()
            }
            .into_signed(signature)
            .encoded_2718(),
            TxEip4844 {
                access_list: access_list.clone(),
                ..Default::default()
            }
            .into_signed(signature)
            .encoded_2718(),
            TxEip7702 {
                access_list,
                authorization_list: vec![authorization; 5],
                ..Default::default()
            }
            .into_signed(signature)
            .encoded_2718(),
        ];
        for (kind, transaction) in all.iter().enumerate() {
            let mut lists = Lists::default();
            lists.add(transaction);
            let wanted = Lists {
                entries: 3,
                keys: 3,
                authorizations: if kind == 3 { 5 } else { 0 },
            };
            assert_eq!(lists, wanted, "type {}", transaction[0]);
            // Malformed ones are counted up to there.
            for end in 0..transaction.len() {
                lists.add(&transaction[..end]);
            }
        }
    }

    #[test]
    fn as_much_as_the_gas_pays_for_has_room() {
        let room = |lists| DecodingRoom::new(12_000_000, None).check_lists(lists);
        let lists = |entries, keys, authorizations| Lists {
            entries,
            keys,
            authorizations,
        };
        for (fits, more) in [
            (lists(10_000, 0, 0), lists(10_001, 0, 0)),
            (lists(0, 12_631, 0), lists(0, 12_632, 0)),
            (lists(0, 0, 1_920), lists(0, 0, 1_921)),
        ] {
            assert_eq!(room(fits), Ok(()));
            let refused = room(more).expect_err("too many");
            assert!(
                refused.ends_with("a gas limit of 12000000 has no room for them"),
                "{refused}"
            );
        }
        let few = lists(FEW, 0, 0);
        assert_eq!(DecodingRoom::new(0, None).check_lists(few), Ok(()));
        let claimed = DecodingRoom::new(u64::MAX, None);
        let refused = claimed.check_lists(lists(MOST, 0, 0)).expect_err("many");
        assert!(
            refused.contains("4294967296, the greatest gas limit"),
            "{refused}"
        );
        assert_eq!(claimed.check_transactions(409_044), Ok(()));
        assert!(claimed.check_transactions(409_045).is_err());
    }
}
