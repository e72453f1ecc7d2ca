//! The Miller loop: f of one pair whose point lies ready, or of many pairs that share its squarings.

use revm::bytecode::opcode::*;

use super::constants::RUNS;
use super::program::{RECORD_BYTES, Writer};
use crate::build::Label;

/// Where the points are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    /// In the variables of the point routines.
    One,
    /// In records, up to the one that ends where the word `end` says; each is brought to the variables for its step.
    Records,
}

impl Writer {
    /// f = the Miller loop's function with the sign of the parameter applied, from f = 1. Records keep |z| Q as their T.
    pub(super) fn miller_loop(&mut self, pairs: Pairs) {
        let run = self.code.label();
        let first = self.code.label();
        let add = self.code.label();
        let after = self.code.label();
        self.copy_constant_one_to_f();
        for (index, (zeros, one)) in RUNS.into_iter().enumerate() {
            // The square of f = 1 is left out.
            self.call_times(zeros, if index == 0 { first } else { run });
            if one {
                self.code.call(add);
            }
        }
        self.code.call(self.labels.conjugate);
        self.code.jump(after);

        self.code.place(run);
        self.inline("square");
        self.code.place(first);
        self.each_pair(pairs, "double step");
        self.repeat(run);

        self.code.place(add);
        self.each_pair(pairs, "addition step");
        self.code.ret();
        self.code.place(after);
    }

    /// A step for each pair: its routine here, then f times the line.
    fn each_pair(&mut self, pairs: Pairs, step: &'static str) {
        if pairs == Pairs::One {
            self.inline(step);
            self.code.call(self.labels.times_line);
            return;
        }
        let point_bytes = u64::from(
            self.variables
                .t
                .offset()
                .abs_diff(self.variables.q.offset()),
        );
        let (record, flag) = (u64::from(self.variables.t.offset()), self.record_flag());
        self.code.push(self.records);
        let pair = self.code.here();
        self.load_record();
        self.inline(step);
        // T goes back.
        self.code.push(point_bytes);
        self.code.push(record);
        self.code.ops(&[DUP3, MCOPY]);
        self.code.push(flag);
        self.code.ops(&[MLOAD, ISZERO]);
        let skip = self.code.label();
        self.code.jump_if(skip);
        self.code.call(self.labels.times_line);
        self.code.place(skip);
        self.next_record(pair);
    }

    /// Copies the record at the address on top of the stack, which stays, to the variables.
    pub(super) fn load_record(&mut self) {
        self.code.push(RECORD_BYTES);
        self.code.ops(&[DUP2]);
        self.code.push(u64::from(self.variables.t.offset()));
        self.code.ops(&[MCOPY]);
    }

    /// Goes on at `pair` with the address of the next record; behind the last, drops it.
    pub(super) fn next_record(&mut self, pair: Label) {
        self.code.push(RECORD_BYTES);
        self.code.ops(&[ADD, DUP1]);
        self.code.push(u64::from(self.variables.end));
        self.code.ops(&[MLOAD, GT]);
        self.code.jump_if(pair);
        self.code.ops(&[POP]);
    }
}
