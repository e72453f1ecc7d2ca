//! The assembler and the disassembler: each other's inverse, and errors with their places.

use arbor_evm384::asm::{Fault, assemble, disassemble};
use arbor_evm384::bls12_381::{Goal, Pairing, Part};
use arbor_evm384::{End, GasSchedule, Interface, Machine, Setup};
use proptest::prelude::*;

proptest! {
    #[test]
    fn disassembled_code_comes_back(
        code in prop::collection::vec(prop_oneof![any::<u8>(), 0xc0u8..=0xc2, 0x5fu8..=0x70], 0..400),
    ) {
        for interface in Interface::ALL {
            let text = disassemble(interface, &code);
            let again = assemble(interface, &text);
            prop_assert_eq!(again.as_deref(), Ok(&*code), "{}", text);
        }
    }

    #[test]
    fn no_text_panics(text in "[A-Za-z0-9@:=;_ \nx]{0,200}") {
        for interface in Interface::ALL {
            let _ = assemble(interface, &text);
        }
    }
}

#[test]
fn a_whole_contract_comes_back() {
    for interface in Interface::ON_MEMORY {
        let pairing = Pairing {
            part: Part::Check,
            interface,
            goal: Goal::Gas,
        };
        let code = pairing.program().code;
        let text = disassemble(interface, &code);
        assert!(text.contains("MULMODMONT384 "), "operations are named");
        assert_eq!(assemble(interface, &text), Ok(code));
    }
}

/// 5 + 4 modulo 7, then a jump over an INVALID, in every interface.
const PROGRAM: &str = "
    modulus = 0x80  ; where it lies
    x = 0
    y = 48
    push 5 x  MSTORE8
    push 4 y  mstore8
    PUSH1 7  PUSH32 128  MSTORE8
    ADD_X_Y
    @end JUMP
    INVALID
    end:
    push 32 0 RETURN
";

#[test]
fn a_program_runs_in_every_interface() {
    for interface in Interface::ON_MEMORY {
        let add = match interface {
            Interface::SetMod => "push 48 modulus SETMOD ADDMOD384 x x y",
            _ => "ADDMOD384 x x y modulus",
        };
        let code = assemble(interface, &PROGRAM.replace("ADD_X_Y", add)).expect("it is right");
        let mut machine = Machine::new(Setup::new(interface, GasSchedule::DRAFT), code);
        let outcome = machine.call(Vec::new().into(), 10_000).expect("ordinary");
        let mut expected = [0; 32];
        expected[0] = 2;
        assert_eq!(outcome.end, End::Returned(expected.to_vec().into()));
    }
}

#[test]
fn errors_say_where_and_what() {
    let error = |text: &str| {
        let error = assemble(Interface::V7, text).expect_err("it is wrong");
        (error.line, error.column, error.fault)
    };
    let name = |name: &str| name.to_owned();
    assert_eq!(
        error("STOP\n  FLY"),
        (2, 3, Fault::NoInstruction(name("FLY")))
    );
    assert_eq!(error("@there"), (1, 1, Fault::NoLabel(name("there"))));
    assert_eq!(error("a:\n a:"), (2, 2, Fault::Twice(name("a"))));
    assert_eq!(error("x = 1\nx = 2"), (2, 1, Fault::Twice(name("x"))));
    assert_eq!(
        error("PUSH1 0x100"),
        (1, 7, Fault::TooLarge(name("0x100"), 1))
    );
    assert_eq!(error("PUSH1 y"), (1, 7, Fault::NoNumber(name("y"))));
    assert_eq!(error("1a:"), (1, 1, Fault::NoName(name("1a"))));
    assert_eq!(error("é PUSH1"), (1, 1, Fault::NoInstruction(name("é"))));
    let (line, column, fault) = error("; ä\n  addmod384 1 2 3");
    assert_eq!((line, column), (2, 3));
    assert_eq!(
        fault.to_string(),
        "ADDMOD384 takes 4 numbers: out, x, y, modulus"
    );
    assert_eq!(
        error("SUBMOD384 0 0 0 0x100000000").2,
        Fault::TooLarge(name("0x100000000"), 4)
    );
}
