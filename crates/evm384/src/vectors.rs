//! Cases for other implementers: code and calldata, and what comes of them under an amount of gas.
//!
//! Code copies calldata to memory, does something, and returns memory. Results of single operations are those of [`mod@crate::reference`], which no
//! fast code has a part in; everything else is what revm's interpreter gives with portable code.

use std::collections::HashMap;

use alloy_primitives::uint;
use revm::bytecode::opcode::*;

use crate::asm::assemble;
use crate::interface::setmod::SETMOD;
use crate::reference::{self, U384};
use crate::{
    Backend, GasSchedule, Interface, Machine, Offsets, Operation, Outcome, Refused, Setup,
    arithmetic::negated_inverse,
};

/// The modulus of BLS12-381's base field, over which operations are tried.
pub const MODULUS: U384 = uint!(0x1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab_U384);

/// A call and its outcome.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is about.
    pub name: String,
    /// The interface that is switched on.
    pub interface: Interface,
    /// What operations cost.
    pub schedule: GasSchedule,
    /// The contract.
    pub code: Vec<u8>,
    /// Its input.
    pub calldata: Vec<u8>,
    /// Gas for the call, of which no transaction takes its share.
    pub gas: u64,
    /// How it ends.
    pub outcome: Outcome,
    /// For a single operation what it computes, little-endian in the output from 0 on.
    pub result: Option<U384>,
}

