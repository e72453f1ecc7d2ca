//! Which message is in which lane, and when.

use super::{
    Digest,
    sponge::{States, permutations},
};
use std::borrow::Borrow;

/// The permutation of a backend, for all its lanes at once and for a single state.
#[derive(Clone, Copy)]
pub(super) struct Permutations<const N: usize> {
    all: unsafe fn(&mut States<N>),
    one: unsafe fn(&mut States<1>),
}

impl<const N: usize> Permutations<N> {
    /// # Safety
    ///
    /// As long as the value or a copy of it exists, both functions may be called: the processor
    /// has the instructions that they need.
    pub(super) const unsafe fn new(
        all: unsafe fn(&mut States<N>),
        one: unsafe fn(&mut States<1>),
    ) -> Self {
        Self { all, one }
    }

    fn permute_all(self, states: &mut States<N>) {
        // SAFETY: the contract of `new`.
        unsafe { (self.all)(states) }
    }

    fn permute_one(self, state: &mut States<1>) {
        // SAFETY: the contract of `new`.
        unsafe { (self.one)(state) }
    }

    /// Hashes one message.
    pub(super) fn hash(self, message: &[u8]) -> Digest {
        let mut state = States::ZERO;
        let rest = state.absorb::<true>(0, message);
        self.finish(state, rest)
    }

    /// Hashes all messages, and calls `emit` with the position and digest of each in the order in which they end.
    /// Returns the number of permutations that the messages took.
    ///
    /// A lane whose message has ended takes the next one at once, so lanes idle only when no message is left,
    /// whatever the mix of lengths. The last message that is left alone goes on by itself, since a
    /// permutation of one state is faster than one of `N`; already for two it is not.
    pub(super) fn hash_all<'m>(
        self,
        messages: impl Iterator<Item = &'m [u8]>,
        mut emit: impl FnMut(usize, Digest),
    ) -> u64 {
        let mut messages = messages.enumerate();
        let mut states = States::<N>::ZERO;
        let mut lanes = [const { None }; N];
        let mut count = 0;
        let mut busy = 0;
        for (n, lane) in lanes.iter_mut().enumerate() {
            *lane = next_message(&mut messages, &mut states, n, &mut count);
            busy += usize::from(lane.is_some());
        }
        while busy > usize::from(N > 1) {
            self.permute_all(&mut states);
            for (n, lane) in lanes.iter_mut().enumerate() {
                match lane {
                    None => {}
                    Some(Lane {
                        rest: rest @ Some(_),
                        ..
                    }) => {
                        *rest = rest.and_then(|message| states.absorb::<false>(n, message));
                    }
                    Some(Lane {
                        position,
                        rest: None,
                    }) => {
                        emit(*position, states.squeeze(n));
                        *lane = next_message(&mut messages, &mut states, n, &mut count);
                        busy -= usize::from(lane.is_none());
                    }
                }
            }
        }
        for (n, lane) in lanes.into_iter().enumerate() {
            if let Some(Lane { position, rest }) = lane {
                emit(position, self.finish(states.extract(n), rest));
            }
        }
        count
    }

    /// Hashes messages of one block; `digests` has as many elements as `messages`.
    ///
    /// `LEN` is at most 135. All lanes begin and end together, and absorbing has no branches left.
    pub(super) fn hash_short<const LEN: usize, M: Borrow<[u8; LEN]>>(
        self,
        messages: &[M],
        digests: &mut [Digest],
    ) {
        let mut states;
        for (messages, digests) in messages.chunks(N).zip(digests.chunks_mut(N)) {
            if let ([message], [digest]) = (messages, &mut *digests) {
                *digest = self.hash(message.borrow());
                continue;
            }
            // Rows that no message reaches are zeroed as vectors, not lane by lane.
            states = States::<N>::ZERO;
            for (n, message) in messages.iter().enumerate() {
                states.absorb::<false>(n, message.borrow());
            }
            self.permute_all(&mut states);
            for (n, digest) in digests.iter_mut().enumerate() {
                *digest = states.squeeze(n);
            }
        }
    }

    /// Permutes a state into which a block has just been absorbed, absorbs the rest, and squeezes.
    fn finish(self, mut state: States<1>, mut rest: Option<&[u8]>) -> Digest {
        self.permute_one(&mut state);
        while let Some(message) = rest {
            rest = state.absorb::<false>(0, message);
            self.permute_one(&mut state);
        }
        state.squeeze(0)
    }
}

/// A message under way in a lane. Between permutations its next block has been absorbed.
struct Lane<'m> {
    /// Of the message among all.
    position: usize,
    /// What follows the block absorbed last; `None` if that was the padded last one.
    rest: Option<&'m [u8]>,
}

/// Starts the next message in lane `n`, if there is one, and adds its permutations to `count`.
#[inline(always)]
fn next_message<'m, const N: usize>(
    messages: &mut impl Iterator<Item = (usize, &'m [u8])>,
    states: &mut States<N>,
    n: usize,
    count: &mut u64,
) -> Option<Lane<'m>> {
    let (position, message) = messages.next()?;
    *count += permutations(message.len());
    let rest = states.absorb::<true>(n, message);
    Some(Lane { position, rest })
}
