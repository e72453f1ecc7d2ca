//! EIP-2537's pairing check around the pairing: decoding, the curves, the subgroups, points at infinity.
//!
//! The subgroup of Q costs a comparison only: with z Q = psi(Q) as its criterion (Scott, "A note on group membership tests for G1, G2 and GT on
//! BLS pairing-friendly curves", 2021), |z| Q is what the Miller loop's own point is in the end. Its formulas hold on the whole twist but where they give Z = 0,
//! which stays, and which no Q of the subgroup leads to.

use revm::bytecode::opcode::*;

use super::constants::RUNS;
use super::miller::Pairs;
use super::variables::RECORD_BYTES;
use super::writer::Writer;
use arbor_evm384::build::{Label, Slots, any_bit};

/// Calldata of a pair: P and Q, 64 bytes for each residue.
const PAIR_BYTES: u64 = 384;

impl Writer {
    /// The whole contract, up to its return.
    pub(super) fn check(&mut self) {
        let in_subgroup = self.contract.code.label();
        self.read_pairs(in_subgroup);
        let compute = self.contract.code.label();
        let records = self.records();
        self.contract.code.push(records);
        self.contract.code.push(u64::from(self.variables.end));
        self.contract.code.ops(&[MLOAD, GT]);
        self.contract.code.jump_if(compute);
        // No pair has a finite Q: the product is 1.
        self.contract.code.push(1);
        self.return_word();
        self.contract.code.place(compute);
        self.miller_loop(Pairs::Records);
        self.check_q();
        self.final_exponentiation();
        self.contract.inline("f - 9");
        self.contract
            .push(any_bit(self.variables.f.offset(), Slots::<12>::BYTES));
        self.contract.code.ops(&[ISZERO]);
        self.return_word();
        self.p_subroutine(in_subgroup);
    }

    fn return_word(&mut self) {
        self.contract.code.ops(&[PUSH0, MSTORE]);
        self.contract.code.push(32);
        self.contract.code.ops(&[PUSH0, RETURN]);
    }

    /// Fails if the word on top of the stack is not zero.
    fn require_zero(&mut self) {
        let fail = self.contract.fail();
        self.contract.code.jump_if(fail);
    }

    /// Makes a record of every pair with a finite Q, and checks everything of every point but the subgroup of Q.
    fn read_pairs(&mut self, in_subgroup: Label) {
        let v = self.variables;
        // A length that is no multiple of a pair's, or zero.
        self.contract.code.push(PAIR_BYTES);
        self.contract
            .code
            .ops(&[CALLDATASIZE, MOD, CALLDATASIZE, ISZERO, OR]);
        self.require_zero();
        let records = self.records();
        self.contract.code.push(records);
        self.contract.code.push(u64::from(v.end));
        self.contract.code.ops(&[MSTORE, PUSH0]);
        let pair = self.contract.code.here();

        self.contract.decode_next(v.raw.offset(), 2);
        self.contract
            .push(any_bit(v.raw.offset(), Slots::<2>::BYTES));
        self.contract.code.ops(&[ISZERO, ISZERO, DUP1]);
        let flag = self.record_flag();
        self.contract.code.push(flag);
        self.contract.code.ops(&[MSTORE, ISZERO]);
        let p_done = self.contract.code.label();
        self.contract.code.jump_if(p_done);
        self.contract.inline("read P");
        self.contract
            .push(any_bit(v.zeros.offset(), Slots::<1>::BYTES));
        self.require_zero();
        self.contract.code.call(in_subgroup);
        self.contract.code.place(p_done);

        self.contract.decode_next(v.raw.offset(), 4);
        self.contract
            .push(any_bit(v.raw.offset(), Slots::<4>::BYTES));
        self.contract.code.ops(&[ISZERO]);
        let q_done = self.contract.code.label();
        self.contract.code.jump_if(q_done);
        self.contract.inline("read Q");
        self.contract
            .push(any_bit(v.zeros.offset(), Slots::<2>::BYTES));
        self.require_zero();
        // The record goes to the end, which moves.
        let end = u64::from(v.end);
        self.contract.code.push(RECORD_BYTES);
        self.contract.code.push(u64::from(v.t.offset()));
        self.contract.code.push(end);
        self.contract.code.ops(&[MLOAD, DUP1]);
        self.contract.code.push(RECORD_BYTES);
        self.contract.code.ops(&[ADD]);
        self.contract.code.push(end);
        self.contract.code.ops(&[MSTORE, MCOPY]);
        self.contract.code.place(q_done);

        self.contract.code.ops(&[CALLDATASIZE, DUP2, LT]);
        self.contract.code.jump_if(pair);
        self.contract.code.ops(&[POP]);
    }

    /// Fails unless P is of order r: z^2 P, by two multiplications with |z|, against (beta x, y).
    fn p_subroutine(&mut self, in_subgroup: Label) {
        let v = self.variables;
        let doubles = self.contract.code.label();
        let add = self.contract.code.label();
        let multiply = self.contract.code.label();
        self.contract.code.place(in_subgroup);
        self.contract.call_times(2, multiply, multiply);
        self.contract.inline("subgroup of P");
        self.contract
            .push(any_bit(v.zeros.offset(), Slots::<2>::BYTES));
        self.require_zero();
        let z = v.multiple.part::<1>(2);
        self.contract.push(any_bit(z.offset(), Slots::<1>::BYTES));
        self.contract.code.ops(&[ISZERO]);
        self.require_zero();
        self.contract.code.ret();

        self.contract.code.place(multiply);
        self.contract.code.copy(v.multiplicand, v.multiple);
        for (zeros, one) in RUNS {
            self.contract.call_times(zeros, doubles, doubles);
            if one {
                self.contract.code.call(add);
            }
        }
        self.contract.code.ret();

        self.contract.code.place(doubles);
        self.contract.inline("double over Fp");
        self.contract.code.ret();
        self.contract.code.place(add);
        self.contract.inline("add over Fp");
        self.contract.code.ret();
    }

    /// Fails unless every Q is of order r.
    fn check_q(&mut self) {
        let v = self.variables;
        let records = self.records();
        self.contract.code.push(records);
        let pair = self.contract.code.here();
        self.load_record();
        self.contract.inline("subgroup of Q");
        self.contract
            .push(any_bit(v.zeros.offset(), Slots::<4>::BYTES));
        self.require_zero();
        let z = v.t.part::<2>(4);
        self.contract.push(any_bit(z.offset(), Slots::<2>::BYTES));
        self.contract.code.ops(&[ISZERO]);
        self.require_zero();
        self.next_record(pair);
    }
}
