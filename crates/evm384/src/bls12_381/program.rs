//! From routines to contracts.

use super::constants::{MODULUS, montgomery};
use super::miller::Pairs;
use super::routines::routines;
use crate::Interface;
use crate::build::{Contract, Goal, Label, Layout, ODD_POWERS, Program, Slot, Slots, Weights};
use crate::reference::U384;

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
    /// An iteration of cyclotomic squarings, entered behind so many of them.
    pub(super) squares: [Label; MOST_SQUARINGS],
    pub(super) frobenius_twice: Label,
}

/// The most that `squarings` of a [`Writer`] is.
const MOST_SQUARINGS: usize = 3;

/// Gas of an operation on two words, its call included.
const WORDS: Weights = Weights { mul: 750, add: 250 };

/// A contract being written.
pub(super) struct Writer {
    pub(super) contract: Contract,
    pub(super) variables: Variables,
    pub(super) labels: Labels,
    /// How many cyclotomic squarings an iteration makes: as many as there is room for in code that may be deployed.
    pub(super) squarings: usize,
    one: Slot,
}

impl Pairing {
    /// Writes it.
    #[must_use]
    pub fn program(self) -> Program {
        let Self {
            part,
            interface,
            goal,
        } = self;
        Writer {
            squarings: match (part, goal) {
                (Part::Check, _) => 1,
                (_, Goal::Time) => 2,
                (_, Goal::Gas) => MOST_SQUARINGS,
            },
            ..Writer::new(Layout::new(MODULUS), interface, goal.weights(interface))
        }
        .program(part)
    }
}

impl Part {
    /// The contract without EVM384, its operations on two words by subroutines: calldata and result are the same.
    #[must_use]
    pub fn of_words(self) -> Program {
        let layout = Layout::of_two_words(MODULUS);
        Writer::new(layout, Interface::V7, WORDS).program(self)
    }
}

impl Writer {
    fn program(mut self, part: Part) -> Program {
        let writer = &mut self;
        writer.contract.load_constants();
        let v = writer.variables;
        match part {
            Part::MillerLoop | Part::Pairing => {
                writer.contract.residues_from_calldata(v.p, 0);
                writer
                    .contract
                    .residues_from_calldata(v.q, Slots::<2>::BYTES);
                writer.contract.inline("begin");
                writer.miller_loop(Pairs::One);
                if part == Part::Pairing {
                    writer.final_exponentiation();
                    writer.contract.inline("a ninth");
                } else {
                    // The parameter is negative.
                    writer.contract.inline("conjugate");
                }
                writer.contract.return_residues(v.f);
            }
            Part::FinalExponentiation => {
                writer.contract.residues_from_calldata(v.f, 0);
                writer.contract.inline("conjugate");
                writer.final_exponentiation();
                writer.contract.inline("a ninth");
                writer.contract.return_residues(v.f);
            }
            Part::Check => writer.check(),
        }
        self.finish(part)
    }

    fn new(mut layout: Layout, interface: Interface, often: Weights) -> Self {
        let variables = Variables::new(&mut layout);
        let one = layout.constant(montgomery(U384::ONE));
        let routines = routines(&mut layout, variables, often);
        let mut contract = Contract::new(interface, layout, routines);
        let labels = Labels {
            conjugate: contract.code.label(),
            mul: contract.code.label(),
            times_line: contract.code.label(),
            squares: std::array::from_fn(|_| contract.code.label()),
            frobenius_twice: contract.code.label(),
        };
        Self {
            contract,
            variables,
            labels,
            squarings: 1,
            one,
        }
    }

    pub(super) fn copy_constant_one_to_f(&mut self) {
        self.contract.reads_constant(self.one);
        let f = self.variables.f.part::<1>(0);
        self.contract
            .copy(f.offset(), self.one.0, Slots::<1>::BYTES);
    }

    /// Address of the first record.
    pub(super) fn records(&self) -> u64 {
        u64::from(self.contract.heap())
    }

    /// Offset of the word that says whether the record's P is finite.
    pub(super) fn record_flag(&self) -> u64 {
        u64::from(self.variables.t.offset()) + RECORD_BYTES - 32
    }

    /// Subroutines behind the contract's main part.
    fn finish(mut self, part: Part) -> Program {
        let labels = self.labels;
        if part != Part::MillerLoop {
            self.contract.subroutine(labels.mul, "multiply");
            self.contract
                .subroutine(labels.frobenius_twice, "Frobenius map twice");
            self.contract.subroutine(labels.conjugate, "conjugate");
        }
        self.contract.finish()
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
