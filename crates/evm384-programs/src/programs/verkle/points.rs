//! Straight-line arithmetic on the curve.

use super::D;
use super::memory::Memory;
use arbor_evm384::build::tower::Fp;
use arbor_evm384::build::{Body, Layout, Routine, Slots, Weights};
use arbor_evm384::reference::U384;

/// Straight-line arithmetic: Hisil, Wong, Carter and Dawson ("Twisted Edwards curves revisited", 2008), for a = -5.
pub(super) fn routines(layout: &mut Layout, m: Memory, often: Weights) -> Vec<Routine> {
    let one = layout.number(U384::from(1));
    let d = layout.number(D);
    let radix_squared = layout.constant(layout.montgomery(layout.montgomery(U384::from(1))));
    let plain_one = layout.constant(U384::from(1));
    let zero = layout.zero();
    let routine = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, Weights::SIZE, write);
    let hot = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, often, write);
    vec![
        routine("identity", &|b| {
            b.store(m.identity.part::<1>(1), b.input(one));
            b.store(m.identity.part::<1>(2), b.input(one));
        }),
        routine("product", &|b| {
            let [x, y] = [0, 1].map(|index| b.load::<Fp<'_>, 1>(m.addend.part(index)));
            b.store(m.addend.part::<1>(2), x * y * b.input(d));
        }),
        routine("read", &|b| {
            let factor = b.input(radix_squared);
            let [x, y, root] = m.raw.each().map(|slot| b.input(slot) * factor);
            let (xx, yy) = (x.square(), y.square());
            let other = b.input(one) + times_five(xx);
            let product = x * y * b.input(d);
            b.store(m.zeros.part::<1>(0), yy - other - product * (x * y));
            b.store(m.zeros.part::<1>(1), root.square() - other);
            store(b, m.addend, [x, y, product]);
        }),
        routine("opposite", &|b| {
            for index in [0, 2] {
                let slot: Slots<1> = m.addend.part(index);
                b.store(slot, -b.load::<Fp<'_>, 1>(slot));
            }
        }),
        hot("double", &|b| {
            let [x, y, z, _] = load(b, m.total);
            let (xx, yy) = (x.square(), y.square());
            let e = if b.choose() {
                (x * y).double()
            } else {
                (x + y).square() - (xx + yy)
            };
            let axx = times_five(xx);
            let (g, h) = (yy - axx, yy + axx);
            // F and H have the opposite signs of the formulas', and so have all four coordinates.
            let f = z.square().double() - g;
            store(b, m.total, [e * f, g * h, f * g, e * h]);
        }),
        hot("add to the bucket", &|b| {
            let [x, y, product] = m.addend.each().map(|slot| b.input(slot));
            let sum = added(load(b, m.bucket), [x, y], product, None);
            store(b, m.bucket, sum);
        }),
        hot("add the bucket", &|b| {
            let [x, y, z, t] = load(b, m.bucket);
            let sum = added(load(b, m.running), [x, y], t * b.input(d), Some(z));
            store(b, m.running, sum);
        }),
        hot("add the running sum", &|b| {
            let [x, y, z, t] = load(b, m.running);
            let sum = added(load(b, m.total), [x, y], t * b.input(d), Some(z));
            store(b, m.total, sum);
        }),
        routine("denominator", &|b| {
            b.store(m.powers.part::<1>(0), b.load::<Fp<'_>, 1>(m.total.part(2)));
        }),
        routine("affine", &|b| {
            let [x, y, ..] = load(b, m.total);
            let inverse: Fp<'_> = b.load(m.inverse);
            let (x, y) = (x * inverse, y * inverse);
            store(b, m.addend, [x, y, x * y * b.input(d)]);
            store(b, m.plain, [x, y].map(|number| number * b.input(plain_one)));
        }),
    ]
}

fn load(body: &Body, from: Slots<4>) -> [Fp<'_>; 4] {
    from.each().map(|slot| body.input(slot))
}

fn store<'b, const N: usize>(body: &'b Body, to: Slots<N>, values: [Fp<'b>; N]) {
    for (index, value) in values.into_iter().enumerate() {
        body.store(to.part::<1>(index), value);
    }
}

fn times_five(x: Fp<'_>) -> Fp<'_> {
    x.double().double() + x
}

/// The point in extended coordinates plus that of (x, y) and d T, with a Z if that is not one ("add-2008-hwcd").
fn added<'b>(
    [x1, y1, z1, t1]: [Fp<'b>; 4],
    [x2, y2]: [Fp<'b>; 2],
    dt2: Fp<'b>,
    z2: Option<Fp<'b>>,
) -> [Fp<'b>; 4] {
    let (a, b, c) = (x1 * x2, y1 * y2, t1 * dt2);
    let d = z2.map_or(z1, |z2| z1 * z2);
    let e = (x1 + y1) * (x2 + y2) - (a + b);
    let (f, g) = (d - c, d + c);
    let h = b + times_five(a);
    [e * f, g * h, f * g, e * h]
}
