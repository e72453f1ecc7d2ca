//! Clients of all kinds: batches, absent parameters, pages of other sites, and those that mean no
//! good.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::support::{Served, call, post, post_with, send};
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_serve::{Access, Limits};
use serde_json::{Value, json};

fn served() -> (tempfile::TempDir, Served) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = GeneratorSettings {
        blocks: 3,
        seed: 5,
        ..Preset::Tiny.settings()
    };
    generate(&settings, folder.path(), |_| ControlFlow::Continue(())).expect("generated");
    let served = Served::replay("mpt", folder.path());
    (folder, served)
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or(0)
}

#[test]
fn batches_and_absent_parameters_are_answered() {
    let (_chain, served) = served();
    let server = served.serve(true, Limits::default(), Access::default());
    let address = server.address();
    let absent = post(
        address,
        r#"{"jsonrpc":"2.0","id":"a","method":"eth_blockNumber"}"#,
    );
    assert_eq!(
        absent,
        json!({"jsonrpc": "2.0", "id": "a", "result": "0x3"})
    );
    let batch = post(
        address,
        r#"[{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]},
            {"jsonrpc":"2.0","id":2,"method":"eth_getTransactionReceipt","params":["0x1"]},
            7,
            {"jsonrpc":"2.0","id":3,"method":"eth_getBlockByNumber","params":["finalized",false]}]"#,
    );
    let batch = batch.as_array().expect("a batch");
    assert_eq!(batch.len(), 4);
    assert!(batch[0]["result"].is_string());
    assert_eq!((code(&batch[1]), code(&batch[2])), (-32601, -32600));
    assert_eq!(batch[3]["result"]["number"], "0x3");
    // By hash, the same; and nothing for a hash that is nobody's.
    let hash = batch[3]["result"]["hash"].clone();
    let by_hash = call(address, "eth_getBlockByHash", &json!([hash, true]));
    assert_eq!(by_hash["result"]["number"], "0x3");
    let nobody = call(
        address,
        "eth_getBlockByHash",
        &json!([format!("0x{}", "11".repeat(32)), true]),
    );
    assert_eq!(nobody, json!({"jsonrpc": "2.0", "id": 1, "result": null}));
}

/// Calls with negative ids and fractions were taken for notifications.
#[test]
fn an_id_is_repeated_as_it_was_written() {
    let (_chain, served) = served();
    let server = served.serve(false, Limits::default(), Access::default());
    let ask = |body: &str| post_with(server.address(), "", body);
    let id = post(
        server.address(),
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#,
    );
    let id = id["result"].clone();
    let call = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId"}}"#);
    let answer = |written: &str| format!(r#"{{"jsonrpc":"2.0","id":{written},"result":{id}}}"#);
    let wrong =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}"#;
    let ids = [
        "-1",
        "1.5",
        "-0.0",
        "1e3",
        "18446744073709551616",
        r#""a\u0062\"""#,
        "\"\"",
        "true",
        "null",
    ];
    for id in ids {
        assert_eq!(ask(&call(id)), (200, answer(id)));
    }
    for id in ["[]", "[1]", "{}", r#"{"a": 1}"#] {
        assert_eq!(ask(&call(id)), (200, wrong.to_owned()), "{id}");
    }
    let notification = r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#;
    assert_eq!(ask(notification), (200, String::new()));
    assert_eq!(ask(&format!("[{notification}]")), (200, String::new()));
    let batch = format!(
        "[{}, {}, {notification}, {}, 7, []]",
        call("-1"),
        call("[]"),
        call("2.50")
    );
    let answers = [&answer("-1"), wrong, &answer("2.50"), wrong, wrong].join(",");
    assert_eq!(ask(&batch), (200, format!("[{answers}]")));
}

