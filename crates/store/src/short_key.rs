//! Keys that are compared where they lie.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A key whose first `N` bytes (8 or more) are compared and hashed without following a pointer; in the order of its bytes.
///
/// For maps of very many keys: were all bytes elsewhere, each key on the way would have to be fetched to be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShortKey<const N: usize> {
    /// The first bytes, zeros after the end; then their number, by which a key goes before one that has zeros there.
    first: [u8; N],
    length: u8,
    /// What is left, if there is any. Few keys have such, and each has room for the pointer: one word, not two.
    rest: Option<Box<Box<[u8]>>>,
}

impl<const N: usize> ShortKey<N> {
    /// Takes a key over; one of more than `N` bytes takes two allocations.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        const { assert!(N >= 8 && N < 256) };
        let mut first = [0; N];
        let length = key.len().min(N);
        first[..length].copy_from_slice(&key[..length]);
        Self {
            first,
            length: length as u8,
            rest: (key.len() > N).then(|| Box::new(key[N..].into())),
        }
    }

    /// The key's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Box<[u8]> {
        match &self.rest {
            None => self.near().into(),
            Some(rest) => [self.near(), rest].concat().into(),
        }
    }

    /// Whether these are the key's bytes.
    #[must_use]
    pub fn is(&self, key: &[u8]) -> bool {
        match &self.rest {
            None => *self.near() == *key,
            Some(rest) => key
                .split_at_checked(N)
                .is_some_and(|(near, beyond)| self.first == *near && rest[..] == *beyond),
        }
    }

    /// Whether the key begins with `prefix`.
    #[must_use]
    pub fn starts_with(&self, prefix: &[u8]) -> bool {
        match prefix.split_at_checked(N) {
            // Nothing is not compared: it may lie nowhere, which is slow.
            None => prefix.is_empty() || self.near().starts_with(prefix),
            Some((near, beyond)) => {
                let rest = self.rest.as_deref();
                *self.near() == *near
                    && rest.map_or(beyond.is_empty(), |rest| rest.starts_with(beyond))
            }
        }
    }

    /// The first eight bytes as a number, zeros after the end: it orders keys unless it is the same.
    #[must_use]
    pub fn leading(&self) -> u64 {
        let mut leading = [0; 8];
        leading.copy_from_slice(&self.first[..8]);
        u64::from_be_bytes(leading)
    }

    /// The bytes that are here.
    fn near(&self) -> &[u8] {
        &self.first[..usize::from(self.length)]
    }
}

impl<const N: usize> Ord for ShortKey<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        let all = |key: &Self| (key.first, key.length);
        let near = || all(self).cmp(&all(other));
        let far = || self.rest.cmp(&other.rest);
        let leading = self.leading().cmp(&other.leading());
        leading.then_with(near).then_with(far)
    }
}

impl<const N: usize> PartialOrd for ShortKey<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> Hash for ShortKey<N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.near());
        if let Some(rest) = &self.rest {
            state.write(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::*;

    #[test]
    fn order_and_bytes_are_those_of_the_key() {
        let (zeros, long) = ([0; 80], [b'c'; 80]);
        let samples: [&[u8]; 19] = [
            &zeros[..7],
            &zeros[..8],
            &zeros[..63],
            &zeros[..64],
            &zeros[..65],
            &zeros,
            &long[..63],
            &long[..64],
            &long[..65],
            &long,
            b"",
            b"\0",
            b"\0\0",
            b"a",
            b"a\0",
            b"abcdefgh",
            b"abcdefgh\0",
            b"abcdefghi",
            b"b",
        ];
        let random = RandomState::new();
        for a in samples {
            let key = ShortKey::<64>::new(a);
            assert_eq!(*key.to_bytes(), *a);
            for b in samples {
                let other = ShortKey::<64>::new(b);
                assert_eq!(key.cmp(&other), a.cmp(b), "{a:?} {b:?}");
                assert_eq!(key == other, a == b, "{a:?} {b:?}");
                assert_eq!(key.is(b), a == b, "{a:?} {b:?}");
                assert!(a != b || random.hash_one(&key) == random.hash_one(&other));
                assert_eq!(key.starts_with(b), a.starts_with(b), "{a:?} {b:?}");
            }
        }
    }
}
