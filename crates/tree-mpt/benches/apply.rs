//! One block's worth of updates over a nested trie of 300,000 leaves in memory.
//!
//! `apply` is the whole; `keccak alone` hashes as many messages of the same lengths, `reads alone`
//! asks the reader for the same nodes; what is left is what the tree itself costs.

use std::hint::black_box;

use arbor_hashing::{KeccakBatch, keccak};
use arbor_tree::{Hash, MemoryNodes, NodeChange, NodeReader, NodeRequest};
use arbor_tree_mpt::{
    EMPTY_ROOT, InnerUpdate, LeafTemplate, OuterUpdate, Record, apply, build, ordered_root,
};
use criterion::{Criterion, criterion_group, criterion_main};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const ACCOUNTS: usize = 100_000;
/// Contracts, and slots of each: 200,000 slots in all.
const CONTRACTS: usize = 20;
const SLOTS: usize = 10_000;

struct State {
    nodes: MemoryNodes,
    root: Hash,
    accounts: Vec<Hash>,
    /// Outer key, inner root and slots.
    contracts: Vec<(Hash, Hash, Vec<Hash>)>,
}

fn template(rng: &mut StdRng) -> LeafTemplate {
    let mut bytes = vec![0; 76];
    rng.fill(&mut bytes[..]);
    LeafTemplate { bytes, hole: 11 }
}

fn state(rng: &mut StdRng) -> State {
    let mut nodes = MemoryNodes::new();
    let mut accounts: Vec<Hash> = (0..ACCOUNTS).map(|_| rng.random()).collect();
    accounts.sort_unstable();
    let mut contracts = Vec::new();
    for _ in 0..CONTRACTS {
        let owner = accounts[rng.random_range(0..ACCOUNTS)];
        let mut slots: Vec<Hash> = (0..SLOTS).map(|_| rng.random()).collect();
        slots.sort_unstable();
        let leaves = slots.iter().map(|slot| (*slot, vec![7; 21]));
        let root = build(Some(owner), leaves, &mut |at, record| {
            nodes.put_node(at, record);
        });
        contracts.push((owner, root.expect("sorted"), slots));
    }
    let leaves: Vec<_> = accounts
        .iter()
        .map(|account| {
            let contract = contracts.iter().find(|contract| contract.0 == *account);
            let root = contract.map_or(EMPTY_ROOT, |contract| contract.1);
            (*account, template(rng).fill(&root))
        })
        .collect();
    let root = build(None, leaves, &mut |at, record| nodes.put_node(at, record));
    State {
        nodes,
        root: root.expect("sorted"),
        accounts,
        contracts,
    }
}

/// 300 accounts and 300 slots change.
fn block(rng: &mut StdRng, state: &State) -> Vec<OuterUpdate> {
    let mut updates: Vec<OuterUpdate> = Vec::new();
    for (owner, inner_root, slots) in &state.contracts {
        let mut inner: Vec<InnerUpdate> = (0..15)
            .map(|_| InnerUpdate {
                key: slots[rng.random_range(0..SLOTS)],
                existed: true,
                value: Some(rng.random::<[u8; 20]>().as_slice().into()),
            })
            .collect();
        inner.sort_by_key(|inner| inner.key);
        inner.dedup_by_key(|inner| inner.key);
        updates.push(OuterUpdate {
            key: *owner,
            existed: true,
            inner_root: *inner_root,
            leaf: Some(template(rng)),
            inner,
        });
    }
    for _ in 0..280 {
        updates.push(OuterUpdate {
            key: state.accounts[rng.random_range(0..ACCOUNTS)],
            existed: true,
            inner_root: EMPTY_ROOT,
            leaf: Some(template(rng)),
            inner: Vec::new(),
        });
    }
    updates.sort_by_key(|update| update.key);
    updates.dedup_by_key(|update| update.key);
    updates
}

/// As many strings of the same numbers of blocks as `apply` hashes.
fn messages(state: &State, updates: &[OuterUpdate]) -> Vec<Vec<u8>> {
    let update = apply(&state.nodes, state.root, updates).expect("applies");
    let branches = update.nodes.iter().filter_map(|node| {
        let record = Record::decode(node.record.as_deref()?).expect("own record");
        let mut rlp = Vec::new();
        record.write_branch(&mut rlp);
        Some(rlp)
    });
    let leaves = update
        .leaves
        .iter()
        .map(|leaf| vec![1; leaf.leaf.value.len() + 36]);
    let messages: Vec<Vec<u8>> = leaves.chain(branches).collect();
    let blocks: usize = messages.iter().map(|m| m.len() / keccak::RATE + 1).sum();
    println!(
        "{:?}; the same messages alone: {} in {blocks} permutations",
        update.stats,
        messages.len()
    );
    messages
}

/// The requests for the nodes that `apply` reads.
fn requests(state: &State, updates: &[OuterUpdate]) -> Vec<NodeRequest> {
    let update = apply(&state.nodes, state.root, updates).expect("applies");
    let request = |node: &NodeChange| NodeRequest {
        position: node.position,
        expected: None,
    };
    update.nodes.iter().map(request).collect()
}

fn benches(criterion: &mut Criterion) {
    let mut rng = StdRng::seed_from_u64(1);
    let state = state(&mut rng);
    let updates = block(&mut rng, &state);
    let messages = messages(&state, &updates);
    let mut group = criterion.benchmark_group("block of 580 leaves over 300,000");
    group.bench_function("apply", |bencher| {
        bencher.iter(|| apply(&state.nodes, state.root, black_box(&updates)));
    });
    let reads = requests(&state, &updates);
    group.bench_function("reads alone", |bencher| {
        bencher.iter(|| state.nodes.nodes(black_box(&reads)));
    });
    let mut batch = KeccakBatch::new();
    group.bench_function("keccak alone", |bencher| {
        bencher.iter(|| {
            for chunk in messages.chunks(128) {
                for message in chunk {
                    batch.push(message);
                }
                black_box(batch.finish());
                batch.clear();
            }
        });
    });
    group.finish();
    let items: Vec<Vec<u8>> = (0..200).map(|i| vec![i as u8 + 1; 120]).collect();
    criterion.bench_function("ordered root of 200 transactions", |bencher| {
        bencher.iter(|| ordered_root(black_box(&items)));
    });
}

criterion_group! {
    name = all;
    config = Criterion::default()
        .sample_size(30)
        .measurement_time(std::time::Duration::from_secs(3));
    targets = benches
}
criterion_main!(all);
