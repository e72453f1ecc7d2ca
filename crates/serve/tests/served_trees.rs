//! Every tree answers, at every block that is kept.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::support::{Served, call};
use alloy_primitives::{Address, B256, U256};
use arbor_chain::executor::Executor;
use arbor_chain::witness::NodesFile;
use arbor_chain::witness::stateless::replay_witness;
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_serve::{Access, BlockFiles, Limits};
use arbor_state::StateError;
use arbor_verify::Verdict;
use arbor_verify::mpt::MissingAccounts;
use arbor_versions::Version;
use serde_json::{Value, json};

const BLOCKS: u64 = 6;

fn chain() -> tempfile::TempDir {
    chain_of(Preset::Tiny.settings())
}

fn chain_of(settings: GeneratorSettings) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = GeneratorSettings {
        blocks: BLOCKS,
        seed: 11,
        ..settings
    };
    generate(&settings, folder.path(), |_| ControlFlow::Continue(())).expect("generated");
    folder
}

#[test]
fn proofs_of_every_tree_hold_at_every_kept_block() {
    let chain = chain();
    let trees = arbor_trees::standard();
    let kinds = arbor_verify::standard();
    for tree in trees.rows() {
        let served = Served::replay(tree.name, chain.path());
        let server = served.serve(false, Limits::default(), Access::default());
        let head = served.snapshot.reader();
        let someone: Address = head
            .account_from(&[0; 32])
            .expect("read")
            .expect("there are accounts");
        for number in 0..=BLOCKS {
            let params = json!([someone, ["0x0", "0x1"], format!("{number:#x}")]);
            let mut answer = call(server.address(), "eth_getProof", &params);
            let proof = answer["result"].take();
            assert!(proof.is_object(), "{} {number}: {answer}", tree.name);
            if tree.name == "mpt" {
                assert_eq!(proof.get("tree"), None, "EIP-1186 has no such field");
                assert_eq!(proof.get("form"), None, "EIP-1186 has no such field");
            } else {
                assert_eq!(proof["tree"], tree.name);
                assert!(proof["form"].is_string(), "{proof}");
            }
            let proof = kinds.read(proof).expect("a proof");
            let version = Version(number);
            let meta = head.view().meta(version).expect("read").expect("kept");
            match proof.verify(B256::from(meta.root)).expect("well formed") {
                Verdict::True(claims) => {
                    assert!(!claims.accounts.is_empty() || !claims.leaves.is_empty());
                }
                Verdict::False(why) => panic!("{} {number}: {why}", tree.name),
            }
            let balance = call(
                server.address(),
                "eth_getBalance",
                &json!([someone, format!("{number:#x}")]),
            );
            assert!(balance["result"].is_string(), "{balance}");
        }
    }
}

/// Rebuilding old nodes went on to its end, however long that took.
#[test]
fn what_rebuilds_old_nodes_ends_with_its_time() {
    let chain = chain();
    let trees = arbor_trees::standard();
    for tree in trees.rows() {
        let served = Served::replay(tree.name, chain.path());
        let prove = |deadline: Instant| {
            let head = served.snapshot.reader().until(deadline);
            let then = head.at(Version(1))?;
            then.prove(Address::repeat_byte(7), &[U256::ZERO])
        };
        let begun = Instant::now();
        prove(begun + Duration::from_secs(600)).expect("in time");
        let late = prove(begun).expect_err("late").to_string();
        assert!(
            late.contains("did not end in time"),
            "{}: {late}",
            tree.name
        );
    }
}

/// The nodes of every tree but Merkle-Patricia were answered without the tree and the block.
#[test]
fn every_tree_answers_with_its_own_witness() {
    let chain = chain();
    let trees = arbor_trees::standard();
    for tree in trees.rows() {
        let served = Served::replay(tree.name, chain.path());
        let server = served.serve(true, Limits::default(), Access::default());
        let answer = call(server.address(), "debug_executionWitness", &json!(["0x3"]));
        if !tree.has_witnesses {
            assert!(answer["error"].is_object(), "{}: {answer}", tree.name);
            continue;
        }
        let text = answer.to_string();
        match NodesFile::parse(text.as_bytes()) {
            Ok(NodesFile::WithoutBlock(witness)) => {
                assert_eq!(tree.name, "mpt");
                assert_eq!(witness.block().expect("headers").0, 3);
                assert_eq!(answer["result"].as_object().expect("fields").len(), 3);
                for list in [&witness.state, &witness.headers] {
                    assert!(!list.is_empty());
                }
                for list in [&witness.state, &witness.codes, &witness.headers] {
                    assert!(list.is_sorted_by(|a, b| a < b));
                }
            }
            Ok(NodesFile::WithBlock(witness)) => {
                let named = witness.tree.as_ref().map(|tree| tree.name.as_str());
                assert_eq!(named, Some(tree.name));
                let spec = &served.genesis.spec;
                let missing = MissingAccounts::Error;
                replay_witness(&witness, spec, missing, Executor::new()).expect("it holds");
            }
            // Leaves with one proof.
            Err(_) => assert!(text.contains("erkleProof"), "{}: {text:.200}", tree.name),
        }
    }
}

