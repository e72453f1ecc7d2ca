//! The Miller loop: f of one pair whose point lies ready, or of many pairs that share its squarings.

use revm::bytecode::opcode::*;

use super::constants::RUNS;
use super::variables::RECORD_BYTES;
use super::writer::Writer;
use arbor_evm384::build::Label;

/// Where the points are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    /// In the variables of the point routines.
    One,
    /// In records, up to the one that ends where the word `end` says; each is brought to the variables for its step.
    Records,
}

impl Writer {
    /// f = the Miller loop's function for |z|, from f = 1. Records keep |z| Q as their T.
    pub(super) fn miller_loop(&mut self, pairs: Pairs) {
        let run = self.contract.code.label();
        let first = self.contract.code.label();
        let add = self.contract.code.label();
        let after = self.contract.code.label();
        self.copy_constant_one_to_f();
        for (index, (zeros, one)) in RUNS.into_iter().enumerate() {
            // The square of f = 1 is left out.
            let entry = if index == 0 { first } else { run };
            self.contract.call_times(zeros, entry, run);
            if one {
                self.contract.code.call(add);
            }
        }
        self.contract.code.jump(after);

        self.contract.code.place(run);
        self.contract.inline("square");
        self.contract.code.place(first);
        match pairs {
            // One copy of the product behind both steps, which goes back for them.
            Pairs::One => {
                self.contract.inline("double step");
                self.contract
                    .subroutine(self.labels.times_line, "times line");
                self.contract.code.place(add);
                self.contract.inline("addition step");
                self.contract.code.jump(self.labels.times_line);
            }
            Pairs::Records => {
                self.each_pair("double step");
                self.contract.code.ret();
                self.contract.code.place(add);
                self.each_pair("addition step");
                self.contract.code.ret();
                self.contract
                    .subroutine(self.labels.times_line, "times line");
            }
        }
        self.contract.code.place(after);
    }

    /// A step for each record: its routine here, then f times the line.
    fn each_pair(&mut self, step: &'static str) {
        let point_bytes = u64::from(
            self.variables
                .t
                .offset()
                .abs_diff(self.variables.q.offset()),
        );
        let (record, flag) = (u64::from(self.variables.t.offset()), self.record_flag());
        let records = self.records();
        self.contract.code.push(records);
        let pair = self.contract.code.here();
        self.load_record();
        self.contract.inline(step);
        // T goes back.
        self.contract.code.push(point_bytes);
        self.contract.code.push(record);
        self.contract.code.ops(&[DUP3, MCOPY]);
        self.contract.code.push(flag);
        self.contract.code.ops(&[MLOAD, ISZERO]);
        let skip = self.contract.code.label();
        self.contract.code.jump_if(skip);
        self.contract.code.call(self.labels.times_line);
        self.contract.code.place(skip);
        self.next_record(pair);
    }

    /// Copies the record at the address on top of the stack, which stays, to the variables.
    pub(super) fn load_record(&mut self) {
        self.contract.code.push(RECORD_BYTES);
        self.contract.code.ops(&[DUP2]);
        self.contract
            .code
            .push(u64::from(self.variables.t.offset()));
        self.contract.code.ops(&[MCOPY]);
    }

    /// Goes on at `pair` with the address of the next record; behind the last, drops it.
    pub(super) fn next_record(&mut self, pair: Label) {
        self.contract.code.push(RECORD_BYTES);
        self.contract.code.ops(&[ADD, DUP1]);
        self.contract.code.push(u64::from(self.variables.end));
        self.contract.code.ops(&[MLOAD, GT]);
        self.contract.code.jump_if(pair);
        self.contract.code.ops(&[POP]);
    }
}
