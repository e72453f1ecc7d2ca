//! What a frame sets is its own: under nested calls, reverts, siblings at the same depth, and the same contract entered again.

use arbor_evm384::asm::assemble;
use arbor_evm384::{End, GasSchedule, Interface, Machine, Setup};
use revm::context::result::HaltReason;

/// By its calldata's length: 0 operates with nothing set, 1 sets a modulus of 5 and returns, 2 sets it and reverts, 3 sets 7, calls itself with all of
/// these and operates again. It returns how the calls ended, and the last result.
fn contract(set_5: &str, set_7: &str, operate: &str) -> String {
    format!(
        "
        CALLDATASIZE @set JUMPI
        {operate} STOP
        set:
        push 3 CALLDATASIZE EQ @outer JUMPI
        {set_5} {operate}
        push 2 CALLDATASIZE EQ @fail JUMPI
        STOP
        fail:
        push 0 0 REVERT
        outer:
        {set_7}
        push 0 0 0 0 ADDRESS push 50000 STATICCALL push 256 MSTORE8
        push 0 0 1 0 ADDRESS push 50000 STATICCALL push 257 MSTORE8
        push 0 0 0 0 ADDRESS push 50000 STATICCALL push 258 MSTORE8
        push 0 0 2 0 ADDRESS push 50000 STATICCALL push 259 MSTORE8
        {operate}
        push 320 0 RETURN
        "
    )
}

fn check(interface: Interface, text: &str, last_byte: usize) {
    let code = assemble(interface, text).expect("it is right");
    for engine in [false, true] {
        let setup = Setup {
            engine,
            ..Setup::new(interface, GasSchedule::DRAFT)
        };
        let mut machine = Machine::new(setup, code.clone());
        for _ in 0..2 {
            let outcome = machine
                .call(vec![0; 3].into(), 1_000_000)
                .expect("ordinary");
            let output = outcome
                .output()
                .unwrap_or_else(|| panic!("{:?}", outcome.end));
            assert_eq!(output[256..260], [0, 1, 0, 0], "{interface}, {engine}");
            // 5 + 4 modulo 7.
            assert_eq!(output[last_byte], 2, "{interface}, {engine}");
            // The next transaction begins with nothing.
            let next = machine
                .call(Vec::new().into(), 1_000_000)
                .expect("ordinary");
            assert_eq!(next.end, End::Halted(HaltReason::NotActivated));
        }
    }
}

#[test]
fn a_modulus_belongs_to_its_frame() {
    let set = |modulus: u8| {
        format!("push {modulus} 0 MSTORE8 push 5 48 MSTORE8 push 4 96 MSTORE8 push 1 0 SETMOD")
    };
    let text = contract(&set(5), &set(7), "ADDMOD384 144 48 96");
    check(Interface::SetMod, &text, 144);
}

#[test]
fn registers_belong_to_their_frame() {
    // Registers 0 and 1 hold 5 and 4, or 0 and 4 modulo 5; their sum goes to register 2, and that to memory at 64.
    let set = |modulus: u8, first: u8| {
        format!(
            "push {modulus} 31 MSTORE8 push {first} 39 MSTORE8 push 4 47 MSTORE8 push 0 320 MSTORE8
             push 3 1 31 9 SETMODX push 2 32 0 STOREX"
        )
    };
    let operate = "ADDMODX 2 1 0 1 1 1 1  push 1 2 64 LOADX";
    check(
        Interface::Registers,
        &contract(&set(5, 0), &set(7, 5), operate),
        71,
    );
}
