//! SHA-1 (FIPS 180-4) with the EVM's own instructions: what a hash costs that no precompile has.

use alloy_primitives::U256;

use crate::bls12_381::Program;
use arbor_evm384::Interface;
use arbor_evm384::build::{Contract, Layout, Variable, Word};
use arbor_evm384::reference::U384;

const START: [u32; 5] = [
    0x6745_2301,
    0xefcd_ab89,
    0x98ba_dcfe,
    0x1032_5476,
    0xc3d2_e1f0,
];
const BLOCK: u32 = 64;

/// The contract: the digest of calldata, in the last 20 bytes of a word.
pub(super) fn sha1() -> Program {
    // No arithmetic modulo anything.
    let mut layout = Layout::new(U384::from(1));
    let state: [Variable; 5] = std::array::from_fn(|index| layout.word(format!("h{index}")));
    let working: [Variable; 5] =
        std::array::from_fn(|index| layout.word(format!("working {index}")));
    let [block, end, round, sum] = ["block", "end", "round", "sum"].map(|name| layout.word(name));
    let schedule = layout.bytes("schedule", 80 * 32);
    let mut c = Contract::new(Interface::V7, layout, Vec::new());
    let message = c.heap().next_multiple_of(32);
    let size = Word::calldata_size;
    for (variable, word) in state.into_iter().zip(START) {
        c.set(variable, word);
    }
    // The message, a one, zeros, its length in bits; whole blocks.
    c.copy_calldata(message, 0, size());
    c.store_byte(size() + message, 0x80);
    c.set(end, (size() + (9 + BLOCK - 1)) / BLOCK * BLOCK + message);
    let length = end.get() - 32;
    c.store(length.clone(), Word::memory(length) | (size() * 8));
    c.set(block, message);
    let whole = c.code.here();
    for index in 0..16u32 {
        let word = Word::memory(block.get() + (index / 8 * 32)) >> (224 - index % 8 * 32);
        c.store(schedule + 32 * index, word & u32::MAX);
    }
    c.set(round, schedule + 16 * 32);
    c.loop_while(round.get().below(schedule + 80 * 32), |c| {
        let earlier = |back: u32| Word::memory(round.get() - back * 32);
        let mixed = earlier(3) ^ earlier(8) ^ earlier(14) ^ earlier(16);
        c.set(sum, mixed);
        c.store(round, rotated(sum, 1));
        c.set(round, round.get() + 32);
    });
    for (from, to) in state.into_iter().zip(working) {
        c.set(to, from);
    }
    let [a, b, d, e, f] = working;
    let choice = (b.get() & d) | ((b.get() ^ u32::MAX) & e);
    let parity = b.get() ^ d ^ e;
    let majority = (b.get() & d) | (b.get() & e) | (d.get() & e);
    let quarters = [
        (choice, 0x5a82_7999u32),
        (parity.clone(), 0x6ed9_eba1),
        (majority, 0x8f1b_bcdc),
        (parity, 0xca62_c1d6),
    ];
    c.set(round, schedule);
    for (quarter, (function, constant)) in quarters.into_iter().enumerate() {
        let last = schedule + (quarter as u32 + 1) * 20 * 32;
        c.loop_while(round.get().below(last), |c| {
            let word = Word::memory(round);
            c.set(
                sum,
                (rotated(a, 5) + function + f + word + constant) & u32::MAX,
            );
            for (to, word) in [
                (f, e.get()),
                (e, d.get()),
                (d, rotated(b, 30)),
                (b, a.get()),
                (a, sum.get()),
            ] {
                c.set(to, word);
            }
            c.set(round, round.get() + 32);
        });
    }
    for (to, from) in state.into_iter().zip(working) {
        c.set(to, (to.get() + from) & u32::MAX);
    }
    c.set(block, block.get() + BLOCK);
    c.push(block.get().below(end));
    c.code.jump_if(whole);
    let digest = state
        .into_iter()
        .fold(Word::Number(U256::ZERO), |digest, word| {
            (digest << 32) | word
        });
    c.return_word(digest);
    c.finish()
}

/// The word's 32 bits, rotated to the left.
fn rotated(word: Variable, bits: u32) -> Word {
    ((word.get() << bits) | (word.get() >> (32 - bits))) & u32::MAX
}
