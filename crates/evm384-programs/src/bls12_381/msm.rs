//! EIP-2537's additions and multi-scalar multiplications, with the precompiles' calldata, results and checks.
//!
//! Every point of a sum needs its subgroup check, which takes the doublings 2^i P up to |z| P (and, over Fp, up to z^2 P). Those are the doublings that a scalar multiplication
//! needs, if it goes from the low bits up: a scalar is a0 + a1 |z| + a2 z^2 + a3 |z|^3 with digits of 64 bits, and the endomorphism of the check, which is a multiplication by z^2 or |z|,
//! brings 2^i P to the places of the other digits. So a multiple takes no doubling of its own; its windows go into buckets that all points of the sum share.

use alloy_primitives::{U256, uint};

use super::constants::{MODULUS, PARAMETER};
use super::group::{Group, Points};
use arbor_evm384::Interface;
use arbor_evm384::build::{Goal, Label, Layout, Program, Variable, Word, any_bit};

/// Order r of the groups.
pub const ORDER: U256 =
    uint!(0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001_U256);

/// Bits of a window where points are few, and where they are many.
const WINDOWS: [u32; 2] = [4, 8];
/// The most points that count as few: 128 buckets take as much adding up then as short windows' digits.
const FEW: u32 = 8;
/// A digit's bits, and of what an offset adds to it.
const LANE: usize = 64;

/// A contract for points of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sum {
    /// The group.
    pub group: Group,
    /// Whether points have scalars, and must be of order r; if not, there are two of them.
    pub scalars: bool,
    /// The form of its operations.
    pub interface: Interface,
    /// What it is short of.
    pub goal: Goal,
}

impl Sum {
    /// Writes it.
    #[must_use]
    pub fn program(self) -> Program {
        let mut layout = Layout::new(MODULUS);
        let words = Words::new(&mut layout);
        let points = Points::new(self.group, self.interface, self.goal, layout, |_, _, _| {
            Vec::new()
        });
        if self.scalars {
            multiples(points, words)
        } else {
            addition(points)
        }
    }
}

fn addition(mut points: Points) -> Program {
    let bytes = points.group.encoded_bytes();
    let (sum, image, zero, point) = {
        let m = points.memory;
        (m.sum, m.image, m.zero, m.point)
    };
    points.contract.require(Word::calldata_size().is(2 * bytes));
    for (index, to) in [sum, image].into_iter().enumerate() {
        points.copy(to, zero);
        points.read(index * bytes as usize, |points| points.copy(to, point));
    }
    points.add_image(None);
    points.return_sum();
    points.finish()
}

#[derive(Clone, Copy)]
struct Words {
    /// Offset in calldata of the pair at hand.
    pair: Variable,
    /// Whether windows are wide.
    wide: Variable,
    /// The scalar's digits in base |z|, 64 bits each, the lowest lowest, so shifted that their windows are positive.
    digits: Variable,
    /// What is left of them.
    left: Variable,
    digit: Variable,
    bucket: Variable,
}

impl Words {
    fn new(layout: &mut Layout) -> Self {
        Self {
            pair: layout.word("pair"),
            wide: layout.word("windows are wide"),
            digits: layout.word("digits"),
            left: layout.word("digits that are left"),
            digit: layout.word("digit"),
            bucket: layout.word("bucket"),
        }
    }
}

/// Labels of subroutines, for each window.
#[derive(Clone, Copy)]
struct Walks {
    walk: [Label; 2],
    windows: [Label; 2],
    digit: Label,
    accumulate: Label,
}

fn multiples(mut points: Points, words: Words) -> Program {
    let group = points.group;
    let m = points.memory;
    let pair_bytes = group.encoded_bytes() + 32;
    let point_bytes = group.point_bytes();
    let buckets = points.contract.heap();
    let code = &mut points.contract.code;
    let walks = Walks {
        walk: [code.label(), code.label()],
        windows: [code.label(), code.label()],
        digit: code.label(),
        accumulate: code.label(),
    };
    let size = Word::calldata_size;
    let c = &mut points.contract;
    c.refuse((size() % pair_bytes) | size().is_zero());
    c.set(words.wide, size().above(FEW * pair_bytes));
    let [few, many] = WINDOWS.map(|bits| 1u32 << (bits - 1));
    let last = words.wide.get() * ((many - few) * point_bytes) + (few * point_bytes + buckets);
    c.set(words.bucket, last.clone());
    let next = |c: &mut arbor_evm384::build::Contract| {
        c.set(words.bucket, words.bucket.get() - point_bytes);
    };
    c.loop_while(words.bucket.get().above(buckets), |c| {
        c.copy(words.bucket, m.zero, point_bytes);
        next(c);
    });
    c.set(words.pair, 0);
    let pair = points.contract.code.here();
    points.read(words.pair, |points| {
        points.copy(m.base, m.point);
        points.split_scalar(words, group);
        for pass in 0..group.passes() {
            if pass > 0 {
                points.copy(m.point, m.multiple);
            }
            points.copy(m.multiple, m.zero);
            let c = &mut points.contract;
            c.set(words.left, words.digits.get() >> (pass * LANE));
            let other = c.code.label();
            let after = c.code.label();
            c.push(words.wide);
            c.code.jump_if(other);
            c.code.call(walks.walk[0]);
            c.code.jump(after);
            c.code.place(other);
            c.code.call(walks.walk[1]);
            c.code.place(after);
        }
        points.contract.inline("compare");
        let coordinate = point_bytes / 3;
        let z = any_bit(m.multiple + 2 * coordinate, coordinate);
        points
            .contract
            .refuse(any_bit(m.zeros, 2 * coordinate) | z.is_zero());
    });
    points
        .contract
        .set(words.pair, words.pair.get() + pair_bytes);
    points.contract.push(words.pair.get().below(size()));
    points.contract.code.jump_if(pair);

    // The sum of d times the bucket of d: every bucket is in as many running sums.
    points.contract.set(words.bucket, last);
    points.copy(m.point, m.zero);
    points.copy(m.multiple, m.zero);
    let start = points.contract.code.here();
    points.add_to(m.point, words.bucket);
    points.add_to(m.multiple, m.point);
    next(&mut points.contract);
    points.contract.push(words.bucket.get().above(buckets));
    points.contract.code.jump_if(start);
    points.return_sum();
    for (index, bits) in WINDOWS.into_iter().enumerate() {
        points.walk(words, walks, index, bits);
    }
    points.digit_subroutine(words, walks.digit);
    points.contract.code.place(walks.accumulate);
    points.add_to(m.multiple, m.point);
    points.contract.code.ret();
    points.finish()
}

