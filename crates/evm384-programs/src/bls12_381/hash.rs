//! From bytes to points of G2: RFC 9380's BLS12381G2_XMD:SHA-256_SSWU_RO_, and EIP-2537's map of a field element.
//!
//! The map goes to a curve E', y^2 = x^3 + A x + B, and from there by an isogeny of degree three. With g(x) = U / V, a root of U V is all that is needed: its inverse comes out of the
//! same two powers in Fp as the root does, so nothing is divided. Where U V has no root, Z U V has.

use alloy_primitives::U256;
use revm::bytecode::opcode::{ISZERO, MSTORE};

use super::constants::{MODULUS, inverse, montgomery};
use super::group::{Group, Memory, Points};
use arbor_evm384::build::points::{Numbers, Point};
use arbor_evm384::build::tower::{Element, Fp, Fp2};
use arbor_evm384::build::{
    Body, Goal, Label, Layout, Program, Routine, Slots, Variable, Weights, Word, any_bit,
};
use arbor_evm384::reference::U384;
use arbor_evm384::{Interface, OPERAND_BYTES};

/// Separates signatures from other uses of the hash: the suite's name in the drafts on BLS signatures, with proofs of possession.
pub const SIGNATURE_DOMAIN: &[u8] = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_POP_";

/// Bytes of room for constants, of which there are more than elsewhere.
const CONSTANT_BYTES: u32 = 3072;
/// Blocks of SHA-256 that a message is expanded to: 64 bytes for each coordinate of two elements of Fp2.
const BLOCKS: u32 = 8;
/// The precompile.
const SHA_256: u32 = 2;
const SLOT: u32 = OPERAND_BYTES as u32;

/// EIP-2537's map of an element of Fp2 to G2, with its calldata and result.
#[must_use]
pub fn map_to_g2(interface: Interface, goal: Goal) -> Program {
    let mut hash = Hash::new(&[], interface, goal, |_| ()).0;
    let c = &mut hash.points.contract;
    c.require(Word::calldata_size().is(2 * 64));
    c.decode(hash.variables.raw.offset(), 0, 2);
    c.inline("to Montgomery form");
    c.code.call(hash.map);
    hash.clear_cofactor();
    hash.points.return_sum();
    hash.finish()
}

/// The hash of calldata to G2, RFC 9380's hash_to_curve, separated from other uses by a domain of 31 to 255 bytes; the result is EIP-2537's point.
///
/// # Panics
///
/// If the domain is shorter or longer.
#[must_use]
pub fn hash_to_g2(domain: &[u8], interface: Interface, goal: Goal) -> Program {
    let mut hash = Hash::new(domain, interface, goal, |_| ()).0;
    hash.hash_calldata(0);
    hash.points.return_sum();
    hash.finish()
}

/// What the map and the hash keep in memory.
#[derive(Clone, Copy)]
struct Variables {
    /// Upper and lower half of 64 bytes for each coordinate; or the coordinates, in two slots.
    raw: Slots<4>,
    u: Slots<2>,
    /// Z u^2 with the Z of the map.
    zu2: Slots<2>,
    /// Z^2 u^4 + Z u^2.
    sum: Slots<2>,
    /// Of x; later x itself.
    numerator: Slots<2>,
    /// Of x.
    denominator: Slots<2>,
    /// U, or Z U with the second x.
    value: Slots<2>,
    /// U V, or Z U V.
    product: Slots<2>,
    /// What a root of g(x) is multiplied by to give y: 1, or Z u^3 with the second x.
    factor: Slots<2>,
    /// A root of the product's norm, and its inverse.
    norm_root: Slots<1>,
    inverse_norm_root: Slots<1>,
    /// A root of the product.
    root: Slots<2>,
    y: Slots<2>,
    /// u and y, not in Montgomery form.
    plain: Slots<4>,
    difference: Slots<1>,
    /// What is about to have its cofactor cleared.
    mapped: u32,
    /// 32 bytes, a counter, and the domain with its length: SHA-256's input for a block.
    block: u32,
    first_block: Variable,
    uniform: u32,
    /// Where the message ends.
    end: Variable,
}