impl Case {
    fn new(
        name: String,
        (interface, schedule): (Interface, GasSchedule),
        code: Vec<u8>,
        calldata: Vec<u8>,
    ) -> Result<Self, Refused> {
        const GAS: u64 = 1_000_000;
        let mut case = Self {
            name,
            interface,
            schedule,
            code,
            calldata,
            gas: GAS,
            outcome: Outcome {
                end: crate::End::Returned(Vec::new().into()),
                gas_used: 0,
            },
            result: None,
        };
        case.outcome = case.run(Backend::Portable, false)?;
        Ok(case)
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// If the EVM refuses the call.
    pub fn run(&self, backend: Backend, engine: bool) -> Result<Outcome, Refused> {
        let setup = Setup {
            interface: self.interface,
            schedule: self.schedule,
            backend,
            engine,
        };
        Machine::new(setup, self.code.clone()).call(self.calldata.clone().into(), self.gas)
    }

    /// The same with just the gas that it uses, and with one less.
    fn at_the_limit(&self) -> Result<[Self; 2], Refused> {
        let with = |what: &str, gas: u64| {
            let mut case = Self {
                name: format!("{}, {what}", self.name),
                gas,
                ..self.clone()
            };
            case.outcome = case.run(Backend::Portable, false)?;
            Ok(case)
        };
        let used = self.outcome.gas_used;
        Ok([
            with("just enough gas", used)?,
            with("one gas less", used - 1)?,
        ])
    }
}

/// Where a single operation has its operands, apart from each other.
const APART: Offsets = Offsets {
    out: 0,
    x: 48,
    y: 96,
    modulus: 144,
};

/// All cases of an interface.
///
/// # Errors
///
/// If the EVM refuses a call.
pub fn cases(interface: Interface, schedule: GasSchedule) -> Result<Vec<Case>, Refused> {
    let mut cases = Vec::new();
    if interface == Interface::Registers {
        registers(schedule, &mut cases)?;
    } else {
        values(interface, schedule, &mut cases)?;
        places(interface, schedule, &mut cases)?;
    }
    codes(interface, schedule, &mut cases)?;
    number(&mut cases);
    Ok(cases)
}

/// Tells cases of the same name apart.
fn number(cases: &mut [Case]) {
    let mut seen: HashMap<String, u32> = HashMap::new();
    for case in cases {
        let count = seen.entry(case.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            case.name = format!("{}, {count}", case.name);
        }
    }
}

fn operation(interface: Interface, operation: Operation, at: Offsets) -> Vec<u8> {
    let mut code = crate::build::Code::new(interface);
    if interface == Interface::SetMod {
        code.push(48);
        code.push(at.modulus.into());
        code.ops(&[SETMOD]);
    }
    code.operation(operation, at);
    code.finish()
}

/// Calldata to memory, something, memory returned.
fn around(body: &[u8]) -> Vec<u8> {
    let begin = [CALLDATASIZE, PUSH0, PUSH0, CALLDATACOPY];
    let end = [MSIZE, PUSH0, RETURN];
    [&begin, body, &end].concat()
}

/// Operands at which carries begin and end, and moduli of all kinds.
fn values(
    interface: Interface,
    schedule: GasSchedule,
    cases: &mut Vec<Case>,
) -> Result<(), Refused> {
    let one = U384::ONE;
    let half: U384 = one << 383;
    let moduli = [MODULUS, U384::MAX, half, U384::ZERO];
    for operation in Operation::ALL {
        for modulus in moduli {
            let low = modulus.as_limbs()[0];
            let inverse = if low % 2 == 1 {
                negated_inverse(low)
            } else {
                0
            };
            let operands = [
                U384::ZERO,
                one,
                modulus.wrapping_sub(one),
                modulus,
                half.wrapping_sub(one),
                U384::MAX,
            ];
            for x in operands {
                for y in operands {
                    let result = match operation {
                        Operation::Add => reference::add(x, y, modulus),
                        Operation::Sub => reference::sub(x, y, modulus),
                        Operation::Mul => reference::mul(x, y, modulus, inverse),
                    };
                    let mut calldata = vec![0; 48];
                    for number in [x, y, modulus] {
                        calldata.extend(number.to_le_bytes::<48>());
                    }
                    calldata.extend(inverse.to_le_bytes());
                    let name = format!(
                        "{} of {x:#x} and {y:#x} modulo {modulus:#x}",
                        operation.mnemonic()
                    );
                    let code = around(&self::operation(interface, operation, APART));
                    let mut case = Case::new(name, (interface, schedule), code, calldata)?;
                    case.result = Some(result);
                    cases.push(case);
                }
            }
        }
    }
    Ok(())
}

/// Operands that overlap, memory that grows, offsets out of reach.
fn places(
    interface: Interface,
    schedule: GasSchedule,
    cases: &mut Vec<Case>,
) -> Result<(), Refused> {
    let noise: Vec<u8> = (0..=255u8).map(|n| n.wrapping_mul(151) ^ 0x35).collect();
    let places = [
        [0, 0, 0, 144],
        [0, 24, 8, 144],
        [100, 96, 104, 144],
        [144, 0, 48, 144],
        [150, 0, 48, 144],
        [0, 0, 0, 0],
        [208, 48, 96, 144],
        [209, 48, 96, 144],
        [0, 1000, 96, 144],
        [0, 48, 2001, 144],
        [0, 48, 96, 3000],
        [u16::MAX.into(), 48, 96, 144],
        [u32::MAX, 48, 96, 144],
        [0, u32::MAX, 96, 144],
        [0, 48, u32::MAX, 144],
        [0, 48, 96, u32::MAX],
    ];
    for [out, x, y, modulus] in places {
        let reach = if interface == Interface::SetMod {
            u16::MAX.into()
        } else {
            u32::MAX
        };
        if [out, x, y].into_iter().any(|offset| offset > reach) {
            continue;
        }
        for operation in Operation::ALL {
            let at = Offsets { out, x, y, modulus };
            let name = format!("{} at {out}, {x}, {y}, {modulus}", operation.mnemonic());
            let code = around(&self::operation(interface, operation, at));
            let case = Case::new(name, (interface, schedule), code, noise.clone())?;
            if case.outcome.output().is_some() {
                cases.extend(case.at_the_limit()?);
            }
            cases.push(case);
        }
    }
    Ok(())
}

/// Code that is odd: what the stack or the code lacks, jumps into immediates.
fn codes(
    interface: Interface,
    schedule: GasSchedule,
    cases: &mut Vec<Case>,
) -> Result<(), Refused> {
    for opcode in interface.opcodes() {
        let immediates: usize = opcode
            .immediates
            .iter()
            .map(|immediate| immediate.bytes)
            .sum();
        let alone = |length: usize| [vec![opcode.byte], vec![0; length]].concat();
        let mut codes = vec![
            (
                format!("{} with an empty stack", opcode.mnemonic),
                alone(immediates),
            ),
            (format!("{} at the end of code", opcode.mnemonic), alone(0)),
        ];
        if immediates > 0 {
            let data = [opcode.byte, JUMPDEST, JUMPDEST];
            let into = [&[PUSH1, 4, JUMP][..], &data, &[JUMPDEST; 40]].concat();
            codes.push((
                format!("a jump into the immediate of {}", opcode.mnemonic),
                into,
            ));
            let behind = 4 + immediates as u8;
            let over = [&[PUSH1, behind, JUMP][..], &data, &[JUMPDEST; 40]].concat();
            codes.push((
                format!("a jump behind the immediate of {}", opcode.mnemonic),
                over,
            ));
        }
        for (name, code) in codes {
            cases.push(Case::new(name, (interface, schedule), code, Vec::new())?);
        }
    }
    Ok(())
}

/// EIP-6690: each length of a modulus, overlapping strides, what must be refused.
fn registers(schedule: GasSchedule, cases: &mut Vec<Case>) -> Result<(), Refused> {
    let interface = Interface::Registers;
    let set = "push 9 96 0 0 SETMODX push 3 96 0 STOREX";
    let bodies = [
        (
            "a sum, a difference and a product of each pair",
            "ADDMODX 3 1 0 1 1 1 2  SUBMODX 5 1 0 1 1 1 2  MULMODX 7 1 0 1 1 1 2",
        ),
        ("results over operands", "MULMODX 0 1 0 1 1 1 2"),
        ("one operand for all", "ADDMODX 3 2 0 0 2 0 3"),
        ("a register that is not there", "ADDMODX 9 1 0 1 1 1 1"),
        ("no operation", "ADDMODX 3 1 0 1 1 1 0"),
        ("results in one register", "ADDMODX 3 0 0 1 1 1 1"),
        (
            "the same field again",
            "push 0 0 0 0 SETMODX MULMODX 3 1 0 1 1 1 1",
        ),
        (
            "a second field",
            "push 2 8 88 1 SETMODX ADDMODX 0 1 0 1 1 1 1",
        ),
        (
            "memory that grows beside registers",
            "push 4000 MLOAD POP push 32 9000 KECCAK256 POP",
        ),
        ("too many registers", "push 257 96 0 1 SETMODX"),
        ("a name beyond 256", "push 1 96 0 257 SETMODX"),
    ];
    for bytes in [1usize, 8, 9, 32, 47, 48, 49, 64, 96] {
        for (kind, first, last) in [("odd", 0x97, 0x61), ("a power of two", 0x10, 0x00)] {
            let mut modulus = vec![if kind == "odd" { 0xb5 } else { 0 }; bytes];
            modulus[0] = first;
            modulus[bytes - 1] |= last;
            let size = bytes.next_multiple_of(8);
            let mut memory = vec![0; 96 - bytes];
            memory.extend(modulus);
            for value in [0x01, 0x0f, 0x07] {
                memory.extend(vec![0; size - 1]);
                memory.push(value);
            }
            // Wide values too: the second begins with a byte below the modulus's first.
            memory[96 + 2 * size - bytes] |= 0x0e;
            memory.resize(96 + 96 * 9, 0);
            for (name, body) in bodies {
                let text = format!("{set} {body} push 9 0 96 LOADX");
                let text = if name == "a second field" {
                    text.replace("push 9 0 96 LOADX", "push 2 0 96 LOADX")
                } else {
                    text
                };
                let body =
                    assemble(interface, &text).expect("invariant: the texts above are right");
                let name = format!("{name}, {kind}, {bytes} bytes");
                let case = Case::new(name, (interface, schedule), around(&body), memory.clone())?;
                if case.outcome.output().is_some() {
                    cases.extend(case.at_the_limit()?);
                }
                cases.push(case);
            }
        }
    }
    Ok(())
}
