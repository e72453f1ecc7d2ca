//! The memory that a block's decoded form takes: in proportion to its bytes, or to its gas limit.
//!
//! Counted is all that decoding asks for, also what it frees again as lists grow. So it is more
//! than the peak.

use std::alloc::System;
use std::path::Path;

use alloy_primitives::Bytes;
use arbor_allocations::{Counting, of_this_thread};
use arbor_chain::source::{Position, RawBlock, SourceError};

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting(System);

/// Bytes of memory for each byte of a block, its transactions aside.
const TIMES: u64 = 20;
/// Bytes of memory for each transaction.
const TRANSACTION: u64 = 2_000;

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    string(0xc0, &items.concat())
}

/// An item of RLP: a string if `base` is 0x80, a list if it is 0xc0.
fn string(base: u8, payload: &[u8]) -> Vec<u8> {
    let length = payload.len();
    let mut item = match length {
        0..=55 => vec![base + length as u8],
        _ => {
            let bytes = length.to_be_bytes();
            let bytes = &bytes[length.leading_zeros() as usize / 8..];
            [&[base + 55 + bytes.len() as u8], bytes].concat()
        }
    };
    item.extend(payload);
    item
}

fn bytes(payload: &[u8]) -> Vec<u8> {
    match payload {
        [small @ ..0x80] => vec![*small],
        _ => string(0x80, payload),
    }
}

fn number(number: u64) -> Vec<u8> {
    let skipped = number.leading_zeros() as usize / 8;
    bytes(&number.to_be_bytes()[skipped..])
}

fn header(gas_limit: u64) -> Vec<u8> {
    let hash = || bytes(&[7; 32]);
    list(&[
        hash(),
        hash(),
        bytes(&[7; 20]),
        hash(),
        hash(),
        hash(),
        bytes(&[0; 256]),
        number(0),
        number(7),
        number(gas_limit),
        number(0),
        number(0),
        bytes(&[]),
        hash(),
        bytes(&[7; 8]),
    ])
}

/// A block of these transactions, ommers and withdrawals.
fn block(
    gas_limit: u64,
    transactions: &[Vec<u8>],
    ommers: &[Vec<u8>],
    withdrawals: &[Vec<u8>],
) -> Bytes {
    let [transactions, ommers, withdrawals] = [transactions, ommers, withdrawals].map(list);
    list(&[header(gas_limit), transactions, ommers, withdrawals]).into()
}

/// A transaction of a type from 1 to 4, with calldata, an access list and the list behind it.
fn transaction(kind: u8, data: &[u8], access_list: &[Vec<u8>], last: &[Vec<u8>]) -> Vec<u8> {
    let to = || bytes(&[7; 20]);
    let mut fields = vec![number(1), number(0), number(1)];
    if kind > 1 {
        fields.push(number(1));
    }
    fields.extend([number(21_000), to(), number(0), bytes(data)]);
    fields.push(list(access_list));
    match kind {
        3 => fields.extend([number(1), list(last)]),
        4 => fields.push(list(last)),
        _ => {}
    }
    fields.extend([number(0), number(5), number(7)]);
    bytes(&[&[kind], &list(&fields)[..]].concat())
}

/// Decodes a block, and returns the bytes of memory that were asked for.
fn decoded(rlp: &Bytes) -> Result<u64, SourceError> {
    let position = Position {
        file: Path::new("it").into(),
        offset: 0,
        ordinal: 0,
    };
    let raw = RawBlock::from_export(position, rlp)?;
    let before = of_this_thread().bytes;
    let block = raw.decode()?;
    let asked = of_this_thread().bytes - before;
    drop(block);
    Ok(asked)
}

#[test]
fn a_decoded_block_takes_memory_in_proportion_to_its_bytes() {
    const MANY: usize = 20_000;
    let gas = 200_000_000;
    let address = || bytes(&[7; 20]);
    let entry = |keys: usize| list(&[address(), list(&vec![bytes(&[7; 32]); keys])]);
    let authorization = list(&[
        number(0),
        address(),
        number(0),
        number(0),
        number(1),
        number(1),
    ]);
    let withdrawal = list(&[number(0), number(0), address(), number(0)]);
    let one = |transaction| block(gas, &[transaction], &[], &[]);
    for (name, rlp) in [
        ("calldata", one(transaction(2, &vec![1; 1 << 20], &[], &[]))),
        (
            "addresses",
            one(transaction(1, &[], &vec![entry(0); MANY], &[])),
        ),
        (
            "an address and a slot",
            one(transaction(2, &[], &vec![entry(1); MANY], &[])),
        ),
        (
            "five slots",
            one(transaction(2, &[], &vec![entry(5); MANY], &[])),
        ),
        ("slots", one(transaction(2, &[], &[entry(MANY)], &[]))),
        (
            "blobs",
            one(transaction(3, &[], &[], &vec![bytes(&[7; 32]); MANY])),
        ),
        (
            "authorizations",
            one(transaction(4, &[], &[], &vec![authorization; MANY])),
        ),
        ("ommers", block(gas, &[], &vec![header(gas); 16], &[])),
        ("withdrawals", block(gas, &[], &[], &vec![withdrawal; MANY])),
    ] {
        let asked = decoded(&rlp).expect(name);
        let (length, times) = (rlp.len(), asked / rlp.len() as u64);
        println!("{name}: {asked} bytes for {length}");
        assert!(times < TIMES, "{name}: {asked} bytes for {length}");
    }
}

/// The shortest transaction has 10 bytes and takes some hundred times as much, but its gas bounds
/// how many a block has.
#[test]
fn transactions_take_memory_in_proportion_to_the_gas_limit() {
    let mut fields = vec![number(0); 9];
    fields[6] = number(27);
    let shortest = list(&fields);
    let gas_limit = 60_000_000;
    let most = gas_limit / 10_500;
    let rlp = |count: u64| block(gas_limit, &vec![shortest.clone(); count as usize], &[], &[]);
    let asked = decoded(&rlp(most)).expect("within the gas limit");
    println!("{asked} bytes for {most} transactions");
    assert!(asked < most * TRANSACTION, "{asked} bytes");
    assert!(decoded(&rlp(most + 1)).is_err());
}

/// Lists were decoded before anybody looked at the gas limit: a block of 128 MiB of authorizations
/// took more than a gigabyte.
#[test]
fn lists_beyond_the_gas_limit_are_not_decoded() {
    let entry = list(&[bytes(&[7; 20]), list(&[])]);
    let rlp = |gas_limit, entries| {
        let transaction = transaction(2, &[], &vec![entry.clone(); entries], &[]);
        block(gas_limit, &[transaction], &[], &[])
    };
    let error = decoded(&rlp(30_000_000, 25_001)).expect_err("too many");
    let error = error.to_string();
    assert!(
        error.contains("access lists of 25001 addresses and 0 slots")
            && error.contains("a gas limit of 30000000 has no room"),
        "{error}"
    );
    assert!(decoded(&rlp(30_000_000, 25_000)).is_ok());
    // Of few the executor says what is wrong.
    assert!(decoded(&rlp(0, 1_024)).is_ok());
    let ommers = block(30_000_000, &[], &vec![header(0); 17], &[]);
    let error = decoded(&ommers).expect_err("too many").to_string();
    assert!(error.contains("17, and a block has at most 2"), "{error}");
}
