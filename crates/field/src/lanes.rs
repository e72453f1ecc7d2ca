//! Eight residues at a time.
//!
//! An algorithm over lanes is a [`Job`]: written once, over the operations of [`Lanes`], and run by [`Wide::run`] on the widest
//! instructions that the processor has. The portable lanes are eight [`Element`]s one after the other; they run the same algorithm everywhere,
//! and they are what the others are tested against.
//!
//! # Bounds
//!
//! Vector instructions compare badly, so that the wide lanes reduce lazily. What may be given to what is in the types:
//!
//! - [`Lanes::Tight`]: below twice the prime, limbs normalised. What multiplications yield, and what is loaded and stored.
//! - [`Lanes::Loose`]: the sum or difference of tight values, below six times the prime (eight for [`Lanes::sub_two`]) and not negative, limbs not
//!   necessarily normalised. It may be one factor of a multiplication, or be tightened; nothing else.
//! - [`Lanes::Product`]: at most twice the prime, limbs not normalised. It is settled, or something is taken away from it.
//!
//! # Stored form
//!
//! In memory a residue of lanes is 256 bits, below twice the prime, in Montgomery form with the radix of those lanes: 2^256, 2^260 or 2^261.
//! So it has no meaning outside them; [`Lanes::enter`] and [`Lanes::leave`] convert.

