//! Published vectors: ethereum/tests TrieTests, genesis states, eth_getProof responses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alloy_rlp::{Encodable, Header, RlpEncodable};
use arbor_hashing::keccak256;
use arbor_tree::{Hash, MemoryNodes};
use arbor_tree_mpt::{
    EMPTY_ROOT, InnerUpdate, LeafTemplate, OuterUpdate, Verdict, apply, build, trie_root, verify,
    verify_value,
};
use serde_json::Value;

/// A file or folder of the vectors; none, after recording that the test is skipped, if it is not there.
fn vectors(test: &str, name: &str) -> Option<PathBuf> {
    arbor_testdata::find(test, &format!("vectors/{name}"))
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path:?}: {e}"))
}

fn unhex(text: &str) -> Vec<u8> {
    hex::decode(text.trim_start_matches("0x")).expect("hex")
}

fn hash(text: &Value) -> Hash {
    let bytes = unhex(text.as_str().expect("text"));
    bytes.try_into().expect("32 bytes")
}

/// Bytes of a key or value of TrieTests: hex with 0x, else the text itself.
fn bytes(text: &str) -> Vec<u8> {
    if text.starts_with("0x") {
        unhex(text)
    } else {
        text.as_bytes().to_vec()
    }
}

/// The operations of a case in order: keys with values, or removed.
fn operations(case: &Value) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let value = |value: &Value| value.as_str().map(bytes);
    match &case["in"] {
        Value::Array(pairs) => {
            let pair = |pair: &Value| (bytes(pair[0].as_str().expect("key")), value(&pair[1]));
            pairs.iter().map(pair).collect()
        }
        Value::Object(pairs) => pairs.iter().map(|(k, v)| (bytes(k), value(v))).collect(),
        other => panic!("operations {other}"),
    }
}

fn cases(folder: &Path, file: &str) -> Vec<(String, Value)> {
    let Value::Object(cases) = json(&folder.join(file)) else {
        panic!("{file} is no object");
    };
    let with_root = cases
        .into_iter()
        .filter(|(_, case)| case.get("root").is_some());
    let cases: Vec<_> = with_root.collect();
    assert!(!cases.is_empty(), "{file} has no cases");
    cases
}

#[test]
fn plain_trie_tests() {
    let Some(folder) = vectors("plain_trie_tests", "mpt_ethereum_tests") else {
        return;
    };
    for file in ["trietest.json", "trieanyorder.json"] {
        for (name, case) in cases(&folder, file) {
            let mut map = BTreeMap::new();
            for (key, value) in operations(&case) {
                match value {
                    Some(value) => map.insert(key, value),
                    None => map.remove(&key),
                };
            }
            let sorted: Vec<_> = map.into_iter().collect();
            let root = trie_root(&sorted).expect("sorted");
            assert_eq!(root, hash(&case["root"]), "{file} {name}");
        }
    }
}

/// The keys are hashed, so every operation can also be applied one by one: as an inner key, since
/// an outer leaf has an inner root.
#[test]
fn secure_trie_tests() {
    let Some(folder) = vectors("secure_trie_tests", "mpt_ethereum_tests") else {
        return;
    };
    let files = [
        "trietest_secureTrie.json",
        "trieanyorder_secureTrie.json",
        "hex_encoded_securetrie_test.json",
    ];
    for file in files {
        for (name, case) in cases(&folder, file) {
            let expected = hash(&case["root"]);
            let mut map: BTreeMap<Hash, Vec<u8>> = BTreeMap::new();
            let mut state = OneTrie::new();
            for (key, value) in operations(&case) {
                let key = keccak256(&key);
                state.set(key, map.contains_key(&key), value.clone());
                match value {
                    Some(value) => map.insert(key, value),
                    None => map.remove(&key),
                };
            }
            assert_eq!(state.inner_root, expected, "apply: {file} {name}");
            let sorted: Vec<_> = map.clone().into_iter().collect();
            assert_eq!(
                trie_root(&sorted).expect("sorted"),
                expected,
                "{file} {name}"
            );
            let built = build(None, map, &mut |_, _| {}).expect("sorted");
            assert_eq!(built, expected, "build: {file} {name}");
        }
    }
}

/// An outer trie of one key, and the trie under it.
struct OneTrie {
    nodes: MemoryNodes,
    root: Hash,
    inner_root: Hash,
}

impl OneTrie {
    const OWNER: Hash = [0xaa; 32];

    fn new() -> Self {
        Self {
            nodes: MemoryNodes::new(),
            root: EMPTY_ROOT,
            inner_root: EMPTY_ROOT,
        }
    }

    fn set(&mut self, key: Hash, existed: bool, value: Option<Vec<u8>>) {
        let template = LeafTemplate {
            bytes: vec![0; 32],
            hole: 0,
        };
        let update = OuterUpdate {
            key: Self::OWNER,
            existed: self.root != EMPTY_ROOT,
            inner_root: self.inner_root,
            leaf: Some(template),
            inner: vec![InnerUpdate {
                key,
                existed,
                value: value.clone().map(Into::into),
            }],
        };
        let done = apply(&self.nodes, self.root, &[update]).expect("applies");
        self.nodes.change_nodes(&done.nodes);
        self.nodes.set_leaf(Some(Self::OWNER), key, value);
        self.root = done.root;
        self.inner_root = done.inner_roots[0];
    }
}

#[derive(RlpEncodable)]
struct Account {
    nonce: u64,
    balance: alloy_primitives::U256,
    storage_root: alloy_primitives::B256,
    code_hash: alloy_primitives::B256,
}

