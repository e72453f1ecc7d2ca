//! Medians and spread of a few repetitions.

use serde::{Deserialize, Serialize};

/// Repetitions whose wall times lie further apart than this part of their median are called spread.
pub(crate) const SPREAD_LIMIT: f64 = 0.05;

/// A figure over the repetitions of a side.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The values, in the order of the repetitions.
    pub values: Vec<f64>,
}

impl Summary {
    /// Summarises values; `None` if there are none.
    pub fn of(values: Vec<f64>) -> Option<Self> {
        Some(Self {
            median: median(&values)?,
            values,
        })
    }

    /// The distance between least and greatest value, as a part of the median; zero if all are equal.
    pub fn spread(&self) -> f64 {
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self
            .values
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max);
        match self.median != 0.0 && most > least {
            true => (most - least) / self.median.abs(),
            false => 0.0,
        }
    }
}

/// Returns the median: of an even number of values, the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spread() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
        let summary = Summary::of(vec![100.0, 104.0, 98.0]).expect("values");
        assert!((summary.spread() - 0.06).abs() < 1e-12);
        assert_eq!(Summary::of(vec![0.0, 0.0]).expect("values").spread(), 0.0);
        assert_eq!(Summary::of(vec![5.0]).expect("a value").spread(), 0.0);
    }
}
