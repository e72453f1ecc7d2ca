//! BLS signatures with public keys in G1 and signatures in G2.

use alloy_primitives::{Address, U256, hex};
use revm::bytecode::opcode::{AND, MSTORE};

use super::group::Group;
use super::hash::{Hash, SIGNATURE_DOMAIN};
use arbor_evm384::Interface;
use arbor_evm384::build::{Goal, Program, Word};

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

/// The message of [`sample`].
const SAMPLE_MESSAGE: &[u8] = b"message";

/// Calldata with a true signature: the public key of the secret key 0x123456789abcdef1, its signature of "message", and the message. Key and signature
/// were made with py_ecc 8; the tests compare them with blst's.
pub(crate) fn sample() -> Vec<u8> {
    let points = hex!(
        "0000000000000000000000000000000016fbfd0008e14285df5ed9fdd810cc91a77fa125f92f1e208a458dc35d9777552c88bbcda4adba1d33b7a5da551de837"
        "0000000000000000000000000000000011199f1d3a7f3561a8be94d83712a069ae99b75fbed4d640cb37d911eb4415550c6b43009e1fc34257c9e0e1ca99c9f4"
        "000000000000000000000000000000000f1300897390b71b9ca2f151c3838c14e53d0f6da5650c4dd61ce31aa85467541decb03a31f84b07cfc521cb2758601b"
        "000000000000000000000000000000000c282ab3fde3dd5d19935fc56e6d9511145c8ef8b7c8a3f04cce370bfe5e363bf341642301c531cff4b7435bd3a12479"
        "0000000000000000000000000000000003cb38e2949faf23cf62c25512cb96bcb1c55d8890c9335779664819c4daca22dde3ec226b19758276f55a3148e9e5ee"
        "0000000000000000000000000000000017e4e72886d563c47af3a94a965d1c172740ad58bc491bb4c38f2a75c5f4ee022f84524df69142be3b46f7c187dd24a0"
    );
    [&points[..], SAMPLE_MESSAGE].concat()
}

/// The words of -G.
fn opposite_generator() -> Vec<U256> {
    let bytes = Group::G1.opposite_generator();
    bytes.chunks_exact(32).map(U256::from_be_slice).collect()
}
