//! Generated chains: the same bytes every time, valid for whoever executes them, continued after interruptions.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use alloy_consensus::{Header, Transaction as _, Typed2718};
use alloy_primitives::{U256, b256, keccak256};
use arbor_chain::executor::{BlockInput, Executor, RecentBlocks};
use arbor_chain::genesis::{Genesis, Population};
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::source::{Transaction, open_sources};
use arbor_generator::{
    GeneratorError, GeneratorSettings, Kind, Mix, Phase, Preset, Summary, generate,
};
use arbor_state::{BlockRef, Network, State, StateChanges, StateView};
use arbor_store::MemoryStore;
use arbor_trees::MPT;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("temporary directory")
}

fn make(settings: &GeneratorSettings, folder: &Path) -> Summary {
    generate(settings, folder, |_| ControlFlow::Continue(())).expect("generated")
}

fn make_until(settings: &GeneratorSettings, folder: &Path, block: u64) -> Summary {
    let stop = |at: u64| {
        if at == block {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    generate(settings, folder, |progress| stop(progress.block)).expect("generated")
}

fn chain_bytes(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("chain.rlp")).expect("chain.rlp")
}

fn tiny(blocks: u64) -> GeneratorSettings {
    GeneratorSettings {
        blocks,
        ..Preset::Tiny.settings()
    }
}

/// Executes a chain as a stranger would, from its two files alone, and checks every field of every header.
/// Returns the blocks and the state after the last.
fn replay(folder: &Path) -> (Vec<RecoveredBlock>, State) {
    let genesis_file = folder.join("genesis.json");
    let genesis = Genesis::from_file(&genesis_file).expect("sound genesis");
    assert_eq!(genesis.warnings, Vec::<String>::new());
    let mut source = open_sources(&[folder.to_owned()]).expect("sound chain");
    genesis.check_chain(&source).expect("the chain's genesis");

    let network = Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    };
    let store = Arc::new(MemoryStore::default());
    let mut state =
        State::open(store, None, MPT.tree(), network, Default::default()).expect("opens");
    let commit = |state: &mut State, header: &Header, hash, changes: &StateChanges| {
        let computed = state.compute(changes).expect("computed");
        assert_eq!(
            computed.root(),
            header.state_root,
            "state root of block {}",
            header.number
        );
        let block = BlockRef {
            number: header.number,
            hash,
            record: Vec::new(),
        };
        state.commit(&block, computed).expect("committed");
    };
    genesis
        .commit(&mut state, &|_, _| ())
        .expect("the root that the header has");

    let rules = SignatureRules::new(&genesis.spec);
    let mut executor = Executor::new();
    let (mut parent, mut parent_hash) = (genesis.header.clone(), genesis.hash);
    let mut blocks = Vec::new();
    while let Some(raw) = source.next_raw().expect("sound chain") {
        let block = prepare(raw, rules).expect("valid signatures");
        if block.block.header.number == 0 {
            assert_eq!(block.hash, genesis.hash);
            continue;
        }
        let input = BlockInput::new(&block, &parent, parent_hash, &genesis.spec);
        let output = executor
            .execute(&input, &state, &RecentBlocks::default(), None)
            .expect("a valid block");
        let all = output.receipts.iter().all(|receipt| receipt.status());
        assert!(
            all,
            "a transaction of block {} fails",
            block.block.header.number
        );
        commit(&mut state, &block.block.header, block.hash, &output.changes);
        (parent, parent_hash) = (block.block.header.clone(), block.hash);
        blocks.push(block);
    }
    (blocks, state)
}

/// The stored hashes say that a chain is the same on every machine, today and later. They change only when
/// the generator's format number does.
#[test]
fn the_tiny_chain_is_the_same_everywhere() {
    let folder = folder();
    let summary = make(&Preset::Tiny.settings(), folder.path());
    assert_eq!(
        [
            summary.head_hash,
            summary.state_root,
            keccak256(chain_bytes(folder.path()))
        ],
        [
            b256!("0x51f252a65342811bd0e2597620de2669668d46e1a8763dfefc248e406630eb2a"),
            b256!("0x36a6eadaddd566f9d2caaf46a75f26784e235ddf165f3169191c0d9435a8f7ba"),
            b256!("0xe8f5b9d4255ed96bab243211bb0bae912c67173751e7b46881c435fd75e3f3f6"),
        ],
    );
    let genesis = fs::read(folder.path().join("genesis.json")).expect("genesis.json");
    assert_eq!(
        keccak256(genesis),
        b256!("0xf60f725c79f1f0c4225fae1321804dda4ab552cdd86ee1c1a8c800622ff744a6")
    );
}

