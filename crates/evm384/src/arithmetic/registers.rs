//! Fields of EIP-6690: a modulus of up to 768 bits and registers with residues below it.
//!
//! Modulo an odd number registers are in Montgomery's form, which nobody sees: values are plain whenever they go in or out.

use std::collections::BTreeMap;

use alloy_primitives::Uint;
use alloy_primitives::ruint::aliases::U768;

use super::{Arithmetic, Backend, negated_inverse, with_arithmetic};
use crate::Operation;

/// Registers of all fields of a frame, in bytes.
pub(crate) const FRAME_BYTES: usize = 24_576;
/// Limbs of the largest modulus.
pub(crate) const MAX_LIMBS: usize = 12;

/// Holds 2^1536.
type Wide = Uint<1600, 25>;

/// The fields of a frame, of which one is active once there is any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    by_id: BTreeMap<u16, usize>,
    fields: Vec<Field>,
    active: usize,
    bytes: usize,
}

impl Fields {
    /// Bytes of all registers.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The field that operations are in.
    pub(crate) fn active(&mut self) -> Option<&mut Field> {
        self.fields.get_mut(self.active)
    }

    /// The same for whoever looks on.
    pub(crate) fn current(&self) -> Option<&Field> {
        self.fields.get(self.active)
    }

    /// Makes a field active if there is one with this name.
    pub(crate) fn activate(&mut self, id: u16) -> bool {
        let Some(&index) = self.by_id.get(&id) else {
            return false;
        };
        self.active = index;
        true
    }

    /// A new field, which becomes active.
    pub(crate) fn insert(&mut self, id: u16, field: Field) {
        self.bytes += field.registers.len() * 8;
        self.active = self.fields.len();
        self.by_id.insert(id, self.active);
        self.fields.push(field);
    }
}

/// out, x and y have the modulus's limbs; the modulus has -1/m modulo 2^64 behind it.
type Function = fn(out: &mut [u64], x: &[u64], y: &[u64], modulus: &[u64]);

/// A modulus with its registers.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    limbs: usize,
    /// The modulus, and -1/m modulo 2^64 behind it if it is odd.
    modulus: Vec<u64>,
    /// R^2 and 1, by which values get into Montgomery's form and out of it; for a power of two there is no such form.
    conversions: Option<[Vec<u64>; 2]>,
    /// In the order of [`Operation`].
    functions: [Function; 3],
    registers: Vec<u64>,
    scratch: Vec<u64>,
}

/// Registers that an operation goes through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stride {
    pub(crate) first: u8,
    pub(crate) step: u8,
}

impl Stride {
    fn at(self, index: usize) -> usize {
        usize::from(self.first) + usize::from(self.step) * index
    }
}

impl Field {
    /// Limbs that a modulus takes, most significant byte first: those of its value.
    pub(crate) fn limbs_of(modulus: &[u8]) -> usize {
        let zeros = modulus.iter().take_while(|&&byte| byte == 0).count();
        (modulus.len() - zeros).div_ceil(8)
    }

    /// A field with so many registers, all zero; the modulus has its most significant byte first. None unless it is odd or a power of two, and from 3
    /// to 2^768 - 1.
    pub(crate) fn new(modulus: &[u8], registers: usize, backend: Backend) -> Option<Self> {
        let limbs = Self::limbs_of(modulus);
        if limbs > MAX_LIMBS {
            return None;
        }
        let value = Wide::try_from_be_slice(modulus)?;
        let odd = value.bit(0);
        if value < Wide::from(3) || !(odd || value.count_ones() == 1) {
            return None;
        }
        let mut with_inverse = value.as_limbs()[..limbs].to_vec();
        with_inverse.push(if odd {
            negated_inverse(with_inverse[0])
        } else {
            0
        });
        let conversions = odd.then(|| {
            let squared = (Wide::ONE << (128 * limbs)) % value;
            [squared, Wide::ONE].map(|value| value.as_limbs()[..limbs].to_vec())
        });
        Some(Self {
            limbs,
            functions: functions(limbs, odd, backend),
            modulus: with_inverse,
            conversions,
            registers: vec![0; registers * limbs],
            scratch: Vec::new(),
        })
    }

    pub(crate) const fn limbs(&self) -> usize {
        self.limbs
    }

    pub(crate) const fn is_odd(&self) -> bool {
        self.conversions.is_some()
    }

    /// Bytes of a value in memory.
    pub(crate) const fn element_bytes(&self) -> usize {
        self.limbs * 8
    }

    pub(crate) fn modulus(&self) -> U768 {
        U768::from_limbs_slice(&self.modulus[..self.limbs])
    }

