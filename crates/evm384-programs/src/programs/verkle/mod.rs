//! What a Verkle witness rests on, as contracts: Pedersen commitments, the inner product argument, multiproofs on Banderwagon.
//!
//! The reference string, Q and what depends on the domain alone are the code of a contract of their own, [`reference_string`], whose hash the verifiers check. A point comes as 96 bytes: its
//! compressed form, which is x, then y, and a root of 1 + 5 x^2. Those two are what decoding would have to compute; that they are right is an equation each, so that no root is taken here, and a wrong one is
//! refused. Field elements of points are EVM384's; scalars are words, with MULMOD.
//!
//! All sums are one subroutine: windows from the top, each point into the bucket of its digit, 6 bits wide for many points, 3 for few. Scalars are shifted so that digits are signed without carries.

mod arguments;
mod memory;
mod points;
mod sums;

use alloy_primitives::{Address, U256, uint};
use arbor_ipa::{Committer, Fr, InnerProductProof, Multiproof, Opening, Point, Transcript};

use super::fields::PrimeField;
use crate::bls12_381::{Goal, Program};
use arbor_evm384::build::Layout;
use arbor_evm384::reference::U384;
use arbor_evm384::{Interface, OPERAND_BYTES};
use memory::Verifier;

/// Order of the group.
pub const GROUP_ORDER: U256 =
    uint!(0x1cfb69d4ca675f520cce760202687600ff8f87007419047174fd06b52876e7e1_U256);

/// The curve's d; its a is -5.
const D: U384 = uint!(0x6389c12633c267cbc66e3bf86be3b6d8cb66677177e54f92b369f2f5188d58e7_U384);

const FIELD: PrimeField = PrimeField::Banderwagon;
/// Values that a commitment binds.
const WIDTH: u32 = 256;
const ROUNDS: u32 = 8;
/// A point in calldata: x, y, the root.
const POINT: u32 = 96;
/// A point in a table: x, y, d x y.
const ENTRY: u32 = 3 * OPERAND_BYTES as u32;
/// A point in extended coordinates: X, Y, Z, T with T Z = X Y.
const EXTENDED: u32 = 4 * OPERAND_BYTES as u32;
/// Windows below this bit are signed; the last begins there, and is not.
const TOP: u32 = 252;
/// Bits of windows, and the number of points from which on they are the wider ones.
const NARROW: u32 = 3;
const WIDE: u32 = 6;
const MANY: u32 = 32;

/// The statements that can be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// That 256 scalars have a commitment: calldata is the point and the scalars, most significant byte first.
    Commitment,
    /// That the polynomial behind a commitment has a value at a scalar outside 0 to 255: calldata is the point, the scalar, the value, and the proof of the inner product argument. Scalars have their least significant
    /// byte first, as proofs have them.
    Opening,
    /// That polynomials have values at points of 0 to 255: calldata is the multiproof, and for each query the commitment, the point as a word, and the value, least significant byte first.
    Openings,
}

/// Code that holds the reference string: a halt, the 256 points and Q with x and y in Montgomery form, 32 bytes each, least significant first; then 1 / A'(i) for i below 128 as words, where A(X) is the
/// product of X - j over the domain (A'(255 - i) = -A'(i)).
#[must_use]
pub fn reference_string() -> Vec<u8> {
    let field = Layout::new(FIELD.modulus());
    let points: Vec<Point> = [arbor_ipa::points(), &[Point::generator()]].concat();
    let coordinates = Point::to_uncompressed_batch(&points);
    let numbers = coordinates.iter().flat_map(|bytes| {
        let (x, y) = bytes.split_at(32);
        [x, y].map(|number| field.montgomery(U384::from_be_slice(number)))
    });
    let mut code = vec![revm::bytecode::opcode::STOP];
    code.extend(numbers.flat_map(|number| number.to_le_bytes::<OPERAND_BYTES>()[..32].to_vec()));
    let mut product = |i: u64| {
        let others = (0..u64::from(WIDTH)).filter(|&j| j != i);
        let differences = others.map(|j| Fr::from(i) - Fr::from(j));
        let inverse = differences.product::<Fr>().inverse();
        code.extend(inverse.to_le_bytes().iter().rev());
    };
    (0..u64::from(WIDTH / 2)).for_each(&mut product);
    code
}

