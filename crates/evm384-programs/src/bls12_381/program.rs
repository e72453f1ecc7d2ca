//! From routines to contracts.

use super::constants::MODULUS;
use super::miller::Pairs;
use super::writer::{MOST_SQUARINGS, Writer};
use arbor_evm384::Interface;
use arbor_evm384::build::{Goal, Layout, Program, Slots, Weights};

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

/// Gas of an operation on two words, its call included.
const WORDS: Weights = Weights { mul: 750, add: 250 };

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
