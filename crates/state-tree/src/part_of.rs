//! Parts of a state, for work that machines share.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A part of a state: one of several ranges of first bytes of keys. The ranges have the same size, or differ by one byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct PartOf {
    /// Its number, from 1 on.
    pub number: u32,
    /// How many parts there are: 1 to 256.
    pub of: u32,
}

impl PartOf {
    /// First bytes that there are.
    pub const RANGES: u32 = 256;

    /// Returns the part that is the whole state.
    pub const fn whole() -> Self {
        Self { number: 1, of: 1 }
    }

    /// Returns the first bytes of the keys.
    pub fn ranges(self) -> Range<u32> {
        let end = |number| Self::RANGES * number / self.of;
        end(self.number - 1)..end(self.number)
    }

    /// Returns the first bytes of the keys, ascending.
    pub fn first_bytes(self) -> Vec<u8> {
        self.ranges().map(|first| first as u8).collect()
    }
}

impl FromStr for PartOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let read = text.split_once('/').and_then(|(part, of)| {
            let (number, of) = (number(part)?, number(of)?);
            (number <= of && of <= Self::RANGES).then_some(Self { number, of })
        });
        read.ok_or_else(|| {
            format!(
                "'{text}' is no part: give I/N with I from 1 to N, and N at most {}",
                Self::RANGES
            )
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
            assert!(ranges.eq(0..PartOf::RANGES), "{of}");
        }
        assert_eq!(PartOf::whole().first_bytes(), Vec::from_iter(0..=255));
        assert_eq!("2/5".parse(), Ok(PartOf { number: 2, of: 5 }));
        for text in ["0/1", "2/1", "1/257", "1", "/", "1/0", "-1/2", "1/2/3"] {
            assert!(text.parse::<PartOf>().is_err(), "{text}");
        }
    }
}
