//! Versioned tables of opaque bytes: write-back cache, atomic flush, reverse diffs.
