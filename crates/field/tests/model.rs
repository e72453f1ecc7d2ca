//! Every operation against big integers, on edge values and at random.

use arbor_field::{
    Base, Element, Fp, Fr, Limbs, Modulus, Scalar, are_squares, divide_all, divide_all_to_limbs,
    invert_all, reduce_all, sqrt, sqrt_all, to_limbs_all,
};
use num_bigint::BigUint;
use proptest::prelude::*;

fn big(limbs: &Limbs) -> BigUint {
    BigUint::from_slice(
        &limbs
            .iter()
            .flat_map(|limb| [*limb as u32, (limb >> 32) as u32])
            .collect::<Vec<_>>(),
    )
}

fn prime<M: Modulus>() -> BigUint {
    big(&M::MODULUS)
}

fn value<M: Modulus>(element: Element<M>) -> BigUint {
    BigUint::from_bytes_le(&element.to_le_bytes())
}

fn element<M: Modulus>(number: &BigUint) -> Element<M> {
    let mut bytes = (number % prime::<M>()).to_bytes_le();
    bytes.resize(32, 0);
    Element::from_le_bytes(&bytes.try_into().expect("32 bytes")).expect("reduced")
}

/// 0, 1, 2, the prime less 1 and 2, halves, powers of two beside limb borders, and what looks extreme in Montgomery form.
fn edges<M: Modulus>() -> Vec<Element<M>> {
    let p = prime::<M>();
    let one = BigUint::from(1u32);
    let mut numbers: Vec<BigUint> = vec![
        0u32.into(),
        1u32.into(),
        2u32.into(),
        &p - 1u32,
        &p - 2u32,
        (&p - 1u32) / 2u32,
        (&p + 1u32) / 2u32,
    ];
    for bit in [31, 32, 51, 52, 63, 64, 127, 128, 191, 192, 208, 251, 252] {
        numbers.push(&one << bit);
        numbers.push((&one << bit) - 1u32);
    }
    // r^-1 times small numbers have small Montgomery forms.
    let r_inverse = (&one << 256u32).modpow(&(&p - 2u32), &p);
    numbers.push(r_inverse.clone());
    numbers.push((&p - 1u32) * &r_inverse);
    numbers.iter().map(element).collect()
}

fn check_pair<M: Modulus>(a: Element<M>, b: Element<M>) {
    let p = prime::<M>();
    let (x, y) = (value(a), value(b));
    assert_eq!(value(a + b), (&x + &y) % &p, "{a:?} + {b:?}");
    assert_eq!(value(a - b), (&x + &p - &y) % &p, "{a:?} - {b:?}");
    assert_eq!(value(a * b), (&x * &y) % &p, "{a:?} * {b:?}");
}

fn check_one<M: Modulus>(a: Element<M>) {
    let p = prime::<M>();
    let x = value(a);
    assert_eq!(value(-a), (&p - &x) % &p);
    assert_eq!(value(a.square()), (&x * &x) % &p);
    assert_eq!(value(a.double()), (&x * 2u32) % &p);
    assert_eq!(
        value(a.inverse()),
        x.modpow(&(&p - 2u32), &p),
        "inverse of {a:?}"
    );
    assert_eq!(a.is_large(), x > (&p - 1u32) / 2u32);
    let symbol = x.modpow(&((&p - 1u32) / 2u32), &p);
    let legendre = match () {
        () if symbol == 0u32.into() => 0,
        () if symbol == 1u32.into() => 1,
        () => -1,
    };
    assert_eq!(a.legendre(), legendre, "symbol of {a:?}");
    assert_eq!(a.legendre_by_power(), legendre);
    assert_eq!(Element::from_be_bytes(&a.to_be_bytes()), Ok(a));
}

#[test]
fn edge_values_in_all_pairs() {
    fn check<M: Modulus>() {
        let edges = edges::<M>();
        for &a in &edges {
            check_one(a);
            for &b in &edges {
                check_pair(a, b);
            }
        }
    }
    check::<Base>();
    check::<Scalar>();
}

#[test]
fn encodings_at_and_above_the_prime_are_refused_or_reduced() {
    fn check<M: Modulus>() {
        let p = prime::<M>();
        for excess in [0u32, 1, 77] {
            let mut bytes: [u8; 32] = (&p + excess).to_bytes_le().try_into().expect("32 bytes");
            assert_eq!(
                value(Element::<M>::from_le_bytes_reduced(&bytes)),
                excess.into()
            );
            let error = Element::<M>::from_le_bytes(&bytes).expect_err("not canonical");
            assert_eq!(error.field, M::NAME);
            bytes.reverse();
            assert_eq!(Element::<M>::from_be_bytes(&bytes), Err(error));
        }
        let all_ones = Element::<M>::from_le_bytes_reduced(&[0xff; 32]);
        let expected = ((BigUint::from(1u32) << 256u32) - 1u32) % &p;
        assert_eq!(value(all_ones), expected);
    }
    check::<Base>();
    check::<Scalar>();
}

#[test]
fn constants_are_those_of_the_specification() {
    // SPECS.md, section 1.
    let n: BigUint =
        "13108968793781547619861935127046491459309155893440570251786403306729687672801"
            .parse()
            .expect("a number");
    assert_eq!(prime::<Scalar>(), n);
    assert_eq!(
        format!("{:x}", prime::<Base>()),
        "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001"
    );
    assert_eq!((Base::BITS, Scalar::BITS), (255, 253));
}

