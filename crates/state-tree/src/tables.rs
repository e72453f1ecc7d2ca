//! Tables that several trees' states have.

use alloy_primitives::{B256, Bytes};
use arbor_store::{Table, Write};
use arbor_versions::{TableKind, TableSpec};

/// Accounts, under a Verkle tree.
pub const ACCOUNTS: Table = Table(1);
/// Slots, likewise, those of an account together.
pub const SLOTS: Table = Table(2);
/// Code by its Keccak-256.
pub const CODE: Table = Table(5);

/// Roots that no header carries: the block's number (8 bytes, big-endian) to the root after it.
pub const ROOTS: Table = Table(6);

/// These tables as `versions` knows them.
pub const COMMON: [TableSpec; 4] = [
    TableSpec {
        table: ACCOUNTS,
        name: "accounts",
        kind: TableKind::Flat,
    },
    TableSpec {
        table: SLOTS,
        name: "slots",
        kind: TableKind::Flat,
    },
    TableSpec {
        table: CODE,
        name: "code",
        kind: TableKind::Blobs,
    },
    TableSpec {
        table: ROOTS,
        name: "roots",
        kind: TableKind::Nodes,
    },
];

/// Writes of codes, by their hashes.
pub fn code_writes<'a>(codes: impl Iterator<Item = (&'a B256, &'a Bytes)>) -> Vec<Write> {
    codes.map(|(hash, code)| code_write(hash, code)).collect()
}

/// The write of a code, by its hash.
pub fn code_write(code_hash: &B256, code: &Bytes) -> Write {
    Write {
        table: CODE,
        key: code_hash.as_slice().into(),
        value: Some(code.as_ref().into()),
    }
}
