//! The Verkle embedding against published keys, chunks and genesis states, from ../shared/vectors.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, hex, keccak256};
use arbor_ipa::Committer;
use arbor_state::{Account, AccountChange, Network, SlotChange, State, StateChanges};
use arbor_store::MemoryStore;
use arbor_trees::verkle::{
    HeaderLayout, LeafValue, StemHash, StemName, Stems, Verkle, VerkleSettings, chunk_code,
    chunk_place, slot_place,
};
use serde_json::Value;

/// Small tables, to be quick; what they compute does not depend on their sizes.
static STEMS: LazyLock<Stems> =
    LazyLock::new(|| Stems::new(Arc::new(Committer::within(6_000_000)), 1 << 20));

/// A file of the vectors; none, after recording that the test of the embedding is skipped, if it is not there.
fn vectors(name: &str) -> Option<PathBuf> {
    arbor_testdata::find("embedding", &format!("vectors/{name}"))
}

fn json(name: &str) -> Option<Value> {
    let text = std::fs::read_to_string(vectors(name)?).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn key(address: Address, (index, suffix): (U256, u8)) -> B256 {
    let [stem] = STEMS.of(&[StemName { address, index }])[..] else {
        panic!("one stem for one name");
    };
    let mut key = [suffix; 32];
    key[..31].copy_from_slice(&stem);
    B256::from(key)
}

#[test]
fn keys_are_those_published() {
    let Some(vectors) = json("small/pedersen_and_tree_keys.json") else {
        return;
    };
    let cases = vectors["tree_keys"].as_array().unwrap();
    assert_eq!(cases.len(), 7);
    for case in cases {
        let what = case["what"].as_str().unwrap();
        let number = || {
            U256::from_str_radix(
                what.rsplit_once(' ').unwrap().1.trim_start_matches("0x"),
                16,
            )
        };
        let decimal = || what.rsplit_once(' ').unwrap().1.parse::<u32>();
        let place = match what {
            "basic_data" => (U256::ZERO, 0),
            "code_hash" => (U256::ZERO, 1),
            _ if what.starts_with("code chunk 0x") => chunk_place(number().unwrap().to()),
            _ if what.starts_with("code chunk ") => chunk_place(decimal().unwrap()),
            _ if what.starts_with("storage slot 0x") => slot_place(number().unwrap()),
            _ if what.starts_with("storage slot ") => slot_place(U256::from(decimal().unwrap())),
            _ => panic!("unknown field {what}"),
        };
        let address: Address = case["address"].as_str().unwrap().parse().unwrap();
        let expected: B256 = case["key"].as_str().unwrap().parse().unwrap();
        assert_eq!(key(address, place), expected, "{what}");
    }
}

#[test]
fn chunks_are_those_published() {
    let files = ["chunkifyCode", "chukifyCodePush32on31stByte"];
    let cases = files
        .iter()
        .filter_map(|file| json(&format!("kaustinen7_besu/{file}.json")));
    for case in cases {
        let case = &case[0];
        let code = hex::decode(case["bytecode"].as_str().unwrap()).unwrap();
        let expected = case["chunks"].as_array().unwrap().iter();
        let expected: Vec<Vec<u8>> = expected
            .map(|chunk| hex::decode(chunk.as_str().unwrap()).unwrap())
            .collect();
        assert_eq!(chunk_code(&code).concat(), expected.concat());
    }
    let Some(case) = json("kaustinen7_besu/contractCode.json") else {
        return;
    };
    let case = &case[0];
    let code = hex::decode(case["bytecode"].as_str().unwrap()).unwrap();
    let address: Address = case["address"].as_str().unwrap().parse().unwrap();
    let chunks = case["chunks"].as_array().unwrap();
    let cut = chunk_code(&code);
    assert_eq!(chunks.len(), cut.len());
    for ((number, chunk), published) in (0..).zip(cut).zip(chunks) {
        let text = |field: &str| published[field].as_str().unwrap().parse::<B256>().unwrap();
        assert_eq!(key(address, chunk_place(number)), text("key"));
        assert_eq!(B256::from(chunk), text("value"), "chunk {number}");
    }
}

fn number(value: &Value) -> U256 {
    let text = value.as_str().unwrap_or("0");
    match text.strip_prefix("0x") {
        Some(digits) => U256::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    }
}

/// An account of a genesis, with its code and slots.
struct Allocated {
    address: Address,
    account: Account,
    code: Vec<u8>,
    slots: BTreeMap<U256, U256>,
}

fn allocation(genesis: &Value) -> Vec<Allocated> {
    let accounts = genesis["alloc"].as_object().unwrap().iter();
    let allocated = accounts.map(|(address, fields)| {
        let code = hex::decode(fields["code"].as_str().unwrap_or_default()).unwrap();
        let slots = fields["storage"].as_object().into_iter().flatten();
        let slots = slots.map(|(slot, value)| {
            let slot = U256::from_str_radix(slot.trim_start_matches("0x"), 16).unwrap();
            (slot, number(value))
        });
        Allocated {
            address: address.parse().unwrap(),
            account: Account {
                nonce: number(&fields["nonce"]).to(),
                balance: number(&fields["balance"]),
                code_hash: match code.is_empty() {
                    true => KECCAK256_EMPTY,
                    false => keccak256(&code),
                },
            },
            code,
            slots: slots.collect(),
        }
    });
    allocated.collect()
}

/// All leaves of the accounts of a genesis.
fn leaves(genesis: &Value, layout: HeaderLayout) -> BTreeMap<B256, LeafValue> {
    let mut leaves = BTreeMap::new();
    for Allocated {
        address,
        account,
        code,
        slots,
    } in allocation(genesis)
    {
        let header = layout.leaves(&account, code.len() as u32).unwrap();
        leaves.extend(
            header
                .into_iter()
                .map(|(suffix, value)| (key(address, (U256::ZERO, suffix)), value)),
        );
        let chunks = (0..).zip(chunk_code(&code));
        leaves.extend(chunks.map(|(chunk, value)| (key(address, chunk_place(chunk)), value)));
        for (slot, value) in slots {
            leaves.insert(key(address, slot_place(slot)), value.to_be_bytes());
        }
    }
    leaves
}

/// The root of a database that begins with a genesis.
fn root(genesis: &Value, layout: HeaderLayout) -> B256 {
    let settings = VerkleSettings {
        layout,
        ..VerkleSettings::default()
    };
    let tree = Arc::new(Verkle::with(STEMS.committer().clone(), settings));
    let network = Network {
        chain_id: 1,
        genesis_hash: B256::ZERO,
    };
    let store = Arc::new(MemoryStore::default());
    let state = State::open(store, None, tree, network, Default::default()).unwrap();
    let mut changes = StateChanges::default();
    for allocated in allocation(genesis) {
        let slots = allocated.slots.into_iter();
        let slots = slots.map(|(slot, new)| {
            let old = U256::ZERO;
            (slot, SlotChange { old, new })
        });
        let change = AccountChange {
            new: Some(allocated.account),
            slots: slots.collect(),
            ..AccountChange::default()
        };
        changes.accounts.insert(allocated.address, change);
        if !allocated.code.is_empty() {
            let code = (allocated.account.code_hash, allocated.code.into());
            changes.codes.extend([code]);
        }
    }
    state.compute(&changes).unwrap().root()
}

#[test]
fn genesis_roots_are_those_published() {
    let (Some(published), Some(derived)) = (
        json("small/verkle_roots.json"),
        json("small/derived_genesis_roots.json"),
    ) else {
        return;
    };
    let testnets = &published["csv_genesis_roots_commitment"];
    let (basic, five) = (HeaderLayout::BasicData, HeaderLayout::FiveLeaves);
    let mut cases = vec![
        (
            "kaustinen6/kaustinen7_genesis.json",
            basic,
            &testnets["gen-devnet-7.csv"],
        ),
        (
            "kaustinen6/devnet6_genesis.json",
            five,
            &testnets["gen-devnet-6.csv"],
        ),
    ];
    for row in derived["rows"].as_array().unwrap() {
        let root = &row["eip6800_verkle_root_commitment"];
        cases.push((row["file"].as_str().unwrap(), basic, root));
    }
    assert_eq!(cases.len(), 4);
    for (file, layout, expected) in cases {
        let Some(genesis) = json(file) else { return };
        let expected: B256 = expected.as_str().unwrap().parse().unwrap();
        assert_eq!(root(&genesis, layout), expected, "{file}");
    }
}

#[test]
fn genesis_states_are_those_published() {
    let cases = [
        (
            "gen-devnet-7.csv",
            "kaustinen7_genesis.json",
            HeaderLayout::BasicData,
        ),
        (
            "gen-devnet-6.csv",
            "devnet6_genesis.json",
            HeaderLayout::FiveLeaves,
        ),
    ];
    for (csv, genesis, layout) in cases {
        let (Some(csv), Some(genesis)) = (
            vectors(&format!("kaustinen7_besu/{csv}")),
            json(&format!("kaustinen6/{genesis}")),
        ) else {
            return;
        };
        let text = std::fs::read_to_string(&csv).unwrap();
        let line = |line: &str| {
            let mut fields = line.split(',').map(|field| field.parse::<B256>());
            let (key, value) = (fields.next()?.ok()?, fields.next()?.ok()?);
            Some((key, value.0))
        };
        let published: BTreeMap<B256, LeafValue> = text.lines().filter_map(line).collect();
        assert!(published.len() > 700);
        assert_eq!(leaves(&genesis, layout), published, "{}", csv.display());
    }
}

/// A cache that holds next to nothing gives the same stems as one that holds everything.
#[test]
fn what_is_remembered_does_not_matter() {
    let names: Vec<StemName> = (0..200u64)
        .map(|number| StemName {
            address: Address::with_last_byte((number * 7 % 11) as u8),
            index: U256::from(number % 13),
        })
        .collect();
    let forgetful = Stems::new(STEMS.committer().clone(), 0);
    let one_by_one = names
        .iter()
        .flat_map(|name| forgetful.of(std::slice::from_ref(name)));
    let one_by_one: Vec<_> = one_by_one.collect();
    let fresh = Stems::new(STEMS.committer().clone(), 1 << 20);
    assert_eq!(fresh.of(&names), one_by_one);
    assert_eq!(fresh.of(&names), one_by_one);
    assert_eq!(forgetful.of(&names), one_by_one);
    assert_eq!(fresh.of_once(&names), one_by_one);
}
