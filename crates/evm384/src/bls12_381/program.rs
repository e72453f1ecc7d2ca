//! From routines to contracts.

use std::collections::BTreeMap;

use revm::bytecode::opcode::*;

use super::constants::{MODULUS, montgomery};
use super::exponentiation::ODD_POWERS;
use super::miller::Pairs;
use super::routines::routines;
use crate::build::{Code, Counts, Label, Layout, Region, Routine, Slot, Slots, Weights};
use crate::reference::U384;
use crate::{GasSchedule, Interface, OPERAND_BYTES};

/// What a contract computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// From P and Q to f. Calldata and result are residues in Montgomery form, 48 bytes each, little-endian: P (x, y), Q (x, y, real part first),
    /// and the twelve coordinates of f. Nothing is checked.
    MillerLoop,
    /// From f to f^(3 (p^12 - 1) / r), in the same form.
    FinalExponentiation,
    /// Both.
    Pairing,
    /// EIP-2537's pairing check: the precompile's calldata and result. Where the precompile fails, the contract reverts.
    Check,
}

impl Part {
    /// All contracts.
    pub const ALL: [Self; 4] = [
        Self::MillerLoop,
        Self::FinalExponentiation,
        Self::Pairing,
        Self::Check,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MillerLoop => "miller-loop",
            Self::FinalExponentiation => "final-exponentiation",
            Self::Pairing => "pairing",
            Self::Check => "pairing-check",
        }
    }
}

/// A contract to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pairing {
    /// What it computes.
    pub part: Part,
    /// The form of its operations.
    pub interface: Interface,
    /// What it is short of.
    pub goal: Goal,
}

/// What a contract is short of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Time.
    #[default]
    Time,
    /// Gas, by model A.
    Gas,
}

impl Goal {
    const fn weights(self, interface: Interface) -> Weights {
        match self {
            Self::Time => Weights::TIME,
            Self::Gas => Weights::gas(interface, GasSchedule::MODEL_A),
        }
    }
}

