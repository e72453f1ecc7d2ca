//! A database goes on by what its folder remembers.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use alloy_consensus::{Header, Transaction as _};
use alloy_eips::eip1559::BaseFeeParams;
use alloy_rlp::Encodable;
use arbor_chain::executor::{RecentBlocks, Rules};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::{Replay, ReplayError};
use arbor_chain::rules::ChainRules;
use arbor_chain::source::open_sources;
use arbor_database::{
    Budget, DatabaseError, Folder, OpenOptions, Remembered, RulesNotice, in_memory, network,
};
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_state::{BlockRef, Registry};
use arbor_versions::Retain;
use serde_json::{Value, json};

const MEMORY: u64 = 64 << 20;

/// EIP-4762's gas and EVM384.
fn rules() -> ChainRules {
    let table = [1; 12];
    let record = json!({
        "version": 1, "witnessGas": "eip4762",
        "evm384": { "interface": "v7", "gas": {
            "add": 3, "sub": 3, "mul": 6, "setModulus": 6,
            "registers": {
                "setModulus": 1, "transfer": 1, "oddModulus": table, "add": table, "mul": table,
            },
        } },
    });
    ChainRules::from_json(&record).expect("a record")
}

/// A generated chain whose blocks hold under [`rules`] alone.
struct Chain {
    text: String,
    genesis: Genesis,
    blocks: PathBuf,
    count: u64,
    _folder: tempfile::TempDir,
}

/// Adds 5 and 7 modulo 101 by EVM384, and stores the sum. Sum, operands and modulus are at 0, 48, 96 and 144.
const ADDITION: &str = concat!(
    "0x",
    "6065609053", // the modulus, MSTORE8
    "6005603053", // the operands
    "6007606053",
    "6f00000000000000300000006000000090", // PUSH16 of the offsets
    "c0",                                 // ADDMOD384
    "5f515f5500"                          // PUSH0 MLOAD PUSH0 SSTORE STOP
);

impl Chain {
    /// Generates a chain, has the contract that its first call goes to add by EVM384, and executes all blocks anew.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let settings = GeneratorSettings {
            blocks: 8,
            ..Preset::Tiny.settings()
        };
        let plain = folder.path().join("plain");
        generate(&settings, &plain, |_| ControlFlow::Continue(())).expect("generated");
        let text = std::fs::read_to_string(plain.join("genesis.json")).expect("a genesis");
        let old = Genesis::from_json(&text).expect("sound");
        let old_blocks = read(&plain, &old);
        let text = with_evm384(&text, &old_blocks);
        let mut genesis = Genesis::from_json(&text).expect("sound");
        rules().set(&mut genesis.spec);
        let blocks = folder.path().join("chain.rlp");
        let count = old_blocks.len() as u64;
        std::fs::write(&blocks, execute_anew(&genesis, old_blocks)).expect("written");
        Self {
            text,
            genesis,
            blocks,
            count,
            _folder: folder,
        }
    }

    /// The blocks from a number on.
    fn from(&self, number: u64) -> Vec<RecoveredBlock> {
        let mut blocks = read(&self.blocks, &self.genesis);
        blocks.retain(|block| block.block.header.number >= number);
        blocks
    }
}

fn read(path: &Path, genesis: &Genesis) -> Vec<RecoveredBlock> {
    let mut source = open_sources(&[path.to_owned()]).expect("a chain");
    source.skip_to(1).expect("block 1");
    let rules = SignatureRules::new(&genesis.spec);
    let raw = std::iter::from_fn(|| source.next_raw().expect("readable"));
    raw.map(|raw| prepare(raw, rules).expect("a block"))
        .collect()
}

