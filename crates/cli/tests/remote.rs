//! `--rpc`: blocks and witnesses that are taken from a node.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alloy_primitives::{B256, Bytes, U64};
use arbor_chain::genesis::Genesis;
use arbor_chain::source::open_sources;
use serde_json::{Value, json};

use crate::serve::Serving;
use crate::support::Folder;

/// A generated chain in which slots and accounts go, so that branches collapse.
fn chain_with_deletions() -> Folder {
    let folder = Folder::new();
    let mix = "transfer=2,erc20=3,wide=2,sparse=2,delete=6,swap=1,create=1";
    folder
        .run(&[
            "generate", "--preset", "tiny", "--blocks", "12", "--txs", "12", "--mix", mix, "--out",
            "chain",
        ])
        .ok();
    folder
        .run(&["replay", "--db", "db", "--retain", "all", "chain"])
        .ok();
    folder
}

fn set(list: &Value) -> BTreeSet<String> {
    let items = list.as_array().expect("a list").iter();
    items.map(Value::to_string).collect()
}

fn read(folder: &Folder, name: &str) -> Value {
    let text = std::fs::read(folder.path(name)).expect("written");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn a_witness_is_taken_from_a_node_or_built_from_its_proofs() {
    let folder = chain_with_deletions();
    let serving = Serving::start(&folder, "serve --db db --chain chain --http 0");
    let url = format!("http://{}", serving.address);
    let fetch = |more: &[&str]| {
        let begin = ["witness", "--rpc", &url, "--genesis", "chain/genesis.json"];
        folder.run(&[&begin[..], more].concat())
    };
    let own = ["witness", "--db", "db", "--block", "1", "--to", "12"];
    folder
        .run(&[&own[..], &["--out", "own", "chain"]].concat())
        .ok();
    let all = ["--block", "1", "--to", "latest"];
    let taken = fetch(&[&all[..], &["--out", "taken"]].concat());
    let taken = taken.ok().stderr();
    assert!(
        taken.contains("block 12: taken from debug_executionWitness."),
        "{taken}"
    );
    let built = fetch(&[&all[..], &["--out", "built", "--from-proofs"]].concat());
    let built = built.ok().stderr();
    assert!(
        built.contains("block 12: built from eth_getProof."),
        "{built}"
    );
    for block in 1..=12 {
        let own = read(&folder, &format!("own/{block}.json"));
        for other in ["taken", "built"] {
            let other = read(&folder, &format!("{other}/{block}.json"));
            for list in ["stateNodes", "codes", "ancestorHeadersRlp"] {
                assert_eq!(
                    set(&own[list]),
                    set(&other[list]),
                    "{list} of block {block}"
                );
            }
            assert_eq!(own["blockRlp"], other["blockRlp"]);
            assert_eq!(own["config"], other["config"]);
        }
        folder
            .run(&[
                "replay",
                "--witness",
                &format!("built/{block}.json"),
                "--genesis",
                "chain/genesis.json",
            ])
            .ok();
    }
    // The block is named in other ways.
    fetch(&["--block", "-2", "--from-proofs", "--out", "back.json"]).ok();
    let hash = read(&folder, "back.json")["hash"]
        .as_str()
        .expect("a hash")
        .to_owned();
    fetch(&["--block", &hash, "--out", "by-hash.json.gz"]).ok();

    fetch(&["--block", "99"]).fails_with(&["the node has no block 99"]);
    fetch(&["--block", "0"]).fails_with(&["block 0 is the genesis"]);
    fetch(&["--block", "3", "--db", "db"]).fails_with(&["--db db is of no use with --rpc"]);
    folder
        .run(&["witness", "--rpc", &url, "--block", "3"])
        .fails_with(&["that of no public network: give --genesis FILE"]);
    folder
        .run(&[
            "witness",
            "--rpc",
            &url,
            "--block",
            "3",
            "--genesis",
            "sepolia",
        ])
        .fails_with(&["begins with block 0x", "the genesis sepolia with 0x"]);
    folder
        .run(&["witness", "--rpc", "https://example.org", "--block", "3"])
        .fails_with(&["This program has no TLS"]);
    folder
        .run(&["witness", "--rpc", "http://127.0.0.1:9", "--block", "3"])
        .fails_with(&["http://127.0.0.1:9: eth_chainId"]);
    folder
        .run(&[
            "witness", "--db", "db", "--block", "3", "--gas", "eip4762", "chain",
        ])
        .fails_with(&["of no use without --rpc"]);
}

#[test]
fn witnesses_are_compared_node_by_node() {
    let folder = chain_with_deletions();
    folder
        .run(&[
            "witness", "--db", "db", "--block", "5", "--out", "a.json", "chain",
        ])
        .ok();
    let diff = |a: &str, b: &str, more: &[&str]| {
        folder.run(&[&["witness", "diff", a, b][..], more].concat())
    };
    let same = diff("a.json", "a.json", &["--json"]).ok().json();
    assert_eq!((&same["block"], &same["nodes"]), (&json!(5), &json!([])));

    // One has a node less and one that nothing needs, no code, and another form without the block.
    let whole = read(&folder, "a.json");
    let nodes = whole["stateNodes"].as_array().expect("nodes");
    let mut state = nodes.clone();
    let gone = state.pop().expect("a node");
    state.push(json!("0xc22001"));
    let other = json!({"state": state, "codes": [], "headers": whole["ancestorHeadersRlp"]});
    std::fs::write(folder.path("b.json"), other.to_string()).expect("written");
    let found = diff("a.json", "b.json", &["--json"]);
    found.fails_with(&["the witnesses differ in 2 nodes"]);
    let found = found.json();
    let nodes = found["nodes"].as_array().expect("nodes");
    assert_eq!(found["commonNodes"], state.len() - 1);
    let gone: Bytes = serde_json::from_value(gone).expect("bytes");
    let hash = alloy_primitives::keccak256(&gone);
    assert_eq!(
        (&nodes[0]["onlyIn"], &nodes[0]["hash"]),
        (&json!("a"), &json!(hash))
    );
    assert_eq!(nodes[0]["canonical"], true);
    assert_eq!(nodes[0]["places"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&nodes[1]["onlyIn"], &nodes[1]["places"]),
        (&json!("b"), &json!([]))
    );
    assert_eq!(
        (&nodes[1]["canonical"], &nodes[1]["names"]),
        (&json!(false), &json!([]))
    );
    let codes = found["codes"].as_array().expect("codes");
    assert_eq!(codes.len(), whole["codes"].as_array().map_or(0, Vec::len));
    assert!(
        codes.iter().all(|code| code["accounts"] != json!([])),
        "{codes:?}"
    );
    let text = diff("a.json", "b.json", &[]).stdout();
    assert!(
        text.contains("to which the state root does not lead: no name of the block"),
        "{text}"
    );

    // The storage of one account: each node serves slots of it.
    let proofs = ["--block", "5", "--out", "c.json", "chain"];
    folder
        .run(&[&["witness", "--db", "db"][..], &proofs].concat())
        .ok();
    let text = diff("c.json", "c.json", &[]).ok().stdout();
    assert!(text.contains("in both"), "{text}");

    // Without the block nodes have no names; the chain has it.
    let bare = json!({"state": nodes_of(&whole), "codes": whole["codes"], "headers": whole["ancestorHeadersRlp"]});
    std::fs::write(folder.path("bare.json"), bare.to_string()).expect("written");
    let unnamed = diff("bare.json", "b.json", &["--json"]).json();
    assert_eq!(unnamed["unnamed"], "the block is not known");
    let named = diff(
        "bare.json",
        "b.json",
        &["--json", "--witness-chain", "chain"],
    )
    .json();
    assert_eq!(named["nodes"], found["nodes"]);
    let names = named["nodes"][0]["names"].as_array().expect("names");
    assert!(
        names.iter().all(|name| name["account"].is_string()),
        "{names:?}"
    );

    folder
        .run(&[
            "witness",
            "--db",
            "db",
            "--block",
            "6",
            "--out",
            "later.json",
            "chain",
        ])
        .ok();
    diff("a.json", "later.json", &[]).fails_with(&["the parent's hash in the second witness"]);
    diff("-", "-", &[]).fails_with(&["not both"]);
    diff("a.json", "nowhere.json", &[]).fails_with(&["nowhere.json"]);
}

fn nodes_of(witness: &Value) -> Value {
    witness["stateNodes"].clone()
}

/// The error spoke of a missing field.
#[test]
fn a_node_with_another_tree_is_told_by_its_name() {
    let folder = Folder::with_chain();
    // A node under Verkle gives its own witness.
    let words = [
        "replay", "--db", "db", "--tree", "ar16mt", "--retain", "all", "chain",
    ];
    folder.run(&words).ok();
    let serving = Serving::start(&folder, "serve --db db --chain chain --http 0");
    let url = format!("http://{}", serving.address);
    let genesis = ["--rpc", &url, "--genesis", "chain/genesis.json"];
    let words = [&["witness", "--block", "3"][..], &genesis].concat();
    let wanted = "in a tree ar16mt. This command needs Merkle-Patricia proofs";
    folder.run(&words).fails_with(&[wanted]);
}

/// A node that has blocks and nothing else, and whose branch can be changed.
struct Stub {
    url: String,
    chain: Arc<Mutex<StubChain>>,
}

#[derive(Clone, Default)]
struct StubChain {
    blocks: Vec<(B256, Bytes)>,
    /// Blocks that the node counts and does not give.
    more: usize,
}

impl Stub {
    fn start(chain_id: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let chain: Arc<Mutex<StubChain>> = Arc::default();
        let served = Arc::clone(&chain);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let chain = served.lock().expect("not poisoned").clone();
                answer(stream, chain_id, &chain);
            }
        });
        Self { url, chain }
    }

    /// Has these blocks from now on, block 0 first.
    fn set(&self, blocks: &[(B256, Bytes)]) {
        self.claim(blocks, 0);
    }

    /// The same, and counts more blocks than it gives.
    fn claim(&self, blocks: &[(B256, Bytes)], more: usize) {
        let blocks = blocks.to_vec();
        *self.chain.lock().expect("not poisoned") = StubChain { blocks, more };
    }
}

