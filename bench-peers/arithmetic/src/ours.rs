//! Arbor's rows.

use arbor_banderwagon::{Fr, Point, sum_of_products};
use arbor_field::{Base, Fp, Job, LANES, Lanes, Limbs, Wide, invert_all, sqrt, sqrt_all};

use crate::{COUNT, DIVISOR, Rows, TERMS};

fn bytes(elements: impl IntoIterator<Item = Fp>) -> Vec<u8> {
    elements
        .into_iter()
        .flat_map(|element| element.to_be_bytes())
        .collect()
}

/// The even one of two roots.
fn even(root: Option<Fp>) -> Fp {
    let root = root.expect("a square");
    match root.to_le_bytes()[0] % 2 {
        0 => root,
        _ => -root,
    }
}

fn images(points: &[Point]) -> Vec<u8> {
    let images = Point::map_to_field_batch(points);
    images
        .iter()
        .flat_map(|image| image.to_be_bytes())
        .collect()
}

pub fn rows(rows: &mut Rows) {
    let step = Fp::from(DIVISOR).inverse();
    let a: Vec<Fp> = (1..=COUNT as u64).map(|i| Fp::from(i) * step).collect();
    let b = a[17];
    let squares: Vec<Fp> = a.iter().map(|x| x.square()).collect();
    rows.time(
        "field/mul",
        COUNT,
        || a.iter().map(|x| *x * b).collect::<Vec<_>>(),
        bytes,
    );
    rows.time(
        "field/mul, each on the last",
        COUNT,
        || (0..COUNT).fold(a[3], |x, _| x * b),
        |x| bytes([x]),
    );
    let wide = Wide::detect();
    let stored = wide.run(Enter(&a));
    let products = || wide.run(Products(&stored, &stored[17]));
    rows.time("field/mul, in lanes", COUNT, products, |products| {
        bytes(wide.run(Leave(products)))
    });
    rows.time(
        "field/square",
        COUNT,
        || a.iter().map(|x| x.square()).collect::<Vec<_>>(),
        bytes,
    );
    rows.time(
        "field/inverse",
        COUNT,
        || a.iter().map(|x| x.inverse()).collect::<Vec<_>>(),
        bytes,
    );
    let inverted = || {
        let mut all = a.clone();
        invert_all(&mut all);
        all
    };
    rows.time("field/inverse, together", COUNT, inverted, bytes);
    let symbols = |symbols: Vec<i32>| symbols.iter().map(|s| *s as u8).collect();
    rows.time(
        "field/legendre",
        COUNT,
        || a.iter().map(|x| x.legendre()).collect::<Vec<_>>(),
        symbols,
    );
    let roots = |roots: Vec<Option<Fp>>| bytes(roots.into_iter().map(even));
    rows.time(
        "field/sqrt",
        COUNT,
        || squares.iter().map(|x| sqrt(*x)).collect(),
        roots,
    );
    rows.time("field/sqrt, together", COUNT, || sqrt_all(&squares), roots);

    let scalar_step = Fr::from(DIVISOR).inverse();
    let scalars: Vec<Fr> = (1..=TERMS as u64)
        .map(|i| Fr::from(i) * scalar_step)
        .collect();
    let points: Vec<Point> = (1..=TERMS as u64)
        .map(|i| Point::generator() * Fr::from(i))
        .collect();
    let sum = || points.iter().fold(points[7], |sum, point| sum + *point);
    rows.time("curve/add", TERMS, sum, |p| images(&[p]));
    rows.time(
        "curve/double",
        256,
        || points[7].double_times(256),
        |p| images(&[p]),
    );
    let multiples = || scalars.iter().map(|s| points[7] * *s).collect::<Vec<_>>();
    rows.time("curve/multiple", TERMS, multiples, |all| images(&all));
    rows.time(
        "curve/256 products' sum",
        1,
        || sum_of_products(&points, &scalars),
        |p| images(&[p]),
    );
}

/// Elements in the stored form of lanes.
struct Enter<'a>(&'a [Fp]);

impl Job<Base> for Enter<'_> {
    type Output = Vec<Limbs>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        self.0.iter().map(|element| lanes.enter(*element)).collect()
    }
}

/// Elements of stored forms.
struct Leave(Vec<Limbs>);

impl Job<Base> for Leave {
    type Output = Vec<Fp>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        self.0.iter().map(|stored| lanes.leave(stored)).collect()
    }
}

/// All stored residues times one, eight at a time.
struct Products<'a>(&'a [Limbs], &'a Limbs);

impl Job<Base> for Products<'_> {
    type Output = Vec<Limbs>;

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let b = lanes.splat(self.1);
        let mut results = Vec::with_capacity(self.0.len());
        for chunk in self.0.chunks_exact(LANES) {
            let a: [&Limbs; LANES] = std::array::from_fn(|i| &chunk[i]);
            results.extend(lanes.store(lanes.times(lanes.load(a), b)));
        }
        results
    }
}
