//! The study without the rest of `arbor`: `cargo bench -p arbor-lab --bench commitments -- [--threads N] [--tables BYTES] [--json] [GROUP...]`.
//!
//! It builds in a tenth of the time.

use arbor_allocations::Counting;
use arbor_lab::{
    commitments::{Group, LEGEND, Settings, heading, run, table},
    measure::Budget,
};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting<mimalloc::MiMalloc> = Counting(mimalloc::MiMalloc);

fn main() {
    let mut settings = Settings {
        groups: Vec::new(),
        budget: Budget(Duration::from_millis(500)),
        table_bytes: Settings::TABLE_BYTES,
        openings: Settings::OPENINGS.to_vec(),
    };
    let (mut threads, mut json) = (1, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let number = arguments.next().and_then(|number| number.parse().ok());
            number.expect("a number behind the option")
        };
        match argument.as_str() {
            // What cargo adds.
            "--bench" => {}
            "--threads" => threads = number(),
            "--tables" => settings.table_bytes = number(),
            "--json" => json = true,
            group => settings
                .groups
                .push(group.parse::<Group>().expect("a group")),
        }
    }
    if settings.groups.is_empty() {
        settings.groups = Group::ALL.to_vec();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .expect("threads");
    let results = pool.install(|| run(&settings, &mut |_| {}));
    let results = results.expect("all results are right");
    if json {
        println!("{}", serde_json::to_string(&results).expect("JSON"));
    } else {
        println!(
            "{}\n\n{}\n{LEGEND}",
            heading(&results),
            table(&results).text(None)
        );
    }
}
