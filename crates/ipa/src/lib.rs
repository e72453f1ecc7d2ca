#![doc = include_str!("ipa.md")]
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
mod value;

pub use arbor_banderwagon::{DecodingError, Fr, NumberTerm, Point, Ratio, Sizes, Term, Trust};
pub use crs::{Committer, WIDTH, points};
pub use domain::Polynomial;
pub use inner_product::InnerProductProof;
pub use keys::{AddressCommitment, TreeIndex};
pub use leaf::{
    LeafChange, LeafCommitment, LeafValues, difference, half_numbers, leaf_numbers, leaf_terms,
    stem_scalar,
};
pub use multiproof::{Multiproof, Opening, Query, SparseOpening, Statement, verify_all};
pub use proof::ProofError;
pub use recent::Recent;
pub use transcript::Transcript;
pub use value::{HASH_OF_NO_CODE, ValueChange, value_scalars};