#[test]
fn blocks_that_are_not_kept_are_named_with_those_that_are() {
    let chain = chain();
    let served = Served::replay("mpt", chain.path());
    let server = served.serve(false, Limits::default(), Access::default());
    let address = server.address();
    let someone = Address::repeat_byte(7);
    let error = |method: &str, params: Value| call(address, method, &params)["error"].take();
    let beyond = error("eth_getBalance", json!([someone, "0x99"]));
    assert_eq!(beyond["message"], "header not found");
    let unknown = error("eth_getBalance", json!([someone, B256::repeat_byte(1)]));
    assert_eq!(unknown["message"], "header for hash not found");
    let blocks = error("eth_getBlockByNumber", json!(["latest", false]));
    let message = blocks["message"].as_str().expect("a message");
    assert!(message.contains("arbor serve --chain"), "{message}");
}

/// Returns what a call of code answers, under changes of the contract and of the block.
fn call_under(
    address: SocketAddr,
    code: &str,
    mut contract: Value,
    block: &Value,
) -> Result<U256, String> {
    let to = Address::repeat_byte(0x77);
    // The code puts a word on the stack, which is returned.
    contract["code"] = format!("0x{code}5f5260205ff3").into();
    let accounts = json!({to.to_string(): contract});
    let mut answer = call(
        address,
        "eth_call",
        &json!([{"to": to}, "0x3", accounts, block]),
    );
    match answer["error"]["message"].as_str() {
        Some(why) => Err(why.to_owned()),
        None => Ok(serde_json::from_value(answer["result"].take()).expect("a word")),
    }
}

#[test]
fn calls_see_the_state_and_the_block_that_they_ask_for() {
    let chain = chain();
    for tree in ["mpt", "verkle"] {
        let served = Served::replay(tree, chain.path());
        let server = served.serve(false, Limits::default(), Access::default());
        let ask = |code: &str, contract: Value, block: Value| {
            call_under(server.address(), code, contract, &block)
        };
        let word = |value: u64| B256::from(U256::from(value));
        let slots = json!({word(0).to_string(): word(9)});
        // SLOAD of slot 0, the own balance, and the nonce as the address of a creation shows it.
        assert_eq!(ask("5f54", json!({}), json!(null)), Ok(U256::ZERO));
        assert_eq!(
            ask("5f54", json!({"state": slots}), json!(null)),
            Ok(U256::from(9))
        );
        let diff = json!({"stateDiff": slots});
        assert_eq!(ask("5f54", diff.clone(), json!(null)), Ok(U256::from(9)));
        assert_eq!(ask("600154", diff, json!(null)), Ok(U256::ZERO));
        assert_eq!(
            ask("47", json!({"balance": "0x2a"}), json!(null)),
            Ok(U256::from(42))
        );
        let made = Address::repeat_byte(0x77).create(7);
        let made = U256::from_be_slice(made.as_slice());
        assert_eq!(
            ask("5f5f5ff0", json!({"nonce": "0x7"}), json!(null)),
            Ok(made)
        );
        // Number, time, gas limit and beneficiary of the block.
        assert_eq!(ask("43", json!({}), json!({})), Ok(U256::from(3)));
        let block = json!({"number": "0x5", "time": "0x7fffffff", "gasLimit": "0x1234", "feeRecipient": Address::repeat_byte(1)});
        for (code, value) in [
            ("43", U256::from(5)),
            ("42", U256::from(0x7fff_ffff)),
            ("45", U256::from(0x1234)),
            ("41", U256::from_be_slice(&[1; 20])),
        ] {
            assert_eq!(ask(code, json!({}), block.clone()), Ok(value), "{code}");
        }
        let both = json!({"state": {}, "stateDiff": {}});
        let why = ask("43", both, json!(null)).expect_err("one of two");
        assert!(why.contains("has both 'state' and 'stateDiff'"), "{why}");
        let moved = json!({"movePrecompileToAddress": Address::ZERO});
        let why = ask("43", moved, json!(null)).expect_err("it is not taken");
        assert!(
            why.contains("unknown field `movePrecompileToAddress`"),
            "{why}"
        );
        let why = ask("43", json!({}), json!({"withdrawals": []})).expect_err("it is not taken");
        assert!(
            why.starts_with("invalid argument 3: unknown field `withdrawals`"),
            "{why}"
        );
    }
}

