//! Which chunks of code a block reads.

use std::collections::BTreeSet;

use alloy_primitives::{Address, Bytes, TxKind, address, hex};
use arbor_chain::executor::{
    CodeReads, Evm384, ExecutionError, Executor, GasSchedule, Interface, RecentBlocks,
};
use arbor_chain::genesis::Fork;
use arbor_chain::source::Transaction;

use super::effects::{CONTRACT, SENDER, account, block, call, rules, state, tx};

const OTHER: Address = address!("00000000000000000000000000000000000000ee");
const DELEGATING: Address = address!("00000000000000000000000000000000000000ff");

/// Code of some chunks, with pieces at their offsets, else of STOP.
fn code(chunks: usize, pieces: &[(usize, &[u8])]) -> Vec<u8> {
    let mut code = vec![0; chunks * 31];
    for (at, piece) in pieces {
        code[*at..*at + piece.len()].copy_from_slice(piece);
    }
    code
}

fn reads(contract: &[u8], transactions: Vec<Transaction>) -> CodeReads {
    reads_by(Executor::new, contract, transactions)
}

fn reads_by(
    executor: impl Fn() -> Executor,
    contract: &[u8],
    transactions: Vec<Transaction>,
) -> CodeReads {
    let other = code(6, &[(0, &hex!("5b00"))]);
    let delegation = [&hex!("ef0100")[..], CONTRACT.as_slice()].concat();
    let state = state(&[
        account(CONTRACT, 1, contract, &[]),
        account(OTHER, 1, &other, &[]),
        account(DELEGATING, 1, &delegation, &[]),
    ]);
    let block = block(1, transactions);
    let senders = vec![SENDER; block.body.transactions.len()];
    let chain = RecentBlocks::default();
    // System contracts are missing, which ends the block after its transactions.
    let run = |mut executor: Executor| {
        let result = executor.run(&rules(Fork::Prague), &block, &senders, &state, &chain, None);
        let Err(ExecutionError::Invalid { executed, .. }) = result else {
            panic!("{result:?}");
        };
        let executed = executed.expect("transactions were executed");
        (
            executed.changes,
            executed.gas_used,
            executor.take_code_reads(),
        )
    };
    let (changes, gas_used, nothing) = run(executor());
    let (changes_recorded, gas_used_recorded, reads) = run(executor().recording_code());
    assert_eq!(nothing, CodeReads::default());
    assert_eq!((changes_recorded, gas_used_recorded), (changes, gas_used));
    reads
}

fn chunks(reads: &CodeReads, of: Address) -> Vec<u32> {
    let chunks = reads.chunks.get(&of).into_iter().flatten();
    chunks.copied().collect()
}

#[test]
fn what_runs_is_read() {
    // Pushes 2 bytes at the end of chunk 0, jumps over two chunks to chunk 3.
    let jumps = code(
        5,
        &[
            (0, &hex!("6020565b")),
            (29, &hex!("61")),
            (93, &hex!("5b00")),
        ],
    );
    let jumps = [&hex!("605d56")[..], &jumps[3..]].concat();
    let of = |contract: &[u8]| {
        let reads = reads(contract, vec![call(0, CONTRACT, Bytes::new())]);
        assert_eq!(reads.chunks.len(), 1, "{reads:?}");
        chunks(&reads, CONTRACT)
    };
    assert_eq!(of(&jumps), [0, 3]);
    // Data of a push beyond its chunk; what lies beyond the end is nothing.
    let mut pushes = code(2, &[]);
    pushes[..31].fill(0x5b);
    pushes[30] = 0x61;
    assert_eq!(of(&pushes), [0, 1]);
    assert_eq!(of(&hex!("7f")), [0]);
    // A destination that is none was looked at, if it is in the code.
    assert_eq!(of(&code(4, &[(0, &hex!("604556"))])), [0, 2]);
    assert_eq!(of(&code(4, &[(0, &hex!("61ffff56"))])), [0]);
    // A jump that is not taken is not looked at: JUMPI(69, 0).
    assert_eq!(of(&code(4, &[(0, &hex!("600060455700"))])), [0]);
    // CODECOPY(0, 35, 60) of 5 chunks, and one that its gas does not pay for.
    assert_eq!(
        of(&code(5, &[(0, &hex!("603c602360003900"))])),
        [0, 1, 2, 3]
    );
    assert_eq!(of(&code(5, &[(0, &hex!("63ffffffff602360003900"))])), [0]);
}

/// What stands behind an opcode of EVM384 is read with it.
#[test]
fn immediates_are_read() {
    for interface in [
        Interface::V7,
        Interface::Immediate,
        Interface::SetMod,
        Interface::Registers,
    ] {
        let evm384 = Evm384 {
            interface,
            schedule: GasSchedule::DRAFT,
        };
        for opcode in interface.opcodes() {
            let mut contract = code(2, &[]);
            contract[..30].fill(0x5b);
            contract[30] = opcode.byte;
            let calls = || vec![call(0, CONTRACT, Bytes::new())];
            let with = reads_by(|| Executor::with_evm384(evm384), &contract, calls());
            let wanted = match opcode.immediates {
                [] => vec![0],
                _ => vec![0, 1],
            };
            assert_eq!(chunks(&with, CONTRACT), wanted, "{opcode:?}");
            assert_eq!(chunks(&reads(&contract, calls()), CONTRACT), [0]);
        }
    }
}

#[test]
fn what_others_have_is_read_of_them() {
    // EXTCODECOPY(OTHER, 0, 40, 30), then CALL(OTHER).
    let copies = hex!("601e6028600060ee3c600060006000600060006000 60ee5af100");
    let found = reads(
        &code(2, &[(0, &copies)]),
        vec![call(0, CONTRACT, Bytes::new())],
    );
    assert_eq!(chunks(&found, CONTRACT), [0]);
    assert_eq!(chunks(&found, OTHER), [0, 1, 2]);
    // A delegation is code of its own; what runs is another account's.
    let found = reads(&code(1, &[]), vec![call(0, DELEGATING, Bytes::new())]);
    assert_eq!(
        (chunks(&found, DELEGATING), chunks(&found, CONTRACT)),
        (vec![0], vec![0])
    );
    // Init code is in no tree.
    let found = reads(&[], vec![tx(0, TxKind::Create, 0, hex!("5b5b00").to_vec())]);
    assert_eq!(
        found
            .chunks
            .values()
            .flatten()
            .collect::<BTreeSet<_>>()
            .len(),
        0,
        "{found:?}"
    );
}
