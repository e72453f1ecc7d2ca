//! States under EIP-8297 against published keys and roots, from ../shared/vectors: go-ethereum, the
//! reference implementation, Nethermind, and derived ones. Blocks are applied by their access lists
//! (EIP-7928), which takes no EVM.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use crate::vectors::{allocation, bytes, code_hash, hash, hex_of, json, number, number_of, text};
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use alloy_rlp::{Decodable, RlpDecodable};
use arbor_state::{
    Account, AccountChange, BY_NAME, BlockRef, FullAccount, IntermediateRoots, Network, ReadError,
    Reads, SlotChange, SortedAccounts, State, StateChanges, StateError, StateWitness, Touched,
};
use arbor_state_tree::conformance::{Codes, Contents};
use arbor_store::MemoryStore;
use arbor_tree_eip8297::Hasher;
use arbor_trees::eip8297::{Code, EIP8297, Eip8297, Embedding, WitnessState, fields, header_key};
use arbor_verify::PartialState;
use arbor_verify::stems::chunk_code;
use arbor_versions::Version;
use serde_json::Value;

const NETWORK: Network = Network {
    chain_id: 1,
    genesis_hash: B256::ZERO,
};

#[test]
fn keys_and_values_are_those_published() {
    const TEST: &str = "keys_and_values_are_those_published";
    const PUBLISHED: &str = "eip8297_pbt/geth_pr35436_eip8297_vectors.json";
    let embedding = Embedding(Hasher::blake3());
    if let Some(vectors) = json(TEST, PUBLISHED) {
        let published = &vectors["embedding_vectors"];
        let address: Address = text(&published["address"]).parse().unwrap();
        let account = embedding.account(address);
        for (name, suffix) in [
            ("basic_data_key", 0),
            ("code_hash_key", 1),
            ("delegation_key", 2),
        ] {
            assert_eq!(
                header_key(&account, suffix).packed(),
                hex_of(&published[name])
            );
        }
        // Numbers of slots are larger than what a JSON value has room for.
        let text = String::from_utf8(bytes(TEST, PUBLISHED).unwrap()).unwrap();
        let numbers = text.split("\"slot\":").skip(1).map(|rest| {
            let digits = rest.trim_start();
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap();
            number_of(&digits[..end])
        });
        let slots = published["slots"].as_array().unwrap();
        for (slot, number) in slots.iter().zip(numbers) {
            let key = embedding.slots(&[(account, address, number)])[0];
            assert_eq!(key.packed(), hex_of(&slot["key"]), "{slot}");
        }
        assert_eq!(slots.len(), 8);
        let designator = hex_of(&published["delegation_designator"]);
        let code = Code::of(&designator).unwrap();
        assert!(matches!(code, Code::Delegation(_)));
        let account = Account {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: keccak256(&designator),
        };
        let values = fields(&account, code).unwrap();
        assert_eq!(values[2].to_vec(), hex_of(&published["delegation_value"]));
        for case in vectors["basic_data_vectors"].as_array().unwrap() {
            let size: u32 = number(&case["code_size"]).to();
            let account = Account {
                nonce: number(&case["nonce"]).to(),
                balance: number(&case["balance"]),
                code_hash: KECCAK256_EMPTY,
            };
            let values = fields(&account, Code::Bytes(size)).unwrap();
            assert_eq!(values[0].to_vec(), hex_of(&case["value"]));
        }
        for case in vectors["chunkify_vectors"].as_array().unwrap() {
            let chunks = chunk_code(&hex_of(&case["code"]));
            let expected = case["chunks"].as_array().unwrap().iter();
            let expected: Vec<Vec<u8>> = expected.map(hex_of).collect();
            assert_eq!(chunks.concat(), expected.concat(), "{}", case["name"]);
        }
    }
    let Some(vectors) = json(TEST, "small/eip8297_small.json") else {
        return;
    };
    let published = vectors["embedding_keys"].as_object().unwrap();
    let address: Address = text(&published["address"]).parse().unwrap();
    let account = embedding.account(address);
    let mut slots = 0;
    for (name, key) in published {
        let found = match (&**name, name.strip_prefix("slot_")) {
            ("basic_data", _) => header_key(&account, 0),
            ("code_hash", _) => header_key(&account, 1),
            (_, Some(slot)) => {
                slots += 1;
                let slot = match slot.strip_prefix("2^") {
                    Some(power) => U256::ONE << power.parse::<usize>().unwrap(),
                    None => slot.parse().unwrap(),
                };
                embedding.slots(&[(account, address, slot)])[0]
            }
            _ => continue,
        };
        assert_eq!(found.packed(), hex_of(key), "{name}");
    }
    assert!(slots >= 6);
}

