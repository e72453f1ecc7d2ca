//! Gas for a block's witness (EIP-4762): blocks of the testnets, and what single accesses cost.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use alloy_consensus::Header;
use alloy_eips::eip2718::Decodable2718;
use alloy_primitives::{
    Address, B256, Bytes, KECCAK256_EMPTY, TxKind, U64, U256, address, hex, keccak256,
};
use arbor_chain::executor::{
    Block, BlockOutput, Evm384, Executor, GasSchedule, Interface, LeafName, RecentBlocks,
};
use arbor_chain::genesis::{Fork, GenesisAccount, WitnessGas};
use arbor_chain::prepare::recover_senders;
use arbor_chain::source::Transaction;
use arbor_ipa::Fr;
use arbor_state::{Account, ReadError, StateView};
use arbor_trees::verkle::{
    Committer, HeaderLayout, LeafValue, StemName, Witness, chunk_place, slot_place,
};
use serde_json::Value;

use super::effects::{CONTRACT, SENDER, account, block, call, rules, state, tx};
use arbor_testdata::find as shared;

/// A key of the tree.
type Key = [u8; 32];

/// Hashes names to keys. The testnets before kaustinen-6 took the commitment itself, in reversed order, where its image is taken since.
struct Keys<'a> {
    committer: &'a Committer,
    images: bool,
}

impl Keys<'_> {
    fn of(&self, (name, suffix): LeafName) -> Key {
        let (address, index) = (name.address.into_word().0, name.index.to_le_bytes::<32>());
        let mut key = [0; 32];
        if self.images {
            key[..31].copy_from_slice(&self.committer.stems(&[(address, index)])[0]);
        } else {
            let words = [&address[..16], &address[16..], &index[..16], &index[16..]];
            let word = |bytes: &[u8]| Fr::from_le_half(bytes.try_into().expect("16 bytes"));
            let domain = Fr::from(2 + 256 * 64u64);
            let terms = std::iter::once(domain).chain(words.map(word)).enumerate();
            let terms: Vec<_> = terms.collect();
            key = self.committer.sum(&terms).to_bytes();
            key.reverse();
        }
        key[31] = suffix;
        key
    }
}

/// Values by key, as a witness has them.
type Values = BTreeMap<Key, (Option<LeafValue>, Option<LeafValue>)>;

/// The state before a block as its witness has it. What the witness has nothing of is taken for absent: whether execution may
/// look at it shows in the leaves that it pays for.
struct WitnessView<'a> {
    keys: Keys<'a>,
    values: &'a Values,
}

impl WitnessView<'_> {
    fn value(&self, leaf: LeafName) -> Option<LeafValue> {
        self.values.get(&self.keys.of(leaf))?.0
    }
}

impl StateView for WitnessView<'_> {
    fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
        let leaf = |suffix| self.value((StemName::header(address), suffix));
        let number = |suffix| U256::from_le_bytes(leaf(suffix).unwrap_or_default());
        Ok(leaf(3).map(|code_hash| Account {
            balance: number(1),
            nonce: number(2).to(),
            code_hash: B256::from(code_hash),
        }))
    }

    fn storage(&self, address: Address, slot: U256) -> Result<U256, ReadError> {
        let (index, suffix) = slot_place(slot);
        let value = self.value((StemName { address, index }, suffix));
        Ok(U256::from_be_bytes(value.unwrap_or_default()))
    }

    fn has_storage(&self, _: Address) -> Result<bool, ReadError> {
        Ok(false)
    }

    fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        Err(ReadError::new(format!(
            "code {code_hash}, though no contract is called"
        )))
    }
}

/// Where these testnets keep the hashes of blocks, each in the slot of its number (EIP-2935 as it was).
const HISTORY: Address = address!("fffffffffffffffffffffffffffffffffffffffe");

/// A field under one of its names.
fn field<T: FromStr<Err: std::fmt::Debug>>(block: &Value, names: &[&str]) -> T {
    let value = names.iter().find_map(|name| block[*name].as_str());
    value.expect(names[0]).parse().expect(names[0])
}

