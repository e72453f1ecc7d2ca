//! What every statement needs: the reference string, sums of points, decoding, encoding, inversion.

use alloy_primitives::{Address, U256, keccak256};
use revm::bytecode::opcode::*;

use super::memory::{Labels, Memory, Verifier, Words};
use super::points::routines;
use super::{ENTRY, EXTENDED, FIELD, GROUP_ORDER, TOP, WIDE, WIDTH, reference_string};
use crate::bls12_381::{Goal, Program};
use arbor_evm384::Interface;
use arbor_evm384::build::{Contract, Layout, Slots, Variable, Word, any_bit};
use arbor_evm384::reference::U384;

/// The precompile.
const MODULAR_POWER: u32 = 5;

impl Verifier {
    pub(super) fn new(reference: Address, interface: Interface, goal: Goal) -> Self {
        let mut layout = Layout::new(FIELD.modulus());
        let (memory, words) = (Memory::new(&mut layout), Words::new(&mut layout));
        let routines = routines(&mut layout, memory, goal.weights(interface));
        let mut c = Contract::new(interface, layout, routines);
        let labels = Labels {
            sum: c.code.label(),
            read: c.code.label(),
            normalise: c.code.label(),
            invert: c.code.label(),
        };
        c.load_constants();
        let m = memory.placed(c.heap());
        Self {
            c,
            reference,
            m,
            w: words,
            labels,
        }
    }

    pub(super) fn for_each(
        &mut self,
        variable: Variable,
        range: (Word, Word),
        step: u32,
        body: impl FnOnce(&mut Self),
    ) {
        let (from, to) = range;
        self.c.set(variable, from);
        let start = self.c.code.here();
        body(self);
        self.c.set(variable, variable.get() + step);
        self.c.push(variable.get().below(to));
        self.c.code.jump_if(start);
    }

    /// Brings the reference string to the table.
    pub(super) fn load_reference(&mut self) {
        let (m, w) = (self.m, self.w);
        let code = reference_string();
        let address = U256::from_be_slice(self.reference.as_slice());
        let hash = Word::Computed(EXTCODEHASH, vec![address.into()]);
        self.c
            .require(hash.is(U256::from_be_bytes(keccak256(&code).0)));
        for word in [
            (code.len() - 1).into(),
            1.into(),
            m.code.into(),
            Word::from(address),
        ] {
            self.c.push(word);
        }
        self.c.code.ops(&[EXTCODECOPY]);
        self.c.inline("identity");
        self.c.set(w.to, m.table);
        let points = (m.code.into(), (m.code + (WIDTH + 1) * 64).into());
        self.for_each(w.from, points, 64, |v| {
            let [x, y, _] = m.addend.each();
            v.c.store(x.0, Word::memory(w.from));
            v.c.store(y.0, Word::memory(w.from.get() + 32));
            v.c.inline("product");
            v.c.copy(w.to, m.addend.offset(), ENTRY);
            v.c.set(w.to, w.to.get() + ENTRY);
        });
        let buckets = ((1 << (WIDE - 1)) + 1) * EXTENDED;
        let identities = (m.identities.into(), (m.identities + buckets).into());
        self.for_each(w.to, identities, EXTENDED, |v| {
            v.c.copy(w.to, m.identity.offset(), EXTENDED);
        });
    }

    pub(super) fn set_windows(&mut self, bits: u32) {
        let w = self.w;
        let half = U256::from(1u32 << (bits - 1));
        let windows = 0..TOP / bits;
        let shifted = windows.fold(U256::ZERO, |sum, _| (sum << bits) + half);
        self.c.set(w.bits, bits);
        self.c.set(w.half, half);
        self.c.set(w.mask, (1u32 << bits) - 1);
        self.c.set(w.shifted, shifted);
    }

