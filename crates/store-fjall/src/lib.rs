//! The store trait over fjall, the embedded default.
