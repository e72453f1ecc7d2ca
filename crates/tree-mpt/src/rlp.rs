//! Writing and strictly reading the RLP of trie nodes.
//!
//! Recursive Length Prefix: Ethereum Yellow Paper, appendix B. Hex-prefix paths: appendix C.

use arbor_tree::Path;

/// Why bytes are not canonical RLP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RlpError {
    /// The bytes end before the item does.
    #[error("RLP ends early")]
    Truncated,
    /// A length or a single byte could be written shorter.
    #[error("RLP is not in its shortest form")]
    NotShortest,
    /// Bytes follow the item.
    #[error("{0} bytes follow the RLP item")]
    Trailing(usize),
}

/// One RLP item within a larger encoding.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    /// Whether it is a list.
    pub(crate) list: bool,
    /// What the header announces.
    pub(crate) payload: &'a [u8],
    /// Header and payload.
    pub(crate) raw: &'a [u8],
}

/// Reads one item and returns it with the bytes after it.
pub(crate) fn item(bytes: &[u8]) -> Result<(Item<'_>, &[u8]), RlpError> {
    let &first = bytes.first().ok_or(RlpError::Truncated)?;
    let (list, header, len) = match first {
        0..=0x7f => (false, 0, 1),
        0x80..=0xb7 => (false, 1, usize::from(first - 0x80)),
        0xb8..=0xbf => long_length(bytes, first - 0xb7).map(|(h, l)| (false, h, l))?,
        0xc0..=0xf7 => (true, 1, usize::from(first - 0xc0)),
        0xf8..=0xff => long_length(bytes, first - 0xf7).map(|(h, l)| (true, h, l))?,
    };
    let end = header.checked_add(len).ok_or(RlpError::Truncated)?;
    let raw = bytes.get(..end).ok_or(RlpError::Truncated)?;
    let payload = &raw[header..];
    if first == 0x81 && payload[0] < 0x80 {
        return Err(RlpError::NotShortest);
    }
    let item = Item { list, payload, raw };
    Ok((item, &bytes[end..]))
}

/// Reads the one item that `bytes` are.
pub(crate) fn only_item(bytes: &[u8]) -> Result<Item<'_>, RlpError> {
    match item(bytes)? {
        (item, []) => Ok(item),
        (_, rest) => Err(RlpError::Trailing(rest.len())),
    }
}

fn long_length(bytes: &[u8], size: u8) -> Result<(usize, usize), RlpError> {
    let size = usize::from(size);
    let digits = bytes.get(1..1 + size).ok_or(RlpError::Truncated)?;
    if digits[0] == 0 {
        return Err(RlpError::NotShortest);
    }
    let fold = |len: usize, &digit: &u8| len.checked_mul(256)?.checked_add(digit.into());
    let len = digits.iter().try_fold(0usize, fold);
    match len.ok_or(RlpError::Truncated)? {
        0..=55 => Err(RlpError::NotShortest),
        len => Ok((1 + size, len)),
    }
}

/// Bytes that a header takes before a payload of `len` bytes (not for single bytes below 0x80).
pub(crate) const fn header_len(len: usize) -> usize {
    if len < 56 {
        1
    } else {
        1 + significant_bytes(len)
    }
}

/// Bytes that a string takes with its header.
pub(crate) fn string_len(bytes: &[u8]) -> usize {
    match bytes {
        [byte] if *byte < 0x80 => 1,
        _ => header_len(bytes.len()) + bytes.len(),
    }
}

/// Writes the header of a list whose payload has `len` bytes.
pub(crate) fn write_list_header(out: &mut Vec<u8>, len: usize) {
    write_header(out, 0xc0, len);
}

/// Writes a string with its header.
pub(crate) fn write_string(out: &mut Vec<u8>, bytes: &[u8]) {
    if !matches!(bytes, [byte] if *byte < 0x80) {
        write_header(out, 0x80, bytes.len());
    }
    out.extend_from_slice(bytes);
}

fn write_header(out: &mut Vec<u8>, base: u8, len: usize) {
    if len < 56 {
        out.push(base + len as u8);
    } else {
        let size = significant_bytes(len);
        out.push(base + 55 + size as u8);
        out.extend_from_slice(&len.to_be_bytes()[size_of::<usize>() - size..]);
    }
}

const fn significant_bytes(len: usize) -> usize {
    (usize::BITS - len.leading_zeros()).div_ceil(8) as usize
}

