//! Random choices that are the same on every machine.

use alloy_primitives::{B256, U256, keccak256};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

/// A stream of random choices, fixed by seed, purpose and number.
///
/// ChaCha with 8 rounds, of which only the 64-bit output words are used: the ways from words to
/// numbers below are the generator's own, so that no library's change of sampling changes a chain.
/// Floating-point steps use only IEEE additions, multiplications, divisions and the `libm`
/// crate's portable functions.
#[derive(Debug)]
pub(super) struct Random(ChaCha8Rng);

impl Random {
    /// The stream for one purpose, for instance one block's transactions.
    pub(super) fn new(seed: u64, purpose: &str, number: u64) -> Self {
        let mut rng = ChaCha8Rng::from_seed(derive(seed, purpose, 0).0);
        rng.set_stream(number);
        Self(rng)
    }

    /// A number below `bound`, each equally likely (Lemire 2019, with rejection). `bound` is not zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A multiple of 2^-53 in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A 256-bit number that is not zero.
    pub(super) fn word(&mut self) -> U256 {
        let mut bytes = [0; 32];
        self.0.fill_bytes(&mut bytes);
        U256::from_be_bytes(bytes).max(U256::ONE)
    }

    /// Fills a new buffer with random bytes.
    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// An index into `weights`, in proportion to them. Their sum is not zero.
    pub(super) fn weighted(&mut self, weights: impl Iterator<Item = u32> + Clone) -> usize {
        let mut left = self.below(weights.clone().map(u64::from).sum());
        for (index, weight) in weights.enumerate() {
            match left.checked_sub(u64::from(weight)) {
                Some(rest) => left = rest,
                None => return index,
            }
        }
        unreachable!("invariant: the number drawn is below the sum of the weights")
    }
}

/// 32 bytes fixed by seed, purpose and number: Keccak-256 of
/// `"arbor generator" || len(purpose) || purpose || seed || number`, integers as 8 bytes big-endian.
pub(super) fn derive(seed: u64, purpose: &str, number: u64) -> B256 {
    let mut input = b"arbor generator".to_vec();
    input.push(purpose.len() as u8);
    input.extend(purpose.bytes());
    input.extend(seed.to_be_bytes());
    input.extend(number.to_be_bytes());
    keccak256(input)
}

/// Zipf's law: rank k, from 1 to n, is drawn with a probability proportional to k^-exponent.
///
/// Rejection-inversion after Hörmann and Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions" (1996): constant time for any n, so that n may grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    exponent: f64,
    /// Draws at most this far left of their rank are accepted without a further look.
    squeeze: f64,
}

impl Zipf {
    /// The law with this exponent, finite and at least 0 (0: all ranks equally likely).
    pub(super) fn new(exponent: f64) -> Self {
        let mut law = Self {
            exponent,
            squeeze: 0.0,
        };
        law.squeeze = 2.0 - law.inverse_integral(law.integral(2.5) - law.density(2.0));
        law
    }

    /// An index from 0 to `n - 1`, the first ones most often. `n` is not zero.
    pub(super) fn index(&self, n: u64, random: &mut Random) -> u64 {
        let top = self.integral(n as f64 + 0.5);
        let bottom = self.integral(1.5) - 1.0;
        loop {
            let area = top + random.unit() * (bottom - top);
            let x = self.inverse_integral(area);
            let rank = libm::floor(x + 0.5).clamp(1.0, n as f64);
            if rank - x <= self.squeeze || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// The integral of the density from 1 to x.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let slope = 1.0 - self.exponent;
        if slope == 0.0 {
            log
        } else {
            libm::expm1(slope * log) / slope
        }
    }

    fn inverse_integral(&self, area: f64) -> f64 {
        let slope = 1.0 - self.exponent;
        let log = if slope == 0.0 {
            area
        } else {
            libm::log1p((slope * area).max(-1.0)) / slope
        };
        libm::exp(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(exponent: f64, n: u64) -> Vec<f64> {
        let law = Zipf::new(exponent);
        let mut random = Random::new(7, "test", 0);
        let mut counts = vec![0u32; n as usize];
        let draws = 200_000;
        for _ in 0..draws {
            counts[law.index(n, &mut random) as usize] += 1;
        }
        counts
            .into_iter()
            .map(|count| f64::from(count) / f64::from(draws))
            .collect()
    }

    #[test]
    fn zipf_shares_are_those_of_the_formula() {
        for exponent in [0.0, 0.5, 1.0, 1.3, 3.0] {
            for n in [1u64, 2, 10, 50] {
                let total: f64 = (1..=n).map(|k| (k as f64).powf(-exponent)).sum();
                for (index, share) in shares(exponent, n).into_iter().enumerate() {
                    let expected = ((index + 1) as f64).powf(-exponent) / total;
                    assert!(
                        (share - expected).abs() < 0.005,
                        "exponent {exponent}, n {n}, index {index}: {share}"
                    );
                }
            }
        }
    }

    #[test]
    fn weights_of_zero_are_never_drawn() {
        let mut random = Random::new(1, "test", 1);
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            counts[random.weighted([0, 1, 0, 3].into_iter())] += 1;
        }
        assert_eq!((counts[0], counts[2]), (0, 0));
        assert!((2_300..2_700).contains(&counts[1]), "{counts:?}");
    }

    #[test]
    fn streams_are_fixed() {
        let mut random = Random::new(42, "test", 3);
        let law = Zipf::new(0.9);
        let mut drawn: Vec<u64> = (0..4).map(|_| law.index(1_000_000, &mut random)).collect();
        drawn.push(random.below(1 << 40));
        assert_eq!(drawn, [588, 473_411, 519, 25_004, 172_846_192_007]);
        assert_ne!(
            Random::new(42, "test", 3).word(),
            Random::new(42, "test", 4).word()
        );
        assert_ne!(
            Random::new(42, "test", 3).word(),
            Random::new(42, "other", 3).word()
        );
    }
}
