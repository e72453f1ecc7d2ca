//! Blocks that call contracts with 384-bit arithmetic, under every interface.

use alloy_primitives::{Address, Bytes, TxKind, U256};
use arbor_chain::executor::{
    BlockOutput, Evm384, Executor, GasSchedule, Interface, MemoryState, RecentBlocks, Rules,
};
use arbor_chain::genesis::{Fork, WitnessGas};
use arbor_evm384::asm::assemble;

use super::effects::{CONTRACT, SENDER, account, block, rules, state, tx};
use super::support::check_exact;

/// Stores 5 + 4 modulo 7, computed by the interface's opcode, in slot 1.
fn arithmetic(interface: Interface) -> String {
    let add = match interface {
        Interface::Stack => {
            "push 7 144 MSTORE8 push 5 0 MSTORE8 push 4 48 MSTORE8 push 144 48 0 96 ADDMOD384"
        }
        Interface::V7 | Interface::Immediate => {
            "push 7 144 MSTORE8 push 5 0 MSTORE8 push 4 48 MSTORE8 ADDMOD384 96 0 48 144"
        }
        Interface::SetMod => {
            "push 7 144 MSTORE8 push 5 0 MSTORE8 push 4 48 MSTORE8 push 1 144 SETMOD ADDMOD384 96 0 48"
        }
        Interface::Registers => {
            "push 7 144 MSTORE8 push 5 7 MSTORE8 push 4 15 MSTORE8
             push 2 1 144 0 SETMODX push 2 0 0 STOREX ADDMODX 0 1 0 1 1 1 1 push 1 0 89 LOADX"
        }
    };
    format!("{add} push 96 MLOAD push 0 BYTE push 1 SSTORE")
}

fn executor(interface: Interface) -> Executor {
    Executor::with_evm384(Evm384 {
        interface,
        schedule: GasSchedule::DRAFT,
    })
}

fn run(evm384: Option<Interface>, state: &MemoryState, calls: Vec<(TxKind, Bytes)>) -> BlockOutput {
    let executor = evm384.map_or_else(Executor::new, executor);
    run_by(executor, &rules(Fork::Cancun), state, calls)
}

fn run_by(
    mut executor: Executor,
    rules: &Rules,
    state: &MemoryState,
    calls: Vec<(TxKind, Bytes)>,
) -> BlockOutput {
    let calls = calls.into_iter().enumerate();
    let calls: Vec<_> = calls
        .map(|(nonce, (to, data))| tx(nonce as u64, to, 0, data))
        .collect();
    let senders = vec![SENDER; calls.len()];
    let chain = RecentBlocks::default();
    let output = executor
        .run(rules, &block(1, calls), &senders, state, &chain, None)
        .expect("a valid block");
    check_exact(state, &output.changes);
    output
}

fn stored(output: &BlockOutput, at: Address) -> Option<U256> {
    let change = output.changes.accounts.get(&at)?;
    Some(change.slots.get(&U256::ONE)?.new)
}

#[test]
fn a_block_calls_a_contract_with_evm384() {
    for interface in Interface::ALL {
        let code = assemble(interface, &arithmetic(interface)).expect("it is right");
        let state = state(&[account(CONTRACT, 1, &code, &[])]);
        let calls = || vec![(TxKind::Call(CONTRACT), Bytes::new())];
        let with = run(Some(interface), &state, calls());
        assert_eq!(stored(&with, CONTRACT), Some(U256::from(2)), "{interface}");
        // Elsewhere its opcodes are unknown.
        let without = run(None, &state, calls());
        assert_eq!(stored(&without, CONTRACT), None, "{interface}");
        assert!(without.gas_used > with.gas_used, "it takes all gas");
    }
}

/// So it does where what is read of code is recorded, and where it is paid for: instructions run one by one there, without the engine.
#[test]
fn a_recorded_and_a_metered_block_do_the_same() {
    for interface in Interface::ALL {
        let code = assemble(interface, &arithmetic(interface)).expect("it is right");
        let state = state(&[account(CONTRACT, 1, &code, &[])]);
        let calls = || vec![(TxKind::Call(CONTRACT), Bytes::new())];
        let plain = run(Some(interface), &state, calls());
        let recording = executor(interface).recording_code();
        let recorded = run_by(recording, &rules(Fork::Cancun), &state, calls());
        assert_eq!(recorded.changes, plain.changes, "{interface}");
        assert_eq!(recorded.gas_used, plain.gas_used, "{interface}");
        let mut metered = rules(Fork::Shanghai);
        metered.witness_gas = Some(WitnessGas::Eip4762);
        let metered = run_by(executor(interface), &metered, &state, calls());
        assert_eq!(
            stored(&metered, CONTRACT),
            Some(U256::from(2)),
            "{interface}"
        );
    }
}

/// The arithmetic in init code, and in the contract that it makes, which is called in the block that makes it.
#[test]
fn a_block_creates_a_contract_with_evm384_and_calls_it() {
    for interface in Interface::ALL {
        let body = arithmetic(interface);
        let runtime = assemble(
            interface,
            &body.replace("push 1 SSTORE", "push 1 ADD push 1 SSTORE"),
        );
        let runtime = runtime.expect("it is right");
        let length = runtime.len();
        let head = |from: usize| {
            let text =
                format!("{body} push {length} PUSH2 {from} push 0 CODECOPY push {length} 0 RETURN");
            assemble(interface, &text).expect("it is right")
        };
        let init = [head(head(0).len()), runtime].concat();
        let created = SENDER.create(0);
        let output = run(
            Some(interface),
            &state(&[]),
            vec![
                (TxKind::Create, init.clone().into()),
                (TxKind::Call(created), Bytes::new()),
            ],
        );
        assert_eq!(stored(&output, created), Some(U256::from(3)), "{interface}");
        let first = run(
            Some(interface),
            &state(&[]),
            vec![(TxKind::Create, init.into())],
        );
        assert_eq!(stored(&first, created), Some(U256::from(2)), "{interface}");
    }
}
