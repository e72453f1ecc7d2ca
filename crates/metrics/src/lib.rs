//! Counters that every layer may fill, and the JSON envelope of every result.
