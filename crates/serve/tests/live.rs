//! A replay that serves its versions while it goes on.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{call, start};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{SignatureRules, prepare};
use arbor_chain::replay::Replay;
use arbor_chain::source::open_sources;
use arbor_database::{OpenOptions, Retain, network};
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_serve::{Live, Snapshots};
use serde_json::json;

/// The number that `eth_blockNumber` had just given was not kept any more when a client asked for a
/// balance there: a replay of old blocks prunes a hundred blocks in less than a second.
#[test]
fn the_block_that_a_client_was_told_is_there_for_a_moment() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let chain = folder.path().join("chain");
    let settings = GeneratorSettings {
        blocks: 8,
        ..Preset::Tiny.settings()
    };
    generate(&settings, &chain, |_| ControlFlow::Continue(())).expect("generated");
    let genesis = Genesis::from_file(&chain.join("genesis.json")).expect("a sound genesis");
    let options = OpenOptions::new()
        .network(network(&genesis))
        .memory(64 << 20);
    let state = options
        .retain(Retain::Last(1))
        .open(folder.path().join("db"));
    let mut replay = Replay::new(state.expect("created"), &genesis, 1 << 20).expect("begun");
    let mut input = open_sources(&[chain]).expect("a sound chain");
    input.skip_to(1).expect("blocks");
    let mut advance = |replay: &mut Replay, blocks: usize| {
        for _ in 0..blocks {
            let raw = input.next_raw().expect("a sound chain").expect("a block");
            let block = prepare(raw, SignatureRules::new(&genesis.spec)).expect("signatures");
            replay.block(block).expect("it holds");
        }
        // The last one is published, however long each took.
        replay.flush().expect("flushed");
    };
    advance(&mut replay, 2);
    let live = Arc::new(Live::default());
    replay.publish_to(live.clone()).expect("published");
    let server = start(Box::new(Arc::clone(&live)), &genesis, None);
    let ask = |method: &str, params| call(server.address(), method, &params);
    let number = || ask("eth_blockNumber", json!([]))["result"].take();
    let someone = format!("0x{}", "07".repeat(20));
    let balance_at = |block: &serde_json::Value| ask("eth_getBalance", json!([someone, block]));
    let told = number();
    assert_eq!(told, "0x2");
    let capabilities = ask("eth_capabilities", json!([]));
    let hash = capabilities["result"]["head"]["hash"].clone();

    advance(&mut replay, 4);
    assert_ne!(number(), told);
    assert!(live.earlier(&|_| true).is_some());
    for block in [&told, &hash] {
        let balance = balance_at(block);
        assert!(balance["result"].is_string(), "{block}: {balance}");
    }
    // Not for longer, and then it is given back.
    std::thread::sleep(Duration::from_millis(1_200));
    assert_eq!(balance_at(&told)["error"]["code"], 4444);
    advance(&mut replay, 1);
    assert_ne!(number(), told);

    // After a way back another block may have the number: it is not given.
    let told = number();
    replay.rollback(6).expect("kept");
    let is_of = |head: arbor_state::Head<'_>| head.meta().map(|meta| meta.block_number) == Some(7);
    assert!(live.earlier(&is_of).is_none(), "{told}");
    assert_eq!(number(), "0x6");
}
