//! Process-wide counts of the operations that are dear.

use std::sync::atomic::{AtomicU64, Ordering};

/// Keccak-f\[1600\] permutations applied to messages by the hashing crate.
///
/// One for each 136-byte block of a padded message, whichever backend did it: idle lanes of a
/// vector do not count, so the figure says how much work there was and not how it was packed.
/// Hashing inside the EVM (the KECCAK256 opcode) goes through another library and is not in it.
pub static KECCAK_PERMUTATIONS: Counter = Counter::new();

/// BLAKE2s compressions applied to messages by the hashing crate: one for each 64-byte block, idle lanes not counted.
pub static BLAKE2S_COMPRESSIONS: Counter = Counter::new();

/// BLAKE3 compressions applied to messages by the hashing crate: one for each 64-byte block, idle lanes not counted.
pub static BLAKE3_COMPRESSIONS: Counter = Counter::new();

/// SHA-256 compressions applied to messages by the hashing crate: one for each 64-byte block of a padded message, idle lanes not counted.
pub static SHA256_COMPRESSIONS: Counter = Counter::new();

/// Inversions in a prime field that were really done: one for a whole batch.
pub static FIELD_INVERSIONS: Counter = Counter::new();

/// Square roots in Banderwagon's base field: decompressed points.
pub static SQUARE_ROOTS: Counter = Counter::new();

/// Additions of curve points within sums: commitments, proofs and their checks.
pub static POINT_ADDITIONS: Counter = Counter::new();

/// Curve points made affine, alone or many with one inversion.
pub static NORMALISATIONS: Counter = Counter::new();

/// Requests that read from a store, in units of a disk's (`arbor_store::disk`).
pub static STORE_READS: Counter = Counter::new();

/// Bytes of keys and values that they gave.
pub static STORE_READ_BYTES: Counter = Counter::new();

/// Requests that wrote to a store.
pub static STORE_WRITES: Counter = Counter::new();

/// Bytes of keys and values that they wrote.
pub static STORE_WRITTEN_BYTES: Counter = Counter::new();

/// A monotonic count that any thread may raise; aligned so that two never share a cache line.
///
/// Additions are relaxed: they order nothing, and a reader sees every addition that
/// happened before its read by some other synchronisation, such as joining a thread.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds `count`, wrapping at 2^64. Meant to be called once per batch of operations.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The sum of all additions since the process began.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns what a counter of [`snapshot`] counts, in a sentence; empty for another name.
#[must_use]
pub fn described(name: &str) -> &'static str {
    match name {
        "keccak_permutations" => {
            "Permutations of Keccak-f[1600], those of the KECCAK256 opcode left out."
        }
        "blake2s_compressions" => "Compressions of BLAKE2s.",
        "blake3_compressions" => "Compressions of BLAKE3.",
        "sha256_compressions" => "Compressions of SHA-256.",
        "field_inversions" => "Inversions in prime fields. Several with one inversion count once.",
        "square_roots" => "Square roots in Banderwagon's base field, for decompressed points.",
        "point_additions" => "Additions of curve points in commitments, proofs and their checks.",
        "normalisations" => "Curve points made affine.",
        "store_reads" => "Requests that read from the store, in units of a disk's.",
        "store_read_bytes" => "Bytes of keys and values that were read from the store.",
        "store_writes" => "Requests that wrote to the store, in units of a disk's.",
        "store_written_bytes" => "Bytes of keys and values that were written to the store.",
        _ => "",
    }
}

/// Every counter's name, as reports spell it, and its value now, in a fixed order.
///
/// The counts never go back: what a job cost is the difference of two snapshots, provided that
/// nothing else ran in the process.
#[must_use]
pub fn snapshot() -> [(&'static str, u64); 12] {
    [
        ("keccak_permutations", KECCAK_PERMUTATIONS.get()),
        ("blake2s_compressions", BLAKE2S_COMPRESSIONS.get()),
        ("blake3_compressions", BLAKE3_COMPRESSIONS.get()),
        ("sha256_compressions", SHA256_COMPRESSIONS.get()),
        ("field_inversions", FIELD_INVERSIONS.get()),
        ("square_roots", SQUARE_ROOTS.get()),
        ("point_additions", POINT_ADDITIONS.get()),
        ("normalisations", NORMALISATIONS.get()),
        ("store_reads", STORE_READS.get()),
        ("store_read_bytes", STORE_READ_BYTES.get()),
        ("store_writes", STORE_WRITES.get()),
        ("store_written_bytes", STORE_WRITTEN_BYTES.get()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_of_all_threads_are_summed() {
        let counter = Counter::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|i| counter.add(i)));
            }
        });
        assert_eq!(counter.get(), 4 * 499_500);
    }

    #[test]
    fn the_snapshot_shows_the_permutations() {
        let (name, before) = snapshot()[0];
        KECCAK_PERMUTATIONS.add(3);
        assert_eq!(name, "keccak_permutations");
        assert!(snapshot()[0].1 >= before + 3);
    }
}
