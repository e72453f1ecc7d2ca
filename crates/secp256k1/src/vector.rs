//! Eight words of 64 bits, and the instructions that the lanes need.

#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(any(test, feature = "modelled"))]
mod model;

#[cfg(target_arch = "x86_64")]
pub(crate) use ifma::run;
#[cfg(any(test, feature = "modelled"))]
pub(crate) use model::Model;

/// Number of lanes of a vector.
pub(crate) const LANES: usize = 8;

/// Eight 64-bit words.
///
/// Every function over a vector must be `#[inline(always)]`, and no closure may touch one: only then
/// is it compiled for the instructions of the vector.
pub(crate) trait Vector: Copy {
    /// The same word in all lanes.
    fn splat(word: u64) -> Self;
    /// Reads one word for each lane.
    fn read(from: &[u64; LANES]) -> Self;
    /// Writes the word of each lane.
    fn write(self, to: &mut [u64; LANES]);
    /// The sum modulo 2^64.
    fn add(self, other: Self) -> Self;
    /// The difference modulo 2^64.
    fn sub(self, other: Self) -> Self;
    /// Bitwise and.
    fn and(self, other: Self) -> Self;
    /// Bitwise or.
    fn or(self, other: Self) -> Self;
    /// Shifts left.
    fn left<const BITS: u32>(self) -> Self;
    /// Shifts right; zeros come in.
    fn right<const BITS: u32>(self) -> Self;
    /// Shifts right; copies of the sign come in.
    fn right_signed<const BITS: u32>(self) -> Self;
    /// Adds the low 52 bits of the product of the low 52 bits of `a` and `b`.
    fn add_low(self, a: Self, b: Self) -> Self;
    /// Adds the high 52 bits of the product of the low 52 bits of `a` and `b`.
    fn add_high(self, a: Self, b: Self) -> Self;
    /// Takes the word of `other` in the lanes whose bits are set.
    fn replaced(self, lanes: u8, other: Self) -> Self;
    /// Returns a bit for each lane whose word is zero.
    fn zeros(self) -> u8;
    /// Takes each lane's word from the lane whose number differs by `DISTANCE` (1, 2 or 4) in one bit.
    fn exchanged<const DISTANCE: usize>(self) -> Self;
    /// Makes columns of rows: word i of row j becomes word j of row i.
    fn transposed(rows: [Self; LANES]) -> [Self; LANES];
}

/// An algorithm over vectors. Like all functions over vectors, `run` is `#[inline(always)]`.
pub(crate) trait Job {
    /// A bit for each lane, a byte for eight.
    fn run<V: Vector>(self) -> Vec<u8>;
}
