//! Multiproofs: made, and verified with decoded commitments.

use super::Study;
use crate::{
    inputs,
    measure::{Case, Failed},
};
use arbor_ipa::{Fr, Multiproof, Opening, Point, Polynomial, Query, Transcript, WIDTH};

/// Dense polynomials of which the others are sums: 128 * 128 pairs.
const BASES: usize = 256;

fn transcript() -> Transcript {
    Transcript::new(b"vt")
}

struct Opened {
    polynomials: Vec<Box<Polynomial>>,
    commitments: Vec<Point>,
    points: Vec<u8>,
}

impl Opened {
    fn openings(&self) -> Vec<Opening<'_>> {
        let opening = |i: usize| Opening {
            commitment: self.commitments[i],
            polynomial: &self.polynomials[i],
            point: self.points[i],
        };
        (0..self.points.len()).map(opening).collect()
    }

    fn queries(&self) -> Vec<Query> {
        let query = |opening: &Opening| Query {
            commitment: opening.commitment,
            point: opening.point,
            value: opening.polynomial[usize::from(opening.point)],
        };
        self.openings().iter().map(query).collect()
    }
}

impl Study<'_> {
    pub(super) fn proofs(&mut self, counts: &[usize]) -> Result<(), Failed> {
        let bases: Vec<_> = (0..BASES as u64).map(inputs::polynomial).collect();
        let terms: Vec<Vec<(usize, Fr)>> = bases
            .iter()
            .map(|base| base.iter().copied().enumerate().collect())
            .collect();
        let commitments = self.committer.sums(&terms);
        for &count in counts {
            let pair = |i: usize| (i % (BASES / 2), BASES / 2 + i / (BASES / 2) % (BASES / 2));
            let sum = |i: usize| -> Box<Polynomial> {
                let (a, b) = pair(i);
                Box::new(std::array::from_fn(|k| bases[a][k] + bases[b][k]))
            };
            let opened = Opened {
                polynomials: (0..count).map(sum).collect(),
                commitments: (0..count)
                    .map(|i| commitments[pair(i).0] + commitments[pair(i).1])
                    .collect(),
                points: (0..count).map(|i| (37 * i % WIDTH) as u8).collect(),
            };
            self.multiproof(count, &opened)?;
        }
        Ok(())
    }

    fn multiproof(&mut self, count: usize, opened: &Opened) -> Result<(), Failed> {
        let committer = self.committer;
        let (openings, queries) = (opened.openings(), opened.queries());
        let prove = || Multiproof::prove(committer, &mut transcript(), &openings);
        let verify = |proof: &Multiproof, queries: &[Query]| {
            proof.verify(committer, &mut transcript(), queries)
        };
        // There is no second way to make a proof; it must convince, and not for other values.
        let proof = prove();
        let mut wrong = queries.clone();
        wrong[0].value += Fr::ONE;
        if !verify(&proof, &queries) || verify(&proof, &wrong) {
            return Err(Failed {
                row: format!("prove/{count}"),
                index: 0,
                by: "the verifier",
            });
        }
        self.add(Case {
            name: format!("prove/{count}"),
            what: format!("multiproof of {count} openings, made"),
            values: count,
            inputs: &[()],
            naive: &|()| proof.to_bytes(),
            one: &|()| prove().to_bytes(),
            many: None,
            bytes: &Vec::clone,
        })?;
        self.add(Case {
            name: format!("verify/{count}"),
            what: format!("multiproof of {count} openings, verified"),
            values: count,
            inputs: &[()],
            naive: &|()| true,
            one: &|()| verify(&proof, &queries),
            many: None,
            bytes: &|_| Vec::new(),
        })
    }
}
