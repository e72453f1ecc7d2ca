//! Leaves and proofs against their definitions.

use arbor_ipa::{
    Committer, Fr, LeafChange, LeafValues, Multiproof, Opening, Point, Query, SparseOpening,
    Statement, Term, Transcript, ValueChange, WIDTH, points, value_scalars, verify_all,
};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::LazyLock};

static COMMITTER: LazyLock<Committer> = LazyLock::new(|| Committer::within(6_000_000));

fn naive(terms: &[Term]) -> Point {
    terms.iter().map(|&(i, scalar)| points()[i] * scalar).sum()
}

/// C, f(C), C1, C2 by the text of the specification.
fn naive_leaf(stem: &[u8; 31], values: &BTreeMap<u8, [u8; 32]>) -> (Point, [Point; 2]) {
    let half = |upper: bool| {
        let terms = values
            .iter()
            .filter(|(suffix, _)| (**suffix >= 128) == upper);
        let terms = terms.flat_map(|(&suffix, value)| {
            let mut low = [0; 32];
            low[..16].copy_from_slice(&value[..16]);
            low[16] = 1;
            let mut high = [0; 32];
            high[..16].copy_from_slice(&value[16..]);
            let at = 2 * usize::from(suffix % 128);
            [
                (at, Fr::from_le_bytes_reduced(&low)),
                (at + 1, Fr::from_le_bytes_reduced(&high)),
            ]
        });
        naive(&terms.collect::<Vec<_>>())
    };
    let halves = [half(false), half(true)];
    let mut stem_bytes = [0; 32];
    stem_bytes[..31].copy_from_slice(stem);
    let [f1, f2] = halves.map(|half| half.map_to_field());
    let stem = Fr::from_le_bytes_reduced(&stem_bytes);
    (naive(&[(0, Fr::ONE), (1, stem), (2, f1), (3, f2)]), halves)
}

fn any_values() -> impl Strategy<Value = BTreeMap<u8, [u8; 32]>> {
    prop::collection::btree_map(any::<u8>(), any::<[u8; 32]>(), 0..6)
}

fn list(values: &BTreeMap<u8, [u8; 32]>) -> Vec<(u8, [u8; 32])> {
    values
        .iter()
        .map(|(&suffix, &value)| (suffix, value))
        .collect()
}

fn polynomial(seed: u64) -> [Fr; WIDTH] {
    std::array::from_fn(|i| match (i as u64 + seed) % 5 {
        0 => Fr::ZERO,
        1 => Fr::from(i as u64 * seed),
        _ => (Fr::from(seed + 7) * Fr::from(i as u64 + 1)).inverse(),
    })
}

fn prove(seeds: &[(u64, u8)]) -> (Multiproof, Vec<Query>) {
    let polynomials: Vec<_> = seeds.iter().map(|&(seed, _)| polynomial(seed)).collect();
    let openings: Vec<_> = seeds
        .iter()
        .zip(&polynomials)
        .map(|(&(_, point), polynomial)| Opening {
            commitment: COMMITTER.commit(polynomial),
            polynomial,
            point,
        })
        .collect();
    let queries = openings
        .iter()
        .map(|opening| Query {
            commitment: opening.commitment,
            point: opening.point,
            value: opening.polynomial[usize::from(opening.point)],
        })
        .collect();
    let proof = Multiproof::prove(&COMMITTER, &mut Transcript::new(b"vt"), &openings);
    (proof, queries)
}

