//! Ranges of keys, and parts of a state that are made of them.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Ranges of keys, by their first byte.
pub(crate) const RANGES: u32 = 256;

/// A part of a state: the accounts whose keys are in one of several ranges of the same size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct PartOf {
    /// Its number, from 1 on.
    pub number: u32,
    /// How many parts there are: 1 to 256.
    pub of: u32,
}

impl PartOf {
    /// The first bytes of the keys.
    pub fn ranges(self) -> Range<u32> {
        let end = |number| RANGES * number / self.of;
        end(self.number - 1)..end(self.number)
    }
}

impl FromStr for PartOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let read = text.split_once('/').and_then(|(part, of)| {
            let (number, of) = (number(part)?, number(of)?);
            (number <= of && of <= RANGES).then_some(Self { number, of })
        });
        read.ok_or_else(|| {
            format!("'{text}' is no part: give I/N with I from 1 to N, and N at most {RANGES}")
        })
    }
}

impl fmt::Display for PartOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_ranges_once() {
        for of in [1, 2, 3, 5, 100, 255, 256] {
            let ranges = (1..=of).flat_map(|number| PartOf { number, of }.ranges());
            assert!(ranges.eq(0..RANGES), "{of}");
        }
        assert_eq!("2/5".parse(), Ok(PartOf { number: 2, of: 5 }));
        for text in ["0/1", "2/1", "1/257", "1", "/", "1/0", "-1/2", "1/2/3"] {
            assert!(text.parse::<PartOf>().is_err(), "{text}");
        }
    }
}