#[test]
fn another_seed_makes_another_chain() {
    let (one, two) = (folder(), folder());
    make(&tiny(2), one.path());
    make(&GeneratorSettings { seed: 2, ..tiny(2) }, two.path());
    assert_ne!(chain_bytes(one.path()), chain_bytes(two.path()));
}

#[test]
fn strangers_execute_the_chain_to_the_same_roots() {
    let folder = folder();
    let summary = make(&tiny(25), folder.path());
    let (blocks, state) = replay(folder.path());
    let last = blocks.last().expect("blocks");
    assert_eq!(
        (last.block.header.number, last.hash),
        (25, summary.head_hash)
    );
    assert_eq!(state.root(), summary.state_root);
    let transactions: Vec<Transaction> = blocks
        .iter()
        .flat_map(|block| block.block.body.transactions.clone())
        .collect();
    assert_eq!(transactions.len() as u64, summary.transactions);
    for kind in [0, 1, 2] {
        assert!(
            transactions.iter().any(|tx| tx.ty() == kind),
            "no transaction of type {kind}"
        );
    }
    assert!(
        transactions
            .iter()
            .any(|tx| tx.access_list().is_some_and(|list| !list.is_empty()))
    );
    for block in &blocks {
        assert!(
            block
                .block
                .body
                .withdrawals
                .as_ref()
                .is_some_and(|list| list.len() == 4)
        );
    }
    // Withdrawals reach their addresses.
    let withdrawal = blocks[0]
        .block
        .body
        .withdrawals
        .as_ref()
        .expect("checked above")[0];
    let account = state
        .account(withdrawal.address)
        .expect("readable")
        .expect("exists");
    assert!(account.balance >= withdrawal.amount_wei());
}

#[test]
fn every_kind_occurs_and_succeeds() {
    let folder = folder();
    let settings = GeneratorSettings {
        blocks: 60,
        ..Preset::Demo.settings()
    };
    let summary = make(&settings, folder.path());
    assert_eq!(summary.failed, 0);
    for (kind, count) in Kind::ALL.iter().zip(summary.by_kind) {
        if settings.mix.weight(*kind) == 0 {
            assert_eq!(count, 0, "{kind:?}");
            continue;
        }
        let expected = summary.transactions * u64::from(settings.mix.weight(*kind)) / 100;
        assert!(
            (expected / 2..expected * 2).contains(&count),
            "{kind:?}: {count} instead of {expected}"
        );
    }
}

#[test]
fn each_kind_alone_makes_a_valid_chain() {
    for kind in Kind::ALL {
        let folder = folder();
        let mix: Mix = format!("{}=1", kind.name()).parse().expect("a mix");
        let settings = GeneratorSettings {
            mix,
            population: 500,
            ..tiny(6)
        };
        let summary = make(&settings, folder.path());
        let of_others = summary.transactions - summary.by_kind[kind as usize];
        assert_eq!((summary.failed, of_others), (0, 0), "{kind:?}");
        assert!(
            summary.transactions >= 40,
            "{kind:?}: only {}",
            summary.transactions
        );
        replay(folder.path());
    }
}

#[test]
fn every_second_visit_is_of_the_large_contract() {
    let folder = folder();
    let settings = GeneratorSettings {
        mix: "visit=1".parse().expect("a mix"),
        population: 500,
        contract: 3_000,
        ..tiny(50)
    };
    let made = make(&settings, folder.path());
    assert_eq!(made.failed, 0);
    let (blocks, state) = replay(folder.path());
    let contract = Population::address(0);
    let (mut of_contract, mut high) = (0, 0);
    for block in &blocks {
        for transaction in &block.block.body.transactions {
            if transaction.to() != Some(contract) {
                continue;
            }
            let slot = U256::from_be_slice(&transaction.input()[..32]);
            let value = state.storage(contract, slot).expect("read");
            assert!(slot < U256::from(3_000) && !value.is_zero(), "{slot}");
            of_contract += 1;
            high += usize::from(slot >= U256::from(1_500));
        }
    }
    let all = made.transactions as usize;
    assert!(
        (all * 2 / 5..all * 3 / 5).contains(&of_contract),
        "{of_contract}"
    );
    assert!(
        (of_contract / 3..of_contract * 2 / 3).contains(&high),
        "{high}"
    );
}

