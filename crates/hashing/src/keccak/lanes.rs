//! What the permutation needs of a machine word, whether it holds one state's lane or eight.

/// `N` 64-bit lanes of the same coordinate, one of each of `N` independent states.
///
/// # Safety
///
/// The methods are unsafe because an implementation may use instructions that not every
/// processor has. Contract of each method, and of all code generic over this trait:
///
/// 1. The processor has the instructions that the implementing type's documentation names.
///
/// Speed needs a second thing, on which soundness does not depend: the caller, into which all of it is
/// inlined, has the corresponding `target_feature` enabled.
pub(super) trait Lanes: Copy {
    /// `w` in each lane.
    unsafe fn splat(w: u64) -> Self;

    /// `a ^ b`.
    unsafe fn xor(a: Self, b: Self) -> Self;

    /// `a ^ (b ^ c)`, in this order: where there is no instruction for all three, `b ^ c` is shared among the
    /// uses of the same `b` and `c`.
    unsafe fn xor3(a: Self, b: Self, c: Self) -> Self;

    /// The step chi of one lane: `a ^ (!b & c)`.
    unsafe fn chi(a: Self, b: Self, c: Self) -> Self;

    /// Each lane rotated left by `LEFT` bits; `RIGHT` must be `64 - LEFT` (stable Rust cannot
    /// compute it from `LEFT` in the place where the intrinsics want it).
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self;
}

/// One state; needs no particular instructions.
impl Lanes for u64 {
    #[inline(always)]
    unsafe fn splat(w: u64) -> Self {
        w
    }

    #[inline(always)]
    unsafe fn xor(a: Self, b: Self) -> Self {
        a ^ b
    }

    #[inline(always)]
    unsafe fn xor3(a: Self, b: Self, c: Self) -> Self {
        a ^ (b ^ c)
    }

    #[inline(always)]
    unsafe fn chi(a: Self, b: Self, c: Self) -> Self {
        a ^ (!b & c)
    }

    #[inline(always)]
    unsafe fn rotate<const LEFT: i32, const RIGHT: i32>(self) -> Self {
        const { assert!(LEFT + RIGHT == 64) };
        self.rotate_left(LEFT.cast_unsigned())
    }
}