#[test]
fn batches_of_inverses_skip_zeros() {
    fn check<M: Modulus>() {
        let some: Vec<Element<M>> = edges().into_iter().filter(|a| !a.is_zero()).collect();
        let many: Vec<_> = some.iter().copied().cycle().take(75).collect();
        // Turn by turn, then in lanes: whole vectors, and one with a rest; then with zeros.
        for length in [0, 1, 31, 32, 75] {
            for zero in [None, Some(0), Some(length / 2)] {
                let mut batch = many[..length].to_vec();
                if let Some(place) = zero {
                    batch.insert(place, Element::ZERO);
                }
                let expected: Vec<_> = batch.iter().map(|a| a.inverse()).collect();
                invert_all(&mut batch);
                assert_eq!(batch, expected);
            }
        }
    }
    check::<Base>();
    check::<Scalar>();
}

#[test]
fn batches_of_divisions() {
    fn check<M: Modulus>() {
        let edges = edges::<M>();
        for length in (0..20).chain([edges.len()]) {
            let with_zeros = edges.iter().zip(edges.iter().rev()).take(length);
            let fractions: Vec<_> = with_zeros.map(|(&n, &d)| (n, d)).collect();
            let some: Vec<_> = fractions
                .iter()
                .copied()
                .filter(|f| !f.1.is_zero())
                .collect();
            for fractions in [fractions, some] {
                let expected: Vec<_> = fractions.iter().map(|f| f.0 * f.1.inverse()).collect();
                assert_eq!(divide_all(&fractions), expected);
                let numbers: Vec<Limbs> = expected.iter().map(|x| x.to_limbs()).collect();
                assert_eq!(to_limbs_all(&expected), numbers);
                assert_eq!(reduce_all::<M>(&numbers), expected);
                let large = vec![[u64::MAX; 4]; expected.len()];
                let reduced = vec![Element::<M>::reduced([u64::MAX; 4]); expected.len()];
                assert_eq!(reduce_all::<M>(&large), reduced);
                let numbers = divide_all_to_limbs(&fractions);
                assert_eq!(
                    numbers,
                    expected.iter().map(|q| q.to_limbs()).collect::<Vec<_>>()
                );
            }
        }
    }
    check::<Base>();
    check::<Scalar>();
}

#[test]
fn roots_of_edge_values() {
    for a in edges::<Base>() {
        check_root(a);
        check_root(a.square());
    }
    // Elements of every order 2^k, whose logarithms have every length.
    let mut root = Fp::from(7u64).pow(&{
        let p = Base::MODULUS;
        [
            p[0] >> 32 | p[1] << 32,
            p[1] >> 32 | p[2] << 32,
            p[2] >> 32 | p[3] << 32,
            p[3] >> 32,
        ]
    });
    for _ in 0..33 {
        check_root(root);
        root = root.square();
    }
    assert_eq!(root, Fp::ONE);
}

#[test]
fn batches_of_roots() {
    let numbers: Vec<_> = edges::<Base>();
    for length in (0..20).chain([numbers.len()]) {
        let squares = are_squares(&numbers[..length]);
        for (a, is_square) in numbers.iter().zip(squares) {
            assert_eq!(is_square, a.legendre() == 1, "{a:?}");
        }
        let roots = sqrt_all(&numbers[..length]);
        for (a, root) in numbers.iter().zip(&roots) {
            assert_eq!(root.map(Fp::square), sqrt(*a).map(Fp::square));
        }
        assert_eq!(roots.len(), length);
    }
}

fn check_root(a: Fp) {
    match sqrt(a) {
        Some(root) => assert_eq!(root.square(), a),
        None => assert_eq!(a.legendre_by_power(), -1, "{a:?} has a root"),
    }
}

fn any_element<M: Modulus>() -> impl Strategy<Value = Element<M>> {
    any::<[u64; 4]>().prop_map(Element::reduced)
}

proptest! {
    #[test]
    fn base_field(a in any_element::<Base>(), b in any_element::<Base>()) {
        check_pair(a, b);
        check_one(a);
        check_root(a);
        check_root(a.square());
    }

    #[test]
    fn scalar_field(a in any_element::<Scalar>(), b in any_element::<Scalar>()) {
        check_pair(a, b);
        check_one(a);
    }

    #[test]
    fn inverse_times_value_is_one(a in any_element::<Base>(), b in any_element::<Scalar>(), shift in 0usize..256) {
        // Short numbers end the division steps early.
        let short = Fr::reduced([b.to_limbs()[0] >> (shift % 64), 0, 0, 0]);
        for b in [b, short] {
            prop_assert!(b.is_zero() || b * b.inverse() == Fr::ONE);
            prop_assert_eq!(b.legendre(), b.legendre_by_power());
        }
        prop_assert!(a.is_zero() || a * a.inverse() == Fp::ONE);
    }

    #[test]
    fn halves_of_values(half in any::<[u8; 16]>()) {
        prop_assert_eq!(value(Fr::from_le_half(&half)), BigUint::from_bytes_le(&half));
    }
}
