//! Accounts in the partitioned binary tree of EIP-8297 (revision of 6 August 2026): names, leaves,
//! proofs and witnesses.
//!
//! With `A = H(12 zero bytes || address)`, numbers of 32 bytes big-endian:
//!
//! ```text
//! header    00 || A || suffix                                          basic data 0, code hash 1, delegation 2, slot s < 64 at 64 + s
//! code      01 || H(code hash || chunk / 256) || chunk mod 256         31 bytes of code and the count of pushed bytes before them
//! storage   ff || A || H(12 zero bytes || address || s / 256) || s mod 256
//! ```
//!
//! Basic data has the version in byte 0, the code's size in bytes 4 to 7, the nonce in 8 to 15, the
//! balance in 16 to 31. An account whose code is a delegation (EIP-7702) has it in its delegation
//! leaf in place of a code hash, and no leaves of code. Code belongs to its hash: accounts share
//! its leaves, which are there as long as an account has it. Zero is absence everywhere.
//!
//! Where the EIP is open:
//! - *Empty accounts* of before EIP-161 exist, and their basic data is zero, so absent. They keep
//!   their code hash, that of no code, which tells them from accounts that do not exist.
//! - *Balances of 2^128 and more* have no room: [`NoRoom`].
//! - *Storage without code* (EIP-7610) is stored like any other, and goes with its account.

mod embedding;
mod forms;
mod header;
mod keys;
mod leaves;
mod multi;
mod named;
mod proof;
mod witness;

pub use crate::hash_name::HashName;
pub use embedding::{
    CODE_ZONE, Embedding, HEADER_SLOTS, HEADER_ZONE, STORAGE_ZONE, code_key, group_of, header_key,
    header_slots, storage_of, storage_ways,
};
pub use forms::VERIFY;
pub use header::{
    BASIC_DATA, CODE_HASH, Code, DELEGATION, FIELDS, NoAccount, NoRoom, account_of,
    delegation_code, fields,
};
pub use keys::{FalseKeys, KeysProof, MalformedKeys};
pub use leaves::{code_leaves, field_updates};
pub use multi::{MalformedMultiproof, StateMultiproof, keys_of};
pub use proof::{AccountProof, ProofFormat, SlotProof};
pub use witness::{UnreadWitness, WitnessState};
