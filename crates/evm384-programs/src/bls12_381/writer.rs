//! A contract of the pairing being written.

use super::constants::montgomery;
use super::routines::routines;
use super::variables::{RECORD_BYTES, Variables};
use arbor_evm384::Interface;
use arbor_evm384::build::{Contract, Label, Layout, Slot, Slots, Weights};
use arbor_evm384::reference::U384;

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
pub(super) const MOST_SQUARINGS: usize = 3;

/// A contract being written.
pub(super) struct Writer {
    pub(super) contract: Contract,
    pub(super) variables: Variables,
    pub(super) labels: Labels,
    /// How many cyclotomic squarings an iteration makes: as many as there is room for in code that may be deployed.
    pub(super) squarings: usize,
    pub(super) one: Slot,
}

impl Writer {
    pub(super) fn new(mut layout: Layout, interface: Interface, often: Weights) -> Self {
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
}
