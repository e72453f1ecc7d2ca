//! The three opcodes in the plainest words, on whole integers instead of limbs: what all fast code here is tested against.

use alloy_primitives::Uint;

/// An operand or a modulus.
pub type U384 = Uint<384, 6>;
/// Holds any intermediate result: less than 2^769.
type Wide = Uint<832, 13>;

/// ADDMOD384: x + y, less m once if that is not smaller than m.
#[must_use]
pub fn add(x: U384, y: U384, m: U384) -> U384 {
    reduced_once(Wide::from(x) + Wide::from(y), m)
}

/// SUBMOD384: x - y, plus m once if that is negative.
#[must_use]
pub fn sub(x: U384, y: U384, m: U384) -> U384 {
    let (difference, borrow) = x.overflowing_sub(y);
    if borrow {
        difference.wrapping_add(m)
    } else {
        difference
    }
}

/// MULMODMONT384: x * y / 2^384 modulo m, where `inv` is -1/m modulo 2^64 (Montgomery's reduction, 64 bits a step).
#[must_use]
pub fn mul(x: U384, y: U384, m: U384, inv: u64) -> U384 {
    let mut t = Wide::from(x) * Wide::from(y);
    for limb in 0..6 {
        let multiple = t.as_limbs()[limb].wrapping_mul(inv);
        t += (Wide::from(m) * Wide::from(multiple)) << (64 * limb);
    }
    reduced_once(t >> 384, m)
}

fn reduced_once(t: Wide, m: U384) -> U384 {
    let m = Wide::from(m);
    let reduced = if t >= m { t - m } else { t };
    U384::wrapping_from(reduced)
}
