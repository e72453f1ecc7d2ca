//! Multiplication of a point of BLS12-377's first group by a scalar, in the manner of EIP-2537.

use alloy_primitives::{U256, uint};

use super::fields::PrimeField;
use super::multiples::Multiples;
use crate::bls12_381::{Goal, Program};
use arbor_evm384::Interface;
use arbor_evm384::build::{Layout, Word};

/// The order of the group.
pub(super) const ORDER: U256 =
    uint!(0x12ab655e9a2ca55660b44d1e5c37b00159aa76fed00000010a11800000000001_U256);

/// The contract: calldata is a point, 64 bytes for each coordinate and zeros for the point zero, and a scalar of 32 bytes, of any size; the multiple is returned as the point is
/// given. It reverts for other calldata, and for points that are not on the curve y^2 = x^3 + 1 or not in the group.
///
/// The curve has points of even order, for which the formulas of [`arbor_evm384::build::points`] do not all hold: where the difference of two points that are added has order two, all
/// coordinates become zero, and stay that through all that follows. So a point is in the group exactly if its multiple by the order has Z = 0 and another coordinate besides: for points of odd
/// order the formulas hold, and of those of even order no multiple by an odd number is zero.
#[must_use]
pub(super) fn multiplication(interface: Interface, goal: Goal) -> Program {
    let mut layout = Layout::new(PrimeField::Bls12377.modulus());
    let result = layout.bytes("result", 128);
    let (mut c, multiples) = Multiples::begin(interface, layout, 1, goal.weights(interface));
    c.refuse(Word::calldata_size() - 160);
    c.decode(multiples.raw.offset(), 0, 2);
    multiples.clear(&mut c);
    c.when(multiples.is_some(), |c| {
        multiples.read(c);
        multiples.multiply(c, &Word::Number(ORDER));
        c.refuse(multiples.has(2));
        c.require(multiples.has(1));
        multiples.multiply(c, &Word::calldata(128));
    });
    c.when(multiples.has(2), |c| {
        multiples.bring_out(c);
        c.encode(result, multiples.raw.offset(), 2);
    });
    c.return_bytes(result, 128);
    multiples.end(&mut c);
    c.finish()
}

/// The generator that the curve's authors chose, as calldata has it.
pub(super) fn generator() -> Vec<u8> {
    let x = uint!(0x008848defe740a67c8fc6225bf87ff5485951e2caa9d41bb188282c8bd37cb5cd5481512ffcd394eeab9b16eb21be9ef_U512);
    let y = uint!(0x01914a69c5102eff1f674f5d30afeec4bd7fb348ca3e52d96d182ad44fb82305c2fe3d3634a9591afd82de55559c8ea6_U512);
    [x.to_be_bytes_vec(), y.to_be_bytes_vec()].concat()
}
