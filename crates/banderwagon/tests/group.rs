//! The group's laws, and every kind of sum against sums of single products.

use arbor_banderwagon::{
    Digits, FixedBase, Fr, Point, Ratio, Sizes, Term, VariableBase, sum_of_products,
};
use arbor_field::{Limbs, Wide};
use proptest::prelude::*;
use std::sync::LazyLock;

const SMALL: Sizes = Sizes {
    first: [
        Digits::of_halves(26, 25),
        Digits::of_halves(20, 25),
        Digits {
            bits: 121,
            below: 25,
            above: 27,
        },
        Digits::of_halves(26, 20),
        Digits::of_halves(26, 25),
    ],
    others: 3,
    comb: 4,
    columns: 2,
};

fn point(seed: u64) -> Point {
    Point::generator() * (Fr::from(seed) * Fr::from(0x9e37_79b9_7f4a_7c15_u64) + Fr::ONE)
}

/// A product by doubling and adding, bit by bit.
fn product(point: Point, scalar: Fr) -> Point {
    let limbs = scalar.to_limbs();
    (0..256).rev().fold(Point::IDENTITY, |sum, bit| {
        match limbs[bit / 64] >> (bit % 64) & 1 {
            1 => sum.double() + point,
            _ => sum.double(),
        }
    })
}

fn naive(points: &[Point], terms: &[Term]) -> Point {
    let products = terms.iter().map(|&(i, scalar)| product(points[i], scalar));
    products.sum()
}

/// Eleven points, so that the last group of a comb is not full; tables on all lanes there are.
static BASES: LazyLock<(Vec<Point>, Vec<FixedBase>)> = LazyLock::new(|| {
    let points: Vec<_> = (1..=11).map(point).collect();
    let tables = Wide::available()
        .into_iter()
        .flat_map(|wide| {
            let other = Sizes {
                columns: 1,
                ..SMALL
            };
            let third = Sizes {
                columns: 4,
                comb: 3,
                first: [Digits::of_halves(33, 31); 5],
                others: 6,
            };
            [SMALL, other, third].map(|sizes| FixedBase::on(wide, &points, sizes))
        })
        .collect();
    (points, tables)
});

fn check_fixed(lists: &[Vec<Term>]) {
    let (points, tables) = &*BASES;
    let expected: Vec<_> = lists.iter().map(|list| naive(points, list)).collect();
    for table in tables {
        let batch = table.sums(lists);
        for ((list, expected), sum) in lists.iter().zip(&expected).zip(batch) {
            assert_eq!(sum, *expected, "{list:?}, {:?}", table.sizes());
            assert_eq!(table.sum(list), *expected, "{list:?}, {:?}", table.sizes());
        }
    }
}

fn check_variable(terms: &[(Point, Fr)]) {
    let (points, scalars): (Vec<_>, Vec<_>) = terms.iter().copied().unzip();
    let expected: Point = terms.iter().map(|&(p, scalar)| product(p, scalar)).sum();
    assert_eq!(sum_of_products(&points, &scalars), expected);
    for wide in Wide::available() {
        let base = VariableBase::on(wide, points.len(), |i| points[i]);
        assert_eq!(base.sum(&scalars), expected, "{}", wide.name());
    }
}

/// So many that sums are made in several blocks: of the multiples of one point, and then of few points many times, where each sum may be that of equal ones.
#[test]
fn variable_of_thousands() {
    const COUNT: usize = 3000;
    let generator = Point::generator();
    let multiples = |most: usize| -> Vec<Point> {
        let mut sum = Point::IDENTITY;
        let multiple = |i: usize| {
            sum = if i.is_multiple_of(most) {
                Point::IDENTITY
            } else {
                sum + generator
            };
            sum
        };
        (0..COUNT).map(multiple).collect()
    };
    let scalars: Vec<_> = (0..COUNT as u64)
        .map(|i| Fr::from(3 * i + 1).inverse())
        .collect();
    for most in [COUNT, 7] {
        let points = multiples(most);
        let times = |i: usize| Fr::from((i % most) as u64);
        let total: Fr = (0..COUNT).map(|i| times(i) * scalars[i]).sum();
        for wide in Wide::available() {
            let base = VariableBase::on(wide, COUNT, |i| points[i]);
            assert_eq!(base.sum(&scalars), generator * total, "{}", wide.name());
        }
    }
}

fn order_less(n: u64) -> Fr {
    -Fr::from(n)
}