/// Some had codes of their own, and what was no request was answered with `null`.
#[test]
fn what_is_no_request_has_the_code_of_go_ethereum() {
    let (_chain, served) = served();
    let limits = Limits {
        answer_bytes: 10_000,
        ..Limits::default()
    };
    let server = served.serve(false, limits, Access::default());
    let address = server.address();
    let error = |body: &str| {
        let answer = post(address, body);
        let error = &answer["error"];
        let message = error["message"].as_str().expect("a message").to_owned();
        (answer["id"].clone(), code(&answer), message)
    };
    for (body, id, code, message) in [
        ("{", json!(null), -32700, "parse error"),
        ("", json!(null), -32700, "parse error"),
        ("[7", json!(null), -32700, "parse error"),
        ("7", json!(null), -32600, "invalid request"),
        ("[]", json!(null), -32600, "empty batch"),
        (
            r#"{"id":5,"method":"eth_chainId"}"#,
            json!(5),
            -32600,
            "invalid request",
        ),
        (
            r#"{"jsonrpc":"1.0","id":"a","method":"eth_chainId"}"#,
            json!("a"),
            -32600,
            "invalid request",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
            json!(5),
            -32600,
            "invalid request",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5}"#,
            json!(5),
            -32600,
            "invalid request",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"eth_none"}"#,
            json!(5),
            -32601,
            "the method eth_none does not exist/is not available",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"eth_getBalance","params":{}}"#,
            json!(5),
            -32602,
            "non-array args",
        ),
    ] {
        assert_eq!(error(body), (id, code, message.to_owned()), "{body}");
    }
    let long = json!({"jsonrpc": "2.0", "id": 1, "method": "m".repeat(2_049)}).to_string();
    assert_eq!(error(&long).1, -32600);

    // Answers that are too large. A batch has those before.
    let slots = vec![format!("{:#066x}", 0); 1_000];
    let nobody = format!("0x{}", "11".repeat(20));
    let large = json!({"jsonrpc": "2.0", "id": 2, "method": "eth_getStorageValues",
        "params": [{&nobody: slots}, "latest"]});
    assert_eq!(error(&large.to_string()).1, -32003);
    let small = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"});
    // Each of these is small enough.
    let slots = vec![format!("{:#066x}", 0); 100];
    let half = json!({"jsonrpc": "2.0", "id": 2, "method": "eth_getStorageValues",
        "params": [{&nobody: slots}, "latest"]});
    let batch = post(address, &json!([small, half, half, small]).to_string());
    assert!(batch[0]["result"].is_string(), "{batch}");
    assert!(batch[1]["result"].is_object(), "{batch}");
    assert_eq!((code(&batch[2]), code(&batch[3])), (-32003, -32003));
    let (status, _) = send_as(address, "text/plain", &small.to_string());
    assert_eq!(status, 415);

    // More slots than a call may ask for.
    let many = vec![format!("{:#066x}", 0); 1_025];
    let many_values = json!([{&nobody: &many}, "latest"]);
    let many_values = call(address, "eth_getStorageValues", &many_values);
    assert_eq!(many_values["error"]["message"], "too many slots (max 1024)");
    assert_eq!(code(&many_values), -38026);
    let many_proofs = call(address, "eth_getProof", &json!([nobody, many, "latest"]));
    assert_eq!(code(&many_proofs), -32602);
}

/// Posts a body of this type.
fn send_as(address: SocketAddr, form: &str, body: &str) -> (u16, String) {
    let request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: {form}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    send(address, request.as_bytes())
}

/// Numbers of JSON were taken, and addresses without `0x`.
#[test]
fn numbers_and_addresses_begin_with_0x() {
    let (_chain, served) = served();
    let server = served.serve(false, Limits::default(), Access::default());
    let bare = "11".repeat(20);
    let address = format!("0x{bare}");
    for (method, params) in [
        ("eth_getBalance", json!([bare])),
        ("eth_getBalance", json!([address, 3])),
        ("eth_getBalance", json!([address, {"blockNumber": 3}])),
        (
            "eth_getBalance",
            json!([address, {"blockHash": "11".repeat(32)}]),
        ),
        ("eth_getStorageValues", json!([{bare.clone(): ["0x0"]}])),
        ("eth_call", json!([{"to": bare}])),
        ("eth_call", json!([{"to": address, "gas": 100_000}])),
        ("eth_call", json!([{"to": address, "value": 1}])),
        ("eth_call", json!([{"to": address, "value": "1"}])),
        ("eth_call", json!([{"to": address, "input": "00"}])),
        ("eth_call", json!([{"to": address, "nonce": 1}])),
        (
            "eth_call",
            json!([{"to": address, "accessList": [{"address": bare, "storageKeys": []}]}]),
        ),
        (
            "eth_call",
            json!([{"to": address, "accessList": [{"address": address, "storageKeys": ["0x0"]}]}]),
        ),
        (
            "eth_call",
            json!([{"to": address}, "latest", {bare.clone(): {}}]),
        ),
        (
            "eth_call",
            json!([{"to": address}, "latest", {address.clone(): {"balance": 1}}]),
        ),
        (
            "eth_call",
            json!([{"to": address}, "latest", {}, {"number": 1}]),
        ),
        ("debug_accountRange", json!(["latest", "00"])),
    ] {
        let answer = call(server.address(), method, &params);
        assert_eq!(code(&answer), -32602, "{method} {params}: {answer}");
    }
    let given =
        json!([{"to": address, "gas": "0x186a0", "value": "0x0", "nonce": "0x1", "input": "0x"}]);
    let answer = call(server.address(), "eth_call", &given);
    assert_eq!(answer["result"], "0x", "{answer}");
}

