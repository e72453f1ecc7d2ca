//! Made-up blocks: what comes out as the block's changes, and what happens when the state cannot be read.

use alloy_consensus::{Header, Signed, TxLegacy};
use alloy_eips::eip4895::Withdrawal;
use alloy_primitives::{
    Address, B256, Bytes, KECCAK256_EMPTY, Signature, TxKind, U256, address, hex, keccak256,
};
use arbor_chain::executor::{
    Ancestor, Ancestors, Block, BlockError, BlockOutput, DaoRule, ExecutionError, Executor,
    MemoryState, RecentBlocks, RecordingView, Rules, TransactionError,
};
use arbor_chain::genesis::{Alloc, Fork, GenesisAccount, RewardSchedule};
use arbor_chain::source::Transaction;
use arbor_state::{Account, IntermediateRoots, ReadError, StateChanges, StateView};

use super::support::check_exact;

pub(crate) const SENDER: Address = address!("00000000000000000000000000000000000000aa");
pub(crate) const MINER: Address = address!("00000000000000000000000000000000000000bb");
pub(crate) const CONTRACT: Address = address!("00000000000000000000000000000000000000cc");
const NOBODY: Address = address!("00000000000000000000000000000000000000dd");

pub(crate) fn rules(fork: Fork) -> Rules {
    Rules {
        chain_id: 1,
        fork,
        spec: fork.spec_id(),
        eip155: true,
        london_begins: false,
        difficulty: U256::ZERO,
        rewards: RewardSchedule::Ethereum,
        dao: DaoRule::None,
        exp_byte_gas: None,
        blobs: (fork >= Fork::Cancun).then(alloy_eips::eip7840::BlobParams::cancun),
        deposit_contract: None,
        witness_gas: None,
    }
}

pub(crate) fn account(
    address: Address,
    nonce: u64,
    code: &[u8],
    slots: &[(u64, u64)],
) -> GenesisAccount {
    let storage = slots
        .iter()
        .map(|(slot, value)| (B256::from(U256::from(*slot)), U256::from(*value)))
        .collect();
    let code = Bytes::copy_from_slice(code);
    GenesisAccount {
        address,
        balance: U256::ZERO,
        nonce,
        code,
        storage,
    }
}

/// A state with a rich sender and the given accounts.
pub(crate) fn state(accounts: &[GenesisAccount]) -> MemoryState {
    let sender = GenesisAccount {
        balance: U256::MAX >> 8,
        ..account(SENDER, 0, &[], &[])
    };
    let alloc = Alloc::new([accounts, &[sender]].concat());
    MemoryState::from_genesis(&alloc.expect("each account once"))
}

pub(crate) fn tx(nonce: u64, to: TxKind, value: u64, data: impl Into<Bytes>) -> Transaction {
    let tx = TxLegacy {
        chain_id: None,
        nonce,
        gas_price: 0,
        gas_limit: 1_000_000,
        to,
        value: U256::from(value),
        input: data.into(),
    };
    let signature = Signature::new(U256::ONE, U256::ONE, false);
    Transaction::Legacy(Signed::new_unchecked(
        tx,
        signature,
        B256::with_last_byte(nonce as u8),
    ))
}

pub(crate) fn call(nonce: u64, to: Address, data: impl Into<Bytes>) -> Transaction {
    tx(nonce, TxKind::Call(to), 0, data)
}

pub(crate) fn block(number: u64, transactions: Vec<Transaction>) -> Block {
    let header = Header {
        number,
        gas_limit: 30_000_000,
        beneficiary: MINER,
        excess_blob_gas: Some(0),
        ..Header::default()
    };
    let mut block = Block::uncle(header);
    block.body.transactions = transactions;
    block
}

pub(crate) fn run(
    fork: Fork,
    state: &impl StateView,
    block: &Block,
) -> Result<BlockOutput, ExecutionError> {
    let senders = vec![SENDER; block.body.transactions.len()];
    let chain = RecentBlocks::default();
    Executor::new().run(&rules(fork), block, &senders, state, &chain, None)
}

fn changes(fork: Fork, state: &MemoryState, transactions: Vec<Transaction>) -> StateChanges {
    let output = run(fork, state, &block(1, transactions)).expect("valid block");
    check_exact(state, &output.changes);
    output.changes
}

/// `SSTORE(calldata[0..32], calldata[32..64])` if there is calldata, else `SELFDESTRUCT(caller)`.
pub(crate) const PUPPET: &[u8] = &hex!("3660065733ff5b6020356000355500");

/// Init code that stores 1 in slot 1 and deploys the puppet.
const PUPPET_INIT_HEAD: &[u8] = &hex!("6001600155600f6011600039600f6000f3");

