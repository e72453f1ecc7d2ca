//! What whoever checks proofs knows of a state on its way.

use super::forms::{FORMS, TREE};
use super::state::partial_state;
use crate::kinds::VerifyKind;

/// A state on its way, as whoever checks its proofs knows it.
pub static VERIFY: VerifyKind = VerifyKind {
    tree: TREE,
    forms: &FORMS,
    twin: None,
    account_of: None,
    partial_state: Some(partial_state),
    compact: None,
    leaves: None,
};
