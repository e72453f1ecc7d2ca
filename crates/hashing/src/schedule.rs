//! Which message is in which lane, and when: the same for every hash function.

use crate::{
    states::{Digest, States},
    width::Width,
};
use std::borrow::Borrow;

/// Batches of messages over the lanes of any [`States`], under the contract of that trait.
pub(crate) trait Schedule: States {
    /// Hashes all messages, and calls `emit` with the position and digest of each in the order in which they end.
    /// Returns the number of compressions that the messages took.
    ///
    /// A lane whose message has ended takes the next one at once, so lanes idle only when no message is left,
    /// whatever the mix of lengths. The last message that is left alone goes on by itself, because a
    /// compression of one state is faster than one of many; already for two it is not.
    unsafe fn hash_all<'m>(
        messages: impl Iterator<Item = &'m [u8]>,
        mut emit: impl FnMut(usize, Digest),
    ) -> u64 {
        let mut messages = messages.enumerate();
        let mut states = Self::start();
        let mut lanes = Self::Width::array(None);
        let lanes = lanes.as_mut();
        let mut count = 0;
        let mut busy = 0;
        for (n, lane) in lanes.iter_mut().enumerate() {
            *lane = next_message(&mut messages, &mut states, n, &mut count);
            busy += usize::from(lane.is_some());
        }
        while busy > usize::from(Self::Width::COUNT > 1) {
            // SAFETY: the caller's contract.
            unsafe { states.compress() };
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
        for (n, lane) in lanes.iter().enumerate() {
            if let Some(Lane { position, rest }) = *lane {
                // SAFETY: the caller's contract: `One` is for the same processor.
                emit(position, unsafe { states.extract(n).finish(rest) });
            }
        }
        count
    }

    /// Sets each of `digests`, of which there are as many as messages, to that of the message of `LEN` bytes at the same place.
    ///
    /// Messages of one block begin and end together in all lanes, and absorbing them has no branches left.
    unsafe fn hash_fixed<const LEN: usize, M: Borrow<[u8; LEN]>>(
        messages: &[M],
        digests: &mut [Digest],
    ) {
        if LEN > Self::SHORT {
            let slices = messages.iter().map(|message| message.borrow().as_slice());
            // SAFETY: the caller's contract.
            unsafe { Self::hash_all(slices, |position, digest| digests[position] = digest) };
            return;
        }
        let count = Self::Width::COUNT;
        for (messages, digests) in messages.chunks(count).zip(digests.chunks_mut(count)) {
            // SAFETY: the caller's contract.
            unsafe {
                match (messages, &mut *digests) {
                    ([message], [digest]) => *digest = hash_alone::<Self>(message.borrow()),
                    _ => Self::hash_short(messages, digests),
                }
            }
        }
    }
}

impl<S: States> Schedule for S {}

/// Hashes one message. Batches of all lengths share this code.
#[inline(never)]
unsafe fn hash_alone<S: States>(message: &[u8]) -> Digest {
    // SAFETY: the caller's contract.
    unsafe { S::hash_one(message) }
}

/// A message under way in a lane. Between compressions its next block has been absorbed.
#[derive(Clone, Copy)]
struct Lane<'m> {
    /// Of the message among all.
    position: usize,
    /// The part after the block absorbed last; `None` if that was the last one.
    rest: Option<&'m [u8]>,
}

/// Starts the next message in lane `n`, if there is one, and adds its compressions to `count`.
#[inline(always)]
fn next_message<'m, S: States>(
    messages: &mut impl Iterator<Item = (usize, &'m [u8])>,
    states: &mut S,
    n: usize,
    count: &mut u64,
) -> Option<Lane<'m>> {
    let (position, message) = messages.next()?;
    *count += S::compressions(message.len());
    let rest = states.absorb::<true>(n, message);
    Some(Lane { position, rest })
}