/// A state that is built up block by block, and beside it a naive one.
struct Chain {
    state: State,
    contents: Contents,
    codes: Codes,
    blocks: u64,
}

impl Chain {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::default());
        let state = State::open(store, None, EIP8297.tree(), NETWORK, Default::default());
        Self {
            state: state.unwrap(),
            contents: Contents::new(),
            codes: Codes::new(),
            blocks: 0,
        }
    }

    /// The changes that lead to other contents; codes are known.
    fn changes_to(&self, after: &Contents) -> StateChanges {
        let mut changes = StateChanges::default();
        let addresses = self.contents.keys().chain(after.keys());
        for address in addresses {
            let (old, new) = (self.contents.get(address), after.get(address));
            if old == new {
                continue;
            }
            let none = BTreeMap::new();
            let old_slots = old.map_or(&none, |(_, slots)| slots);
            let new_slots = new.map_or(&none, |(_, slots)| slots);
            let mut slots = BTreeMap::new();
            for slot in old_slots.keys().chain(new_slots.keys()) {
                let value = |of: &BTreeMap<U256, U256>| of.get(slot).copied().unwrap_or_default();
                let (old, new) = (value(old_slots), value(new_slots));
                if old != new && after.contains_key(address) {
                    slots.insert(*slot, SlotChange { old, new });
                }
            }
            let new = new.map(|(account, _)| *account);
            if let Some(code) = new.and_then(|new| self.codes.get_key_value(&new.code_hash)) {
                changes.codes.insert(*code.0, code.1.clone());
            }
            let change = AccountChange {
                old: old.map(|(account, _)| *account),
                new,
                storage_cleared: new.is_none(),
                slots,
            };
            changes.accounts.insert(*address, change);
        }
        changes
    }

    /// Goes on to other contents, and returns the root. The same root comes from a naive tree, and,
    /// for all but the first block, from a witness; the Merkle-Patricia root of the flat tables is
    /// compared with a header's.
    fn go_to(&mut self, after: Contents, header_root: Option<B256>) -> B256 {
        let changes = self.changes_to(&after);
        let computed = self.state.compute(&changes).unwrap();
        let root = computed.root();
        if let Some(header_root) = header_root {
            let found = self.state.flat_root_after(std::slice::from_ref(&computed));
            assert_eq!(found.unwrap(), header_root);
        }
        let tree = EIP8297.tree();
        let mut model = (EIP8297.model.unwrap())(&*tree);
        assert_eq!(model.after(&after, &self.codes), root);
        if self.blocks > 0 {
            self.check_witness(&changes, root);
        }
        let block = BlockRef {
            number: self.blocks,
            hash: B256::ZERO,
            record: Vec::new(),
        };
        self.state.commit(&block, computed).unwrap();
        self.blocks += 1;
        self.contents = after;
        root
    }

    /// The witness of a block leads from the root before to the one after, unless an account loses
    /// its code: that another one has it no witness shows.
    fn check_witness(&self, changes: &StateChanges, after: B256) {
        let parent = self.state.at(Version(self.blocks - 1)).unwrap();
        let touched = Touched {
            reads: &Reads::default(),
            chunks: &BTreeMap::new(),
            changes,
            transactions: &[],
            guarded: false,
        };
        let Some(Ok(StateWitness::Nodes { nodes, .. })) = parent.witness(touched) else {
            panic!("nodes");
        };
        let before = parent.meta().root.into();
        let codes = self.codes.values().cloned();
        let witness = WitnessState::new(Hasher::blake3(), before, &nodes, codes);
        let root = witness.pending_roots().root_after(changes);
        match root {
            Ok(root) => assert_eq!(root, after),
            Err(error) => assert!(error.to_string().contains("loses code"), "{error}"),
        }
    }

    fn root_of(contents: Contents, codes: Codes, header_root: Option<B256>) -> B256 {
        let mut chain = Self::new();
        chain.codes = codes;
        let loaded = chain.loaded(&contents);
        let root = chain.go_to(contents, header_root);
        assert_eq!(loaded, root);
        let report = chain.state.verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.faults);
        root
    }

    /// The root of a database that is loaded at once.
    fn loaded(&self, contents: &Contents) -> B256 {
        let store = Arc::new(MemoryStore::default());
        let tree = Arc::new(Eip8297 {
            leaf_bytes: 10_000,
            ..Eip8297::default()
        });
        let state = State::open(store, None, tree, NETWORK, Default::default());
        let mut state = state.unwrap();
        let accounts = contents.iter().map(|(address, (account, slots))| {
            Ok(FullAccount {
                address: *address,
                account: *account,
                slots: slots.iter().map(|(slot, value)| (*slot, *value)).collect(),
            })
        });
        let code = |hash| {
            let code = self.codes.get(&hash).cloned();
            code.ok_or(ReadError::MissingCode(hash))
        };
        let source = SortedAccounts::of(&BY_NAME, accounts, code, usize::MAX).unwrap();
        let computed = state.load(&source, &|_, _| ()).unwrap();
        let root = computed.root();
        let block = BlockRef {
            number: 0,
            hash: B256::ZERO,
            record: Vec::new(),
        };
        state.commit(&block, computed).unwrap();
        state.flush().unwrap();
        let report = state.verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.faults);
        root
    }
}