/// A contract with what there is to say about it.
#[derive(Clone, Debug)]
pub struct Program {
    /// Runtime code.
    pub code: Vec<u8>,
    /// Names and operation counts of its routines, each as often as its code is there.
    pub routines: Vec<(&'static str, Counts)>,
    /// Its variables.
    pub memory: Vec<Region>,
}

/// T, Q, P and the tangent's form of P, and a word that says whether P is finite.
pub(super) const RECORD_BYTES: u64 = 14 * 48 + 32;

#[derive(Clone, Copy, Debug)]
pub(super) struct Variables {
    pub(super) f: Slots<12>,
    pub(super) g: Slots<12>,
    pub(super) saved: Slots<12>,
    /// Three times the third power of what the hard part of the final exponentiation begins with.
    pub(super) cube: Slots<12>,
    /// The coefficients of a multiple of an inverse in Fp6.
    pub(super) adjoint: Slots<6>,
    /// The norm from Fp6 to Fp2.
    pub(super) norm: Slots<2>,
    /// Odd powers of a residue, from the first.
    pub(super) powers: Slots<ODD_POWERS>,
    pub(super) inverse: Slots<1>,
    pub(super) line: Slots<6>,
    pub(super) t: Slots<6>,
    pub(super) q: Slots<4>,
    pub(super) p: Slots<2>,
    pub(super) tangent: Slots<2>,
    /// Elements as they come from calldata, and room for what decoding the last one writes behind it.
    pub(super) raw: Slots<5>,
    /// What must be zero.
    pub(super) zeros: Slots<4>,
    /// Multiples of a point over Fp.
    pub(super) multiple: Slots<3>,
    pub(super) multiplicand: Slots<3>,
    /// Offset of the word that says where records end.
    pub(super) end: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Labels {
    pub(super) conjugate: Label,
    pub(super) mul: Label,
    pub(super) times_line: Label,
    pub(super) cyclotomic_squares: Label,
    /// The same, entered behind the first of the squarings that an iteration makes.
    pub(super) cyclotomic_square: Label,
    pub(super) frobenius_twice: Label,
    pub(super) fail: Label,
}

/// A contract being written.
pub(super) struct Writer {
    pub(super) code: Code,
    pub(super) layout: Layout,
    pub(super) variables: Variables,
    pub(super) labels: Labels,
    /// Address of the first record.
    pub(super) records: u64,
    /// How many cyclotomic squarings an iteration makes: one, or two where there is room for their code.
    pub(super) squarings: u64,
    /// Where the constants lie in the code.
    data: Label,
    /// Length of the constants up to the last that is read.
    constants: usize,
    one: Slot,
    routines: BTreeMap<&'static str, Routine>,
    written: Vec<(&'static str, Counts)>,
}

impl Pairing {
    /// Writes it.
    #[must_use]
    pub fn program(self) -> Program {
        let mut writer = Writer::new(self);
        writer.load_constants();
        let v = writer.variables;
        match self.part {
            Part::MillerLoop | Part::Pairing => {
                writer.calldata(v.p, 0);
                writer.calldata(v.q, Slots::<2>::BYTES);
                writer.inline("begin");
                writer.miller_loop(Pairs::One);
                if self.part == Part::Pairing {
                    writer.final_exponentiation();
                    writer.inline("a ninth");
                }
                writer.return_f();
            }
            Part::FinalExponentiation => {
                writer.calldata(v.f, 0);
                writer.final_exponentiation();
                writer.inline("a ninth");
                writer.return_f();
            }
            Part::Check => writer.check(),
        }
        writer.finish(self.part)
    }
}

impl Writer {
    fn new(pairing: Pairing) -> Self {
        let Pairing {
            part,
            interface,
            goal,
        } = pairing;
        let mut layout = Layout::new(MODULUS);
        let variables = Variables::new(&mut layout);
        let one = layout.constant(montgomery(U384::ONE));
        let routines: BTreeMap<_, _> = routines(&mut layout, variables, goal.weights(interface))
            .into_iter()
            .map(|routine| (routine.name(), routine))
            .collect();
        let temporaries = routines.values().map(Routine::temporaries).max();
        let records = layout.end() + temporaries.unwrap_or(0) * Slots::<1>::BYTES;
        let mut code = Code::new(interface);
        let data = code.label();
        let labels = Labels {
            conjugate: code.label(),
            mul: code.label(),
            times_line: code.label(),
            cyclotomic_squares: code.label(),
            cyclotomic_square: code.label(),
            frobenius_twice: code.label(),
            fail: code.label(),
        };
        Self {
            code,
            layout,
            variables,
            labels,
            records: u64::from(records),
            squarings: if part == Part::Check { 1 } else { 2 },
            data,
            constants: 0,
            one,
            routines,
            written: Vec::new(),
        }
    }

    /// A routine's operations, here.
    pub(super) fn inline(&mut self, name: &'static str) {
        let routine = &self.routines[name];
        self.written.push((name, routine.counts()));
        self.code.routine(routine, &self.layout);
        let constants = self.layout.initial_memory().len();
        let read = routine
            .operations(&self.layout)
            .flat_map(|(_, offsets)| [offsets.x, offsets.y])
            .map(|offset| offset as usize + OPERAND_BYTES)
            .filter(|&end| end <= constants);
        self.constants = self.constants.max(read.max().unwrap_or(0));
    }

    fn subroutine(&mut self, label: Label, name: &'static str) {
        self.code.place(label);
        self.inline(name);
        self.code.ret();
    }

    /// Calls a subroutine that ends in [`Self::repeat`], which finds minus the number above the way back.
    pub(super) fn call_times(&mut self, times: u64, subroutine: Label) {
        let back = self.code.label();
        self.code.push_label(back);
        self.code.push(times - 1);
        self.code.ops(&[NOT]);
        self.code.jump(subroutine);
        self.code.place(back);
    }

