//! Building a whole state in parts that are made apart from each other.

use alloy_primitives::B256;
use arbor_store::Write;
use arbor_tree::Hash;
use arbor_versions::View;

use crate::{KeyedAccount, LoadedCodes, StateError};

/// A tree that is built in parts, so that cores and machines share the work, and an interrupted build goes on.
///
/// 1. *Spread.* The accounts of a range of keys, in the tree's [order](crate::StateTree::order), become flat
///    records and leaves. The ranges are the 256 first bytes of accounts' keys.
/// 2. *Part.* The leaves of a range of leaf keys become nodes and a part. The ranges are the 256 first bytes of leaves' keys.
///    All accounts are spread before, and their codes are stored.
/// 3. *Join.* All parts become the nodes above them and the root.
///
/// Each step depends on its input alone: made again, it makes the same.
pub trait Build: Send + Sync {
    /// Makes flat records and leaves of accounts, which ascend by key and belong to one range.
    ///
    /// # Errors
    /// Accounts or slots that do not ascend; a code that is missing; an account that the tree has no room for.
    fn spread(
        &self,
        accounts: Vec<KeyedAccount>,
        codes: &LoadedCodes<'_>,
    ) -> Result<Spread, StateError>;

    /// Makes the nodes of all leaves whose keys have this first byte. The leaves ascend by key.
    ///
    /// # Errors
    /// Leaves that do not ascend or are malformed; the store's errors.
    fn part(
        &self,
        view: View<'_>,
        first: u8,
        leaves: Vec<NumberedLeaf>,
    ) -> Result<BuiltPart, StateError>;

    /// Makes the nodes above all parts, which ascend by their first bytes. `leaves` is the number of leaves in all
    /// parts.
    ///
    /// # Errors
    /// A part that is malformed.
    fn join(&self, parts: Vec<Vec<u8>>, leaves: u64) -> Result<Joined, StateError>;
}

/// What accounts become.
#[derive(Default)]
pub struct Spread {
    /// Flat records, and nodes that belong to an account alone. Each list ascends [by table and key](Write::cmp_place),
    /// every range has as many lists, and the writes of a list come after those of the same list of the ranges before.
    pub records: Vec<Vec<Write>>,
    /// Leaves of the tree, in the order in which the tree numbers them.
    pub leaves: Vec<SpreadLeaf>,
}

/// A leaf, or leaves that lie together, on the way to their part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpreadLeaf {
    /// The key by which leaves are sorted.
    pub key: Hash,
    /// What the tree makes the leaf of.
    pub value: Vec<u8>,
}

/// A leaf with its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NumberedLeaf {
    /// The number: how many leaves were spread before it, from the first range on.
    pub number: u64,
    /// The key by which leaves are sorted.
    pub key: Hash,
    /// What the tree makes the leaf of.
    pub value: Vec<u8>,
}

/// The nodes of a range of leaves.
pub struct BuiltPart {
    /// Records of leaves, if the tree stores these by leaf key. They ascend [by table and key](Write::cmp_place), and come after
    /// those of the ranges before.
    pub records: Vec<Write>,
    /// Nodes, in any order. Their keys begin with a byte for the depth, so that those of one depth follow the nodes of that depth
    /// of the ranges before.
    pub nodes: Vec<Write>,
    /// What [`join`](Build::join) needs of the part.
    pub part: Vec<u8>,
}

/// The nodes above all parts.
pub struct Joined {
    /// What is written, in any order.
    pub writes: Vec<Write>,
    /// The root of the whole tree.
    pub root: B256,
}
