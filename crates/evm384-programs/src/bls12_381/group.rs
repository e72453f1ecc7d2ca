//! What contracts share that compute with points of a group: memory, routines, subroutines.

use super::constants::{MODULUS, PARAMETER, beta, inverse_frobenius};
use arbor_evm384::build::points::{Coordinate, Numbers, Point};
use arbor_evm384::build::tower::{Element, Field, Fp, Fp2};
use arbor_evm384::build::{
    Body, Contract, Goal, Label, Layout, ODD_POWERS, Program, Routine, Slot, Slots, Weights, Word,
    any_bit,
};
use arbor_evm384::reference::U384;
use arbor_evm384::{Interface, OPERAND_BYTES};

/// A group of points on one of the two curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// y^2 = x^3 + 4 over Fp.
    G1,
    /// y^2 = x^3 + 4 xi over Fp2.
    G2,
}

impl Group {
    /// Both.
    pub const ALL: [Self; 2] = [Self::G1, Self::G2];

    /// Residues of a coordinate.
    pub(super) const fn degree(self) -> u32 {
        match self {
            Self::G1 => 1,
            Self::G2 => 2,
        }
    }

    /// Bytes of a point in EIP-2537's encoding.
    #[must_use]
    pub const fn encoded_bytes(self) -> u32 {
        128 * self.degree()
    }

    /// Bytes of a point in memory.
    pub(super) const fn point_bytes(self) -> u32 {
        3 * self.degree() * OPERAND_BYTES as u32
    }
}

/// Offsets of points, each with three coordinates, and of what is computed on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) zero: u32,
    pub(super) point: u32,
    pub(super) base: u32,
    pub(super) image: u32,
    pub(super) sum: u32,
    pub(super) multiple: u32,
    /// The y of what is added, whose other coordinates are those of the image.
    addend_y: u32,
    /// Coordinates as they come from calldata or go out, and 16 bytes behind them.
    pub(super) raw: u32,
    /// What must be zero.
    pub(super) zeros: u32,
    /// Where [`Points::encode_sum`] writes.
    pub(super) result: u32,
    pub(super) powers: Slots<ODD_POWERS>,
    pub(super) inverse: Slots<1>,
}

impl Memory {
    pub(super) fn new(layout: &mut Layout, group: Group) -> Self {
        let point = group.point_bytes();
        let coordinate = point / 3;
        Self {
            zero: layout.bytes("zero", point),
            point: layout.bytes("point", point),
            base: layout.bytes("base", point),
            image: layout.bytes("image", point),
            sum: layout.bytes("sum", point),
            multiple: layout.bytes("multiple", point),
            addend_y: layout.bytes("y of the addend", coordinate),
            raw: layout.bytes("raw", 2 * coordinate + 16),
            zeros: layout.bytes("zeros", 2 * coordinate),
            result: layout.bytes("result", group.encoded_bytes()),
            powers: layout.variable("powers"),
            inverse: layout.variable("inverse"),
        }
    }
}

/// A contract that computes with points of one group.
pub(super) struct Points {
    pub(super) contract: Contract,
    pub(super) group: Group,
    pub(super) memory: Memory,
    add: Label,
    endomorphism: Label,
    doublings: [Label; RUNGS],
}

/// How many doublings follow each other in code; calls enter so many before the end as are needed.
const RUNGS: usize = 4;

impl Points {
    /// The beginning of a contract, which loads constants. `more` writes routines besides those of the group.
    pub(super) fn new(
        group: Group,
        interface: Interface,
        goal: Goal,
        mut layout: Layout,
        more: impl FnOnce(&mut Layout, Memory, &Numbers) -> Vec<Routine>,
    ) -> Self {
        let memory = Memory::new(&mut layout, group);
        let numbers = Numbers::new(&mut layout, 4);
        let maps = Maps::new(&mut layout);
        let weights = goal.weights(interface);
        let mut all = match group {
            Group::G1 => routines::<G1>(&layout, memory, (numbers, maps), weights),
            Group::G2 => routines::<G2>(&layout, memory, (numbers, maps), weights),
        };
        all.extend(more(&mut layout, memory, &numbers));
        let mut contract = Contract::new(interface, layout, all);
        contract.load_constants();
        contract.inline("zero");
        Self {
            add: contract.code.label(),
            endomorphism: contract.code.label(),
            doublings: std::array::from_fn(|_| contract.code.label()),
            contract,
            group,
            memory,
        }
    }

    /// Copies a point.
    pub(super) fn copy(&mut self, to: impl Into<Word>, from: impl Into<Word>) {
        self.contract.copy(to, from, self.group.point_bytes());
    }

