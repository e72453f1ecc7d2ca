//! All lanes that this processor has against single elements.

use arbor_field::{
    Base, Element, Job, LANES, Lanes, Limbs, Modulus, SUMMED, Scalar, Wide, invert_lanes,
};
use proptest::prelude::*;
use std::array;

/// Lanes to negate.
const SOME: u8 = 0b1001_0110;

type Eight<M> = [Element<M>; LANES];

/// Every operation on one pair of vectors; and chains that drive the lazily reduced values to their bounds.
struct All<M: Modulus>(Eight<M>, Eight<M>, Eight<M>);

impl<M: Modulus> Job<M> for All<M> {
    type Output = Vec<(&'static str, Eight<M>)>;

    #[inline(always)]
    fn run<L: Lanes<M>>(self, lanes: L) -> Self::Output {
        let enter = |eight: &Eight<M>| {
            let stored: [Limbs; LANES] = array::from_fn(|lane| lanes.enter(eight[lane]));
            lanes.load(stored.each_ref())
        };
        let leave = |value: L::Tight| lanes.store(value).map(|stored| lanes.leave(&stored));
        let (a, b, c) = (enter(&self.0), enter(&self.1), enter(&self.2));
        let zero = lanes.splat(&[0; 4]);
        let largest = lanes.tighten(lanes.sub(zero, zero));
        let mut results = vec![
            ("load and store", leave(a)),
            ("add", leave(lanes.tighten(lanes.add(a, b)))),
            ("sub", leave(lanes.tighten(lanes.sub(a, b)))),
            ("sub two", leave(lanes.tighten(lanes.sub_two(a, b, c)))),
            ("mul", leave(lanes.times(a, b))),
            ("square", leave(lanes.square(a))),
            ("sum times", leave(lanes.mul(lanes.add(a, b), c))),
            ("difference times", leave(lanes.mul(lanes.sub(a, b), c))),
            ("a multiple of the prime", leave(lanes.times(largest, a))),
            ("splat", leave(lanes.splat(&lanes.enter(self.0[0])))),
        ];
        let [product, square] = lanes.times_two([a, b], [c, b]);
        let [sum_times, difference_times] =
            lanes.mul_two([lanes.add(a, b), lanes.sub(a, b)], [c, a]);
        let begun = lanes.begin(lanes.sub(a, b), c);
        let (first, begun) = lanes.turn(begun, lanes.add(a, c), b);
        let (second, begun) = lanes.turn_square(begun, a);
        let (third, begun) = lanes.turn_square(begun, b);
        let (fourth, _) = lanes.turn(begun, lanes.add(a, c), b);
        results.extend([
            ("two products, first", leave(product)),
            ("two products, second", leave(square)),
            ("two loose products, first", leave(sum_times)),
            ("two loose products, second", leave(difference_times)),
            ("product begun alone", leave(lanes.settle(first))),
            ("product less", leave(lanes.less(second, c))),
            ("square less", leave(lanes.less(third, b))),
            ("square less two", leave(lanes.less_two(fourth, c, a))),
            ("negated here and there", leave(lanes.negate_where(a, SOME))),
            (
                "negated negative",
                leave(lanes.negate_where(lanes.negate_where(a, !0), !0)),
            ),
            ("left together", lanes.leave_all(a)),
            ("entered together", leave(lanes.enter_all(self.0))),
            (
                "sum of products",
                leave(lanes.total(lanes.add_product(
                    lanes.add_product(lanes.nothing(), a, b),
                    b,
                    c,
                ))),
            ),
        ]);
        let mut x = a;
        for _ in 0..40 {
            x = lanes.tighten(lanes.sub_two(lanes.mul(lanes.sub(x, b), x), x, c));
            x = lanes.tighten(lanes.add(x, x));
        }
        results.push(("chain", leave(x)));
        let inverses = invert_lanes(lanes, a, |element| lanes.enter(element));
        results.push(("inverses", inverses.map_or([Element::ZERO; LANES], leave)));
        results
    }
}

/// Operations on stored residues just below two primes, as large as tight values may be, where the lanes are lazy.
struct Extremes;

impl<M: Modulus> Job<M> for Extremes {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<M>>(self, lanes: L) {
        if L::RADIX_BITS == 256 {
            return;
        }
        // Two primes less 1, ..., 8.
        let carry = |i: usize| if i == 0 { 0 } else { M::MODULUS[i - 1] >> 63 };
        let twice: Limbs = array::from_fn(|i| M::MODULUS[i] << 1 | carry(i));
        let near: [Limbs; LANES] = array::from_fn(|lane| {
            let mut below = twice;
            below[0] -= lane as u64 + 1;
            below
        });
        let near_element = near.map(|stored| lanes.leave(&stored));
        let (x, zero) = (lanes.load(near.each_ref()), lanes.splat(&[0; 4]));
        let leave = |value: L::Tight| lanes.store(value).map(|stored| lanes.leave(&stored));
        let check = |what: &str, found: L::Tight, expected: &dyn Fn(Element<M>) -> Element<M>| {
            assert_eq!(leave(found), near_element.map(expected), "{what}");
        };
        check("add", lanes.tighten(lanes.add(x, x)), &|x| x + x);
        check("sub", lanes.tighten(lanes.sub(zero, x)), &|x| -x);
        check("sub two", lanes.tighten(lanes.sub_two(zero, x, x)), &|x| {
            -(x + x)
        });
        check("mul", lanes.times(x, x), &|x| x * x);
        check("sum times", lanes.mul(lanes.add(x, x), x), &|x| (x + x) * x);
        check("negative times", lanes.mul(lanes.sub(zero, x), x), &|x| {
            -(x * x)
        });
        check("large times", lanes.mul(lanes.sub(x, zero), x), &|x| x * x);
        check(
            "negatives times",
            lanes.mul(lanes.sub_two(zero, x, x), x),
            &|x| -(x + x) * x,
        );
        check(
            "larger times",
            lanes.mul(lanes.sub_two(x, zero, zero), x),
            &|x| x * x,
        );
        let twice = lanes.negate_where(zero, !0);
        check("twice the prime times", lanes.times(twice, x), &|_| {
            Element::ZERO
        });
        let begun = lanes.begin(lanes.sub_two(zero, x, x), x);
        let (product, begun) = lanes.turn_square(begun, x);
        check("negatives begun", lanes.settle(product), &|x| -(x + x) * x);
        check("negatives times, less", lanes.less(product, x), &|x| {
            -(x + x) * x - x
        });
        let (square, begun) = lanes.turn(begun, lanes.sub_two(x, zero, zero), x);
        check("square less two", lanes.less_two(square, x, x), &|x| {
            x * x - x - x
        });
        let (product, begun) = lanes.turn(begun, lanes.loosen(zero), twice);
        check("larger begun", lanes.settle(product), &|x| x * x);
        let (nothing, _) = lanes.turn_square(begun, zero);
        check("nothing less two", lanes.less_two(nothing, x, x), &|x| {
            -(x + x)
        });
        let mut sum = lanes.nothing();
        for _ in 0..SUMMED {
            sum = lanes.add_product(sum, twice, x);
        }
        check("many times the prime", lanes.total(sum), &|_| Element::ZERO);
        let mut sum = lanes.nothing();
        for _ in 0..SUMMED {
            sum = lanes.add_product(sum, x, x);
        }
        let count = Element::from(SUMMED as u64);
        check("many products", lanes.total(sum), &|x| x * x * count);
        // Fully reduced: one prime less, for those that are not below it.
        let less_one = |a: Limbs| -> Limbs {
            let mut borrow = false;
            array::from_fn(|i| {
                let (limb, first) = a[i].overflowing_sub(M::MODULUS[i]);
                let (limb, second) = limb.overflowing_sub(borrow.into());
                borrow = first | second;
                limb
            })
        };
        assert_eq!(lanes.store_reduced(x), near.map(less_one));
        let mut around = [M::MODULUS; LANES];
        around[1][0] -= 1;
        around[2][0] += 1;
        around[3] = [0; 4];
        around[4] = [1, 0, 0, 0];
        let mut reduced = [[0; 4]; LANES];
        (reduced[1], reduced[2], reduced[4]) = (around[1], [1, 0, 0, 0], around[4]);
        assert_eq!(lanes.store_reduced(lanes.load(around.each_ref())), reduced);
        let larger = lanes.tighten(lanes.sub_two(x, zero, zero));
        check("larger", larger, &|x| x);
    }
}

#[test]
fn values_at_the_bounds() {
    for wide in Wide::available() {
        wide.run::<Base, _>(Extremes);
        wide.run::<Scalar, _>(Extremes);
    }
}

fn expected<M: Modulus>(All(a, b, c): &All<M>) -> Vec<Eight<M>> {
    let each = |f: &dyn Fn(Element<M>, Element<M>, Element<M>) -> Element<M>| {
        array::from_fn(|i| f(a[i], b[i], c[i]))
    };
    vec![
        *a,
        each(&|a, b, _| a + b),
        each(&|a, b, _| a - b),
        each(&|a, b, c| a - b - c),
        each(&|a, b, _| a * b),
        each(&|a, _, _| a.square()),
        each(&|a, b, c| (a + b) * c),
        each(&|a, b, c| (a - b) * c),
        each(&|_, _, _| Element::ZERO),
        [a[0]; LANES],
        each(&|a, _, c| a * c),
        each(&|_, b, _| b * b),
        each(&|a, b, c| (a + b) * c),
        each(&|a, b, _| (a - b) * a),
        each(&|a, b, c| (a - b) * c),
        each(&|a, b, c| (a + c) * b - c),
        each(&|a, b, _| a * a - b),
        each(&|a, b, c| b * b - c - a),
        array::from_fn(|i| if SOME >> i & 1 == 1 { -a[i] } else { a[i] }),
        *a,
        *a,
        *a,
        each(&|a, b, c| a * b + b * c),
        each(&|a, b, c| {
            (0..40).fold(a, |x, _| {
                let x = (x - b) * x - x - c;
                x + x
            })
        }),
        // None at all, if one is zero.
        match a.iter().any(Element::is_zero) {
            true => [Element::ZERO; LANES],
            false => a.map(Element::inverse),
        },
    ]
}

fn check<M: Modulus>(a: Eight<M>, b: Eight<M>, c: Eight<M>) {
    let expected = expected(&All(a, b, c));
    for wide in Wide::available() {
        let results = wide.run(All(a, b, c));
        for ((what, result), expected) in results.into_iter().zip(&expected) {
            assert_eq!(result, *expected, "{what} on {}", wide.name());
        }
    }
}

#[test]
fn edge_values_in_all_pairs() {
    fn edges<M: Modulus>() {
        let minus = |n: u64| -Element::<M>::from(n);
        let edges = [
            Element::ZERO,
            Element::ONE,
            minus(1),
            minus(2),
            Element::from(u64::MAX),
            Element::reduced([0, 0, 0, u64::MAX >> 4]),
            Element::reduced([u64::MAX; 4]),
            minus(1) * Element::from(2u64).inverse(),
        ];
        for shift in 0..LANES {
            for other in 0..LANES {
                let rotated = |by: usize| array::from_fn(|i| edges[(i + by) % LANES]);
                check(edges, rotated(shift), rotated(other));
            }
        }
    }
    edges::<Base>();
    edges::<Scalar>();
}

#[test]
fn the_portable_lanes_are_there_and_every_kind_has_a_name_of_its_own() {
    let all = Wide::available();
    assert_eq!(all[0], Wide::PORTABLE);
    assert!(all.contains(&Wide::detect()));
    let names: std::collections::HashSet<_> = all.iter().map(|wide| wide.name()).collect();
    assert_eq!(names.len(), all.len());
}

fn eight<M: Modulus>() -> impl Strategy<Value = Eight<M>> {
    any::<[[u64; 4]; LANES]>().prop_map(|numbers| numbers.map(Element::reduced))
}

proptest! {
    #[test]
    fn base_field(a in eight::<Base>(), b in eight::<Base>(), c in eight::<Base>()) {
        check(a, b, c);
    }

    #[test]
    fn scalar_field(a in eight::<Scalar>(), b in eight::<Scalar>(), c in eight::<Scalar>()) {
        check(a, b, c);
    }
}