/// Passes calldata as init code to `CREATE2` with salt 0.
const FACTORY: &[u8] = &hex!("36600060003760003660006000f55000");

pub(crate) fn puppet_init() -> Bytes {
    [PUPPET_INIT_HEAD, PUPPET].concat().into()
}

pub(crate) fn store(slot: u64, value: u64) -> Bytes {
    [B256::from(U256::from(slot)), B256::from(U256::from(value))]
        .concat()
        .into()
}

fn slots(changes: &StateChanges, address: Address) -> Vec<(u64, u64, u64)> {
    let slots = &changes.accounts[&address].slots;
    slots
        .iter()
        .map(|(slot, v)| (slot.to(), v.old.to(), v.new.to()))
        .collect()
}

#[test]
fn a_slot_set_back_is_no_change() {
    let state = state(&[account(CONTRACT, 1, PUPPET, &[(1, 10), (2, 20)])]);
    let txs = [(1, 11), (2, 21), (3, 31), (1, 12), (2, 20), (3, 0)];
    let txs = txs
        .iter()
        .enumerate()
        .map(|(n, (k, v))| call(n as u64, CONTRACT, store(*k, *v)));
    let changes = changes(Fork::Cancun, &state, txs.collect());
    assert_eq!(slots(&changes, CONTRACT), [(1, 10, 12)]);
    assert_eq!(changes.accounts.len(), 2, "sender and contract");
    assert!(changes.codes.is_empty());
}

#[test]
fn a_destroyed_contract_takes_its_storage_along() {
    let state = state(&[account(CONTRACT, 1, PUPPET, &[(1, 10)])]);
    let txs = vec![
        call(0, CONTRACT, store(2, 5)),
        call(1, CONTRACT, Bytes::new()),
    ];
    let old = changes(Fork::Shanghai, &state, txs.clone());
    let change = &old.accounts[&CONTRACT];
    assert!(change.storage_cleared && change.new.is_none() && change.slots.is_empty());
    // From Cancun on it stays (EIP-6780).
    let new = changes(Fork::Cancun, &state, txs);
    assert_eq!(slots(&new, CONTRACT), [(2, 0, 5)]);
}

#[test]
fn a_contract_made_again_in_the_same_block_has_new_storage_only() {
    let factory = account(NOBODY, 1, FACTORY, &[]);
    let child = NOBODY.create2(B256::ZERO, keccak256(puppet_init()));
    let state = state(&[factory, account(child, 1, PUPPET, &[(1, 1), (7, 70)])]);
    let txs = vec![
        call(0, child, Bytes::new()),
        call(1, NOBODY, puppet_init()),
        call(2, child, store(9, 90)),
    ];
    let changes = changes(Fork::Shanghai, &state, txs);
    let change = &changes.accounts[&child];
    assert!(change.storage_cleared);
    assert_eq!(change.new, change.old, "same nonce, balance and code");
    assert_eq!(slots(&changes, child), [(1, 0, 1), (9, 0, 90)]);
}

#[test]
fn a_contract_made_and_destroyed_leaves_nothing() {
    let child = SENDER.create(0);
    let txs = vec![
        tx(0, TxKind::Create, 0, puppet_init()),
        call(1, child, Bytes::new()),
    ];
    let changes = changes(Fork::Shanghai, &state(&[]), txs);
    assert_eq!(changes.accounts.keys().collect::<Vec<_>>(), [&SENDER]);
    assert!(changes.codes.is_empty());
}

#[test]
fn a_deployed_contract_comes_with_its_code() {
    let child = SENDER.create(0);
    let changes = changes(
        Fork::Cancun,
        &state(&[]),
        vec![tx(0, TxKind::Create, 3, puppet_init())],
    );
    let change = &changes.accounts[&child];
    assert_eq!((change.old, change.storage_cleared), (None, false));
    let hash = keccak256(PUPPET);
    let new = Account {
        nonce: 1,
        balance: U256::from(3),
        code_hash: hash,
    };
    assert_eq!(change.new, Some(new));
    assert_eq!(slots(&changes, child), [(1, 0, 1)]);
    assert_eq!(changes.codes[&hash].as_ref(), PUPPET);
}

