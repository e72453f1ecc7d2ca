//! Blocks from files: RLP exports as geth writes them, era1 files, and folders of either.
//!
//! [`open_sources`] looks at every path first (the first header of each file, and for era1 the index and the last
//! header), puts the files in order and rejects gaps, overlaps and mixed networks by name. The [`ChainInput`] that it
//! returns then streams: it holds one block at a time, whatever the size of the file, and checks that every block
//! names its predecessor as parent.
//!
//! ```no_run
//! use arbor_chain::source::open_sources;
//!
//! for block in open_sources(&["chain/".into()])? {
//!     let block = block?;
//!     println!("{} {} {} transactions", block.block.header.number, block.hash, block.transaction_bytes.len());
//! }
//! # Ok::<(), arbor_chain::source::SourceError>(())
//! ```
//!
//! An export is the RLP of blocks, one after the other, plain or gzip (any number of members). An era1 file is a
//! sequence of e2store entries: a version, then per block the header, the body and the receipts (each snappy-framed)
//! and the total difficulty, then an accumulator of the headers and an index of offsets; see [`era1`].

mod accumulator;
mod block;
mod discover;
mod e2store;
pub mod era1;
mod error;
mod export;
mod input;
mod length;
mod link;
mod price;
mod receipts;
mod room;
mod snappy;
mod transaction;

pub use block::{MAX_BLOCK_BYTES, RawBlock, SourceBlock};
pub use error::{BrokenLink, Position, SourceError};
pub use input::{ChainInput, open_sources};
pub use length::ChainLength;
pub use link::Link;
pub use receipts::Era1Receipts;
pub use transaction::Transaction;
