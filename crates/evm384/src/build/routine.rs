//! From values to operations on memory: order, places, reuse of temporaries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::body::{Body, Value, ValueId, Weights, needed};
use super::layout::{Layout, Slot};
use crate::arithmetic::negated_inverse;
use crate::reference::{self, U384};
use crate::{GasSchedule, Interface, OPERAND_BYTES, Offsets, Operation};

/// Where a value lies: a slot of the layout, or one of the temporaries behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Slot(Slot),
    Temporary(u32),
}

impl Place {
    fn offset(self, layout: &Layout) -> u32 {
        match self {
            Self::Slot(slot) => slot.0,
            Self::Temporary(index) => layout.end() + index * OPERAND_BYTES as u32,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Step {
    /// What it computes.
    value: ValueId,
    operation: Operation,
    out: Place,
    x: Place,
    y: Place,
}

/// Operations of a routine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// ADDMOD384, copies included.
    pub add: u64,
    /// SUBMOD384.
    pub sub: u64,
    /// MULMODMONT384.
    pub mul: u64,
    /// Additions of zero that only bring a value to where it belongs.
    pub copies: u64,
}

impl Counts {
    /// All operations.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.add + self.sub + self.mul
    }

    /// What they cost, pushes included, once memory has grown.
    #[must_use]
    pub fn gas(self, interface: Interface, schedule: GasSchedule) -> u64 {
        let each = |operation: Operation| {
            u64::from(schedule.cost(operation)) + interface.push_gas(operation)
        };
        self.add * each(Operation::Add)
            + self.sub * each(Operation::Sub)
            + self.mul * each(Operation::Mul)
    }
}

/// Straight-line arithmetic with a place for every value.
#[derive(Clone, Debug)]
pub struct Routine {
    name: &'static str,
    /// What was written, whatever became of it.
    values: Vec<Value>,
    steps: Vec<Step>,
    copies: u64,
    temporaries: u32,
}

impl Routine {
    /// Finds an order and places for what a body stores.
    ///
    /// A value goes straight to the slot that it is stored to if what the slot held is not needed any more, and the order is chosen so that this is
    /// the rule; other values share temporaries. What is not stored, or not needed for what is, is left out.
    #[must_use]
    pub fn new(name: &'static str, body: Body) -> Self {
        let zero = body.zero().id;
        let inner = body.into_inner();
        let order = order(&inner.values, &inner.outputs);
        let places = Allocation::new(&inner.values, &inner.outputs, &order);
        places.routine(name, zero, &order)
    }

    /// The cheapest of the routines that `write` can write, found by turning over one choice after the other as long as that makes it
    /// lighter, or shorter at the same weight.
    pub fn cheapest(
        name: &'static str,
        zero: Slot,
        weights: Weights,
        write: impl Fn(&Body),
    ) -> Self {
        let written = |choices: &[bool]| {
            let body = Body::with_choices(zero, choices.to_vec());
            write(&body);
            body
        };
        let mut choices = Vec::new();
        let mut best = written(&choices);
        let mut better = true;
        while better {
            better = false;
            let mut index = 0;
            while index < best.choices() {
                choices.resize(best.choices().max(index + 1), false);
                choices[index] ^= true;
                let other = written(&choices);
                if other.weight(weights) < best.weight(weights) {
                    best = other;
                    better = true;
                } else {
                    choices[index] ^= true;
                }
                index += 1;
            }
        }
        Self::new(name, best)
    }

