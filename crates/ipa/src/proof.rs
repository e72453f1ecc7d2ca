//! What the two proofs' encodings have in common.

use arbor_banderwagon::{DecodingError, Fr, Point, Trust};

/// Bytes that are no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// A proof of another length.
    #[error("a proof has {expected} bytes, not {found}")]
    Length {
        /// Bytes that this kind of proof has.
        expected: usize,
        /// Bytes that were given.
        found: usize,
    },
    /// A point that is no element of the group.
    #[error("point {index} of the proof: {error}")]
    Point {
        /// Its place in the encoding, from 0.
        index: usize,
        /// What is wrong with it.
        error: DecodingError,
    },
    /// The last number is not below the group's order.
    #[error("the proof's scalar is not below the order of the group")]
    Scalar,
}

/// Reads `points` points and a scalar.
pub(crate) fn decode(bytes: &[u8], points: usize) -> Result<(Vec<Point>, Fr), ProofError> {
    let (chunks, rest) = bytes.as_chunks::<32>();
    if chunks.len() != points + 1 || !rest.is_empty() {
        return Err(ProofError::Length {
            expected: 32 * (points + 1),
            found: bytes.len(),
        });
    }
    let (scalar, encodings) = chunks.split_last().ok_or(ProofError::Scalar)?;
    let scalar = Fr::from_le_bytes(scalar).map_err(|_| ProofError::Scalar)?;
    let decoded = Point::from_bytes_batch(encodings, Trust::Untrusted);
    let decoded = decoded.into_iter().enumerate();
    let points: Result<_, _> = decoded
        .map(|(index, point)| point.map_err(|error| ProofError::Point { index, error }))
        .collect();
    Ok((points?, scalar))
}

/// Writes points and a scalar.
pub(crate) fn encode(points: &[Point], scalar: Fr) -> Vec<u8> {
    let mut bytes = Point::to_bytes_batch(points).concat();
    bytes.extend(scalar.to_le_bytes());
    bytes
}
