//! What a frame sets for itself and what goes with it: a modulus, or the registers of EIP-6690.
//!
//! revm's frames have no room for more than revm's own state, so the host keeps it, by the depth of the frame. A frame that is called has a
//! depth of its own, the same contract entered again included; when a frame begins, all that was kept at its depth and below is of frames that
//! have ended, however they ended, and is dropped.

use alloy_primitives::ruint::aliases::U768;
use revm::Database;
use revm::context::{Context, JournalTr, LocalContextTr};
use revm::interpreter::host::DummyHost;

use crate::MULTIPLICATION_MODULUS_BYTES;
use crate::RegisterGas;
use crate::arithmetic::registers::Fields;

/// The state of all frames of a transaction: the `chain` of a revm context.
///
/// Whoever runs frames says when one begins ([`Frames::begin`]); [`crate::engine::EngineEvm`] does.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    gas: RegisterGas,
    by_depth: Vec<Frame>,
}

/// What one frame has set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// By SETMOD: the modulus and -1/m modulo 2^64, little-endian.
    pub(crate) modulus: Option<[u8; MULTIPLICATION_MODULUS_BYTES]>,
    /// By SETMODX.
    pub(crate) fields: Fields,
}

/// What a frame has set, for whoever looks on.
#[derive(Clone, Copy, Debug, Default)]
pub struct FrameView<'a>(Option<&'a Frame>);

impl<'a> FrameView<'a> {
    /// What was set by SETMOD: the modulus and -1/m modulo 2^64, little-endian.
    #[must_use]
    pub const fn modulus(self) -> Option<&'a [u8; MULTIPLICATION_MODULUS_BYTES]> {
        match self.0 {
            Some(frame) => frame.modulus.as_ref(),
            None => None,
        }
    }

    /// The modulus of the field that SETMODX has made active, and how many registers it has.
    #[must_use]
    pub fn field(self) -> Option<(U768, usize)> {
        let field = self.0?.fields.current()?;
        Some((field.modulus(), field.len()))
    }

    /// A register of that field, as a plain number.
    #[must_use]
    pub fn register(self, index: usize) -> Option<U768> {
        self.0?.fields.current()?.register(index)
    }
}

impl Frames {
    /// No frames yet; operations on registers will cost this.
    #[must_use]
    pub const fn new(gas: RegisterGas) -> Self {
        Self {
            gas,
            by_depth: Vec::new(),
        }
    }

    /// A frame begins at this depth, 0 being that of a transaction's first.
    pub fn begin(&mut self, depth: usize) {
        self.by_depth.truncate(depth);
    }

    /// The state of the frame at a depth if it has set any.
    pub(crate) fn get(&mut self, depth: usize) -> Option<&mut Frame> {
        self.by_depth.get_mut(depth)
    }

    /// The same for whoever looks on.
    #[must_use]
    pub fn view(&self, depth: usize) -> FrameView<'_> {
        FrameView(self.by_depth.get(depth))
    }

    /// The state of the frame at a depth, to be set.
    pub(crate) fn at(&mut self, depth: usize) -> &mut Frame {
        if self.by_depth.len() <= depth {
            self.by_depth.resize_with(depth + 1, Frame::default);
        }
        &mut self.by_depth[depth]
    }

    pub(crate) const fn gas(&self) -> RegisterGas {
        self.gas
    }
}

/// A host, or the part of one, that may keep the state of frames. Where there is none, opcodes that need it halt as unknown; v7 and
/// the immediate interface do not.
pub trait HasFrames {
    /// The frames' state.
    fn frames(&mut self) -> Option<&mut Frames>;
}

impl HasFrames for Frames {
    fn frames(&mut self) -> Option<&mut Frames> {
        Some(self)
    }
}

impl HasFrames for () {
    fn frames(&mut self) -> Option<&mut Frames> {
        None
    }
}

impl HasFrames for DummyHost {
    fn frames(&mut self) -> Option<&mut Frames> {
        None
    }
}

impl<BLOCK, TX, CFG, DB, JOURNAL, CHAIN, LOCAL> HasFrames
    for Context<BLOCK, TX, CFG, DB, JOURNAL, CHAIN, LOCAL>
where
    DB: Database,
    JOURNAL: JournalTr<Database = DB>,
    CHAIN: HasFrames,
    LOCAL: LocalContextTr,
{
    fn frames(&mut self) -> Option<&mut Frames> {
        self.chain.frames()
    }
}
