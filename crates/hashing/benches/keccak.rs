//! Keccak-256: one message and batches, on every backend that this processor has, beside sha3 (through alloy-primitives).
//!
//! Throughput is in permutations, so that figures of different lengths can be compared. Every function is
//! checked against the other library before it is timed.

use alloy_primitives::keccak256 as peer;
use arbor_hashing::{Backend, Digest, Keccak, KeccakBatch};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Bytes that differ everywhere, enough for `count` messages of `len`.
fn messages(count: usize, len: usize) -> Vec<Vec<u8>> {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let mut byte = || {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        word.to_be_bytes()[0]
    };
    (0..count)
        .map(|_| (0..len).map(|_| byte()).collect())
        .collect()
}

fn permutations(messages: &[Vec<u8>]) -> Throughput {
    Throughput::Elements(
        messages
            .iter()
            .map(|message| message.len() as u64 / 136 + 1)
            .sum(),
    )
}

fn expected(messages: &[Vec<u8>]) -> Vec<Digest> {
    messages.iter().map(|message| peer(message).0).collect()
}

fn backends() -> impl Iterator<Item = Keccak> {
    Backend::available().map(|backend| Keccak::on(backend).expect("it is available"))
}

fn one_message(c: &mut Criterion) {
    for len in [32, 64, 532] {
        let messages = messages(1, len);
        let message = &messages[0];
        let mut group = c.benchmark_group(format!("1 x {len}"));
        group.throughput(permutations(&messages));
        group.bench_function("sha3", |b| b.iter(|| peer(black_box(message))));
        for keccak in backends() {
            assert_eq!(keccak.hash(message), expected(&messages)[0]);
            let name = keccak.backend().name();
            group.bench_function(name, |b| b.iter(|| keccak.hash(black_box(message))));
        }
    }
}

fn batches(c: &mut Criterion) {
    let mixed: Vec<_> = [messages(700, 70), messages(260, 115), messages(64, 532)].concat();
    let lots = [
        ("1024 x 32", messages(1024, 32)),
        ("1024 x 70", messages(1024, 70)),
        ("256 x 532", messages(256, 532)),
        ("700 x 70, 260 x 115, 64 x 532", mixed),
    ];
    for (name, messages) in lots {
        let mut digests = vec![[0; 32]; messages.len()];
        let mut group = c.benchmark_group(name);
        group.throughput(permutations(&messages));
        for keccak in backends() {
            let backend = keccak.backend();
            keccak.hash_batch(&messages, &mut digests);
            assert_eq!(digests, expected(&messages));
            group.bench_function(format!("{backend} slices"), |b| {
                b.iter(|| keccak.hash_batch(black_box(&messages), &mut digests));
            });

            let mut batch = KeccakBatch::on(keccak);
            messages.iter().for_each(|message| _ = batch.push(message));
            assert_eq!(batch.finish(), expected(&messages));
            group.bench_function(format!("{backend} batch with copying"), |b| {
                b.iter(|| {
                    batch.clear();
                    for message in black_box(&messages) {
                        batch.push(message);
                    }
                    batch.finish()[0]
                });
            });
        }
    }
}

fn keys(c: &mut Criterion) {
    fixed::<20>(c);
    fixed::<32>(c);
}

fn fixed<const LEN: usize>(c: &mut Criterion) {
    let messages = messages(1024, LEN);
    let keys: Vec<[u8; LEN]> = messages
        .iter()
        .map(|message| message.as_slice().try_into().expect("its length"))
        .collect();
    let mut digests = vec![[0; 32]; keys.len()];
    let mut group = c.benchmark_group(format!("1024 keys of {LEN}"));
    group.throughput(permutations(&messages));
    for keccak in backends() {
        keccak.hash_fixed(&keys, &mut digests);
        assert_eq!(digests, expected(&messages));
        group.bench_function(keccak.backend().name(), |b| {
            b.iter(|| keccak.hash_fixed(black_box(&keys), &mut digests));
        });
    }
}

criterion_group!(benches, one_message, batches, keys);
criterion_main!(benches);