/// A number under one of its names: hexadecimal with 0x, or decimal.
fn number(block: &Value, names: &[&str]) -> u64 {
    field::<U64>(block, names).to()
}

/// Executes a block of the testnets over its witness, and compares gas and statuses of all transactions (by the receipts' root), every leaf
/// after, and which leaves the witness has. Returns those that execution touches and the witness lacks, and the other way around.
fn replay(fields: &Value, body: &Value, keys: Keys) -> [BTreeSet<Key>; 2] {
    let header = Header {
        number: number(fields, &["block_number", "number"]),
        beneficiary: field(fields, &["fee_recipient", "coinbase"]),
        gas_limit: number(fields, &["gas_limit", "gasLimit"]),
        timestamp: number(fields, &["timestamp"]),
        base_fee_per_gas: Some(number(fields, &["base_fee_per_gas", "baseFeePerGas"])),
        mix_hash: field(fields, &["prev_randao", "prevRandao"]),
        ..Header::default()
    };
    let coinbase = header.beneficiary;
    let (index, suffix) = slot_place(U256::from(header.number - 1));
    let parent_hash = (
        StemName {
            address: HISTORY,
            index,
        },
        suffix,
    );
    let mut block = Block::uncle(header);
    for tx in body["transactions"].as_array().expect("transactions") {
        let bytes: Bytes = tx.as_str().expect("hex").parse().expect("hex");
        let tx = Transaction::decode_2718_exact(&bytes).expect("transaction");
        block.body.transactions.push(tx);
    }
    let senders = recover_senders(&block.body.transactions, true).expect("signatures");
    let witness = ["execution_witness", "executionWitness"].map(|name| &body[name]);
    let witness = witness.into_iter().find(|witness| !witness.is_null());
    let witness: Witness =
        serde_json::from_value(witness.expect("witness").clone()).expect("witness");
    let values = witness.state_diff.iter().flat_map(|stem| {
        stem.suffixes.iter().map(|diff| {
            let mut key = [diff.suffix; 32];
            key[..31].copy_from_slice(&stem.stem);
            (key, (diff.current, diff.new))
        })
    });
    let values: Values = values.collect();
    let view = WitnessView {
        keys,
        values: &values,
    };
    let mut rules = rules(Fork::Shanghai);
    rules.chain_id = 69_420;
    rules.witness_gas = Some(WitnessGas::Kaustinen6);
    let chain = RecentBlocks::default();
    let output = Executor::new()
        .run(&rules, &block, &senders, &view, &chain, None)
        .expect("valid block");
    let receipts_root = field(fields, &["receipts_root", "receiptsRoot"]);
    assert_eq!(
        output.receipts_root,
        Some(receipts_root),
        "{:?}",
        output.receipts
    );
    assert_eq!(output.gas_used, number(fields, &["gas_used", "gasUsed"]));

    // The values after. What the block does outside of transactions is the hash of its parent.
    let layout = HeaderLayout::FiveLeaves;
    let mut after = BTreeMap::new();
    for (address, change) in &output.changes.accounts {
        assert!(
            change.slots.is_empty(),
            "nothing stored survives in these blocks"
        );
        let leaves = |account: Option<Account>| {
            let account = account.inspect(|it| assert_eq!(it.code_hash, KECCAK256_EMPTY));
            let leaves = account.map(|account| layout.leaves(&account, 0).expect("leaves"));
            leaves
                .unwrap_or_default()
                .into_iter()
                .collect::<BTreeMap<_, _>>()
        };
        let (old, new) = (leaves(change.old), leaves(change.new));
        for (suffix, leaf) in new
            .into_iter()
            .filter(|(at, leaf)| old.get(at) != Some(leaf))
        {
            after.insert(view.keys.of((StemName::header(*address), suffix)), leaf);
        }
    }
    let changed = values
        .iter()
        .filter_map(|(key, (_, new))| Some((*key, (*new)?)));
    let mut changed: BTreeMap<Key, LeafValue> = changed.collect();
    changed.remove(&view.keys.of(parent_hash));
    assert_eq!(after, changed);

    let touched = output.accessed.expect("metered");
    let touched: BTreeSet<Key> = touched.iter().map(|leaf| view.keys.of(*leaf)).collect();
    let mut there: BTreeSet<Key> = values.keys().copied().collect();
    let paid = layout
        .suffixes()
        .iter()
        .map(|suffix| (StemName::header(coinbase), *suffix));
    for leaf in paid.chain([parent_hash]) {
        there.remove(&view.keys.of(leaf));
    }
    [&touched - &there, &there - &touched]
}

