#![doc = include_str!("banderwagon.md")]
#![forbid(unsafe_code)]

mod bits;
mod curve;
mod encoding;
mod extended;
mod fixed;
mod leaving;
mod pairs;
mod point;
mod short;
mod sums;
mod variable;

pub use arbor_field::{Fp, Fr, NotReduced};
pub use encoding::{DecodingError, Ratio, Trust};
pub use fixed::{Digits, FixedBase, NumberTerm, Sizes, Term};
pub use point::Point;
pub use short::TablePoint;
pub use variable::{VariableBase, sum_of_products};
