//! `arbor evm384`: contracts with 384-bit arithmetic.

use std::io::{self, BufReader, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use alloy_primitives::{Bytes, hex};
use anyhow::{Context, Result, bail, ensure};
use arbor_evm384::asm::{Assembly, Place, assemble_file, disassemble};
use arbor_evm384::bls12_381::{Goal, Program};
use arbor_evm384::debug::{Debugger, Symbols};
use arbor_evm384::rows::{Executed, Table};
use arbor_evm384::{AMPLE_GAS, Backend, BuiltIn, End, GasSchedule, Interface, Machine, Setup};
use serde_json::{Value, json};

use crate::args::{
    Evm384, Evm384Asm, Evm384Bench, Evm384Call, Evm384Contract, Evm384Gas, Evm384Run, Evm384Text,
    Evm384Vectors, GoalChoice,
};
use crate::{files, output, report};

/// EIP-170's limit for deployed code, in bytes.
const CODE_LIMIT: usize = 24_576;

pub(crate) fn run(word: &Evm384) -> Result<()> {
    match word {
        Evm384::Run(args) => call(args),
        Evm384::Gas(args) => gas(args),
        Evm384::Bench(args) => bench(args),
        Evm384::Asm(args) => asm(args),
        Evm384::Disasm(args) => disasm(args),
        Evm384::Debug(args) => debug(args),
        Evm384::Vectors(args) => vectors(args),
    }
}

fn goal(args: &Evm384Contract) -> Goal {
    match args.goal {
        GoalChoice::Time => Goal::Time,
        GoalChoice::Gas => Goal::Gas,
    }
}

/// A machine with a contract that is written here, and those that it calls.
fn machine(args: &Evm384Contract, contract: BuiltIn, setup: Setup) -> Result<(Machine, Program)> {
    ensure!(
        Interface::ON_MEMORY.contains(&args.interface),
        "the built-in contracts have no form for {}, whose operands are not in memory",
        args.interface
    );
    let program = contract.program(args.interface, goal(args));
    let others = contract.others(args.interface, goal(args));
    let machine = Machine::with_others(setup, program.code.clone(), &others);
    Ok((machine, program))
}

fn names() -> String {
    BuiltIn::ALL.map(BuiltIn::name).join(", ")
}

fn hex_file(path: &Path) -> Result<Vec<u8>> {
    let text = String::from_utf8(output::read_input(path)?).context("the file is no text")?;
    let digits: String = text.split_whitespace().collect();
    hex::decode(&digits).with_context(|| format!("{}: not hex", path.display()))
}

fn call(args: &Evm384Run) -> Result<()> {
    let Evm384Call {
        contract,
        calldata,
        gas,
    } = &args.call;
    let setup = Setup {
        engine: !args.no_engine,
        ..Setup::new(contract.interface, contract.schedule)
    };
    let (mut machine, sample) = match BuiltIn::named(&contract.contract) {
        Some(built_in) => (machine(contract, built_in, setup)?.0, built_in.sample()),
        None => {
            let code = hex_file(Path::new(&contract.contract))
                .with_context(|| format!("the built-in contracts are: {}", names()))?;
            (Machine::new(setup, code), Vec::new())
        }
    };
    let calldata = calldata.clone().unwrap_or_else(|| sample.into());
    let outcome = machine.call(calldata, *gas)?;
    let (end, bytes) = match &outcome.end {
        End::Returned(bytes) => ("returned".to_owned(), bytes.clone()),
        End::Reverted(bytes) => ("reverted".to_owned(), bytes.clone()),
        End::Halted(reason) => (format!("halted: {reason:?}"), Bytes::new()),
    };
    if args.json {
        return output::json(&json!({ "end": end, "output": bytes, "gas_used": outcome.gas_used }));
    }
    output::line(&format!("{end}, {} gas", outcome.gas_used))?;
    output::line(&bytes.to_string())
}

fn gas(args: &Evm384Gas) -> Result<()> {
    let Evm384Contract {
        contract,
        interface,
        schedule,
        ..
    } = &args.contract;
    let Some(built_in) = BuiltIn::named(contract) else {
        bail!(
            "'{contract}' is none of the contracts whose routines are known: {}",
            names()
        );
    };
    let setup = Setup::new(*interface, *schedule);
    let (mut machine, program) = machine(&args.contract, built_in, setup)?;
    let sample = built_in.sample();
    let sample_bytes = sample.len();
    let used = machine.call(sample.into(), AMPLE_GAS)?.gas_used;
    if let Some(path) = &args.code {
        files::write(path, hex::encode(&program.code).as_bytes())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    // Without EVM384 an operation is a call of a subroutine, and no schedule says what that costs.
    let of_routine = |counts: arbor_evm384::build::Counts| {
        let uses = built_in.uses_operations();
        uses.then(|| counts.gas(*interface, *schedule))
    };
    if args.json {
        let routines: Vec<Value> = program
            .routines
            .iter()
            .map(|(name, counts)| {
                json!({
                    "name": name, "add": counts.add, "sub": counts.sub, "mul": counts.mul,
                    "copies": counts.copies, "gas": of_routine(*counts),
                })
            })
            .collect();
        return output::json(&json!({
            "code_bytes": program.code.len(), "sample_gas": used, "routines": routines,
        }));
    }
    output::line(&format!(
        "{:24} {:>6} {:>6} {:>6} {:>7} {:>7}",
        "routine", "add", "sub", "mul", "copies", "gas"
    ))?;
    for (name, counts) in &program.routines {
        output::line(&format!(
            "{name:24} {:>6} {:>6} {:>6} {:>7} {:>7}",
            counts.add,
            counts.sub,
            counts.mul,
            counts.copies,
            of_routine(*counts).map_or_else(|| "-".into(), |gas| gas.to_string())
        ))?;
    }
    output::line(&format!(
        "{} bytes of code, of {CODE_LIMIT} that may be deployed; {used} gas for a sample of {sample_bytes} bytes of calldata",
        program.code.len(),
    ))
}

fn asm(args: &Evm384Asm) -> Result<()> {
    let Evm384Text { file, interface } = &args.text;
    let assembly = assembled(file, *interface)?;
    if let Some(path) = &args.map {
        let written = files::write_by(path, &mut |file| write_map(file, &assembly));
        written.with_context(|| format!("writing {}", path.display()))?;
    }
    output::line(&hex::encode(assembly.code))
}

/// Writes the source map, one instruction after the other: as text it has some hundred times the code's length, and more where macros expand in macros.
fn write_map(file: &mut dyn Write, assembly: &Assembly) -> io::Result<()> {
    let place =
        |place: &Place| json!({ "file": &*place.file, "line": place.line, "column": place.column });
    write!(file, "{{\"instructions\":[")?;
    for (index, mapped) in assembly.map.iter().enumerate() {
        let expansions: Vec<Value> = assembly
            .expansions(mapped)
            .into_iter()
            .map(|(name, used)| json!({ "macro": name, "used": place(&used) }))
            .collect();
        let instruction = json!({ "position": mapped.position, "place": place(&mapped.place), "expansions": expansions });
        let separator = if index == 0 { "" } else { "," };
        write!(file, "{separator}{instruction}")?;
    }
    let slots: Vec<Value> = assembly
        .slots
        .iter()
        .map(|slots| json!({ "name": slots.name, "offset": slots.offset, "count": slots.count }))
        .collect();
    writeln!(file, "],\"slots\":{}}}", json!(slots))
}

/// Code from a file and what it includes; `-` is standard input, which includes from the current folder.
fn assembled(file: &Path, interface: Interface) -> Result<Assembly> {
    let read = |name: &str| -> Result<String, String> {
        let bytes = output::read_input(Path::new(name)).map_err(|error| format!("{error:#}"))?;
        String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())
    };
    Ok(assemble_file(interface, &file.to_string_lossy(), &read)?)
}

fn debug(args: &Evm384Call) -> Result<()> {
    let Evm384Call {
        contract,
        calldata,
        gas,
    } = args;
    let interface = contract.interface;
    let setup = Setup::new(interface, contract.schedule);
    let (mut machine, symbols, sample) = match BuiltIn::named(&contract.contract) {
        Some(built_in) => {
            let (machine, program) = machine(contract, built_in, setup)?;
            (machine, Symbols::from(&program), built_in.sample())
        }
        None => {
            if contract.contract == "-" {
                bail!("standard input has the debugger's commands: give the program as a file");
            }
            let assembly = assembled(Path::new(&contract.contract), interface)?;
            let symbols = Symbols::from(&assembly);
            (Machine::new(setup, assembly.code), symbols, Vec::new())
        }
    };
    let commands = BufReader::new(std::io::stdin());
    let debugger = Debugger::new(interface, symbols, commands, std::io::stdout());
    let broken_off = debugger.broken_off();
    machine.observe(Box::new(debugger));
    let calldata = calldata.clone().unwrap_or_else(|| sample.into());
    let outcome = machine.call(calldata, *gas)?;
    match outcome.end {
        _ if broken_off.load(Ordering::Relaxed) => output::line("broken off"),
        End::Halted(reason) => output::line(&format!("halted: {reason:?}")),
        End::Returned(_) => output::line(&format!("ended, {} gas", outcome.gas_used)),
        End::Reverted(_) => output::line(&format!("reverted, {} gas", outcome.gas_used)),
    }
}

fn vectors(args: &Evm384Vectors) -> Result<()> {
    let interfaces = Interface::ALL.into_iter();
    let mut cases = Vec::new();
    for interface in interfaces.filter(|known| args.interface.is_none_or(|wanted| wanted == *known))
    {
        cases.extend(arbor_evm384::vectors::cases(interface, args.schedule)?);
    }
    let cases = cases.into_iter().map(|case| {
        let (end, output, halt) = match case.outcome.end {
            End::Returned(output) => ("returned", Some(output), None),
            End::Reverted(output) => ("reverted", Some(output), None),
            End::Halted(reason) => ("halted", None, Some(format!("{reason:?}"))),
        };
        json!({
            "name": case.name, "interface": case.interface.name(), "code": hex::encode_prefixed(case.code),
            "calldata": hex::encode_prefixed(case.calldata), "gas": case.gas, "gas_used": case.outcome.gas_used,
            "end": end, "output": output, "halt": halt, "result": case.result,
        })
    });
    let GasSchedule {
        add,
        sub,
        mul,
        set_modulus,
        ..
    } = args.schedule;
    output::json(&json!({
        "fork": "osaka",
        "schedule": { "add": add, "sub": sub, "mul": mul, "setmod": set_modulus },
        "cases": cases.collect::<Vec<_>>(),
    }))
}

fn disasm(args: &Evm384Text) -> Result<()> {
    let text = disassemble(args.interface, &hex_file(&args.file)?);
    output::line(text.trim_end())
}

fn bench(args: &Evm384Bench) -> Result<()> {
    files::check_report(args.report.as_deref(), None)?;
    let mut measurement = report::measure("evm384 bench");
    measurement.setting("rounds", args.rounds);
    measurement.setting("schedule", "a");
    let mut tables = serde_json::Map::new();
    for contract in Table::measured() {
        let mut table = Table::of(contract);
        table.measure(args.rounds)?;
        output::line(&format!(
            "{:40} {:>12} {:>10}",
            table.name, "microseconds", "gas"
        ))?;
        for row in &table.rows {
            let gas = row.gas.map_or_else(String::new, |gas| gas.to_string());
            let micros = row.fastest.as_secs_f64() * 1e6;
            output::line(&format!("  {:38} {micros:>12.1} {gas:>10}", row.name))?;
        }
        let rows: Vec<Value> = table.rows.iter().map(|row| {
            json!({ "name": row.name, "fastest_s": row.fastest.as_secs_f64(), "gas": row.gas })
        }).collect();
        for (name, share) in table.product_shares() {
            let what = format!("products' share in {name}");
            output::line(&format!("  {what:49} {:>3.0}%", 100.0 * share))?;
        }
        let shares: serde_json::Map<String, Value> = table
            .product_shares()
            .map(|(name, share)| (name.to_owned(), json!(share)))
            .collect();
        let executed = Executed::by(contract).filter(|_| contract.uses_operations());
        let mut entry = json!({ "rows": rows });
        if !shares.is_empty() {
            entry["product_shares"] = json!(shares);
        }
        if let Some(executed) = executed {
            let [mul, add] = executed
                .estimate(Backend::detect())
                .map(|time| time.as_secs_f64());
            output::line(&format!(
                "  {:38} {:>12.1}   {} multiplications, {:.0}% of it; {} additions",
                "estimate: its operations, by their number",
                (mul + add) * 1e6,
                executed.mul,
                100.0 * mul / (mul + add),
                executed.add
            ))?;
            entry["operations"] = json!({
                "mul": executed.mul, "add": executed.add, "mul_s": mul, "add_s": add,
            });
        }
        tables.insert(table.name.to_owned(), entry);
    }
    let envelope = measurement.finish(Value::Object(tables));
    files::write_report(args.report.as_deref(), &envelope)
}
