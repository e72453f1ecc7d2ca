//! The debugger by its commands and answers.

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

use arbor_evm384::asm::assemble_file;
use arbor_evm384::debug::{Debugger, Symbols};
use arbor_evm384::{GasSchedule, Interface, Machine, Setup};
use arbor_evm384_programs::bls12_381::{Goal, Pairing, Part};

#[derive(Clone, Default)]
struct Answers(Arc<Mutex<Vec<u8>>>);

impl Write for Answers {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("one thread").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn debugged(
    interface: Interface,
    symbols: Symbols,
    code: Vec<u8>,
    calldata: Vec<u8>,
    commands: &str,
) -> Vec<String> {
    let answers = Answers::default();
    let commands = Cursor::new(commands.to_owned().into_bytes());
    let debugger = Debugger::new(interface, symbols, commands, answers.clone());
    let mut machine = Machine::new(Setup::new(interface, GasSchedule::DRAFT), code);
    machine.observe(Box::new(debugger));
    machine.call(calldata.into(), 16_000_000).expect("ordinary");
    let text = answers.0.lock().expect("one thread").clone();
    let text = String::from_utf8(text).expect("text");
    text.lines().map(str::to_owned).collect()
}

const SQUARES: &str = "slot m = 0
slot f = 64 2
macro square x
    MULMODMONT384 x x x m
end
push 7 m MSTORE8
; -1/7 modulo 2^64
push 0xb7 48 MSTORE8 push 0x6d 49 MSTORE8 push 0xdb 50 MSTORE8 push 0xb6 51 MSTORE8
push 0x6d 52 MSTORE8 push 0xdb 53 MSTORE8 push 0xb6 54 MSTORE8 push 0x6d 55 MSTORE8
push 5 f MSTORE8
square f
ADDMOD384 f+48 f f m
STOP
";

fn squares(interface: Interface, commands: &str) -> Vec<String> {
    let assembly = assemble_file(interface, "a.easm", &|_| Ok(SQUARES.to_owned())).expect("right");
    debugged(
        interface,
        Symbols::from(&assembly),
        assembly.code,
        Vec::new(),
        commands,
    )
}

#[test]
fn it_steps_by_line_and_names_slots() {
    let answers = squares(
        Interface::V7,
        "where\nbreak at line 4\nbreak f[1]\ncontinue\nop\nprint f\ncontinue\nfly\nbreak g\n",
    );
    assert_eq!(answers[0], "a.easm line 6: PUSH1");
    assert_eq!(answers[2], "a.easm line 4, in square of line 11: PUSH13");
    assert_eq!(
        answers[3],
        "a.easm line 4, in square of line 11: MULMODMONT384 f[0] f[0] f[0]"
    );
    // No modulus has been used yet.
    assert!(
        answers[4].starts_with("f[0] = no field element yet (Montgomery 0x5)"),
        "{answers:#?}"
    );
    // 2^384 is 1 modulo 7: 25 is 4, twice that is 1.
    assert_eq!(answers[6], "f[1] was written at a.easm line 12");
    assert_eq!(answers[7], "f[1] = 0x1 (Montgomery 0x1)");
    assert_eq!(answers[8], "a.easm line 13: STOP");
    assert!(answers[9].starts_with("step [N]"));
    assert_eq!(
        answers.last().map(String::as_str),
        Some("there is no slot 'g'")
    );
    let lines = squares(Interface::Immediate, "step 4\nstep\nquit\n");
    assert_eq!(
        lines[1],
        "a.easm line 4, in square of line 11: MULMODMONT384 f[0] f[0] f[0]"
    );
    assert_eq!(lines[2], "a.easm line 12: ADDMOD384 f[1] f[0] f[0]");
}

/// Modulo 7 the product of 3 and 5 is 1, and twice that is 2; registers hold other bits, and are shown as plain numbers.
#[test]
fn it_shows_registers_of_the_active_field() {
    let text = "push 7 31 MSTORE8 push 3 39 MSTORE8 push 5 47 MSTORE8
push 3 1 31 9 SETMODX
push 2 32 0 STOREX
MULMODX 2 1 0 1 1 1 1
ADDMODX 2 1 2 1 2 1 1
STOP
";
    let interface = Interface::Registers;
    let assembly = assemble_file(interface, "r.easm", &|_| Ok(text.to_owned())).expect("right");
    let commands = "registers\nop\nop\nregisters\ninstruction\nregisters 2 3 x\ncontinue\n";
    let symbols = Symbols::from(&assembly);
    let answers = debugged(interface, symbols, assembly.code, Vec::new(), commands);
    let expected = [
        "r.easm line 1: PUSH1",
        "no field is active",
        "r.easm line 4: MULMODX out 2 out_stride 1 x 0 x_stride 1 y 1 y_stride 1 count 1",
        "r.easm line 5: ADDMODX out 2 out_stride 1 x 2 x_stride 1 y 2 y_stride 1 count 1",
        "3 registers modulo 0x7",
        "register 0 = 0x3",
        "register 1 = 0x5",
        "register 2 = 0x1",
        "r.easm line 6: STOP",
        "3 registers modulo 0x7",
        "register 2 = 0x2",
        "there is no register '3'",
        "there is no register 'x'",
    ];
    assert_eq!(answers, expected);
}

/// The whole pairing agrees with what was written; with one offset changed, the first wrong value is found.
#[test]
fn it_finds_the_first_difference_from_what_was_written() {
    for interface in Interface::ON_MEMORY {
        let program = Pairing {
            part: Part::FinalExponentiation,
            interface,
            goal: Goal::Time,
        };
        let program = program.program();
        let run = |code: Vec<u8>| {
            let calldata = Part::FinalExponentiation.sample();
            let symbols = Symbols::from(&program);
            debugged(interface, symbols, code, calldata, "continue\n")
        };
        let right = run(program.code.clone());
        assert_eq!(right.len(), 1, "{right:#?}");
        let mut code = program.code.clone();
        // An operation in the middle of the first routine with more than a hundred gets another operand.
        let (range, _) = program
            .placed
            .iter()
            .find(|(_, routine)| routine.counts().total() > 100)
            .expect("there are long routines");
        let (width, low_byte) = match interface {
            // The push, thirteen or fourteen bytes, the opcode; x's lowest byte.
            Interface::V7 => (16, 6),
            Interface::Immediate => (17, 5),
            _ => (7, 3),
        };
        let at = range.start + 10 * width + low_byte;
        code[at] ^= 48;
        let wrong = run(code);
        assert!(wrong.len() > 1, "{interface}");
        assert!(wrong[1].starts_with("difference at "), "{wrong:#?}");
        assert!(
            wrong[1].contains("but what was written there is"),
            "{wrong:#?}"
        );
    }
}
