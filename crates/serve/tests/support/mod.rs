//! Databases to serve, and a client that writes HTTP itself.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{SignatureRules, prepare};
use arbor_chain::replay::Replay;
use arbor_chain::rules::ChainRules;
use arbor_chain::source::open_sources;
use arbor_database::{ChainContext, OpenOptions, Retain, network};
use arbor_serve::{Access, BlockFiles, Fixed, Limits, Server, ServerSettings, Snapshots};
use arbor_state::StateSnapshot;
use serde_json::Value;

/// A database that was replayed from a chain, with everything kept.
pub(crate) struct Served {
    _folder: tempfile::TempDir,
    pub(crate) snapshot: StateSnapshot,
    pub(crate) genesis: Genesis,
    pub(crate) chain: Vec<PathBuf>,
}

impl Served {
    /// Replays a folder with a chain and its genesis.
    pub(crate) fn replay(tree: &str, chain: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = chain.join("genesis.json");
        let genesis = Genesis::from_file(&file).expect("a sound genesis");
        let options = OpenOptions::new().tree(tree).network(network(&genesis));
        let options = options.memory(64 << 20).retain(Retain::All);
        let state = options.open(folder.path()).expect("created");
        let mut replay = Replay::new(state, &genesis, 1 << 20).expect("begun");
        let chain = vec![chain.to_owned()];
        let mut input = open_sources(&chain).expect("a sound chain");
        input.skip_to(1).expect("blocks");
        while let Some(raw) = input.next_raw().expect("a sound chain") {
            let block = prepare(raw, SignatureRules::new(&genesis.spec)).expect("signatures");
            replay.block(block).expect("it holds");
        }
        let mut state = replay.into_state();
        state.flush().expect("flushed");
        let snapshot = state.snapshot().expect("frozen");
        Self {
            _folder: folder,
            snapshot,
            genesis,
            chain,
        }
    }

    /// Serves the database, with blocks if the files are to be read.
    pub(crate) fn serve(&self, with_blocks: bool, limits: Limits, access: Access) -> Server {
        let blocks = with_blocks
            .then(|| BlockFiles::read(&self.chain, &self.genesis).expect("a sound chain"));
        let snapshots = Box::new(Fixed::new(self.snapshot.clone()));
        start_with(snapshots, &self.genesis, blocks, limits, access)
    }
}

/// Serves these states under the usual limits.
pub(crate) fn start(
    snapshots: Box<dyn Snapshots>,
    genesis: &Genesis,
    blocks: Option<BlockFiles>,
) -> Server {
    let (limits, access) = (Limits::default(), Access::default());
    start_with(snapshots, genesis, blocks, limits, access)
}

fn start_with(
    snapshots: Box<dyn Snapshots>,
    genesis: &Genesis,
    blocks: Option<BlockFiles>,
    limits: Limits,
    access: Access,
) -> Server {
    let settings = ServerSettings {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        snapshots,
        chain: ChainContext::new(genesis.clone(), ChainRules::default()),
        blocks,
        limits,
        access,
        client: "arbor/test".to_owned(),
        metrics: || "arbor_of_the_program 1\n".to_owned(),
    };
    Server::start(settings).expect("it listens")
}

/// Sends a request as it is, and returns status and body.
pub(crate) fn send(address: SocketAddr, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("set");
    stream.write_all(request).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.unwrap_or(0), body.to_owned())
}

/// Posts a body, with more lines of the header.
pub(crate) fn post_with(address: SocketAddr, more: &str, body: &str) -> (u16, String) {
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nConnection: close\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    send(address, request.as_bytes())
}

/// Posts JSON and returns the JSON of the answer.
pub(crate) fn post(address: SocketAddr, body: &str) -> Value {
    let (status, answer) = post_with(address, "", body);
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no JSON: {answer}"))
}

/// Calls a method and returns its answer.
pub(crate) fn call(address: SocketAddr, method: &str, params: &Value) -> Value {
    let request =
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    post(address, &request.to_string())
}