    /// What a register holds, as [`Self::load`] has it.
    pub(crate) fn register(&self, index: usize) -> Option<U768> {
        let mut bytes = [0; MAX_LIMBS * 8];
        let bytes = &mut bytes[..self.element_bytes()];
        let exists = index < self.len();
        exists.then(|| {
            self.load(index, bytes);
            U768::from_be_slice(bytes)
        })
    }

    /// How many registers there are.
    pub(crate) const fn len(&self) -> usize {
        self.registers.len() / self.limbs
    }

    /// Whether all registers of `count` steps exist.
    pub(crate) fn holds(&self, stride: Stride, count: u8) -> bool {
        stride.at(usize::from(count).saturating_sub(1)) < self.len()
    }

    /// An operation on so many registers, which must exist ([`Self::holds`]); all are read before any is written.
    pub(crate) fn apply(&mut self, operation: Operation, [out, x, y]: [Stride; 3], count: u8) {
        let Self {
            limbs,
            modulus,
            functions,
            registers,
            scratch,
            ..
        } = self;
        let limbs = *limbs;
        let range = |register: usize| register * limbs..(register + 1) * limbs;
        let function = functions[operation as usize];
        scratch.resize(usize::from(count) * limbs, 0);
        for (index, result) in scratch.chunks_exact_mut(limbs).enumerate() {
            let (x, y) = (
                &registers[range(x.at(index))],
                &registers[range(y.at(index))],
            );
            function(result, x, y, modulus);
        }
        for (index, result) in scratch.chunks_exact(limbs).enumerate() {
            registers[range(out.at(index))].copy_from_slice(result);
        }
    }

    /// Puts values, most significant byte first, into registers from `first` on; false, with an unknown part done, if one is not below the modulus.
    pub(crate) fn store(&mut self, first: usize, bytes: &[u8]) -> bool {
        let (limbs, modulus) = (self.limbs, &self.modulus);
        let registers = self.registers.chunks_exact_mut(limbs).skip(first);
        for (register, value) in registers.zip(bytes.chunks_exact(limbs * 8)) {
            for (limb, bytes) in register.iter_mut().zip(value.rchunks_exact(8)) {
                *limb = bytes
                    .iter()
                    .fold(0, |limb, &byte| limb << 8 | u64::from(byte));
            }
            if !register.iter().rev().lt(modulus[..limbs].iter().rev()) {
                return false;
            }
            if let Some([squared, _]) = &self.conversions {
                let value = register.to_vec();
                (self.functions[Operation::Mul as usize])(register, &value, squared, modulus);
            }
        }
        true
    }

    /// The inverse of [`Self::store`].
    pub(crate) fn load(&self, first: usize, bytes: &mut [u8]) {
        let limbs = self.limbs;
        let mut plain = vec![0; limbs];
        let registers = self.registers.chunks_exact(limbs).skip(first);
        for (register, value) in registers.zip(bytes.chunks_exact_mut(limbs * 8)) {
            match &self.conversions {
                Some([_, one]) => {
                    (self.functions[Operation::Mul as usize])(
                        &mut plain,
                        register,
                        one,
                        &self.modulus,
                    );
                }
                None => plain.copy_from_slice(register),
            }
            for (limb, bytes) in plain.iter().zip(value.rchunks_exact_mut(8)) {
                bytes.copy_from_slice(&limb.to_be_bytes());
            }
        }
    }
}

/// Addition, subtraction and multiplication for so many limbs.
fn functions(limbs: usize, odd: bool, backend: Backend) -> [Function; 3] {
    const ODD: [[Function; 3]; MAX_LIMBS] = [
        [add::<1>, sub::<1>, mul::<1>],
        [add::<2>, sub::<2>, mul::<2>],
        [add::<3>, sub::<3>, mul::<3>],
        [add::<4>, sub::<4>, mul::<4>],
        [add::<5>, sub::<5>, mul::<5>],
        [add::<6>, sub::<6>, mul::<6>],
        [add::<7>, sub::<7>, mul::<7>],
        [add::<8>, sub::<8>, mul::<8>],
        [add::<9>, sub::<9>, mul::<9>],
        [add::<10>, sub::<10>, mul::<10>],
        [add::<11>, sub::<11>, mul::<11>],
        [add::<12>, sub::<12>, mul::<12>],
    ];
    let [add, sub, mul] = ODD[limbs - 1];
    match (odd, limbs, backend) {
        (false, ..) => [add, sub, mul_power_of_two],
        // Its limbs have the bytes that the opcodes' memory has only where these are little-endian.
        (true, 6, Backend::MulxAdx) if cfg!(target_endian = "little") => {
            with_arithmetic!(backend, A => [in_memory::<A, 0>, in_memory::<A, 1>, in_memory::<A, 2>])
        }
        _ => [add, sub, mul],
    }
}

