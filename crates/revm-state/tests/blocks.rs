//! Blocks that revm executes over a database, under every tree: their changes make the roots that changes written by hand make.

use std::sync::Arc;
use std::thread;

use arbor_accounts::{Account, ReadError, StateChanges, StateView};
use arbor_database::{BlockRef, OpenOptions, State};
use arbor_revm_state::{ViewDatabase, changes_of_bundle};
use revm::context::TxEnv;
use revm::database::State as EvmState;
use revm::database::states::bundle_state::BundleRetention;
use revm::database_interface::DatabaseRef as _;
use revm::primitives::hardfork::SpecId;
use revm::state::AccountInfo;
use revm::{Context, ExecuteCommitEvm, MainBuilder, MainContext};

use alloy_primitives::{Address, B256, Bytes, TxKind, U256, hex, keccak256};

const RICH: Address = Address::repeat_byte(0x11);
const OTHER: Address = Address::repeat_byte(0x22);

/// Stores the word of its input in slot 1, and the hash of block 0 in slot 2.
const STORING: &[u8] = &hex!("6000356001556000406002550000");
/// Gives its balance to the sender and is gone.
const DYING: &[u8] = &hex!("33ff");

/// Init code that deploys a code, after it has stored 9 in slot 1.
fn init(code: &[u8]) -> Bytes {
    let length = code.len() as u8;
    let begin = hex!("600960015560");
    let copy = [
        length, 0x60, 17, 0x60, 0x00, 0x39, 0x60, length, 0x60, 0x00, 0xf3,
    ];
    [&begin[..], &copy, code].concat().into()
}

/// Executes transactions as one block and returns what it changes.
fn execute(state: &dyn StateView, spec: SpecId, transactions: Vec<TxEnv>) -> StateChanges {
    let hashes = |number: u64| match number {
        0 => Ok(B256::repeat_byte(0xb0)),
        _ => Err(ReadError::new("another block")),
    };
    let view = ViewDatabase::new(state).with_block_hashes(hashes);
    let database = EvmState::builder().with_database_ref(view);
    let mut database = database.with_bundle_update().build();
    let context = Context::mainnet().with_db(&mut database);
    let context = context.modify_cfg_chained(|cfg| cfg.set_spec_and_mainnet_gas_params(spec));
    let context = context.modify_block_chained(|block| block.number = U256::from(1));
    let mut evm = context.build_mainnet();
    for transaction in transactions {
        let outcome = evm.transact_commit(transaction).expect("a transaction");
        assert!(outcome.is_success(), "{outcome:?}");
    }
    drop(evm);
    database.merge_transitions(BundleRetention::PlainState);
    changes_of_bundle(&database.take_bundle())
}

fn transaction(nonce: u64, kind: TxKind, data: Bytes) -> TxEnv {
    let transaction = TxEnv::builder().caller(RICH).nonce(nonce).kind(kind);
    let transaction = transaction
        .data(data)
        .gas_limit(1_000_000)
        .value(U256::from(5));
    transaction.build().expect("a transaction")
}

fn commit(state: &mut State, number: u64, changes: &StateChanges) -> B256 {
    let computed = state.compute(changes).expect("old values are the state's");
    let root = computed.root();
    let block = BlockRef::new(number, B256::from(U256::from(number)));
    state.commit(&block, computed).expect("committed");
    root
}

