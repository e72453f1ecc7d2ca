//! Blocks as they come from a file: raw first, decoded on demand (possibly on another thread).

use alloy_consensus::{Block, BlockBody, Header};
use alloy_eips::eip2718::{Decodable2718, Encodable2718};
use alloy_eips::eip4895::Withdrawals;
use alloy_primitives::{B256, Bytes, U256, keccak256};
use alloy_rlp::{Decodable, Header as RlpHeader};

use super::error::{Position, SourceError};
use super::price::{Price, price_beyond_128_bits};
use super::receipts::Era1Receipts;
use super::room::{DecodingRoom, Lists, check_ommers, count_items};
use super::transaction::Transaction;

/// Greatest block that is read, in bytes of RLP. EIP-7934 caps blocks at 10 MiB; before it gas did, far below this.
pub const MAX_BLOCK_BYTES: u64 = 128 << 20;

/// A block whose header is decoded and whose body is still bytes.
#[derive(Clone, Debug)]
pub struct RawBlock {
    /// Where it lies.
    pub position: Position,
    /// Its header.
    pub header: Header,
    /// Keccak-256 of the header's bytes as they are in the file.
    pub hash: B256,
    /// The gas limit of the block before it, where that is known.
    parent_gas_limit: Option<u64>,
    body: RawBody,
}

#[derive(Clone, Debug)]
enum RawBody {
    /// The items that follow the header in the block's list.
    Export { items: Bytes, rlp_len: usize },
    /// The decompressed body list, the receipts still compressed.
    Era1 {
        body: Bytes,
        receipts: Era1Receipts,
        total_difficulty: U256,
        rlp_len: usize,
    },
}

/// A decoded block with what its file says about it.
#[derive(Clone, Debug)]
pub struct SourceBlock {
    /// Header, transactions, ommers, withdrawals.
    pub block: Block<Transaction>,
    /// The block's hash.
    pub hash: B256,
    /// Size of the block's RLP in bytes, as EIP-7934 counts it.
    pub rlp_len: usize,
    /// Where it lies.
    pub position: Position,
    /// The EIP-2718 bytes of each transaction: slices of the block, in order.
    pub transaction_bytes: Vec<Bytes>,
    /// Total difficulty up to and with this block; only era1 files tell.
    pub total_difficulty: Option<U256>,
    /// The block's receipts; only era1 files have them.
    pub receipts: Option<Era1Receipts>,
}

impl RawBlock {
    /// Takes a block from its RLP, as an export has it. The position is only told in errors.
    ///
    /// # Errors
    /// [`SourceError::Malformed`] if `rlp` is not one list that begins with a header.
    pub fn from_export(position: Position, rlp: &Bytes) -> Result<Self, SourceError> {
        let malformed = |reason: String| position.malformed(None, reason);
        let mut rest: &[u8] = rlp;
        let outer = RlpHeader::decode(&mut rest).map_err(|e| malformed(format!("block: {e}")))?;
        if !outer.list || rest.len() != outer.payload_length {
            return Err(malformed("block: not one RLP list".into()));
        }
        let (header, hash) =
            decode_header(&mut rest).map_err(|e| malformed(format!("header: {e}")))?;
        let items = rlp.slice(rlp.len() - rest.len()..);
        Ok(Self {
            position,
            header,
            hash,
            parent_gas_limit: None,
            body: RawBody::Export {
                items,
                rlp_len: rlp.len(),
            },
        })
    }

    /// Takes a block from the decompressed entries of an era1 file.
    pub(crate) fn from_era1(
        position: Position,
        header_rlp: &[u8],
        body: &Bytes,
        receipts: Bytes,
        total_difficulty: U256,
    ) -> Result<Self, SourceError> {
        let (header, hash) = decode_whole_header(&position, header_rlp)?;
        let mut rest: &[u8] = body;
        let malformed = |reason: String| position.malformed(Some(header.number), reason);
        let outer = RlpHeader::decode(&mut rest).map_err(|e| malformed(format!("body: {e}")))?;
        if !outer.list || rest.len() != outer.payload_length {
            return Err(malformed("body: not one RLP list".into()));
        }
        let payload = header_rlp.len() + rest.len();
        let rlp_len = RlpHeader {
            list: true,
            payload_length: payload,
        }
        .length_with_payload();
        let body = body.slice(body.len() - rest.len()..);
        let receipts = Era1Receipts::new(position.clone(), header.number, receipts);
        Ok(Self {
            position,
            header,
            hash,
            parent_gas_limit: None,
            body: RawBody::Era1 {
                body,
                receipts,
                total_difficulty,
                rlp_len,
            },
        })
    }

