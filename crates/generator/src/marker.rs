//! What a header's extra data says about the chain so far.
//!
//! To continue a chain, the generator needs its settings, its state, and one number that is in
//! neither: how many addresses without a key it has reached. It stands in the extra data of each
//! block: `"arbor"` and the number as 8 bytes big-endian.

use alloy_primitives::Bytes;

const TAG: &[u8; 5] = b"arbor";

/// Extra data for a block with which this many addresses without a key are reached.
pub(super) fn write(recipients: u64) -> Bytes {
    [&TAG[..], &recipients.to_be_bytes()].concat().into()
}

/// Reads [`write`]'s form; `None` if the data are of another.
pub(super) fn read(extra_data: &[u8]) -> Option<u64> {
    let number = extra_data.strip_prefix(TAG)?;
    Some(u64::from_be_bytes(number.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_marker_is_read_back() {
        assert_eq!(super::read(&super::write(1 << 40)), Some(1 << 40));
        assert_eq!(super::read(b"arbor generate"), None);
        assert_eq!(super::read(b"arbor1234567"), None);
        assert_eq!(super::read(b""), None);
    }
}
