#![doc = include_str!("field.md")]

mod backend;
mod batch;
mod element;
mod inverse;
mod lanes;
pub mod limbs;
mod modulus;
mod mulx;
mod portable;
mod primes;
mod sqrt;

pub use batch::{
    Fraction, divide_all, divide_all_to_limbs, invert_all, invert_lanes, reduce_all, to_limbs_all,
};
pub use element::{Element, NotReduced};
pub use inverse::Inversion;
pub use lanes::{Job, LANES, Lanes, SUMMED, Wide, negate_stored};
pub use limbs::Limbs;
pub use modulus::{Base, Modulus, Scalar};
pub use sqrt::{are_squares, sqrt, sqrt_all};

/// An element of BLS12-381's scalar field, over which Banderwagon's curve is defined.
pub type Fp = Element<Base>;

/// An element of Banderwagon's scalar field.
pub type Fr = Element<Scalar>;
