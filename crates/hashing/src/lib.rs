//! Batched hash functions in SIMD lanes.
