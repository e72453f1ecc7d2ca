//! Blocks in, state roots out: sources, genesis, execution, replay, generation.
#![forbid(unsafe_code)]
