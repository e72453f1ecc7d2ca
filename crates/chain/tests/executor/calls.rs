//! Calls: what a transaction does, without the block.

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, TxKind, U256};
use arbor_chain::executor::{
    Call, CallEnd, CallError, CallPlace, Executor, InvalidTransaction, MemoryState, SpecId,
};
use arbor_chain::source::Transaction;

use super::support::{Replay, data};

/// The call that a transaction makes.
fn call_of(tx: &Transaction, from: Address) -> Call {
    Call {
        from,
        to: tx.kind(),
        gas: tx.gas_limit(),
        fee: tx.max_fee_per_gas(),
        priority_fee: tx.max_priority_fee_per_gas(),
        blob_fee: tx.max_fee_per_blob_gas(),
        value: tx.value(),
        input: tx.input().clone(),
        access_list: tx.access_list().cloned().unwrap_or_default(),
        blob_hashes: tx.blob_versioned_hashes().map(<[_]>::to_vec),
        authorizations: tx.authorization_list().map(<[_]>::to_vec),
    }
}

/// The first transaction of each block, made as a call on the state before the block, ends as it
/// did and takes as much gas.
#[test]
fn a_call_does_what_the_transaction_does() {
    let test = "a_call_does_what_the_transaction_does";
    let Some(folder) = data(test, "chains/execution-apis") else {
        return;
    };
    let mut replay = Replay::open(folder);
    let mut state = MemoryState::from_genesis(&replay.genesis.alloc);
    let mut executor = Executor::new();
    let mut compared = 0;
    while let Some(block) = replay.next_block() {
        let rules = replay.rules(&block.block.header);
        let first = block.block.body.transactions.first();
        let outcome = first.map(|tx| {
            let place = CallPlace {
                rules: &rules,
                header: &block.block.header,
                chain: &replay.chain,
                blob_base_fee: None,
                deadline: None,
            };
            let call = call_of(tx, block.senders[0]);
            executor.call(place, &call, &state).expect("it runs")
        });
        let output = replay.execute(&block, &state, None).expect("valid block");
        if let Some(outcome) = outcome {
            let receipt = &output.receipts[0];
            let number = block.block.header.number;
            assert_eq!(outcome.gas_used, receipt.cumulative_gas_used(), "{number}");
            assert!(outcome.peak_gas >= outcome.gas_used, "{number}");
            if rules.has(SpecId::BYZANTIUM) {
                let succeeded = matches!(outcome.end, CallEnd::Returned(_));
                assert_eq!(succeeded, receipt.status(), "{number}");
            }
            compared += 1;
        }
        state.apply(&output.changes);
        replay.push(&block);
    }
    assert!(compared > 40, "{compared} transactions");
}

/// A call needs no nonce, no account that signs, and no gas of the block's; but funds for what it
/// moves.
#[test]
fn a_call_is_free_of_what_a_signature_stands_for() {
    let test = "a_call_is_free_of_what_a_signature_stands_for";
    let Some(folder) = data(test, "chains/execution-apis") else {
        return;
    };
    let mut replay = Replay::open(folder);
    let mut state = MemoryState::from_genesis(&replay.genesis.alloc);
    replay.run_to(54, &mut state);
    let (header, _) = replay.parent();
    let rules = replay.rules(&header);
    let contract = state
        .accounts()
        .find(|(_, account)| account.code_hash != alloy_primitives::KECCAK256_EMPTY);
    let (contract, account) = contract.expect("a contract");
    let mut executor = Executor::new();
    let mut make = |value: U256, gas: u64| {
        let place = CallPlace {
            rules: &rules,
            header: &header,
            chain: &replay.chain,
            blob_base_fee: None,
            deadline: None,
        };
        let call = Call {
            from: contract,
            to: TxKind::Call(Address::repeat_byte(9)),
            gas,
            fee: 0,
            priority_fee: None,
            blob_fee: None,
            value,
            input: Default::default(),
            access_list: Default::default(),
            blob_hashes: None,
            authorizations: None,
        };
        executor.call(place, &call, &state)
    };
    let outcome = make(U256::ZERO, u64::MAX / 2).expect("it runs");
    assert_eq!(outcome.end, CallEnd::Returned(Default::default()));
    assert_eq!(outcome.gas_used, 21_000);
    let rejected = |made: Result<_, CallError>| match made {
        Err(CallError::Rejected(why)) => *why,
        other => panic!("{other:?}"),
    };
    let poor = rejected(make(account.balance + U256::ONE, 100_000));
    assert!(
        matches!(poor, InvalidTransaction::LackOfFundForMaxFee { .. }),
        "{poor:?}"
    );
    let little = rejected(make(U256::ZERO, 20_999));
    assert!(
        matches!(
            little,
            InvalidTransaction::CallGasCostMoreThanGasLimit { .. }
        ),
        "{little:?}"
    );
    // Nothing of a call stays.
    assert_eq!(make(U256::ZERO, 100_000).expect("it runs").gas_used, 21_000);
}
