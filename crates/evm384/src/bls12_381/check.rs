//! EIP-2537's pairing check around the pairing: decoding, the curves, the subgroups, points at infinity.
//!
//! The subgroup of Q costs a comparison only: with z Q = psi(Q) as its criterion (Scott, "A note on group membership tests for G1, G2 and GT on
//! BLS pairing-friendly curves", 2021), |z| Q is what the Miller loop's own point is in the end. Its formulas hold on the whole twist but where they give Z = 0,
//! which stays, and which no Q of the subgroup leads to.

use revm::bytecode::opcode::*;

use super::constants::{MODULUS, RUNS};
use super::miller::Pairs;
use super::program::{RECORD_BYTES, Writer};
use crate::build::{Label, Slots};

/// Calldata of a pair: P and Q, 64 bytes for each residue.
const PAIR_BYTES: u64 = 384;

impl Writer {
    /// The whole contract, up to its return.
    pub(super) fn check(&mut self) {
        let decode = self.code.label();
        let in_subgroup = self.code.label();
        self.read_pairs(decode, in_subgroup);
        let compute = self.code.label();
        self.code.push(self.records);
        self.code.push(u64::from(self.variables.end));
        self.code.ops(&[MLOAD, GT]);
        self.code.jump_if(compute);
        // No pair has a finite Q: the product is 1.
        self.code.push(1);
        self.return_word();
        self.code.place(compute);
        self.miller_loop(Pairs::Records);
        self.check_q();
        self.final_exponentiation();
        self.inline("f - 9");
        self.any_bit(self.variables.f.offset(), Slots::<12>::BYTES);
        self.code.ops(&[ISZERO]);
        self.return_word();
        self.decode_subroutine(decode);
        self.p_subroutine(in_subgroup);
        self.code.place(self.labels.fail);
        self.code.ops(&[PUSH0, PUSH0, REVERT]);
    }

    fn return_word(&mut self) {
        self.code.ops(&[PUSH0, MSTORE]);
        self.code.push(32);
        self.code.ops(&[PUSH0, RETURN]);
    }

    /// Fails if the word on top of the stack is not zero.
    fn require_zero(&mut self) {
        self.code.jump_if(self.labels.fail);
    }

    /// Makes a record of every pair with a finite Q, and checks everything of every point but the subgroup of Q.
    fn read_pairs(&mut self, decode: Label, in_subgroup: Label) {
        let v = self.variables;
        // A length that is no multiple of a pair's, or zero.
        self.code.push(PAIR_BYTES);
        self.code
            .ops(&[CALLDATASIZE, MOD, CALLDATASIZE, ISZERO, OR]);
        self.require_zero();
        self.code.push(self.records);
        self.code.push(u64::from(v.end));
        self.code.ops(&[MSTORE, PUSH0]);
        let pair = self.code.here();

        self.decode(decode, 2);
        self.any_bit(v.raw.offset(), Slots::<2>::BYTES);
        self.code.ops(&[ISZERO, ISZERO, DUP1]);
        self.code.push(self.record_flag());
        self.code.ops(&[MSTORE, ISZERO]);
        let p_done = self.code.label();
        self.code.jump_if(p_done);
        self.inline("read P");
        self.any_bit(v.zeros.offset(), Slots::<1>::BYTES);
        self.require_zero();
        self.code.call(in_subgroup);
        self.code.place(p_done);

        self.decode(decode, 4);
        self.any_bit(v.raw.offset(), Slots::<4>::BYTES);
        self.code.ops(&[ISZERO]);
        let q_done = self.code.label();
        self.code.jump_if(q_done);
        self.inline("read Q");
        self.any_bit(v.zeros.offset(), Slots::<2>::BYTES);
        self.require_zero();
        // The record goes to the end, which moves.
        let end = u64::from(v.end);
        self.code.push(RECORD_BYTES);
        self.code.push(u64::from(v.t.offset()));
        self.code.push(end);
        self.code.ops(&[MLOAD, DUP1]);
        self.code.push(RECORD_BYTES);
        self.code.ops(&[ADD]);
        self.code.push(end);
        self.code.ops(&[MSTORE, MCOPY]);
        self.code.place(q_done);

        self.code.ops(&[CALLDATASIZE, DUP2, LT]);
        self.code.jump_if(pair);
        self.code.ops(&[POP]);
    }