#[test]
fn new_accounts_come_at_the_rate_that_was_asked_for() {
    for (rate, low, high) in [(0.0, 0, 0), (0.5, 800, 1200), (1.0, 2000, 2000)] {
        let folder = folder();
        let mix = "transfer=1".parse().expect("a mix");
        let settings = GeneratorSettings {
            new_account_rate: rate,
            mix,
            ..tiny(100)
        };
        assert_eq!(make(&settings, folder.path()).transactions, 2000);
        let (blocks, state) = replay(folder.path());
        let mut reached: Vec<_> = (blocks.iter())
            .flat_map(|block| &block.block.body.transactions)
            .filter_map(|tx| tx.to())
            .collect();
        reached.sort();
        reached.dedup();
        let genesis = Genesis::from_file(&folder.path().join("genesis.json"));
        let old: Vec<_> = genesis
            .expect("sound")
            .alloc
            .iter()
            .map(|account| account.address)
            .collect();
        let new = reached
            .iter()
            .filter(|address| !old.contains(address))
            .count();
        assert!((low..=high).contains(&new), "rate {rate}: {new}");
        for address in reached {
            assert!(state.account(address).expect("readable").is_some());
        }
    }
}

#[test]
fn popularity_follows_the_exponent() {
    let share_of_first = |zipf| {
        let folder = folder();
        make(&GeneratorSettings { zipf, ..tiny(20) }, folder.path());
        let (blocks, _) = replay(folder.path());
        let senders: Vec<_> = blocks.iter().flat_map(|block| &block.senders).collect();
        let most = senders
            .iter()
            .map(|one| senders.iter().filter(|other| *other == one).count())
            .max();
        most.unwrap_or(0) as f64 / senders.len() as f64
    };
    let (even, skewed) = (share_of_first(0.0), share_of_first(2.0));
    assert!(even < 0.1 && skewed > 0.5, "{even} and {skewed}");
}

/// Blocks as full as their gas allows drive the base fee up until demand falls.
#[test]
fn a_rising_base_fee_is_bounded() {
    let folder = folder();
    let full = GeneratorSettings {
        transactions_per_block: 60,
        gas_limit: 1_500_000,
        ..tiny(300)
    };
    let summary = make(&full, folder.path());
    assert!(summary.transactions < 300 * 60);
    let (blocks, _) = replay(folder.path());
    let fees: Vec<u64> = blocks
        .iter()
        .filter_map(|block| block.block.header.base_fee_per_gas)
        .collect();
    let highest = fees.iter().copied().max().expect("base fees");
    assert!(
        (10_000_000_000..13_000_000_000).contains(&highest),
        "{highest}"
    );
    assert!(fees.windows(2).any(|pair| pair[1] < pair[0]), "never falls");
}

#[test]
fn blocks_without_transactions_are_valid() {
    let folder = folder();
    make(
        &GeneratorSettings {
            transactions_per_block: 0,
            ..tiny(5)
        },
        folder.path(),
    );
    assert_eq!(replay(folder.path()).0.len(), 5);
}

#[test]
fn an_interrupted_chain_is_continued_to_the_same_bytes() {
    let whole = folder();
    let summary = make(&tiny(8), whole.path());
    let expected = chain_bytes(whole.path());
    for stop in [1, 5] {
        let folder = folder();
        let first = make_until(&tiny(8), folder.path(), stop);
        assert_eq!(
            (first.complete, first.head, first.made),
            (false, stop, stop)
        );
        let second = make(&tiny(8), folder.path());
        assert_eq!(
            (second.complete, second.made),
            (true, 8 - stop),
            "continued, not begun anew"
        );
        assert_eq!(chain_bytes(folder.path()), expected);
        assert_eq!(second.head_hash, summary.head_hash);
    }
}

