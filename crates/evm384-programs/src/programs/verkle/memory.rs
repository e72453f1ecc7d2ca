//! Where a verifier keeps what.

use super::{ENTRY, EXTENDED, ROUNDS, WIDE, WIDTH};
use alloy_primitives::Address;
use arbor_evm384::build::{Contract, Label, Layout, ODD_POWERS, Slots, Variable};

pub(super) struct Verifier {
    pub(super) c: Contract,
    pub(super) reference: Address,
    pub(super) m: Memory,
    pub(super) w: Words,
    pub(super) labels: Labels,
}

#[derive(Clone, Copy)]
pub(super) struct Labels {
    pub(super) sum: Label,
    pub(super) read: Label,
    pub(super) normalise: Label,
    pub(super) invert: Label,
}

/// Field elements and points.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    pub(super) raw: Slots<3>,
    pub(super) zeros: Slots<2>,
    pub(super) identity: Slots<4>,
    /// A point of a table: x, y, d x y.
    pub(super) addend: Slots<3>,
    /// A bucket that something is added to.
    pub(super) bucket: Slots<4>,
    /// The buckets' sum so far.
    pub(super) running: Slots<4>,
    /// The result of a sum.
    pub(super) total: Slots<4>,
    pub(super) powers: Slots<ODD_POWERS>,
    pub(super) inverse: Slots<1>,
    pub(super) plain: Slots<2>,
    /// Addresses behind all variables.
    pub(super) identities: u32,
    pub(super) buckets: u32,
    /// The reference string, Q, the commitment, L, R.
    pub(super) table: u32,
    /// D.
    pub(super) quotients: u32,
    pub(super) scalars: u32,
    /// t - i for the domain; their inverses.
    pub(super) distances: u32,
    pub(super) folded: u32,
    pub(super) scratch: u32,
    pub(super) power_input: u32,
    pub(super) code: u32,
    /// What depends on calldata's length.
    pub(super) dynamic: u32,
}

/// Entries of the table behind the reference string.
pub(super) const Q: u32 = WIDTH;
pub(super) const COMMITMENT: u32 = WIDTH + 1;
pub(super) const LEFT: u32 = WIDTH + 2;
pub(super) const RIGHT: u32 = LEFT + ROUNDS;
pub(super) const ENTRIES: u32 = RIGHT + ROUNDS;

#[derive(Clone, Copy)]
pub(super) struct Words {
    /// Arguments of a sum: addresses, the number of windows' bits, what scalars are shifted by.
    pub(super) table: Variable,
    pub(super) scalars: Variable,
    pub(super) scalars_end: Variable,
    pub(super) bits: Variable,
    pub(super) shifted: Variable,
    pub(super) half: Variable,
    pub(super) mask: Variable,
    /// Within a sum.
    pub(super) shift: Variable,
    pub(super) offset: Variable,
    pub(super) bucket: Variable,
    /// Arguments of decoding, a point's offset in calldata and where it goes.
    pub(super) from: Variable,
    pub(super) to: Variable,
    /// The compressed form of the point that was normalised last.
    pub(super) encoding: Variable,
    /// Arguments of inversion, a range of words; the product of all, and the inverse.
    pub(super) first: Variable,
    pub(super) last: Variable,
    pub(super) product: Variable,
    pub(super) inverse: Variable,
    pub(super) held: Variable,
    pub(super) i: Variable,
    pub(super) j: Variable,
    /// The transcript: where it begins and ends.
    pub(super) begin: Variable,
    pub(super) end: Variable,
    /// Of the statement.
    pub(super) r: Variable,
    pub(super) t: Variable,
    pub(super) value: Variable,
    /// A(t).
    pub(super) vanishing: Variable,
    pub(super) power: Variable,
    pub(super) w: Variable,
    pub(super) x: Variable,
    pub(super) a: Variable,
    pub(super) inner: Variable,
    pub(super) queries: Variable,
    pub(super) query_scalars: Variable,
}

impl Words {
    pub(super) fn new(layout: &mut Layout) -> Self {
        let mut word = |name: &str| layout.word(name);
        Self {
            table: word("table"),
            scalars: word("scalars"),
            scalars_end: word("end of scalars"),
            bits: word("bits of a window"),
            shifted: word("shift of scalars"),
            half: word("half of a window"),
            mask: word("mask of a window"),
            shift: word("window"),
            offset: word("offset of digits"),
            bucket: word("address of the bucket"),
            from: word("from"),
            to: word("to"),
            encoding: word("encoding"),
            first: word("first"),
            last: word("last"),
            product: word("product"),
            inverse: word("inverse scalar"),
            held: word("word being inverted"),
            i: word("i"),
            j: word("j"),
            begin: word("begin of the transcript"),
            end: word("end of the transcript"),
            r: word("r"),
            t: word("t"),
            value: word("value"),
            vanishing: word("A(t)"),
            power: word("power of r"),
            w: word("w"),
            x: word("x"),
            a: word("a"),
            inner: word("inner product"),
            queries: word("queries' commitments"),
            query_scalars: word("queries' scalars"),
        }
    }
}

impl Memory {
    pub(super) fn new(layout: &mut Layout) -> Self {
        let unplaced = 0;
        Self {
            // 16 zero bytes lie behind each number because nothing else is written there.
            raw: layout.variable("raw"),
            zeros: layout.variable("zeros"),
            identity: layout.variable("identity"),
            addend: layout.variable("addend"),
            bucket: layout.variable("bucket"),
            running: layout.variable("running"),
            total: layout.variable("total"),
            powers: layout.variable("powers"),
            inverse: layout.variable("inverse"),
            plain: layout.variable("plain"),
            identities: unplaced,
            buckets: unplaced,
            table: unplaced,
            quotients: unplaced,
            scalars: unplaced,
            distances: unplaced,
            folded: unplaced,
            scratch: unplaced,
            power_input: unplaced,
            code: unplaced,
            dynamic: unplaced,
        }
    }

    /// Finds addresses for what lies behind variables and temporaries.
    pub(super) fn placed(mut self, heap: u32) -> Self {
        let buckets = ((1 << (WIDE - 1)) + 1) * EXTENDED;
        let mut end = heap.next_multiple_of(32);
        for (place, bytes) in [
            (&mut self.identities, buckets),
            (&mut self.buckets, buckets),
            (&mut self.table, ENTRIES * ENTRY),
            (&mut self.quotients, ENTRY),
            (&mut self.scalars, ENTRIES * 32),
            (&mut self.distances, WIDTH * 32),
            (&mut self.folded, WIDTH * 32),
            (&mut self.scratch, WIDTH * 32),
            (&mut self.power_input, 6 * 32),
            (&mut self.code, (WIDTH + 1) * 64 + WIDTH / 2 * 32),
            (&mut self.dynamic, 0),
        ] {
            *place = end;
            end += bytes.next_multiple_of(32);
        }
        self
    }
}