/// Gives the contract that the chain's first call goes to the code of [`ADDITION`].
fn with_evm384(genesis: &str, blocks: &[RecoveredBlock]) -> String {
    let mut genesis: Value = serde_json::from_str(genesis).expect("JSON");
    let mut called = Vec::new();
    for block in blocks {
        for transaction in &block.block.body.transactions {
            if let (Some(to), false) = (transaction.to(), transaction.input().is_empty()) {
                called.push(alloy_primitives::hex::encode(to));
            }
        }
    }
    let alloc = genesis["alloc"].as_object_mut().expect("accounts");
    let place = |name: &str| {
        let name = name.trim_start_matches("0x").to_ascii_lowercase();
        called
            .iter()
            .position(|it| it.trim_start_matches("0x") == name)
    };
    let with_code = alloc
        .iter_mut()
        .filter(|(_, account)| account["code"].is_string());
    let called = with_code.filter_map(|(name, account)| Some((place(name)?, account)));
    let (_, first) = called.min_by_key(|(place, _)| *place).expect("a call");
    first["code"] = ADDITION.into();
    first["storage"] = json!({});
    genesis.to_string()
}

/// Makes blocks with the same transactions under [`rules`], as an export has them.
fn execute_anew(genesis: &Genesis, blocks: Vec<RecoveredBlock>) -> Vec<u8> {
    let tree = arbor_trees::MPT.tree();
    let mut state = in_memory(tree, network(genesis), Budget::new(MEMORY)).expect("opened");
    genesis.commit(&mut state, &|_, _| ()).expect("committed");
    let mut executor = rules().executor();
    let mut export = Vec::new();
    let mut parent: Header = genesis.header.clone();
    for RecoveredBlock {
        mut block, senders, ..
    } in blocks
    {
        let header = &mut block.header;
        header.parent_hash = parent.hash_slow();
        header.base_fee_per_gas = parent.next_block_base_fee(BaseFeeParams::ethereum());
        let at = Rules::at(&genesis.spec, &block.header, &parent, None);
        let earlier = RecentBlocks::default();
        let output = executor.run(&at, &block, &senders, &state, &earlier, None);
        let output = output.expect("transactions hold");
        let computed = state.compute(&output.changes).expect("computed");
        let header = &mut block.header;
        header.gas_used = output.gas_used;
        header.logs_bloom = output.logs_bloom;
        header.requests_hash = output.requests_hash();
        header.receipts_root = output.receipts_root.expect("a root of its own");
        header.state_root = computed.root();
        let made = BlockRef {
            number: header.number,
            hash: header.hash_slow(),
            record: Vec::new(),
        };
        state.commit(&made, computed).expect("committed");
        parent = header.clone();
        block.encode(&mut export);
    }
    export
}

/// Begins a database of the chain, with some of its blocks.
fn begin(folder: Folder<'_>, chain: &Chain, rules: ChainRules, last: u64) {
    begin_with(folder, chain, rules, last, Budget::new(MEMORY));
}

/// Like [`begin`], with another history than all.
fn begin_with(folder: Folder<'_>, chain: &Chain, rules: ChainRules, last: u64, budget: Budget) {
    let options = OpenOptions::new().network(network(&chain.genesis));
    let options = options.memory(budget.memory).retain(budget.retain);
    let state = options.open(folder.path()).expect("made");
    let what = Remembered {
        genesis: Some(&chain.text),
        rules: Some(rules),
        ..Remembered::default()
    };
    let other = folder.remember(&arbor_trees::MPT, what);
    assert_eq!(other.expect("remembered"), None);
    let replay = Replay::new(state, &chain.genesis, 1 << 16).expect("begun");
    let mut replay = replay.with_executor(rules.executor());
    for block in chain.from(1) {
        if block.block.header.number <= last {
            replay.block(block).expect("it holds");
        }
    }
    replay.into_state().flush().expect("written");
}

/// Goes on with the database in a folder as any embedder would, and returns the number of its latest block.
fn go_on(folder: Folder<'_>, blocks: Vec<RecoveredBlock>) -> Result<u64, ReplayError> {
    let resumed = folder.resume(MEMORY).expect("it remembers all");
    let mut replay = resumed.into_replay()?;
    let next = replay.head().0 + 1;
    for block in blocks {
        if block.block.header.number >= next {
            replay.block(block)?;
        }
    }
    let head = replay.head().0;
    replay.into_state().flush().expect("written");
    Ok(head)
}