#[test]
fn states_have_the_roots_of_go_ethereum() {
    const TEST: &str = "states_have_the_roots_of_go_ethereum";
    if let Some(vectors) = json(TEST, "eip8297_pbt/geth_pr35436_eip8297_vectors.json") {
        let cases = vectors["state_vectors"].as_array().unwrap();
        for case in cases {
            let mut alloc = serde_json::Map::new();
            for account in case["accounts"].as_array().unwrap() {
                alloc.insert(text(&account["address"]).to_owned(), account.clone());
            }
            let (contents, codes) = allocation(&Value::from(alloc));
            let root = Chain::root_of(contents, codes, None);
            assert_eq!(root, hash(&case["root"]), "{}", case["name"]);
        }
        assert_eq!(cases.len(), 5);
    }
    for case in [35, 36] {
        let Some(expected) = json(TEST, &format!("eip8297_t8n/{case}-exp.json")) else {
            return;
        };
        let (contents, codes) = allocation(&expected["alloc"]);
        let root = Chain::root_of(contents, codes, None);
        assert_eq!(root, hash(&expected["result"]["stateRoot"]), "case {case}");
    }
}

#[test]
fn genesis_states_have_the_derived_roots() {
    const TEST: &str = "genesis_states_have_the_derived_roots";
    let Some(vectors) = json(TEST, "small/derived_genesis_roots.json") else {
        return;
    };
    let tagged = json(TEST, "eip8347_genesis_tagged/genesis.json").unwrap();
    let rows = vectors["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, tagged) in rows.iter().zip(tagged["rows"].as_array().unwrap()) {
        let genesis = json(TEST, text(&row["file"])).unwrap();
        let (contents, codes) = allocation(&genesis["alloc"]);
        let root = Chain::root_of(contents, codes, Some(hash(&row["mpt_root"])));
        assert_eq!(root, hash(&row["eip8297_blake3_root"]));
        assert_eq!(root, hash(&tagged["pbtRoot"]));
    }
}

#[derive(RlpDecodable)]
struct AccountChanges {
    address: Address,
    storage_changes: Vec<SlotChanges>,
    #[expect(dead_code, reason = "nothing changes by a read")]
    storage_reads: Vec<U256>,
    balance_changes: Vec<Entry<U256>>,
    nonce_changes: Vec<Entry<u64>>,
    code_changes: Vec<Entry<Bytes>>,
}

#[derive(RlpDecodable)]
struct SlotChanges {
    slot: U256,
    changes: Vec<Entry<U256>>,
}

/// A value and the transaction that set it.
struct Entry<T>(T);

impl<T: Decodable> Decodable for Entry<T> {
    fn decode(input: &mut &[u8]) -> alloy_rlp::Result<Self> {
        let mut payload = alloy_rlp::Header::decode_bytes(input, true)?;
        u32::decode(&mut payload)?;
        let value = T::decode(&mut payload)?;
        match payload.is_empty() {
            true => Ok(Self(value)),
            false => Err(alloy_rlp::Error::UnexpectedLength),
        }
    }
}

