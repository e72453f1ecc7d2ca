//! Analysed bytecode, kept across blocks.

use alloy_primitives::B256;
use alloy_primitives::map::B256Map;
use revm::bytecode::Bytecode;

/// Bytes of code kept in each of the two generations.
const GENERATION_BYTES: usize = 32 << 20;
/// What an entry costs beside its bytes: jump table and map slot, roughly.
const ENTRY_OVERHEAD: usize = 256;

/// Code by its hash with its jump table, in two generations: what is used moves to the young one, and when
/// that is full the old one is dropped. So the code used lately stays, within a bounded amount of memory.
#[derive(Default)]
pub(super) struct CodeCache {
    young: B256Map<Bytecode>,
    old: B256Map<Bytecode>,
    young_bytes: usize,
}

impl CodeCache {
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
    use revm::primitives::Bytes;

    use super::*;

    fn code(n: u8) -> Bytecode {
        Bytecode::new_legacy(Bytes::from(vec![n; 1 << 20]))
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
