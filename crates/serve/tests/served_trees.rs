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
            let kinds = kinds.only(tree.name).expect("known");
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
        let why = ask("43", json!({}), json!({"hash": "0x"})).expect_err("it is not taken");
        assert!(
            why.starts_with("invalid argument 3: unknown field `hash`"),
            "{why}"
        );
        for name in ["withdrawals", "beaconRoot"] {
            let why = ask("43", json!({}), json!({name: []})).expect_err("it is not taken");
            let wanted = "is not supported for this RPC method";
            assert_eq!(why, format!("block override {name:?} {wanted}"));
        }
        // No difficulty is seen from the merge on.
        let difficulty = json!({"difficulty": "0x7", "prevRandao": word(9)});
        assert_eq!(ask("44", json!({}), difficulty), Ok(U256::from(9)));
    }
}

/// The price of blob gas was zero in each call that offered none, and could not be changed.
#[test]
fn calls_see_the_price_of_blob_gas() {
    let chain = chain();
    let served = Served::replay("mpt", chain.path());
    let server = served.serve(false, Limits::default(), Access::default());
    let ask = |block: Value| call_under(server.address(), "4a", json!({}), &block);
    let price = call(server.address(), "eth_blobBaseFee", &json!([]));
    let price: U256 = serde_json::from_value(price["result"].clone()).expect("a number");
    assert!(price > U256::ZERO);
    assert_eq!(ask(json!({})), Ok(price));
    assert_eq!(ask(json!({"blobBaseFee": "0x7"})), Ok(U256::from(7)));
    assert_eq!(ask(json!({"blobBaseFee": "0x0"})), Ok(U256::ZERO));
    // With a fee of zero for blobs, the price is zero.
    let to = Address::repeat_byte(0x77);
    let code = json!({to.to_string(): {"code": "0x4a5f5260205ff3"}});
    let free = json!([{"to": to, "maxFeePerBlobGas": "0x0"}, "0x3", code]);
    let free = call(server.address(), "eth_call", &free);
    assert_eq!(free["result"], json!(B256::ZERO), "{free}");
}

/// A call in a block of a higher number was given the hashes of blocks after its state, or failed.
#[test]
fn a_call_sees_no_hash_of_a_block_after_its_state() {
    let chain = chain();
    let served = Served::replay("mpt", chain.path());
    let server = served.serve(false, Limits::default(), Access::default());
    let hash = |number: u64, block: Value| {
        let code = format!("61{number:04x}40");
        call_under(server.address(), &code, json!({}), &block)
    };
    let head = served.snapshot.reader();
    let meta = head.view().meta(Version(2)).expect("read").expect("kept");
    let of_2 = U256::from_be_bytes(meta.block_hash);
    for (number, block, expected) in [
        (2, json!({}), of_2),
        (3, json!({}), U256::ZERO),
        (2, json!({"number": "0x6"}), of_2),
        (3, json!({"number": "0x6"}), U256::ZERO),
        (5, json!({"number": "0x6"}), U256::ZERO),
        (9_999, json!({"number": "0x2710"}), U256::ZERO),
        (2, json!({"number": "0x2"}), U256::ZERO),
    ] {
        assert_eq!(
            hash(number, block.clone()),
            Ok(expected),
            "{number} {block}"
        );
    }
}

/// revm calls it an overflow if `DUP` and `SWAP` find too few words.
#[test]
fn an_underflow_of_the_stack_is_told_from_an_overflow() {
    let chain = chain();
    let served = Served::replay("mpt", chain.path());
    let server = served.serve(false, Limits::default(), Access::default());
    for (code, wanted) in [
        ("80", "stack underflow"),
        ("5f90", "stack underflow"),
        ("01", "stack underflow"),
        ("5b5f600056", "stack limit reached 1024 (1023)"),
    ] {
        let why = call_under(server.address(), code, json!({}), &json!({}));
        assert_eq!(why, Err(wanted.to_owned()), "{code}");
    }
}

