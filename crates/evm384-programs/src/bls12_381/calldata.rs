//! Input for the contracts.

use super::constants::{GENERATORS, MODULUS, montgomery};
use super::group::Group;
use super::program::Part;
use arbor_evm384::reference::U384;

impl Part {
    /// Calldata made of the generators P and Q: for the check, the two pairs of e(P, Q) e(-P, Q) = 1. The final exponentiation gets numbers that are no
    /// Miller loop's result, and takes as long for them.
    #[must_use]
    pub fn sample(self) -> Vec<u8> {
        match self {
            Self::MillerLoop | Self::Pairing => in_montgomery_form(GENERATORS),
            Self::FinalExponentiation => in_montgomery_form([GENERATORS, GENERATORS].concat()),
            Self::Check => {
                let q = Group::G2.generator();
                let [p, opposite] = [Group::G1.generator(), Group::G1.opposite_generator()];
                [&p, &q, &opposite, &q].map(Vec::as_slice).concat()
            }
        }
    }
}

impl Group {
    /// Its generator in EIP-2537's encoding.
    #[must_use]
    pub fn generator(self) -> Vec<u8> {
        let numbers = match self {
            Self::G1 => &GENERATORS[..2],
            Self::G2 => &GENERATORS[2..],
        };
        numbers.iter().copied().flat_map(encoded).collect()
    }

    /// The opposite of its generator.
    #[must_use]
    pub fn opposite_generator(self) -> Vec<u8> {
        let mut point = self.generator();
        let y = point.len() / 2;
        for residue in point[y..].chunks_exact_mut(64) {
            let opposite = MODULUS - U384::from_be_slice(&residue[16..]);
            residue.copy_from_slice(&encoded(opposite));
        }
        point
    }
}

fn in_montgomery_form(numbers: impl IntoIterator<Item = U384>) -> Vec<u8> {
    let numbers = numbers.into_iter().map(montgomery);
    numbers
        .flat_map(|number| number.to_le_bytes::<48>())
        .collect()
}

/// EIP-2537: 64 bytes, most significant first.
fn encoded(number: U384) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[16..].copy_from_slice(&number.to_be_bytes::<48>());
    bytes
}
