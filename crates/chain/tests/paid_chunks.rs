//! The chunks of code in witnesses of a tree with leaves, where transactions pay for what they touch (EIP-4762).
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use alloy_primitives::{Address, KECCAK256_EMPTY, U256, address};
use arbor_chain::executor::{Ancestor, Executor, LeafName, RecentBlocks, Rules};
use arbor_chain::genesis::{Genesis, WitnessGas};
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::{Chain, Replay};
use arbor_chain::source::open_sources;
use arbor_chain::witness::stateless::replay_witness;
use arbor_chain::witness::verkle::VerkleWitness;
use arbor_chain::witness::{block_accesses, make_witness};
use arbor_generator::{GeneratorSettings, Preset, generate};
use arbor_state::{Historical, Network, Settings, State, StateView};
use arbor_store::MemoryStore;
use arbor_trees::verkle::VERKLE;
use arbor_verify::mpt::MissingAccounts;
use arbor_verify::verkle::{
    CHUNK, CODE, MAIN_STORAGE_INDEX, StemHash, StemName, Stems, chunk_place, committer,
};
use arbor_versions::Version;

type Key = [u8; 32];

/// Contracts that blocks call without any transaction, so that nobody pays: EIP-2935, EIP-4788, EIP-7002, EIP-7251.
const SYSTEM: [Address; 4] = [
    address!("0000f90827f1c53a10cb7a02335b175320002935"),
    address!("000f3df6d732807ef1319fb7b8bb8522d0beac02"),
    address!("00000961ef480eb55e80d19ad83579a64c007002"),
    address!("0000bbddc7ce488642fb579f8b00f3a590007251"),
];

static STEMS: LazyLock<Stems> = LazyLock::new(|| Stems::new(Arc::clone(committer()), 1 << 20));

fn key_of((name, suffix): LeafName) -> Key {
    let mut key = [suffix; 32];
    key[..31].copy_from_slice(&STEMS.of(&[name])[0]);
    key
}

/// The number of the chunk that a leaf is, if it is one.
fn chunk_of((name, suffix): &LeafName) -> Option<u32> {
    let position = (name.index < MAIN_STORAGE_INDEX)
        .then(|| name.index * U256::from(256) + U256::from(*suffix))?;
    position.checked_sub(U256::from(CODE))?.try_into().ok()
}

/// The keys of all chunks that accounts have before a block.
fn all_chunks(then: &Historical<'_>) -> BTreeMap<Address, Vec<Key>> {
    let mut all = BTreeMap::new();
    for account in then.full_accounts().unwrap() {
        let account = account.unwrap();
        let (address, hash) = (account.address, account.account.code_hash);
        if hash == KECCAK256_EMPTY {
            continue;
        }
        let count = then.code(hash).unwrap().len().div_ceil(CHUNK) as u32;
        let keys = (0..count).map(|chunk| {
            let (index, suffix) = chunk_place(chunk);
            key_of((StemName { address, index }, suffix))
        });
        all.insert(address, keys.collect());
    }
    all
}

/// The block as it is valid if its transactions pay for what they touch, and the leaves that they pay for. `None` if a
/// transaction cannot pay.
fn charged(
    genesis: &Genesis,
    block: &RecoveredBlock,
    then: &Historical<'_>,
    recent: &RecentBlocks,
) -> Option<(RecoveredBlock, BTreeSet<LeafName>)> {
    let parent = &recent.latest().unwrap().header;
    let rules = Rules::at(&genesis.spec, &block.block.header, parent, None);
    let mut executor = Executor::new();
    let output = executor.run(&rules, &block.block, &block.senders, then, recent, None);
    let output = output.ok()?;
    let mut block = block.clone();
    let header = &mut block.block.header;
    header.gas_used = output.gas_used;
    header.receipts_root = output.receipts_root.unwrap();
    header.logs_bloom = output.logs_bloom;
    header.requests_hash = output.requests_hash();
    block.hash = header.hash_slow();
    Some((block, output.accessed.unwrap()))
}