/// In lanes whose products are whole when they are begun, and whose sums of products are reduced at every step.
macro_rules! made_at_once {
    () => {
        const IN_TURN: bool = false;

        #[inline(always)]
        fn add_product(self, sum: Self::Sum, a: Self::Tight, b: Self::Tight) -> Self::Sum {
            let product = <Self as Lanes<M>>::times(self, a, b);
            <Self as Lanes<M>>::tighten(self, <Self as Lanes<M>>::add(self, sum, product))
        }

        #[inline(always)]
        fn total(self, sum: Self::Sum) -> Self::Tight {
            sum
        }

        #[inline(always)]
        fn begin(self, a: Self::Loose, b: Self::Tight) -> Self::Tight {
            <Self as Lanes<M>>::mul(self, a, b)
        }

        #[inline(always)]
        fn turn(
            self,
            begun: Self::Tight,
            a: Self::Loose,
            b: Self::Tight,
        ) -> (Self::Tight, Self::Tight) {
            (begun, <Self as Lanes<M>>::mul(self, a, b))
        }

        #[inline(always)]
        fn turn_square(self, begun: Self::Tight, a: Self::Tight) -> (Self::Tight, Self::Tight) {
            (begun, <Self as Lanes<M>>::square(self, a))
        }

        #[inline(always)]
        fn settle(self, product: Self::Tight) -> Self::Tight {
            product
        }

        #[inline(always)]
        fn less(self, product: Self::Tight, b: Self::Tight) -> Self::Tight {
            let difference = <Self as Lanes<M>>::sub(self, product, b);
            <Self as Lanes<M>>::tighten(self, difference)
        }

        #[inline(always)]
        fn less_two(self, product: Self::Tight, b: Self::Tight, c: Self::Tight) -> Self::Tight {
            let difference = <Self as Lanes<M>>::sub_two(self, product, b, c);
            <Self as Lanes<M>>::tighten(self, difference)
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(feature = "modelled")]
mod modelled;
mod portable;

use crate::{
    Element, Modulus,
    limbs::{self, Limbs},
};
use arbor_cpu::{Backend, Features};

/// Number of lanes.
pub const LANES: usize = 8;

/// Products that a [`Lanes::Sum`] has room for.
pub const SUMMED: usize = 32;

/// Eight lanes of residues modulo `M`'s prime. A value is proof that the processor has the instructions.
pub trait Lanes<M: Modulus>: Copy {
    /// Below twice the prime, normalised.
    type Tight: Copy;
    /// Below eight times the prime.
    type Loose: Copy;
    /// A sum of products that is not reduced yet: of at most [`SUMMED`].
    type Sum: Copy;
    /// A product that is begun.
    type Begun: Copy;
    /// A product that is made, at most twice the prime, limbs not normalised.
    type Product: Copy;
    /// Residues are held times two to this power.
    const RADIX_BITS: u32;
    /// Whether products are faster that end beside the beginning of another ([`Self::turn`]).
    const IN_TURN: bool;

    /// Reads eight stored residues.
    fn load(self, from: [&Limbs; LANES]) -> Self::Tight;
    /// Writes eight residues in stored form.
    fn store(self, value: Self::Tight) -> [Limbs; LANES];
    /// As [`Self::store`], fully reduced: below the prime.
    #[inline(always)]
    fn store_reduced(self, value: Self::Tight) -> [Limbs; LANES] {
        let mut stored = self.store(value);
        for stored in &mut stored {
            *stored = limbs::reduce_once(stored, &M::MODULUS);
        }
        stored
    }
    /// The same stored residue in all lanes.
    fn splat(self, value: &Limbs) -> Self::Tight;
    /// The sum.
    fn add(self, a: Self::Tight, b: Self::Tight) -> Self::Loose;
    /// The difference.
    fn sub(self, a: Self::Tight, b: Self::Tight) -> Self::Loose;
    /// `a - b - c`.
    fn sub_two(self, a: Self::Tight, b: Self::Tight, c: Self::Tight) -> Self::Loose;
    /// The same residue, or its negative in the lanes whose bits are set. In place of zero it may be twice the prime.
    fn negate_where(self, a: Self::Tight, lanes: u8) -> Self::Tight;
    /// The product.
    fn mul(self, a: Self::Loose, b: Self::Tight) -> Self::Tight;
    /// The same residue, reduced and normalised.
    fn tighten(self, a: Self::Loose) -> Self::Tight;
    /// The same residue: tight values are loose ones, too.
    fn loosen(self, a: Self::Tight) -> Self::Loose;

    /// The sum of no products.
    fn nothing(self) -> Self::Sum;
    /// A sum with one more product.
    fn add_product(self, sum: Self::Sum, a: Self::Tight, b: Self::Tight) -> Self::Sum;
    /// The residue of a sum.
    fn total(self, sum: Self::Sum) -> Self::Tight;

    /// Begins a product.
    fn begin(self, a: Self::Loose, b: Self::Tight) -> Self::Begun;
    /// Ends one product and begins another beside it: the end of a product waits for its own results. The fastest way to many products, if none needs the one before it.
    fn turn(
        self,
        begun: Self::Begun,
        a: Self::Loose,
        b: Self::Tight,
    ) -> (Self::Product, Self::Begun);
    /// As [`Self::turn`], beginning a square.
    fn turn_square(self, begun: Self::Begun, a: Self::Tight) -> (Self::Product, Self::Begun);
    /// A product as a factor.
    fn settle(self, product: Self::Product) -> Self::Tight;
    /// `product - b`.
    fn less(self, product: Self::Product, b: Self::Tight) -> Self::Tight;
    /// `product - b - c`.
    fn less_two(self, product: Self::Product, b: Self::Tight, c: Self::Tight) -> Self::Tight;

    /// The product of two tight values.
    #[inline(always)]
    fn times(self, a: Self::Tight, b: Self::Tight) -> Self::Tight {
        self.mul(self.loosen(a), b)
    }

    /// The square.
    #[inline(always)]
    fn square(self, a: Self::Tight) -> Self::Tight {
        self.mul(self.loosen(a), a)
    }

    /// Two products, as all that follow: whoever has two that do not depend on each other gives the processor more to do at a time.
    #[inline(always)]
    fn times_two(self, a: [Self::Tight; 2], b: [Self::Tight; 2]) -> [Self::Tight; 2] {
        [self.times(a[0], b[0]), self.times(a[1], b[1])]
    }

    /// [`Self::mul`], twice.
    #[inline(always)]
    fn mul_two(self, a: [Self::Loose; 2], b: [Self::Tight; 2]) -> [Self::Tight; 2] {
        [self.mul(a[0], b[0]), self.mul(a[1], b[1])]
    }

    /// [`Self::square`], twice.
    #[inline(always)]
    fn square_two(self, a: [Self::Tight; 2]) -> [Self::Tight; 2] {
        [self.square(a[0]), self.square(a[1])]
    }

    /// The stored form of an element.
    #[inline]
    fn enter(self, element: Element<M>) -> Limbs {
        if Self::RADIX_BITS == 256 {
            return *element.montgomery();
        }
        *(element * Element::from_montgomery(Radix::<M, Self>::ENTER)).montgomery()
    }

    /// The element of a stored form.
    #[inline]
    fn leave(self, stored: &Limbs) -> Element<M> {
        if Self::RADIX_BITS == 256 {
            return Element::from_montgomery(*stored);
        }
        // A stored residue may be as large as twice the prime: the multiplication allows that of its second factor.
        Element::from_montgomery(Radix::<M, Self>::LEAVE) * Element::from_montgomery(*stored)
    }

    /// [`Self::leave`] of all lanes, with one product.
    #[inline(always)]
    fn leave_all(self, value: Self::Tight) -> [Element<M>; LANES] {
        // 2^256 as a stored form takes the lanes' radix away and leaves the elements'.
        let single = self.splat(Element::<M>::ONE.montgomery());
        self.leave_multiples(self.times(value, single))
    }

    /// The lanes' form of elements, with one product.
    #[inline(always)]
    fn enter_all(self, from: [Element<M>; LANES]) -> Self::Tight {
        let multiples = self.load_multiples(from);
        if Self::RADIX_BITS == 256 {
            return multiples;
        }
        self.times(multiples, self.splat(&Radix::<M, Self>::ENTER_LOADED))
    }

    /// Elements by the factor of [`Self::leave_multiples`], without a product.
    #[inline(always)]
    fn load_multiples(self, from: [Element<M>; LANES]) -> Self::Tight {
        self.load(from.each_ref().map(Element::montgomery))
    }

    /// All lanes' elements times the same factor, two to the [`Self::RADIX_BITS`] less 256, without a product: for coordinates that have a factor in common anyway.
    #[inline(always)]
    fn leave_multiples(self, value: Self::Tight) -> [Element<M>; LANES] {
        let mut elements = [Element::ZERO; LANES];
        let stored = self.store_reduced(value);
        for (element, stored) in elements.iter_mut().zip(stored) {
            *element = Element::from_montgomery(stored);
        }
        elements
    }
}

pub(crate) struct Radix<M, L>(std::marker::PhantomData<(M, L)>);

impl<M: Modulus, L: Lanes<M>> Radix<M, L> {
    const ENTER: Limbs = limbs::power_of_two(L::RADIX_BITS, &M::MODULUS);
    const LEAVE: Limbs = limbs::power_of_two(512 - L::RADIX_BITS, &M::MODULUS);
    /// What times an element that is loaded as it is, after the division by the radix, is the lanes' form of it.
    const ENTER_LOADED: Limbs = limbs::power_of_two(2 * L::RADIX_BITS - 256, &M::MODULUS);
    /// What times a number is, after the division by the radix, 2^256 times the number.
    pub(crate) const TIMES_2_256: Limbs = limbs::power_of_two(L::RADIX_BITS + 256, &M::MODULUS);
    /// The same for the number divided by 2^256.
    pub(crate) const BY_2_256: Limbs = limbs::power_of_two(L::RADIX_BITS - 256, &M::MODULUS);
}

/// The negative of a residue in stored form, in stored form.
#[inline(always)]
#[must_use]
pub fn negate_stored<M: Modulus>(stored: &Limbs) -> Limbs {
    if *stored == [0; 4] {
        return *stored;
    }
    // The prime less it or, if it was not fully reduced, twice the prime less it.
    let (difference, borrow) = limbs::sub(&M::MODULUS, stored);
    let again = M::MODULUS.map(|limb| limb & borrow.wrapping_neg());
    limbs::add(&difference, &again).0
}

/// An algorithm over lanes.
///
/// Implementations, and the functions over lanes that they call, must be `#[inline(always)]`: only then are they compiled for the
/// instructions of the lanes, which are enabled in [`Wide::run`] alone. The same holds for closures: none should touch lanes, unless it is called in a
/// single place. Otherwise they are right, but many times slower.
pub trait Job<M: Modulus> {
    /// What it computes.
    type Output;
    /// Computes it.
    fn run<L: Lanes<M>>(self, lanes: L) -> Self::Output;
}

/// Lanes that this processor can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wide(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Portable,
    Avx2,
    Ifma,
    #[cfg(feature = "modelled")]
    Modelled,
}

impl Wide {
    /// Eight elements, one after the other. The reference.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// Those of the process's [`Backend`].
    ///
    /// # Panics
    ///
    /// As [`Backend::detect`].
    #[must_use]
    pub fn detect() -> Self {
        Self::of(Backend::detect())
    }

    /// All that this processor can run, narrowest first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut all: Vec<_> = Backend::available().map(Self::of).collect();
        all.dedup();
        #[cfg(feature = "modelled")]
        all.push(Self::MODELLED);
        all
    }

    fn of(backend: Backend) -> Self {
        Self(match backend {
            Backend::Portable => Kind::Portable,
            Backend::Avx512 if Features::of_processor().avx512_ifma => Kind::Ifma,
            Backend::Avx2 | Backend::Avx512 => Kind::Avx2,
        })
    }

    /// How reports call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            Kind::Avx2 => "avx2",
            Kind::Ifma => "avx512ifma",
            #[cfg(feature = "modelled")]
            Kind::Modelled => "avx512ifma, modelled",
        }
    }

    /// Whether a product takes a few nanoseconds for each lane.
    pub(crate) fn has_ifma(self) -> bool {
        self.0 == Kind::Ifma
    }

    /// The IFMA lanes with every instruction done by plain Rust, in tests: whatever processor runs them, the lanes' own code is run.
    #[cfg(feature = "modelled")]
    pub const MODELLED: Self = Self(Kind::Modelled);

    /// Does a job with these lanes.
    pub fn run<M: Modulus, J: Job<M>>(self, job: J) -> J::Output {
        match self.0 {
            Kind::Portable => job.run(portable::Portable),
            // SAFETY: `of`, the only maker of this value, asked the processor for AVX2.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { avx2::run(job) },
            // SAFETY: `of` asked the processor for AVX-512 with IFMA, VBMI2, DQ and VL.
            #[cfg(target_arch = "x86_64")]
            Kind::Ifma => unsafe { avx512::run(job) },
            #[cfg(feature = "modelled")]
            Kind::Modelled => modelled::run(job),
            #[cfg(not(target_arch = "x86_64"))]
            Kind::Avx2 | Kind::Ifma => job.run(portable::Portable),
        }
    }
}