    /// Returns whether the sum of so many entries of the table is the group's zero: (0, 1), or (0, -1), which is the same element.
    pub(super) fn return_whether_zero(&mut self, entries: u32) {
        let (m, w) = (self.m, self.w);
        self.c.set(w.table, m.table);
        self.c.set(w.scalars, m.scalars);
        self.c.set(w.scalars_end, m.scalars + entries * 32);
        self.set_windows(WIDE);
        self.c.code.call(self.labels.sum);
        let x = any_bit(m.total.offset(), Slots::<1>::BYTES);
        self.c.return_word(x.is_zero());
    }

    pub(super) fn finish(mut self) -> Program {
        self.sum_subroutine();
        self.read_subroutine();
        self.normalise_subroutine();
        self.invert_subroutine();
        self.c.finish()
    }

    /// total = the sum of the table's points times the scalars, which are not to be read afterwards.
    pub(super) fn sum_subroutine(&mut self) {
        let (m, w) = (self.m, self.w);
        self.c.code.place(self.labels.sum);
        self.c.copy(m.total.offset(), m.identity.offset(), EXTENDED);
        self.for_each(w.i, (w.scalars.get(), w.scalars_end.get()), 32, |v| {
            let shifted = Word::memory(w.i) + w.shifted.get();
            v.c.store(w.i, shifted);
        });
        self.c.set(w.shift, TOP);
        self.c.set(w.offset, 0);
        let window = self.c.code.here();
        self.c.set(w.i, w.bits);
        self.c.loop_while(w.i.get(), |c| {
            c.inline("double");
            c.set(w.i, w.i.get() - 1);
        });
        let bytes = (w.half.get() + 1) * EXTENDED;
        self.c.copy(m.buckets, m.identities, bytes);
        self.fill_buckets();
        self.c
            .copy(m.running.offset(), m.identity.offset(), EXTENDED);
        self.c.set(w.bucket, w.half.get() * EXTENDED + m.buckets);
        self.c.loop_while(w.bucket.get().above(m.buckets), |c| {
            c.copy(m.bucket.offset(), w.bucket, EXTENDED);
            c.inline("add the bucket");
            c.inline("add the running sum");
            c.set(w.bucket, w.bucket.get() - EXTENDED);
        });
        self.c.set(w.offset, w.half);
        self.c.set(w.shift, w.shift.get() - w.bits.get());
        self.c.push(w.shift.get().is_negative().is_zero());
        self.c.code.jump_if(window);
        self.c.code.ret();
    }

    /// Adds every point to the bucket of its window's digit. What differs from point to point is on the stack: this is where sums spend their gas.
    fn fill_buckets(&mut self) {
        let (m, w) = (self.m, self.w);
        let c = &mut self.c;
        let [negative, bucket, next] = [c.code.label(), c.code.label(), c.code.label()];
        c.push(w.table);
        c.push(w.scalars);
        let point = c.code.here();
        c.code.ops(&[DUP1, MLOAD]);
        c.push(w.shift);
        c.code.ops(&[SHR]);
        c.push(w.mask);
        c.code.ops(&[AND]);
        c.push(w.offset);
        c.code.ops(&[SWAP1, SUB, DUP1, ISZERO]);
        c.code.jump_if(next);
        // The digit, the scalar's address, the point's.
        c.push(ENTRY);
        c.code.ops(&[DUP4]);
        c.push(m.addend.offset());
        c.code.ops(&[MCOPY, DUP1]);
        c.push(255);
        c.code.ops(&[SHR]);
        c.code.jump_if(negative);
        c.code.place(bucket);
        c.push(EXTENDED);
        c.code.ops(&[MUL]);
        c.push(m.buckets);
        c.code.ops(&[ADD]);
        c.push(EXTENDED);
        c.code.ops(&[DUP2]);
        c.push(m.bucket.offset());
        c.code.ops(&[MCOPY]);
        c.inline("add to the bucket");
        c.push(EXTENDED);
        c.push(m.bucket.offset());
        c.code.ops(&[DUP3, MCOPY]);
        c.code.place(next);
        c.code.ops(&[POP, SWAP1]);
        c.push(ENTRY);
        c.code.ops(&[ADD, SWAP1]);
        c.push(32);
        c.code.ops(&[ADD, DUP1]);
        c.push(w.scalars_end);
        c.code.ops(&[GT]);
        c.code.jump_if(point);
        c.code.ops(&[POP, POP]);
        let after = c.code.label();
        c.code.jump(after);
        c.code.place(negative);
        c.inline("opposite");
        c.code.ops(&[PUSH0, SUB]);
        c.code.jump(bucket);
        c.code.place(after);
    }

