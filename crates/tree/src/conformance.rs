//! The suite that compares a tree with the naive model.
