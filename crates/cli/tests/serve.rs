//! `arbor serve`, and `arbor replay --serve`: as processes, which others ask.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::Folder;

/// A process that serves, and where.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(folder: &Folder, words: &str) -> Self {
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
        // What else it says goes nowhere, so that it never waits for a reader.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Self { child, address }
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
    // Blocks beyond the database's latest are not served, though the files have them.
    let beyond = serving.call("eth_getBlockByNumber", &json!(["0x4", false]));
    assert_eq!(beyond.expect("answered")["result"], Value::Null);
    folder
        .run(&["replay", "--db", "db", "--to", "5", "chain"])
        .ok();
    serving.wait_for(5);
    let block = serving.call("eth_getBlockByNumber", &json!(["0x4", false]));
    assert_eq!(block.expect("answered")["result"]["number"], "0x4");
    assert_eq!(serving.stop(), Some(130));
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

#[test]
fn web3_reads_a_served_chain() {
    let has_web3 = Command::new("python3").args(["-c", "import web3"]).output();
    if !has_web3.is_ok_and(|output| output.status.success()) {
        arbor_testdata::skip("web3_reads_a_served_chain", "no python3 with web3");
        return;
    }
    let folder = Folder::with_chain();
    folder
        .run(&["replay", "--db", "db", "--retain", "all", "chain"])
        .ok();
    let serving = Serving::start(&folder, "serve --db db --chain chain --http 0");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/serve_web3.py");
    let url = format!("http://{}", serving.address);
    let output = Command::new("python3").args([script, &url]).output();
    support::Run(output.expect("python runs")).ok();
}