#[test]
fn empty_accounts_exist_before_spurious_dragon_only() {
    let txs = || vec![call(0, NOBODY, Bytes::new())];
    let old = changes(Fork::TangerineWhistle, &state(&[]), txs());
    let empty = Account {
        nonce: 0,
        balance: U256::ZERO,
        code_hash: KECCAK256_EMPTY,
    };
    assert_eq!(old.accounts[&NOBODY].new, Some(empty));
    let new = changes(Fork::SpuriousDragon, &state(&[]), txs());
    assert!(!new.accounts.contains_key(&NOBODY));
    // Touching one that is left over removes it (EIP-161).
    let leftover = state(&[account(NOBODY, 0, &[], &[])]);
    let swept = changes(Fork::SpuriousDragon, &leftover, txs());
    assert_eq!(swept.accounts[&NOBODY].new, None);
    assert!(
        !changes(Fork::TangerineWhistle, &leftover, txs())
            .accounts
            .contains_key(&NOBODY)
    );
}

#[test]
fn rewards_and_their_shares() {
    let ommer = |age: u64| Header {
        number: 10 - age,
        beneficiary: NOBODY,
        ..Header::default()
    };
    let mut block = block(10, Vec::new());
    block.body.ommers = vec![ommer(1), ommer(6)];
    let paid = |fork| {
        let changes = run(fork, &state(&[]), &block).expect("valid").changes;
        let balance = |address| {
            let change: Option<&arbor_state::AccountChange> = changes.accounts.get(&address);
            change
                .and_then(|change| change.new)
                .map(|new| new.balance.to::<u128>())
        };
        (balance(MINER), balance(NOBODY))
    };
    let ether = 1_000_000_000_000_000_000;
    // (8 - 1) / 8 and (8 - 6) / 8 of the reward, and two 32nds for including them.
    assert_eq!(
        paid(Fork::Frontier),
        (Some(5 * ether + 5 * ether / 16), Some(5 * ether / 8 * 9))
    );
    assert_eq!(paid(Fork::Byzantium).0, Some(3 * ether + 3 * ether / 16));
    assert_eq!(paid(Fork::London).0, Some(2 * ether + 2 * ether / 16));
    assert_eq!(paid(Fork::Paris), (None, None));
}

#[test]
fn withdrawals_are_in_gwei() {
    let withdrawal = |address, amount| Withdrawal {
        address,
        amount,
        ..Withdrawal::default()
    };
    let mut block = block(1, Vec::new());
    block.body.withdrawals = Some(vec![withdrawal(NOBODY, 7), withdrawal(MINER, 0)].into());
    let changes = run(Fork::Shanghai, &state(&[]), &block)
        .expect("valid")
        .changes;
    let new = changes.accounts[&NOBODY].new.expect("exists");
    assert_eq!(new.balance, U256::from(7_000_000_000u64));
    assert_eq!(changes.accounts.len(), 1);
}

/// Every account that the DAO fork names exists afterwards, empty, and the refund contract has it all.
#[test]
fn the_dao_fork_moves_balances() {
    let dao = address!("bb9bc244d798123fde783fcc1c72d3bb8c189413");
    let refund = address!("bf4ed7b27f1d666546e30d74d50d173d20bca754");
    let rich = GenesisAccount {
        balance: U256::from(99),
        ..account(dao, 1, PUPPET, &[(1, 1)])
    };
    let state = state(&[rich]);
    let rules = Rules {
        dao: DaoRule::Transition,
        ..rules(Fork::Homestead)
    };
    let chain = RecentBlocks::default();
    let mut executor = Executor::new();
    let output = executor.run(&rules, &block(1, Vec::new()), &[], &state, &chain, None);
    let changes = output.expect("valid").changes;
    check_exact(&state, &changes);
    assert_eq!(
        changes.accounts[&refund].new.expect("exists").balance,
        U256::from(99)
    );
    let drained = changes.accounts[&dao].new.expect("exists");
    assert_eq!((drained.nonce, drained.balance), (1, U256::ZERO));
    // 116 accounts, the refund contract and the beneficiary.
    assert_eq!(changes.accounts.len(), 118);
}

/// Moving ether touches nothing that has none (EIP-161): an empty account of the DAO's list once was deleted if the fork was not before Spurious Dragon.
#[test]
fn the_dao_fork_touches_no_account_without_ether() {
    let (empty, drained) = (
        address!("0101f3be8ebb4bbd39a2e3b9a3639d4259832fd9"),
        address!("bb9bc244d798123fde783fcc1c72d3bb8c189413"),
    );
    let rich = GenesisAccount {
        balance: U256::from(99),
        ..account(drained, 0, &[], &[])
    };
    let state = state(&[account(empty, 0, &[], &[]), rich]);
    let rules = Rules {
        dao: DaoRule::Transition,
        ..rules(Fork::SpuriousDragon)
    };
    let chain = RecentBlocks::default();
    let mut executor = Executor::new();
    let output = executor.run(&rules, &block(1, Vec::new()), &[], &state, &chain, None);
    let changes = output.expect("valid").changes;
    check_exact(&state, &changes);
    assert!(!changes.accounts.contains_key(&empty));
    assert_eq!(changes.accounts[&drained].new, None);
    // The drained account, the refund contract and the beneficiary.
    assert_eq!(changes.accounts.len(), 3);
}