    /// Size of the block's RLP in bytes.
    pub fn rlp_len(&self) -> usize {
        match &self.body {
            RawBody::Export { rlp_len, .. } | RawBody::Era1 { rlp_len, .. } => *rlp_len,
        }
    }

    /// The same block, of which the gas limit of the block before it is known: one step up from there bounds what the header may claim.
    #[must_use]
    pub fn after_gas_limit(self, parent: Option<u64>) -> Self {
        Self {
            parent_gas_limit: parent,
            ..self
        }
    }

    /// The gas limit, as far as that of the block before it allows it.
    pub(crate) fn allowed_gas_limit(&self) -> u64 {
        DecodingRoom::new(self.header.gas_limit, self.parent_gas_limit).gas_limit()
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// [`SourceError::PriceBeyondFunds`] if a transaction's gas price has more than 128 bits. [`SourceError::Malformed`] if the body is not canonical RLP of transactions, ommers and possibly
    /// withdrawals, if anything follows them, if a transaction would not encode to the bytes it came from, or if there are
    /// more transactions, entries of access lists or authorizations than the gas limit has room for, or more ommers than any
    /// block has. Their numbers are checked before the first of them is decoded: a block of the greatest size could otherwise
    /// take gigabytes and minutes before its header is looked at.
    pub fn decode(self) -> Result<SourceBlock, SourceError> {
        let Self {
            position,
            header,
            hash,
            parent_gas_limit,
            body,
        } = self;
        let (items, rlp_len, total_difficulty, receipts) = match body {
            RawBody::Export { items, rlp_len } => (items, rlp_len, None, None),
            RawBody::Era1 {
                body,
                receipts,
                total_difficulty,
                rlp_len,
            } => (body, rlp_len, Some(total_difficulty), Some(receipts)),
        };
        let room = DecodingRoom::new(header.gas_limit, parent_gas_limit);
        let (body, transaction_bytes) = decode_body(&items, room).map_err(|fault| match fault {
            BodyFault::Malformed(reason) => position.malformed(Some(header.number), reason),
            BodyFault::Price(transaction, Price { field, price }) => {
                SourceError::PriceBeyondFunds {
                    at: position.clone(),
                    number: header.number,
                    transaction,
                    field,
                    price,
                }
            }
        })?;
        if let Some(receipts) = &receipts {
            receipts.verify(transaction_bytes.len(), header.receipts_root)?;
        }
        let block = Block { header, body };
        Ok(SourceBlock {
            block,
            hash,
            rlp_len,
            position,
            transaction_bytes,
            total_difficulty,
            receipts,
        })
    }
}

/// Decodes the header at the front of `buf` and hashes its bytes.
pub(crate) fn decode_header(buf: &mut &[u8]) -> Result<(Header, B256), alloy_rlp::Error> {
    let start = *buf;
    let header = Header::decode(buf)?;
    let hash = keccak256(&start[..start.len() - buf.len()]);
    Ok((header, hash))
}

/// Decodes a header that must fill `rlp`.
pub(crate) fn decode_whole_header(
    position: &Position,
    rlp: &[u8],
) -> Result<(Header, B256), SourceError> {
    let mut rest = rlp;
    let (header, hash) =
        decode_header(&mut rest).map_err(|e| position.malformed(None, format!("header: {e}")))?;
    if rest.is_empty() {
        Ok((header, hash))
    } else {
        Err(position.malformed(
            Some(header.number),
            format!("header: {} bytes follow it", rest.len()),
        ))
    }
}

type DecodedBody = (BlockBody<Transaction>, Vec<Bytes>);

/// Why a body is not taken.
enum BodyFault {
    Malformed(String),
    /// The transaction of this index has a price that [`Transaction`] has no room for.
    Price(usize, Price),
}

impl From<String> for BodyFault {
    fn from(reason: String) -> Self {
        Self::Malformed(reason)
    }
}

/// Decodes transactions, ommers and possibly withdrawals, which must fill `items`.
fn decode_body(items: &Bytes, room: DecodingRoom) -> Result<DecodedBody, BodyFault> {
    let mut rest: &[u8] = items;
    let list = list_payload(&mut rest).map_err(|e| format!("transactions: {e}"))?;
    let (transactions, transaction_bytes) = decode_transactions(&items.slice_ref(list), room)?;
    let mut list = list_payload(&mut rest).map_err(|e| format!("ommers: {e}"))?;
    check_ommers(list)?;
    let mut ommers = Vec::new();
    while !list.is_empty() {
        ommers.push(Header::decode(&mut list).map_err(|e| format!("ommer {}: {e}", ommers.len()))?);
    }
    let withdrawals = if rest.is_empty() {
        None
    } else {
        Some(Withdrawals::decode(&mut rest).map_err(|e| format!("withdrawals: {e}"))?)
    };
    if !rest.is_empty() {
        let reason = format!("{} bytes follow the last field of the block", rest.len());
        return Err(reason.into());
    }
    Ok((
        BlockBody {
            transactions,
            ommers,
            withdrawals,
        },
        transaction_bytes,
    ))
}

fn list_payload<'a>(buf: &mut &'a [u8]) -> Result<&'a [u8], alloy_rlp::Error> {
    RlpHeader::decode_bytes(buf, true)
}

