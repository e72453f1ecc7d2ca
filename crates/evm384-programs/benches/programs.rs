//! Every contract beside what it stands for: time and gas, results compared first. `cargo bench -p arbor-evm384-programs --bench programs [ROUNDS]`; `arbor evm384 bench` prints the same.

use arbor_evm384::Backend;
use arbor_evm384_programs::rows::{Executed, Table};

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .and_then(|rounds| rounds.parse().ok());
    for contract in Table::measured() {
        let mut table = Table::of(contract);
        table.measure(rounds.unwrap_or(20)).expect("equal results");
        println!("{}", table.name);
        for row in &table.rows {
            let gas = row.gas.unwrap_or_default();
            println!(
                "  {:34} {:>10.1} us {gas:>9} gas",
                row.name,
                row.fastest.as_secs_f64() * 1e6
            );
        }
        if let Some(executed) = Executed::by(contract).filter(|executed| executed.mul > 0) {
            let times = executed.estimate(Backend::detect());
            println!("  operations alone {executed:?} {times:?}");
        }
    }
}
