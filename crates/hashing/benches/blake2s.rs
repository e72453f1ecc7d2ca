//! BLAKE2s-256: one message, batches and chains, on every backend that this processor has. Throughput is in hashes.

use arbor_hashing::{Backend, Blake2s, Chain, Digest};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Messages, or chains, of a batch.
const COUNT: usize = 512;

/// Digests that differ everywhere.
fn digests(seed: u8) -> Vec<Digest> {
    let blake2s = Blake2s::new();
    (0..COUNT as u64)
        .map(|i| blake2s.hash(&[&[seed][..], &i.to_le_bytes()].concat()))
        .collect()
}

fn backends() -> impl Iterator<Item = Blake2s> {
    Backend::available().map(|backend| Blake2s::on(backend).expect("it is available"))
}

fn hashes(c: &mut Criterion) {
    let pairs: Vec<[Digest; 2]> = digests(1)
        .into_iter()
        .zip(digests(2))
        .map(Into::into)
        .collect();
    let leaves: Vec<[u8; 40]> = pairs
        .iter()
        .map(|pair| pair.as_flattened()[..40].try_into().expect("its length"))
        .collect();
    let mut out = vec![[0; 32]; COUNT];
    let mut group = c.benchmark_group(format!("{COUNT} messages"));
    group.throughput(Throughput::Elements(COUNT as u64));
    for blake2s in backends() {
        let name = blake2s.backend().name();
        blake2s.hash_pairs(&pairs, &mut out);
        assert_eq!(
            out[COUNT - 1],
            blake2s.hash(pairs[COUNT - 1].as_flattened())
        );
        group.bench_function(format!("{name} one by one"), |b| {
            b.iter(|| {
                for (pair, out) in black_box(&pairs).iter().zip(&mut out) {
                    *out = blake2s.hash(pair.as_flattened());
                }
            });
        });
        group.bench_function(format!("{name} pairs"), |b| {
            b.iter(|| blake2s.hash_pairs(black_box(&pairs), &mut out));
        });
        group.bench_function(format!("{name} leaves"), |b| {
            b.iter(|| blake2s.hash_fixed(black_box(&leaves), &mut out));
        });
    }
}

fn chains(c: &mut Criterion) {
    let siblings = digests(3);
    let mut chains: Vec<Chain> = digests(4)
        .into_iter()
        .zip(digests(5))
        .map(|(key, hash)| Chain { key, hash, to: 208 })
        .take(32)
        .collect();
    let mut group = c.benchmark_group("32 chains of 208");
    group.throughput(Throughput::Elements(32 * 208));
    for blake2s in backends() {
        group.bench_function(blake2s.backend().name(), |b| {
            b.iter(|| blake2s.fold(&siblings[..256], 0, black_box(&mut chains)));
        });
    }
}

criterion_group!(benches, hashes, chains);
criterion_main!(benches);
