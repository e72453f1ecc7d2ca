//! Analysed bytecode, kept across blocks.

use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use revm::bytecode::Bytecode;
use revm::primitives::Bytes;

/// Bytes of code kept in each of the two generations.
const GENERATION_BYTES: usize = 32 << 20;
/// What an entry costs beside its bytes: jump table and map slot, roughly.
const ENTRY_OVERHEAD: usize = 256;

/// Code by its hash with its jump table, in two generations: what is used moves to the young one, and when
/// that is full the old one is dropped. So the code used lately stays, within a bounded amount of memory.
///
/// One kind of code changes its meaning at a fork: `ef0100` and 20 bytes is plain code before Prague and a delegation from Prague on
/// (EIP-7702), whoever deployed it and when. The cache holds the meaning of one side of that fork.
#[derive(Default)]
pub(super) struct CodeCache {
    delegations: bool,
    young: B256Map<Bytecode>,
    old: B256Map<Bytecode>,
    young_bytes: usize,
}

impl CodeCache {
    /// Begins a block of a fork that has delegations or has none. Code that was analysed on the other side of Prague is dropped.
    pub(super) fn begin(&mut self, delegations: bool) {
        if self.delegations != delegations {
            *self = Self {
                delegations,
                ..Self::default()
            };
        }
    }

    /// Analyses code, by the rules of the fork that [`begin`](Self::begin) named, and keeps it under its hash.
    pub(super) fn analyse(&mut self, hash: B256, bytes: Bytes) -> Bytecode {
        let code = self.analysed(bytes);
        self.insert(hash, code.clone());
        code
    }

    /// Analyses code like [`analyse`](Self::analyse), but does not keep it.
    pub(super) fn analysed(&self, bytes: Bytes) -> Bytecode {
        let delegation = match self.delegations {
            // Code from before London may begin with ef01 and be no delegation.
            true => Bytecode::new_raw_checked(bytes.clone()).ok(),
            false => None,
        };
        delegation.unwrap_or_else(|| Bytecode::new_legacy(bytes))
    }

    /// Returns the code, and counts it as used.
    pub(super) fn get(&mut self, hash: &B256) -> Option<Bytecode> {
        if let Some(code) = self.young.get(hash) {
            return Some(code.clone());
        }
        let code = self.old.remove(hash)?;
        self.insert(*hash, code.clone());
        Some(code)
    }

    /// Keeps code under its hash.
    pub(super) fn insert(&mut self, hash: B256, code: Bytecode) {
        let bytes = code.len() + code.len() / 8 + ENTRY_OVERHEAD;
        if self.young_bytes + bytes > GENERATION_BYTES {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(hash, code).is_none() {
            self.young_bytes += bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(n: u8) -> Bytecode {
        Bytecode::new_legacy(Bytes::from(vec![n; 1 << 20]))
    }

    #[test]
    fn the_shape_of_a_delegation_is_one_on_one_side_of_the_fork() {
        let mut cache = CodeCache::default();
        let bytes = Bytes::from([&[0xef, 1, 0][..], &[7; 20]].concat());
        let hash = B256::with_last_byte(1);
        for delegations in [false, true, false] {
            cache.begin(delegations);
            assert!(cache.get(&hash).is_none(), "of the other side");
            assert_eq!(cache.analyse(hash, bytes.clone()).is_eip7702(), delegations);
            cache.begin(delegations);
            let kept = cache.get(&hash).expect("kept");
            assert_eq!(kept.is_eip7702(), delegations);
        }
        cache.begin(true);
        for other in [&bytes[..22], &[&bytes[..], &[0]].concat(), &[0xef, 1, 1]] {
            let code = cache.analyse(B256::with_last_byte(2), Bytes::copy_from_slice(other));
            assert!(!code.is_eip7702());
            assert_eq!(code.original_byte_slice(), other);
        }
    }

    #[test]
    fn drops_what_was_not_used_for_two_generations() {
        let mut cache = CodeCache::default();
        let hash = B256::with_last_byte;
        cache.insert(hash(0), code(0));
        for n in 1..=100 {
            cache.insert(hash(n), code(n));
            if n % 10 == 0 {
                assert!(cache.get(&hash(0)).is_some(), "used often, kept");
            }
        }
        assert!(cache.get(&hash(1)).is_none(), "used once, dropped");
        assert!(cache.get(&hash(100)).is_some());
        assert!(cache.young_bytes <= GENERATION_BYTES);
    }
}