fn json(test: &str, file: &str) -> Option<Value> {
    let path = shared(test, &format!("vectors/ethereumjs_kaustinen/{file}.json"))?;
    let bytes = std::fs::read(path).expect("vectors");
    Some(serde_json::from_slice(&bytes).expect("JSON"))
}

#[test]
fn blocks_of_kaustinen_4() {
    let file = "client_test_testdata_blocks_kaustinen4";
    let Some(file) = json("blocks_of_kaustinen_4", file) else {
        return;
    };
    let committer = Committer::within(20_000_000);
    let keys = || Keys {
        committer: &committer,
        images: false,
    };
    let blocks = file.as_object().expect("blocks by number");
    assert_eq!(blocks.len(), 4);
    for (number, pair) in blocks {
        let block = &pair["execute"];
        let [more, missing] = replay(block, block, keys());
        if number != "374" {
            assert_eq!((more.len(), missing.len()), (0, 0), "block {number}");
            continue;
        }
        // A creation that fails later asks for the size of a code at an address of 14 bytes, which the testnet took for the first bytes of an
        // address in place of the last ones; and for the hash of a block long ago, for which it touched the contract that has newer ones.
        let asked = address!("00000000000055600060ce55b5600060b955367f");
        let taken = address!("55600060ce55b5600060b955367f000000000000");
        let field = |address, suffix| keys().of((StemName::header(address), suffix));
        assert_eq!(more, BTreeSet::from([field(asked, 4)]));
        let known = [field(taken, 4), field(HISTORY, 0)];
        assert_eq!(missing, BTreeSet::from(known));
    }
}

/// Two transfers, which cost what they always cost.
#[test]
fn a_block_of_kaustinen_6() {
    let file = "statemanager_test_testdata_verkleKaustinen6Block72";
    let Some(block) = json("a_block_of_kaustinen_6", file) else {
        return;
    };
    let committer = Committer::within(20_000_000);
    let keys = Keys {
        committer: &committer,
        images: true,
    };
    let [more, missing] = replay(&block["header"], &block, keys);
    assert_eq!((more.len(), missing.len()), (0, 0));
}

const ABSENT: Address = address!("00000000000000000000000000000000000000ab");
const OTHER: Address = address!("00000000000000000000000000000000000000ee");

// EIP-4762, "Witness gas costs".
const STEM: u64 = 1900;
const LEAF: u64 = 200;
const STEM_CHANGED: u64 = 3000;
const LEAF_CHANGED: u64 = 500;
const LEAF_FILLED: u64 = 6200;
const AGAIN: u64 = 100;

fn metered(accounts: &[GenesisAccount], transaction: Transaction) -> BlockOutput {
    metered_by(Executor::new(), accounts, transaction)
}

fn metered_by(
    mut executor: Executor,
    accounts: &[GenesisAccount],
    transaction: Transaction,
) -> BlockOutput {
    let mut rules = rules(Fork::Shanghai);
    rules.witness_gas = Some(WitnessGas::Eip4762);
    let (block, chain) = (block(1, vec![transaction]), RecentBlocks::default());
    let state = state(accounts);
    let run = executor.run(&rules, &block, &[SENDER], &state, &chain, None);
    run.expect("valid block")
}

