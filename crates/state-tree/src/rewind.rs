//! Older versions as if each were the latest, without holding in memory what changed since.

use std::sync::Arc;

use arbor_versions::{Meta, Version, View};

use crate::StateError;

/// Takes copies of a database back to older versions. The database stays as it is.
pub trait Rewind: Sync {
    /// About how many changed flat records may be in memory together; more are better rewound.
    fn changes(&self) -> u64;

    /// A copy at a version or shortly after it; `None` if the latest version, whose view is given, is no farther from it than memory
    /// allows. Whoever asks while another one is made waits.
    ///
    /// # Errors
    /// Those of [`to`](Self::to); the view's deadline.
    fn near(&self, view: View<'_>, meta: &Meta) -> Result<Option<Arc<dyn Rewound>>, StateError>;

    /// Takes a copy back to a retained version; `None` of one that is only in memory anyway.
    ///
    /// # Errors
    /// A version that is not retained; the store's errors, and those of the copy's.
    fn to(&self, version: Version) -> Result<Option<Arc<dyn Rewound>>, StateError>;
}

/// A copy of a database that was taken back.
pub trait Rewound: Send + Sync {
    /// The version that it was taken back to, as the latest one.
    fn view(&self) -> View<'_>;
}
