//! `arbor evm384`: contracts with 384-bit arithmetic.

use std::cell::Cell;
use std::error::Error;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use alloy_primitives::{Bytes, hex};
use anyhow::{Context, Result, bail, ensure};
use arbor_chain::bounded_input::{Bound, BoundedInput, InputFault};
use arbor_evm384::asm::{Assembly, AssemblyError, Place, assemble_file, disassemble};
use arbor_evm384::debug::{Debugger, Symbols};
use arbor_evm384::{Backend, End, GasSchedule, Interface, Machine, Setup};
use arbor_evm384_programs::bls12_381::{Goal, Program};
use arbor_evm384_programs::rows::{Executed, Table};
use arbor_evm384_programs::{AMPLE_GAS, BuiltIn};
use arbor_metrics::Table as TextTable;
use serde_json::{Value, json};

use crate::args::{
    Evm384, Evm384Asm, Evm384Bench, Evm384Call, Evm384Debug, Evm384Gas, Evm384Includes,
    Evm384Rules, Evm384Run, Evm384Text, Evm384Vectors, GoalChoice,
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

fn goal(args: &Evm384Rules) -> Goal {
    match args.goal {
        GoalChoice::Time => Goal::Time,
        GoalChoice::Gas => Goal::Gas,
    }
}

/// A machine with a contract that is written here, and those that it calls.
fn machine(args: &Evm384Rules, contract: BuiltIn, setup: Setup) -> Result<(Machine, Program)> {
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
    let text = BoundedInput::open(path, Bound::PROGRAM)?.text()?;
    from_hex(&text).with_context(|| format!("{}: not hex", path.display()))
}

fn from_hex(text: &str) -> Result<Vec<u8>, hex::FromHexError> {
    let digits: String = text.split_whitespace().collect();
    hex::decode(&digits)
}

fn call(args: &Evm384Run) -> Result<()> {
    let Evm384Call {
        rules,
        calldata,
        gas,
    } = &args.call;
    let setup = Setup {
        engine: !args.no_engine,
        ..Setup::new(rules.interface, rules.schedule)
    };
    let (mut machine, sample) = match BuiltIn::named(&args.contract) {
        Some(built_in) => (machine(rules, built_in, setup)?.0, built_in.sample()),
        None => {
            let code = hex_file(Path::new(&args.contract))
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
        return output::json(&json!({ "end": end, "output": bytes, "gasUsed": outcome.gas_used }));
    }
    output::line(&format!("{end}, {} gas", outcome.gas_used))?;
    output::line(&bytes.to_string())
}

fn gas(args: &Evm384Gas) -> Result<()> {
    let Evm384Rules {
        interface,
        schedule,
        ..
    } = &args.rules;
    let Some(built_in) = BuiltIn::named(&args.contract) else {
        bail!(
            "'{}' is none of the contracts whose routines are known: {}",
            args.contract,
            names()
        );
    };
    let setup = Setup::new(*interface, *schedule);
    let (mut machine, program) = machine(&args.rules, built_in, setup)?;
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
            "codeBytes": program.code.len(), "sampleGas": used, "routines": routines,
        }));
    }
    let mut table = TextTable::new(["routine", "add", "sub", "mul", "copies", "gas"]);
    for (name, counts) in &program.routines {
        table.row([
            name.to_string(),
            counts.add.to_string(),
            counts.sub.to_string(),
            counts.mul.to_string(),
            counts.copies.to_string(),
            of_routine(*counts).map_or_else(|| "-".into(), |gas| gas.to_string()),
        ]);
    }
    output::table(&table)?;
    output::line(&format!(
        "{} bytes of code, of {CODE_LIMIT} that may be deployed; {used} gas for a sample of {sample_bytes} bytes of calldata",
        program.code.len(),
    ))
}

fn asm(args: &Evm384Asm) -> Result<()> {
    let Evm384Text { file, interface } = &args.text;
    let source = Source::of(file, &args.includes)?;
    let assembly = source.assemble(*interface)?;
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

/// A program's text, and the folder from which it may include files.
struct Source<'a> {
    file: &'a Path,
    text: String,
    /// `None`: any file may be included.
    folder: Option<PathBuf>,
    /// Bytes that included files may still have.
    left: Cell<u64>,
}

impl<'a> Source<'a> {
    /// Reads a program; `-` is standard input, which includes from the current folder.
    fn of(file: &'a Path, includes: &Evm384Includes) -> Result<Self> {
        let unreadable = || format!("'{}' cannot be read", file.display());
        let text = BoundedInput::open(file, Bound::PROGRAM).and_then(BoundedInput::text);
        let text = text.with_context(unreadable)?;
        let left = Cell::new(Bound::PROGRAM.bytes - text.len() as u64);
        let folder = match file.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let folder = match includes.include_outside {
            true => None,
            false => Some(folder.canonicalize().with_context(unreadable)?),
        };
        Ok(Self {
            file,
            text,
            folder,
            left,
        })
    }