fn quantity(value: &Value) -> alloy_primitives::U256 {
    match value.as_str() {
        Some(text) => text.parse().expect("a number"),
        None => alloy_primitives::U256::from(value.as_u64().unwrap_or(0)),
    }
}

/// The outer updates that make a genesis state.
fn genesis_updates(alloc: &Value) -> Vec<OuterUpdate> {
    let accounts = alloc.as_object().expect("alloc");
    let update = |(address, account): (&String, &Value)| {
        let slots = account["storage"].as_object();
        let mut inner: Vec<InnerUpdate> = slots
            .into_iter()
            .flatten()
            .map(|(slot, value)| InnerUpdate {
                key: keccak256(&unhex(slot)),
                existed: false,
                value: Some(alloy_rlp::encode(quantity(value)).into()),
            })
            .collect();
        inner.sort_by_key(|inner| inner.key);
        let code = account["code"].as_str().map(unhex).unwrap_or_default();
        let encoded = alloy_rlp::encode(Account {
            nonce: quantity(&account["nonce"]).to(),
            balance: quantity(&account["balance"]),
            storage_root: EMPTY_ROOT.into(),
            code_hash: keccak256(&code).into(),
        });
        OuterUpdate {
            key: keccak256(&unhex(address)),
            existed: false,
            inner_root: EMPTY_ROOT,
            leaf: Some(LeafTemplate {
                hole: encoded.len() - 65,
                bytes: encoded,
            }),
            inner,
        }
    };
    let mut updates: Vec<OuterUpdate> = accounts.iter().map(update).collect();
    updates.sort_by_key(|update| update.key);
    updates
}

#[test]
fn genesis_states() {
    for network in ["mainnet", "sepolia", "holesky"] {
        let Some(file) = vectors("genesis_states", &format!("genesis/{network}.json")) else {
            continue;
        };
        let genesis = json(&file);
        let expected = hash(&genesis["stateRoot"]);
        let updates = genesis_updates(&genesis["alloc"]);
        let applied = apply(&MemoryNodes::new(), EMPTY_ROOT, &updates).expect("applies");
        assert_eq!(applied.root, expected, "{network}, applied");
        let leaves = updates
            .iter()
            .zip(&applied.inner_roots)
            .map(|(update, root)| {
                let leaf = update.leaf.as_ref().expect("an account");
                (update.key, leaf.fill(root))
            });
        let mut outer = 0;
        let built = build(None, leaves, &mut |_, _| outer += 1).expect("sorted");
        assert_eq!(built, expected, "{network}, built");
        let written = applied
            .nodes
            .iter()
            .filter(|node| node.position.trie.is_none());
        assert_eq!(outer, written.count(), "{network}, nodes");
    }
}

/// The state root of the last block of an RLP export.
fn last_state_root(chain: &[u8]) -> Hash {
    let mut rest = chain;
    let mut root = None;
    while !rest.is_empty() {
        let mut block = Header::decode_bytes(&mut rest, true).expect("a block");
        let mut header = Header::decode_bytes(&mut block, true).expect("a header");
        for _ in 0..3 {
            Header::decode_bytes(&mut header, false).expect("a field");
        }
        let field = Header::decode_bytes(&mut header, false).expect("the state root");
        root = Some(field.try_into().expect("32 bytes"));
    }
    root.expect("a block")
}

fn proof_nodes(nodes: &Value) -> Vec<Vec<u8>> {
    let nodes = nodes.as_array().expect("a proof");
    nodes
        .iter()
        .map(|node| unhex(node.as_str().expect("hex")))
        .collect()
}

#[test]
fn eth_get_proof_responses() {
    let Some(folder) = vectors("eth_get_proof_responses", "mpt_eth_getProof") else {
        return;
    };
    let chain = std::fs::read(folder.join("chain.rlp")).expect("chain.rlp");
    let state_root = last_state_root(&chain);
    for query in ["blockhash", "default-block", "latest", "with-storage"] {
        let name = match query {
            "with-storage" => "get-account-proof-with-storage.io".into(),
            query => format!("get-account-proof-{query}.io"),
        };
        let text = std::fs::read_to_string(folder.join(&name)).expect("a response");
        let line = text.lines().find_map(|line| line.strip_prefix("<< "));
        let response: Value = serde_json::from_str(line.expect("a response")).expect("json");
        let result = &response["result"];
        let account = Account {
            nonce: quantity(&result["nonce"]).to(),
            balance: quantity(&result["balance"]),
            storage_root: hash(&result["storageHash"]).into(),
            code_hash: hash(&result["codeHash"]).into(),
        };
        let mut leaf = Vec::new();
        account.encode(&mut leaf);
        let key = keccak256(&unhex(result["address"].as_str().expect("an address")));
        let proof = proof_nodes(&result["accountProof"]);
        let verdict = verify(&state_root, &key, &proof);
        assert_eq!(verdict, Ok(Verdict::Present(leaf.clone())), "{name}");
        leaf[5] ^= 1;
        assert_eq!(
            verify_value(&state_root, &key, &proof, Some(&leaf)),
            Ok(false)
        );
        let slots = result["storageProof"].as_array().expect("storage proofs");
        assert_eq!(slots.is_empty(), query != "with-storage");
        for slot in slots {
            let key: alloy_primitives::B256 = quantity(&slot["key"]).into();
            let proof = proof_nodes(&slot["proof"]);
            let value = alloy_rlp::encode(quantity(&slot["value"]));
            let verdict = verify(&account.storage_root.0, &keccak256(&key.0), &proof);
            assert_eq!(verdict, Ok(Verdict::Present(value)), "{name} {key}");
        }
    }
}