/// Answers one request, and closes the connection.
fn answer(mut stream: TcpStream, chain_id: u64, chain: &StubChain) {
    let StubChain { blocks, more } = chain;
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let request: Value = serde_json::from_slice(&body).expect("JSON");
    let one = |call: &Value| {
        let number: Option<U64> = serde_json::from_value(call["params"][0].clone()).ok();
        let number = number.map(|number| number.to::<u64>() as usize);
        let block = number.and_then(|number| blocks.get(number));
        let result = match call["method"].as_str() {
            Some("eth_chainId") => json!(U64::from(chain_id)),
            Some("eth_blockNumber") => json!(U64::from(blocks.len() + more - 1)),
            Some("eth_getBlockByNumber") => json!(block.map(|(hash, _)| json!({"hash": hash}))),
            Some("debug_getRawBlock") if block.is_none() => {
                let error = json!({"code": -32000, "message": "block not found"});
                return json!({"jsonrpc": "2.0", "id": call["id"], "error": error});
            }
            Some("debug_getRawBlock") => json!(block.map(|(_, rlp)| rlp)),
            method => panic!("{method:?}"),
        };
        json!({"jsonrpc": "2.0", "id": call["id"], "result": result})
    };
    let answer = match &request {
        Value::Array(calls) => calls.iter().map(one).collect(),
        call => one(call),
    };
    let answer = answer.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        answer.len()
    );
    let _ = stream.write_all(format!("{head}{answer}").as_bytes());
}

