//! Receipts, their bloom filters and their root.

use alloy_consensus::{Eip658Value, Receipt, ReceiptEnvelope, ReceiptWithBloom, TxType, proofs};
use alloy_primitives::{B256, Bloom, BloomInput, Log};

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
    proofs::calculate_receipt_root(receipts)
}

/// Computes filters of logs.
#[derive(Default)]
pub(super) struct BloomCache {}

impl BloomCache {
    fn bloom(&mut self, logs: &[Log]) -> Bloom {
        let mut bloom = Bloom::ZERO;
        for log in logs {
            bloom.accrue(BloomInput::Raw(log.address.as_slice()));
            for topic in log.topics() {
                bloom.accrue(BloomInput::Raw(topic.as_slice()));
            }
        }
        bloom
    }
}