    /// The end of a subroutine that runs several times: counts up to zero and goes to `start`, or back.
    pub(super) fn repeat(&mut self, start: Label) {
        self.code.push(1);
        self.code.ops(&[ADD, DUP1]);
        self.code.jump_if(start);
        self.code.ops(&[POP]);
        self.code.ret();
    }

    /// Pushes a word that is zero exactly if these bytes of memory are, 32 at least.
    pub(super) fn any_bit(&mut self, offset: u32, bytes: u32) {
        let words = bytes.div_ceil(32);
        for word in 0..words {
            // The last one overlaps the one before where the bytes are no whole words.
            let at = offset + (word * 32).min(bytes - 32);
            self.code.push(u64::from(at));
            self.code.ops(&[MLOAD]);
            if word > 0 {
                self.code.ops(&[OR]);
            }
        }
    }

    pub(super) fn copy_constant_one_to_f(&mut self) {
        self.code.push(u64::from(Slots::<1>::BYTES));
        self.code.push(u64::from(self.one.0));
        self.code.push(u64::from(self.variables.f.offset()));
        self.code.ops(&[MCOPY]);
    }

    /// Offset of the word that says whether the record's P is finite.
    pub(super) fn record_flag(&self) -> u64 {
        u64::from(self.variables.t.offset()) + RECORD_BYTES - 32
    }

    fn load_constants(&mut self) {
        self.code.push(self.layout.initial_memory().len() as u64);
        self.code.push_label(self.data);
        self.code.push(0);
        self.code.ops(&[CODECOPY]);
    }

    fn calldata<const N: usize>(&mut self, to: Slots<N>, from: u32) {
        self.code.push(u64::from(Slots::<N>::BYTES));
        self.code.push(u64::from(from));
        self.code.push(u64::from(to.offset()));
        self.code.ops(&[CALLDATACOPY]);
    }

    fn return_f(&mut self) {
        self.code.push(u64::from(Slots::<12>::BYTES));
        self.code.push(u64::from(self.variables.f.offset()));
        self.code.ops(&[RETURN]);
    }

    /// Subroutines and data behind the contract's main part.
    fn finish(mut self, part: Part) -> Program {
        let labels = self.labels;
        if part != Part::FinalExponentiation {
            self.subroutine(labels.times_line, "times line");
        }
        if part != Part::MillerLoop {
            self.subroutine(labels.mul, "multiply");
            self.subroutine(labels.frobenius_twice, "Frobenius map twice");
        }
        self.subroutine(labels.conjugate, "conjugate");
        self.code.mark(self.data);
        // What CODECOPY asks for behind the end of the code is zero.
        let constants = &self.layout.initial_memory()[..self.constants];
        self.code.data(constants);
        Program {
            code: self.code.finish(),
            routines: self.written,
            memory: self.layout.regions().to_vec(),
        }
    }
}

impl Variables {
    fn new(layout: &mut Layout) -> Self {
        let f = layout.variable("f");
        let g = layout.variable("g");
        let saved = layout.variable("saved");
        let cube = layout.variable("cube");
        let adjoint = layout.variable("adjoint");
        let norm = layout.variable("norm");
        let powers = layout.variable("powers");
        let inverse = layout.variable("inverse");
        let line = layout.variable("line");
        let record = layout.variable::<14>("pair");
        layout.bytes("pair is finite", 32);
        Self {
            f,
            g,
            saved,
            cube,
            adjoint,
            norm,
            powers,
            inverse,
            line,
            t: record.part(0),
            q: record.part(6),
            p: record.part(10),
            tangent: record.part(12),
            raw: layout.variable("raw"),
            zeros: layout.variable("zeros"),
            multiple: layout.variable("multiple"),
            multiplicand: layout.variable("multiplicand"),
            end: layout.bytes("end of pairs", 32),
        }
    }
}
