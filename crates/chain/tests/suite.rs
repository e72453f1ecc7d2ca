//! All integration tests of this crate in one program: it is linked once.

mod accesses;
mod executor;
mod genesis;
mod paid_chunks;
mod pipeline;
mod prepare;
mod replay;
mod sources;
mod together;
mod witnesses;