/// All pages of `debug_accountRange` by address, and how many there were.
fn pages(address: SocketAddr, storage: bool) -> (BTreeMap<String, Value>, usize) {
    let (mut accounts, mut from, mut pages) = (BTreeMap::new(), json!("0x"), 0);
    loop {
        let params = json!(["latest", from, 0, false, !storage, false]);
        let mut answer = call(address, "debug_accountRange", &params);
        let mut page = answer["result"].take();
        let listed = page["accounts"]
            .as_object()
            .unwrap_or_else(|| panic!("{answer}"));
        for (name, account) in listed {
            let before = accounts.insert(name.clone(), account.clone());
            assert_eq!(before, None, "{name} is on two pages");
        }
        pages += 1;
        from = page["next"].take();
        if from.is_null() {
            return (accounts, pages);
        }
    }
}

#[test]
fn pages_of_accounts_have_all_accounts_and_slots_of_every_tree() {
    let chain = chain();
    for tree in arbor_trees::standard().rows() {
        let served = Served::replay(tree.name, chain.path());
        let mut dumped = BTreeMap::new();
        let mut largest = 0;
        let then = served.snapshot.reader().at(Version(BLOCKS)).expect("kept");
        then.dump(|account| {
            largest = largest.max(account.storage.len());
            let mut line = serde_json::to_value(&account).expect("JSON");
            if tree.name != "mpt" {
                line.as_object_mut().expect("fields").remove("root");
            }
            dumped.insert(account.address.to_checksum(None), line);
            Ok::<_, StateError>(())
        })
        .expect("dumped");
        assert!(largest > 1, "a contract has slots");
        let mut limits = Limits::default();
        limits.calls.slots = largest;
        let server = served.serve(false, limits.clone(), Access::default());
        let (listed, count) = pages(server.address(), true);
        assert!(count > 1, "{count} pages");
        assert_eq!(listed, dumped, "{}", tree.name);

        // One slot less than the largest account has: it is listed without slots alone.
        limits.calls.slots = largest - 1;
        let server = served.serve(false, limits, Access::default());
        let owner = dumped.values().find(|account| {
            let slots = account["storage"].as_object();
            slots.is_some_and(|slots| slots.len() == largest)
        });
        let owner = owner.expect("the largest account");
        let from = match tree.name {
            "mpt" => &owner["key"],
            _ => &owner["address"],
        };
        let refused = call(
            server.address(),
            "debug_accountRange",
            &json!(["latest", from]),
        );
        let message = refused["error"]["message"].as_str().expect("an error");
        let name = owner["address"].as_str().expect("an address");
        assert!(message.contains(name), "{message}");
        let (listed, _) = pages(server.address(), false);
        for line in dumped.values_mut() {
            line.as_object_mut().expect("fields").remove("storage");
        }
        assert_eq!(listed, dumped, "{}", tree.name);
    }
}

/// A database that went to another branch while it was served gave that one's state for a hash of the files' branch, and the files' blocks.
#[test]
fn files_of_another_branch_are_not_mixed_with_the_database() {
    let mut other = Preset::Tiny.settings();
    other.mix = "transfer=1".parse().expect("a mix");
    let (chain, files) = (chain(), chain_of(other));
    let mut served = Served::replay("mpt", chain.path());
    served.chain = vec![files.path().to_owned()];
    let files = BlockFiles::read(&served.chain, &served.genesis).expect("the same genesis");
    let server = served.serve(true, Limits::default(), Access::default());
    let head = served.snapshot.reader();
    let of_database = head.view().meta(Version(3)).expect("read").expect("kept");
    let of_database = B256::from(of_database.block_hash);
    let of_files = (1..=BLOCKS).filter_map(|number| files.hash(number));
    let of_files: Vec<B256> = of_files.collect();
    assert!(!of_files.contains(&of_database));
    let address = server.address();
    let ask = |method: &str, params: Value| call(address, method, &params);
    let someone = Address::repeat_byte(7);
    let balance = ask("eth_getBalance", json!([someone, of_database]));
    assert_eq!(balance["result"], "0x0");
    for hash in of_files {
        let balance = ask("eth_getBalance", json!([someone, {"blockHash": hash}]));
        assert_eq!(balance["error"]["message"], "header for hash not found");
        let block = ask("eth_getBlockByHash", json!([hash, false]));
        assert!(
            block["result"].is_null() && block.get("error").is_none(),
            "{block}"
        );
    }
    let block = ask("eth_getBlockByNumber", json!(["0x3", false]));
    let why = block["error"]["message"].as_str().expect("refused");
    assert!(why.contains("on another branch"), "{why}");
    // Methods by hash took numbers, and those by number took hashes.
    for (method, block) in [
        ("eth_getBlockByHash", json!("0x1")),
        ("eth_getBlockByHash", json!("latest")),
        ("eth_getBlockByNumber", json!(of_database)),
    ] {
        let refused = ask(method, json!([block, false]));
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
}