/// Code of the shape of a delegation (EIP-7702) is plain code before Prague, and begins with an invalid instruction. It was followed under every fork
/// once it had been read from the state, and was plain code in the run that deployed it, so that one chain was accepted in one go and
/// refused after a restart.
#[test]
fn code_of_the_shape_of_a_delegation_is_one_from_prague_on() {
    let shape = [&[0xef, 1, 0][..], CONTRACT.as_slice()].concat();
    let stop = |address| account(address, 1, &[0], &[]);
    let state = state(&[
        account(NOBODY, 1, &shape, &[]),
        account(CONTRACT, 1, PUPPET, &[]),
        stop(address!("00000961ef480eb55e80d19ad83579a64c007002")),
        stop(address!("0000bbddc7ce488642fb579f8b00f3a590007251")),
    ]);
    let chain = RecentBlocks::default();
    // One executor keeps code from block to block.
    let mut executor = Executor::new();
    for (fork, stored) in [
        (Fork::Berlin, false),
        (Fork::Cancun, false),
        (Fork::Prague, true),
        (Fork::Osaka, true),
        (Fork::Cancun, false),
    ] {
        let block = block(1, vec![call(0, NOBODY, store(4, 5))]);
        let output = executor.run(&rules(fork), &block, &[SENDER], &state, &chain, None);
        let changes = output.expect("valid").changes;
        assert_eq!(changes.accounts.contains_key(&NOBODY), stored, "{fork:?}");
        if stored {
            assert_eq!(slots(&changes, NOBODY), [(4, 0, 5)], "{fork:?}");
        }
    }
}

/// Before Byzantium receipts carry the root after each transaction, before the block's reward.
#[test]
fn intermediate_roots_are_asked_with_each_transactions_changes() {
    struct Recorder(MemoryState, Vec<StateChanges>);
    impl IntermediateRoots for Recorder {
        fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
            check_exact(&self.0, changes);
            self.0.apply(changes);
            self.1.push(changes.clone());
            Ok(B256::with_last_byte(self.1.len() as u8))
        }
    }
    let state = state(&[account(CONTRACT, 1, PUPPET, &[(1, 10)])]);
    let child = SENDER.create(3);
    let txs = vec![
        call(0, CONTRACT, store(1, 11)),
        call(1, CONTRACT, store(1, 10)),
        call(2, CONTRACT, Bytes::new()),
        tx(3, TxKind::Create, 0, puppet_init()),
        call(4, child, store(1, 2)),
    ];
    let mut recorder = Recorder(state.clone(), Vec::new());
    let mut executor = Executor::new();
    let chain = RecentBlocks::default();
    let block = block(1, txs);
    let output = executor
        .run(
            &rules(Fork::Homestead),
            &block,
            &[SENDER; 5],
            &state,
            &chain,
            Some(&mut recorder),
        )
        .expect("valid");
    assert_eq!(slots(&recorder.1[0], CONTRACT), [(1, 10, 11)]);
    assert_eq!(slots(&recorder.1[1], CONTRACT), [(1, 11, 10)]);
    assert!(recorder.1[2].accounts[&CONTRACT].storage_cleared);
    assert_eq!(slots(&recorder.1[3], child), [(1, 0, 1)]);
    assert_eq!(slots(&recorder.1[4], child), [(1, 1, 2)]);
    for (n, receipt) in output.receipts.iter().enumerate() {
        let status = receipt.as_receipt().expect("receipt").status;
        assert_eq!(
            status.as_post_state(),
            Some(B256::with_last_byte(n as u8 + 1))
        );
    }
    // All that is missing afterwards is the reward.
    let mut after = state.clone();
    after.apply(&output.changes);
    let reward = StateChanges {
        accounts: [(MINER, output.changes.accounts[&MINER].clone())].into(),
        ..StateChanges::default()
    };
    assert_eq!(output.changes.accounts[&MINER].old, None);
    let mut last = recorder.0;
    last.apply(&reward);
    assert_eq!(last, after);
}