fn decode_transactions(
    list: &Bytes,
    room: DecodingRoom,
) -> Result<(Vec<Transaction>, Vec<Bytes>), BodyFault> {
    let count = count_items(list);
    room.check_transactions(count)?;
    let mut lists = Lists::default();
    let mut rest: &[u8] = list;
    while let Ok(bytes) = transaction_bytes(&mut rest) {
        lists.add(bytes);
    }
    room.check_lists(lists)?;
    let count = count.min(list.len() / SHORT_TRANSACTION);
    let mut transactions = Vec::with_capacity(count);
    let mut encodings = Vec::with_capacity(count);
    let mut again = Vec::new();
    let mut rest: &[u8] = list;
    while !rest.is_empty() {
        let index = transactions.len();
        let malformed = |reason: String| format!("transaction {index}: {reason}");
        let bytes = transaction_bytes(&mut rest).map_err(malformed)?;
        let transaction = match Transaction::decode_2718_exact(bytes) {
            Ok(transaction) => transaction,
            Err(error) => {
                return Err(match price_beyond_128_bits(bytes) {
                    Some(price) => BodyFault::Price(index, price),
                    None => malformed(error.to_string()).into(),
                });
            }
        };
        again.clear();
        transaction.encode_2718(&mut again);
        if again != bytes {
            return Err(malformed("its encoding is not canonical".into()).into());
        }
        transactions.push(transaction);
        encodings.push(list.slice_ref(bytes));
    }
    Ok((transactions, encodings))
}

/// Bytes of a transaction that does hardly anything: of a list of more and shorter items little is known before it is decoded, and it then grows.
const SHORT_TRANSACTION: usize = 80;

/// The EIP-2718 bytes of the next transaction of a block body: a list if legacy, a string that holds them otherwise.
fn transaction_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let start = *rest;
    let head = RlpHeader::decode(rest).map_err(|e| e.to_string())?;
    let (payload, after) = rest.split_at(head.payload_length);
    *rest = after;
    let bytes = if head.list {
        &start[..start.len() - after.len()]
    } else {
        payload
    };
    if !head.list && bytes.first().is_none_or(|&kind| kind > 0x7f) {
        return Err("a string without a transaction type (EIP-2718)".into());
    }
    Ok(bytes)
}
