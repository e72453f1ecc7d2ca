//! Prime fields of other curves, and the value of a polynomial over any of them.

use alloy_primitives::uint;

use crate::bls12_381::{Goal, MODULUS, Program};
use arbor_evm384::Interface;
use arbor_evm384::build::tower::Fp;
use arbor_evm384::build::{Contract, Layout, Routine, Weights, Word};
use arbor_evm384::reference::U384;

/// A prime field that contracts here compute in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrimeField {
    /// That of the coordinates of BLS12-381.
    Bls12381,
    /// Of BLS12-377.
    Bls12377,
    /// Of BN254, the curve of the precompiles of EIP-196.
    Bn254,
    /// Of the scalars of BN254.
    Bn254Scalars,
    /// Of Banderwagon: of the scalars of BLS12-381.
    Banderwagon,
}

impl PrimeField {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Bls12381,
        Self::Bls12377,
        Self::Bn254,
        Self::Bn254Scalars,
        Self::Banderwagon,
    ];

    pub(super) const fn polynomial_name(self) -> &'static str {
        match self {
            Self::Bls12381 => "polynomial-bls12-381",
            Self::Bls12377 => "polynomial-bls12-377",
            Self::Bn254 => "polynomial-bn254",
            Self::Bn254Scalars => "polynomial-bn254-scalars",
            Self::Banderwagon => "polynomial-banderwagon",
        }
    }

    /// The modulus.
    #[must_use]
    pub const fn modulus(self) -> U384 {
        match self {
            Self::Bls12381 => MODULUS,
            Self::Bls12377 => uint!(0x01ae3a4617c510eac63b05c06ca1493b1a22d9f300f5138f1ef3622fba094800170b5d44300000008508c00000000001_U384),
            Self::Bn254 => uint!(0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47_U384),
            Self::Bn254Scalars => uint!(0x30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001_U384),
            Self::Banderwagon => uint!(0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001_U384),
        }
    }
}

/// The value of a polynomial: calldata is x, then the coefficients from the highest power's on, 64 bytes each as EIP-2537 has residues, and so is the result.
///
/// Horner's rule needs no conversion: the Montgomery product of x in that form with a plain residue is a plain residue.
#[must_use]
pub fn polynomial(field: PrimeField, interface: Interface, goal: Goal) -> Program {
    let mut layout = Layout::new(field.modulus());
    let radix_squared = layout.constant(layout.montgomery(layout.montgomery(U384::ONE)));
    // Each with room for what decoding writes behind it.
    let [at_x, at_coefficient, at_value] =
        ["x", "coefficient", "value"].map(|name| layout.variable::<2>(name).part::<1>(0));
    let at = layout.word("offset");
    let result = layout.bytes("result", 64);
    let zero = layout.zero();
    let routines = vec![
        Routine::cheapest("begin", zero, Weights::SIZE, |b| {
            let x: Fp<'_> = b.load(at_x);
            b.store(at_x, x * b.input(radix_squared));
        }),
        Routine::cheapest("step", zero, goal.weights(interface), |b| {
            let [x, coefficient, value]: [Fp<'_>; 3] =
                [at_x, at_coefficient, at_value].map(|slot| b.load(slot));
            b.store(at_value, value * x + coefficient);
        }),
    ];
    let mut c = Contract::new(interface, layout, routines);
    c.load_constants();
    let size = Word::calldata_size;
    c.refuse((size() % 64) | size().below(128));
    c.decode(at_x.offset(), 0, 1);
    c.inline("begin");
    c.set(at, 64);
    c.loop_while(at.get().below(size()), |c| {
        c.decode(at_coefficient.offset(), at, 1);
        c.inline("step");
        c.set(at, at.get() + 64);
    });
    c.encode(result, at_value.offset(), 1);
    c.return_bytes(result, 64);
    c.finish()
}