#[test]
fn what_is_no_call_is_answered_too() {
    let (_chain, served) = served();
    let access = Access {
        hosts: vec!["state.example".to_owned()],
        origins: vec!["https://good.example".to_owned()],
    };
    let server = served.serve(false, Limits::default(), access);
    let address = server.address();
    let get = |path: &str, host: &str, more: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}Connection: close\r\n\r\n");
        send(address, request.as_bytes())
    };
    assert_eq!(
        get("/health", "localhost", "").1,
        "{\"status\":\"ok\",\"block\":3}\n"
    );
    call(address, "eth_chainId", &json!([]));
    let (status, metrics) = get("/metrics", "127.0.0.1:1", "");
    assert_eq!(status, 200);
    assert!(metrics.contains("arbor_of_the_program 1\n"), "{metrics}");
    assert!(
        metrics.contains("arbor_serve_calls_total{method=\"eth_chainId\"} 1\n"),
        "{metrics}"
    );
    assert_eq!(get("/", "localhost", "").0, 405);
    for (host, status) in [
        ("state.example:80", 200),
        ("[::1]:8545", 200),
        ("evil.example", 403),
    ] {
        assert_eq!(get("/health", host, "").0, status, "{host}");
    }
    for (origin, status) in [("https://good.example", 200), ("https://evil.example", 403)] {
        let more = format!("Origin: {origin}\r\n");
        assert_eq!(get("/health", "localhost", &more).0, status, "{origin}");
    }
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://good.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n";
    assert_eq!(send(address, preflight.as_bytes()).0, 200);
}

/// A batch of a thousand calls had a thousand times the time of a call.
#[test]
fn the_calls_of_a_batch_have_a_time_together() {
    let (_chain, served) = served();
    let mut limits = Limits::default();
    limits.calls.time = Duration::from_millis(100);
    let server = served.serve(false, limits, Access::default());
    let address = server.address();
    // Each of them ends when its time or its gas does.
    let endless =
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"data":"0x5b600056"},"latest"]}"#;
    let batch = format!("[{}]", vec![endless; 1_000].join(","));
    let begun = Instant::now();
    let (status, answer) = post_with(address, "", &batch);
    assert_eq!(status, 504, "{answer}");
    assert!(answer.contains("send fewer"), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    // Others are answered afterwards, and short batches too.
    behaves(address);
    let short = endless.replace(r#"{"data""#, r#"{"gas":"0x10000","data""#);
    assert!(post(address, &format!("[{short}]")).is_array());
}

/// A client that behaves. Returns how long it waited.
fn behaves(address: SocketAddr) -> Duration {
    let begun = Instant::now();
    let answer = call(address, "eth_blockNumber", &json!([]));
    assert_eq!(answer["result"], "0x3");
    begun.elapsed()
}

/// The greatest memory of this process so far in MiB, where the system tells.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib >> 10)
}