/// What a crash can leave: a torn block, a file behind the state, a state that is lost, a genesis alone.
#[test]
fn a_crash_costs_work_but_no_block() {
    let whole = folder();
    make(&tiny(8), whole.path());
    let expected = chain_bytes(whole.path());
    let cut = |folder: &Path, len: usize| {
        let file = fs::OpenOptions::new()
            .write(true)
            .open(folder.join("chain.rlp"))
            .expect("opens");
        file.set_len(len as u64).expect("cut");
    };
    let crashes: [&dyn Fn(&Path); 5] = [
        &|folder| cut(folder, expected.len() - 1),
        &|folder| cut(folder, expected.len() / 2),
        &|folder| cut(folder, 700),
        &|folder| cut(folder, 0),
        &|folder| fs::remove_dir_all(folder.join(".state")).expect("removed"),
    ];
    for (index, crash) in crashes.into_iter().enumerate() {
        let folder = folder();
        make(&tiny(8), folder.path());
        crash(folder.path());
        let mut phases = Vec::new();
        let again = generate(&tiny(8), folder.path(), |progress| {
            phases.push(progress.phase);
            ControlFlow::Continue(())
        });
        assert!(again.expect("generated").complete);
        assert_eq!(chain_bytes(folder.path()), expected, "crash {index}");
        let caught_up = phases
            .iter()
            .filter(|phase| **phase == Phase::CatchingUp)
            .count();
        assert_eq!(caught_up, if index == 4 { 8 } else { 0 }, "crash {index}");
    }
}

#[test]
fn a_chain_can_be_made_longer_and_compressed() {
    let (whole, folder) = (folder(), folder());
    make(&tiny(7), whole.path());
    let compressed = GeneratorSettings {
        gzip: true,
        ..tiny(3)
    };
    let first = make(&compressed, folder.path());
    assert_eq!(first.chain, folder.path().join("chain.rlp.gz"));
    assert!(!folder.path().join("chain.rlp").exists());
    assert_eq!(replay(folder.path()).0.len(), 3);
    make(
        &GeneratorSettings {
            blocks: 7,
            ..compressed
        },
        folder.path(),
    );
    assert_eq!(replay(folder.path()).0.len(), 7);
    make(&tiny(7), folder.path());
    assert_eq!(chain_bytes(folder.path()), chain_bytes(whole.path()));
}

#[test]
fn a_folder_with_something_else_is_refused() {
    fn refusal(settings: &GeneratorSettings, folder: &Path) -> GeneratorError {
        generate(settings, folder, |_| ControlFlow::Continue(())).expect_err("refused")
    }
    let folder = folder();
    make(&tiny(4), folder.path());
    let before = chain_bytes(folder.path());
    let other = refusal(&GeneratorSettings { seed: 9, ..tiny(4) }, folder.path());
    assert!(
        matches!(other, GeneratorError::OtherSettings { field: "seed", .. }),
        "{other}"
    );
    let shorter = refusal(&tiny(3), folder.path());
    assert!(
        matches!(&shorter, GeneratorError::Settings(error) if error.field == "blocks"),
        "{shorter}"
    );
    let invalid = refusal(
        &GeneratorSettings {
            accounts: 0,
            ..tiny(4)
        },
        folder.path(),
    );
    assert!(
        matches!(&invalid, GeneratorError::Settings(error) if error.field == "accounts"),
        "{invalid}"
    );
    assert_eq!(chain_bytes(folder.path()), before, "nothing is lost");

    let mut damaged = before.clone();
    let last = damaged.len() - 40;
    damaged[last] ^= 1;
    fs::write(folder.path().join("chain.rlp"), &damaged).expect("written");
    fs::remove_dir_all(folder.path().join(".state")).expect("removed");
    let error = refusal(&tiny(4), folder.path());
    assert!(
        error.to_string().contains("block 4 is not the one"),
        "{error}"
    );

    fs::remove_file(folder.path().join("generator.json")).expect("removed");
    let foreign = refusal(&tiny(4), folder.path());
    assert!(
        matches!(foreign, GeneratorError::Foreign { .. }),
        "{foreign}"
    );

    let error = refusal(&tiny(4), &folder.path().join("chain.rlp").join("below"));
    assert!(matches!(error, GeneratorError::File { .. }), "{error}");
}
