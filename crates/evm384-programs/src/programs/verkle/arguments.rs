//! The statements: transcripts, the inner product argument, multiproofs.

use alloy_primitives::U256;
use revm::bytecode::opcode::{ISZERO, MOD, MSTORE};

use super::memory::{COMMITMENT, ENTRIES, LEFT, Q, RIGHT, Verifier};
use super::{ENTRY, EXTENDED, GROUP_ORDER, MANY, NARROW, POINT, ROUNDS, WIDE, WIDTH};
use arbor_evm384::build::{Variable, Word};

/// The precompile.
const SHA_256: u32 = 2;

impl Verifier {
    pub(super) fn commitment(&mut self) {
        let (m, w) = (self.m, self.w);
        self.c.require(Word::calldata_size().is(POINT + WIDTH * 32));
        self.read(0, m.table + COMMITMENT * ENTRY);
        self.c.copy_calldata(m.scalars, POINT, WIDTH * 32);
        let scalars = (m.scalars.into(), (m.scalars + WIDTH * 32).into());
        self.for_each(w.i, scalars, 32, |v| {
            v.c.require(Word::memory(w.i).below(GROUP_ORDER));
        });
        self.c
            .store(m.scalars + COMMITMENT * 32, GROUP_ORDER - U256::from(1));
        self.return_whether_zero(COMMITMENT + 1);
    }

    pub(super) fn opening(&mut self, label: &[u8]) {
        let (m, w) = (self.m, self.w);
        let proof = POINT + 64;
        let length = proof + 2 * ROUNDS * POINT + 32;
        self.c.require(Word::calldata_size().is(length));
        self.c.set(w.begin, m.dynamic);
        self.c.set(w.end, m.dynamic);
        self.append_label(label);
        self.read(0, m.table + COMMITMENT * ENTRY);
        self.c.set(w.encoding, Word::calldata(0));
        self.scalar(w.t, Word::calldata(POINT));
        self.scalar(w.value, Word::calldata(POINT + 32));
        self.invert_distances();
        self.inner_product_argument(proof);
    }

    pub(super) fn openings(&mut self, label: &[u8]) {
        let (m, w) = (self.m, self.w);
        let proof = (2 * ROUNDS + 1) * POINT + 32;
        let query = POINT + 64;
        let size = Word::calldata_size;
        self.c.require(size().above(proof));
        self.c.refuse((size() - proof) % query);
        let count = (size() - proof) / query;
        self.c.set(w.queries, m.dynamic);
        self.c
            .set(w.query_scalars, count.clone() * ENTRY + m.dynamic);
        self.c
            .set(w.begin, w.query_scalars.get() + count.clone() * 32);
        self.c.set(w.end, w.begin);
        self.append_label(label);
        self.append_label(b"multiproof");
        self.c.set(w.to, w.queries);
        self.for_each(w.from, (proof.into(), size()), query, |v| {
            v.c.code.call(v.labels.read);
            v.c.set(w.to, w.to.get() + ENTRY);
            let point = || Word::calldata(w.from.get() + POINT);
            v.c.require(point().below(WIDTH));
            v.scalar(w.value, Word::calldata(w.from.get() + (POINT + 32)));
            v.append_label(b"C");
            v.append(Word::calldata(w.from));
            v.append_label(b"z");
            v.append(point() << 248);
            v.append_label(b"y");
            v.append(Word::calldata(w.from.get() + (POINT + 32)));
        });
        self.challenge(b"r", w.r);
        self.read(0, m.quotients);
        self.append_label(b"D");
        self.append(Word::calldata(0));
        self.challenge(b"t", w.t);
        self.invert_distances();
        // E, the sum of C r^i / (t - z), and the value that it is to have.
        self.c.set(w.value, 0);
        self.c.set(w.power, 1);
        self.c.set(w.to, w.query_scalars);
        self.for_each(w.from, (proof.into(), size()), query, |v| {
            let point = Word::calldata(w.from.get() + POINT);
            let inverse = Word::memory(point * 32 + m.distances);
            v.c.store(w.to, w.power.get().mul_mod(inverse, GROUP_ORDER));
            v.scalar(w.x, Word::calldata(w.from.get() + (POINT + 32)));
            let term = Word::memory(w.to).mul_mod(w.x, GROUP_ORDER);
            v.c.set(w.value, term.add_mod(w.value, GROUP_ORDER));
            v.c.set(w.power, w.power.get().mul_mod(w.r, GROUP_ORDER));
            v.c.set(w.to, w.to.get() + 32);
        });
        self.c.set(w.table, w.queries);
        self.c.set(w.scalars, w.query_scalars);
        self.c.set(w.scalars_end, w.begin);
        self.set_windows(NARROW);
        let after = self.c.code.label();
        self.c.push(count.below(MANY));
        self.c.code.jump_if(after);
        self.set_windows(WIDE);
        self.c.code.place(after);
        self.c.code.call(self.labels.sum);
        self.c.code.call(self.labels.normalise);
        self.append_label(b"E");
        self.append(w.encoding.get());
        // E - D
        self.c.copy(m.addend.offset(), m.quotients, ENTRY);
        self.c.inline("opposite");
        self.c.copy(m.bucket.offset(), m.total.offset(), EXTENDED);
        self.c.inline("add to the bucket");
        self.c.copy(m.total.offset(), m.bucket.offset(), EXTENDED);
        self.c.code.call(self.labels.normalise);
        self.c
            .copy(m.table + COMMITMENT * ENTRY, m.addend.offset(), ENTRY);
        self.inner_product_argument(POINT);
    }

