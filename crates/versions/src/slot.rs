//! Entries of a layer, and what a put did to one.

use arbor_store::Value;

/// What a key held below a layer, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    Unknown,
    Absent,
    Present,
}

/// A key's newest value in a layer; `None` is a deletion.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) value: Option<Value>,
    pub(crate) base: Base,
}

/// What a [put](crate::hashed::Hashed::put) did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    /// Nothing: the key is absent and stays so.
    None,
    /// The entry is new, at this [place](crate::hashed::Hashed::at).
    Added(u32),
    /// A value of so many bytes was replaced.
    Replaced(usize),
    /// The entry is gone, and a value of so many bytes.
    Removed(usize),
}