    /// What it is called in reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How many operations it has.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let count = |operation| {
            let of_kind = self.steps.iter().filter(|step| step.operation == operation);
            of_kind.count() as u64
        };
        Counts {
            add: count(Operation::Add),
            sub: count(Operation::Sub),
            mul: count(Operation::Mul),
            copies: self.copies,
        }
    }

    /// What each of its operations must leave, in their order: what was written, evaluated on whole integers and on what slots hold at the beginning, of which no place, order or
    /// temporary is part.
    #[must_use]
    pub fn expected(&self, modulus: U384, mut slot: impl FnMut(Slot) -> U384) -> Vec<U384> {
        let inverse = negated_inverse(modulus.as_limbs()[0]);
        let mut results: Vec<U384> = Vec::with_capacity(self.values.len());
        for &value in &self.values {
            results.push(match value {
                Value::Input(from) => slot(from),
                Value::Computed(operation, x, y) => {
                    let (x, y) = (results[x as usize], results[y as usize]);
                    match operation {
                        Operation::Add => reference::add(x, y, modulus),
                        Operation::Sub => reference::sub(x, y, modulus),
                        Operation::Mul => reference::mul(x, y, modulus, inverse),
                    }
                }
            });
        }
        let values = self.steps.iter().map(|step| results[step.value as usize]);
        values.collect()
    }

    /// Slots of temporaries that it needs behind the layout.
    #[must_use]
    pub const fn temporaries(&self) -> u32 {
        self.temporaries
    }

    /// Its operations, for memory laid out so.
    pub fn operations<'a>(
        &'a self,
        layout: &'a Layout,
    ) -> impl Iterator<Item = (Operation, Offsets)> + 'a {
        self.steps.iter().map(move |step| {
            let offsets = Offsets {
                out: step.out.offset(layout),
                x: step.x.offset(layout),
                y: step.y.offset(layout),
                modulus: layout.modulus(),
            };
            (step.operation, offsets)
        })
    }
}

/// The computed values that outputs need, in an order in which operands come first and, where that is possible, the value for a slot comes after all that
/// read what the slot held.
fn order(values: &[Value], outputs: &[(Slot, ValueId)]) -> Vec<ValueId> {
    let needed = needed(values, outputs);
    let mut readers: HashMap<Slot, Vec<ValueId>> = HashMap::new();
    let mut followers: Vec<Vec<ValueId>> = vec![Vec::new(); values.len()];
    let mut waits = vec![0u32; values.len()];
    for (id, value) in computed(values, &needed) {
        let Value::Computed(_, x, y) = value else {
            continue;
        };
        for operand in [x, y] {
            match values[operand as usize] {
                Value::Input(slot) => readers.entry(slot).or_default().push(id),
                Value::Computed(..) => {
                    followers[operand as usize].push(id);
                    waits[id as usize] += 1;
                }
            }
        }
    }
    // A wish: this value after those, which read the slot that it will overwrite.
    let mut wishes: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
    for &(slot, id) in outputs {
        let before = readers.get(&slot).into_iter().flatten();
        let before: Vec<ValueId> = before.copied().filter(|&reader| reader != id).collect();
        if !before.is_empty() && !wishes.contains_key(&id) {
            wishes.insert(id, before);
        }
    }
    let mut done = vec![false; values.len()];
    let mut ready: BinaryHeap<Reverse<ValueId>> = computed(values, &needed)
        .filter(|&(id, _)| waits[id as usize] == 0)
        .map(|(id, _)| Reverse(id))
        .collect();
    let mut wishing: Vec<ValueId> = Vec::new();
    let mut order = Vec::new();
    loop {
        let granted = |id: ValueId, done: &[bool]| {
            let before = wishes.get(&id).into_iter().flatten();
            before.copied().all(|reader| done[reader as usize])
        };
        let grant = wishing.iter().position(|&id| granted(id, &done));
        let next = match (grant, ready.pop()) {
            (Some(index), popped) => {
                ready.extend(popped);
                wishing.remove(index)
            }
            (None, Some(Reverse(id))) if granted(id, &done) => id,
            (None, Some(Reverse(id))) => {
                wishing.push(id);
                continue;
            }
            // Only unfulfillable wishes are left: the oldest goes first, to a temporary.
            (None, None) if !wishing.is_empty() => wishing.remove(0),
            (None, None) => return order,
        };
        done[next as usize] = true;
        order.push(next);
        for &follower in &followers[next as usize] {
            waits[follower as usize] -= 1;
            if waits[follower as usize] == 0 {
                ready.push(Reverse(follower));
            }
        }
    }
}

fn computed<'a>(
    values: &'a [Value],
    needed: &'a [bool],
) -> impl Iterator<Item = (ValueId, Value)> + 'a {
    let with_ids = values.iter().enumerate();
    with_ids
        .filter(|&(id, value)| needed[id] && matches!(value, Value::Computed(..)))
        .map(|(id, &value)| (id as ValueId, value))
}

