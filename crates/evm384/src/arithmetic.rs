//! Six limbs of 64 bits, fast: portable Rust and `mulx`/`adx` assembly, chosen once at run time.
//!
//! Operands lie in memory as the opcodes find them: 48 bytes, little-endian, at any address. Nothing is
//! assumed of their values; the result is always that of [`crate::reference`].

#[cfg(target_arch = "x86_64")]
mod mulx;
mod portable;
pub(crate) mod registers;
#[cfg(target_arch = "x86_64")]
mod twice;

use std::sync::OnceLock;

use arbor_cpu::Features;

#[cfg(target_arch = "x86_64")]
pub(crate) use mulx::MulxAdx;
pub(crate) use portable::Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use twice::Twice;

/// Bytes of an operand, and of a modulus.
pub const OPERAND_BYTES: usize = 48;
/// Bytes at the modulus of a multiplication: the modulus, then -1/m modulo 2^64.
pub const MULTIPLICATION_MODULUS_BYTES: usize = 56;

/// One of the three operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// ADDMOD384.
    Add,
    /// SUBMOD384.
    Sub,
    /// MULMODMONT384.
    Mul,
}

impl Operation {
    /// All of them, in the order of their opcodes.
    pub const ALL: [Self; 3] = [Self::Add, Self::Sub, Self::Mul];

    /// Bytes that the operation reads at the modulus.
    #[must_use]
    pub const fn modulus_bytes(self) -> usize {
        match self {
            Self::Add | Self::Sub => OPERAND_BYTES,
            Self::Mul => MULTIPLICATION_MODULUS_BYTES,
        }
    }
}

/// Byte offsets into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offsets {
    /// Where the result goes; may overlap what is read, which is read before.
    pub out: u32,
    /// First operand.
    pub x: u32,
    /// Second operand.
    pub y: u32,
    /// The modulus, and for a multiplication -1/m modulo 2^64 behind it.
    pub modulus: u32,
}

impl Offsets {
    /// From the low 128 bits of v7's stack word: out, x, y, modulus, most significant first.
    #[must_use]
    pub const fn from_word(word: u128) -> Self {
        Self {
            out: (word >> 96) as u32,
            x: (word >> 64) as u32,
            y: (word >> 32) as u32,
            modulus: word as u32,
        }
    }

    /// The inverse of [`Self::from_word`].
    #[must_use]
    pub const fn to_word(self) -> u128 {
        (self.out as u128) << 96
            | (self.x as u128) << 64
            | (self.y as u128) << 32
            | self.modulus as u128
    }

    /// The length that memory must have for the operation: the end of the furthest operand.
    #[must_use]
    pub fn memory_end(self, operation: Operation) -> usize {
        let modulus_end = self.modulus as usize + operation.modulus_bytes();
        self.operands_end().max(modulus_end)
    }

    /// The same without the modulus, for which there is another place.
    #[must_use]
    pub fn operands_end(self) -> usize {
        self.out.max(self.x).max(self.y) as usize + OPERAND_BYTES
    }
}

/// -1/m modulo 2^64 for odd m, by Newton's iteration, each step of which doubles the bits that are right.
pub(crate) const fn negated_inverse(m: u64) -> u64 {
    let mut inverse = 1u64;
    let mut step = 0;
    while step < 6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(m.wrapping_mul(inverse)));
        step += 1;
    }
    inverse.wrapping_neg()
}