#[test]
fn hostile_clients_harm_nobody() {
    let (_chain, served) = served();
    let limits = Limits {
        patience: Duration::from_secs(2),
        connections: 300,
        large_bytes: 32 << 20,
        ..Limits::default()
    };
    let server = served.serve(true, limits, Access::default());
    let address = server.address();
    behaves(address);
    let peak = peak_mib();

    // Half requests, and connections without one.
    let mut idle: Vec<TcpStream> = Vec::new();
    for begin in [
        "",
        "POST / HT",
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n[",
    ] {
        for _ in 0..60 {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(begin.as_bytes()).expect("sent");
            idle.push(stream);
        }
    }
    assert!(behaves(address) < Duration::from_secs(2));

    // Too much: a length, a stream without one, a batch, a depth.
    let claimed = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 134217728\r\n\r\n";
    assert_eq!(send(address, claimed.as_bytes()).0, 413);
    let calls = vec![r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#; 1_001];
    let batch = post(address, &format!("[{}]", calls.join(",")));
    assert_eq!((code(&batch[0]), &batch[0]["id"]), (-32600, &json!(1)));
    for open in ["[", "{\"a\":"] {
        let deep = open.repeat(500_000);
        assert_ne!(code(&post(address, &deep)), 0);
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{deep}]}}"#);
        assert_ne!(code(&post(address, &deep)), 0);
    }
    let closed = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":[{closed}]}}"#);
    assert_eq!(code(&post(address, &deep)), -32602);

    // Methods with parameters of any kind: an answer or an error, never silence.
    let values = [
        "null",
        "0",
        "-1",
        "1e400",
        "\"\"",
        "\"0x\"",
        "\"0x0\"",
        "\"latest\"",
        "[]",
        "{}",
        "true",
        "\"0xffffffffffffffffffffffffffffffffffffffff\"",
        "[\"0x0\"]",
        "{\"to\":null}",
        "{\"blockNumber\":\"0x1\"}",
        "\"\\ud800\"",
    ];
    let methods = [
        "eth_getBalance",
        "eth_getStorageAt",
        "eth_getProof",
        "eth_call",
        "eth_estimateGas",
        "eth_createAccessList",
        "eth_feeHistory",
        "eth_getBlockByNumber",
        "debug_accountRange",
        "eth_getStorageValues",
        "debug_executionWitness",
        "eth_getTransactionByHash",
        "nobody_knows",
    ];
    for method in methods {
        for (place, first) in values.iter().enumerate() {
            let second = values[(place * 7 + 3) % values.len()];
            let third = values[(place * 5 + 1) % values.len()];
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{first},{second},{third}]}}"#
            );
            let (status, answer) = post_with(address, "", &body);
            assert_eq!(status, 200, "{body}");
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert!(
                answer.get("result").is_some() != answer.get("error").is_some(),
                "{body}"
            );
        }
    }

    // A loop that has all gas ends with it, and many of them wait for each other.
    let endless = json!([{"data": "0x5b600056"}, "latest"]);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_ne!(code(&call(address, "eth_call", &endless)), 0));
        }
        for _ in 0..20 {
            assert!(behaves(address) < Duration::from_secs(2));
        }
    });

    // A reader that does not read: its answers are dropped, and it too.
    let many = vec![
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["latest",true]}"#;
        1_000
    ];
    let body = format!("[{}]", many.join(","));
    let request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut slow = TcpStream::connect(address).expect("it listens");
    slow.write_all(request.as_bytes()).expect("sent");
    assert!(behaves(address) < Duration::from_secs(2));

    // All that did not go on is gone.
    std::thread::sleep(Duration::from_secs(5));
    let mut byte = [0; 1];
    for stream in &mut idle {
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .expect("set");
        // Some get a word of why before the end.
        while stream.read(&mut byte).is_ok_and(|read| read > 0) {}
    }
    let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (_, metrics) = send(address, get.as_bytes());
    let open = metrics
        .lines()
        .find_map(|line| line.strip_prefix("arbor_serve_connections "));
    let open: u64 = open
        .and_then(|open| open.parse().ok())
        .expect("it is counted");
    assert!(open <= 2, "{open} connections are open");
    if let (Some(before), Some(after)) = (peak, peak_mib()) {
        assert!(
            after < before + 300,
            "memory grew from {before} to {after} MiB"
        );
    }
    server.stop(Duration::from_secs(5));
}

/// The bytes that `/metrics` says large requests and answers take.
fn large_bytes(address: SocketAddr) -> u64 {
    let get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let (_, metrics) = send(address, get.as_bytes());
    let bytes = metrics
        .lines()
        .find_map(|line| line.strip_prefix("arbor_serve_large_bytes "));
    bytes.and_then(|bytes| bytes.parse().ok()).expect("counted")
}