/// Gas that a contract of this code takes beyond that of its transaction and of its own chunks of code, of which there is `chunks` in the first stem.
fn gas(code: &[u8], chunks: u64) -> u64 {
    let accounts = [
        GenesisAccount {
            balance: U256::from(5),
            ..account(CONTRACT, 1, code, &[(1, 7), (64, 7)])
        },
        account(OTHER, 1, &[0; 40], &[]),
    ];
    let output = metered(&accounts, call(0, CONTRACT, Bytes::new()));
    output.gas_used - 21_000 - chunks * LEAF
}

#[test]
fn slots_are_paid_for_once() {
    // SLOAD(0), once more; SLOAD(64), whose stem is another; SLOAD(65) beside it. Each after a push of 3, and the first two of 2 gas.
    assert_eq!(gas(&hex!("5f54"), 1), 2 + LEAF);
    assert_eq!(gas(&hex!("5f545f54"), 1), 4 + LEAF + AGAIN);
    assert_eq!(gas(&hex!("604054"), 1), 3 + STEM + LEAF);
    assert_eq!(gas(&hex!("604054604154"), 1), 6 + STEM + 2 * LEAF);
    // SSTORE(1, 1) changes what is there, SSTORE(0, 1) fills; the stem is changed once. Nothing is given back for a zero.
    let change = LEAF + LEAF_CHANGED;
    assert_eq!(gas(&hex!("6001600155"), 1), 6 + STEM_CHANGED + change);
    assert_eq!(
        gas(&hex!("60016001555f600155"), 1),
        11 + STEM_CHANGED + change + AGAIN
    );
    assert_eq!(
        gas(&hex!("600160015560015f55"), 1),
        11 + STEM_CHANGED + 2 * change + LEAF_FILLED
    );
    assert_eq!(
        gas(&hex!("6001604055"), 1),
        6 + STEM + STEM_CHANGED + change
    );
}

#[test]
fn accounts_are_paid_for_by_leaf() {
    // BALANCE, EXTCODESIZE (the same leaf), EXTCODEHASH (another one) of OTHER.
    assert_eq!(gas(&hex!("60ee31"), 1), 3 + STEM + LEAF);
    assert_eq!(gas(&hex!("60ee3160ee3b"), 1), 6 + STEM + LEAF + AGAIN);
    assert_eq!(gas(&hex!("60ee3160ee3f"), 1), 6 + STEM + 2 * LEAF);
    // What every node knows of precompiled contracts is in no witness; their balance is.
    assert_eq!(gas(&hex!("60043b60043f"), 1), 6 + 2 * AGAIN);
    assert_eq!(gas(&hex!("600431"), 1), 3 + STEM + LEAF);
    // EXTCODECOPY of 31 bytes from 30 on, of two chunks; 2 words copied, 3 of memory, or so.
    let copy = gas(&hex!("601f601e5f60ee3c"), 1);
    assert_eq!(copy, 3 * 3 + 2 + 3 + 3 + STEM + LEAF + 2 * LEAF);
}

#[test]
fn code_is_paid_for_by_chunk() {
    // Two chunks run, the second by a push whose data lie in it; of three copied, one is new.
    let mut code = vec![0x5b; 30];
    code.extend(hex!("61000050")); // PUSH2 over the border, POP
    assert_eq!(gas(&code, 2), 30 + 3 + 2);
    let mut copies = hex!("605d5f5f3900").to_vec(); // CODECOPY(0, 0, 93)
    copies.resize(93, 0);
    assert_eq!(gas(&copies, 3), 3 + 2 + 2 + 3 + 3 * 3 + 3 * 3);
}

/// What stands behind an opcode of EVM384 is paid for with it.
#[test]
fn immediates_are_paid_for() {
    let interface = Interface::Immediate;
    let mut code = vec![0x5b; 30];
    code.push(interface.opcodes()[0].byte);
    code.resize(62, 0);
    let evm384 = Executor::with_evm384(Evm384 {
        interface,
        schedule: GasSchedule::DRAFT,
    });
    let (index, suffix) = chunk_place(1);
    let address = CONTRACT;
    let second = (StemName { address, index }, suffix);
    for (executor, pays) in [(evm384, true), (Executor::new(), false)] {
        let accounts = [account(CONTRACT, 1, &code, &[])];
        let output = metered_by(executor, &accounts, call(0, CONTRACT, Bytes::new()));
        let accessed = output.accessed.expect("what was paid for");
        assert_eq!(accessed.contains(&second), pays);
    }
}

