//! Every tree answers, at every block that is kept.

mod support;

use std::ops::ControlFlow;

use alloy_primitives::{Address, B256};
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_serve::{Access, Limits};
use arbor_verify::Verdict;
use arbor_versions::Version;
use serde_json::{Value, json};
use support::{Served, call};

const BLOCKS: u64 = 6;

fn chain() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let settings = GeneratorSettings {
        blocks: BLOCKS,
        seed: 11,
        ..Preset::Tiny.settings()
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
            let mut proof = answer["result"].take();
            assert!(proof.is_object(), "{} {number}: {answer}", tree.name);
            if tree.name == "mpt" {
                assert_eq!(proof.get("tree"), None, "EIP-1186 has no such field");
                assert_eq!(proof.get("form"), None, "EIP-1186 has no such field");
            } else {
                assert_eq!(proof["tree"], tree.name);
                assert!(proof["form"].is_string(), "{proof}");
            }
            // A file of a proof names its form alone.
            proof.as_object_mut().expect("fields").remove("tree");
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
    let override_ = error("eth_call", json!([{}, "latest", {}]));
    assert_eq!(
        override_["message"],
        "invalid argument 2: overrides are not supported"
    );
}