    /// Verifies that the polynomial behind the table's commitment, which is encoded already, has its value at t; `points` is where L begins in calldata.
    pub(super) fn inner_product_argument(&mut self, points: u32) {
        let (m, w) = (self.m, self.w);
        self.append_label(b"ipa");
        self.append_label(b"C");
        self.append(w.encoding.get());
        self.append_label(b"input point");
        self.append_scalar(w.t.get());
        self.append_label(b"output point");
        self.append_scalar(w.value.get());
        self.challenge(b"w", w.w);
        self.for_each(w.j, (0.into(), ROUNDS.into()), 1, |v| {
            for (label, first, entry) in
                [(b"L", points, LEFT), (b"R", points + ROUNDS * POINT, RIGHT)]
            {
                v.c.set(w.from, w.j.get() * POINT + first);
                v.c.set(w.to, w.j.get() * ENTRY + (m.table + entry * ENTRY));
                v.c.code.call(v.labels.read);
                v.append_label(label);
                v.append(Word::calldata(w.from));
            }
            v.challenge(b"x", w.x);
            for entry in [LEFT, RIGHT] {
                v.c.store(w.j.get() * 32 + (m.scalars + entry * 32), w.x);
            }
        });
        self.invert(m.scalars + RIGHT * 32, ROUNDS);
        self.scalar(w.a, Word::calldata(points + 2 * ROUNDS * POINT));
        self.fold();
        // Scalars -a s of the reference string; the inner product of s and b, but for the product of distances.
        self.c.set(w.inner, 0);
        self.for_each(w.i, (0.into(), (WIDTH * 32).into()), 32, |v| {
            let folded = || Word::memory(w.i.get() + m.folded);
            let opposite = Word::from(GROUP_ORDER) - w.a.get();
            v.c.store(
                w.i.get() + m.scalars,
                folded().mul_mod(opposite, GROUP_ORDER),
            );
            v.derivative();
            let distance = Word::memory(w.i.get() + m.distances);
            let term = folded().mul_mod(distance, GROUP_ORDER);
            let term = term.mul_mod(w.x, GROUP_ORDER);
            v.c.set(w.inner, term.add_mod(w.inner, GROUP_ORDER));
        });
        let inner = w.inner.get().mul_mod(w.vanishing, GROUP_ORDER);
        let opposite = Word::from(GROUP_ORDER) - inner.mul_mod(w.a, GROUP_ORDER);
        let difference = w.value.get().add_mod(opposite, GROUP_ORDER);
        self.c
            .store(m.scalars + Q * 32, difference.mul_mod(w.w, GROUP_ORDER));
        self.c.store(m.scalars + COMMITMENT * 32, 1);
        self.return_whether_zero(ENTRIES);
    }