#[test]
fn a_database_is_resumed_by_the_rules_of_its_blocks() {
    let chain = Chain::new();
    let trees = arbor_trees::standard();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let dir = dir.path().join("db");
    let folder = Folder::new(&dir, &trees);
    begin(folder, &chain, rules(), 3);
    assert_eq!(go_on(folder, chain.from(1)).expect("all hold"), chain.count);
    let state = folder.open_to_read(MEMORY).expect("opened");
    let root = state.reader().meta().map(|head| head.root.into());
    let last = chain.from(chain.count).remove(0).block.header;
    assert_eq!(root, Some(last.state_root));
}

/// The blocks show all rules: without any of them one does not hold.
#[test]
fn without_what_the_folder_remembers_blocks_do_not_hold() {
    let chain = Chain::new();
    let trees = arbor_trees::standard();
    for without in [
        ChainRules {
            witness_gas: None,
            ..rules()
        },
        ChainRules {
            evm384: None,
            ..rules()
        },
    ] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::new(dir.path(), &trees);
        begin(folder, &chain, without, 0);
        let error = go_on(folder, chain.from(1)).expect_err("other rules");
        assert!(error.to_string().contains("gasUsed"), "{error}");
    }
}

#[test]
fn rules_are_agreed_on() {
    let chain = Chain::new();
    let trees = arbor_trees::standard();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = Folder::new(dir.path(), &trees);
    assert_eq!(folder.rules().expect("none"), None);
    begin(folder, &chain, rules(), 0);
    // Without blocks other rules may be asked for.
    let none = ChainRules::default();
    let agreed = folder.agree_on_rules(none).expect("agreed");
    let in_place = Some(RulesNotice::InPlaceOf(rules()));
    assert_eq!((agreed.rules, agreed.notice), (none, in_place));
    go_on(folder, chain.from(1)).expect("all hold");
    let agreed = folder.agree_on_rules(none).expect("agreed");
    let as_before = Some(RulesNotice::AsBefore);
    assert_eq!((agreed.rules, agreed.notice), (rules(), as_before));
    let other = ChainRules {
        evm384: None,
        ..rules()
    };
    let error = folder.agree_on_rules(other).expect_err("other rules");
    assert!(matches!(error, DatabaseError::OtherRules { .. }), "{error}");
    // Opening the database changes none of them.
    drop(OpenOptions::new().open(dir.path()).expect("opened"));
    assert_eq!(folder.rules().expect("remembered"), Some(rules()));
}

/// `create` did not remember the history it was given. A resumed database then kept the usual 128 versions, and its next commits pruned the others.
#[test]
fn a_resumed_database_keeps_the_history_that_it_was_made_with() {
    let chain = Chain::new();
    let trees = arbor_trees::standard();
    for (retain, oldest) in [
        (Retain::All, 0),
        (Retain::Last(2), chain.count - 2),
        (Retain::None, chain.count),
    ] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::new(dir.path(), &trees);
        let budget = Budget {
            retain,
            ..Budget::new(MEMORY)
        };
        begin_with(folder, &chain, rules(), 3, budget);
        let resumed = folder.resume(MEMORY).expect("it remembers all");
        assert_eq!(resumed.budget.retain, retain);
        assert_eq!(resumed.state.versions().options().retain, retain);
        drop(resumed);
        go_on(folder, chain.from(1)).expect("all hold");
        let state = folder.open_to_read(MEMORY).expect("opened");
        let readable = state.reader().view().oldest().map(|version| version.0);
        assert_eq!(readable, Some(oldest), "{retain:?}");
    }
}

#[test]
fn history_is_remembered() {
    let trees: Registry = arbor_trees::standard();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = Folder::new(dir.path(), &trees);
    assert_eq!(folder.retention().expect("none"), Retain::Last(128));
    for retain in [Retain::None, Retain::Last(7), Retain::All] {
        folder.remember_retention(retain).expect("written");
        assert_eq!(folder.retention().expect("remembered"), retain);
    }
    std::fs::write(dir.path().join("retain"), "x").expect("written");
    let error = folder.retention().expect_err("damaged").to_string();
    assert!(error.contains("retain is damaged"), "{error}");
}
