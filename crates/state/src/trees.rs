//! The trees of this project.

use crate::ar16mt::AR16MT;
use crate::kind::Registry;
use crate::mpt::MPT;
use crate::verkle::{VERKLE, VERKLE_2023};

/// All trees of this project, the usual one first.
pub fn standard() -> Registry {
    Registry::new([&MPT, &VERKLE, &VERKLE_2023, &AR16MT])
}