#[test]
fn laws() {
    let (a, b, c) = (point(5), point(6), point(7));
    assert_eq!((a + b) + c, a + (b + c));
    assert_eq!(a + b, b + a);
    assert_eq!(a + Point::IDENTITY, a);
    assert_eq!(a - a, Point::IDENTITY);
    assert_eq!(a + a, a.double());
    assert_eq!(a.double_times(3) + b, a.double().double().double() + b);
    assert_eq!((a.double_times(0), a.double_times(1)), (a, a.double()));
    assert_eq!(a * order_less(1), -a);
    assert_ne!(a, b);
    assert_ne!(a, -a);
    assert!(!a.is_identity() && (a * Fr::ZERO).is_identity());
    assert_eq!([a, b, c].into_iter().sum::<Point>(), a + b + c);
    // (0, -1), the other representative of the neutral element.
    let order_two = (a * order_less(1)) + a;
    assert_eq!(order_two, Point::IDENTITY);
    assert_eq!(Point::default(), Point::IDENTITY);
}

#[test]
fn fixed_points_with_extreme_scalars_and_repetitions() {
    let one = |scalar| vec![(3, scalar)];
    let mut lists = vec![vec![]];
    lists.extend([Fr::ZERO, Fr::ONE, order_less(1), order_less(2)].map(one));
    for bit in 0..252 {
        let power = Fr::ONE.double_times(bit);
        lists.push(vec![(bit % 11, power), ((bit + 1) % 11, power - Fr::ONE)]);
    }
    // Terms that cancel, and terms that are equal: neutral elements and tangents within a batch.
    let s = order_less(77);
    lists.push(vec![(1, s), (1, -s)]);
    lists.push(vec![(1, s), (1, s)]);
    lists.push((0..64).map(|_| (2, Fr::ONE)).collect());
    lists.push(
        (0..64)
            .map(|i| (2, if i % 2 == 0 { Fr::ONE } else { order_less(1) }))
            .collect(),
    );
    // Dense, dense with repetitions, and dense but short.
    lists.push(
        (0..11)
            .map(|i| (i, order_less(3 + i as u64).inverse()))
            .collect(),
    );
    lists.push(
        (0..33)
            .map(|i| (i % 11, order_less(3 + i as u64).inverse()))
            .collect(),
    );
    lists.push(
        (0..11)
            .map(|i| (i, Fr::from(u128::MAX - i as u128)))
            .collect(),
    );
    lists.push((0..11).map(|i| (i, order_less(i as u64 + 1))).collect());
    check_fixed(&lists);
}

trait DoubleTimes {
    fn double_times(self, count: usize) -> Self;
}

impl DoubleTimes for Fr {
    fn double_times(self, count: usize) -> Self {
        (0..count).fold(self, |value, _| value.double())
    }
}

#[test]
fn many_lists_of_all_lengths() {
    let scalar = |i: usize| Fr::from(i as u64 + 1).inverse();
    let lists: Vec<Vec<Term>> = (0..300)
        .map(|list| {
            (0..list % 13)
                .map(|i| ((list + i) % 11, scalar(list * 13 + i)))
                .collect()
        })
        .collect();
    check_fixed(&lists);
}

