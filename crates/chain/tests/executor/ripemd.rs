//! Touches of an empty account at 0x3: those that delete the account even if a revert follows, like
//! in go-ethereum 1.17.7.

use alloy_consensus::{Signed, TxLegacy};
use alloy_primitives::{Address, B256, Bytes, Signature, TxKind, U256, hex};
use arbor_chain::executor::Block;
use arbor_chain::genesis::{Fork, GenesisAccount};
use arbor_chain::source::Transaction;

use super::effects::{CONTRACT, account, block, call, run, state};

const RIPEMD: Address = Address::with_last_byte(3);
const INNER: Address = Address::with_last_byte(0xdd);
const FORKS: [Fork; 2] = [Fork::Byzantium, Fork::Cancun];

const CALL: &[u8] = &hex!("6000600060006000600060035af150");
const CALL_WITH_VALUE: &[u8] = &hex!("6000600060006000600160035af150");
/// The stipend of 2,300 gas is too little for the precompile, because the input has 1,024 bytes.
const FAILED_CALL_WITH_VALUE: &[u8] = &hex!("600060006104006000600160036000f150");
const STATIC_CALL: &[u8] = &hex!("600060006000600060035afa50");
const DELEGATE_CALL: &[u8] = &hex!("600060006000600060035af450");
const CALL_CODE: &[u8] = &hex!("6000600060006000600060035af250");
const CALL_INNER: &[u8] = &hex!("6000600060006000600060dd5af150");
/// Creates a contract, without value, whose init code is SELFDESTRUCT with 0x3 as beneficiary.
const CREATE: &[u8] = &hex!("626003ff6000526003601d6000f050");
/// The same with a value of 1.
const CREATE_WITH_VALUE: &[u8] = &hex!("626003ff6000526003601d6001f050");
const SELF_DESTRUCT: &[u8] = &hex!("6003ff");
const FAIL: &[u8] = &hex!("fe");

fn contract(address: Address, balance: u64, code: &[&[u8]]) -> GenesisAccount {
    GenesisAccount {
        balance: U256::from(balance),
        ..account(address, 1, &code.concat(), &[])
    }
}

/// Returns whether the block deletes the empty account at 0x3.
fn deletes(fork: Fork, accounts: &[GenesisAccount], block: &Block) -> bool {
    let empty = account(RIPEMD, 0, &[], &[]);
    let state = state(&[accounts, &[empty]].concat());
    let output = run(fork, &state, block).expect("a valid block");
    let change = output.changes.accounts.get(&RIPEMD);
    change.is_some_and(|change| change.new.is_none())
}

/// Returns whether a transaction that calls this code deletes the account.
fn code_deletes(fork: Fork, code: &[&[u8]]) -> bool {
    let block = block(1, vec![call(0, CONTRACT, Bytes::new())]);
    deletes(fork, &[contract(CONTRACT, 5, code)], &block)
}

/// Returns a block with a transaction to 0x3 that has too little gas for the precompile.
fn failing(value: u64) -> Block {
    let tx = TxLegacy {
        gas_limit: 21_100,
        to: TxKind::Call(RIPEMD),
        value: U256::from(value),
        ..TxLegacy::default()
    };
    let signature = Signature::new(U256::ONE, U256::ONE, false);
    let tx = Signed::new_unchecked(tx, signature, B256::ZERO);
    block(1, vec![Transaction::Legacy(tx)])
}

/// revm keeps the touch of a reverted transfer, too. A valid block was refused for its state root.
#[test]
fn a_failed_transaction_with_value_leaves_it_and_one_without_deletes_it() {
    for fork in FORKS {
        assert!(!deletes(fork, &[], &failing(1)), "{fork:?}");
        assert!(deletes(fork, &[], &failing(0)), "{fork:?}");
    }
}

#[test]
fn reverted_calls_delete_it_if_they_transfer_nothing() {
    for fork in FORKS {
        for touching in [CALL, STATIC_CALL] {
            assert!(code_deletes(fork, &[touching]), "{fork:?}");
            assert!(code_deletes(fork, &[touching, FAIL]), "{fork:?}");
        }
        for other in [CALL_WITH_VALUE, DELEGATE_CALL, CALL_CODE] {
            assert!(!code_deletes(fork, &[other, FAIL]), "{fork:?}");
        }
        assert!(!code_deletes(fork, &[FAILED_CALL_WITH_VALUE]), "{fork:?}");
        // The second call finds an account that is empty again.
        let both = [FAILED_CALL_WITH_VALUE, CALL, FAIL];
        assert!(code_deletes(fork, &both), "{fork:?}");
        // The second call finds an account that is not empty.
        let both = [CALL_WITH_VALUE, CALL, FAIL];
        assert!(!code_deletes(fork, &both), "{fork:?}");
    }
}

#[test]
fn a_reverted_self_destruct_deletes_it_if_there_was_no_balance() {
    let block = block(1, vec![call(0, CONTRACT, Bytes::new())]);
    for fork in FORKS {
        for (balance, is_deleted) in [(0, true), (1, false)] {
            let inner = contract(INNER, balance, &[SELF_DESTRUCT]);
            let outer = contract(CONTRACT, 0, &[CALL_INNER, FAIL]);
            assert_eq!(deletes(fork, &[inner, outer], &block), is_deleted);
        }
        assert!(code_deletes(fork, &[CREATE, FAIL]), "{fork:?}");
        assert!(!code_deletes(fork, &[CREATE_WITH_VALUE, FAIL]), "{fork:?}");
    }
}

#[test]
fn a_fee_of_zero_to_it_deletes_it() {
    let mut block = failing(1);
    block.header.beneficiary = RIPEMD;
    // Before the merge it would get the block's reward.
    assert!(deletes(Fork::Cancun, &[], &block));
}

#[test]
fn a_transfer_that_succeeds_stays() {
    let block = block(1, vec![call(0, CONTRACT, Bytes::new())]);
    let empty = account(RIPEMD, 0, &[], &[]);
    for fork in FORKS {
        let sender = contract(CONTRACT, 5, &[CALL_WITH_VALUE]);
        let output = run(fork, &state(&[sender, empty.clone()]), &block).expect("a valid block");
        let new = output.changes.accounts[&RIPEMD].new.expect("it stays");
        assert_eq!(new.balance, U256::ONE, "{fork:?}");
    }
}