#[test]
fn rejected_transactions_are_named() {
    let fail = |fork, txs| match run(fork, &state(&[]), &block(1, txs)) {
        Err(ExecutionError::Invalid {
            number: 1, error, ..
        }) => match *error {
            BlockError::Transaction { index, error, .. } => (index, error),
            other => panic!("{other}"),
        },
        other => panic!("{other:?}"),
    };
    let txs = vec![call(0, NOBODY, Bytes::new()), call(2, NOBODY, Bytes::new())];
    let (index, error) = fail(Fork::Cancun, txs);
    assert_eq!(index, 1);
    assert!(matches!(error, TransactionError::Rejected(_)), "{error}");
    // 30 transactions of a million gas fit; what they did not use is left to the others.
    let burner: Bytes = hex!("fe").into();
    let txs = (0..31)
        .map(|n| tx(n, TxKind::Create, 0, burner.clone()))
        .collect();
    let (index, error) = fail(Fork::Cancun, txs);
    assert_eq!(
        (index, error),
        (
            30,
            TransactionError::GasAllowance {
                limit: 1_000_000,
                available: 0
            }
        )
    );
    let high_s = Transaction::Legacy(Signed::new_unchecked(
        TxLegacy::default(),
        Signature::new(U256::ONE, U256::MAX >> 1, false),
        B256::ZERO,
    ));
    assert_eq!(
        fail(Fork::Homestead, vec![high_s]),
        (0, TransactionError::HighS)
    );
}

#[test]
fn system_contracts_of_prague_must_be_there() {
    let error = run(Fork::Prague, &state(&[]), &block(1, Vec::new())).expect_err("no contracts");
    let error = error.block_error().expect("the block's fault");
    assert!(
        matches!(error, BlockError::SystemContractEmpty { .. }),
        "{error}"
    );
}

/// Fails one kind of read.
struct Broken<'a>(&'a MemoryState, &'static str);

impl Broken<'_> {
    fn check(&self, kind: &str) -> Result<(), ReadError> {
        if self.1 == kind {
            Err(ReadError::new(format!("no {kind}")))
        } else {
            Ok(())
        }
    }
}

impl StateView for Broken<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        if address == NOBODY {
            self.check("account")?;
        }
        self.0.account(address)
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        self.check("slot")?;
        self.0.storage(address, slot)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        self.check("code")?;
        self.0.code(code_hash)
    }
}

/// A contract that reads, calls `NOBODY` and asks for block 0's hash: whatever cannot be read stops the block
/// as an error of the state, at whatever depth.
#[test]
fn failing_reads_are_errors_of_the_state() {
    // SLOAD(0), BALANCE(0xdd), CALL(0xdd), BLOCKHASH(0)
    let code = hex!("6000545060dd315060008080808060dd5af1506000405000");
    let state = state(&[
        account(CONTRACT, 1, &code, &[]),
        account(NOBODY, 1, &[0], &[]),
    ]);
    let block = block(1, vec![call(0, CONTRACT, Bytes::new())]);
    for kind in ["account", "slot", "code", "block hash"] {
        let mut chain = RecentBlocks::default();
        if kind != "block hash" {
            let header = Header::default();
            chain.push(Ancestor {
                hash: B256::ZERO,
                header,
                ommers: Vec::new(),
            });
        }
        let view = Broken(&state, kind);
        let result =
            Executor::new().run(&rules(Fork::Cancun), &block, &[SENDER], &view, &chain, None);
        assert!(
            matches!(result, Err(ExecutionError::State { number: 1, .. })),
            "{kind}"
        );
    }
}

#[test]
fn reads_are_recorded() {
    let code = hex!("6000545060dd315060008080808060dd5af1506000405000");
    let state = state(&[
        account(CONTRACT, 1, &code, &[]),
        account(NOBODY, 1, &[0], &[]),
    ]);
    let mut chain = RecentBlocks::default();
    chain.push(Ancestor {
        hash: B256::ZERO,
        header: Header::default(),
        ommers: Vec::new(),
    });
    let view = RecordingView::new(&state, &chain);
    let block = block(1, vec![call(0, CONTRACT, Bytes::new())]);
    Executor::new()
        .run(
            &rules(Fork::Shanghai),
            &block,
            &[SENDER],
            &view,
            &view as &dyn Ancestors,
            None,
        )
        .expect("valid");
    let reads = view.into_reads();
    let slots: Vec<_> = reads.accounts[&CONTRACT].iter().copied().collect();
    assert_eq!(slots, [U256::ZERO]);
    let read: Vec<_> = reads.accounts.keys().copied().collect();
    assert_eq!(read, [SENDER, MINER, CONTRACT, NOBODY]);
    assert_eq!(reads.codes, [keccak256(code), keccak256([0])].into());
    assert_eq!(reads.ancestors, [0].into());
}