/// Bytes of the hex-prefix form of `nibbles` nibbles, without an RLP header.
pub(crate) const fn hex_prefix_len(nibbles: usize) -> usize {
    nibbles / 2 + 1
}

/// Bytes of the hex-prefix form as an RLP string.
pub(crate) const fn hex_prefix_string_len(nibbles: usize) -> usize {
    let len = hex_prefix_len(nibbles);
    // One byte of hex prefix is at most 0x3f and stands for itself.
    if len == 1 { 1 } else { 1 + len }
}

/// Writes the hex-prefix form of nibbles `from..to` of packed nibbles as an RLP string.
pub(crate) fn write_hex_prefix(
    out: &mut Vec<u8>,
    packed: &[u8],
    from: usize,
    to: usize,
    leaf: bool,
) {
    let nibbles = to - from;
    let len = hex_prefix_len(nibbles);
    if len > 1 {
        out.push(0x80 + len as u8);
    }
    let flag = if leaf { 0x20 } else { 0x00 };
    let odd = nibbles % 2 == 1;
    let first = if odd { 0x10 | nibble(packed, from) } else { 0 };
    out.push(flag | first);
    let from = from + usize::from(odd);
    if from.is_multiple_of(2) {
        out.extend_from_slice(&packed[from / 2..to / 2]);
    } else {
        let pairs = packed[from / 2..].windows(2).take((to - from) / 2);
        out.extend(pairs.map(|pair| pair[0] << 4 | pair[1] >> 4));
    }
}

/// Nibble `index` of packed nibbles.
pub(crate) fn nibble(packed: &[u8], index: usize) -> u8 {
    let byte = packed[index / 2];
    if index.is_multiple_of(2) {
        byte >> 4
    } else {
        byte & 0x0f
    }
}

/// Reads a hex-prefix path: its nibbles and whether it is a leaf's; `None` when malformed.
pub(crate) fn read_hex_prefix(bytes: &[u8]) -> Option<(Path, bool)> {
    let (&first, rest) = bytes.split_first()?;
    if first >= 0x40 || rest.len() > 32 {
        return None;
    }
    let mut path = Path::ROOT;
    match first & 0x10 {
        0 if first & 0x0f != 0 => return None,
        0 => {}
        _ if rest.len() == 32 => return None,
        _ => path.push(first & 0x0f),
    }
    for byte in rest {
        path.push(byte >> 4);
        path.push(byte & 0x0f);
    }
    Some((path, first & 0x20 != 0))
}

#[cfg(test)]
mod tests {
    use alloy_rlp::Encodable;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn non_canonical_forms_are_rejected() {
        let cases: [(&[u8], RlpError); 6] = [
            (&[], RlpError::Truncated),
            (&[0x82, 1], RlpError::Truncated),
            (&[0x81, 0x7f], RlpError::NotShortest),
            (&[0xb8, 55], RlpError::NotShortest),
            (&[0xb9, 0, 56], RlpError::NotShortest),
            (
                &[0xbf, 255, 255, 255, 255, 255, 255, 255, 255],
                RlpError::Truncated,
            ),
        ];
        for (bytes, error) in cases {
            assert_eq!(item(bytes).err(), Some(error), "{bytes:02x?}");
        }
        assert_eq!(only_item(&[1, 2]).err(), Some(RlpError::Trailing(1)));
    }

    proptest! {
        #[test]
        fn strings_as_alloy_writes_them(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut out = Vec::new();
            write_string(&mut out, &bytes);
            let mut expected = Vec::new();
            bytes.as_slice().encode(&mut expected);
            prop_assert_eq!(&out, &expected);
            prop_assert_eq!(string_len(&bytes), out.len());
            let item = only_item(&out).expect("own encoding");
            prop_assert_eq!((item.list, item.payload), (false, bytes.as_slice()));
        }

        #[test]
        fn hex_prefix_round_trip(key: [u8; 32], a in 0usize..=64, b in 0usize..=64, leaf: bool) {
            let (from, to) = (a.min(b), a.max(b));
            let mut out = Vec::new();
            write_hex_prefix(&mut out, &key, from, to, leaf);
            prop_assert_eq!(out.len(), hex_prefix_string_len(to - from));
            let item = only_item(&out).expect("own encoding");
            let path = Path::slice_of_key(&key, from, to);
            prop_assert_eq!(read_hex_prefix(item.payload), Some((path, leaf)));
        }

        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = item(&bytes);
            let _ = read_hex_prefix(&bytes);
        }
    }
}
