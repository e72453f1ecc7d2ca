//! Times of single operations, on the backend that `ARBOR_BACKEND` names: the minimum of many short runs, which is what a shared machine lets one compare.
//!
//! `cargo bench -p arbor-field`

use arbor_field::{
    Base, Element, Fp, Fr, Job, LANES, Lanes, Limbs, Modulus, Wide, divide_all, invert_all, sqrt,
    sqrt_all,
};
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

/// Nanoseconds of one of `count` operations that `job` does.
fn time(name: &str, count: u32, mut job: impl FnMut()) {
    let mut best = Duration::MAX;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        let start = Instant::now();
        job();
        best = best.min(start.elapsed());
    }
    println!(
        "{name:<44} {:>9.1} ns",
        best.as_secs_f64() * 1e9 / f64::from(count)
    );
}

fn elements<M: Modulus>(count: u64) -> Vec<Element<M>> {
    let step = Element::<M>::from(0x9e37_79b9_7f4a_7c15_u64).inverse();
    (1..=count).map(|i| Element::from(i) * step).collect()
}

fn multiplications<M: Modulus>() {
    let batch = elements::<M>(64);
    let other = batch[17];
    assert_eq!(batch[0] * batch[0].inverse(), Element::ONE);
    let mut products = batch.clone();
    time(
        &format!("{}: multiplication, throughput", M::NAME),
        64 * 16,
        || {
            for _ in 0..16 {
                for (product, a) in products.iter_mut().zip(&batch) {
                    *product = *a * other;
                }
                black_box(&mut products);
            }
        },
    );
    let mut x = batch[3];
    time(
        &format!("{}: multiplication, latency", M::NAME),
        1024,
        || {
            for _ in 0..1024 {
                x *= other;
            }
            black_box(x);
        },
    );
    time(
        &format!("{}: addition, throughput", M::NAME),
        64 * 16,
        || {
            for _ in 0..16 {
                for (sum, a) in products.iter_mut().zip(&batch) {
                    *sum = *a + other;
                }
                black_box(&mut products);
            }
        },
    );
    time(&format!("{}: inverse", M::NAME), 64, || {
        for a in &batch {
            black_box(a.inverse());
        }
    });
    time(&format!("{}: Legendre symbol", M::NAME), 64, || {
        for a in &batch {
            black_box(a.legendre());
        }
    });
    let mut many = elements::<M>(1024);
    time(
        &format!("{}: inverse in a batch of 1024", M::NAME),
        1024,
        || {
            invert_all(&mut many);
        },
    );
}

fn main() {
    println!("backend: {}", arbor_cpu::Backend::detect());
    multiplications::<<Fp as Field>::Modulus>();
    multiplications::<<Fr as Field>::Modulus>();
    let squares: Vec<Fp> = elements(64).iter().map(|a| Fp::square(*a)).collect();
    assert!(
        squares
            .iter()
            .all(|&a| sqrt(a).is_some_and(|root| root.square() == a))
    );
    time("Fp: square root", 64, || {
        for a in &squares {
            black_box(sqrt(*a));
        }
    });
    time("Fp: square root, 64 together", 64, || {
        black_box(sqrt_all(&squares));
    });
    let fractions: Vec<(Fp, Fp)> = elements(1024)
        .into_iter()
        .zip(elements(1025).into_iter().skip(1))
        .collect();
    let quotients = divide_all(&fractions);
    assert!(fractions.iter().zip(quotients).all(|(f, q)| q * f.1 == f.0));
    time("Fp: division, 1024 together", 1024, || {
        black_box(divide_all(&fractions));
    });
    for wide in Wide::available() {
        in_lanes(wide, "multiplication", |a, b| Repeated {
            what: What::Multiply,
            a,
            b,
        });
        in_lanes(wide, "multiplication, latency", |a, b| Repeated {
            what: What::MultiplyOn,
            a,
            b,
        });
        in_lanes(wide, "multiplication, two at a time", |a, b| Repeated {
            what: What::MultiplyTwo,
            a,
            b,
        });
        in_lanes(wide, "square", |a, b| Repeated {
            what: What::Square,
            a,
            b,
        });
        in_lanes(
            wide,
            "multiplication, each beside the end of another",
            |a, b| Repeated {
                what: What::MultiplyInTurn,
                a,
                b,
            },
        );
        in_lanes(wide, "difference, tightened", |a, b| Repeated {
            what: What::Subtract,
            a,
            b,
        });
        in_lanes(wide, "load and store", |a, b| Repeated {
            what: What::LoadAndStore,
            a,
            b,
        });
    }
}

fn in_lanes(wide: Wide, what: &str, job: impl Fn([Limbs; LANES], [Limbs; LANES]) -> Repeated) {
    let many = elements::<Base>(2 * LANES as u64);
    let stored = |from: usize| std::array::from_fn(|i| *many[from + i].montgomery());
    time(
        &format!("Fp: {what} in lanes, {}", wide.name()),
        Repeated::OPERATIONS,
        || {
            black_box(wide.run(job(stored(0), stored(LANES))));
        },
    );
}

enum What {
    Multiply,
    MultiplyOn,
    MultiplyTwo,
    Square,
    MultiplyInTurn,
    Subtract,
    LoadAndStore,
}

/// One operation, again and again on four independent vectors. The loops stand here, since only a job's own code is compiled for the lanes.
struct Repeated {
    what: What,
    a: [Limbs; LANES],
    b: [Limbs; LANES],
}

impl Repeated {
    const OPERATIONS: u32 = 4 * 256 * LANES as u32;
}

impl Job<Base> for Repeated {
    type Output = [Limbs; LANES];

    #[inline(always)]
    fn run<L: Lanes<Base>>(self, lanes: L) -> Self::Output {
        let (a, b) = (lanes.load(self.a.each_ref()), lanes.load(self.b.each_ref()));
        let mut x = [a, b, a, b];
        let mut begun = lanes.begin(lanes.loosen(a), b);
        let mut memory = [self.a, self.b, self.a, self.b];
        for _ in 0..256 {
            match self.what {
                What::Multiply => {
                    for x in &mut x {
                        *x = lanes.times(*x, a);
                    }
                }
                What::MultiplyOn => {
                    for _ in 0..4 {
                        x[0] = lanes.times(x[0], a);
                    }
                }
                What::MultiplyTwo => {
                    let (first, second) = x.split_at_mut(2);
                    for x in [first, second] {
                        [x[0], x[1]] = lanes.times_two([x[0], x[1]], [a, b]);
                    }
                }
                What::MultiplyInTurn => {
                    for x in &mut x {
                        let (done, next) = lanes.turn(begun, lanes.loosen(*x), a);
                        (*x, begun) = (lanes.settle(done), next);
                    }
                }
                What::Square => {
                    for x in &mut x {
                        *x = lanes.square(*x);
                    }
                }
                What::Subtract => {
                    for x in &mut x {
                        *x = lanes.tighten(lanes.sub(*x, a));
                    }
                }
                What::LoadAndStore => {
                    for stored in &mut memory {
                        *stored = lanes.store(lanes.load(black_box(&*stored).each_ref()));
                    }
                }
            }
        }
        x[0] = lanes.tighten(lanes.add(x[0], x[1]));
        x[2] = lanes.tighten(lanes.add(x[2], x[3]));
        memory[0] = lanes.store(lanes.times(x[0], x[2]));
        memory[0]
    }
}

/// Names the modulus of an element's type.
trait Field {
    type Modulus: Modulus;
}

impl<M: Modulus> Field for Element<M> {
    type Modulus = M;
}