/// A contract with the map as a subroutine, from u to `point`.
pub(super) struct Hash {
    pub(super) points: Points,
    /// With its length behind it.
    domain: Vec<u8>,
    variables: Variables,
    map: Label,
    power: Label,
}

impl Hash {
    /// The beginning of a contract, with what `more` adds to its memory.
    pub(super) fn new<T>(
        domain: &[u8],
        interface: Interface,
        goal: Goal,
        more: impl FnOnce(&mut Layout) -> T,
    ) -> (Self, T) {
        let mut layout = Layout::with_room(MODULUS, CONSTANT_BYTES);
        let variables = Variables::new(&mut layout, domain.len() as u32 + 1);
        let more = more(&mut layout);
        let mut points = Points::new(Group::G2, interface, goal, layout, |layout, m, numbers| {
            routines(layout, variables, m, numbers)
        });
        let hash = Self {
            map: points.contract.code.label(),
            power: points.contract.code.label(),
            points,
            domain: [domain, &[domain.len() as u8]].concat(),
            variables,
        };
        (hash, more)
    }

    /// sum = the hash of the message that calldata ends with, from an offset on.
    pub(super) fn hash_calldata(&mut self, from: u32) {
        let v = self.variables;
        self.expand(from);
        for element in 0..2 {
            let halves = v.raw.each().into_iter().enumerate();
            let c = &mut self.points.contract;
            for (index, slot) in halves {
                c.push(Word::memory(v.uniform + 128 * element + 32 * index as u32));
                c.reverse_bytes();
                c.push(slot.0);
                c.code.ops(&[MSTORE]);
            }
            c.inline("reduce");
            c.code.call(self.map);
            if element == 0 {
                self.points.copy(v.mapped, self.points.memory.point);
            }
        }
        let point = self.points.memory.point;
        self.points.add_to(point, v.mapped);
        self.clear_cofactor();
    }

    /// RFC 9380's expand_message_xmd, 5.3.1, to 256 bytes.
    fn expand(&mut self, from: u32) {
        let v = self.variables;
        let domain = &self.domain;
        let length = domain.len() as u32;
        assert!((32..=256).contains(&length), "a domain has 31 to 255 bytes");
        let counter = v.block + 32;
        let heap = self.points.contract.heap();
        let c = &mut self.points.contract;
        // The last word overlaps the one before; memory behind the domain stays as it is.
        for at in (0..domain.len()).step_by(32) {
            let at = at.min(domain.len() - 32);
            let word = U256::from_be_slice(&domain[at..at + 32]);
            c.store(counter + 1 + at as u32, word);
        }
        // 64 zeros, the message, 256 in two bytes, a zero, the domain.
        let message = Word::calldata_size() - from;
        c.copy_calldata(heap + 64, from, message.clone());
        c.set(v.end, message + (heap + 64));
        c.store_byte(v.end, 1);
        c.copy(v.end.get() + 3, counter + 1, length);
        let bytes = v.end.get() + (length + 3) - heap;
        c.static_call(
            SHA_256,
            (heap.into(), bytes),
            (v.first_block.0.into(), 32.into()),
        );
        self.require_success();
        for index in 0..BLOCKS {
            let c = &mut self.points.contract;
            let input = match index {
                0 => v.first_block.get(),
                _ => v.first_block.get() ^ Word::memory(v.uniform + 32 * (index - 1)),
            };
            c.store(v.block, input);
            c.store_byte(counter, index + 1);
            let input = (v.block.into(), (32 + 1 + length).into());
            let output = ((v.uniform + 32 * index).into(), 32.into());
            c.static_call(SHA_256, input, output);
            self.require_success();
        }
    }

    /// Reverts unless a call has left a one on the stack.
    fn require_success(&mut self) {
        let c = &mut self.points.contract;
        let fail = c.fail();
        c.code.ops(&[ISZERO]);
        c.code.jump_if(fail);
    }

