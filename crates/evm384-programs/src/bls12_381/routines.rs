//! The straight-line arithmetic of all contracts.

use super::constants::{
    beta, frobenius, frobenius_twice, inverse, inverse_frobenius, montgomery, radix_squared,
};
use super::points::{Affine1, Affine2, Jacobian1, Projective2};
use super::variables::Variables;
use arbor_evm384::build::tower::{Element, Fp, Fp2, Fp6, Fp12, Line};
use arbor_evm384::build::{Body, Layout, Routine, Slot, Slots, Weights};
use arbor_evm384::reference::U384;

/// All routines of all parts; what a contract does not call is not in its code.
pub(super) fn routines(layout: &mut Layout, v: Variables, often: Weights) -> Vec<Routine> {
    let zero = layout.zero();
    let one = layout.constant(montgomery(U384::ONE));
    let radix_squared = layout.constant(radix_squared());
    let four = layout.constant(montgomery(U384::from(4)));
    let nine = layout.constant(montgomery(U384::from(9)));
    let three = layout.constant(montgomery(U384::from(3)));
    let third = layout.constant(montgomery(inverse(U384::from(3))));
    let beta = layout.constant(montgomery(beta()));
    let number = |layout: &mut Layout, value: [U384; 2]| value.map(|part| layout.constant(part));
    let once = [1, 2, 3, 4, 5].map(|k| (k, number(layout, frobenius(k as u64).montgomery())));
    let twice = [1, 2, 4, 5].map(|k| (k, layout.constant(montgomery(frobenius_twice(k as u64)))));
    let untwist_x = number(layout, inverse_frobenius(2).montgomery());
    let untwist_y = number(layout, inverse_frobenius(3).montgomery());
    // Behind all others, because not every contract reads them.
    let twelve = layout.constant(montgomery(U384::from(12)));
    let ninth = layout.constant(montgomery(inverse(U384::from(9))));

    let routine = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, Weights::SIZE, write);
    let hot = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, often, write);
    vec![
        routine("begin", &|b| {
            let q: Affine2 = b.load(v.q);
            let p: Affine1 = b.load(v.p);
            store_point(b, v, q, b.input(one));
            store_tangent(b, v, p);
        }),
        hot("square", &|b| {
            b.store(v.f, b.load::<Fp12, 12>(v.f).square());
        }),
        hot("multiply", &|b| {
            b.store(v.f, b.load::<Fp12, 12>(v.f) * b.load::<Fp12, 12>(v.g));
        }),
        hot("times line", &|b| {
            let line: Line = b.load(v.line);
            b.store(v.f, b.load::<Fp12, 12>(v.f).times_line(line));
        }),
        routine("conjugate", &|b| {
            b.store(v.f, b.load::<Fp12, 12>(v.f).conjugate());
        }),
        hot("cyclotomic square", &|b| {
            b.store(v.f, b.load::<Fp12, 12>(v.f).tripled_cyclotomic_square());
        }),
        hot("double step", &|b| {
            let t: Projective2 = b.load(v.t);
            let (t, line) = t.double(b.load(v.tangent), b.input(twelve));
            b.store(v.t, t);
            b.store(v.line, line);
        }),
        routine("addition step", &|b| {
            let t: Projective2 = b.load(v.t);
            let (t, line) = t.add(b.load(v.q), b.load(v.p));
            b.store(v.t, t);
            b.store(v.line, line);
        }),
        routine("norm of the norm", &|b| {
            let x: Fp6 = b.load(v.f.part(0));
            let adjoint = Fp6 {
                c0: x.c0.square() - (x.c1 * x.c2).times_xi(),
                c1: x.c2.square().times_xi() - x.c0 * x.c1,
                c2: x.c1.square() - x.c0 * x.c2,
            };
            let across = (x.c2 * adjoint.c1 + x.c1 * adjoint.c2).times_xi();
            let norm = x.c0 * adjoint.c0 + across;
            b.store(v.adjoint, adjoint);
            b.store(v.norm, norm);
            b.store(v.powers.part(0), norm.c0.square() + norm.c1.square());
        }),
        routine("inverse of the norm", &|b| {
            let inverse = b
                .load::<Fp2, 2>(v.norm)
                .conjugate()
                .scale(b.load(v.inverse));
            b.store(v.f.part(0), b.load::<Fp6, 6>(v.adjoint).scale(inverse));
            b.store(v.f.part(6), Fp6::zero(b));
        }),
        routine("Frobenius map", &|b| {
            let mut parts = b.load::<Fp12, 12>(v.g).powers_of_w();
            for (k, [c0, c1]) in once {
                let [c0, c1] = [c0, c1].map(|slot| b.input(slot));
                parts[k] = parts[k].conjugate() * Fp2 { c0, c1 };
            }
            parts[0] = parts[0].conjugate();
            b.store(v.g, Fp12::from_powers_of_w(parts));
        }),
        routine("triple", &|b| {
            b.store(v.f, b.load::<Fp12, 12>(v.f).scale(b.input(three)));
        }),
        routine("a third", &|b| {
            b.store(v.g, b.load::<Fp12, 12>(v.f).scale(b.input(third)));
        }),
        routine("a ninth", &|b| {
            b.store(v.f, b.load::<Fp12, 12>(v.f).scale(b.input(ninth)));
        }),
        routine("Frobenius map twice", &|b| {
            let mut parts = b.load::<Fp12, 12>(v.saved).powers_of_w();
            for (k, root) in twice {
                parts[k] = parts[k].scale(b.input(root));
            }
            parts[3] = -parts[3];
            b.store(v.g, Fp12::from_powers_of_w(parts));
        }),
        routine("read P", &|b| {
            let [x, y] = montgomery_form(b, v.raw.part(0), radix_squared);
            store_tangent(b, v, Affine1 { x, y });
            b.store(v.p, Affine1 { x, y });
            b.store(
                v.zeros.part(0),
                y.square() - (x.square() * x + b.input(four)),
            );
            b.store(
                v.multiple,
                Jacobian1 {
                    x,
                    y,
                    z: b.input(one),
                },
            );
        }),
        routine("read Q", &|b| {
            let parts = montgomery_form(b, v.raw.part(0), radix_squared);
            let q = Affine2::from_parts(parts);
            let four = b.input(four);
            let constant = Fp2 { c0: four, c1: four };
            store_point(b, v, q, b.input(one));
            b.store(v.q, q);
            b.store(
                v.zeros.part(0),
                q.y.square() - (q.x.square() * q.x + constant),
            );
        }),
        hot("double over Fp", &|b| {
            b.store(v.multiple, b.load::<Jacobian1, 3>(v.multiple).double());
        }),
        routine("add over Fp", &|b| {
            let multiplicand: Jacobian1 = b.load(v.multiplicand);
            let sum = b.load::<Jacobian1, 3>(v.multiple).add(multiplicand);
            b.store(v.multiple, sum);
        }),
        // (beta x, y) = -z^2 P, where z^2 P is the multiple.
        routine("subgroup of P", &|b| {
            let p: Affine1 = b.load(v.p);
            let multiple: Jacobian1 = b.load(v.multiple);
            let zz = multiple.z.square();
            b.store(v.zeros.part(0), p.x * b.input(beta) * zz - multiple.x);
            b.store(v.zeros.part(1), p.y * (zz * multiple.z) + multiple.y);
        }),
        // psi(Q) = -|z| Q, where |z| Q is T.
        routine("subgroup of Q", &|b| {
            let q: Affine2 = b.load(v.q);
            let t: Projective2 = b.load(v.t);
            let number = |[c0, c1]: [Slot; 2]| Fp2 {
                c0: b.input(c0),
                c1: b.input(c1),
            };
            let x = q.x.conjugate() * number(untwist_x);
            let y = q.y.conjugate() * number(untwist_y);
            b.store(v.zeros.part::<2>(0), x * t.z - t.x);
            b.store(v.zeros.part::<2>(2), y * t.z + t.y);
        }),
        routine("f - 9", &|b| {
            let real: Fp = b.load(v.f.part::<1>(0));
            b.store(v.f.part::<1>(0), real - b.input(nine));
        }),
    ]
}

fn store_point<'b>(body: &'b Body, v: Variables, q: Affine2<'b>, one: Fp<'b>) {
    let z = Fp2 {
        c0: one,
        c1: body.zero(),
    };
    body.store(v.t, Projective2 { x: q.x, y: q.y, z });
}

fn store_tangent<'b>(body: &'b Body, v: Variables, p: Affine1<'b>) {
    let tangent = Affine1 {
        x: p.x.double() + p.x,
        y: p.y,
    };
    body.store(v.tangent, tangent);
}

fn montgomery_form<'b, const N: usize>(
    body: &'b Body,
    raw: Slots<N>,
    radix_squared: Slot,
) -> [Fp<'b>; N] {
    let radix_squared = body.input(radix_squared);
    raw.each().map(|slot| body.input(slot) * radix_squared)
}
