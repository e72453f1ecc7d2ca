//! The conformance suite over the in-memory reader.

mod subject;

use arbor_tree::conformance::{run, steps};
use proptest::prelude::*;
use subject::InMemory;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_the_naive_model(steps in steps()) {
        run(&mut InMemory::default(), &steps)?;
    }
}