    /// sum = (z^2 - z - 1) P + (z - 1) psi(P) + psi^2(2 P) for the point P: RFC 9380, G.3, after Budroni and Pintore. With phi = -psi and c = |z| P + phi(P), that is
    /// |z| c + c - P + phi^2(2 P).
    fn clear_cofactor(&mut self) {
        let m = self.points.memory;
        let mapped = self.variables.mapped;
        let points = &mut self.points;
        points.copy(mapped, m.point);
        points.multiply_by_parameter();
        points.copy(m.image, mapped);
        points.map_image();
        points.copy(m.sum, m.point);
        points.add_image(None);
        points.copy(m.multiple, m.sum);
        points.copy(m.point, m.sum);
        points.multiply_by_parameter();
        points.add_to(m.point, m.multiple);
        points.copy(m.image, mapped);
        points.subtract_image();
        points.copy(m.multiple, m.sum);
        points.copy(m.point, mapped);
        points.double(1);
        points.copy(m.image, m.point);
        points.map_image();
        points.map_image();
        points.copy(m.sum, m.multiple);
        points.add_image(None);
    }

    /// The subroutines behind the rest.
    pub(super) fn finish(mut self) -> Program {
        self.map_subroutine();
        let m = self.points.memory;
        let c = &mut self.points.contract;
        c.code.place(self.power);
        c.power(m.inverse, m.powers, (MODULUS - U384::from(3)) >> 2);
        c.code.ret();
        self.points.finish()
    }

    /// The simplified map of Shallue and van de Woestijne (RFC 9380, 6.6.3), and the isogeny: from u to `point`, on the curve but not yet in the subgroup.
    fn map_subroutine(&mut self) {
        let v = self.variables;
        let (map, power) = (self.map, self.power);
        let c = &mut self.points.contract;
        c.code.place(map);
        c.inline("candidate");
        c.when(any_bit(v.sum.offset(), 2 * SLOT).is_zero(), |c| {
            c.inline("exceptional denominator");
        });
        c.inline("value");
        c.code.call(power);
        c.inline("root of the norm");
        c.when(any_bit(v.difference.offset(), SLOT), |c| {
            c.inline("second candidate");
        });
        c.inline("half of a trace");
        let half = self.points.memory.powers.offset();
        c.when(any_bit(half, SLOT).is_zero(), |c| {
            c.inline("half of the other trace");
        });
        c.code.call(power);
        c.inline("root");
        c.when(any_bit(v.difference.offset(), SLOT), |c| {
            c.inline("other root");
        });
        c.inline("affine");
        let [u0, u1, y0, y1] = v.plain.each().map(|slot| slot.0);
        let odd = |at: u32| Word::memory(at).byte(0) & 1;
        let sign = |c0: u32, c1: u32| odd(c0) | (any_bit(c0, SLOT).is_zero() & odd(c1));
        c.when(sign(u0, u1) ^ sign(y0, y1), |c| c.inline("opposite y"));
        c.inline("isogeny");
        c.code.ret();
    }
}

impl Variables {
    fn new(layout: &mut Layout, domain: u32) -> Self {
        Self {
            raw: layout.variable("raw element"),
            u: layout.variable("u"),
            zu2: layout.variable("Z u^2"),
            sum: layout.variable("Z^2 u^4 + Z u^2"),
            numerator: layout.variable("numerator of x"),
            denominator: layout.variable("denominator of x"),
            value: layout.variable("U"),
            product: layout.variable("U V"),
            factor: layout.variable("factor of y"),
            norm_root: layout.variable("root of the norm"),
            inverse_norm_root: layout.variable("inverse root of the norm"),
            root: layout.variable("root of U V"),
            y: layout.variable("y"),
            plain: layout.variable("plain u and y"),
            difference: layout.variable("difference"),
            mapped: layout.bytes("mapped", Group::G2.point_bytes()),
            block: layout.bytes("block", 32 + 1 + domain),
            first_block: layout.word("first block"),
            uniform: layout.bytes("uniform bytes", 32 * BLOCKS),
            end: layout.word("end of the message"),
        }
    }
}