    /// x = 1 / A'(k), where i is 32 k.
    pub(super) fn derivative(&mut self) {
        let (m, w) = (self.m, self.w);
        let table = m.code + (WIDTH + 1) * 64;
        let half = WIDTH / 2 * 32;
        self.c.set(w.x, Word::memory(w.i.get() + table));
        self.c.when(w.i.get().above(half - 1), |c| {
            let mirrored = Word::from(table + WIDTH * 32 - 32) - w.i.get();
            c.set(w.x, Word::from(GROUP_ORDER) - Word::memory(mirrored));
        });
    }

    /// The 256 products of the challenges' inverses: the first challenge decides by the index' top bit.
    pub(super) fn fold(&mut self) {
        let (m, w) = (self.m, self.w);
        self.c.store(m.folded, 1);
        for round in 0..ROUNDS {
            let length = 32 << round;
            let inverse = m.scalars + (RIGHT + ROUNDS - 1 - round) * 32;
            let lower = (m.folded.into(), (m.folded + length).into());
            self.for_each(w.i, lower, 32, |v| {
                let product = Word::memory(w.i).mul_mod(Word::memory(inverse), GROUP_ORDER);
                v.c.store(w.i.get() + length, product);
            });
        }
    }

    /// 1 / (t - i) for the domain; `vanishing` becomes the product of all t - i.
    pub(super) fn invert_distances(&mut self) {
        let (m, w) = (self.m, self.w);
        self.for_each(w.i, (0.into(), WIDTH.into()), 1, |v| {
            let opposite = Word::from(GROUP_ORDER) - w.i.get();
            let distance = w.t.get().add_mod(opposite, GROUP_ORDER);
            v.c.store(w.i.get() * 32 + m.distances, distance);
        });
        self.invert(m.distances, WIDTH);
        self.c.set(w.vanishing, w.product);
    }

    /// Replaces words by their inverses modulo the group's order; reverts if one is zero.
    pub(super) fn invert(&mut self, first: u32, count: u32) {
        self.c.set(self.w.first, first);
        self.c.set(self.w.last, first + count * 32);
        self.c.code.call(self.labels.invert);
    }

    /// Decodes a point.
    pub(super) fn read(&mut self, from: u32, to: u32) {
        self.c.set(self.w.from, from);
        self.c.set(self.w.to, to);
        self.c.code.call(self.labels.read);
    }

    /// A scalar from a word with its least significant byte first.
    pub(super) fn scalar(&mut self, to: Variable, encoded: Word) {
        self.c.push(encoded);
        self.c.reverse_bytes();
        self.c.push(to.0);
        self.c.code.ops(&[MSTORE]);
        self.c.require(to.get().below(GROUP_ORDER));
    }

    pub(super) fn append_label(&mut self, label: &[u8]) {
        let mut word = [0; 32];
        word[..label.len()].copy_from_slice(label);
        self.c.store(self.w.end, U256::from_be_bytes(word));
        self.c.set(self.w.end, self.w.end.get() + label.len());
    }

    pub(super) fn append(&mut self, word: Word) {
        self.c.store(self.w.end, word);
        self.c.set(self.w.end, self.w.end.get() + 32);
    }

    pub(super) fn append_scalar(&mut self, scalar: Word) {
        self.c.push(scalar);
        self.c.reverse_bytes();
        self.c.push(self.w.end);
        self.c.code.ops(&[MSTORE]);
        self.c.set(self.w.end, self.w.end.get() + 32);
    }

    pub(super) fn challenge(&mut self, label: &[u8], to: Variable) {
        let w = self.w;
        self.append_label(label);
        let input = (w.begin.get(), w.end.get() - w.begin.get());
        self.c.static_call(SHA_256, input, (to.0.into(), 32.into()));
        self.require_success();
        self.c.push(GROUP_ORDER);
        self.c.push(to);
        self.c.reverse_bytes();
        self.c.code.ops(&[MOD]);
        self.c.push(to.0);
        self.c.code.ops(&[MSTORE]);
        self.c.set(w.end, w.begin);
        self.append_label(label);
        self.append_scalar(to.get());
    }

    /// Reverts unless a call has left a one on the stack.
    pub(super) fn require_success(&mut self) {
        let fail = self.c.fail();
        self.c.code.ops(&[ISZERO]);
        self.c.code.jump_if(fail);
    }
}