    /// Decodes the point at `from` to the entry at `to`, with all checks.
    pub(super) fn read_subroutine(&mut self) {
        let (m, w) = (self.m, self.w);
        self.c.code.place(self.labels.read);
        for (index, slot) in m.raw.each().into_iter().enumerate() {
            self.c
                .decode_word(slot, Word::calldata(w.from.get() + 32 * index));
        }
        let [y, root] = [32, 64].map(|offset| Word::calldata(w.from.get() + offset));
        self.c.require(y.above(half_of_modulus()));
        self.c.require(root);
        self.c.inline("read");
        self.c.refuse(any_bit(m.zeros.offset(), Slots::<2>::BYTES));
        self.c.copy(w.to, m.addend.offset(), ENTRY);
        self.c.code.ret();
    }

    /// addend = total as a table has it, and its compressed form.
    pub(super) fn normalise_subroutine(&mut self) {
        let (m, w) = (self.m, self.w);
        let modulus = U256::from(FIELD.modulus());
        self.c.code.place(self.labels.normalise);
        self.c.inline("denominator");
        self.c
            .power(m.inverse, m.powers, FIELD.modulus() - U384::from(2));
        self.c.inline("affine");
        let [x, y] = m.plain.each();
        for (slot, word) in [(x, w.encoding), (y, w.x)] {
            self.c.push(Word::memory(slot.0));
            self.c.reverse_bytes();
            self.c.push(word.0);
            self.c.code.ops(&[MSTORE]);
        }
        let large = w.x.get().above(half_of_modulus());
        self.c.when(large.is_zero(), |c| {
            c.set(
                w.encoding,
                (Word::from(modulus) - w.encoding.get()) % modulus,
            );
        });
        self.c.code.ret();
    }

    /// The words from `first` to `last` become their inverses, with one power: `product` is the product of all.
    pub(super) fn invert_subroutine(&mut self) {
        let (m, w) = (self.m, self.w);
        let times = |x: Word, y: Word| x.mul_mod(y, GROUP_ORDER);
        self.c.code.place(self.labels.invert);
        self.c.set(w.product, 1);
        self.c.set(w.j, m.scratch);
        self.for_each(w.i, (w.first.get(), w.last.get()), 32, |v| {
            v.c.store(w.j, w.product);
            v.c.set(w.product, times(w.product.get(), Word::memory(w.i)));
            v.c.set(w.j, w.j.get() + 32);
        });
        self.c.require(w.product);
        let exponent = GROUP_ORDER - U256::from(2);
        let words = [
            32.into(),
            32.into(),
            32.into(),
            w.product.get(),
            exponent.into(),
            GROUP_ORDER.into(),
        ];
        for (index, word) in words.into_iter().enumerate() {
            self.c.store(m.power_input + 32 * index as u32, word);
        }
        let input = (m.power_input.into(), (6 * 32).into());
        self.c
            .static_call(MODULAR_POWER, input, (w.inverse.0.into(), 32.into()));
        self.require_success();
        self.c.set(w.i, w.last);
        self.c.loop_while(w.i.get().above(w.first), |c| {
            c.set(w.i, w.i.get() - 32);
            c.set(w.j, w.j.get() - 32);
            c.set(w.held, Word::memory(w.i));
            c.store(w.i, times(w.inverse.get(), Word::memory(w.j)));
            c.set(w.inverse, times(w.inverse.get(), w.held.get()));
        });
        self.c.code.ret();
    }
}

/// The largest y that is smaller than -y.
fn half_of_modulus() -> U256 {
    U256::from(FIELD.modulus()) >> 1
}
