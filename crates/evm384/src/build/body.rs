//! The values of a routine: immutable, each computed once however often it is written down.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::layout::{Slot, Slots};
use crate::{GasSchedule, Interface, Operation};

/// What operations weigh against each other where there is a choice between multiplications and additions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Weights {
    /// A multiplication.
    pub mul: u64,
    /// An addition or subtraction.
    pub add: u64,
}

impl Weights {
    /// A multiplication takes some eight times as long as an addition.
    pub const TIME: Self = Self { mul: 8, add: 1 };
    /// All have code of the same length.
    pub const SIZE: Self = Self { mul: 1, add: 1 };

    /// What they cost, pushes included: under v7 with model A a multiplication less than two additions.
    #[must_use]
    pub const fn gas(interface: Interface, schedule: GasSchedule) -> Self {
        Self {
            mul: schedule.mul as u64 + interface.push_gas(Operation::Mul),
            add: schedule.add as u64 + interface.push_gas(Operation::Add),
        }
    }
}

/// What can be loaded from and stored to `N` slots.
pub trait Element<'b, const N: usize>: Copy {
    /// From its coordinates, lowest first.
    fn from_parts(parts: [Fp<'b>; N]) -> Self;
    /// Its coordinates, lowest first.
    fn parts(self) -> [Fp<'b>; N];
}

/// Index of a value within its body; operands come before what is computed from them.
pub(super) type ValueId = u32;

/// How a value comes about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    /// What a slot holds when the routine begins.
    Input(Slot),
    /// An operation on two earlier values.
    Computed(Operation, ValueId, ValueId),
}

/// A routine that is being written: straight-line arithmetic on what slots hold at its beginning.
///
/// Values have no place in memory; [`super::Routine`] finds one for each. So no temporary can be clobbered, and values
/// written twice, or never used, cost nothing.
#[derive(Debug)]
pub struct Body {
    zero: Slot,
    choices: Vec<bool>,
    chosen: Cell<usize>,
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) values: Vec<Value>,
    known: HashMap<Value, ValueId>,
    pub(super) outputs: Vec<(Slot, ValueId)>,
}

impl Inner {
    fn value(&mut self, value: Value) -> ValueId {
        let Self { values, known, .. } = self;
        *known.entry(value).or_insert_with(|| {
            values.push(value);
            values.len() as ValueId - 1
        })
    }

    /// Appends a computation even if it was made before: what a slot to be overwritten held may be needed elsewhere.
    fn fresh(&mut self, value: Value) -> ValueId {
        self.values.push(value);
        self.values.len() as ValueId - 1
    }

    fn negated(&self, zero: Slot, id: ValueId) -> Option<ValueId> {
        match self.values[id as usize] {
            Value::Computed(Operation::Sub, x, y) if self.is_zero(zero, x) => Some(y),
            _ => None,
        }
    }

    fn is_zero(&self, zero: Slot, id: ValueId) -> bool {
        self.values[id as usize] == Value::Input(zero)
    }
}

/// A residue.
#[derive(Clone, Copy, Debug)]
pub struct Fp<'b> {
    pub(super) body: &'b Body,
    pub(super) id: ValueId,
}

impl Body {
    /// An empty body; `zero` is a slot that holds 0 whenever a routine runs.
    #[must_use]
    pub fn new(zero: Slot) -> Self {
        Self::with_choices(zero, Vec::new())
    }

    /// An empty body that answers [`Self::choose`] in this order, and no once the answers are used up.
    pub(super) fn with_choices(zero: Slot, choices: Vec<bool>) -> Self {
        Self {
            zero,
            choices,
            chosen: Cell::new(0),
            inner: RefCell::default(),
        }
    }

    /// The element in slots, as it is when the routine begins.
    pub fn load<'b, T: Element<'b, N>, const N: usize>(&'b self, from: Slots<N>) -> T {
        let slots = from.each().map(|slot| self.input(slot));
        T::from_parts(slots)
    }

