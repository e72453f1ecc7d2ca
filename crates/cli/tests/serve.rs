//! `arbor serve`, and `arbor replay --serve`: as processes, which others ask.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::{self, Folder};
use serde_json::{Value, json};

/// A process that serves, and where.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: String,
    /// What it says after its address.
    said: Arc<Mutex<String>>,
}

impl Serving {
    pub(crate) fn start(folder: &Folder, words: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_arbor"))
            .args(words.split(' '))
            .current_dir(folder.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut lines = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            let read = lines.read_line(&mut line).expect("a line");
            assert!(read > 0, "it does not serve: {said}");
            if let Some((_, address)) = line.trim().split_once("http://") {
                break address.to_owned();
            }
            said += &line;
        };
        // What else it says is read at once, so that it never waits for a reader.
        let said: Arc<Mutex<String>> = Arc::default();
        let saying = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                *saying.lock().expect("not poisoned") += &(line + "\n");
            }
        });
        Self {
            child,
            address,
            said,
        }
    }

    /// How often it has said something.
    fn count_of(&self, words: &str) -> usize {
        let said = self.said.lock().expect("not poisoned");
        said.matches(words).count()
    }

    /// Waits until it has said something so many times, and returns how long that took; panics if
    /// that does not come.
    fn wait_for_words(&self, words: &str, times: usize) -> Duration {
        let begun = Instant::now();
        while self.count_of(words) < times {
            assert!(begun.elapsed() < Duration::from_secs(30), "{words}");
            std::thread::sleep(Duration::from_millis(20));
        }
        begun.elapsed()
    }

    /// The answer to a request; none if nobody serves any more.
    fn ask(&self, request: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer.split_once("\r\n\r\n")?.1.to_owned())
    }

    fn call(&self, method: &str, params: &Value) -> Option<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = body.to_string();
        let answer = self.ask(&format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))?;
        Some(serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no JSON: {answer}")))
    }

    fn block_number(&self) -> Option<u64> {
        let answer = self.call("eth_blockNumber", &json!([]))?;
        let number = answer["result"].as_str()?.strip_prefix("0x")?.to_owned();
        u64::from_str_radix(&number, 16).ok()
    }

    /// Waits until a block is served; panics if that does not come.
    fn wait_for(&self, block: u64) {
        let begun = Instant::now();
        while self.block_number() != Some(block) {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "block {block} never came"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks it to stop, and returns its exit code.
    fn stop(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(killed.expect("kill runs").success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Commands that change the history alone leave the version as it is: the server went on with the
/// files of before, and kept them from being given back, until another version was flushed.
#[test]
fn what_changes_the_history_alone_is_seen_within_a_second() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "--retain", "all", "chain"])
        .ok();
    let serving = Serving::start(&folder, "-v serve --db db --http 0");
    let changed = "the database was changed, and is read again";
    let commands: [&[&str]; 4] = [
        &["history-proofs", "--db", "db"],
        &["history-proofs", "--db", "db", "--drop"],
        &["compact", "--db", "db"],
        &["prune", "--db", "db", "--retain", "2"],
    ];
    for command in commands {
        // What the command before did is seen.
        std::thread::sleep(Duration::from_millis(800));
        let before = serving.count_of(changed);
        folder.run(command).ok();
        let took = serving.wait_for_words(changed, before + 1);
        assert!(took < Duration::from_secs(5), "{command:?}: {took:?}");
    }
    assert_eq!(serving.stop(), Some(130));
}

/// It said "ok", and nothing was logged.
#[test]
fn a_database_that_is_gone_or_damaged_is_told() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    let serving = Serving::start(&folder, "serve --db db --http 0");
    let health = || {
        let get = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let answer = serving.ask(get).expect("answered");
        serde_json::from_str::<Value>(&answer).expect("JSON")
    };
    let ok = health();
    assert_eq!(ok["status"], "ok");
    let wait = |status: &str| {
        let begun = Instant::now();
        while health()["status"] != status {
            assert!(begun.elapsed() < Duration::from_secs(30), "{}", health());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let (head, kept) = (folder.path("db/HEAD"), folder.path("kept"));
    let bytes = std::fs::read(&head).expect("read");
    let faults: [&dyn Fn(); 2] = [
        &|| std::fs::write(&head, b"garbage").expect("written"),
        &|| std::fs::rename(folder.path("db"), &kept).expect("moved"),
    ];
    for (place, fault) in faults.iter().enumerate() {
        fault();
        wait("stale");
        let stale = health();
        assert_eq!(stale["block"], ok["block"]);
        assert!(
            stale["error"].as_str().expect("why").contains("HEAD"),
            "{stale}"
        );
        serving.wait_for_words("the database cannot be read", place + 1);
        // The state that was read before is still served.
        assert_eq!(serving.block_number(), ok["block"].as_u64());
        match place {
            0 => std::fs::write(&head, &bytes).expect("written"),
            _ => std::fs::rename(&kept, folder.path("db")).expect("moved"),
        }
        wait("ok");
    }
    assert_eq!(serving.stop(), Some(130));
}

#[test]
fn a_database_is_served_and_followed_while_another_process_writes_it() {
    let folder = Folder::with_chain();
    folder
        .run(&[
            "replay", "--db", "db", "--to", "3", "--retain", "2", "chain",
        ])
        .ok();
    let serving = Serving::start(&folder, "serve --db db --chain chain --http 0");
    assert_eq!(serving.block_number(), Some(3));
    let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let metrics = serving.ask(get).expect("metrics");
    assert!(metrics.contains("arbor_build_info{version="), "{metrics}");
    assert!(metrics.contains("arbor_serve_calls_total{method=\"eth_blockNumber\"} 1"));
    // Outside of what is kept the error has the range.
    let someone = format!("0x{}", "07".repeat(20));
    let gone = serving.call("eth_getBalance", &json!([someone, "0x0"]));
    let error = gone.expect("answered")["error"].take();
    assert_eq!(error["code"], 4444, "{error}");
    assert_eq!(
        error["data"],
        json!({"oldestBlock": "0x1", "newestBlock": "0x3"})
    );
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("blocks 1 to 3"), "{message}");
    assert!(message.contains("--retain"), "{message}");
    for (method, params) in [
        ("eth_getProof", json!([someone, [], "0x0"])),
        // It needs the state before its block.
        ("debug_executionWitness", json!(["0x1"])),
    ] {
        let gone = serving.call(method, &params).expect("answered");
        assert_eq!(gone["error"]["code"], 4444, "{gone}");
        assert_eq!(gone["error"]["data"], error["data"], "{gone}");
    }
    // Blocks beyond the database's latest are not served, though the files have them.
    let beyond = serving.call("eth_getBlockByNumber", &json!(["0x4", false]));
    assert_eq!(beyond.expect("answered")["result"], Value::Null);
    folder
        .run(&["replay", "--db", "db", "--to", "5", "chain"])
        .ok();
    serving.wait_for(5);
    let block = serving.call("eth_getBlockByNumber", &json!(["0x4", false]));
    assert_eq!(block.expect("answered")["result"]["number"], "0x4");
    // Pruning leaves the version as it is: states that were gone were answered until another one was flushed.
    let at_4 = json!([someone, "0x4"]);
    let before = serving.call("eth_getBalance", &at_4).expect("answered");
    assert!(before["result"].is_string(), "{before}");
    folder
        .run(&["prune", "--db", "db", "--retain", "none"])
        .ok();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let now = serving.call("eth_getBalance", &at_4).expect("answered");
        if now["error"]["code"] == 4444 {
            break;
        }
        assert!(Instant::now() < until, "{now}");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(serving.stop(), Some(130));
}

/// Nodes answer `debug_executionWitness` without the block, which the chain's files have.
#[test]
fn a_served_witness_is_read_checked_and_executed() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "--retain", "all", "chain"])
        .ok();
    let serving = Serving::start(&folder, "serve --db db --chain chain --http 0");
    let ask = |method, params| serving.call(method, &params).expect("answered");
    let mut answer = ask("debug_executionWitness", json!(["0x3"]));
    let write = |name: &str, answer: &Value| {
        std::fs::write(folder.path(name), answer.to_string()).expect("written");
    };
    let replay = |file: &str| {
        folder.run(&[
            "replay",
            "--witness",
            file,
            "--witness-chain",
            "chain",
            "--json",
        ])
    };
    write("answer.json", &answer);
    let checked = folder.run(&["verify-witness", "--json", "answer.json"]);
    let checked = checked.ok().json();
    assert_eq!(
        (&checked["block"], &checked["otherNodes"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(replay("answer.json").ok().json()["verdict"], "holds");
    folder
        .run(&["replay", "--witness", "answer.json"])
        .fails_with(&["answer.json", "--witness-chain"]);
    // It has the nodes of `arbor witness`.
    let own = folder.run(&["witness", "--db", "db", "--block", "3", "chain"]);
    let own: Value = serde_json::from_str(&own.ok().stdout()).expect("JSON");
    let set = |list: &Value| {
        let nodes = list.as_array().expect("a list").iter();
        nodes.map(Value::to_string).collect::<BTreeSet<_>>()
    };
    assert_eq!(set(&own["stateNodes"]), set(&answer["result"]["state"]));
    // go-ethereum writes headers as objects and lists in any order; reth adds keys.
    let header = ask("eth_getBlockByNumber", json!(["0x2", false]))["result"].take();
    let mut other = answer["result"].clone();
    other["headers"] = json!([header]);
    other["state"].as_array_mut().expect("a list").reverse();
    other["keys"] = json!(["0x01"]);
    write("other.json", &other);
    assert_eq!(replay("other.json").ok().json()["verdict"], "holds");
    // Without one of its nodes, or of another block, it is refused.
    let nodes = answer["result"]["state"].as_array_mut().expect("a list");
    nodes.remove(0);
    write("less.json", &answer);
    replay("less.json").fails_with(&["less.json"]);
    other["headers"] = ask("debug_executionWitness", json!(["0x4"]))["result"]["headers"].take();
    write("later.json", &other);
    replay("later.json").fails_with(&["later.json"]);
    other["headers"] = json!([]);
    write("none.json", &other);
    replay("none.json").fails_with(&["it holds no parent header"]);
}

#[test]
fn what_cannot_be_served_is_an_error() {
    let folder = Folder::with_chain();
    folder.run(&["replay", "--db", "db", "chain"]).ok();
    folder
        .run(&[
            "generate", "--preset", "tiny", "--seed", "77", "--out", "other",
        ])
        .ok();
    folder
        .run(&["serve", "--db", "nowhere"])
        .fails_with(&["nowhere"]);
    folder
        .run(&["serve", "--db", "db", "--chain", "other", "--http", "0"])
        .fails_with(&["--chain", "the database has"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    folder
        .run(&["serve", "--db", "db", "--http", &port])
        .fails_with(&["listening on 127.0.0.1"]);
    folder
        .run(&["replay", "--tree", "none", "--serve", "0", "chain"])
        .fails_with(&["--serve is of no use with --tree none"]);
}

/// Every version of a replay is served before it is flushed, and none twice as another.
#[test]
fn a_running_replay_serves_each_version() {
    let folder = Folder::with_chain();
    let words = "replay --db db --retain all --durable --throttle 60:30000 --serve 0 chain";
    let serving = Serving::start(&folder, words);
    let mut seen: Vec<(u64, String)> = Vec::new();
    while let Some(answer) = serving.call("eth_capabilities", &json!([])) {
        let Some(number) = answer["result"]["head"]["number"].as_str() else {
            continue;
        };
        let number = number.strip_prefix("0x").expect("hexadecimal");
        let number = u64::from_str_radix(number, 16).expect("a number");
        let hash = answer["result"]["head"]["hash"].to_string();
        match seen.last() {
            Some((before, of)) if *before == number => assert_eq!(*of, hash),
            Some((before, _)) => {
                assert!(*before < number, "{before} {number}");
                seen.push((number, hash));
            }
            None => seen.push((number, hash)),
        }
    }
    let head = folder.status("db")["block"].as_u64().expect("a number");
    assert!(seen.len() as u64 > head / 2, "{seen:?} of {head}");
    // The hashes are those of the chain that was replayed.
    let later = Serving::start(&folder, "serve --db db --http 0");
    for (number, hash) in &seen {
        let hash: String = serde_json::from_str(hash).expect("a hash");
        let answer = later.call(
            "eth_getBalance",
            &json!([format!("0x{}", "07".repeat(20)), hash]),
        );
        assert!(answer.expect("answered")["result"].is_string(), "{number}");
    }
}

/// The generated chain, served with its blocks and all states.
fn served_chain() -> (Folder, Serving) {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "--retain", "all", "chain"])
        .ok();
    let serving = Serving::start(&folder, "serve --db db --chain chain --http 0");
    (folder, serving)
}

/// Runs a script of the repository with these words; it must succeed.
fn run_script(program: &str, script: &str, words: &[&str]) {
    let script = format!("{}/../../scripts/{script}", env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(program).arg(script).args(words).output();
    support::Run(output.expect("the program runs")).ok();
}

#[test]
fn web3_reads_a_served_chain() {
    let has_web3 = Command::new("python3").args(["-c", "import web3"]).output();
    if !has_web3.is_ok_and(|output| output.status.success()) {
        arbor_testdata::skip("web3_reads_a_served_chain", "no python3 with web3");
        return;
    }
    let (_folder, serving) = served_chain();
    let url = format!("http://{}", serving.address);
    run_script("python3", "serve_web3.py", &[&url]);
}

/// The user's cache.
pub(crate) fn cache() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))
}

