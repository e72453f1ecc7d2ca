//! Reads a chain without executing it, and prints how fast: `read_chain THREADS CHAIN...`
//!
//! This is the floor below any replay: reading, decoding, body roots and sender recovery.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arbor_chain::genesis::Network;
use arbor_chain::prepare::{Prefetch, PrefetchOptions, SignatureRules};
use arbor_chain::source::open_sources;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let threads: usize = arguments
        .next()
        .ok_or("usage: read_chain THREADS CHAIN...")?
        .parse()?;
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    decode(&paths)?;
    recover(&paths, threads)
}

/// Decodes every block on this thread.
fn decode(paths: &[PathBuf]) -> Result<(), Error> {
    let start = Instant::now();
    let (mut blocks, mut bytes) = (0u64, 0);
    for block in open_sources(paths)? {
        bytes += block?.rlp_len;
        blocks += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = bytes as f64 / 1e6;
    println!(
        "decode: {blocks} blocks, {megabytes:.1} MB in {seconds:.2} s, {:.0} MB/s",
        megabytes / seconds
    );
    Ok(())
}

/// Prepares every block for execution on `threads` threads.
fn recover(paths: &[PathBuf], threads: usize) -> Result<(), Error> {
    let pool = match threads {
        0 | 1 => None,
        _ => Some(Arc::new(
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()?,
        )),
    };
    let rules = SignatureRules::new(&Network::Sepolia.spec());
    let options = PrefetchOptions {
        pool,
        ..PrefetchOptions::default()
    };
    let start = Instant::now();
    let mut transactions = 0;
    for block in Prefetch::new(open_sources(paths)?, rules, options) {
        transactions += block?.senders.len();
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = transactions as f64 / seconds;
    println!("recover: {transactions} senders on {threads} threads in {seconds:.2} s, {rate:.0}/s");
    Ok(())
}
