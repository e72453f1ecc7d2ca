//! The contracts that are written here, by name, and those that are for other fields than that of BLS12-381.

mod bls12_377;
mod bn254;
mod fields;
mod multiples;
mod poseidon;
mod sha1;
pub mod verkle;

pub use fields::{PrimeField, polynomial};
use verkle::Statement;

use revm::primitives::Address;

use crate::bls12_381::{
    Goal, Group, Pairing, Part, Program, Sum, map_to_g2, signature_sample, verifier,
};
use arbor_evm384::Interface;

/// A contract that is written here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuiltIn {
    /// A pairing on BLS12-381, its halves, or EIP-2537's check.
    Pairing(Part),
    /// A pairing without EVM384, with numbers of two words.
    PairingOfWords,
    /// EIP-2537's check in the same way.
    PairingCheckOfWords,
    /// EIP-2537's addition in a group.
    Addition(Group),
    /// EIP-2537's multi-scalar multiplication in a group.
    Multiples(Group),
    /// EIP-2537's map of a field element to G2.
    MapToG2,
    /// Verification of a BLS signature.
    VerifySignature,
    /// The value of a polynomial.
    Polynomial(PrimeField),
    /// Poseidon of two words.
    Poseidon,
    /// A multiple of a point of BLS12-377's first group.
    Bls12377Multiple,
    /// EIP-196's multiplication.
    Bn254Multiple,
    /// The same without EVM384, by MULMOD and ADDMOD.
    Bn254MultipleOfWords,
    /// SHA-1 of calldata, without EVM384.
    Sha1,
    /// Verification of what a Verkle witness consists of, in transcripts of Verkle trees.
    InnerProduct(verkle::Statement),
}

/// Where contracts expect the pairing check that they call.
pub const PAIRING_CHECK: Address = Address::repeat_byte(0x39);

/// Where contracts expect the reference string of Verkle trees.
pub const REFERENCE_STRING: Address = Address::repeat_byte(0x40);

/// More gas than any of the contracts takes on its sample.
pub const AMPLE_GAS: u64 = 100_000_000;