/// Where `.ci/run` installs packages of npm.
fn npm_folder() -> Option<PathBuf> {
    Some(cache()?.join("arboretum/npm"))
}

#[test]
fn viem_and_ethers_read_a_served_chain() {
    let folder = npm_folder().filter(|folder| {
        let packages = ["viem", "ethers"];
        packages
            .iter()
            .all(|name| folder.join("node_modules").join(name).is_dir())
    });
    let has_node = Command::new("node").arg("--version").output();
    let (Some(packages), true) = (folder, has_node.is_ok_and(|output| output.status.success()))
    else {
        let why = "no node, or no viem and ethers in the cache (.ci/run installs them)";
        arbor_testdata::skip("viem_and_ethers_read_a_served_chain", why);
        return;
    };
    let (_folder, serving) = served_chain();
    let url = format!("http://{}", serving.address);
    let packages = packages.display().to_string();
    run_script("node", "serve_clients.cjs", &[&packages, &url]);
}

#[test]
fn cast_reads_a_served_chain() {
    let cast = npm_folder().map(|folder| folder.join("node_modules/.bin/cast"));
    let cast = cast
        .filter(|cast| cast.exists())
        .unwrap_or_else(|| "cast".into());
    let has_cast = Command::new(&cast).arg("--version").output();
    if !has_cast.is_ok_and(|output| output.status.success()) {
        let why = "no cast on the PATH or in the cache (.ci/run installs it)";
        arbor_testdata::skip("cast_reads_a_served_chain", why);
        return;
    }
    let (_folder, serving) = served_chain();
    let url = format!("http://{}", serving.address);
    let cast = cast.display().to_string();
    run_script("bash", "serve_cast.sh", &[&cast, &url]);
}

