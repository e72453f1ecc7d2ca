//! The assembler and the disassembler: each other's inverse, and errors with their places.

use std::collections::HashMap;

use arbor_evm384::asm::{Assembly, AssemblyError, Fault, assemble, assemble_file, disassemble};
use arbor_evm384::{End, GasSchedule, Interface, Machine, Setup};
use arbor_evm384_programs::bls12_381::{Goal, Pairing, Part};
use proptest::prelude::*;
use revm::primitives::ruint::aliases::U512;

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
    fn no_text_panics(text in "([A-Za-z0-9@:=;_ \nx+*-]|macro a b\n|end\n|slot x = |a 1 |include a\n){0,200}") {
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

/// x y mod the base field's modulus of BLS12-381, bit by bit; all numbers are 48 bytes, little-endian.
fn product(x: &[u8; 48], y: &[u8; 48]) -> [u8; 48] {
    const MODULUS: &str = "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624\
                           1eabfffeb153ffffb9feffffffffaaab";
    let big = |bytes: &[u8]| U512::from_le_slice(bytes);
    let modulus = U512::from_str_radix(MODULUS, 16).expect("a number");
    let product = big(x).mul_mod(big(y), modulus);
    product.to_le_bytes::<64>()[..48]
        .try_into()
        .expect("48 of 64")
}

#[test]
fn the_example_multiplies() {
    let text = include_str!("../../../examples/evm384/product.easm");
    let mut small = [[0; 48]; 2];
    (small[0][0], small[1][0]) = (3, 5);
    let large = [[0x0f; 48], std::array::from_fn(|i| i as u8)];
    for interface in [Interface::V7, Interface::Immediate] {
        let code = assemble(interface, text).expect("it is right");
        for [x, y] in [small, large] {
            let mut machine = Machine::new(Setup::new(interface, GasSchedule::DRAFT), code.clone());
            let outcome = machine
                .call([x, y].concat().into(), 10_000)
                .expect("ordinary");
            assert_eq!(outcome.end, End::Returned(product(&x, &y).to_vec().into()));
        }
    }
}

#[test]
fn errors_say_where_and_what() {
    let error = |text: &str| {
        let error = assemble(Interface::V7, text).expect_err("it is wrong");
        (error.place.line, error.place.column, error.fault)
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
    assert_eq!(error("PUSH1 1-2"), (1, 7, Fault::Negative(name("1-2"))));
    assert_eq!(error("push 0x"), (1, 6, Fault::NoNumber(name("0x"))));
    assert_eq!(error("add = 1"), (1, 1, Fault::Instruction(name("add"))));
    assert_eq!(error("macro m x x\nend"), (1, 11, Fault::Twice(name("x"))));
    assert_eq!(
        error("slot f = 96 12\nslot g = 0 2\nslot h = 624"),
        (3, 6, Fault::Overlap(name("h"), name("f")))
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

fn files(interface: Interface, files: &[(&str, &str)]) -> Result<Assembly, AssemblyError> {
    let texts: HashMap<&str, &str> = files.iter().copied().collect();
    assemble_file(interface, files[0].0, &|name| {
        let text = texts.get(name).copied().map(str::to_owned);
        text.ok_or_else(|| "no such file".to_owned())
    })
}

const POWER: &str = "
size = 48
slot f = 2*size+0x30-size 2
macro times count what
    push count
    again:
    what f f f 144
    push 1 SWAP1 SUB DUP1 @again JUMPI POP
end
";

#[test]
fn macros_constants_and_includes_make_code() {
    let main = "include \"lib/power.easm\"\ntimes 3 MULMODMONT384\ntimes 2 ADDMOD384\nSTOP";
    let assembly = files(
        Interface::Immediate,
        &[("main.easm", main), ("lib/power.easm", POWER)],
    );
    let assembly = assembly.expect("it is right");
    let by_hand = "
        push 3 a: MULMODMONT384 96 96 96 144 push 1 SWAP1 SUB DUP1 @a JUMPI POP
        push 2 b: ADDMOD384 96 96 96 144 push 1 SWAP1 SUB DUP1 @b JUMPI POP
        STOP";
    assert_eq!(
        Ok(&assembly.code),
        assemble(Interface::Immediate, by_hand).as_ref()
    );
    assert_eq!((assembly.slots[0].offset, assembly.slots[0].count), (96, 2));
    // The second instruction's origin: the label in the macro, used in line 2 of the main file.
    let mapped = &assembly.map[1];
    assert_eq!(
        (mapped.position, &*mapped.place.file),
        (2, "lib/power.easm")
    );
    let (name, used) = &assembly.expansions(mapped)[0];
    assert_eq!(
        (name.as_str(), used.to_string().as_str()),
        ("times", "main.easm, line 2, column 1")
    );
    assert_eq!(assembly.map.last().map(|last| last.place.line), Some(4));
}

#[test]
fn errors_in_files_and_macros_say_the_way() {
    let error =
        |texts: &[(&str, &str)]| files(Interface::V7, texts).expect_err("wrong").to_string();
    assert_eq!(
        error(&[
            ("a", "include b"),
            ("b", "\n include c"),
            ("c", "include a")
        ]),
        "c, line 1, column 9: files include each other: a -> b -> c -> a"
    );
    assert_eq!(
        error(&[("a", "STOP\ninclude missing")]),
        "a, line 2, column 9: 'missing' cannot be read: no such file"
    );
    assert_eq!(
        error(&[("a", "macro m x\n FLY x\nend\nm 1")]),
        "a, line 2, column 2: 'FLY' is no instruction; in macro 'm', used in a, line 4, column 1"
    );
    assert_eq!(
        error(&[("a", "macro m x\nSTOP\nend\nm")]),
        "a, line 4, column 1: m takes 1 arguments: x"
    );
    assert_eq!(
        error(&[("a", "macro m\nSTOP")]),
        "a, line 1, column 7: 'm' has no counterpart"
    );
    assert!(error(&[("a", "macro m\nm\nend\nm")]).contains("nested deeper than 32"));
    // Twice as much at each of 24 levels.
    let doubling: String = (1..24)
        .map(|n| format!("macro m{n}\nm{} m{}\nend\n", n - 1, n - 1))
        .collect();
    let text = format!("macro m0\nSTOP\nend\n{doubling}m23");
    assert!(error(&[("a", &text)]).contains("more than 262144 bytes"));
}

/// The column of each word was counted from the beginning of its line: a line of 400,000 words took minutes.
#[test]
fn long_lines_take_linear_time() {
    let words = "é".repeat(400_000).replace('é', "STOP  ");
    let wrong = format!("{}FLY", &words[..6 * 200_000]);
    let start = std::time::Instant::now();
    let error = assemble(Interface::V7, &wrong).expect_err("FLY is no instruction");
    assert_eq!(error.place.column, 6 * 200_000 + 1);
    assert_eq!(error.fault, Fault::NoInstruction("FLY".to_owned()));
    let error = assemble(Interface::V7, &words).expect_err("no contract has that much code");
    assert!(matches!(error.fault, Fault::TooLong(_)));
    let taken = start.elapsed();
    assert!(taken.as_secs() < 20, "{taken:?}");
}