/// The code for operands in memory.
fn in_memory<A: Arithmetic, const OPERATION: usize>(
    out: &mut [u64],
    x: &[u64],
    y: &[u64],
    modulus: &[u64],
) {
    assert!(out.len() == 6 && x.len() == 6 && y.len() == 6 && modulus.len() == 7);
    let (out, x, y) = (
        out.as_mut_ptr().cast(),
        x.as_ptr().cast(),
        y.as_ptr().cast(),
    );
    // SAFETY: 48 bytes at each and 56 at the modulus have been asserted; `with_arithmetic` has asked the processor.
    unsafe {
        match const { Operation::ALL[OPERATION] } {
            Operation::Add => A::add(out, x, y, modulus.as_ptr().cast()),
            Operation::Sub => A::sub(out, x, y, modulus.as_ptr().cast()),
            Operation::Mul => A::mul(out, x, y, modulus.as_ptr().cast()),
        }
    }
}

fn array<const N: usize>(limbs: &[u64]) -> &[u64; N] {
    limbs
        .first_chunk()
        .expect("invariant: a field's functions have its limbs")
}

/// t, with a bit above it, less m unless it is smaller.
fn reduced_once<const N: usize>(t: &[u64; N], overflow: bool, m: &[u64; N], out: &mut [u64]) {
    let mut reduced = [0; N];
    let mut borrow = false;
    for i in 0..N {
        (reduced[i], borrow) = t[i].borrowing_sub(m[i], borrow);
    }
    out.copy_from_slice(if overflow || !borrow { &reduced } else { t });
}

fn add<const N: usize>(out: &mut [u64], x: &[u64], y: &[u64], modulus: &[u64]) {
    let (x, y) = (array::<N>(x), array::<N>(y));
    let mut sum = [0; N];
    let mut carry = false;
    for i in 0..N {
        (sum[i], carry) = x[i].carrying_add(y[i], carry);
    }
    reduced_once(&sum, carry, array(modulus), out);
}

fn sub<const N: usize>(out: &mut [u64], x: &[u64], y: &[u64], modulus: &[u64]) {
    let (x, y, m) = (array::<N>(x), array::<N>(y), array::<N>(modulus));
    let mut difference = [0; N];
    let mut borrow = false;
    for i in 0..N {
        (difference[i], borrow) = x[i].borrowing_sub(y[i], borrow);
    }
    if borrow {
        let mut carry = false;
        for i in 0..N {
            (difference[i], carry) = difference[i].carrying_add(m[i], carry);
        }
    }
    out.copy_from_slice(&difference);
}

/// Montgomery's multiplication, a limb of y at a time: (t + x (2^64 - 1) + m (2^64 - 1)) / 2^64 is below 2 m if t is and x is below m, so that N limbs and a bit hold t.
fn mul<const N: usize>(out: &mut [u64], x: &[u64], y: &[u64], modulus: &[u64]) {
    let (x, y, m) = (array::<N>(x), array::<N>(y), array::<N>(modulus));
    let inverse = modulus[N];
    let mut t = [0u64; N];
    let mut top = 0u64;
    for &limb in y {
        let mut carry = 0;
        for i in 0..N {
            (t[i], carry) = x[i].carrying_mul_add(limb, t[i], carry);
        }
        let (high, first) = top.overflowing_add(carry);
        let multiple = t[0].wrapping_mul(inverse);
        let (_, mut carry) = m[0].carrying_mul_add(multiple, t[0], 0);
        for i in 1..N {
            (t[i - 1], carry) = m[i].carrying_mul_add(multiple, t[i], carry);
        }
        let (high, second) = high.overflowing_add(carry);
        t[N - 1] = high;
        top = u64::from(first) + u64::from(second);
    }
    reduced_once(&t, top != 0, m, out);
}

/// The low bits of the product.
fn mul_power_of_two(out: &mut [u64], x: &[u64], y: &[u64], modulus: &[u64]) {
    out.fill(0);
    for (shift, &limb) in y.iter().enumerate() {
        let mut carry = 0;
        for (out, &x) in out[shift..].iter_mut().zip(x) {
            (*out, carry) = x.carrying_mul_add(limb, *out, carry);
        }
    }
    // m - 1 has ones where m has trailing zeros.
    let mut borrow = true;
    for (limb, &m) in out.iter_mut().zip(modulus) {
        let (mask, next) = m.borrowing_sub(0, borrow);
        *limb &= mask;
        borrow = next;
    }
}
