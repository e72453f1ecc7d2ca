//! Ethereum state in a Verkle tree, after EIP-6800.
//!
//! The embedding gives every field of an account, every 31 bytes of its code and every slot a leaf: 32 bytes under a key
//! of 32. The first 31 bytes of the key are its *stem*, a Pedersen hash of the address and an index, which 256 leaves share:
//!
//! ```text
//! position      basic data 0, code hash 1, slot s < 64 at 64 + s, code chunk c at 128 + c, other slots at 256^31 + s
//! stem          first 31 bytes of pedersen_hash(address, position / 256)
//! suffix        position mod 256
//! ```
//!
//! - [`StemName`] is the plain name behind a stem; [`slot_place`], [`chunk_place`] and [`HeaderLayout`] say where things sit.
//! - [`Stems`] turns names into stems, in batches, and remembers what is asked for again.
//! - [`chunk_code`] cuts code.
//!
//! The tree cannot forget: what is removed from the state leaves zeros behind. The flat tables are keyed by plain names, so that execution
//! reads without any hash, and have a record for whatever has a leaf; so changes of leaves follow from changes of flat records alone, forwards
//! and backwards. Nothing stored leads from a stem back to its name: no update and no proof asks for that, and whoever wants the leaves in the tree's order
//! hashes all names and sorts them (`verify`).
mod changes;
mod chunks;
mod compute;
mod header;
mod load;
mod nearest;
mod nodes;
mod ordered;
mod places;
mod prove;
mod reader;
mod records;
mod settings;
mod stems;
mod tree;
mod values;
mod verify;

pub use arbor_ipa::Committer;
use arbor_store::Table;
pub use arbor_tree_verkle::{
    Form, StemDiff, SuffixDiff, TreeError, Verified, Witness, WitnessError, WitnessSizes,
};
use arbor_versions::{TableKind, TableSpec};

use crate::tables::COMMON;

pub use chunks::{CHUNK, chunk_code};
pub use header::{HeaderLayout, NoRoom};
pub use places::{StemContents, StemName, chunk_place, slot_place};
pub use prove::{BlockLeaves, NotProven, ProvenAccount, Touched, proven_account};
pub(crate) use prove::{block_leaves, prove_account};
use reader::flat_root;
use reader::stored_code;
pub use settings::{Verkle, VerkleSettings};
pub use stems::{Stem, Stems};
pub use tree::{VERKLE, VERKLE_2023};

/// The value of a leaf.
pub type LeafValue = [u8; 32];

/// Nodes by depth and path.
const NODES: Table = Table(3);
/// Layout of flat records and node records; a change of either raises it. Databases of layout 1 had the names of stems besides, those of layout 2 both
/// coordinates and the image of internal nodes.
pub(crate) const LAYOUT: u32 = 3;

/// The tables of a Verkle state. Accounts are keyed by address; slots by address and slot number (32 bytes big-endian).
pub(crate) const TABLES: [TableSpec; 4] = [
    COMMON[0],
    COMMON[1],
    TableSpec {
        table: NODES,
        name: "nodes",
        kind: TableKind::Nodes,
    },
    COMMON[2],
];