/// Images of sums with and without a point that is kept, and of points that sums are added to; few, many, and with neutral elements among them.
#[test]
fn images_and_moved_points() {
    let (points, tables) = &*BASES;
    let terms = |i: u64| -> Vec<(usize, Limbs)> {
        let number = |k: u64| Fr::from(i + k) * Fr::from(0x9e37_79b9_7f4a_7c15_u64 << (k % 3));
        let terms = (0..i % 5).map(|k| ((i + 3 * k) as usize % 11, number(k).to_limbs()));
        terms.collect()
    };
    let sum = |terms: &[(usize, Limbs)]| {
        let terms: Vec<Term> = terms.iter().map(|&(i, n)| (i, Fr::reduced(n))).collect();
        naive(points, &terms)
    };
    for count in [0, 1, 3, 8, 40] {
        let lists: Vec<_> = (1..=count).map(terms).collect();
        let sums: Vec<_> = lists.iter().map(|list| sum(list)).collect();
        // Opposite to the sum, for one list.
        let before = |i: usize| match i {
            7 => -sums[7],
            i => point(i as u64 + 50),
        };
        let before: Vec<_> = (0..lists.len()).map(before).collect();
        let moving: Vec<_> = before.iter().copied().zip(lists.clone()).collect();
        for table in tables {
            let kept = table.table_points(&lists);
            let images = table.images(&lists, |list| (None, list));
            let number = |sum: &Point| sum.map_to_field().to_limbs();
            assert_eq!(images, sums.iter().map(number).collect::<Vec<_>>());
            let inputs: Vec<_> = kept.iter().zip(&lists).collect();
            let twice = table.images(&inputs, |(kept, list)| (Some(*kept), list));
            let double = |sum: &Point| sum.double().map_to_field().to_limbs();
            assert_eq!(twice, sums.iter().map(double).collect::<Vec<_>>());
            let each = || lists.iter().map(|list| list.iter().copied());
            assert_eq!(table.images_on_one_thread(each()), images);
            let (after, numbers) = table.moved_on_one_thread(&before, each());
            assert_eq!(numbers, Point::map_to_numbers(&after));
            let moved = table.moved(&moving);
            assert_eq!(after, moved.iter().map(|moved| moved.0).collect::<Vec<_>>());
            for ((before, sum), (after, image)) in before.iter().zip(&sums).zip(moved) {
                assert_eq!(after, *before + *sum);
                assert_eq!(image, after.map_to_field());
            }
        }
    }
}

/// Points kept as x and x/y with sums added: neutral elements before, afterwards and among the sums, and numbers that are no point's.
#[test]
fn moved_ratios() {
    let (_, tables) = &*BASES;
    let list = |i: usize, sparse: bool| -> Vec<(usize, Limbs)> {
        let number = |k: usize| Fr::from((i + k) as u64).inverse().to_limbs();
        let terms = if sparse && i % 4 == 3 { 0 } else { 2 };
        (1..=terms).map(|k| ((i + k) % 11, number(k))).collect()
    };
    for (count, sparse) in [(0, false), (1, false), (9, false), (40, false), (40, true)] {
        let lists: Vec<_> = (0..count).map(|i| list(i, sparse)).collect();
        for table in tables {
            let each = || lists.iter().map(|list| list.iter().copied());
            let sums = table.sums_of_numbers(&lists);
            let before = |i: usize| match i % 5 {
                1 => Point::IDENTITY,
                2 => -sums[i],
                _ => point(i as u64 + 50),
            };
            let before: Vec<_> = (0..count).map(before).collect();
            let after: Vec<_> = before.iter().zip(&sums).map(|(a, b)| *a + *b).collect();
            let mut ratios = Ratio::from_points(&before);
            let moved = table.ratios_moved_on_one_thread(&ratios, each());
            assert_eq!(moved, Ok(Ratio::from_points(&after)));
            if let Some(last) = ratios.last_mut() {
                let mut bytes = last.to_bytes();
                bytes[63] ^= 1;
                *last = Ratio::from_bytes(&bytes).unwrap();
                let moved = table.ratios_moved_on_one_thread(&ratios, each());
                assert_eq!(moved, Err(count - 1));
            }
        }
    }
}

/// Empty lists lie between long ones, more of which than are summed in one go; sums of their neighbours must stay theirs.
#[test]
fn empty_lists_among_many_terms() {
    let scalar = |i: usize| Fr::from(i as u64 + 1).inverse();
    let lists: Vec<Vec<Term>> = (0..120)
        .map(|list| match list % 4 {
            0 | 3 => vec![],
            _ => (0..11).map(|i| (i, scalar(list * 11 + i))).collect(),
        })
        .collect();
    check_fixed(&lists);
}

#[test]
fn variable_points_with_equal_neutral_and_opposite_ones() {
    check_variable(&[]);
    check_variable(&[(point(1), order_less(5))]);
    let (a, s) = (point(2), order_less(9).inverse());
    check_variable(&[
        (a, s),
        (a, s),
        (-a, s),
        (a, Fr::ZERO),
        (Point::IDENTITY, s),
        (a, -s),
    ]);
    for count in [3, 17, 40, 200, 1500] {
        let term = |i: u64| (point(i % 50), order_less(i + 2).inverse());
        let terms: Vec<_> = (0..count).map(term).collect();
        check_variable(&terms);
    }
}

