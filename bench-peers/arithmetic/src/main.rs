//! Times arithmetic of the scalar field of BLS12-381 and of the curve over it, by arbor, arkworks and blst, on the same inputs.
//! Prints rows as JSON, each with a digest of its results, by which `arithmetic.py` compares.
//!
//! Usage: `arithmetic-bench [MILLISECONDS]`, for each row.

mod arkworks;
mod blst;
mod ours;

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Elements in each list of inputs.
pub const COUNT: usize = 1024;
/// Points and scalars of a sum of products.
pub const TERMS: usize = 256;
/// The inputs are 1, 2, 3, ... over this number.
pub const DIVISOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Rows of one library.
pub struct Rows {
    library: &'static str,
    budget: Duration,
    lines: Vec<String>,
}

impl Rows {
    /// Times `job`, which does `operations` and returns what `bytes` turns into comparable bytes; the least of all repetitions.
    pub fn time<T>(
        &mut self,
        name: &str,
        operations: usize,
        mut job: impl FnMut() -> T,
        bytes: impl FnOnce(T) -> Vec<u8>,
    ) {
        let results = arbor_hashing::keccak256(&bytes(job()));
        let digest: String = results.iter().map(|b| format!("{b:02x}")).collect();
        let mut least = Duration::MAX;
        let begin = Instant::now();
        while begin.elapsed() < self.budget {
            let start = Instant::now();
            black_box(job());
            least = least.min(start.elapsed());
        }
        let ns = least.as_secs_f64() * 1e9 / operations as f64;
        let library = self.library;
        self.lines.push(format!(
            r#"{{"library": "{library}", "name": "{name}", "ns": {ns:.2}, "digest": "{digest}"}}"#
        ));
    }
}

fn main() {
    let budget = std::env::args().nth(1);
    let budget = budget.map_or(300, |ms| ms.parse().expect("a number of milliseconds"));
    type Library = (&'static str, fn(&mut Rows));
    let libraries: [Library; 3] = [
        ("arbor", ours::rows),
        ("arkworks", arkworks::rows),
        ("blst", blst::rows),
    ];
    let mut lines = Vec::new();
    for (library, measure) in libraries {
        let mut rows = Rows {
            library,
            budget: Duration::from_millis(budget),
            lines: Vec::new(),
        };
        measure(&mut rows);
        lines.append(&mut rows.lines);
    }
    println!("[{}]", lines.join(",\n"));
}
