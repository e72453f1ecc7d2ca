//! Positions in code.

/// A position in code that may not be known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub(super) usize);
