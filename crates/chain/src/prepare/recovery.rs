//! Senders of transactions, recovered in lanes.

use alloy_consensus::crypto::SECP256K1N_HALF;
use alloy_consensus::{SignableTransaction, Transaction as _};
use alloy_primitives::Address;
use arbor_hashing::{Digest, KeccakBatch};
use arbor_secp256k1::{Method, Signed, Unrecoverable, addresses};
use rayon::prelude::*;

use crate::source::Transaction;

/// A transaction whose sender is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unsigned<'a> {
    pub(super) transaction: &'a Transaction,
    /// Whether a high `s` makes the signature invalid (from Homestead on).
    pub(super) low_s: bool,
}

/// A transaction's sender, or the reason why its signature has none.
type Sender = Result<Address, &'static str>;

/// Transactions that a thread takes at least: two vectors of lanes.
const LEAST: usize = 16;
/// The most transactions that a thread takes at once. The inversions are shared by all of them.
const MOST: usize = 64;

/// Recovers who signed each of `transactions`. What is signed, and the keys, are hashed together, in lanes.
///
/// # Errors
/// The index of the first transaction without a valid signature, and what is wrong with it: `r` or `s` out of range, no such
/// point, or, if `low_s` is asked for (from Homestead on), a high `s`.
pub fn recover_senders(
    transactions: &[Transaction],
    low_s: bool,
) -> Result<Vec<Address>, (usize, &'static str)> {
    let unsigned = |transaction| Unsigned { transaction, low_s };
    let unsigned: Vec<_> = transactions.iter().map(unsigned).collect();
    let senders = of_chunk(&unsigned).into_iter().enumerate();
    let checked = senders.map(|(index, sender)| sender.map_err(|reason| (index, reason)));
    checked.collect()
}

/// Recovers the sender of each transaction; in a rayon pool, spread over its threads.
pub(super) fn senders(unsigned: &[Unsigned]) -> Vec<Sender> {
    if unsigned.len() <= LEAST || rayon::current_thread_index().is_none() {
        return of_chunk(unsigned);
    }
    let share = unsigned.len().div_ceil(rayon::current_num_threads());
    let share = share.next_multiple_of(LEAST).min(MOST);
    unsigned.par_chunks(share).flat_map_iter(of_chunk).collect()
}

fn of_chunk(unsigned: &[Unsigned]) -> Vec<Sender> {
    let bytes = unsigned.iter().map(|one| signed_bytes(one.transaction));
    let mut messages = KeccakBatch::with_capacity(unsigned.len(), bytes.sum());
    for one in unsigned {
        messages.push_with(|bytes| encode_for_signing(one.transaction, bytes));
    }
    let digests = messages.finish().iter();
    let signed: Vec<_> = digests
        .zip(unsigned)
        .map(|(digest, one)| signature(one.transaction, digest))
        .collect();
    let found = Method::detect().recover(&signed);
    let keys: Vec<_> = found.iter().map(|key| key.unwrap_or([0; 64])).collect();
    let results = addresses(&keys).into_iter().zip(found).zip(unsigned);
    results
        .map(|((address, key), one)| {
            if one.low_s && one.transaction.signature().s() > SECP256K1N_HALF {
                return Err("its signature has a high s (EIP-2)");
            }
            match key {
                Ok(_) => Ok(Address::from(address)),
                Err(Unrecoverable::OutOfRange) => Err("its signature has r or s out of range"),
                Err(Unrecoverable::NoKey) => Err("its signature is no one's"),
            }
        })
        .collect()
}

fn signature(transaction: &Transaction, digest: &Digest) -> Signed {
    let signature = transaction.signature();
    Signed {
        digest: *digest,
        r: signature.r().to_be_bytes(),
        s: signature.s().to_be_bytes(),
        y_is_odd: signature.v(),
        x_is_large: false,
    }
}

/// Bytes that suffice for what the sender of most transactions has signed.
fn signed_bytes(transaction: &Transaction) -> usize {
    let items = transaction.access_list().map_or(0, |list| list.0.len());
    192 + transaction.input().len() + 64 * items
}

/// Appends what the sender of `transaction` has signed the hash of.
fn encode_for_signing(transaction: &Transaction, out: &mut Vec<u8>) {
    match transaction {
        Transaction::Legacy(signed) => signed.tx().encode_for_signing(out),
        Transaction::Eip2930(signed) => signed.tx().encode_for_signing(out),
        Transaction::Eip1559(signed) => signed.tx().encode_for_signing(out),
        Transaction::Eip4844(signed) => signed.tx().encode_for_signing(out),
        Transaction::Eip7702(signed) => signed.tx().encode_for_signing(out),
    }
}
