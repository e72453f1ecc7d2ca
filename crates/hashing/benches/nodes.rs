//! Nodes of binary trees, in batches, with each function and on every backend that this processor has. Throughput is in hashes.

use arbor_hashing::{Backend, Blake3, Digest, Keccak, Sha256};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

/// Messages of a batch.
const COUNT: usize = 512;

/// Messages of so many bytes that differ everywhere.
fn messages<const LEN: usize>() -> Vec<[u8; LEN]> {
    let message = |i: usize| std::array::from_fn(|j| (i * 131 + j * 29 + i / 7) as u8);
    (0..COUNT).map(message).collect()
}

fn nodes(c: &mut Criterion) {
    let (names, branches, leaves) = (messages::<64>(), messages::<67>(), messages::<99>());
    let mut out: Vec<Digest> = vec![[0; 32]; COUNT];
    let mut group = c.benchmark_group(format!("{COUNT} nodes"));
    group.throughput(Throughput::Elements(COUNT as u64));
    macro_rules! function {
        ($name:literal, $function:ty, $backend:expr) => {
            let function = <$function>::on($backend).expect("it is available");
            function.hash_batch(&leaves, &mut out);
            assert_eq!(out[COUNT - 1], function.hash(&leaves[COUNT - 1]));
            let name = concat!($name, " of ");
            group.bench_function(format!("{} {name}64 bytes", $backend), |b| {
                b.iter(|| function.hash_fixed(black_box(&names), &mut out));
            });
            group.bench_function(format!("{} {name}67 bytes", $backend), |b| {
                b.iter(|| function.hash_batch(black_box(&branches), &mut out));
            });
            group.bench_function(format!("{} {name}99 bytes", $backend), |b| {
                b.iter(|| function.hash_batch(black_box(&leaves), &mut out));
            });
        };
    }
    for backend in Backend::available() {
        function!("blake3", Blake3, backend);
        function!("sha256", Sha256, backend);
        function!("keccak256", Keccak, backend);
    }
}

criterion_group!(benches, nodes);
criterion_main!(benches);
