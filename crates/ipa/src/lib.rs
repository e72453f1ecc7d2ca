#![doc = include_str!("../../../docs/math/ipa.md")]
#![forbid(unsafe_code)]

mod crs;
mod domain;
mod inner_product;
mod keys;
mod leaf;
mod multiproof;
mod proof;
mod recent;
mod repeated;
mod transcript;

pub use arbor_banderwagon::{DecodingError, Fr, NumberTerm, Point, Ratio, Sizes, Term, Trust};
pub use crs::{Committer, WIDTH, points};
pub use inner_product::InnerProductProof;
pub use keys::{AddressCommitment, TreeIndex};
pub use leaf::{
    HASH_OF_NO_CODE, LeafChange, LeafCommitment, LeafValues, ValueChange, difference, half_numbers,
    leaf_numbers, leaf_terms, stem_scalar, value_scalars,
};
pub use multiproof::{
    Multiproof, Opening, Polynomial, Query, SparseOpening, Statement, verify_all,
};
pub use proof::ProofError;
pub use recent::Recent;
pub use transcript::Transcript;