impl Group {
    /// How often the doublings go up to |z|.
    const fn passes(self) -> usize {
        match self {
            Self::G1 => 2,
            Self::G2 => 1,
        }
    }

    /// Lanes of the digits that a pass takes: every one, or every second from that of the pass on.
    fn lanes(self) -> impl Iterator<Item = usize> {
        (0..4).step_by(self.passes())
    }
}

impl Points {
    /// Digits a with the scalar = sum of a |z|^j modulo r, between -|z| / 2 and |z| / 2: those of the scalar plus |z| / 2 in each place, modulo r, less |z| / 2 again.
    fn split_scalar(&mut self, words: Words, group: Group) {
        let z = U256::from(PARAMETER);
        let half = z >> 1;
        let halves = (0..4).fold(U256::ZERO, |sum, _| sum * z + half);
        let c = &mut self.contract;
        let scalar = Word::calldata(words.pair.get() + group.encoded_bytes());
        c.set(words.digit, scalar % ORDER + halves);
        let limit = z.pow(U256::from(4)) - U256::from(1);
        let over = words.digit.get().above(limit);
        c.set(words.digit, words.digit.get() - over * ORDER);
        let digits = (0..4).map(|lane| {
            let digit = words.digit.get() / z.pow(U256::from(lane)) % z;
            digit << (lane as usize * LANE)
        });
        let digits = digits.reduce(|all, digit| digit | all);
        let [few, many] = WINDOWS.map(|bits| shift(bits) - half);
        let lanes = (0..4).fold(U256::ZERO, |sum, _| (sum << LANE) + U256::from(1));
        let shifted = Word::from(few * lanes) - words.wide.get() * ((few - many) * lanes);
        c.set(words.digits, digits.into_iter().fold(shifted, |a, b| a + b));
    }

    /// A subroutine: multiple = |z| point, and the digits' windows into buckets on the way.
    fn walk(&mut self, words: Words, walks: Walks, index: usize, bits: u32) {
        self.contract.code.place(walks.walk[index]);
        let mut doublings = 0;
        for position in 0..PARAMETER.ilog2() + 1 {
            let window = position % bits == 0;
            let one = PARAMETER >> position & 1 == 1;
            if window || one {
                self.double(doublings);
                doublings = 0;
            }
            if window {
                self.contract.code.call(walks.windows[index]);
            }
            if one {
                self.contract.code.call(walks.accumulate);
            }
            doublings += 1;
        }
        self.contract.code.ret();

        self.contract.code.place(walks.windows[index]);
        self.copy(self.memory.image, self.memory.point);
        for lane in self.group.lanes() {
            if lane > 0 {
                self.map_image();
            }
            let window = (words.left.get() >> (lane * LANE)) & ((1u64 << bits) - 1);
            self.contract
                .set(words.digit, window - (1u64 << (bits - 1)));
            self.contract.code.call(walks.digit);
        }
        self.contract.set(words.left, words.left.get() >> bits);
        self.contract.code.ret();
    }

    /// A subroutine: the image, or its opposite, into the bucket of the digit, unless that is zero.
    fn digit_subroutine(&mut self, words: Words, label: Label) {
        let after = self.contract.code.label();
        self.contract.code.place(label);
        self.contract.push(words.digit.get().is_zero());
        self.contract.code.jump_if(after);
        let negative = words.digit.get().is_negative();
        let absolute = words.digit.get() * (Word::from(1) - negative.clone() * 2);
        let bytes = self.group.point_bytes();
        let buckets = self.contract.heap();
        self.contract.set(words.bucket, absolute * bytes + buckets);
        self.copy(self.memory.sum, words.bucket);
        self.add_image(Some(negative));
        self.copy(words.bucket, self.memory.sum);
        self.contract.code.place(after);
        self.contract.code.ret();
    }
}

/// Half a window's range in every window of a digit.
fn shift(bits: u32) -> U256 {
    let windows = 0..LANE as u32 / bits;
    windows.fold(U256::ZERO, |sum, _| {
        (sum << bits) + (U256::from(1) << (bits - 1))
    })
}
