//! The Verkle tree's group: points, scalars, multiproofs.

use arbor_ipa::{
    Committer, Fr, InnerProductProof, Multiproof, Opening, Point, Query, Transcript, Trust,
};

/// An element of the Verkle tree's group, compressed or not; what decodes must be in the one form that encoding gives.
pub(super) fn point(bytes: &[u8]) {
    let compressed = Point::from_bytes(bytes);
    if let Ok(point) = &compressed {
        assert_eq!(point.to_bytes(), bytes, "a point has two encodings");
    }
    if let Ok(array) = bytes.try_into() {
        let batch = Point::from_bytes_batch(&[array; 9], Trust::Untrusted);
        assert!(
            batch.iter().all(|point| *point == compressed),
            "a batch decodes otherwise"
        );
        let _ = Point::from_bytes_batch(&[array], Trust::Trusted);
    }
    let _ = Point::from_uncompressed(bytes, Trust::Trusted);
    if let Ok(point) = Point::from_uncompressed(bytes, Trust::Untrusted) {
        let again = Point::to_uncompressed_batch(&[point])[0];
        assert_eq!(again, bytes, "a point has two encodings");
        assert_eq!(
            Point::from_bytes(&point.to_bytes()),
            Ok(point),
            "another point in the other form"
        );
    }
}

/// A scalar: taken in its one form, or reduced.
pub(super) fn scalar(bytes: &[u8]) {
    let Ok(bytes) = bytes.try_into() else {
        return;
    };
    let reduced = Fr::from_le_bytes_reduced(bytes);
    match Fr::from_le_bytes(bytes) {
        Ok(scalar) => {
            assert_eq!(scalar.to_le_bytes(), *bytes, "a scalar has two encodings");
            assert_eq!(scalar, reduced);
        }
        Err(_) => assert_eq!(Fr::from_le_bytes(&reduced.to_le_bytes()), Ok(reduced)),
    }
}

/// A multiproof, and the inner product proof in it, which is then verified; only the seed's own bytes are a proof of the seed's query.
pub(super) fn multiproof(bytes: &[u8]) {
    OPENED.with(|opened| {
        if let Ok(proof) = InnerProductProof::from_bytes(bytes) {
            assert_eq!(proof.to_bytes(), bytes, "a proof has two encodings");
        }
        if let Ok(proof) = Multiproof::from_bytes(bytes) {
            assert_eq!(proof.to_bytes(), bytes, "a proof has two encodings");
            let verified = proof.verify(
                &opened.committer,
                &mut Transcript::new(b"vt"),
                &[opened.query],
            );
            assert_eq!(verified, bytes == opened.proof, "a forged proof");
        }
    });
}

/// A polynomial opened at one point, with small tables.
struct Opened {
    committer: Committer,
    query: Query,
    proof: Vec<u8>,
}

thread_local! {
    static OPENED: Opened = Opened::new();
}

impl Opened {
    fn new() -> Self {
        let committer = Committer::within(6_000_000);
        let polynomial = std::array::from_fn(|i| Fr::from(i as u64 + 7));
        let (commitment, point) = (committer.commit(&polynomial), 13);
        let opening = Opening {
            commitment,
            polynomial: &polynomial,
            point,
        };
        let proof = Multiproof::prove(&committer, &mut Transcript::new(b"vt"), &[opening]);
        let query = Query {
            commitment,
            point,
            value: polynomial[usize::from(point)],
        };
        Self {
            committer,
            query,
            proof: proof.to_bytes(),
        }
    }
}

/// Inputs of the commitments' decoders to begin with.
pub(crate) fn commitment_seeds() -> Vec<(&'static str, Vec<u8>)> {
    OPENED.with(|opened| {
        let point = opened.query.commitment;
        vec![
            ("point", point.to_bytes().to_vec()),
            ("point", Point::to_uncompressed_batch(&[point])[0].to_vec()),
            ("point", vec![0; 32]),
            ("scalar", opened.query.value.to_le_bytes().to_vec()),
            ("scalar", (-Fr::ONE).to_le_bytes().to_vec()),
            ("scalar", vec![0xff; 32]),
            ("multiproof", opened.proof.clone()),
            ("multiproof", opened.proof[32..].to_vec()),
        ]
    })
}
