//! Tables that several trees' states have.

use arbor_store::Table;
use arbor_versions::{TableKind, TableSpec};

/// Accounts, under a Verkle tree.
pub(crate) const ACCOUNTS: Table = Table(1);
/// Slots, likewise, those of an account together.
pub(crate) const SLOTS: Table = Table(2);
/// Code by its Keccak-256.
pub(crate) const CODE: Table = Table(5);

/// These tables as `versions` knows them.
pub(crate) const COMMON: [TableSpec; 3] = [
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
];