#[test]
fn witnesses_have_exactly_the_chunks_that_are_paid_for() {
    let settings = GeneratorSettings {
        blocks: 12,
        ..Preset::Tiny.settings()
    };
    let folder = tempfile::tempdir().unwrap();
    generate(&settings, folder.path(), |_| ControlFlow::Continue(())).unwrap();
    let genesis = Genesis::from_file(&folder.path().join("genesis.json")).unwrap();
    let mut paying = genesis.clone();
    paying.spec.set_witness_gas(Some(WitnessGas::Eip4762));
    let mut source = open_sources(&[folder.path().to_owned()]).unwrap();
    source.skip_to(1).unwrap();
    let tree = Settings {
        memory: Some(18_000_000),
        ..Settings::default()
    };
    let network = Network {
        chain_id: genesis.spec.chain_id(),
        genesis_hash: genesis.hash,
    };
    let tree = (VERKLE.make)(&tree).unwrap();
    let state = State::open(
        Arc::new(MemoryStore::default()),
        None,
        tree,
        network,
        Default::default(),
    );
    let mut replay = Replay::new(state.unwrap(), &genesis, 100_000).unwrap();
    let mut recent = RecentBlocks::default();
    let (mut blocks, mut chunks, mut kinds) = (0, 0, [0; 3]);
    while let Some(raw) = source.next_raw().unwrap() {
        let block = prepare(raw, SignatureRules::new(&genesis.spec)).unwrap();
        if recent.latest().is_some() {
            let reader = replay.state().reader();
            let head: Version = reader.meta().unwrap().version;
            let then = reader.at(head).unwrap();
            if let Some((paid, accessed)) = charged(&paying, &block, &then, &recent) {
                let all = all_chunks(&then);
                let first = paid
                    .senders
                    .iter()
                    .filter_map(|sender| all.get(sender)?.first());
                let mut expected: BTreeSet<Key> = first.copied().collect();
                expected.extend(accessed.iter().filter_map(|leaf| {
                    let of_account = all.get(&leaf.0.address)?;
                    of_account.get(chunk_of(leaf)? as usize).copied()
                }));
                let touched = block_accesses(&then, Chain::of(&paying), &paid, Executor::new());
                let of_kinds = touched.unwrap().accesses.paid.unwrap();
                let of_code = accessed.iter().filter(|leaf| chunk_of(leaf).is_some());
                assert_eq!(of_kinds.code, of_code.count() as u64);
                let all_kinds = of_kinds.header + of_kinds.code + of_kinds.storage;
                assert_eq!(all_kinds, accessed.len() as u64);
                kinds = [
                    kinds[0] + of_kinds.header,
                    kinds[1] + of_kinds.code,
                    kinds[2] + of_kinds.storage,
                ];
                let executor = Executor::new();
                let made = make_witness(&then, Chain::of(&paying), &paid, executor, false);
                let mut made = made.unwrap();
                made.witness.complete().unwrap();
                // System calls need chunks of their contracts, too.
                let system = SYSTEM.iter().filter_map(|contract| all.get(contract));
                let system: BTreeSet<Key> = system.flatten().copied().collect();
                let number = paid.block.header.number;
                assert!(made.chunks().is_superset(&expected), "block {number}");
                assert!(
                    &(made.chunks() - &expected) - &system == BTreeSet::new(),
                    "block {number}"
                );
                let expected = made.chunks().clone();
                let whole = made.witness.executable().unwrap().into_owned();
                let missing = MissingAccounts::Error;
                replay_witness(&whole, &paying.spec, missing, Executor::new()).unwrap();
                // The witness itself has these chunks and no others.
                let witness = made.witness.into::<VerkleWitness>().unwrap().witness;
                let keys: BTreeSet<Key> = witness
                    .keys()
                    .map(|(stem, diff)| {
                        let mut key = [diff.suffix; 32];
                        key[..31].copy_from_slice(stem);
                        key
                    })
                    .collect();
                let all: BTreeSet<Key> = all.into_values().flatten().collect();
                assert!(&keys & &all == expected, "block {number}");
                blocks += 1;
                chunks += expected.len();
            }
        }
        recent.push(Ancestor {
            hash: block.hash,
            header: block.block.header.clone(),
            ommers: Vec::new(),
        });
        replay.block(block).unwrap();
    }
    assert!(
        blocks > 5 && chunks > 50,
        "{chunks} chunks of {blocks} blocks"
    );
    assert!(kinds.iter().all(|paid| *paid > 20), "{kinds:?}");
}
