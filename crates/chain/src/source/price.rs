//! Prices for gas that are integers of up to 256 bits by their format, of which [`Transaction`] keeps 128.

use alloy_consensus::TxType;
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_primitives::U256;
use alloy_rlp::{Decodable, Encodable, Header};

use super::Transaction;

/// A transaction's price by the name of its field.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Price {
    pub(super) field: &'static str,
    pub(super) price: U256,
}

/// The prices among the fields of a transaction, by their place.
fn prices(kind: TxType) -> &'static [(usize, &'static str)] {
    match kind {
        TxType::Legacy => &[(1, "gas price")],
        TxType::Eip2930 => &[(2, "gas price")],
        TxType::Eip1559 | TxType::Eip7702 => &[(3, "max fee per gas"), (2, "max priority fee")],
        TxType::Eip4844 => &[
            (3, "max fee per gas"),
            (2, "max priority fee"),
            (9, "max fee per blob gas"),
        ],
    }
}

/// The first price of a transaction that has more than 128 bits, if nothing else is wrong with its encoding: with small prices in the place of such
/// ones it is decoded, and encodes to the same bytes.
pub(super) fn price_beyond_128_bits(bytes: &[u8]) -> Option<Price> {
    let (kind, list) = match *bytes.first()? {
        0xc0.. => (TxType::Legacy, bytes),
        kind => (TxType::try_from(kind).ok()?, &bytes[1..]),
    };
    let mut fields = list;
    let mut payload = Header::decode_bytes(&mut fields, true).ok()?;
    if !fields.is_empty() {
        return None;
    }
    let (mut found, mut small) = (None, Vec::with_capacity(payload.len()));
    for place in 0.. {
        if payload.is_empty() {
            break;
        }
        let field = payload;
        let head = Header::decode(&mut payload).ok()?;
        payload = payload.get(head.payload_length..)?;
        let field = &field[..field.len() - payload.len()];
        let name = prices(kind).iter().find(|(index, _)| *index == place);
        let price = U256::decode(&mut &field[..]);
        match (name, price) {
            (Some((_, name)), Ok(price)) if price.bit_len() > 128 => {
                found = found.or(Some(Price { field: name, price }));
                1u8.encode(&mut small);
            }
            _ => small.extend_from_slice(field),
        }
    }
    let found = found?;
    let head = Header {
        list: true,
        payload_length: small.len(),
    };
    let mut with_small = bytes[..bytes.len() - list.len()].to_vec();
    head.encode(&mut with_small);
    with_small.extend_from_slice(&small);
    let decoded = Transaction::decode_2718_exact(&with_small).ok()?;
    (decoded.encoded_2718() == with_small).then_some(found)
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{Signed, TxEip1559, TxLegacy};
    use alloy_primitives::{B256, Signature};

    use super::*;

    /// The bytes of a transaction, in which 16 bytes `ee` for a price become 17.
    fn with_a_longer_price(transaction: &Transaction) -> Vec<u8> {
        let encoded = transaction.encoded_2718();
        let price = [&[0x90][..], &[0xee; 16]].concat();
        let at = encoded
            .windows(17)
            .position(|window| window == price)
            .expect("the price");
        let (kind, mut list) = match encoded[0] {
            0xc0.. => (&encoded[..0], &encoded[..]),
            _ => encoded.split_at(1),
        };
        let payload = Header::decode_bytes(&mut list, true).expect("a list");
        let at = at - (encoded.len() - payload.len());
        let longer = [&payload[..at], &[0x91], &[0xee; 17], &payload[at + 17..]].concat();
        let mut bytes = kind.to_vec();
        let head = Header {
            list: true,
            payload_length: longer.len(),
        };
        head.encode(&mut bytes);
        bytes.extend_from_slice(&longer);
        bytes
    }

    fn signature() -> Signature {
        Signature::new(U256::from(5), U256::from(7), false)
    }

    #[test]
    fn a_price_of_more_than_128_bits_is_well_formed() {
        let great = u128::from_be_bytes([0xee; 16]);
        let legacy = TxLegacy {
            gas_price: great,
            ..TxLegacy::default()
        };
        let legacy = Transaction::Legacy(Signed::new_unchecked(legacy, signature(), B256::ZERO));
        let dynamic = TxEip1559 {
            max_fee_per_gas: 3,
            max_priority_fee_per_gas: great,
            ..TxEip1559::default()
        };
        let dynamic = Transaction::Eip1559(Signed::new_unchecked(dynamic, signature(), B256::ZERO));
        let price = U256::from_be_slice(&[0xee; 17]);
        for (transaction, field) in [(legacy, "gas price"), (dynamic, "max priority fee")] {
            assert_eq!(price_beyond_128_bits(&transaction.encoded_2718()), None);
            let bytes = with_a_longer_price(&transaction);
            assert!(Transaction::decode_2718_exact(&bytes).is_err());
            assert_eq!(price_beyond_128_bits(&bytes), Some(Price { field, price }));
            for cut in 0..bytes.len() {
                assert_eq!(price_beyond_128_bits(&bytes[..cut]), None, "{cut}");
            }
        }
    }

    #[test]
    fn a_price_of_more_than_256_bits_or_another_great_field_is_malformed() {
        let nonce = [&[0xc0 + 30, 0x9d][..], &[7; 29]].concat();
        assert_eq!(price_beyond_128_bits(&nonce), None);
        let transaction = TxLegacy {
            gas_price: u128::from_be_bytes([0xee; 16]),
            ..TxLegacy::default()
        };
        let transaction = Signed::new_unchecked(transaction, signature(), B256::ZERO);
        let mut bytes = with_a_longer_price(&Transaction::Legacy(transaction));
        let nonce = bytes.iter().position(|byte| *byte == 0x80).expect("nonce");
        bytes[nonce] = 0;
        assert_eq!(
            price_beyond_128_bits(&bytes),
            None,
            "a nonce with a zero byte"
        );
    }
}
