//! One message.

use super::{
    BLOCK, Digest,
    compression::{compress, start},
};

/// The digest of one message of any length (RFC 7693, section 3.3).
pub(super) fn hash(message: &[u8]) -> Digest {
    let mut state = start_of_one();
    // Even the empty message has a block, and the last one, whole or not, is marked.
    let blocks = message.len().div_ceil(BLOCK).max(1);
    for i in 0..blocks {
        let end = message.len().min((i + 1) * BLOCK);
        let mut block = [0; BLOCK];
        block[..end - i * BLOCK].copy_from_slice(&message[i * BLOCK..end]);
        let words = std::array::from_fn(|i| [u32::from_le_bytes(block.as_chunks::<4>().0[i])]);
        // SAFETY: one word needs no particular instructions.
        state = unsafe { compress(state, &words, end as u64, i + 1 == blocks) };
    }
    let mut digest = [0; 32];
    for (bytes, [word]) in digest.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_le_bytes();
    }
    digest
}

fn start_of_one() -> [[u32; 1]; 8] {
    // SAFETY: one word needs no particular instructions.
    unsafe { start() }
}
