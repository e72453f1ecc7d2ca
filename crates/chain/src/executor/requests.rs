//! Requests to the consensus layer (EIP-7685), deposits among them (EIP-6110).

use alloy_consensus::ReceiptEnvelope;
use alloy_primitives::{Address, B256, Bytes, Log, b256};
use revm::precompile::crypto;

use super::BlockError;

/// Keccak-256 of `DepositEvent(bytes,bytes,bytes,bytes,bytes)` (EIP-6110).
const DEPOSIT_TOPIC: B256 =
    b256!("649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5");
/// Length of a deposit log's data (EIP-6110).
const DEPOSIT_LENGTH: usize = 576;
/// Where each of the log's five byte strings begins, and its length: public key, withdrawal credentials,
/// amount, signature, index (EIP-6110).
const DEPOSIT_FIELDS: [(usize, usize); 5] = [(160, 48), (256, 32), (320, 8), (384, 96), (512, 8)];

/// Type of deposit requests (EIP-6110).
pub(super) const DEPOSITS: u8 = 0;
/// Type of withdrawal requests (EIP-7002).
pub(super) const WITHDRAWALS: u8 = 1;
/// Type of consolidation requests (EIP-7251).
pub(super) const CONSOLIDATIONS: u8 = 2;

/// Returns the deposits in the receipts' logs, one after the other, without a type.
///
/// # Errors
/// A log of the contract that is not laid out as the EIP demands: the block is invalid.
pub(super) fn deposits(
    receipts: &[ReceiptEnvelope],
    contract: Address,
) -> Result<Vec<u8>, BlockError> {
    let mut deposits = Vec::new();
    let logs = receipts
        .iter()
        .flat_map(ReceiptEnvelope::logs)
        .filter(|log| log.address == contract && log.topics().first() == Some(&DEPOSIT_TOPIC));
    for (index, log) in logs.enumerate() {
        read_deposit(log, &mut deposits)
            .map_err(|reason| BlockError::DepositLog { index, reason })?;
    }
    Ok(deposits)
}

fn read_deposit(log: &Log, out: &mut Vec<u8>) -> Result<(), &'static str> {
    let data = log.data.data.as_ref();
    if data.len() != DEPOSIT_LENGTH {
        return Err("data is not 576 bytes long");
    }
    for (i, (offset, length)) in DEPOSIT_FIELDS.into_iter().enumerate() {
        if word(data, 32 * i) != Some(offset) {
            return Err("offset of a field");
        }
        if word(data, offset) != Some(length) {
            return Err("length of a field");
        }
    }
    for (offset, length) in DEPOSIT_FIELDS {
        out.extend_from_slice(&data[offset + 32..offset + 32 + length]);
    }
    Ok(())
}

/// Reads the big-endian word at `at`; `None` if it is not small.
fn word(data: &[u8], at: usize) -> Option<usize> {
    let (high, low) = data.get(at..at + 32)?.split_at(28);
    let low = u32::from_be_bytes(low.try_into().ok()?);
    high.iter().all(|byte| *byte == 0).then_some(low as usize)
}

/// Puts the type before a request's data; `None` if there is no data (EIP-7685).
pub(super) fn request(kind: u8, data: &[u8]) -> Option<Bytes> {
    (!data.is_empty()).then(|| [&[kind], data].concat().into())
}

/// Returns the SHA-256 of the requests' SHA-256 (EIP-7685).
pub(super) fn requests_hash(requests: &[Bytes]) -> B256 {
    let hashes: Vec<u8> = requests
        .iter()
        .flat_map(|request| crypto().sha256(request))
        .collect();
    crypto().sha256(&hashes).into()
}

#[cfg(test)]
mod tests {
    use alloy_consensus::{Receipt, ReceiptWithBloom};
    use alloy_primitives::{LogData, keccak256};

    use super::*;

    fn deposit_data() -> Vec<u8> {
        let mut data = vec![0; DEPOSIT_LENGTH];
        for (i, (offset, length)) in DEPOSIT_FIELDS.into_iter().enumerate() {
            data[32 * i + 28..32 * i + 32].copy_from_slice(&(offset as u32).to_be_bytes());
            data[offset + 31] = length as u8;
            data[offset + 32..offset + 32 + length].fill(i as u8 + 1);
        }
        data
    }

    fn receipts(data: Vec<u8>, contract: Address) -> Vec<ReceiptEnvelope> {
        let data = LogData::new_unchecked(vec![DEPOSIT_TOPIC], data.into());
        let receipt = Receipt {
            logs: vec![Log {
                address: contract,
                data,
            }],
            ..Receipt::default()
        };
        vec![ReceiptEnvelope::Legacy(ReceiptWithBloom::from(receipt))]
    }

    #[test]
    fn topic_is_the_events() {
        assert_eq!(
            keccak256("DepositEvent(bytes,bytes,bytes,bytes,bytes)"),
            DEPOSIT_TOPIC
        );
    }

    #[test]
    fn reads_a_deposit() {
        let contract = Address::with_last_byte(7);
        let deposits = deposits(&receipts(deposit_data(), contract), contract).expect("valid");
        let expected: Vec<u8> = DEPOSIT_FIELDS
            .into_iter()
            .enumerate()
            .flat_map(|(i, (_, length))| vec![i as u8 + 1; length])
            .collect();
        assert_eq!(deposits, expected);
    }

    #[test]
    fn other_contracts_are_not_read() {
        let receipts = receipts(vec![1], Address::with_last_byte(7));
        assert_eq!(deposits(&receipts, Address::ZERO), Ok(Vec::new()));
    }

    #[test]
    fn rejects_every_other_layout() {
        let contract = Address::with_last_byte(7);
        let check = |data| deposits(&receipts(data, contract), contract);
        assert!(check(deposit_data()[..575].to_vec()).is_err());
        assert!(check([deposit_data(), vec![0]].concat()).is_err());
        // Every byte of the five offsets and the five lengths.
        let words = (0..5)
            .map(|i| 32 * i)
            .chain(DEPOSIT_FIELDS.map(|(offset, _)| offset));
        for at in words.flat_map(|word| word..word + 32) {
            let mut data = deposit_data();
            data[at] ^= 1;
            assert!(check(data).is_err(), "byte {at}");
        }
    }

    #[test]
    fn hash_of_no_requests_is_that_of_nothing() {
        assert_eq!(requests_hash(&[]), alloy_eips::eip7685::EMPTY_REQUESTS_HASH);
        assert_eq!(request(DEPOSITS, &[]), None);
    }
}