    /// Decodes a point, and makes it `point`, with 1 for its Z, unless it is zero; reverts if it is on no curve. What `finite` adds is done for finite points only.
    pub(super) fn read(&mut self, from: impl Into<Word>, finite: impl FnOnce(&mut Self)) {
        let (memory, degree) = (self.memory, self.group.degree());
        let coordinates = 2 * degree;
        self.contract.decode(memory.raw, from, coordinates as usize);
        let after = self.contract.code.label();
        let bytes = coordinates * OPERAND_BYTES as u32;
        self.contract.push(any_bit(memory.raw, bytes).is_zero());
        self.contract.code.jump_if(after);
        self.contract.inline("read");
        self.contract.refuse(any_bit(memory.zeros, bytes / 2));
        finite(self);
        self.contract.code.place(after);
    }

    /// point = 2^times point.
    pub(super) fn double(&mut self, times: usize) {
        let mut left = times;
        while left > 0 {
            let now = left.min(RUNGS);
            self.contract.code.call(self.doublings[RUNGS - now]);
            left -= now;
        }
    }

    /// image = |z| image over Fp2, z^2 image over Fp, for an image of order r.
    pub(super) fn map_image(&mut self) {
        self.contract.code.call(self.endomorphism);
    }

    /// sum = sum + image, or, with a condition that holds, sum - image.
    pub(super) fn add_image(&mut self, negated: Option<Word>) {
        self.contract.inline("addend");
        if let Some(negated) = negated {
            self.contract
                .when(negated, |contract| contract.inline("opposite addend"));
        }
        self.contract.code.call(self.add);
    }

    /// sum = sum - image.
    pub(super) fn subtract_image(&mut self) {
        self.contract.inline("opposite addend");
        self.contract.code.call(self.add);
    }

    /// The point at an address, plus another; over both `sum` and `image`.
    pub(super) fn add_to(&mut self, to: impl Into<Word>, addend: impl Into<Word>) {
        let to = to.into();
        self.copy(self.memory.image, addend);
        self.copy(self.memory.sum, to.clone());
        self.add_image(None);
        self.copy(to, self.memory.sum);
    }

    /// point = |z| point, from the top bit on; over `base`, `image` and `sum`.
    pub(super) fn multiply_by_parameter(&mut self) {
        let Memory {
            base, point, image, ..
        } = self.memory;
        self.copy(base, point);
        let mut bit = PARAMETER.ilog2();
        while bit > 0 {
            let mut doublings = 0;
            loop {
                bit -= 1;
                doublings += 1;
                if bit == 0 || PARAMETER >> bit & 1 == 1 {
                    break;
                }
            }
            self.double(doublings);
            if PARAMETER >> bit & 1 == 1 {
                self.copy(image, base);
                self.copy(self.memory.sum, point);
                self.add_image(None);
                self.copy(point, self.memory.sum);
            }
        }
    }

    /// Writes `sum` to `result` in EIP-2537's encoding. To be done once: zero is what was there before.
    pub(super) fn encode_sum(&mut self) {
        let memory = self.memory;
        let coordinate = self.group.degree() * OPERAND_BYTES as u32;
        let z = any_bit(memory.sum + 2 * coordinate, coordinate);
        let coordinates = 2 * self.group.degree() as usize;
        self.contract.when(z, |contract| {
            contract.inline("norm");
            contract.power(memory.inverse, memory.powers, MODULUS - U384::from(2));
            contract.inline("plain coordinates");
            contract.encode(memory.result, memory.raw, coordinates);
        });
    }

    /// Returns `sum` in EIP-2537's encoding.
    pub(super) fn return_sum(&mut self) {
        self.encode_sum();
        self.contract
            .return_bytes(self.memory.result, self.group.encoded_bytes());
    }

    /// The subroutines behind the rest.
    pub(super) fn finish(mut self) -> Program {
        self.contract.subroutine(self.add, "add");
        self.contract.subroutine(self.endomorphism, "endomorphism");
        for rung in self.doublings {
            self.contract.code.place(rung);
            self.contract.inline("double");
        }
        self.contract.code.ret();
        self.contract.finish()
    }
}

/// A group's coordinates, for whichever body they belong to.
trait Curve {
    type Coordinate<'b>: Coordinate<'b>;
    const GROUP: Group;

    /// The endomorphism that multiplies points of order r by a power of |z|: by z^2 over Fp, by |z| over Fp2.
    fn endomorphism<'b>(
        body: &'b Body,
        maps: &Maps,
        point: Point<Self::Coordinate<'b>>,
    ) -> Point<Self::Coordinate<'b>>;
}

