//! The code for every processor.

use std::hint::select_unpredictable;

use super::{Arithmetic, Backend};

type Limbs = [u64; 6];

/// Plain Rust on `u64` with carries.
pub(crate) struct Portable;

impl Arithmetic for Portable {
    const BACKEND: Backend = Backend::Portable;

    #[inline(always)]
    unsafe fn add(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        // SAFETY: the caller's.
        unsafe { write(out, add(&read(x), &read(y), &read(m))) }
    }

    #[inline(always)]
    unsafe fn sub(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        // SAFETY: the caller's.
        unsafe { write(out, sub(&read(x), &read(y), &read(m))) }
    }

    #[inline(always)]
    unsafe fn mul(out: *mut u8, x: *const u8, y: *const u8, m: *const u8) {
        // SAFETY: the caller's; the inverse lies behind the modulus.
        unsafe {
            let inverse = u64::from_le(m.add(48).cast::<u64>().read_unaligned());
            write(out, mul(&read(x), &read(y), &read(m), inverse));
        }
    }
}

/// # Safety
///
/// `from` is valid for 48 bytes.
#[inline(always)]
unsafe fn read(from: *const u8) -> Limbs {
    // SAFETY: the caller's.
    unsafe { from.cast::<Limbs>().read_unaligned() }.map(u64::from_le)
}

/// # Safety
///
/// `to` is valid for 48 bytes.
#[inline(always)]
unsafe fn write(to: *mut u8, limbs: Limbs) {
    // SAFETY: the caller's.
    unsafe {
        to.cast::<Limbs>().write_unaligned(limbs.map(u64::to_le));
    }
}

#[inline(always)]
fn sum(x: &Limbs, y: &Limbs) -> (Limbs, bool) {
    let mut carry = false;
    let mut sum = [0; 6];
    for i in 0..6 {
        (sum[i], carry) = x[i].carrying_add(y[i], carry);
    }
    (sum, carry)
}

#[inline(always)]
fn difference(x: &Limbs, y: &Limbs) -> (Limbs, bool) {
    let mut borrow = false;
    let mut difference = [0; 6];
    for i in 0..6 {
        (difference[i], borrow) = x[i].borrowing_sub(y[i], borrow);
    }
    (difference, borrow)
}

/// Without a branch: for residues it would be taken as often as not.
#[inline(always)]
fn select(condition: bool, x: &Limbs, y: &Limbs) -> Limbs {
    std::array::from_fn(|i| select_unpredictable(condition, x[i], y[i]))
}

#[inline(always)]
fn reduced_once(t: &Limbs, overflow: bool, m: &Limbs) -> Limbs {
    let (reduced, borrow) = difference(t, m);
    select(overflow | !borrow, &reduced, t)
}

#[inline(always)]
fn add(x: &Limbs, y: &Limbs, m: &Limbs) -> Limbs {
    let (sum, carry) = sum(x, y);
    reduced_once(&sum, carry, m)
}

#[inline(always)]
fn sub(x: &Limbs, y: &Limbs, m: &Limbs) -> Limbs {
    let (difference, borrow) = difference(x, y);
    sum(&difference, &select(borrow, m, &[0; 6])).0
}

/// Montgomery's multiplication, operand scanning: a limb of `y`, then a step of reduction. Before each step t is at most x + m, so
/// it has 385 bits, and 449 within a step: eight limbs hold it whatever the operands.
#[inline(always)]
fn mul(x: &Limbs, y: &Limbs, m: &Limbs, inverse: u64) -> Limbs {
    let mut t = [0u64; 8];
    for &limb in y {
        add_product(&mut t, x, limb);
        let multiple = t[0].wrapping_mul(inverse);
        add_product(&mut t, m, multiple);
        t.copy_within(1.., 0);
        t[7] = 0;
    }
    let [low @ .., overflow, _] = t;
    reduced_once(&low, overflow != 0, m)
}

#[inline(always)]
fn add_product(t: &mut [u64; 8], x: &Limbs, factor: u64) {
    let mut carry = 0;
    for i in 0..6 {
        (t[i], carry) = x[i].carrying_mul_add(factor, t[i], carry);
    }
    let overflow;
    (t[6], overflow) = t[6].overflowing_add(carry);
    t[7] += u64::from(overflow);
}