/// A call runs under the rules that the database was replayed with.
#[test]
fn a_chain_with_evm384_answers_calls_of_such_code() {
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "with", "--evm384", "v7", "chain"])
        .ok();
    folder.run(&["replay", "--db", "without", "chain"]).ok();
    // (5 + 4) mod 7, returned as a word.
    let text = "push 7 144 MSTORE8 push 5 0 MSTORE8 push 4 48 MSTORE8 ADDMOD384 96 0 48 144
        push 96 MLOAD push 0 BYTE push 0 MSTORE push 32 0 RETURN";
    std::fs::write(folder.path("sum.easm"), text).expect("written");
    let code = folder.run(&["evm384", "asm", "sum.easm"]).ok().stdout();
    let code = format!("0x{}", code.trim().trim_start_matches("0x"));
    let contract = format!("0x{}", "38".repeat(20));
    let overrides = json!({(contract.clone()): {"code": code}});
    let params = json!([{"to": contract, "gas": "0x100000"}, "latest", overrides]);
    let ask = |db: &str, method: &str| {
        let serving = Serving::start(&folder, &format!("serve --db {db} --http 0"));
        serving.call(method, &params).expect("answered")
    };
    let sum = ask("with", "eth_call");
    assert_eq!(sum["result"], format!("0x{:064x}", 2), "{sum}");
    let gas = ask("with", "eth_estimateGas");
    assert!(gas["result"].is_string(), "{gas}");
    let unknown = ask("without", "eth_call");
    assert_eq!(unknown["error"]["message"], "invalid opcode", "{unknown}");
}