/// The blocks of a folder's chain, the genesis first, which has no body.
fn blocks_of(folder: &Folder) -> Vec<(B256, Bytes)> {
    let genesis = Genesis::from_file(&folder.path("chain/genesis.json")).expect("a genesis");
    let mut input = open_sources(&[folder.path("chain")]).expect("a chain");
    input.skip_to(1).expect("blocks");
    let blocks = input.map(|block| {
        let block = block.expect("sound");
        (block.hash, alloy_rlp::encode(&block.block).into())
    });
    std::iter::once((genesis.hash, Bytes::new()))
        .chain(blocks)
        .collect()
}

/// Another block in the place of one: it does the same.
fn sibling(folder: &Folder, number: u64) -> (B256, Bytes) {
    let mut input = open_sources(&[folder.path("chain")]).expect("a chain");
    input.skip_to(number).expect("blocks");
    let mut block = input.next().expect("a block").expect("sound").block;
    block.header.extra_data = Bytes::from_static(b"another");
    (block.header.hash_slow(), alloy_rlp::encode(&block).into())
}

/// `arbor replay --rpc` as a process that follows a node.
struct Following(Child);

impl Following {
    fn start(folder: &Folder, url: &str) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_arbor"))
            .args(["-v", "replay", "--db", "copy", "--rpc", url])
            .args(["--genesis", "chain/genesis.json", "--retain", "4"])
            .current_dir(folder.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.expect("the binary runs"))
    }

    /// Waits until others can read this block as the head; panics if that does not come.
    fn wait_for(&mut self, folder: &Folder, block: u64, hash: B256) {
        let begun = Instant::now();
        loop {
            let status = folder.run(&["status", "--db", "copy", "--json"]);
            if status.0.status.success() {
                let status = status.json();
                if status["block"] == block && status["blockHash"] == json!(hash) {
                    return;
                }
            }
            if begun.elapsed() > Duration::from_secs(30)
                || self.0.try_wait().expect("waits").is_some()
            {
                let _ = self.0.kill();
                let mut said = String::new();
                let _ = self
                    .0
                    .stderr
                    .take()
                    .expect("piped")
                    .read_to_string(&mut said);
                panic!("block {block} never came: {said}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks it to stop, and returns its exit code and what it said.
    fn stop(mut self) -> (Option<i32>, String) {
        let pid = self.0.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(killed.expect("kill runs").success());
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().expect("piped");
        stderr.read_to_string(&mut said).expect("text");
        (self.0.wait().expect("it ends").code(), said)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_replay_follows_the_head_of_a_node_to_other_branches() {
    let folder = Folder::with_chain();
    let blocks = blocks_of(&folder);
    let genesis = Genesis::from_file(&folder.path("chain/genesis.json")).expect("a genesis");
    let stub = Stub::start(genesis.spec.chain_id());
    stub.set(&blocks[..4]);
    let mut following = Following::start(&folder, &stub.url);
    following.wait_for(&folder, 3, blocks[3].0);
    stub.set(&blocks[..7]);
    following.wait_for(&folder, 6, blocks[6].0);
    // Another block 5, after which the chain is shorter than before.
    let other = sibling(&folder, 5);
    stub.set(&[&blocks[..5], std::slice::from_ref(&other)].concat());
    following.wait_for(&folder, 5, other.0);
    // Back to the branch before, which is longer now.
    stub.set(&blocks[..8]);
    following.wait_for(&folder, 7, blocks[7].0);
    // A node that has not come so far yet is waited for.
    stub.set(&blocks[..6]);
    std::thread::sleep(Duration::from_millis(800));
    following.wait_for(&folder, 7, blocks[7].0);
    // So is one that counts a block that it does not give: it went back in between, or its blocks
    // are behind its state. That was an error.
    stub.claim(&blocks[..8], 1);
    std::thread::sleep(Duration::from_millis(1_200));
    following.wait_for(&folder, 7, blocks[7].0);
    let (code, said) = following.stop();
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("went back 2 blocks, to block 4"), "{said}");
    let again = "does not give the block after 7, and is asked again: the node has no block 8";
    assert_eq!(said.matches(again).count(), 1, "{said}");
    folder.run(&["verify", "--db", "copy"]).ok();

    // A branch that begins before the states that are kept: an error, and the database stays.
    let early = sibling(&folder, 1);
    stub.set(&[&blocks[..1], &[early]].concat());
    let replay = |more: &[&str]| {
        let begin = ["replay", "--db", "copy", "--rpc", &stub.url];
        folder.run(&[&begin[..], more].concat())
    };
    replay(&[]).fails_with(&["go back to block 0", "blocks 3 to 7", "--retain N"]);
    assert_eq!(folder.status("copy")["block"], 7);
    // With --to it ends.
    stub.set(&blocks);
    replay(&["--to", "8"]).ok();
    assert_eq!(folder.status("copy")["block"], 8);
    folder
        .run(&[
            "replay",
            "--tree",
            "none",
            "--rpc",
            &stub.url,
            "--genesis",
            "chain/genesis.json",
        ])
        .fails_with(&["--tree none is of no use with --rpc"]);
}

/// geth 1.17, if bench-peers/setup.sh built it or GETH names it.
fn geth() -> Option<PathBuf> {
    let built = || Some(crate::serve::cache()?.join("arboretum/peers/bin/geth"));
    let named = std::env::var_os("GETH").map(PathBuf::from);
    named.or_else(built).filter(|geth| geth.is_file())
}

/// geth as a process that serves a chain and dials nobody.
struct Geth {
    child: Child,
    url: String,
}

impl Geth {
    /// Imports the folder's chain and serves it with these groups of methods.
    fn start(geth: &Path, folder: &Folder, api: &str) -> Self {
        let run = |words: &[&str]| {
            let mut command = Command::new(geth);
            command
                .current_dir(folder.0.path())
                .args(["--datadir", "geth"]);
            command.args(words).stdout(Stdio::null());
            command
        };
        for words in [
            ["init", "chain/genesis.json"],
            ["import", "chain/chain.rlp"],
        ] {
            let output = run(&words).output().expect("geth runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{words:?}: {said}");
        }
        let free = || {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.local_addr().expect("bound").port().to_string()
        };
        let [http, auth, peers] = [free(), free(), free()];
        let child = run(&["--http", "--http.port", &http, "--http.api", api])
            .args(["--authrpc.port", &auth, "--port", &peers, "--ipcdisable"])
            .args(["--nodiscover", "--maxpeers", "0"])
            .stderr(Stdio::null())
            .spawn()
            .expect("geth runs");
        let address = format!("127.0.0.1:{http}");
        let geth = Self {
            child,
            url: format!("http://{address}"),
        };
        let begun = Instant::now();
        while TcpStream::connect(&address).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "geth does not serve"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
        geth
    }
}

impl Drop for Geth {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.child.wait();
    }
}

#[test]
fn blocks_and_witnesses_come_from_geth() {
    let Some(program) = geth() else {
        let why = "no geth (bench-peers/setup.sh builds it, or GETH names it)";
        arbor_testdata::skip("blocks_and_witnesses_come_from_geth", why);
        return;
    };
    let folder = chain_with_deletions();
    let geth = Geth::start(&program, &folder, "eth,debug");
    let from = |url: &str, words: &[&str]| {
        let genesis = ["--rpc", url, "--genesis", "chain/genesis.json"];
        folder.run(&[words, &genesis[..]].concat())
    };
    from(&geth.url, &["replay", "--db", "copy", "--to", "12"]).ok();
    let (copy, own) = (folder.status("copy"), folder.status("db"));
    assert_eq!(copy["blockHash"], own["blockHash"]);
    assert_eq!(copy["stateRoot"], own["stateRoot"]);
    folder
        .run(&[
            "witness", "--db", "db", "--block", "1", "--to", "12", "--out", "own", "chain",
        ])
        .ok();
    let all = ["witness", "--block", "1", "--to", "12", "--out"];
    let taken = from(&geth.url, &[&all[..], &["taken"]].concat());
    let taken = taken.ok().stderr();
    assert!(
        taken.contains("block 12: taken from debug_executionWitness."),
        "{taken}"
    );
    drop(geth);

    // Without the methods of debug, blocks come as JSON, and the witness is built.
    std::fs::remove_dir_all(folder.path("geth")).expect("removed");
    let geth = Geth::start(&program, &folder, "eth");
    from(&geth.url, &["replay", "--db", "json", "--to", "12"]).ok();
    assert_eq!(folder.status("json")["stateRoot"], own["stateRoot"]);
    let built = from(&geth.url, &[&all[..], &["built"]].concat());
    let built = built.ok().stderr();
    let why = "block 12: built from eth_getProof, because http";
    assert!(
        built.contains(why) && built.contains("debug_executionWitness"),
        "{built}"
    );
    for block in 1..=12 {
        let [own, built] = ["own", "built"].map(|of| format!("{of}/{block}.json"));
        folder.run(&["witness", "diff", &own, &built]).ok();
    }
}
