//! The variables of the pairing's contracts.

use arbor_evm384::build::{Layout, ODD_POWERS, Slots};

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

impl Variables {
    pub(super) fn new(layout: &mut Layout) -> Self {
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
