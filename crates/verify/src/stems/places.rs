//! Where slots and code chunks sit (EIP-6800, "Tree embedding").

use alloy_primitives::{Address, U256, uint};

/// HEADER_STORAGE_OFFSET: the position of slot 0.
const HEADER_STORAGE: u8 = 64;
/// Slots beside the account's own fields: CODE_OFFSET less HEADER_STORAGE_OFFSET.
pub const HEADER_SLOTS: u8 = 64;
/// CODE_OFFSET: the position of the first code chunk.
pub const CODE: u32 = 128;
/// MAIN_STORAGE_OFFSET divided by the 256 leaves of a stem.
pub const MAIN_STORAGE_INDEX: U256 =
    uint!(0x1000000000000000000000000000000000000000000000000000000000000_U256);

/// The plain name of a stem: an account, and which 256 positions of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StemName {
    /// The account.
    pub address: Address,
    /// The positions, divided by 256; 0 for the stem that begins with the account's fields.
    pub index: U256,
}

/// What the leaves under a stem are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StemContents {
    /// The account's fields, its first slots, its first code chunks.
    Header,
    /// Code chunks, the first of which has this number.
    Code(u32),
    /// Slots, the first of which has this number.
    Storage(U256),
    /// Nothing that the embedding puts anywhere.
    Nothing,
}

impl StemName {
    /// The stem that begins with the account's fields.
    pub fn header(address: Address) -> Self {
        Self {
            address,
            index: U256::ZERO,
        }
    }

    /// What lies under the stem.
    pub fn contents(&self) -> StemContents {
        if self.index.is_zero() {
            return StemContents::Header;
        }
        if let Some(slots) = self.index.checked_sub(MAIN_STORAGE_INDEX) {
            let beyond = slots.bit_len() > 256 - 8;
            return match beyond {
                true => StemContents::Nothing,
                false => StemContents::Storage(slots << 8),
            };
        }
        u32::try_from(self.index)
            .ok()
            .and_then(|index| index.checked_mul(256))
            .map_or(StemContents::Nothing, |first| {
                StemContents::Code(first - CODE)
            })
    }
}

/// Where a slot sits: its stem's index in the account, and its suffix.
pub fn slot_place(slot: U256) -> (U256, u8) {
    let suffix = slot.byte(0);
    if slot < U256::from(HEADER_SLOTS) {
        return (U256::ZERO, HEADER_STORAGE + suffix);
    }
    // 256^31 is a multiple of 256.
    (MAIN_STORAGE_INDEX + (slot >> 8), suffix)
}

/// Where a code chunk sits: its stem's index in the account, and its suffix.
pub fn chunk_place(chunk: u32) -> (U256, u8) {
    let position = u64::from(CODE) + u64::from(chunk);
    (U256::from(position / 256), (position % 256) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_the_eip() {
        assert_eq!(MAIN_STORAGE_INDEX << 8, U256::from(256).pow(U256::from(31)));
        assert_eq!(slot_place(U256::ZERO), (U256::ZERO, 64));
        assert_eq!(slot_place(U256::from(63)), (U256::ZERO, 127));
        assert_eq!(slot_place(U256::from(64)), (MAIN_STORAGE_INDEX, 64));
        assert_eq!(
            slot_place(U256::from(256)),
            (MAIN_STORAGE_INDEX + U256::ONE, 0)
        );
        assert_eq!(chunk_place(0), (U256::ZERO, 128));
        assert_eq!(chunk_place(127), (U256::ZERO, 255));
        assert_eq!(chunk_place(128), (U256::ONE, 0));
    }

    #[test]
    fn a_stem_tells_what_it_holds() {
        let contents = |index| {
            let address = Address::ZERO;
            StemName { address, index }.contents()
        };
        assert_eq!(contents(U256::ZERO), StemContents::Header);
        for chunk in [128, 383, 384, 24_576] {
            let (index, suffix) = chunk_place(chunk);
            assert_eq!(
                contents(index),
                StemContents::Code(chunk - u32::from(suffix))
            );
        }
        for slot in [U256::from(64), U256::from(1) << 200, U256::MAX] {
            let (index, suffix) = slot_place(slot);
            assert_eq!(
                contents(index),
                StemContents::Storage(slot - U256::from(suffix))
            );
        }
        assert_eq!(contents(U256::from(1) << 100), StemContents::Nothing);
        assert_eq!(contents(U256::MAX), StemContents::Nothing);
        assert_eq!(contents(U256::from(1u64 << 24)), StemContents::Nothing);
    }
}
