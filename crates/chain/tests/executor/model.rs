//! The overlay against a naive model: revm's own cache with a commit after each transaction.

use alloy_consensus::Transaction as _;
use alloy_primitives::{Address, Bytes, TxKind, U256, keccak256};
use arbor_chain::executor::MemoryState;
use arbor_chain::genesis::Fork;
use arbor_state::{Account, StateView};
use proptest::prelude::*;
use revm::bytecode::Bytecode;
use revm::context::{BlockEnv, TxEnv};
use revm::database::{AccountState, CacheDB, EmptyDB};
use revm::state::AccountInfo;
use revm::{Context, ExecuteCommitEvm, MainBuilder, MainContext};

use super::effects::{
    CONTRACT, MINER, PUPPET, SENDER, account, block, call, puppet_init, run, state, store, tx,
};
use super::support::check_exact;

/// Passes calldata as init code to `CREATE`.
const CREATOR: &[u8] = &alloy_primitives::hex!("3660006000373660006000f05000");

/// What a transaction does to one of a few accounts.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create,
    CreateDeep,
    Store { target: u8, slot: u8, value: u8 },
    Destroy { target: u8 },
    Send { target: u8, value: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Create),
        Just(Step::CreateDeep),
        (0..8u8, 0..3u8, 0..3u8).prop_map(|(target, slot, value)| Step::Store {
            target,
            slot,
            value
        }),
        (0..8u8).prop_map(|target| Step::Destroy { target }),
        (0..10u8, 0..2u8).prop_map(|(target, value)| Step::Send { target, value }),
    ]
}

/// Two contracts with storage, those that the sender or the creator may make, and addresses without any.
fn target(n: u8) -> Address {
    match n {
        0 => CONTRACT,
        1 => Address::with_last_byte(0xc1),
        2..=3 => SENDER.create(u64::from(n) - 2),
        4..=5 => Address::with_last_byte(0xf0).create(u64::from(n) - 3),
        _ => Address::with_last_byte(0x60 + n),
    }
}

fn genesis(fork: Fork) -> MemoryState {
    let mut accounts = vec![
        account(CONTRACT, 1, PUPPET, &[(0, 1), (1, 2)]),
        account(target(1), 0, PUPPET, &[(0, 2)]),
        account(Address::with_last_byte(0xf0), 1, CREATOR, &[]),
    ];
    if fork < Fork::SpuriousDragon {
        accounts.push(account(target(6), 0, &[], &[]));
    }
    state(&accounts)
}

fn transactions(steps: &[Step]) -> Vec<arbor_chain::source::Transaction> {
    let make = |(nonce, step): (usize, &Step)| {
        let nonce = nonce as u64;
        match *step {
            Step::Create => tx(nonce, TxKind::Create, 1, puppet_init()),
            Step::CreateDeep => call(nonce, Address::with_last_byte(0xf0), puppet_init()),
            Step::Store {
                target: to,
                slot,
                value,
            } => call(nonce, target(to), store(slot.into(), value.into())),
            Step::Destroy { target: to } => call(nonce, target(to), Bytes::new()),
            Step::Send { target: to, value } => {
                tx(nonce, TxKind::Call(target(to)), value.into(), Bytes::new())
            }
        }
    };
    steps.iter().enumerate().map(make).collect()
}

/// The model: the state after the transactions.
fn run_model(
    fork: Fork,
    start: &MemoryState,
    transactions: &[arbor_chain::source::Transaction],
) -> CacheDB<EmptyDB> {
    let mut db = CacheDB::new(EmptyDB::new());
    for (address, account) in start.accounts() {
        let code = match account.code_hash == keccak256([]) {
            true => Bytecode::default(),
            false => Bytecode::new_legacy(start.code(account.code_hash).expect("code")),
        };
        let Account {
            nonce,
            balance,
            code_hash,
        } = account;
        let info = AccountInfo {
            nonce,
            balance,
            code_hash,
            code: Some(code),
            account_id: None,
        };
        db.insert_account_info(address, info);
        for (slot, value) in start.slots(address) {
            db.insert_account_storage(address, slot, value)
                .expect("in memory");
        }
    }
    let env = BlockEnv {
        number: U256::ONE,
        beneficiary: MINER,
        gas_limit: 30_000_000,
        basefee: 0,
        timestamp: U256::ZERO,
        difficulty: U256::ZERO,
        ..BlockEnv::default()
    };
    let mut evm = Context::mainnet()
        .with_db(&mut db)
        .with_block(env)
        .modify_cfg_chained(|cfg| cfg.set_spec_and_mainnet_gas_params(fork.spec_id()))
        .build_mainnet();
    for tx in transactions {
        let env = TxEnv {
            caller: SENDER,
            gas_limit: tx.gas_limit(),
            gas_price: 0,
            kind: tx.kind(),
            value: tx.value(),
            data: tx.input().clone(),
            nonce: tx.nonce(),
            chain_id: None,
            ..TxEnv::default()
        };
        evm.transact_commit(env).expect("valid");
    }
    drop(evm);
    db
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn agrees_with_revms_cache(
        steps in prop::collection::vec(step(), 1..25),
        fork in prop::sample::select(vec![
            Fork::Frontier,
            Fork::Homestead,
            Fork::SpuriousDragon,
            Fork::Istanbul,
            Fork::Shanghai,
            Fork::Cancun,
        ]),
    ) {
        let start = genesis(fork);
        let transactions = transactions(&steps);
        let model = run_model(fork, &start, &transactions);
        let output = run(fork, &start, &block(1, transactions)).expect("valid");
        check_exact(&start, &output.changes);
        let mut end = start.clone();
        end.apply(&output.changes);
        for (address, account) in &model.cache.accounts {
            // The reward is no transaction's doing.
            if *address == MINER {
                continue;
            }
            // The cache keeps empty accounts where EIP-161 removes them.
            let swept = fork >= Fork::SpuriousDragon && account.info.is_empty();
            let gone = account.account_state == AccountState::NotExisting || swept;
            let expected = (!gone).then_some(Account {
                nonce: account.info.nonce,
                balance: account.info.balance,
                code_hash: account.info.code_hash,
            });
            prop_assert_eq!(end.account(*address).expect("flat"), expected, "{}", address);
            for (slot, value) in &account.storage {
                let value = if gone { U256::ZERO } else { *value };
                prop_assert_eq!(end.storage(*address, *slot).expect("flat"), value);
            }
        }
        for (address, _) in end.accounts() {
            let known = model.cache.accounts.contains_key(&address);
            prop_assert!(known || address == MINER, "{} is not in the model", address);
        }
    }
}