/// Applies an access list to contents, as EIP-7928 says: the last value of each list.
fn apply_list(list: &[u8], contents: &mut Contents, codes: &mut Codes) {
    let changes = Vec::<AccountChanges>::decode(&mut &list[..]).unwrap();
    for change in changes {
        let absent = Account {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        };
        let was_there = contents.contains_key(&change.address);
        let (account, slots) = contents
            .entry(change.address)
            .or_insert((absent, BTreeMap::new()));
        for SlotChanges { slot, changes } in change.storage_changes {
            match changes.last().unwrap().0 {
                U256::ZERO => slots.remove(&slot),
                value => slots.insert(slot, value),
            };
        }
        if let Some(Entry(balance)) = change.balance_changes.last() {
            account.balance = *balance;
        }
        if let Some(Entry(nonce)) = change.nonce_changes.last() {
            account.nonce = *nonce;
        }
        if let Some(Entry(code)) = change.code_changes.last() {
            account.code_hash = code_hash(code);
            codes.insert(account.code_hash, code.clone());
        }
        // An account that was read, and is not there, stays so.
        if *account == absent && (slots.is_empty() || was_there) {
            contents.remove(&change.address);
        }
    }
}

#[test]
fn blocks_of_execution_tests_have_the_derived_roots() {
    const TEST: &str = "blocks_of_execution_tests_have_the_derived_roots";
    let Some(packed) = bytes(TEST, "eip7928_bal_eest/bal_blocks.json.gz") else {
        return;
    };
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    let vectors: Value = serde_json::from_slice(&unpacked).unwrap();
    let codes = vectors["codes"].as_object().unwrap();
    let codes: BTreeMap<&str, Bytes> = codes
        .iter()
        .map(|(hash, code)| (&**hash, hex_of(code).into()))
        .collect();
    let (mut cases, mut blocks) = (0, 0);
    for case in vectors["cases"].as_array().unwrap() {
        let mut chain = Chain::new();
        let mut contents = Contents::new();
        for (address, of) in case["pre"].as_object().unwrap() {
            let code = codes.get(text(&of[2])).cloned().unwrap_or_default();
            let account = Account {
                nonce: number(&of[0]).to(),
                balance: number(&of[1]),
                code_hash: code_hash(&code),
            };
            chain.codes.insert(account.code_hash, code);
            let slots = of[3].as_object().into_iter().flatten();
            let slots = slots.map(|(slot, value)| (number_of(slot), number(value)));
            contents.insert(address.parse().unwrap(), (account, slots.collect()));
        }
        chain.go_to(contents, Some(hash(&case["preStateRoot"])));
        for block in case["blocks"].as_array().unwrap() {
            let list = hex_of(&block["bal"]);
            assert_eq!(keccak256(&list), hash(&block["balHash"]));
            let mut after = chain.contents.clone();
            apply_list(&list, &mut after, &mut chain.codes);
            let root = chain.go_to(after, Some(hash(&block["stateRoot"])));
            assert_eq!(root, hash(&block["pbtRoot"]), "{}", case["id"]);
            blocks += 1;
        }
        cases += 1;
    }
    assert!(cases == 889 && blocks >= cases, "{blocks} blocks");
}

/// Two branches of a chain, with a delegation, and code that accounts share.
#[test]
fn a_fork_has_the_published_roots() {
    const TEST: &str = "a_fork_has_the_published_roots";
    let Some(vectors) = json(TEST, "eip8347_bal_replay/bal_replay.json") else {
        return;
    };
    let blocks = vectors["blocks"].as_array().unwrap();
    let named = |name: &str| blocks.iter().find(|block| block["name"] == name).unwrap();
    let mut ends = 0;
    for end in blocks {
        if blocks.iter().any(|block| block["parent"] == end["name"]) {
            continue;
        }
        ends += 1;
        let mut branch = vec![end];
        while let Some(parent) = branch[branch.len() - 1]["parent"].as_str() {
            branch.push(named(parent));
        }
        let mut chain = Chain::new();
        let (mut contents, codes) = allocation(&vectors["genesisAlloc"]);
        chain.codes = codes;
        for block in branch.iter().rev() {
            if let Some(list) = block["balRlp"].as_str() {
                let list = hex::decode(list).unwrap();
                assert_eq!(keccak256(&list), hash(&block["balHash"]));
                apply_list(&list, &mut contents, &mut chain.codes);
            }
            let root = chain.go_to(contents.clone(), Some(hash(&block["mptRoot"])));
            assert_eq!(root, hash(&block["pbtRoot"]), "{}", block["name"]);
        }
        let report = chain.state.verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.faults);
        for version in (0..branch.len() as u64 - 1).rev() {
            chain.state.rollback(Version(version)).unwrap();
            let report = chain.state.verify().unwrap();
            assert!(report.is_ok(), "{:?}", report.faults);
        }
    }
    assert_eq!((ends, blocks.len()), (2, 11));
}

