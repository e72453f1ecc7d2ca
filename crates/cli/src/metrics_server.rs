//! `--metrics ADDR`: what a long command does, for Prometheus to read.
//!
//! One thread answers `GET /metrics` in Prometheus' text format (version 0.0.4), one connection after another. The figures
//! are counters that exist anyway, so that the work is not slowed down.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use arbor_metrics::ProcessUsage;

use crate::{output, version};

/// How long a client may take for its request, and for reading the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes that are read of a request.
const REQUEST: u64 = 8 << 10;

/// How far a command is, as its progress says.
pub(crate) static PROGRESS: Figures = Figures::new();

/// Figures of a command's progress, kept for the server.
pub(crate) struct Figures {
    /// The last block that is done, plus one; 0 if there is none.
    block: AtomicU64,
    blocks: AtomicU64,
    gas: AtomicU64,
    /// The part of the work that is done, as the bits of a float from 0 to 1; not a number if it is not known.
    done: AtomicU64,
}

impl Figures {
    const fn new() -> Self {
        Self {
            block: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            gas: AtomicU64::new(0),
            done: AtomicU64::new(f64::NAN.to_bits()),
        }
    }

    /// Counts a block that is done.
    pub(crate) fn block(&self, number: u64, gas: u64) {
        self.block
            .store(number.saturating_add(1), Ordering::Relaxed);
        self.blocks.fetch_add(1, Ordering::Relaxed);
        self.gas.fetch_add(gas, Ordering::Relaxed);
    }

    /// Sets the part of the work that is done, 0 to 1.
    pub(crate) fn done(&self, part: f64) {
        self.done.store(part.to_bits(), Ordering::Relaxed);
    }
}

/// Parses where to listen: `PORT` (on 127.0.0.1) or `HOST:PORT`.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    found.ok_or_else(|| {
        format!("'{text}' is neither PORT nor HOST:PORT, such as 9400 or 0.0.0.0:9400")
    })
}

/// Begins to answer requests, if an address is given, until the process ends.
///
/// # Errors
/// An address that cannot be listened on.
pub(crate) fn serve(address: Option<SocketAddr>) -> Result<()> {
    let Some(address) = address else {
        return Ok(());
    };
    let context = || format!("--metrics: listening on {address}");
    let listener = TcpListener::bind(address).with_context(context)?;
    let bound = listener.local_addr().with_context(context)?;
    output::tell(&format!("metrics at http://{bound}/metrics"));
    let answer = move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away harms nobody else.
            let _ = answer(&stream);
        }
    };
    let thread = std::thread::Builder::new().name("metrics".into());
    thread.spawn(answer).with_context(context)?;
    Ok(())
}

fn answer(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = BufReader::new(stream.take(REQUEST));
    let mut request = String::new();
    lines.read_line(&mut request)?;
    // The headers are read, so that the client does not see its connection reset.
    let mut header = String::new();
    while lines.read_line(&mut header)? > 2 {
        header.clear();
    }
    let mut words = request.split_ascii_whitespace();
    let path = (words.next(), words.next());
    let (status, body) = match path {
        (Some("GET"), Some("/metrics")) => ("200 OK", text()),
        (Some("GET"), _) => ("404 Not Found", "see /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET alone\n".to_owned()),
    };
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// All figures in Prometheus' text format.
pub(crate) fn text() -> String {
    let mut text = String::new();
    let mut put = |name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display| {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "# HELP arbor_{name} {help}\n# TYPE arbor_{name} {kind}\narbor_{name} {value}\n"
        );
    };
    let get = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
    if let Some(block) = get(&PROGRESS.block).checked_sub(1) {
        put("block", "gauge", "The last block that is done.", &block);
    }
    let blocks = get(&PROGRESS.blocks);
    put("blocks_total", "counter", "Blocks that are done.", &blocks);
    let gas = get(&PROGRESS.gas);
    put(
        "gas_total",
        "counter",
        "Gas of the blocks that are done.",
        &gas,
    );
    let done = f64::from_bits(get(&PROGRESS.done));
    if !done.is_nan() {
        put(
            "done_ratio",
            "gauge",
            "The part of the work that is done, 0 to 1.",
            &done,
        );
    }
    for (name, count) in arbor_metrics::snapshot() {
        let help = arbor_metrics::described(name);
        put(&format!("{name}_total"), "counter", help, &count);
    }
    let usage = ProcessUsage::now();
    let seconds = [("user", usage.user_s), ("system", usage.sys_s)];
    for (mode, seconds) in seconds {
        if let Some(seconds) = seconds {
            let name = format!("cpu_{mode}_seconds_total");
            put(&name, "counter", "Processor time of the process.", &seconds);
        }
    }
    if let Some(bytes) = usage.peak_rss_bytes {
        put(
            "peak_memory_bytes",
            "gauge",
            "The most memory that was resident.",
            &bytes,
        );
    }
    if let Some(bytes) = usage.read_bytes {
        put(
            "disk_read_bytes_total",
            "counter",
            "Bytes that came from the disk.",
            &bytes,
        );
    }
    if let Some(bytes) = usage.written_bytes {
        put(
            "disk_written_bytes_total",
            "counter",
            "Bytes that went to the disk.",
            &bytes,
        );
    }
    let build = version::build();
    let _ = write!(
        text,
        "# HELP arbor_build_info The build of arbor.\n# TYPE arbor_build_info gauge\narbor_build_info{{version=\"{}\",commit=\"{}\",backend=\"{}\"}} 1\n",
        build.version, build.commit, build.backend
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_local() {
        assert_eq!(parse_address("9400"), Ok(([127, 0, 0, 1], 9400).into()));
        assert_eq!(parse_address("0.0.0.0:1"), Ok(([0, 0, 0, 0], 1).into()));
        for odd in ["", "x", "70000", "host:"] {
            assert!(parse_address(odd).is_err(), "{odd}");
        }
    }

    /// The part that is done was 0 as long as nobody knew it, and the counters had no descriptions.
    #[test]
    fn what_is_not_known_is_left_out_and_counters_are_described() {
        let figures = Figures::new();
        assert!(f64::from_bits(figures.done.load(Ordering::Relaxed)).is_nan());
        figures.done(0.25);
        assert_eq!(f64::from_bits(figures.done.load(Ordering::Relaxed)), 0.25);
        let text = text();
        let mut helps: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# HELP arbor_")?.split_once(' '))
            .filter(|(name, _)| {
                arbor_metrics::snapshot()
                    .iter()
                    .any(|(known, _)| name.strip_suffix("_total") == Some(known))
            })
            .map(|(_, help)| help)
            .collect();
        assert!(helps.iter().all(|help| !help.is_empty()));
        let all = helps.len();
        helps.sort_unstable();
        helps.dedup();
        assert_eq!((all, helps.len()), (arbor_metrics::snapshot().len(), all));
    }

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        PROGRESS.block(7, 21_000);
        for line in text().lines() {
            let is_comment = line.starts_with("# HELP arbor_") || line.starts_with("# TYPE arbor_");
            let is_sample = line.starts_with("arbor_")
                && line
                    .rsplit_once(' ')
                    .is_some_and(|(_, value)| value.parse::<f64>().is_ok());
            assert!(is_comment || is_sample, "{line}");
        }
        assert!(text().contains("\narbor_keccak_permutations_total "));
        assert!(text().contains("\narbor_block "));
    }
}