#[test]
fn blocks_of_revm_agree_with_changes_by_hand() {
    for kind in arbor_database::trees::standard().rows() {
        let options = OpenOptions::new().tree(kind.name).memory(64 << 20);
        let [mut state, mut by_hand] = [(); 2].map(|()| options.in_memory().expect(kind.name));
        let mut genesis = StateChanges::default();
        let rich = Account::with_balance(U256::from(1_000_000));
        genesis.set_account(&state, RICH, Some(rich)).expect("read");
        for state in [&mut state, &mut by_hand] {
            commit(state, 0, &genesis);
        }

        let [storing, dying] = [0, 1].map(|nonce| RICH.create(nonce));
        let word = Bytes::from(U256::from(77).to_be_bytes_vec());
        let made = execute(
            &state,
            SpecId::SHANGHAI,
            vec![
                transaction(0, TxKind::Create, init(STORING)),
                transaction(1, TxKind::Create, init(DYING)),
                transaction(2, TxKind::Call(storing), word),
                transaction(3, TxKind::Call(OTHER), Bytes::new()),
            ],
        );
        let mut expected = StateChanges::default();
        let [storing_code, dying_code] =
            [STORING, DYING].map(|code| expected.add_code(code.into()));
        let contract = |balance: u64, code_hash| Account {
            nonce: 1,
            code_hash,
            ..Account::with_balance(U256::from(balance))
        };
        let rich = Account {
            nonce: 4,
            ..Account::with_balance(U256::from(1_000_000 - 20))
        };
        let slot = U256::from;
        let accounts = [
            (RICH, Some(rich)),
            (OTHER, Some(Account::with_balance(U256::from(5)))),
            (storing, Some(contract(10, storing_code))),
            (dying, Some(contract(5, dying_code))),
        ];
        let slots = [
            (storing, 1, U256::from(77)),
            (storing, 2, B256::repeat_byte(0xb0).into()),
            (dying, 1, U256::from(9)),
        ];
        for (address, account) in accounts {
            expected
                .set_account(&by_hand, address, account)
                .expect("read");
        }
        for (address, at, value) in slots {
            expected
                .set_slot(&by_hand, address, slot(at), value)
                .expect("read");
        }
        assert_eq!(made, expected, "{}", kind.name);
        assert_eq!(
            commit(&mut state, 1, &made),
            commit(&mut by_hand, 1, &expected)
        );
        assert_eq!(
            state.code(storing_code).expect("stored"),
            Bytes::from(STORING)
        );
        assert_eq!(keccak256(STORING), storing_code);

        // Before Cancun a contract that destroys itself is gone with its storage.
        let made = execute(
            &state,
            SpecId::SHANGHAI,
            vec![
                transaction(4, TxKind::Call(dying), Bytes::new()),
                transaction(5, TxKind::Call(storing), Bytes::from(vec![0; 32])),
            ],
        );
        let mut expected = StateChanges::default();
        let rich = Account {
            nonce: 6,
            ..Account::with_balance(rich.balance + U256::from(5) - U256::from(5))
        };
        expected
            .set_account(&by_hand, RICH, Some(rich))
            .expect("read");
        expected.set_account(&by_hand, dying, None).expect("read");
        expected
            .set_account(&by_hand, storing, Some(contract(15, storing_code)))
            .expect("read");
        expected
            .set_slot(&by_hand, storing, slot(1), U256::ZERO)
            .expect("read");
        assert_eq!(made, expected, "{}", kind.name);
        assert_eq!(
            commit(&mut state, 2, &made),
            commit(&mut by_hand, 2, &expected)
        );
        assert_eq!(state.account(dying).expect("read"), None);
    }
}

/// Without a source of hashes, `BLOCKHASH` is an error that says what to do.
#[test]
fn hashes_of_blocks_must_be_given() {
    use revm::database_interface::DatabaseRef as _;
    let state = OpenOptions::new().in_memory().expect("opened");
    let error = ViewDatabase::new(&state)
        .block_hash_ref(7)
        .expect_err("none");
    assert!(error.to_string().contains("block 7"), "{error}");
    let missing = ViewDatabase::new(&state).code_by_hash_ref(B256::repeat_byte(1));
    assert!(
        missing
            .expect_err("no code")
            .to_string()
            .contains("is missing")
    );
}

/// A thread executes on a state in the past while the database goes on.
#[test]
fn a_thread_executes_on_a_state_in_the_past() {
    let mut state = OpenOptions::new().in_memory().expect("made");
    for (number, balance) in [(0, 100), (1, 3)] {
        let mut changes = StateChanges::default();
        let account = Account::with_balance(U256::from(balance));
        let set = changes.set_account(&state, RICH, Some(account));
        set.expect("read");
        commit(&mut state, number, &changes);
    }
    let snapshot = Arc::new(state.snapshot().expect("taken"));
    let past = Arc::new(snapshot.at_block(0).expect("it is retained"));
    let latest = ViewDatabase::new(Arc::clone(&snapshot));
    let balance = |info: Option<AccountInfo>| info.map(|info| info.balance.to::<u64>());
    let thread = thread::spawn(move || {
        let database = ViewDatabase::new(Arc::clone(&past));
        let before = database.basic_ref(RICH).expect("read");
        let payment = transaction(0, TxKind::Call(OTHER), Bytes::new());
        let changes = execute(&*past, SpecId::SHANGHAI, vec![payment]);
        (before, changes)
    });
    drop(state);
    let (before, changes) = thread.join().expect("the thread ends");
    assert_eq!(balance(before), Some(100));
    let paid = changes.accounts[&RICH].new;
    assert_eq!(paid.map(|account| account.balance), Some(U256::from(95)));
    let now = latest.basic_ref(RICH).expect("read");
    assert_eq!(balance(now), Some(3));
}