/// Where the EIP is open: an account that is empty and exists, one with storage and nothing else, a
/// balance of 2^128.
#[test]
fn what_the_specification_leaves_open_is_decided() {
    let address = Address::repeat_byte(1);
    let empty = Account {
        nonce: 0,
        balance: U256::ZERO,
        code_hash: KECCAK256_EMPTY,
    };
    let one = |account, slots: &[(u64, u64)]| -> Contents {
        let slots = slots.iter();
        let slots = slots.map(|(slot, value)| (U256::from(*slot), U256::from(*value)));
        [(address, (account, slots.collect()))].into()
    };
    // An empty account is there, by the hash of its code.
    let mut chain = Chain::new();
    let root = chain.go_to(one(empty, &[]), None);
    assert_ne!(root, B256::ZERO);
    assert_eq!(chain.state.at(Version(0)).unwrap().meta().root, root.0);
    let with_slot = chain.go_to(one(empty, &[(1, 9), (1280, 11)]), None);
    assert_ne!(with_slot, root);
    assert_eq!(chain.go_to(one(empty, &[]), None), root);
    // Its removal takes its slots along.
    chain.go_to(one(empty, &[(1, 9), (1280, 11)]), None);
    assert_eq!(chain.go_to(Contents::new(), None), B256::ZERO);
    let rich = Account {
        balance: U256::from(u128::MAX),
        ..empty
    };
    chain.go_to(one(rich, &[]), None);
    let too_rich = Account {
        balance: U256::ONE << 128,
        ..empty
    };
    let changes = chain.changes_to(&one(too_rich, &[]));
    let error = chain.state.compute(&changes).unwrap_err();
    assert!(matches!(error, StateError::NoRoom { .. }), "{error}");
}

/// Code belongs to its hash: it goes with the last account that has it, also within one block, and
/// comes back.
#[test]
fn code_goes_with_its_last_account() {
    let code: Bytes = vec![0x61; 31 * 300].into();
    let with_code = Account {
        nonce: 1,
        balance: U256::ZERO,
        code_hash: keccak256(&code),
    };
    let plain = Account {
        code_hash: KECCAK256_EMPTY,
        ..with_code
    };
    let contents = |accounts: &[(u8, Account)]| -> Contents {
        let accounts = accounts.iter();
        accounts
            .map(|(number, account)| (Address::repeat_byte(*number), (*account, BTreeMap::new())))
            .collect()
    };
    let mut chain = Chain::new();
    chain.codes.insert(with_code.code_hash, code);
    let none = chain.go_to(contents(&[(1, plain), (2, plain)]), None);
    let first = chain.go_to(contents(&[(1, with_code), (2, plain)]), None);
    let both = chain.go_to(contents(&[(1, with_code), (2, with_code)]), None);
    assert!(none != first && first != both);
    // One loses it and another gets it in the same block; all lose it.
    let second = chain.go_to(contents(&[(1, plain), (2, with_code)]), None);
    assert!(second != first && second != none);
    assert_eq!(
        chain.go_to(contents(&[(1, with_code), (2, plain)]), None),
        first
    );
    assert_eq!(chain.go_to(contents(&[(1, plain), (2, plain)]), None), none);
    for version in (0..chain.blocks - 1).rev() {
        chain.state.rollback(Version(version)).unwrap();
        let report = chain.state.verify().unwrap();
        assert!(report.is_ok(), "{:?}", report.faults);
    }
}
