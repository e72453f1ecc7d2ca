//! How many messages go side by side, where types must say it.

/// A number of lanes, and arrays of one element for each lane.
pub trait Width {
    /// The number of lanes.
    const COUNT: usize;

    /// An element for each lane.
    type Array<T: Copy>: Copy + AsRef<[T]> + AsMut<[T]>;

    /// The same element for each lane.
    fn array<T: Copy>(element: T) -> Self::Array<T>;
}

/// `N` lanes.
pub struct Lanes<const N: usize>;

impl<const N: usize> Width for Lanes<N> {
    const COUNT: usize = N;

    type Array<T: Copy> = [T; N];

    #[inline(always)]
    fn array<T: Copy>(element: T) -> [T; N] {
        [element; N]
    }
}
