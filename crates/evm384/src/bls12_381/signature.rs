//! BLS signatures with public keys in G1 and signatures in G2.

use alloy_primitives::{Address, U256};
use revm::bytecode::opcode::{AND, MSTORE};

use super::group::Group;
use super::hash::{Hash, SIGNATURE_DOMAIN};
use crate::Interface;
use crate::build::{Goal, Program, Word};

/// Bytes of a public key and of a signature, EIP-2537's points.
const KEY: u32 = Group::G1.encoded_bytes();
const SIGNATURE: u32 = Group::G2.encoded_bytes();

/// Verification of one signature (CoreVerify of the drafts on BLS signatures, proof-of-possession scheme): calldata is a public key, a signature, both as EIP-2537's points, and the message; the result is a word, 1 or 0.
///
/// With H the hash to G2 and G the generator of G1, it has the pairing check at `pairing` compute whether e(key, H(message)) e(-G, signature) = 1: that checks encodings, curves and
/// subgroups; zero is no key.
#[must_use]
pub fn verifier(pairing: Address, interface: Interface, goal: Goal) -> Program {
    let (mut hash, pairs) = Hash::new(SIGNATURE_DOMAIN, interface, goal, |layout| {
        layout.bytes("pairs", 2 * (KEY + SIGNATURE))
    });
    let result = hash.points.memory.result;
    let c = &mut hash.points.contract;
    c.refuse(Word::calldata_size().below(KEY + SIGNATURE));
    c.copy_calldata(pairs, 0, KEY);
    c.copy_calldata(pairs + 2 * KEY + SIGNATURE, KEY, SIGNATURE);
    hash.hash_calldata(KEY + SIGNATURE);
    hash.points.encode_sum();
    let c = &mut hash.points.contract;
    c.copy(pairs + KEY, result, SIGNATURE);
    for (index, word) in opposite_generator().into_iter().enumerate() {
        c.store(pairs + KEY + SIGNATURE + 32 * index as u32, word);
    }
    let output = pairs + KEY;
    c.static_call(
        U256::from_be_slice(pairing.as_slice()),
        (pairs.into(), (2 * (KEY + SIGNATURE)).into()),
        (output.into(), 32.into()),
    );
    c.push(Word::memory(output));
    let words = (0..KEY / 32).map(|word| Word::memory(pairs + 32 * word));
    let key = words.reduce(|any, word| word | any).unwrap_or(0.into());
    // The call's success, what it returned, and whether the key is a finite point.
    c.push(key.is_zero().is_zero());
    c.code.ops(&[AND, AND]);
    c.push(0);
    c.code.ops(&[MSTORE]);
    c.return_bytes(0, 32);
    hash.finish()
}

/// The words of -G.
fn opposite_generator() -> Vec<U256> {
    let bytes = Group::G1.opposite_generator();
    bytes.chunks_exact(32).map(U256::from_be_slice).collect()
}