/// Straight-line arithmetic of the map. A = 240 i, B = 1012 (1 + i) and Z = -(2 + i) are RFC 9380's (8.8.2).
fn routines(layout: &mut Layout, v: Variables, m: Memory, numbers: &Numbers) -> Vec<Routine> {
    let small = |layout: &mut Layout, n: u64| layout.constant(montgomery(U384::from(n)));
    let [n6, n16, n48, n240, n480, n1012] = [6, 16, 48, 240, 480, 1012].map(|n| small(layout, n));
    let half = layout.constant(montgomery(inverse(U384::from(2))));
    // 5 is the norm of Z, and no square; with it, these make roots from what others leave.
    let power_of_5 = |layout: &mut Layout, e: U384| {
        layout.constant(montgomery(U384::from(5).pow_mod(e, MODULUS)))
    };
    let e = (MODULUS - U384::from(3)) >> 2;
    let root_factor = power_of_5(layout, e + U384::from(1));
    let inverse_factor = power_of_5(layout, e);
    let upper = layout.constant(montgomery(montgomery(U384::from(1) << 256)));
    let zero = layout.zero();
    let routine = |name, write: &dyn Fn(&Body)| Routine::cheapest(name, zero, Weights::SIZE, write);
    let base: Slots<1> = m.powers.part(0);
    vec![
        routine("to Montgomery form", &|b| {
            let raw: Fp2<'_> = b.load(v.raw.part(0));
            b.store(v.u, raw.scale(b.input(numbers.radix_squared)));
        }),
        routine("reduce", &|b| {
            let [high0, low0, high1, low1] = v.raw.each().map(|slot| b.input(slot));
            let reduced = |high, low| high * b.input(upper) + low * b.input(numbers.radix_squared);
            b.store(
                v.u,
                Fp2::from_parts([reduced(high0, low0), reduced(high1, low1)]),
            );
        }),
        routine("candidate", &|b| {
            let zu2 = times_z(b.load::<Fp2<'_>, 2>(v.u).square());
            let sum = zu2.square() + zu2;
            b.store(v.zu2, zu2);
            b.store(v.sum, sum);
            // -A times the sum.
            let n240 = b.input(n240);
            b.store(
                v.denominator,
                Fp2::from_parts([sum.c1 * n240, -(sum.c0 * n240)]),
            );
        }),
        // A Z
        routine("exceptional denominator", &|b| {
            b.store(
                v.denominator,
                Fp2::from_parts([b.input(n240), -b.input(n480)]),
            );
        }),
        routine("value", &|b| {
            let [sum, d] = [v.sum, v.denominator].map(|at| b.load::<Fp2<'_>, 2>(at));
            let one = Fp2::from_parts([b.input(numbers.one), b.zero()]);
            let n = times_b(sum + one, b.input(n1012));
            let dd = d.square();
            let ddd = dd * d;
            let nd = (n * dd).scale(b.input(n240));
            let a_term = Fp2::from_parts([-nd.c1, nd.c0]);
            let u = n.square() * n + a_term + times_b(ddd, b.input(n1012));
            let product = u * ddd;
            b.store(v.numerator, n);
            b.store(v.value, u);
            b.store(v.product, product);
            b.store(v.factor, one);
            b.store(base, norm(product));
        }),
        routine("root of the norm", &|b| {
            let (n, power): (Fp<'_>, Fp<'_>) = (b.load(base), b.load(m.inverse));
            let root = n * power;
            b.store(v.norm_root, root);
            b.store(v.inverse_norm_root, power);
            b.store(v.difference, root * power - b.input(numbers.one));
        }),
        routine("second candidate", &|b| {
            let [zu2, u, n, value, product] =
                [v.zu2, v.u, v.numerator, v.value, v.product].map(|at| b.load::<Fp2<'_>, 2>(at));
            b.store(v.numerator, n * zu2);
            b.store(v.value, times_z(value));
            b.store(v.product, times_z(product));
            b.store(v.factor, zu2 * u);
            let [root, inverse] =
                [v.norm_root, v.inverse_norm_root].map(|at| b.load::<Fp<'_>, 1>(at));
            b.store(v.norm_root, root * b.input(root_factor));
            b.store(v.inverse_norm_root, inverse * b.input(inverse_factor));
        }),
        routine("half of a trace", &|b| {
            let product: Fp2<'_> = b.load(v.product);
            let root: Fp<'_> = b.load(v.norm_root);
            b.store(base, (product.c0 + root) * b.input(half));
        }),
        // With the other root of the norm: this is for products that lie in Fp.
        routine("half of the other trace", &|b| {
            b.store(base, b.load::<Fp2<'_>, 2>(v.product).c0);
        }),
        // For t and its power w = t^((p - 3) / 4), w^2 t is 1 if t is a square, else -1. The root has t w for its real part in the first case, and half the product's imaginary part times w
        // in the second; the other part is half the imaginary part by the real one.
        routine("root", &|b| {
            let (t, w): (Fp<'_>, Fp<'_>) = (b.load(base), b.load(m.inverse));
            let product: Fp2<'_> = b.load(v.product);
            let real = t * w;
            b.store(
                v.root,
                Fp2::from_parts([real, product.c1 * b.input(half) * w]),
            );
            b.store(v.difference, real * w - b.input(numbers.one));
        }),
        routine("other root", &|b| {
            let root: Fp2<'_> = b.load(v.root);
            b.store(v.root, Fp2::from_parts([root.c1, -root.c0]));
        }),
        // 1 / D = D^2 / V, and 1 / V is the value times the square of the product's inverse root.
        routine("affine", &|b| {
            let [u, n, d, value, factor, root] =
                [v.u, v.numerator, v.denominator, v.value, v.factor, v.root]
                    .map(|at| b.load::<Fp2<'_>, 2>(at));
            let inverse = root.conjugate().scale(b.load(v.inverse_norm_root));
            let rooted = value * inverse;
            let y = rooted * factor;
            b.store(v.numerator, n * d.square() * (rooted * inverse));
            b.store(v.y, y);
            let plain = b.input(numbers.plain_one);
            b.store(v.plain.part::<2>(0), u.scale(plain));
            b.store(v.plain.part::<2>(2), y.scale(plain));
        }),
        routine("opposite y", &|b| {
            b.store(v.y, -b.load::<Fp2<'_>, 2>(v.y));
        }),
        // Vélu's formulas for the kernel of the two points with x = -6 + 6 i: with d the difference from that, x goes to (x d^2 + 48 i d + 16 (1 + i)) / (3 d)^2, and y to
        // -y (d^3 - 48 i d - 32 (1 + i)) / (3 d)^3.
        routine("isogeny", &|b| {
            let (x, y): (Fp2<'_>, Fp2<'_>) = (b.load(v.numerator), b.load(v.y));
            let six = b.input(n6);
            let d = Fp2::from_parts([x.c0 + six, x.c1 - six]);
            let dd = d.square();
            let ddd = dd * d;
            let t = d.scale(b.input(n48));
            let t = Fp2::from_parts([-t.c1, t.c0]);
            let u = Fp2::from_parts([b.input(n16); 2]);
            let point = Point {
                x: ((x * dd + t + u) * d).triple(),
                y: -(y * (ddd - t - u.double())),
                z: ddd.triple().triple().triple(),
            };
            let [px, py, pz] = [0, 2, 4].map(|index| Slots::<6>::at(m.point).part::<2>(index));
            b.store(px, point.x);
            b.store(py, point.y);
            b.store(pz, point.z);
        }),
    ]
}

/// x Z.
fn times_z<'b>(x: Fp2<'b>) -> Fp2<'b> {
    Fp2::from_parts([x.c1 - x.c0.double(), -(x.c0 + x.c1.double())])
}

fn norm<'b>(x: Fp2<'b>) -> Fp<'b> {
    x.c0.square() + x.c1.square()
}

/// x B.
fn times_b<'b>(x: Fp2<'b>, n1012: Fp<'b>) -> Fp2<'b> {
    x.times_xi().scale(n1012)
}
