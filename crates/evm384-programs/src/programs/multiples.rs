//! Multiples of a point of a curve y^2 = x^3 + b over a prime field: what contracts for several curves share.

use arbor_evm384::Interface;
use arbor_evm384::build::points::{Coordinate, Numbers, Point};
use arbor_evm384::build::tower::Fp;
use arbor_evm384::build::{
    Body, Contract, Label, Layout, ODD_POWERS, Routine, Slots, Variable, Weights, Word, any_bit,
};
use arbor_evm384::reference::U384;

/// Bits of a window of the scalar.
const WINDOW: usize = 4;
const POINT: u32 = Slots::<3>::BYTES;

/// What a multiplication has in memory and calls; the steps of one, for whoever puts a contract together.
#[derive(Clone, Copy)]
pub(super) struct Multiples {
    /// Where the coordinates are to be put as plain residues, and where they come out. Decoding may write behind them.
    pub(super) raw: Slots<2>,
    difference: Slots<1>,
    point: Slots<3>,
    addend: Slots<3>,
    /// Of points, as many as a window has values; bytes of a result may lie there once they are not needed any more.
    pub(super) table: u32,
    at: Variable,
    left: Variable,
    powers: Slots<ODD_POWERS>,
    inverse: Slots<1>,
    modulus: U384,
    add: Label,
}

impl Multiples {
    /// Begins a contract for a curve with this b.
    pub(super) fn begin(
        interface: Interface,
        mut layout: Layout,
        b: u64,
        often: Weights,
    ) -> (Contract, Self) {
        let modulus = layout.modulus_value();
        let numbers = Numbers::new(&mut layout, b);
        let raw = layout.variable("raw");
        let difference = layout.variable("difference");
        let [point, addend] = ["point", "addend"].map(|name| layout.variable::<3>(name));
        let table = layout.bytes("multiples", POINT << WINDOW);
        let at = layout.word("multiple");
        let left = layout.word("windows that are left");
        let powers = layout.variable("powers");
        let inverse = layout.variable("inverse");
        let zero = layout.zero();
        let coordinates = |slots: Slots<3>| slots.each().map(|slot| slot.0);
        let routine =
            |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, Weights::SIZE, write);
        let hot = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, often, write);
        let routines = vec![
            // Zero is (0, 1, 0).
            routine("zero", &|b| b.store(point.part(1), b.input(numbers.one))),
            routine("read", &|b| {
                let [x, y] = Slots::<2>::each(raw)
                    .map(|slot| b.input(slot) * b.input(numbers.radix_squared));
                let curve = x.square() * x + <Fp<'_> as Coordinate<'_>>::b(b, &numbers);
                b.store(difference, y.square() - curve);
                let z = b.input(numbers.one);
                Point { x, y, z }.store(b, coordinates(addend));
            }),
            hot("double", &|b| {
                let doubled = Point::<Fp<'_>>::load(b, coordinates(point)).double(b, &numbers);
                doubled.store(b, coordinates(point));
            }),
            hot("add", &|b| {
                let [p, q] = [point, addend].map(|at| Point::<Fp<'_>>::load(b, coordinates(at)));
                p.add(q, b, &numbers).store(b, coordinates(point));
            }),
            routine("norm", &|b| {
                b.store(powers.part(0), b.load::<Fp<'_>, 1>(point.part(2)));
            }),
            routine("plain coordinates", &|b| {
                let factor = b.load::<Fp<'_>, 1>(inverse) * b.input(numbers.plain_one);
                for index in 0..2 {
                    b.store(
                        raw.part(index),
                        b.load::<Fp<'_>, 1>(point.part(index)) * factor,
                    );
                }
            }),
        ];
        let mut contract = Contract::new(interface, layout, routines);
        let add = contract.code.label();
        contract.load_constants();
        let multiples = Self {
            raw,
            difference,
            point,
            addend,
            table,
            at,
            left,
            powers,
            inverse,
            modulus,
            add,
        };
        (contract, multiples)
    }

    /// Makes the multiple zero.
    pub(super) fn clear(self, c: &mut Contract) {
        c.inline("zero");
    }

    /// Whether the coordinates that were put in are not those of zero, which has zeros.
    pub(super) fn is_some(self) -> Word {
        any_bit(self.raw.offset(), Slots::<2>::BYTES)
    }

    /// Takes the coordinates for those of the point to be multiplied; reverts where they are not on the curve. The multiple is not zero any more.
    pub(super) fn read(self, c: &mut Contract) {
        let Self {
            point, table, at, ..
        } = self;
        c.inline("read");
        c.refuse(any_bit(self.difference.offset(), Slots::<1>::BYTES));
        c.set(at, table);
        c.loop_while(at.get().below(table + (POINT << WINDOW)), |c| {
            c.copy(at, point.offset(), POINT);
            c.code.call(self.add);
            c.set(at, at.get() + POINT);
        });
    }

    /// Makes the multiple by a word.
    pub(super) fn multiply(self, c: &mut Contract, scalar: &Word) {
        let Self { table, left, .. } = self;
        c.copy(self.point.offset(), table, POINT);
        c.set(left, 256);
        c.loop_while(left.get(), |c| {
            c.set(left, left.get() - WINDOW);
            for _ in 0..WINDOW {
                c.inline("double");
            }
            let window = (scalar.clone() >> left.get()) & ((1u32 << WINDOW) - 1);
            c.copy(self.addend.offset(), window * POINT + table, POINT);
            c.code.call(self.add);
        });
    }

    /// A coordinate of the multiple is not zero: 0 is x, 2 is z.
    pub(super) fn has(self, coordinate: usize) -> Word {
        let slot = self.point.part::<1>(coordinate);
        any_bit(slot.offset(), Slots::<1>::BYTES)
    }

    /// Brings out the multiple, which is not zero.
    pub(super) fn bring_out(self, c: &mut Contract) {
        c.inline("norm");
        c.power(self.inverse, self.powers, self.modulus - U384::from(2));
        c.inline("plain coordinates");
    }

    /// The subroutines behind the rest.
    pub(super) fn end(self, c: &mut Contract) {
        c.subroutine(self.add, "add");
    }
}
