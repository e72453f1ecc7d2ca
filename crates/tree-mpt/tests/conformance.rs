//! The conformance suite over the in-memory reader.

use crate::subject::{InMemory, Overlaid, Witnessed};
use arbor_tree::conformance::{run, steps};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_the_naive_model(steps in steps()) {
        run(&mut InMemory::default(), &steps)?;
    }

    #[test]
    fn an_overlay_reads_as_a_store_does(steps in steps()) {
        run(&mut Overlaid::default(), &steps)?;
    }

    #[test]
    fn a_witness_suffices_and_lies_about_nothing(steps in steps()) {
        run(&mut Witnessed::default(), &steps)?;
    }
}