/// What transcripts of Verkle trees begin with.
const VERKLE_LABEL: &[u8] = b"vt";

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::Pairing(Part::MillerLoop),
        Self::Pairing(Part::FinalExponentiation),
        Self::Pairing(Part::Pairing),
        Self::Pairing(Part::Check),
        Self::PairingOfWords,
        Self::PairingCheckOfWords,
        Self::Addition(Group::G1),
        Self::Addition(Group::G2),
        Self::Multiples(Group::G1),
        Self::Multiples(Group::G2),
        Self::MapToG2,
        Self::VerifySignature,
        Self::Polynomial(PrimeField::Bls12381),
        Self::Polynomial(PrimeField::Bls12377),
        Self::Polynomial(PrimeField::Bn254),
        Self::Polynomial(PrimeField::Bn254Scalars),
        Self::Polynomial(PrimeField::Banderwagon),
        Self::Poseidon,
        Self::Bls12377Multiple,
        Self::Bn254Multiple,
        Self::Bn254MultipleOfWords,
        Self::Sha1,
        Self::InnerProduct(Statement::Commitment),
        Self::InnerProduct(Statement::Opening),
        Self::InnerProduct(Statement::Openings),
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pairing(part) => part.name(),
            Self::PairingOfWords => "pairing-words",
            Self::PairingCheckOfWords => "pairing-check-words",
            Self::Addition(Group::G1) => "g1-add",
            Self::Addition(Group::G2) => "g2-add",
            Self::Multiples(Group::G1) => "g1-msm",
            Self::Multiples(Group::G2) => "g2-msm",
            Self::MapToG2 => "g2-map",
            Self::VerifySignature => "bls-verify",
            Self::Polynomial(field) => field.polynomial_name(),
            Self::Poseidon => "poseidon",
            Self::Bls12377Multiple => "bls12-377-mul",
            Self::Bn254Multiple => "bn254-mul",
            Self::Bn254MultipleOfWords => "bn254-mul-words",
            Self::Sha1 => "sha1",
            Self::InnerProduct(Statement::Commitment) => "pedersen-verify",
            Self::InnerProduct(Statement::Opening) => "ipa-verify",
            Self::InnerProduct(Statement::Openings) => "multiproof-verify",
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
            Self::PairingOfWords => Part::Pairing.of_words(),
            Self::PairingCheckOfWords => Part::Check.of_words(),
            Self::Addition(group) => sum(group, false).program(),
            Self::Multiples(group) => sum(group, true).program(),
            Self::MapToG2 => map_to_g2(interface, goal),
            Self::VerifySignature => verifier(PAIRING_CHECK, interface, goal),
            Self::Polynomial(field) => polynomial(field, interface, goal),
            Self::Poseidon => poseidon::poseidon(interface, goal),
            Self::Bls12377Multiple => bls12_377::multiplication(interface, goal),
            Self::Bn254Multiple => bn254::multiplication(interface, goal),
            Self::Bn254MultipleOfWords => bn254::multiplication_of_words(),
            Self::Sha1 => sha1::sha1(),
            Self::InnerProduct(statement) => {
                verkle::verifier(statement, VERKLE_LABEL, REFERENCE_STRING, interface, goal)
            }
        }
    }

    /// Whether it has any of EVM384's operations.
    #[must_use]
    pub const fn uses_operations(self) -> bool {
        !matches!(
            self,
            Self::PairingOfWords
                | Self::PairingCheckOfWords
                | Self::Bn254MultipleOfWords
                | Self::Sha1
        )
    }

    /// The contract that does the same without EVM384.
    #[must_use]
    pub const fn of_words(self) -> Option<Self> {
        match self {
            Self::Pairing(Part::Pairing) => Some(Self::PairingOfWords),
            Self::Pairing(Part::Check) => Some(Self::PairingCheckOfWords),
            Self::Bn254Multiple => Some(Self::Bn254MultipleOfWords),
            _ => None,
        }
    }

    /// Contracts that it calls, where it expects them.
    #[must_use]
    pub fn others(self, interface: Interface, goal: Goal) -> Vec<(Address, Vec<u8>)> {
        match self {
            Self::VerifySignature => {
                let check = Self::Pairing(Part::Check).program(interface, goal);
                vec![(PAIRING_CHECK, check.code)]
            }
            Self::InnerProduct(_) => vec![(REFERENCE_STRING, verkle::reference_string())],
            _ => Vec::new(),
        }
    }

    /// Calldata for it.
    #[must_use]
    pub fn sample(self) -> Vec<u8> {
        match self {
            Self::Pairing(part) => part.sample(),
            Self::PairingOfWords => Part::Pairing.sample(),
            Self::PairingCheckOfWords => Part::Check.sample(),
            Self::Addition(group) => [group.generator(), group.generator()].concat(),
            // Every window of the scalar has some bits.
            Self::Multiples(group) => [group.generator(), vec![0x5a; 32]].concat(),
            Self::MapToG2 => Group::G2.generator()[..128].to_vec(),
            Self::VerifySignature => signature_sample(),
            // x = 3, and a hundred coefficients.
            Self::Polynomial(_) => (3..=103)
                .flat_map(|n| [[0; 63].as_slice(), &[n]].concat())
                .collect(),
            Self::InnerProduct(statement) => verkle::sample(statement, VERKLE_LABEL),
            Self::Poseidon => [[0; 31].as_slice(), &[1], &[0; 31], &[2]].concat(),
            Self::Sha1 => vec![0x5a; 1024],
            Self::Bls12377Multiple => [bls12_377::generator(), vec![0x5a; 32]].concat(),
            // The generator (1, 2).
            Self::Bn254Multiple | Self::Bn254MultipleOfWords => {
                [[0; 31].as_slice(), &[1], &[0; 31], &[2], &[0x5a; 32]].concat()
            }
        }
    }
}
