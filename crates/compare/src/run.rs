//! A run that is done: one replay of the chain under one side.

use arbor_metrics::Envelope;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A run that is done, as its record in `runs/` has it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The side's name.
    pub side: String,
    /// Its number, from 1 on.
    pub repetition: usize,
    /// The command lines, in their order. The first one is measured.
    pub commands: Vec<String>,
    /// What was in the operating system's cache, and how it came to be so.
    pub cache: String,
    /// A digest of the roots after all blocks, which is the same in all runs of a side.
    pub roots: String,
    /// The replay's own report.
    pub report: Envelope,
    /// What `arbor bench database` found: costs of proofs, updates and witnesses, of a side's first run.
    pub survey: Option<Value>,
    /// What `arbor inspect` found: records, nodes and history, of a side's first run.
    pub inspection: Option<Value>,
    /// The `block` and the `tables` of inspections along the chain, by ascending block. Of a side's first run.
    pub growth: Vec<Value>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Cache, Plan, Program, Side};

    /// A plan for tests, with these sides.
    pub(crate) fn plan(sides: &[&str]) -> Plan {
        let side = |name: &&str| Side::parse(name).expect("a side");
        Plan {
            program: Program {
                versions: arbor_metrics::Versions::default(),
                bytes: 1,
                written: 2,
            },
            chain: vec![("chain.rlp".to_owned(), 3)],
            paths: vec!["chain.rlp".into()],
            genesis: None,
            state: None,
            trees: sides.iter().map(side).collect(),
            repetitions: 2,
            cache: Cache::Warm,
            memory_bytes: 1 << 20,
            write_back_bytes: None,
            retain: "128".to_owned(),
            threads: 1,
            to: None,
            throttle: None,
            witnesses: 0,
            verify: true,
            survey: false,
            growth: 0,
        }
    }

    /// A finished run for tests.
    pub(crate) fn done(side: &str, repetition: usize, wall: f64, nodes: u64) -> Run {
        let mut report = arbor_metrics::Measurement::start("replay", Default::default()).finish(
            serde_json::json!({
                "head": { "block": 9, "hash": "0x09", "stateRoot": format!("0x{side}") },
                "total": {
                    "first_block": 1, "blocks": 9, "transactions": 5, "gas": 7, "nodes": nodes,
                },
                "counters": { "hashes": 2 * nodes, "roots": 0 },
                "start_s": 0.0,
                "end_s": 0.0,
                "database": { "bytes": { "flat": 10, "nodes": 20 }, "cache_hits": nodes },
            }),
        );
        report.wall_seconds = wall;
        Run {
            side: side.to_owned(),
            repetition,
            commands: vec![format!("arbor replay --tree {side}")],
            cache: "warm".to_owned(),
            roots: side.to_owned(),
            report,
            survey: None,
            inspection: None,
            growth: Vec::new(),
        }
    }
}