    /// The code of the program and of the files that it includes.
    fn assemble(&self, interface: Interface) -> Result<Assembly, AssemblyError> {
        let main = self.file.to_string_lossy();
        let read = |name: &str| match name == main {
            true => Ok(self.text.clone()),
            false => {
                let included = self.included(Path::new(name));
                included.map_err(|error| error.to_string())
            }
        };
        assemble_file(interface, &main, &read)
    }

    /// The text of an included file. An error message shows words of the file, so a program that is passed on must not reach files that its writer
    /// could not read. Links and `..` are resolved before folders are compared.
    fn included(&self, name: &Path) -> Result<String, Box<dyn Error>> {
        let path = name.canonicalize()?;
        if let Some(folder) = &self.folder
            && !path.starts_with(folder)
        {
            let folder = folder.display();
            return Err(format!(
                "it lies outside the program's folder {folder}; --include-outside allows that"
            )
            .into());
        }
        let input = BoundedInput::open(&path, Bound::PROGRAM);
        let text = input
            .and_then(BoundedInput::text)
            .map_err(|error| error.fault)?;
        // The same file may be included again and again.
        let left = self.left.get().checked_sub(text.len() as u64);
        self.left
            .set(left.ok_or(InputFault::TooLong(Bound::PROGRAM))?);
        Ok(text)
    }
}

/// Text for the assembler, or else code in hex, with names for its positions.
fn debugged(args: &Evm384Debug, interface: Interface) -> Result<(Vec<u8>, Symbols)> {
    if args.contract == "-" {
        bail!("standard input has the debugger's commands: give the program as a file");
    }
    let source = Source::of(Path::new(&args.contract), &args.includes)?;
    match (source.assemble(interface), from_hex(&source.text)) {
        (Ok(assembly), _) => {
            let symbols = Symbols::from(&assembly);
            Ok((assembly.code, symbols))
        }
        (Err(_), Ok(code)) => {
            let symbols = Symbols::of_code(interface, &code);
            Ok((code, symbols))
        }
        (Err(error), Err(_)) => Err(error.into()),
    }
}

fn debug(args: &Evm384Debug) -> Result<()> {
    let Evm384Call {
        rules,
        calldata,
        gas,
    } = &args.call;
    let interface = rules.interface;
    let setup = Setup::new(interface, rules.schedule);
    let (mut machine, symbols, sample) = match BuiltIn::named(&args.contract) {
        Some(built_in) => {
            let (machine, program) = machine(rules, built_in, setup)?;
            (machine, Symbols::from(&program), built_in.sample())
        }
        None => {
            let (code, symbols) = debugged(args, interface)?;
            (Machine::new(setup, code), symbols, Vec::new())
        }
    };
    let commands = BoundedInput::open(Path::new("-"), Bound::DEBUGGER)?;
    let commands = BufReader::new(commands);
    let debugger = Debugger::new(interface, symbols, commands, std::io::stdout());
    let broken_off = debugger.broken_off();
    machine.observe(Box::new(debugger));
    let calldata = calldata.clone().unwrap_or_else(|| sample.into());
    let outcome = machine.call(calldata, *gas)?;
    match broken_off.get() {
        Some(Some(error)) => bail!("{error}"),
        Some(None) => return output::line("broken off"),
        None => {}
    }
    match outcome.end {
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
    let say = |line: &str| match args.json {
        true => Ok(()),
        false => output::line(line),
    };
    let mut tables = serde_json::Map::new();
    for contract in Table::measured() {
        let mut table = Table::of(contract);
        table.measure(args.rounds)?;
        let mut shown = TextTable::new([table.name, "microseconds", "gas"]);
        for row in &table.rows {
            shown.row([
                row.name.to_string(),
                format!("{:.1}", row.fastest.as_secs_f64() * 1e6),
                row.gas.map_or_else(String::new, |gas| gas.to_string()),
            ]);
        }
        if !args.json {
            output::table(&shown)?;
        }
        let rows: Vec<Value> = table.rows.iter().map(|row| {
            json!({ "name": row.name, "fastest_s": row.fastest.as_secs_f64(), "gas": row.gas })
        }).collect();
        for (name, share) in table.product_shares() {
            say(&format!(
                "products are {:.0} % of the time of {name}",
                100.0 * share
            ))?;
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
            say(&format!(
                "estimate from the number of operations: {:.1} microseconds, {:.0} % for {} multiplications, the rest \
                 for {} additions",
                (mul + add) * 1e6,
                100.0 * mul / (mul + add),
                executed.mul,
                executed.add
            ))?;
            entry["operations"] = json!({
                "mul": executed.mul, "add": executed.add, "mul_s": mul, "add_s": add,
            });
        }
        say("")?;
        tables.insert(table.name.to_owned(), entry);
    }
    let envelope = measurement.finish(Value::Object(tables));
    if args.json {
        output::json(&envelope)?;
    }
    files::write_report(args.report.as_deref(), &envelope)
}