/// Waits until the bytes that are taken are such.
fn large_bytes_become(address: SocketAddr, such: impl Fn(u64) -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !such(large_bytes(address)) {
        assert!(Instant::now() < end, "{} bytes", large_bytes(address));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The connection took a copy of an answer at once, and the answer was no longer counted: clients
/// that did not read took memory without limit.
#[test]
fn an_answer_is_counted_until_the_client_has_it() {
    let (_chain, served) = served();
    let limits = Limits {
        large_bytes: 80 << 20,
        answer_bytes: 64 << 20,
        ..Limits::default()
    };
    let server = served.serve(false, limits, Access::default());
    let address = server.address();
    // 70 KB an answer, and 20 MB the batch: more than the system keeps for a connection.
    let slots = vec!["0x0"; 1_024];
    let nobody = format!("0x{}", "11".repeat(20));
    let values = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getStorageValues",
        "params": [{nobody: slots}, "latest"]});
    let one = post(address, &values.to_string()).to_string().len() as u64;
    let body = format!("[{}]", vec![values.to_string(); 270].join(","));
    let request = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut deaf = TcpStream::connect(address).expect("it listens");
    deaf.write_all(request.as_bytes()).expect("sent");
    deaf.write_all(body.as_bytes()).expect("sent");
    // Until the answer begins to come it grows, and is counted twice.
    let mut first = [0; 1];
    deaf.read_exact(&mut first).expect("answered");
    std::thread::sleep(Duration::from_millis(300));
    let held = large_bytes(address);
    let whole = 270 * one;
    assert!(held.abs_diff(whole) < 64 << 10, "{held} bytes of {whole}");

    // A second one would have more than half of all room. Single calls have theirs.
    let (status, answer) = post_with(address, "", &body);
    assert_eq!(status, 503, "{answer}");
    large_bytes_become(address, |bytes| bytes == held);
    assert!(post(address, &values.to_string())["result"].is_object());

    // Who reads gives the room back, and so does who goes.
    let mut rest = Vec::new();
    deaf.read_to_end(&mut rest).expect("all of it");
    assert!(rest.len() as u64 > whole);
    large_bytes_become(address, |bytes| bytes == 0);
    let mut gone = TcpStream::connect(address).expect("it listens");
    gone.write_all(request.as_bytes()).expect("sent");
    gone.write_all(body.as_bytes()).expect("sent");
    gone.read_exact(&mut first).expect("answered");
    drop(gone);
    large_bytes_become(address, |bytes| bytes == 0);
}

/// All blocks were copied when the server began. Only those of a gzip are now.
#[test]
fn blocks_are_read_from_files_of_every_form() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let forms = [false, true].map(|gzip| {
        let chain = folder.path().join(if gzip { "packed" } else { "plain" });
        let settings = GeneratorSettings {
            blocks: 5,
            seed: 5,
            gzip,
            ..Preset::Tiny.settings()
        };
        generate(&settings, &chain, |_| ControlFlow::Continue(())).expect("generated");
        chain
    });
    let mut served = Served::replay("mpt", &forms[0]);
    let mut answers = |chain: &std::path::Path| {
        served.chain = vec![chain.to_owned()];
        let server = served.serve(true, Limits::default(), Access::default());
        let blocks = (0..=5).map(|number| {
            let number = format!("{number:#x}");
            let raw = call(server.address(), "debug_getRawBlock", &json!([number]));
            assert!(raw["result"].is_string(), "{raw}");
            raw["result"].clone()
        });
        blocks.collect::<Vec<_>>()
    };
    let packed = answers(&forms[1]);
    assert_eq!(answers(&forms[0]), packed);

    // A file that changes under the server is found out.
    let server = served.serve(true, Limits::default(), Access::default());
    let file = forms[0].join("chain.rlp");
    let mut bytes = std::fs::read(&file).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    let failed = (1..=5).filter(|number| {
        let answer = call(
            server.address(),
            "debug_getRawBlock",
            &json!([format!("{number:#x}")]),
        );
        answer.get("error").is_some()
    });
    assert_eq!(failed.count(), 1);
}