#[test]
fn sizes_fit_their_budget_and_the_default_fits_150_megabytes() {
    assert!(
        Sizes::DEFAULT.bytes(259) <= 150_000_000,
        "{}",
        Sizes::DEFAULT.bytes(259)
    );
    for budget in [
        6_000_000,
        16_000_000,
        64_000_000,
        80_000_000,
        150_000_000,
        usize::MAX,
    ] {
        let sizes = Sizes::within(budget, 259);
        assert!(sizes.bytes(259) <= budget, "{sizes:?} for {budget}");
    }
    assert_eq!(Sizes::within(usize::MAX, 259), Sizes::DEFAULT);
    let others = |budget| Sizes::within(budget, 259).others;
    assert_eq!([others(80_000_000), others(64_000_000)], [8, 7]);
}

fn any_scalar() -> impl Strategy<Value = Fr> {
    prop_oneof![
        any::<[u64; 4]>().prop_map(Fr::reduced),
        any::<u64>().prop_map(Fr::from),
        any::<u64>().prop_map(order_less),
        any::<u128>().prop_map(Fr::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn fixed(lists in prop::collection::vec(prop::collection::vec((0usize..11, any_scalar()), 0..14), 0..6)) {
        check_fixed(&lists);
    }

    #[test]
    fn single(scalar in any_scalar(), seed in any::<u64>()) {
        let p = point(seed);
        for scalar in [scalar, scalar * order_less(1), Fr::ZERO, Fr::ONE, order_less(8)] {
            // The sum shows that the product is right in all coordinates.
            prop_assert_eq!(p * scalar + p, product(p, scalar) + p);
        }
    }

    #[test]
    fn variable(terms in prop::collection::vec((0u64..8, any_scalar()), 0..24)) {
        let terms: Vec<_> = terms.into_iter().map(|(i, scalar)| (point(i), scalar)).collect();
        check_variable(&terms);
    }

    #[test]
    fn many_sums_of_two(seeds in prop::collection::vec((0u64..8, 0u64..8), 0..40)) {
        let element = |seed| match seed {
            0 => Point::IDENTITY,
            1 => -point(2),
            _ => point(seed),
        };
        let others: Vec<_> = seeds.iter().map(|pair| element(pair.1)).collect();
        for wide in Wide::available() {
            let mut sums: Vec<_> = seeds.iter().map(|pair| element(pair.0)).collect();
            Point::add_all_on(wide, &mut sums, &others);
            let bytes = Point::to_bytes_batch_on(wide, &sums);
            for ((sum, pair), bytes) in sums.into_iter().zip(&seeds).zip(bytes) {
                let expected = element(pair.0) + element(pair.1);
                prop_assert_eq!(sum, expected);
                prop_assert_eq!(bytes, expected.to_bytes());
                // The next sum shows that all four coordinates are right.
                prop_assert_eq!(sum + point(9), expected + point(9));
            }
        }
    }

    #[test]
    fn fields_and_bytes(seeds in prop::collection::vec(any::<u64>(), 0..40)) {
        let mut points: Vec<_> = seeds.iter().map(|&seed| point(seed)).collect();
        points.push(Point::IDENTITY);
        let fields = Point::map_to_field_batch(&points);
        let bytes = Point::to_bytes_batch(&points);
        for ((point, field), bytes) in points.iter().zip(fields).zip(bytes) {
            prop_assert_eq!(point.map_to_field(), field);
            prop_assert_eq!(point.to_bytes(), bytes);
            prop_assert_eq!(Point::from_bytes(&bytes), Ok(*point));
        }
    }

    #[test]
    fn ratios(seeds in prop::collection::vec(any::<u64>(), 0..40), bit in 0usize..512) {
        let mut points: Vec<_> = seeds.iter().map(|&seed| point(seed)).collect();
        points.push(Point::IDENTITY);
        let read = |bytes: &[u8]| Ratio::from_bytes(bytes)?.to_point();
        for (point, ratio) in points.iter().zip(Ratio::from_points(&points)) {
            let mut bytes = ratio.to_bytes();
            prop_assert_eq!(Ratio::from_bytes(&bytes), Ok(ratio));
            prop_assert_eq!(ratio.image(), point.map_to_field().to_limbs());
            let again = read(&bytes).unwrap();
            prop_assert_eq!(again, *point);
            // Sums need all four coordinates.
            prop_assert_eq!(again + points[0], *point + points[0]);
            prop_assert_eq!(again.to_bytes(), point.to_bytes());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(read(&bytes).is_err());
        }
        prop_assert!(read(&[0; 63]).is_err());
    }
}