    /// Brings `count` residues from calldata, at the offset on top of the stack, which moves, to the raw slots.
    fn decode(&mut self, decode: Label, count: usize) {
        for slot in &self.variables.raw.each()[..count] {
            let back = self.code.label();
            self.code.push_label(back);
            self.code.push(u64::from(slot.0));
            self.code.ops(&[DUP3]);
            self.code.jump(decode);
            self.code.place(back);
            self.code.push(64);
            self.code.ops(&[ADD]);
        }
    }

    /// Takes an address in memory and one in calldata above it: 64 bytes there, most significant first, become 48 here, least significant first, and 16 zeros
    /// behind them. Fails unless the number is below p.
    fn decode_subroutine(&mut self, decode: Label) {
        let modulus = MODULUS.to_be_bytes::<48>();
        let (high, low) = modulus.split_at(16);
        let reverse = self.code.label();
        self.code.place(decode);
        self.code.ops(&[DUP1, CALLDATALOAD, SWAP1]);
        self.code.push(32);
        self.code.ops(&[ADD, CALLDATALOAD]);
        // high < p's || (high == p's && low < p's)
        self.code.push_bytes(low);
        self.code.ops(&[DUP2, LT]);
        self.code.push_bytes(high);
        self.code.ops(&[DUP4, EQ, AND]);
        self.code.push_bytes(high);
        self.code.ops(&[DUP4, LT, OR, ISZERO]);
        self.require_zero();
        for half in 0..2u64 {
            let back = self.code.label();
            self.code.push_label(back);
            self.code.ops(&[SWAP1]);
            self.code.jump(reverse);
            self.code.place(back);
            match half {
                0 => self.code.ops(&[DUP3, MSTORE]),
                _ => {
                    self.code.ops(&[SWAP1]);
                    self.code.push(32);
                    self.code.ops(&[ADD, MSTORE]);
                }
            }
        }
        self.code.ret();
        self.reverse_subroutine(reverse);
    }

    /// Reverses the bytes of a word: neighbours change places, then pairs of them, and so on.
    fn reverse_subroutine(&mut self, reverse: Label) {
        self.code.place(reverse);
        for bits in [8usize, 16, 32, 64] {
            let low_halves: Vec<u8> = (0..32)
                .map(|byte| if byte * 8 / bits % 2 == 1 { 0xff } else { 0 })
                .collect();
            self.code.push_bytes(&low_halves);
            // (x & mask) << bits | (x >> bits) & mask
            self.code.ops(&[DUP1, DUP3, AND]);
            self.code.push(bits as u64);
            self.code.ops(&[SHL, SWAP2]);
            self.code.push(bits as u64);
            self.code.ops(&[SHR, AND, OR]);
        }
        self.code.ops(&[DUP1]);
        self.code.push(128);
        self.code.ops(&[SHL, SWAP1]);
        self.code.push(128);
        self.code.ops(&[SHR, OR, SWAP1]);
        self.code.ret();
    }

    /// Fails unless P is of order r: z^2 P, by two multiplications with |z|, against (beta x, y).
    fn p_subroutine(&mut self, in_subgroup: Label) {
        let v = self.variables;
        let doubles = self.code.label();
        let add = self.code.label();
        self.code.place(in_subgroup);
        for _ in 0..2 {
            self.code.copy(v.multiplicand, v.multiple);
            for (zeros, one) in RUNS {
                self.call_times(zeros, doubles);
                if one {
                    self.code.call(add);
                }
            }
        }
        self.inline("subgroup of P");
        self.any_bit(v.zeros.offset(), Slots::<2>::BYTES);
        self.require_zero();
        let z = v.multiple.part::<1>(2);
        self.any_bit(z.offset(), Slots::<1>::BYTES);
        self.code.ops(&[ISZERO]);
        self.require_zero();
        self.code.ret();

        self.code.place(doubles);
        self.inline("double over Fp");
        self.repeat(doubles);
        self.code.place(add);
        self.inline("add over Fp");
        self.code.ret();
    }

    /// Fails unless every Q is of order r.
    fn check_q(&mut self) {
        let v = self.variables;
        self.code.push(self.records);
        let pair = self.code.here();
        self.load_record();
        self.inline("subgroup of Q");
        self.any_bit(v.zeros.offset(), Slots::<4>::BYTES);
        self.require_zero();
        let z = v.t.part::<2>(4);
        self.any_bit(z.offset(), Slots::<2>::BYTES);
        self.code.ops(&[ISZERO]);
        self.require_zero();
        self.next_record(pair);
    }
}