/// The state of placing values, in order.
struct Allocation<'a> {
    values: &'a [Value],
    /// Slots that each value is stored to.
    targets: HashMap<ValueId, Vec<Slot>>,
    /// How many reads of a value are still to come.
    reads: Vec<u32>,
    /// How many reads of what a slot held at the beginning are still to come.
    slot_reads: HashMap<Slot, u32>,
    places: HashMap<ValueId, Place>,
    free: Vec<u32>,
    temporaries: u32,
}

impl<'a> Allocation<'a> {
    fn new(values: &'a [Value], outputs: &[(Slot, ValueId)], order: &[ValueId]) -> Self {
        let mut targets: HashMap<ValueId, Vec<Slot>> = HashMap::new();
        let mut reads = vec![0u32; values.len()];
        for &(slot, id) in outputs {
            targets.entry(id).or_default().push(slot);
        }
        let mut slot_reads: HashMap<Slot, u32> = HashMap::new();
        for &id in order {
            if let Value::Computed(_, x, y) = values[id as usize] {
                for operand in [x, y] {
                    reads[operand as usize] += 1;
                    if let Value::Input(slot) = values[operand as usize] {
                        *slot_reads.entry(slot).or_default() += 1;
                    }
                }
            }
        }
        Self {
            values,
            targets,
            reads,
            slot_reads,
            places: HashMap::new(),
            free: Vec::new(),
            temporaries: 0,
        }
    }

    fn routine(mut self, name: &'static str, zero: ValueId, order: &[ValueId]) -> Routine {
        let mut steps = Vec::with_capacity(order.len());
        let mut copies = Vec::new();
        for &id in order {
            let Value::Computed(operation, x, y) = self.values[id as usize] else {
                continue;
            };
            let (at_x, at_y) = (self.place(x), self.place(y));
            self.read(x);
            self.read(y);
            let out = self.place_result(id);
            let targets = self.targets.get(&id).into_iter().flatten();
            let others = targets.filter(|&&slot| Place::Slot(slot) != out);
            copies.extend(others.map(|&slot| (slot, out, id)));
            steps.push(Step {
                value: id,
                operation,
                out,
                x: at_x,
                y: at_y,
            });
        }
        let zero = self.place(zero);
        steps.extend(copies.iter().map(|&(slot, from, value)| Step {
            value,
            operation: Operation::Add,
            out: Place::Slot(slot),
            x: from,
            y: zero,
        }));
        Routine {
            name,
            values: self.values.to_vec(),
            steps,
            copies: copies.len() as u64,
            temporaries: self.temporaries,
        }
    }

    fn place(&self, id: ValueId) -> Place {
        match self.values[id as usize] {
            Value::Input(slot) => Place::Slot(slot),
            Value::Computed(..) => self.places[&id],
        }
    }

    /// An operand has been read: after the last time its temporary is free, unless it is stored at the end from there.
    fn read(&mut self, id: ValueId) {
        self.reads[id as usize] -= 1;
        match self.values[id as usize] {
            Value::Input(slot) => {
                if let Some(reads) = self.slot_reads.get_mut(&slot) {
                    *reads -= 1;
                }
            }
            Value::Computed(..) => {
                if let (0, false, Place::Temporary(index)) = (
                    self.reads[id as usize],
                    self.targets.contains_key(&id),
                    self.places[&id],
                ) {
                    self.free.push(index);
                }
            }
        }
    }

    /// A place for a result: a slot that it is stored to if nobody reads any more what that held, else a temporary.
    fn place_result(&mut self, id: ValueId) -> Place {
        let targets = self.targets.get(&id).into_iter().flatten();
        let mut vacant = targets.filter(|slot| self.slot_reads.get(slot).is_none_or(|&n| n == 0));
        let place = match vacant.next() {
            Some(&slot) => Place::Slot(slot),
            None => Place::Temporary(self.free.pop().unwrap_or_else(|| {
                self.temporaries += 1;
                self.temporaries - 1
            })),
        };
        self.places.insert(id, place);
        place
    }
}
