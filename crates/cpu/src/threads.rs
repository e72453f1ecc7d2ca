//! Work spread over the threads of the current rayon pool; without the feature `rayon` done in turn.
//!
//! Crates that compute name these functions and traits, never rayon itself, so that they also build for targets without threads (wasm32).
//! Without the feature they are those of [`serial`].

pub mod serial;

#[cfg(feature = "rayon")]
pub use rayon::{current_num_threads, join, prelude};
#[cfg(not(feature = "rayon"))]
pub use serial::{current_num_threads, join, prelude};
