//! The contracts that are written here, by name.

use revm::primitives::Address;

use crate::Interface;
use crate::bls12_381::{Goal, Group, Pairing, Part, Program, Sum};

/// A contract that is written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuiltIn {
    /// A pairing on BLS12-381, its halves, or EIP-2537's check.
    Pairing(Part),
    /// EIP-2537's addition in a group.
    Addition(Group),
    /// EIP-2537's multi-scalar multiplication in a group.
    Multiples(Group),
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Pairing(Part::MillerLoop),
        Self::Pairing(Part::FinalExponentiation),
        Self::Pairing(Part::Pairing),
        Self::Pairing(Part::Check),
        Self::Addition(Group::G1),
        Self::Addition(Group::G2),
        Self::Multiples(Group::G1),
        Self::Multiples(Group::G2),
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pairing(part) => part.name(),
            Self::Addition(Group::G1) => "g1-add",
            Self::Addition(Group::G2) => "g2-add",
            Self::Multiples(Group::G1) => "g1-msm",
            Self::Multiples(Group::G2) => "g2-msm",
        }
    }

    /// The contract of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|contract| contract.name() == name)
    }

    /// Writes it.
    #[must_use]
    pub fn program(self, interface: Interface, goal: Goal) -> Program {
        let sum = |group, scalars| Sum {
            group,
            scalars,
            interface,
            goal,
        };
        match self {
            Self::Pairing(part) => Pairing {
                part,
                interface,
                goal,
            }
            .program(),
            Self::Addition(group) => sum(group, false).program(),
            Self::Multiples(group) => sum(group, true).program(),
        }
    }

    /// Contracts that it calls, where it expects them.
    #[must_use]
    pub fn others(self, _interface: Interface, _goal: Goal) -> Vec<(Address, Vec<u8>)> {
        Vec::new()
    }

    /// Calldata for it.
    #[must_use]
    pub fn sample(self) -> Vec<u8> {
        match self {
            Self::Pairing(part) => part.sample(),
            Self::Addition(group) => [group.generator(), group.generator()].concat(),
            // Every window of the scalar has some bits.
            Self::Multiples(group) => [group.generator(), vec![0x5a; 32]].concat(),
        }
    }
}
