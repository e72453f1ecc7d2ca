//! Messages collected in one buffer, then hashed together.

use crate::{
    hasher::{Function, Hasher},
    states::Digest,
};
use std::ops::Range;

/// Messages in a buffer of its own, and their digests: [`KeccakBatch`](crate::KeccakBatch).
///
/// A tree encodes the nodes of one height straight into the batch ([`push_with`](Self::push_with)), finishes it, and finds each
/// digest under the position that the push returned. Messages and digests stay until [`clear`](Self::clear),
/// which keeps the memory; so a batch that is used over and over soon allocates nothing.
///
/// ```
/// use arbor_hashing::{KeccakBatch, keccak256};
///
/// let mut batch = KeccakBatch::new();
/// let leaf = batch.push(b"leaf");
/// let child = batch.finish()[leaf];
/// let parent = batch.push_with(|node| node.extend_from_slice(&child));
/// assert_eq!(batch.finish()[parent], keccak256(&keccak256(b"leaf")));
/// assert_eq!(batch.message(leaf), b"leaf");
/// ```
#[derive(Clone, Debug)]
pub struct Batch<F> {
    hasher: Hasher<F>,
    bytes: Vec<u8>,
    /// Where each message ends in `bytes`; it begins where the one before it ends.
    ends: Vec<usize>,
    /// Of the first messages: those that are finished.
    digests: Vec<Digest>,
}

impl<F: Function> Batch<F> {
    /// An empty batch on [`Backend::detect`](crate::Backend::detect).
    #[must_use]
    pub fn new() -> Self {
        Self::on(Hasher::new())
    }

    /// An empty batch on [`Backend::detect`](crate::Backend::detect) with room for so many messages, and for so many bytes of all of them.
    #[must_use]
    pub fn with_capacity(messages: usize, bytes: usize) -> Self {
        Self {
            hasher: Hasher::new(),
            bytes: Vec::with_capacity(bytes),
            ends: Vec::with_capacity(messages),
            digests: Vec::with_capacity(messages),
        }
    }

    /// An empty batch on the backend of `hasher`.
    #[must_use]
    pub fn on(hasher: Hasher<F>) -> Self {
        Self {
            hasher,
            bytes: Vec::new(),
            ends: Vec::new(),
            digests: Vec::new(),
        }
    }

    /// Copies a message into the batch and returns its position.
    pub fn push(&mut self, message: &[u8]) -> usize {
        self.push_with(|bytes| bytes.extend_from_slice(message))
    }

    /// Adds the message that `write` appends to the buffer, and returns its position.
    ///
    /// # Panics
    ///
    /// If `write` has shortened the buffer, which holds earlier messages.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.bytes.len();
        write(&mut self.bytes);
        assert!(self.bytes.len() >= start, "a message is only appended");
        self.ends.push(self.bytes.len());
        self.ends.len() - 1
    }

    /// Hashes the messages that have been added since the last call, and returns the digests of all, by position.
    pub fn finish(&mut self) -> &[Digest] {
        let finished = self.digests.len();
        self.digests.resize(self.ends.len(), [0; 32]);
        let messages = (finished..self.ends.len()).map(|i| &self.bytes[range(&self.ends, i)]);
        self.hasher
            .hash_all(messages, &mut self.digests[finished..]);
        &self.digests
    }

    /// Digests of the messages that are finished, by position; messages added since are not among them.
    #[must_use]
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// The message at a position.
    ///
    /// # Panics
    ///
    /// If no push has returned `position` since the batch was last cleared.
    #[must_use]
    pub fn message(&self, position: usize) -> &[u8] {
        &self.bytes[range(&self.ends, position)]
    }

    /// Messages since the batch was last cleared, finished or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no message has been added since the batch was last cleared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets messages and digests, and keeps their memory for the next ones.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.digests.clear();
    }
}

impl<F: Function> Default for Batch<F> {
    fn default() -> Self {
        Self::new()
    }
}

/// Where message `position` lies in the buffer.
fn range(ends: &[usize], position: usize) -> Range<usize> {
    let start = position.checked_sub(1).map_or(0, |before| ends[before]);
    start..ends[position]
}