/// Code for the three operations, on operands in memory.
///
/// The pointers need no alignment, and those that are read may equal or overlap `out`.
///
/// # Safety
///
/// Of every method: `out`, `x`, `y` and `m` are valid for [`OPERAND_BYTES`] (`m` of [`Arithmetic::mul`] for
/// [`MULTIPLICATION_MODULUS_BYTES`]), and the processor has the instructions of the implementation.
pub(crate) trait Arithmetic: 'static {
    /// Its name.
    const BACKEND: Backend;

    unsafe fn add(out: *mut u8, x: *const u8, y: *const u8, m: *const u8);
    unsafe fn sub(out: *mut u8, x: *const u8, y: *const u8, m: *const u8);
    unsafe fn mul(out: *mut u8, x: *const u8, y: *const u8, m: *const u8);

    /// Applies an operation to `memory`.
    ///
    /// # Safety
    ///
    /// `memory` is valid for reads and writes of [`Offsets::memory_end`] bytes, and the processor has the instructions.
    #[inline(always)]
    unsafe fn apply(operation: Operation, memory: *mut u8, offsets: Offsets) {
        // SAFETY: the caller vouches for all offsets and for the processor.
        unsafe {
            let m = memory.add(offsets.modulus as usize);
            Self::apply_modulo(operation, memory, offsets, m);
        }
    }

    /// Applies an operation to `memory` with a modulus that lies elsewhere.
    ///
    /// # Safety
    ///
    /// `memory` is valid for reads and writes of [`Offsets::operands_end`] bytes, `m` for reads of [`Operation::modulus_bytes`], and the
    /// processor has the instructions.
    #[inline(always)]
    unsafe fn apply_modulo(operation: Operation, memory: *mut u8, offsets: Offsets, m: *const u8) {
        // SAFETY: the caller vouches for all offsets and for the processor.
        unsafe {
            let out = memory.add(offsets.out as usize);
            let x = memory.add(offsets.x as usize);
            let y = memory.add(offsets.y as usize);
            match operation {
                Operation::Add => Self::add(out, x, y, m),
                Operation::Sub => Self::sub(out, x, y, m),
                Operation::Mul => Self::mul(out, x, y, m),
            }
        }
    }
}

/// Which code computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Plain Rust, the same on every processor.
    Portable,
    /// Assembly with `mulx`, `adcx` and `adox`: Intel since Broadwell, AMD since Zen.
    MulxAdx,
    /// The same, which makes each product twice: by as much as that takes longer, products are what time goes to.
    ProductsTwice,
}

impl Backend {
    /// The fastest that this processor can run, or portable code if [`arbor_cpu::Backend::detect`] says so.
    #[must_use]
    pub fn detect() -> Self {
        match arbor_cpu::Backend::detect() {
            arbor_cpu::Backend::Portable => Self::Portable,
            _ if Self::MulxAdx.is_available() => Self::MulxAdx,
            _ => Self::Portable,
        }
    }

    /// All that this processor can run and that is of use outside measurements.
    pub fn available() -> impl Iterator<Item = Self> {
        [Self::Portable, Self::MulxAdx]
            .into_iter()
            .filter(|backend| backend.is_available())
    }

    /// Whether this processor can run it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            Self::MulxAdx | Self::ProductsTwice => {
                // Asked for by every operation of [`apply`]; the answer takes as long as several of them, and stays.
                static AVAILABLE: OnceLock<bool> = OnceLock::new();
                *AVAILABLE.get_or_init(|| Features::of_processor().mulx_adx)
            }
        }
    }

    /// A name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::MulxAdx => "mulx-adx",
            Self::ProductsTwice => "products twice",
        }
    }
}

/// Runs `$body` with the type alias `$arithmetic` standing for the backend's code, falling back to portable code where the
/// processor cannot run it.
macro_rules! with_arithmetic {
    ($backend:expr, $arithmetic:ident => $body:expr) => {
        match $backend {
            #[cfg(target_arch = "x86_64")]
            $crate::arithmetic::Backend::MulxAdx
                if $crate::arithmetic::Backend::MulxAdx.is_available() =>
            {
                type $arithmetic = $crate::arithmetic::MulxAdx;
                $body
            }
            #[cfg(target_arch = "x86_64")]
            $crate::arithmetic::Backend::ProductsTwice
                if $crate::arithmetic::Backend::MulxAdx.is_available() =>
            {
                type $arithmetic = $crate::arithmetic::Twice<$crate::arithmetic::MulxAdx>;
                $body
            }
            _ => {
                type $arithmetic = $crate::arithmetic::Portable;
                $body
            }
        }
    };
}
pub(crate) use with_arithmetic;

/// Applies an operation to `memory`, as the opcodes do.
///
/// # Panics
///
/// If `memory` is shorter than [`Offsets::memory_end`].
pub fn apply(backend: Backend, operation: Operation, memory: &mut [u8], offsets: Offsets) {
    assert!(
        offsets.memory_end(operation) <= memory.len(),
        "operands beyond memory"
    );
    // SAFETY: all operands lie in `memory`, and `with_arithmetic` asks the processor.
    with_arithmetic!(backend, A => unsafe { A::apply(operation, memory.as_mut_ptr(), offsets) });
}
