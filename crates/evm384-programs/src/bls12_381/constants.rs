//! Numbers of BLS12-381, computed where they follow from others.

use alloy_primitives::{Uint, uint};

use arbor_evm384::reference::U384;

/// The base field's modulus p.
pub use arbor_evm384::vectors::MODULUS;

/// The absolute value of the curve's parameter, which is negative.
pub const PARAMETER: u64 = 0xd201_0000_0001_0000;

/// The groups' usual generators: P's x and y, then the real and imaginary parts of Q's x and y.
pub const GENERATORS: [U384; 6] = [
    uint!(0x17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb_U384),
    uint!(0x08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1_U384),
    uint!(0x024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8_U384),
    uint!(0x13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e_U384),
    uint!(0x0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801_U384),
    uint!(0x0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be_U384),
];

/// After the leading one bit of [`PARAMETER`]: runs of zeros, each with its length and the one bit that ends it, and the last without one.
pub(super) const RUNS: [(u64, bool); 6] = [
    (1, true),
    (2, true),
    (3, true),
    (9, true),
    (32, true),
    (16, false),
];

type Exponent = Uint<768, 12>;

/// c0 + c1 i, as plain residues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    c0: U384,
    c1: U384,
}

impl Number {
    const XI: Self = Self {
        c0: U384::ONE,
        c1: U384::ONE,
    };

    fn mul(self, other: Self) -> Self {
        let times = |x: U384, y: U384| x.mul_mod(y, MODULUS);
        let minus = MODULUS - times(self.c1, other.c1);
        Self {
            c0: times(self.c0, other.c0).add_mod(minus, MODULUS),
            c1: times(self.c0, other.c1).add_mod(times(self.c1, other.c0), MODULUS),
        }
    }

    fn pow(self, exponent: Exponent) -> Self {
        let one = Self {
            c0: U384::ONE,
            c1: U384::ZERO,
        };
        (0..exponent.bit_len()).rev().fold(one, |power, bit| {
            let square = power.mul(power);
            if exponent.bit(bit) {
                square.mul(self)
            } else {
                square
            }
        })
    }

    /// Its coordinates in Montgomery form.
    pub(super) fn montgomery(self) -> [U384; 2] {
        [montgomery(self.c0), montgomery(self.c1)]
    }
}

/// x 2^384 modulo p.
pub(super) fn montgomery(x: U384) -> U384 {
    let radix = Exponent::ONE << 384;
    let product = Exponent::from(x) * (radix % Exponent::from(MODULUS));
    U384::from(product % Exponent::from(MODULUS))
}

/// 1 / x modulo p.
pub(super) fn inverse(x: U384) -> U384 {
    x.pow_mod(MODULUS - U384::from(2), MODULUS)
}

/// 2^768 modulo p: multiplied by it, a residue takes Montgomery form.
pub(super) fn radix_squared() -> U384 {
    montgomery(montgomery(U384::ONE))
}

/// xi^(k (p - 1) / 6): what the Frobenius map multiplies the conjugate of the coefficient of w^k by.
pub(super) fn frobenius(k: u64) -> Number {
    let sixth = (Exponent::from(MODULUS) - Exponent::ONE) / Exponent::from(6);
    Number::XI.pow(sixth * Exponent::from(k))
}

/// xi^(-k (p - 1) / 6).
pub(super) fn inverse_frobenius(k: u64) -> Number {
    let p = Exponent::from(MODULUS);
    let sixth = (p - Exponent::ONE) / Exponent::from(6);
    Number::XI.pow((p * p - Exponent::ONE) - sixth * Exponent::from(k))
}

/// xi^(k (p^2 - 1) / 6), a sixth root of unity in Fp: the same for the map applied twice.
pub(super) fn frobenius_twice(k: u64) -> U384 {
    let p = Exponent::from(MODULUS);
    let sixth = (p * p - Exponent::ONE) / Exponent::from(6);
    Number::XI.pow(sixth * Exponent::from(k)).c0
}

/// The cube root of unity with (beta x, y) = -z^2 (x, y) on the subgroup of order r of the curve over Fp.
pub(super) fn beta() -> U384 {
    frobenius_twice(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_spell_the_parameter() {
        let spelled = RUNS.iter().fold(1u64, |number, &(zeros, one)| {
            (number << zeros) + u64::from(one)
        });
        assert_eq!(spelled, PARAMETER);
    }

    #[test]
    fn roots_of_unity_have_their_orders() {
        let root = frobenius_twice(1);
        let power = |k: u64| root.pow_mod(U384::from(k), MODULUS);
        assert_eq!(power(6), U384::ONE);
        assert!(power(2) != U384::ONE && power(3) != U384::ONE);
        assert_eq!(frobenius_twice(3), MODULUS - U384::ONE);
    }

    #[test]
    fn frobenius_constants_are_powers_of_the_first() {
        let first = frobenius(1);
        assert_eq!(frobenius(2), first.mul(first));
        assert_eq!(frobenius(3).mul(inverse_frobenius(3)).c0, U384::ONE);
        assert_eq!(
            frobenius(6).c0,
            Number::XI.pow(Exponent::from(MODULUS) - Exponent::ONE).c0
        );
    }

    #[test]
    fn montgomery_form_of_one_is_the_radix() {
        assert_eq!(
            arbor_evm384::reference::mul(
                montgomery(U384::ONE),
                U384::ONE,
                MODULUS,
                0x89f3_fffc_fffc_fffd
            ),
            U384::ONE
        );
    }
}