#[test]
fn value_changes_both_accounts() {
    // CALL(gas, to, 1, 0, 0, 0, 0): the recipient's 2,300 gas come back.
    let call = |to: u8| [&hex!("5f5f5f5f600160")[..], &[to], &hex!("5af1")].concat();
    let pushes = 4 * 2 + 2 * 3 + 2;
    let from = STEM_CHANGED + LEAF_CHANGED;
    let to = STEM + LEAF + STEM_CHANGED + LEAF_CHANGED;
    let filled = LEAF_FILLED + LEAF + LEAF_CHANGED + LEAF_FILLED;
    // Code of the other account that runs is one chunk.
    assert_eq!(gas(&call(0xee), 1), pushes + from + to + LEAF - 2300);
    assert_eq!(gas(&call(0xab), 1), pushes + from + to + filled - 2300);
    // A transaction's own value is paid for by its 21,000 gas.
    let output = metered(&[], tx(0, TxKind::Call(ABSENT), 1, Bytes::new()));
    assert_eq!(output.gas_used, 21_000);
    let accessed = [SENDER, ABSENT].map(StemName::header);
    let accessed = accessed.into_iter().flat_map(|name| [(name, 0), (name, 1)]);
    assert_eq!(output.accessed, Some(accessed.collect()));
}

#[test]
fn a_contract_s_leaves_are_filled() {
    // Returns 62 zero bytes: two chunks.
    let init = hex!("603e5ff3");
    let output = metered(&[], tx(0, TxKind::Create, 0, init.to_vec()));
    let created = SENDER.create(0);
    let fill = LEAF + LEAF_CHANGED + LEAF_FILLED;
    let memory = 2 * 3;
    assert_eq!(
        output.gas_used,
        53_000 + 4 * 16 + 2 + (3 + 2 + memory) + STEM + STEM_CHANGED + 4 * fill
    );
    let name = StemName::header(created);
    let accessed = output.accessed.expect("metered");
    for suffix in [0, 1, 128, 129] {
        assert!(accessed.contains(&(name, suffix)), "{suffix}");
    }
    let account = output.changes.accounts[&created].new.expect("created");
    assert_eq!(account.code_hash, keccak256([0; 62]));
}

#[test]
fn what_cannot_be_paid_for_is_not_touched() {
    // 1,000 gas for a call that reads a slot in another stem, then one in the header.
    let reads = account(OTHER, 1, &hex!("604054"), &[]);
    let call = hex!("5f5f5f5f5f60ee6103e8f1 5f54");
    let accounts = [account(CONTRACT, 1, &call, &[]), reads];
    let output = metered(&accounts, super::effects::call(0, CONTRACT, Bytes::new()));
    let pushes = 5 * 2 + 2 * 3 + 2;
    assert_eq!(
        output.gas_used,
        21_000 + pushes + LEAF + (STEM + LEAF) + 1000 + LEAF
    );
    let accessed = output.accessed.expect("metered");
    let (index, suffix) = slot_place(U256::from(64));
    assert!(!accessed.contains(&(
        StemName {
            address: OTHER,
            index
        },
        suffix
    )));
    let (index, suffix) = chunk_place(0);
    assert!(accessed.contains(&(
        StemName {
            address: OTHER,
            index
        },
        suffix
    )));
}

#[test]
fn without_it_nothing_is_counted() {
    let (block, chain) = (
        block(1, vec![call(0, ABSENT, Bytes::new())]),
        RecentBlocks::default(),
    );
    let run = Executor::new().run(
        &rules(Fork::Shanghai),
        &block,
        &[SENDER],
        &state(&[]),
        &chain,
        None,
    );
    assert_eq!(run.expect("valid block").accessed, None);
}