#[test]
fn many_multiproofs_at_once_and_one_false_among_them() {
    let proofs: Vec<_> = (0..4u64)
        .map(|n| {
            prove(
                &(0..n)
                    .map(|i| (i / 2 + n, (40 * i) as u8))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    let statements = |proofs: &[(Multiproof, Vec<Query>)]| {
        let statements: Vec<_> = proofs
            .iter()
            .map(|(proof, queries)| Statement {
                proof,
                queries,
                transcript: Transcript::new(b"vt"),
            })
            .collect();
        verify_all(&COMMITTER, &statements)
    };
    assert!(statements(&proofs));
    assert!(statements(&[]));
    for (i, (_, queries)) in proofs.iter().enumerate() {
        for query in 0..queries.len() {
            let mut wrong = proofs.clone();
            wrong[i].1[query].value += Fr::ONE;
            assert!(!statements(&wrong));
        }
    }
    // Two errors that would cancel without random weights.
    let mut wrong = vec![proofs[2].clone(), proofs[2].clone()];
    wrong[0].1[0].value += Fr::ONE;
    wrong[1].1[0].value -= Fr::ONE;
    assert!(!statements(&wrong));
}

#[test]
fn openings_of_one_commitment_at_all_points() {
    let (proof, mut queries) = prove(&(0..=255).map(|z| (3, z)).collect::<Vec<_>>());
    assert!(proof.verify(&COMMITTER, &mut Transcript::new(b"vt"), &queries));
    assert!(!proof.verify(&COMMITTER, &mut Transcript::new(b"another"), &queries));
    queries.swap(0, 1);
    assert!(!proof.verify(&COMMITTER, &mut Transcript::new(b"vt"), &queries));
}

#[test]
fn many_openings_at_one_point_and_some_at_another() {
    // More than are summed on one thread, and a number that no row of polynomials divides.
    let seeds: Vec<_> = (0..303)
        .map(|i| (i % 7, if i < 300 { 7 } else { 200 }))
        .collect();
    let (proof, mut queries) = prove(&seeds);
    assert!(proof.verify(&COMMITTER, &mut Transcript::new(b"vt"), &queries));
    for at in [0, 128, 299, 302] {
        queries[at].value += Fr::ONE;
        assert!(!proof.verify(&COMMITTER, &mut Transcript::new(b"vt"), &queries));
        queries[at].value -= Fr::ONE;
    }
}

#[test]
fn a_stored_zero_is_not_nothing() {
    assert_eq!(value_scalars(None), [Fr::ZERO; 2]);
    assert_eq!(
        value_scalars(Some(&[0; 32])),
        [Fr::from(1u128 << 127).double(), Fr::ZERO]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn leaves(leaves in prop::collection::vec((any::<[u8; 31]>(), any_values(), any_values()), 0..5)) {
        let lists: Vec<_> = leaves.iter().map(|(_, values, _)| list(values)).collect();
        let input: Vec<_> = leaves
            .iter()
            .zip(&lists)
            .map(|((stem, ..), values)| LeafValues { stem: *stem, values })
            .collect();
        let committed = COMMITTER.commit_leaves(&input);
        for ((stem, values, _), leaf) in leaves.iter().zip(&committed) {
            let (commitment, halves) = naive_leaf(stem, values);
            prop_assert_eq!(leaf.commitment, commitment);
            prop_assert_eq!(leaf.halves, halves);
            prop_assert_eq!(leaf.field, commitment.map_to_field());
            prop_assert_eq!(leaf.half_fields, halves.map(|half| half.map_to_field()));
        }
        let stored: Vec<_> = leaves.iter().zip(&committed).map(|((stem, ..), leaf)| (*stem, leaf.halves)).collect();
        prop_assert_eq!(&COMMITTER.fields_of_leaves(&stored), &committed);

        // Every value of the third set replaces one, or is new; even suffixes of the second are removed.
        let changes: Vec<Vec<ValueChange>> = leaves
            .iter()
            .map(|(_, old, new)| {
                let set = new.iter().map(|(&suffix, &value)| ValueChange {
                    suffix,
                    old: old.get(&suffix).copied(),
                    new: Some(value),
                });
                let removed = old.iter().filter(|(suffix, _)| !new.contains_key(suffix) && **suffix % 2 == 0);
                let removed = removed.map(|(&suffix, &value)| ValueChange {
                    suffix,
                    old: Some(value),
                    new: None,
                });
                set.chain(removed).collect()
            })
            .collect();
        let input: Vec<_> = committed
            .iter()
            .zip(&changes)
            .map(|(leaf, changes)| LeafChange { leaf: *leaf, changes })
            .collect();
        let updated = COMMITTER.update_leaves(&input);
        for (((stem, old, new), leaf), changes) in leaves.iter().zip(&updated).zip(&changes) {
            let mut values = old.clone();
            values.extend(new);
            for change in changes {
                if change.new.is_none() {
                    values.remove(&change.suffix);
                }
            }
            let (commitment, halves) = naive_leaf(stem, &values);
            prop_assert_eq!(leaf.commitment, commitment);
            prop_assert_eq!(leaf.halves, halves);
            prop_assert_eq!(leaf.field, commitment.map_to_field());
        }
    }

    #[test]
    fn multiproofs(seeds in prop::collection::vec((0u64..4, any::<u8>()), 0..12), wrong in any::<prop::sample::Index>()) {
        let (proof, mut queries) = prove(&seeds);
        prop_assert!(proof.verify(&COMMITTER, &mut Transcript::new(b"vt"), &queries));
        prop_assert_eq!(Multiproof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
        if !queries.is_empty() {
            let i = wrong.index(queries.len());
            queries[i].point ^= 1;
            prop_assert!(!proof.verify(&COMMITTER, &mut Transcript::new(b"vt"), &queries));
        }
    }

    /// Polynomials given by their values that are not zero have the proof that they have given whole.
    #[test]
    fn sparse_polynomials(terms in prop::collection::vec((any::<u8>(), prop::collection::btree_map(any::<u8>(), any::<u64>(), 0..60)), 1..9)) {
        let lists: Vec<Vec<(u8, Fr)>> = terms.iter().map(|(_, values)| values.iter().map(|(&at, &value)| (at, Fr::from(value))).collect()).collect();
        let polynomials: Vec<[Fr; WIDTH]> = lists.iter().map(|list| {
            let mut polynomial = [Fr::ZERO; WIDTH];
            list.iter().for_each(|&(at, value)| polynomial[usize::from(at)] = value);
            polynomial
        }).collect();
        let commitments: Vec<Point> = polynomials.iter().map(|polynomial| COMMITTER.commit(polynomial)).collect();
        // Each at two points.
        let opened: Vec<(usize, u8)> = terms.iter().enumerate().flat_map(|(i, (point, _))| [(i, *point), (i, point ^ 3)]).collect();
        let whole: Vec<Opening> = opened.iter().map(|&(i, point)| Opening { commitment: commitments[i], polynomial: &polynomials[i], point }).collect();
        let encodings = Point::to_bytes_batch(&commitments);
        let sparse: Vec<SparseOpening> = opened.iter().map(|&(i, point)| SparseOpening {
            commitment: &encodings[i],
            values: &lists[i],
            point,
            value: polynomials[i][usize::from(point)],
        }).collect();
        let whole = Multiproof::prove(&COMMITTER, &mut Transcript::new(b"vt"), &whole);
        prop_assert_eq!(Multiproof::prove_sparse(&COMMITTER, &mut Transcript::new(b"vt"), &sparse), whole);
    }

    #[test]
    fn bytes_that_are_no_proof(bytes in prop::collection::vec(any::<u8>(), 500..600)) {
        prop_assert!(Multiproof::from_bytes(&bytes).is_err());
    }
}