/// The contract that verifies such statements in transcripts that begin with `label`; it returns 1 or 0, and reverts if calldata is malformed: of the wrong length, with numbers that are not reduced, points that are none or with hints that are wrong. A
/// challenge within 0 to 255 makes it revert, too, which has a chance of some 2^-245.
#[must_use]
pub fn verifier(
    statement: Statement,
    label: &[u8],
    reference: Address,
    interface: Interface,
    goal: Goal,
) -> Program {
    let mut v = Verifier::new(reference, interface, goal);
    v.load_reference();
    match statement {
        Statement::Commitment => v.commitment(),
        Statement::Opening => v.opening(label),
        Statement::Openings => v.openings(label),
    }
    v.finish()
}

/// Calldata of a point: nothing if the bytes are no point.
#[must_use]
pub fn point_calldata(compressed: &[u8; 32]) -> Option<Vec<u8>> {
    let point = Point::from_bytes(compressed).ok()?;
    let coordinates = Point::to_uncompressed_batch(&[point]);
    let x = arbor_field::Fp::from_be_bytes(compressed).ok()?;
    let xx = x * x;
    let root = arbor_field::sqrt(arbor_field::Fp::ONE + xx + xx + xx + xx + xx)?;
    let mut bytes = coordinates.concat();
    bytes.extend(root.to_be_bytes());
    Some(bytes)
}

/// Calldata of a proof, its points and its scalar: nothing if it is malformed.
#[must_use]
pub fn proof_calldata(proof: &[u8]) -> Option<Vec<u8>> {
    let (points, scalar) = proof.split_at_checked(proof.len().checked_sub(32)?)?;
    let (points, rest) = points.as_chunks::<32>();
    let points: Option<Vec<_>> = points.iter().map(point_calldata).collect();
    rest.is_empty()
        .then(|| Some([points?.concat(), scalar.to_vec()].concat()))?
}

/// Calldata of a true statement about the scalars 3, 4, up to 258, in a transcript with this label; openings are at 0 to 3.
///
/// # Panics
///
/// Never: what is proven here is well-formed.
#[must_use]
pub fn sample(statement: Statement, label: &[u8]) -> Vec<u8> {
    let values: [Fr; WIDTH as usize] = std::array::from_fn(|i| Fr::from(i as u64 + 3));
    let committer = Committer::within(6_000_000);
    let commitment = committer.commit(&values);
    let point = point_calldata(&commitment.to_bytes()).expect("invariant: a commitment is a point");
    let mut transcript = Transcript::new(label);
    let encoded = |proof: &[u8]| proof_calldata(proof).expect("invariant: a proof has its form");
    match statement {
        Statement::Commitment => {
            let scalars = values.iter().flat_map(|value| {
                let mut bytes = value.to_le_bytes();
                bytes.reverse();
                bytes
            });
            point.into_iter().chain(scalars).collect()
        }
        Statement::Opening => {
            let at = Fr::from(2101u64);
            let (proof, value) =
                InnerProductProof::prove(&committer, &mut transcript, &commitment, &values, at);
            let scalars = [at.to_le_bytes(), value.to_le_bytes()].concat();
            [point, scalars, encoded(&proof.to_bytes())].concat()
        }
        Statement::Openings => {
            let openings: Vec<Opening<'_>> = (0..4)
                .map(|point| Opening {
                    commitment,
                    polynomial: &values,
                    point,
                })
                .collect();
            let proof = Multiproof::prove(&committer, &mut transcript, &openings);
            let queries = openings.iter().flat_map(|opening| {
                let at = U256::from(opening.point).to_be_bytes::<32>();
                let value = values[usize::from(opening.point)].to_le_bytes();
                [&point[..], &at, &value].concat()
            });
            encoded(&proof.to_bytes())
                .into_iter()
                .chain(queries)
                .collect()
        }
    }
}