/// Input and older name, empty lists, and fees of access lists: as in go-ethereum.
#[test]
fn the_fields_of_calls_mean_what_they_mean_to_go_ethereum() {
    let chain = chain();
    let served = Served::replay("mpt", chain.path());
    let server = served.serve(false, Limits::default(), Access::default());
    let to = Address::repeat_byte(0x77);
    // It returns the first word of its input.
    let accounts = json!({
        to.to_string(): {"code": "0x5f355f5260205ff3"},
        Address::ZERO.to_string(): {"balance": U256::from(10).pow(U256::from(24))},
    });
    let ask = |method: &str, fields: Value| {
        let mut fields = fields;
        fields["to"] = json!(to);
        fields["gas"] = json!("0x186a0");
        call(
            server.address(),
            method,
            &json!([fields, "latest", accounts]),
        )
    };
    // `input` is preferred; two unlike ones were refused.
    let (one, two) = (B256::with_last_byte(1), B256::with_last_byte(2));
    let both = ask("eth_call", json!({"data": one, "input": two}));
    assert_eq!(both["result"], json!(two), "{both}");
    assert_eq!(ask("eth_call", json!({"data": one}))["result"], json!(one));

    // Empty lists were taken for none.
    let from = Address::ZERO.to_checksum(None);
    for (list, why) in [
        (
            "blobVersionedHashes",
            "blob transaction missing blob hashes".to_owned(),
        ),
        (
            "authorizationList",
            format!("EIP-7702 transaction with empty auth list (sender {from})"),
        ),
    ] {
        let refused = ask("eth_call", json!({list: []}));
        assert_eq!(
            refused["error"]["message"],
            format!("err: {why} (supplied gas 100000)")
        );
        assert_eq!(refused["error"]["code"], -32000);
        for method in ["eth_estimateGas", "eth_createAccessList"] {
            let refused = ask(method, json!({list: []}));
            let message = refused["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(&why), "{method}: {refused}");
        }
        assert!(ask("eth_call", json!({list: null}))["result"].is_string());
    }

    // The fee of an access list follows from the tip.
    let made = ask(
        "eth_createAccessList",
        json!({"maxPriorityFeePerGas": "0x3b9aca00"}),
    );
    assert!(made["result"]["gasUsed"].is_string(), "{made}");
    for (fields, why) in [
        (
            json!({"gasPrice": "0x0"}),
            "gasPrice must be non-zero after london fork",
        ),
        (
            json!({"maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}),
            "maxFeePerGas (0x1) < maxPriorityFeePerGas (0x2)",
        ),
        (
            json!({"maxFeePerBlobGas": "0x0"}),
            "maxFeePerBlobGas, if specified, must be non-zero",
        ),
        (
            json!({"gasPrice": "0x1", "authorizationList": []}),
            "both gasPrice and authorizationList specified",
        ),
    ] {
        let refused = ask("eth_createAccessList", fields);
        assert_eq!(refused["error"]["message"], why);
    }
    let tip = ask("eth_call", json!({"maxPriorityFeePerGas": "0x1"}));
    let message = tip["error"]["message"].as_str().expect("refused");
    let why = "max priority fee per gas higher than max fee per gas: address 0x0";
    assert!(message.contains(why), "{message}");
}

/// The database may be ahead of the files of its chain.
#[test]
fn blocks_and_transactions_beyond_the_files_are_told_apart_from_none() {
    let (chain, short) = (chain(), tempfile::tempdir().expect("a temporary folder"));
    let settings = GeneratorSettings {
        blocks: 3,
        seed: 11,
        ..Preset::Tiny.settings()
    };
    generate(&settings, short.path(), |_| ControlFlow::Continue(())).expect("generated");
    let mut served = Served::replay("mpt", chain.path());
    let whole = served.serve(true, Limits::default(), Access::default());
    served.chain = vec![short.path().to_owned()];
    let server = served.serve(true, Limits::default(), Access::default());
    let first = |number: &str| {
        let params = json!([number, "0x0"]);
        let found = call(
            whole.address(),
            "eth_getTransactionByBlockNumberAndIndex",
            &params,
        );
        found["result"]["hash"].clone()
    };
    let ask = |hash: Value| call(server.address(), "eth_getTransactionByHash", &json!([hash]));
    assert_eq!(ask(first("0x2"))["result"]["blockNumber"], "0x2");
    let beyond = ask(first("0x5"));
    let why = beyond["error"]["message"].as_str().expect("an error");
    assert!(
        why.contains("blocks 0 to 3;") && why.contains("up to 6"),
        "{why}"
    );
    // Nobody knows whether the files' end has it: with whole files there is none.
    let none = call(
        whole.address(),
        "eth_getTransactionByHash",
        &json!([B256::repeat_byte(1)]),
    );
    assert!(
        none["result"].is_null() && none.get("error").is_none(),
        "{none}"
    );

    // The end of the files is told, unless it is the head.
    let newest = |server: &arbor_serve::Server, of: &str| {
        let capabilities = call(server.address(), "eth_capabilities", &json!([]));
        capabilities["result"][of].get("newestBlock").cloned()
    };
    for of in ["blocks", "tx"] {
        assert_eq!(newest(&server, of), Some(json!("0x3")));
        assert_eq!(newest(&whole, of), None);
    }
    assert_eq!(newest(&server, "state"), None);
}

#[test]
fn the_price_of_gas_is_the_base_fee_and_a_tip() {
    let chain = chain();
    let served = Served::replay("mpt", chain.path());
    let server = served.serve(true, Limits::default(), Access::default());
    let ask =
        |method: &str, params: Value| call(server.address(), method, &params)["result"].take();
    let number = |value: Value| serde_json::from_value::<U256>(value).expect("a number");
    let mut tips = Vec::new();
    let mut base_fee = U256::ZERO;
    for block in 1..=BLOCKS {
        let block = ask("eth_getBlockByNumber", json!([format!("{block:#x}"), true]));
        base_fee = number(block["baseFeePerGas"].clone());
        let transactions = block["transactions"].as_array().expect("a list").iter();
        let of_others = transactions.filter(|tx| tx["from"] != block["miner"]);
        let mut of_block: Vec<U256> = of_others
            .map(|tx| number(tx["gasPrice"].clone()) - base_fee)
            .filter(|tip| *tip >= U256::from(2))
            .collect();
        of_block.sort_unstable();
        of_block.truncate(3);
        assert!(!of_block.is_empty());
        tips.extend(of_block);
    }
    tips.sort_unstable();
    let tip = tips[(tips.len() - 1) * 60 / 100];
    assert_eq!(number(ask("eth_maxPriorityFeePerGas", json!([]))), tip);
    assert_eq!(number(ask("eth_gasPrice", json!([]))), tip + base_fee);
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
