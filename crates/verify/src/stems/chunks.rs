//! Code in chunks of 31 bytes (EIP-6800, "Code").

use super::LeafValue;

/// Bytes of code in a chunk.
pub const CHUNK: usize = 31;

const PUSH1: u8 = 0x60;
const PUSH32: u8 = 0x7f;

/// Cuts code into chunks, the last one filled up with zeros. The first byte of a chunk says how many of its bytes from the
/// beginning are data of a PUSH before it, so that one chunk alone tells where a jump may lead.
pub fn chunk_code(code: &[u8]) -> Vec<LeafValue> {
    let mut chunks = Vec::with_capacity(code.len().div_ceil(CHUNK));
    // The first byte that is not data of a push seen so far.
    let mut next_opcode = 0;
    for (start, bytes) in (0..).step_by(CHUNK).zip(code.chunks(CHUNK)) {
        let mut chunk = [0; 32];
        chunk[0] = (next_opcode.max(start) - start).min(CHUNK) as u8;
        chunk[1..=bytes.len()].copy_from_slice(bytes);
        chunks.push(chunk);
        while next_opcode < start + bytes.len() {
            next_opcode += 1 + push_data(code[next_opcode]);
        }
    }
    chunks
}

/// The code of so many bytes whose chunks are known in part: in place of others it has zeros.
///
/// Where a jump may lead within the known chunks is the same as in the whole code: the first byte of a chunk says how many
/// bytes are data of a PUSH before it, and an unknown chunk before it ends with a PUSH of so many.
pub(super) fn partial_code(chunks: &[Option<LeafValue>], size: usize) -> Vec<u8> {
    let mut code = vec![0; chunks.len() * CHUNK];
    for (number, (bytes, chunk)) in code.chunks_mut(CHUNK).zip(chunks).enumerate() {
        if let Some(chunk) = chunk {
            bytes.copy_from_slice(&chunk[1..]);
            continue;
        }
        let led = |number: usize| chunks.get(number).copied().flatten().map_or(0, |of| of[0]);
        let data = match (usize::from(led(number + 1)), led(number + 2)) {
            // The data go on in the chunk after the next one.
            (CHUNK, 1..) => CHUNK + 1,
            (data, _) => data.min(CHUNK),
        };
        if data > 0 {
            bytes[CHUNK - 1] = PUSH1 - 1 + data as u8;
        }
    }
    code.truncate(size);
    code
}

/// Bytes of data after an opcode.
fn push_data(opcode: u8) -> usize {
    match opcode {
        PUSH1..=PUSH32 => usize::from(opcode - PUSH1) + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn data_of_a_push_is_counted_across_chunks() {
        assert!(chunk_code(&[]).is_empty());
        let mut code = vec![0; 30];
        code.extend([PUSH32; 34]);
        let chunks = chunk_code(&code);
        // PUSH32 ends the first chunk: 31 of its 32 bytes of data fill the second, and one begins the third.
        assert_eq!(chunks.iter().map(|c| c[0]).collect::<Vec<_>>(), [0, 31, 1]);
        let (mut code, push3) = (vec![0; 29], PUSH1 + 2);
        code.extend([push3, PUSH32, PUSH32, PUSH32, 0]);
        // The pushes are data themselves.
        let chunks = chunk_code(&code);
        assert_eq!(chunks.iter().map(|c| c[0]).collect::<Vec<_>>(), [0, 2]);
    }

    /// Which bytes are data of a push, by a walk over the code.
    fn data(code: &[u8]) -> Vec<bool> {
        let mut data = vec![false; code.len() + 64];
        let mut at = 0;
        while at < code.len() {
            let pushed = push_data(code[at]);
            data[at + 1..=at + pushed].fill(true);
            at += 1 + pushed;
        }
        data
    }

    proptest! {
        /// Of a code that is known in part, the known chunks are as they were, and so is what is data in them.
        #[test]
        fn known_chunks_keep_their_data(
            code in prop::collection::vec(prop_oneof![3 => Just(0x5bu8), 1 => PUSH1..=PUSH32], 1..400),
            known in prop::collection::vec(any::<bool>(), 13)
        ) {
            let chunks = chunk_code(&code);
            let shown: Vec<_> = chunks.iter().zip(&known).map(|(chunk, known)| known.then_some(*chunk)).collect();
            let partial = partial_code(&shown, code.len());
            prop_assert_eq!(partial.len(), code.len());
            let again = chunk_code(&partial);
            let (whole, part) = (data(&code), data(&partial));
            for (number, chunk) in shown.iter().enumerate() {
                let Some(chunk) = chunk else { continue };
                prop_assert_eq!(&again[number], chunk);
                let places = number * CHUNK..(number + 1) * CHUNK;
                prop_assert_eq!(&whole[places.clone()], &part[places]);
            }
        }

        /// The bytes come back, and a chunk's first byte is what a walk over the whole code tells.
        #[test]
        fn agrees_with_a_walk(code in prop::collection::vec(prop_oneof![Just(0u8), PUSH1..=PUSH32], 0..400)) {
            let data = data(&code);
            let chunks = chunk_code(&code);
            prop_assert_eq!(chunks.len(), code.len().div_ceil(CHUNK));
            for (number, chunk) in chunks.iter().enumerate() {
                let start = number * CHUNK;
                let led = data[start..start + CHUNK].iter().take_while(|data| **data).count();
                prop_assert_eq!(usize::from(chunk[0]), led);
                let end = code.len().min(start + CHUNK);
                prop_assert_eq!(&chunk[1..=end - start], &code[start..end]);
                prop_assert!(chunk[1 + end - start..].iter().all(|byte| *byte == 0));
            }
        }
    }
}
