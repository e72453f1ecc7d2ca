//! A value as its difference from another one of the same length.
//!
//! Runs of bytes that differ, in their order: how many bytes are the same before it (varint), its length (varint), its bytes. Varints are LEB128.

use crate::undo::put_varint;

/// Equal bytes between two runs from which on two are shorter than one.
const GAP: usize = 3;

/// The difference that makes `new` of `old`; `None` if it would not be shorter than half of `new`, or if the lengths differ.
pub(crate) fn difference(old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    if old.len() != new.len() {
        return None;
    }
    let most = new.len() / 2;
    let mut out = Vec::new();
    let (mut done, mut at) = (0, 0);
    while at < new.len() {
        if old[at] == new[at] {
            at += 1;
            continue;
        }
        let begin = at;
        let mut end = at + 1;
        while at < new.len() && at < end + GAP {
            if old[at] != new[at] {
                end = at + 1;
            }
            at += 1;
        }
        put_varint(&mut out, begin - done);
        put_varint(&mut out, end - begin);
        out.extend_from_slice(&new[begin..end]);
        if out.len() >= most {
            return None;
        }
        (done, at) = (end, end);
    }
    Some(out)
}

/// Makes of `value`, which is the old one, the new one; `None` if the difference is not one of such a value.
pub(crate) fn apply(value: &mut [u8], mut difference: &[u8]) -> Option<()> {
    let mut at = 0usize;
    while !difference.is_empty() {
        at = at.checked_add(take(&mut difference)?)?;
        let length = take(&mut difference)?;
        let run = difference.split_off(..length)?;
        let end = at.checked_add(length)?;
        value.get_mut(at..end)?.copy_from_slice(run);
        at = end;
    }
    Some(())
}

fn take(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..=56).step_by(7) {
        let byte = *bytes.split_off_first()?;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_form_is_fixed() {
        let old = [7; 300];
        let mut new = old;
        assert_eq!(difference(&old, &new), Some(Vec::new()));
        (new[2], new[5], new[9], new[299]) = (1, 2, 3, 4);
        // Between the second and the third there are three equal bytes, and from there on it is shorter to begin anew.
        let wanted = "020401070702".to_owned() + "030103" + "a1020104";
        assert_eq!(difference(&old, &new).map(const_hex::encode), Some(wanted));
        assert_eq!(difference(&old, &[7; 299]), None);
        assert_eq!(difference(&[0; 8], &[1; 8]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_taken_apart_comes_together(
            old in proptest::collection::vec(any::<u8>(), 0..600),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        ) {
            let mut new = old.clone();
            for (place, byte) in changes.iter().filter(|_| !old.is_empty()) {
                new[place.index(old.len())] = *byte;
            }
            if let Some(difference) = difference(&old, &new) {
                let mut value = old.clone();
                prop_assert_eq!(apply(&mut value, &difference), Some(()));
                prop_assert_eq!(value, new);
            }
        }

        #[test]
        fn any_bytes_apply_or_do_not(
            mut value in proptest::collection::vec(any::<u8>(), 0..40),
            difference in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let length = value.len();
            let _ = apply(&mut value, &difference);
            prop_assert_eq!(value.len(), length);
        }
    }
}
