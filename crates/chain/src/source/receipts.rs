//! The receipts that an era1 file keeps beside each block.

use alloy_consensus::ReceiptEnvelope;
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{B256, Bytes};
use alloy_rlp::Header as RlpHeader;
use arbor_tree_mpt::ordered_root;

use super::error::{Position, SourceError};
use super::snappy::unframe;

/// Greatest size of one block's receipts after decompression, in bytes.
const MAX_RECEIPTS_BYTES: u64 = 512 << 20;

/// A block's receipts, snappy-framed as they lie in the file.
#[derive(Clone, Debug)]
pub struct Era1Receipts {
    position: Position,
    number: u64,
    compressed: Bytes,
}

impl Era1Receipts {
    pub(crate) const fn new(position: Position, number: u64, compressed: Bytes) -> Self {
        Self {
            position,
            number,
            compressed,
        }
    }

    /// Decompresses and decodes the receipts, in transaction order.
    ///
    /// # Errors
    /// [`SourceError::Malformed`] if they are not a list of consensus receipts with bloom filters.
    pub fn decode(&self) -> Result<Vec<ReceiptEnvelope>, SourceError> {
        let rlp = self.decompress()?;
        let items = self.items(&rlp)?;
        let decode = |(index, bytes): (usize, &[u8])| {
            ReceiptEnvelope::decode_2718_exact(bytes)
                .map_err(|e| self.malformed(format!("receipt {index}: {e}")))
        };
        items.into_iter().enumerate().map(decode).collect()
    }

    /// Compares the number of receipts with that of the transactions, and their trie root with the header's. Execution makes
    /// its own receipts, so that nothing else would notice damage here.
    ///
    /// # Errors
    /// [`SourceError::Malformed`] if one of them differs, or if they are not a list.
    pub(crate) fn verify(
        &self,
        transactions: usize,
        receipts_root: B256,
    ) -> Result<(), SourceError> {
        let rlp = self.decompress()?;
        let items = self.items(&rlp)?;
        if items.len() != transactions {
            let count = items.len();
            return Err(self.malformed(format!("{count} receipts for {transactions} transactions")));
        }
        let root = B256::from(ordered_root(&items));
        if root == receipts_root {
            Ok(())
        } else {
            Err(self.malformed(format!(
                "receipts have root {root}, the header says {receipts_root}"
            )))
        }
    }

    fn decompress(&self) -> Result<Vec<u8>, SourceError> {
        unframe(&self.compressed[..], MAX_RECEIPTS_BYTES)
            .map_err(|e| self.malformed(format!("receipts: {e}")))
    }

    /// The EIP-2718 bytes of each receipt.
    fn items<'a>(&self, rlp: &'a [u8]) -> Result<Vec<&'a [u8]>, SourceError> {
        let malformed = |e: alloy_rlp::Error| self.malformed(format!("receipts: {e}"));
        let mut rest = rlp;
        let mut list = RlpHeader::decode_bytes(&mut rest, true).map_err(malformed)?;
        if !rest.is_empty() {
            return Err(self.malformed(format!("receipts: {} bytes follow them", rest.len())));
        }
        let mut items = Vec::new();
        while !list.is_empty() {
            let start = list;
            let head = RlpHeader::decode(&mut list).map_err(malformed)?;
            let (payload, after) = list.split_at(head.payload_length);
            items.push(if head.list {
                &start[..start.len() - after.len()]
            } else {
                payload
            });
            list = after;
        }
        Ok(items)
    }

    fn malformed(&self, reason: String) -> SourceError {
        self.position.malformed(Some(self.number), reason)
    }
}