    /// Puts an element into slots, from where it can be read when the routine has ended.
    ///
    /// # Panics
    ///
    /// If something was stored there already.
    pub fn store<'b, T: Element<'b, N>, const N: usize>(&'b self, to: Slots<N>, value: T) {
        for (slot, part) in to.each().into_iter().zip(value.parts()) {
            let mut inner = self.inner.borrow_mut();
            let twice = inner.outputs.iter().any(|&(other, _)| other == slot);
            assert!(!twice, "a routine stores once to each slot");
            let id = match inner.values[part.id as usize] {
                Value::Input(from) if from == slot => continue,
                Value::Input(_) => {
                    let zero = inner.value(Value::Input(self.zero));
                    inner.fresh(Value::Computed(Operation::Add, part.id, zero))
                }
                Value::Computed(..) => part.id,
            };
            inner.outputs.push((slot, id));
        }
    }

    /// What a slot holds when the routine begins.
    pub fn input(&self, slot: Slot) -> Fp<'_> {
        let id = self.inner.borrow_mut().value(Value::Input(slot));
        Fp { body: self, id }
    }

    /// Whether to take the second of two ways to the same value, here: [`super::Routine::cheapest`] finds out which is the better.
    pub fn choose(&self) -> bool {
        let index = self.chosen.replace(self.chosen.get() + 1);
        self.choices.get(index).copied().unwrap_or(false)
    }

    /// How many choices there were.
    pub(super) fn choices(&self) -> usize {
        self.chosen.get()
    }

    /// What everything stored weighs so far, and how many operations it takes.
    pub(super) fn weight(&self, weights: Weights) -> (u64, u64) {
        let inner = self.inner.borrow();
        let needed = needed(&inner.values, &inner.outputs);
        let values = inner.values.iter().zip(needed);
        let operations = values.filter_map(|(value, needed)| match value {
            Value::Computed(operation, ..) if needed => Some(*operation),
            _ => None,
        });
        operations.fold((0, 0), |(weight, count), operation| {
            let one = match operation {
                Operation::Mul => weights.mul,
                Operation::Add | Operation::Sub => weights.add,
            };
            (weight + one, count + 1)
        })
    }

    /// 0.
    pub fn zero(&self) -> Fp<'_> {
        self.input(self.zero)
    }

    pub(super) fn compute(&self, operation: Operation, x: ValueId, y: ValueId) -> Fp<'_> {
        let id = self.simplified(operation, x, y);
        Fp { body: self, id }
    }

    /// What zeros and negations leave of an operation; x + y and y + x are one value.
    fn simplified(&self, operation: Operation, x: ValueId, y: ValueId) -> ValueId {
        let zero = self.zero;
        let mut inner = self.inner.borrow_mut();
        let (operation, x, y) = match operation {
            Operation::Add if inner.is_zero(zero, x) => return y,
            Operation::Add | Operation::Sub if inner.is_zero(zero, y) => return x,
            Operation::Add => match (inner.negated(zero, x), inner.negated(zero, y)) {
                (_, Some(y)) => (Operation::Sub, x, y),
                (Some(x), None) => (Operation::Sub, y, x),
                (None, None) => (operation, x, y),
            },
            Operation::Sub => match inner.negated(zero, y) {
                Some(y) if inner.is_zero(zero, x) => return y,
                Some(y) => (Operation::Add, x, y),
                None => (operation, x, y),
            },
            Operation::Mul if inner.is_zero(zero, x) => return x,
            Operation::Mul if inner.is_zero(zero, y) => return y,
            Operation::Mul => (operation, x, y),
        };
        let (x, y) = match operation {
            Operation::Sub => (x, y),
            Operation::Add | Operation::Mul => (x.min(y), x.max(y)),
        };
        inner.value(Value::Computed(operation, x, y))
    }

    pub(super) fn into_inner(self) -> Inner {
        self.inner.into_inner()
    }
}

/// Which values the outputs need.
pub(super) fn needed(values: &[Value], outputs: &[(Slot, ValueId)]) -> Vec<bool> {
    let mut needed = vec![false; values.len()];
    for &(_, id) in outputs {
        needed[id as usize] = true;
    }
    for id in (0..values.len()).rev() {
        if let (true, Value::Computed(_, x, y)) = (needed[id], values[id]) {
            needed[x as usize] = true;
            needed[y as usize] = true;
        }
    }
    needed
}
