//! The range of keys that a scan covers.

use std::ops::Bound;

/// A half-open range of keys, as [`Reader::scan`](crate::Reader::scan) describes it by prefix and
/// first key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    /// The first key covered, if it exists.
    pub start: Box<[u8]>,
    /// The first key above the range; `None` if there is no key above it.
    pub end: Option<Box<[u8]>>,
}

impl KeyRange {
    /// Returns the range of keys that begin with `prefix` and are not below `from`, or `None`
    /// where no key can be in it.
    pub fn new(prefix: &[u8], from: &[u8]) -> Option<Self> {
        let start: Box<[u8]> = prefix.max(from).into();
        let end = successor(prefix);
        let empty = end.as_ref().is_some_and(|end| start >= *end);
        (!empty).then_some(Self { start, end })
    }

    /// The range as bounds of `BTreeMap::range` and its like.
    pub fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let end = self
            .end
            .as_deref()
            .map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&self.start), end)
    }
}

/// The lowest key above all keys that begin with `prefix`; `None` if the prefix is all 0xff.
fn successor(prefix: &[u8]) -> Option<Box<[u8]>> {
    let kept = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end: Box<[u8]> = prefix[..=kept].into();
    end[kept] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends() {
        assert_eq!(successor(b""), None);
        assert_eq!(successor(&[0xff, 0xff]), None);
        assert_eq!(successor(&[1, 0xff]).as_deref(), Some(&[2][..]));
        assert_eq!(successor(&[1, 2]).as_deref(), Some(&[1, 3][..]));
    }

    #[test]
    fn from_beyond_the_prefix_is_empty() {
        assert_eq!(KeyRange::new(b"a", b"b"), None);
    }
}