/// Constants of the endomorphisms.
#[derive(Clone, Copy, Debug)]
struct Maps {
    beta: Slot,
    untwist_x: [Slot; 2],
    untwist_y: [Slot; 2],
}

impl Maps {
    fn new(layout: &mut Layout) -> Self {
        let pair = |layout: &mut Layout, k: u64| {
            let number = inverse_frobenius(k).montgomery();
            number.map(|part| layout.constant(part))
        };
        Self {
            beta: layout.number(beta()),
            untwist_x: pair(layout, 2),
            untwist_y: pair(layout, 3),
        }
    }
}

struct G1;
struct G2;

impl Curve for G1 {
    type Coordinate<'b> = Fp<'b>;
    const GROUP: Group = Group::G1;

    fn endomorphism<'b>(body: &'b Body, maps: &Maps, point: Point<Fp<'b>>) -> Point<Fp<'b>> {
        Point {
            x: point.x * body.input(maps.beta),
            y: -point.y,
            z: point.z,
        }
    }
}

impl Curve for G2 {
    type Coordinate<'b> = Fp2<'b>;
    const GROUP: Group = Group::G2;

    fn endomorphism<'b>(body: &'b Body, maps: &Maps, point: Point<Fp2<'b>>) -> Point<Fp2<'b>> {
        let number = |slots: [Slot; 2]| Fp2::from_parts(slots.map(|slot| body.input(slot)));
        Point {
            x: point.x.conjugate() * number(maps.untwist_x),
            y: -(point.y.conjugate() * number(maps.untwist_y)),
            z: point.z.conjugate(),
        }
    }
}

fn routines<C: Curve>(
    layout: &Layout,
    memory: Memory,
    (numbers, maps): (Numbers, Maps),
    often: Weights,
) -> Vec<Routine> {
    let zero = layout.zero();
    let step = C::GROUP.degree() * OPERAND_BYTES as u32;
    let coordinates = |at: u32| [at, at + step, at + 2 * step];
    let routine = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, Weights::SIZE, write);
    let hot = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, often, write);
    let m = memory;
    vec![
        routine("zero", &|b| {
            // X and Z are zero because nothing was written there.
            C::Coordinate::one(b, &numbers).store(b, m.zero + step);
        }),
        routine("read", &|b| {
            let factor = b.input(numbers.radix_squared);
            let [x, y] = [m.raw, m.raw + step].map(|at| C::Coordinate::load(b, at).scale(factor));
            let z = C::Coordinate::one(b, &numbers);
            let curve = x.square() * x + C::Coordinate::b(b, &numbers);
            (y.square() - curve).store(b, m.zeros);
            Point { x, y, z }.store(b, coordinates(m.point));
        }),
        hot("double", &|b| {
            let point = Point::<C::Coordinate<'_>>::load(b, coordinates(m.point));
            point.double(b, &numbers).store(b, coordinates(m.point));
        }),
        hot("add", &|b| {
            let sum = Point::<C::Coordinate<'_>>::load(b, coordinates(m.sum));
            let [x, _, z] = coordinates(m.image);
            let addend = Point::load(b, [x, m.addend_y, z]);
            sum.add(addend, b, &numbers).store(b, coordinates(m.sum));
        }),
        routine("endomorphism", &|b| {
            let image = Point::load(b, coordinates(m.image));
            C::endomorphism(b, &maps, image).store(b, coordinates(m.image));
        }),
        routine("addend", &|b| {
            C::Coordinate::load(b, m.image + step).store(b, m.addend_y);
        }),
        routine("opposite addend", &|b| {
            (-C::Coordinate::load(b, m.image + step)).store(b, m.addend_y);
        }),
        // The endomorphism's image of the base, whose Z is 1, against the multiple.
        routine("compare", &|b| {
            let base = Point::load(b, coordinates(m.base));
            let image = C::endomorphism(b, &maps, base);
            let multiple = Point::load(b, coordinates(m.multiple));
            (image.x * multiple.z - multiple.x).store(b, m.zeros);
            (image.y * multiple.z - multiple.y).store(b, m.zeros + step);
        }),
        routine("norm", &|b| {
            let z = C::Coordinate::load(b, m.sum + 2 * step);
            b.store(m.powers.part(0), z.norm());
        }),
        routine("plain coordinates", &|b| {
            let [x, y, z] = coordinates(m.sum).map(|at| C::Coordinate::load(b, at));
            let inverse = z
                .inverse(b.load(m.inverse))
                .scale(b.input(numbers.plain_one));
            (x * inverse).store(b, m.raw);
            (y * inverse).store(b, m.raw + step);
        }),
    ]
}
