//! Writing programs: arithmetic as Rust expressions, memory found for it, and control flow around it.
//!
//! A [`Layout`] places constants and variables. A [`Body`] is written with values of the types in [`tower`], which have
//! operators; a [`Routine`] is a body whose values have found their places and whose order is fixed. [`Code`] puts routines and
//! plain EVM instructions together, with labels, for either [`crate::Interface`]; a [`Contract`] adds statements over [`Word`]s, loops, and what every contract needs.
//!
//! ```
//! use arbor_evm384::build::{Body, Layout, Routine, tower::Fp2};
//! use arbor_evm384::reference::U384;
//!
//! let mut layout = Layout::new(U384::from(65537));
//! let x = layout.variable::<2>("x");
//! let body = Body::new(layout.zero());
//! let value: Fp2 = body.load(x);
//! body.store(x, value.square() + value);
//! let routine = Routine::new("x^2 + x", body);
//! assert_eq!((routine.counts().mul, routine.counts().copies), (2, 0));
//! ```

mod body;
mod code;
mod contract;
mod label;
mod layout;
mod operations;
pub mod points;
mod power;
mod routine;
pub mod tower;
mod word;
mod words;

pub use body::{Body, Weights};
pub use code::Code;
pub use contract::{Contract, Goal, Program, any_bit};
pub use label::Label;
pub use layout::{Form, Layout, Region, Slot, Slots, Variable};
pub use power::ODD_POWERS;
pub use routine::{Counts, Routine};
pub use word::Word;
