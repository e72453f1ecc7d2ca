//! The vector in plain Rust, after Intel's manual: the reference of the lanes.

use super::{LANES, Vector};
use std::array::from_fn;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Model([u64; LANES]);

const LOW: u64 = (1 << 52) - 1;

fn product(a: u64, b: u64) -> u128 {
    u128::from(a & LOW) * u128::from(b & LOW)
}

// Never inlined: the lanes' loops are unrolled, and would be compiled for minutes with eight times the code.
impl Vector for Model {
    #[inline(never)]
    fn splat(word: u64) -> Self {
        Self([word; LANES])
    }

    #[inline(never)]
    fn read(from: &[u64; LANES]) -> Self {
        Self(*from)
    }

    #[inline(never)]
    fn write(self, to: &mut [u64; LANES]) {
        *to = self.0;
    }

    #[inline(never)]
    fn add(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i].wrapping_add(other.0[i])))
    }

    #[inline(never)]
    fn sub(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i].wrapping_sub(other.0[i])))
    }

    #[inline(never)]
    fn and(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i] & other.0[i]))
    }

    #[inline(never)]
    fn or(self, other: Self) -> Self {
        Self(from_fn(|i| self.0[i] | other.0[i]))
    }

    #[inline(never)]
    fn left<const BITS: u32>(self) -> Self {
        Self(self.0.map(|word| word << BITS))
    }

    #[inline(never)]
    fn right<const BITS: u32>(self) -> Self {
        Self(self.0.map(|word| word >> BITS))
    }

    #[inline(never)]
    fn right_signed<const BITS: u32>(self) -> Self {
        let shifted = |word: u64| (word.cast_signed() >> BITS).cast_unsigned();
        Self(self.0.map(shifted))
    }

    #[inline(never)]
    fn add_low(self, a: Self, b: Self) -> Self {
        Self(from_fn(|i| {
            self.0[i].wrapping_add(product(a.0[i], b.0[i]) as u64 & LOW)
        }))
    }

    #[inline(never)]
    fn add_high(self, a: Self, b: Self) -> Self {
        Self(from_fn(|i| {
            self.0[i].wrapping_add((product(a.0[i], b.0[i]) >> 52) as u64)
        }))
    }

    #[inline(never)]
    fn replaced(self, lanes: u8, other: Self) -> Self {
        Self(from_fn(|i| {
            let from = if lanes >> i & 1 == 1 { &other } else { &self };
            from.0[i]
        }))
    }

    #[inline(never)]
    fn zeros(self) -> u8 {
        (0..LANES).fold(0, |bits, i| bits | u8::from(self.0[i] == 0) << i)
    }

    #[inline(never)]
    fn exchanged<const DISTANCE: usize>(self) -> Self {
        Self(from_fn(|i| self.0[i ^ DISTANCE]))
    }

    #[inline(never)]
    fn transposed(rows: [Self; LANES]) -> [Self; LANES] {
        from_fn(|i| Self(from_fn(|j| rows[j].0[i])))
    }
}
