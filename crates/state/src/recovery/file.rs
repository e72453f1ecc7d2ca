//! The file: frames, each with a check.
//!
//! `ARBORENT`, a byte 1; then frames: kind (1), number of entries (4), length (4), the entries, and the first 8 bytes of the Keccak-256 of all that. Integers are big-endian.
//!
//! | kind | entries |
//! |---|---|
//! | 1 | once, first: the head as JSON |
//! | 2 | leaves: key (32), length of the record (1), the record of the leaf's table |
//! | 3 | names: length (1), an address, or an address and a slot |
//! | 4 | codes: length (4), the code |
//! | 5 | accounts, as `account_entry.rs` describes them |
//! | 6 | accounts and slots that the state once had, in the same form; frames of kind 5 follow and remove them |
//! | 0 | once, last: the numbers of leaves, names and codes (8 each), and of accounts and slots if there are any |

use std::borrow::Cow;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::num::NonZeroUsize;

use alloy_primitives::{B256, Bytes, keccak256};
use arbor_state_tree::{LeafWrite, corrupt};
use arbor_verify::ar16mt::{Entry, leaf_record, read_leaf};

use super::account_entry::take;
use super::{AccountEntry, CODE_BYTES, Chunk, EntriesHead, MOST_TOGETHER, Order, RecoveryError};

pub(super) const MAGIC: &[u8; 9] = b"ARBORENT\x01";
/// Kind, number, length.
pub(super) const FRAME: usize = 1 + 4 + 4;
/// Bytes of the length before a code.
pub(super) const CODE_LENGTH: u64 = 4;
const CHECK: usize = 8;
/// The longest frame: what a reader is ready to hold.
const LONGEST: usize = 1 << 28;

const END: u8 = 0;
const HEAD: u8 = 1;
const LEAVES: u8 = 2;
const NAMES: u8 = 3;
const CODES: u8 = 4;
const ACCOUNTS: u8 = 5;
const PAST: u8 = 6;

/// How much of each kind there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Leaves.
    pub leaves: u64,
    /// Names of accounts and slots.
    pub names: u64,
    /// Codes.
    pub codes: u64,
    /// Accounts. One whose slots are in several chunks counts once for each.
    pub accounts: u64,
    /// Slots that are not zero.
    pub slots: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            leaves,
            names,
            codes,
            accounts,
            slots,
        } = self;
        match self.has_accounts() {
            true => write!(f, "{accounts} accounts, {slots} slots and {codes} codes"),
            false => write!(f, "{leaves} leaves, {names} names and {codes} codes"),
        }
    }
}

impl Totals {
    /// Whether the list is one of accounts.
    pub fn has_accounts(&self) -> bool {
        self.accounts > 0 || self.slots > 0
    }

    fn count(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Leaves(leaves) => self.leaves += leaves.len() as u64,
            Chunk::Names(names) => self.names += names.len() as u64,
            Chunk::Codes(codes) => self.codes += codes.len() as u64,
            Chunk::Accounts(entries) => {
                let present = entries.iter().filter(|entry| entry.account.is_some());
                self.accounts += present.count() as u64;
                let slots = entries.iter().flat_map(|entry| &entry.slots);
                self.slots += slots.filter(|(_, value)| !value.is_zero()).count() as u64;
            }
            Chunk::Past(_) => {}
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut numbers = vec![self.leaves, self.names, self.codes];
        if self.has_accounts() {
            numbers.extend([self.accounts, self.slots]);
        }
        numbers.into_iter().flat_map(u64::to_be_bytes).collect()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_be_bytes).collect();
        let (leaves, names, codes, accounts, slots) = match numbers[..] {
            [leaves, names, codes] => (leaves, names, codes, 0, 0),
            [leaves, names, codes, accounts, slots] => (leaves, names, codes, accounts, slots),
            _ => return None,
        };
        rest.is_empty().then_some(Self {
            leaves,
            names,
            codes,
            accounts,
            slots,
        })
    }
}

/// Writes a file, chunk by chunk. Without [`EntriesWriter::finish`] it is not whole.
#[derive(Debug)]
pub struct EntriesWriter<W> {
    out: W,
    offset: u64,
    totals: Totals,
}

impl<W: Write> EntriesWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// What keeps it from being written, as in all methods; a head longer than a frame may be.
    pub fn new(out: W, head: &EntriesHead) -> Result<Self, RecoveryError> {
        let mut writer = Self {
            out,
            offset: 0,
            totals: Totals::default(),
        };
        writer.bytes(MAGIC)?;
        let json = serde_json::to_vec(head).map_err(|error| RecoveryError::File {
            offset: writer.offset,
            error: error.into(),
        })?;
        writer.frame(HEAD, 1, &json)?;
        Ok(writer)
    }

    /// Adds entries.
    ///
    /// # Errors
    /// As above.
    pub fn chunk(&mut self, chunk: &Chunk) -> Result<(), RecoveryError> {
        let mut payload = Vec::new();
        let (kind, count) = match chunk {
            Chunk::Leaves(leaves) => {
                for LeafWrite { key, index, value } in leaves {
                    let record = leaf_record(&Entry {
                        index: *index,
                        value: *value,
                    });
                    payload.extend_from_slice(key);
                    payload.push(record.len() as u8);
                    payload.extend_from_slice(&record);
                }
                (LEAVES, leaves.len())
            }
            Chunk::Names(names) => {
                for name in names {
                    payload.push(name.len() as u8);
                    payload.extend_from_slice(name);
                }
                (NAMES, names.len())
            }
            Chunk::Codes(codes) => {
                for code in codes {
                    payload.extend((code.len() as u32).to_be_bytes());
                    payload.extend_from_slice(code);
                }
                (CODES, codes.len())
            }
            Chunk::Accounts(entries) => {
                entries.iter().for_each(|entry| entry.encode(&mut payload));
                (ACCOUNTS, entries.len())
            }
            Chunk::Past(entries) => {
                entries.iter().for_each(|entry| entry.encode(&mut payload));
                (PAST, entries.len())
            }
        };
        self.totals.count(chunk);
        self.frame(kind, count, &payload)
    }

    /// What was written so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Ends the file.
    ///
    /// # Errors
    /// As above.
    pub fn finish(mut self) -> Result<(W, Totals), RecoveryError> {
        let totals = self.totals;
        let payload = totals.encode();
        self.frame(END, payload.len() / 8, &payload)?;
        self.out.flush().map_err(|error| RecoveryError::File {
            offset: self.offset,
            error,
        })?;
        Ok((self.out, totals))
    }

    fn frame(&mut self, kind: u8, count: usize, payload: &[u8]) -> Result<(), RecoveryError> {
        let number = |number: usize| {
            let fits = number <= LONGEST;
            let number = u32::try_from(number).ok().filter(|_| fits);
            number.ok_or_else(|| RecoveryError::File {
                offset: self.offset,
                error: std::io::Error::other("more than a frame may hold"),
            })
        };
        let head = [
            &[kind][..],
            &number(count)?.to_be_bytes(),
            &number(payload.len())?.to_be_bytes(),
        ];
        let frame = [&head.concat(), payload].concat();
        self.bytes(&frame)?;
        self.bytes(&check(&frame))
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), RecoveryError> {
        let offset = self.offset;
        let written = self.out.write_all(bytes);
        written.map_err(|error| RecoveryError::File { offset, error })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

fn check(frame: &[u8]) -> [u8; CHECK] {
    let mut check = [0; CHECK];
    check.copy_from_slice(&keccak256(frame)[..CHECK]);
    check
}

/// Where a reader stands. Files that have been the same up to there have the same place there, and no others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Before the last frame that was read.
    pub before: B256,
    /// Behind it: the Keccak-256 of `before` and the frame's check.
    pub after: B256,
}

/// The indices of leaves, each of which comes once: from 1 on, without a gap.
#[derive(Debug, Default)]
struct Indices {
    /// More there cannot be.
    most: u64,
    highest: u64,
    seen: Vec<u64>,
}

impl Indices {
    fn add(&mut self, index: u64) -> Result<(), RecoveryError> {
        if index > self.most {
            let leaves = self.most;
            return Err(RecoveryError::IndexBeyond { index, leaves });
        }
        self.highest = self.highest.max(index);
        let (word, bit) = ((index / 64) as usize, 1 << (index % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            return Err(RecoveryError::IndexTwice(index));
        }
        self.seen[word] |= bit;
        Ok(())
    }

    /// All of them were there, of so many leaves.
    fn end(&self, leaves: u64) -> Result<(), RecoveryError> {
        let index = self.highest;
        match index > leaves {
            true => Err(RecoveryError::IndexBeyond { index, leaves }),
            false => Ok(()),
        }
    }
}

/// Reads a file, chunk by chunk.
#[derive(Debug)]
pub struct EntriesReader<R> {
    input: R,
    indices: Indices,
    offset: u64,
    head: EntriesHead,
    place: Place,
    totals: Totals,
    chunks: u64,
    ended: bool,
}

struct Frame {
    kind: u8,
    count: u32,
    payload: Vec<u8>,
}

/// Bytes of the shortest leaf: its key, the length of its record, and that: an index of one byte behind its length.
const SHORTEST_LEAF: u64 = 32 + 1 + 2;

impl<R: Read> EntriesReader<R> {
    /// Begins to read a file of so many bytes, up to its head.
    ///
    /// # Errors
    /// [`RecoveryError::File`] and [`RecoveryError::Malformed`], as in all methods.
    pub fn new(input: R, length: u64) -> Result<Self, RecoveryError> {
        let mut reader = Self {
            input,
            indices: Indices {
                most: length / SHORTEST_LEAF,
                ..Indices::default()
            },
            offset: 0,
            head: EntriesHead::nothing(),
            place: Place::default(),
            totals: Totals::default(),
            chunks: 0,
            ended: false,
        };
        if reader.bytes(MAGIC.len())? != MAGIC {
            return Err(malformed(0, "not a file of entries (ARBORENT, version 1)"));
        }
        let start = reader.offset;
        let frame = reader.frame()?;
        if frame.kind != HEAD {
            return Err(malformed(start, "the first frame is not the head"));
        }
        let head = serde_json::from_slice(&frame.payload);
        // What is wrong may have a name of any length in it.
        let wrong = |error: serde_json::Error| format!("its head: {:.300?}", error.to_string());
        reader.head = head.map_err(|error| malformed(start, wrong(error)))?;
        let together = reader.head.together;
        if together.get() > MOST_TOGETHER {
            let why = format!("chunks of {together} leaves, where {MOST_TOGETHER} are the most");
            return Err(malformed(start, why));
        }
        Ok(reader)
    }

    /// Begins to read in the middle of a file, with the frame at `offset`.
    pub(super) fn at(input: R, head: EntriesHead, offset: u64) -> Self {
        Self {
            input,
            indices: Indices {
                most: u64::MAX,
                ..Indices::default()
            },
            offset,
            head,
            place: Place::default(),
            totals: Totals::default(),
            chunks: 0,
            ended: false,
        }
    }

    /// What is at its beginning.
    pub fn head(&self) -> &EntriesHead {
        &self.head
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Chunks read so far.
    pub fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What has come so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The next chunk; `None` at the end, where all that it says to have must have come.
    ///
    /// # Errors
    /// As above; an index that another leaf has; [`RecoveryError::Totals`] and [`RecoveryError::IndexBeyond`] at the end.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, RecoveryError> {
        if self.ended {
            return Ok(None);
        }
        let start = self.offset;
        let frame = self.frame()?;
        let chunk = match frame.kind {
            END => {
                let said = Totals::decode(&frame.payload);
                let said = said.ok_or_else(|| malformed(start, "an end without its numbers"))?;
                let found = self.totals;
                if said != found {
                    return Err(RecoveryError::Totals { said, found });
                }
                self.indices.end(found.leaves)?;
                let end = self.offset;
                if self.behind(end)? {
                    return Err(malformed(end, "more bytes behind its end"));
                }
                self.ended = true;
                return Ok(None);
            }
            LEAVES => entries(&frame, leaf).map(Chunk::Leaves),
            NAMES => entries(&frame, |rest| {
                let length = usize::from(take(rest, 1)?[0]);
                let known = matches!(length, 20 | 52);
                let name = take(rest, length)?.to_vec();
                known
                    .then_some(name)
                    .ok_or_else(|| "a name of neither 20 nor 52 bytes".into())
            })
            .map(Chunk::Names),
            CODES => entries(&frame, |rest| {
                let (length, _) = take(rest, 4)?.as_chunks::<4>();
                match take(rest, u32::from_be_bytes(length[0]) as usize)? {
                    [] => Err("a code of no bytes".into()),
                    code => Ok(Bytes::copy_from_slice(code)),
                }
            })
            .map(Chunk::Codes),
            ACCOUNTS => self.accounts(&frame).map(Chunk::Accounts),
            PAST => self.accounts(&frame).map(Chunk::Past),
            kind => return Err(malformed(start, format!("a frame of unknown kind {kind}"))),
        };
        let chunk = chunk.map_err(|why| malformed(start, why))?;
        if let Chunk::Leaves(leaves) = &chunk {
            for leaf in leaves {
                self.indices.add(leaf.index)?;
            }
        }
        self.totals.count(&chunk);
        self.chunks += 1;
        Ok(Some(chunk))
    }

    fn frame(&mut self) -> Result<Frame, RecoveryError> {
        let start = self.offset;
        let mut frame = self.bytes(FRAME)?;
        let number = |at: usize| {
            let bytes = frame[at..at + 4].iter();
            bytes.fold(0, |number, byte| number << 8 | u32::from(*byte))
        };
        let (kind, count, length) = (frame[0], number(1), number(5) as usize);
        // Each takes more in memory than it may have in the file.
        let most = match kind {
            LEAVES | NAMES | ACCOUNTS | PAST => self.head.together.get(),
            _ => CODE_BYTES,
        };
        if count as usize > most {
            let why = format!("a frame of {count} entries, where {most} are the most");
            return Err(malformed(start, why));
        }
        if length > LONGEST {
            let why = format!("a frame of {length} bytes, where {LONGEST} are the most");
            return Err(malformed(start, why));
        }
        frame.extend(self.bytes(length)?);
        let said = self.bytes(CHECK)?;
        if said != check(&frame) {
            return Err(malformed(start, "damaged: its check is another"));
        }
        let before = self.place.after;
        let after = keccak256([&before[..], &said].concat());
        self.place = Place { before, after };
        let payload = frame.split_off(FRAME);
        Ok(Frame {
            kind,
            count,
            payload,
        })
    }

    /// The accounts of a frame, with no more slots than a chunk has.
    fn accounts(&self, frame: &Frame) -> Result<Vec<AccountEntry>, Cow<'static, str>> {
        let most = self.head.together.get();
        let found = entries(frame, AccountEntry::decode)?;
        let weight: usize = found.iter().map(AccountEntry::weight).sum();
        match weight > most {
            true => Err(format!("a frame of {weight} slots, where {most} are the most").into()),
            false => Ok(found),
        }
    }

    /// Whether anything follows.
    fn behind(&mut self, offset: u64) -> Result<bool, RecoveryError> {
        let mut byte = [0];
        match self.input.read_exact(&mut byte) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(RecoveryError::File { offset, error }),
        }
    }

    /// So many bytes, which grow as they come.
    fn bytes(&mut self, length: usize) -> Result<Vec<u8>, RecoveryError> {
        let offset = self.offset;
        let mut bytes = Vec::new();
        let mut input = (&mut self.input).take(length as u64);
        match input.read_to_end(&mut bytes) {
            Ok(found) if found == length => {
                self.offset += length as u64;
                Ok(bytes)
            }
            Ok(_) => {
                let error = std::io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "it ends here, and is cut short: write or copy it again",
                );
                Err(RecoveryError::File { offset, error })
            }
            Err(error) => Err(RecoveryError::File { offset, error }),
        }
    }
}

impl EntriesHead {
    /// What a reader has before it has read anything.
    fn nothing() -> Self {
        Self {
            tree: String::new(),
            revision: String::new(),
            hash: String::new(),
            chain_id: 0,
            genesis: B256::ZERO,
            rules: None,
            genesis_json: None,
            order: Order::default(),
            together: NonZeroUsize::MIN,
            blocks: Vec::new(),
        }
    }
}

fn malformed(offset: u64, why: impl Into<String>) -> RecoveryError {
    let why = why.into();
    RecoveryError::Malformed { offset, why }
}

/// All entries of a frame, of which there must be as many as it says.
fn entries<T>(
    frame: &Frame,
    mut one: impl FnMut(&mut &[u8]) -> Result<T, Cow<'static, str>>,
) -> Result<Vec<T>, Cow<'static, str>> {
    let (mut rest, mut found) = (&frame.payload[..], Vec::new());
    while !rest.is_empty() && found.len() < frame.count as usize {
        found.push(one(&mut rest)?);
    }
    match rest.is_empty() && found.len() == frame.count as usize {
        true => Ok(found),
        false => Err("another number of entries than it says".into()),
    }
}

fn leaf(rest: &mut &[u8]) -> Result<LeafWrite, Cow<'static, str>> {
    let key = <[u8; 32]>::try_from(take(rest, 32)?);
    let key = key.map_err(|_| "a key of other than 32 bytes")?;
    let length = usize::from(take(rest, 1)?[0]);
    // The error names the key, and what is wrong.
    let why = |why| Cow::from(corrupt("leaves", &key, why).to_string());
    let entry = read_leaf(take(rest, length)?).map_err(why)?;
    Ok(LeafWrite {
        key,
        index: entry.index,
        value: entry.value,
    })
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::{Address, U256, hex};

    use super::*;
    use crate::Account;

    fn sample() -> Vec<u8> {
        let head = EntriesHead {
            tree: "t".into(),
            chain_id: 7,
            together: NonZeroUsize::new(2).unwrap(),
            ..EntriesHead::nothing()
        };
        let mut writer = EntriesWriter::new(Vec::new(), &head).unwrap();
        for chunk in chunks() {
            writer.chunk(&chunk).unwrap();
        }
        writer.finish().unwrap().0
    }

    fn chunks() -> Vec<Chunk> {
        let mut value = [0; 32];
        value[31] = 5;
        let leaf = |byte, index| LeafWrite {
            key: [byte; 32],
            index,
            value,
        };
        vec![
            Chunk::Names(vec![vec![1; 20], vec![2; 52]]),
            Chunk::Leaves(vec![leaf(9, 1), leaf(3, 2)]),
            Chunk::Codes(vec![Bytes::from_static(&[1, 2, 3])]),
            Chunk::Leaves(vec![leaf(4, 3)]),
            Chunk::Past(vec![entry(7, true)]),
            Chunk::Accounts(vec![entry(7, false), entry(8, true)]),
        ]
    }

    /// An account without slots that is gone, or one with a slot.
    fn entry(byte: u8, is_there: bool) -> AccountEntry {
        let account = Account {
            nonce: 258,
            balance: U256::from(9),
            code_hash: B256::repeat_byte(byte),
        };
        AccountEntry {
            address: Address::repeat_byte(byte),
            account: is_there.then_some(account),
            slots: match is_there {
                true => vec![(U256::from(1), U256::from(256))],
                false => Vec::new(),
            },
        }
    }

    fn read(bytes: &[u8]) -> Result<Vec<Chunk>, RecoveryError> {
        let mut reader = EntriesReader::new(bytes, bytes.len() as u64)?;
        let mut chunks = Vec::new();
        while let Some(chunk) = reader.next_chunk()? {
            chunks.push(chunk);
        }
        assert!(reader.next_chunk()?.is_none());
        Ok(chunks)
    }

    #[test]
    fn bytes_are_fixed_and_come_back() {
        let bytes = sample();
        assert_eq!(read(&bytes).unwrap(), chunks());
        assert_eq!(bytes[..9], *b"ARBORENT\x01");
        let second = [
            "03000000020000004a",
            "14",
            &"01".repeat(20),
            "34",
            &"02".repeat(52),
        ];
        let second = hex::decode(second.concat()).unwrap();
        let at = bytes.windows(second.len()).position(|part| part == second);
        let at = at.expect("the frame of names");
        let third = [
            "02000000020000",
            "0048",
            &"09".repeat(32),
            "03010105",
            &"03".repeat(32),
            "03010205",
        ];
        let third = hex::decode(third.concat()).unwrap();
        let behind = at + second.len() + CHECK;
        assert_eq!(bytes[behind..][..third.len()], third);
        let accounts = [
            "0500000002",
            "0000005c",
            &"07".repeat(20),
            "0000000000",
            &"08".repeat(20),
            "02",
            "020102",
            "0109",
            &"08".repeat(32),
            "00000001",
            "0101",
            "020100",
        ];
        let accounts = hex::decode(accounts.concat()).unwrap();
        let at = bytes
            .windows(accounts.len())
            .position(|part| part == accounts);
        assert!(at.is_some(), "the frame of accounts");
    }

    #[test]
    fn a_file_that_is_cut_short_or_changed_is_an_error() {
        let bytes = sample();
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{cut}");
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 4;
            assert!(read(&changed).is_err(), "{place}");
        }
        let longer = [&bytes[..], &[0]].concat();
        let error = read(&longer).unwrap_err().to_string();
        assert!(error.contains("behind its end"), "{error}");
    }

    #[test]
    fn frames_with_a_right_check_may_still_be_wrong() {
        let frame = |kind: u8, count: u32, payload: &[u8]| {
            let length = payload.len() as u32;
            let head = [&[kind][..], &count.to_be_bytes(), &length.to_be_bytes()].concat();
            let frame = [&head[..], payload].concat();
            [&frame[..], &check(&frame)].concat()
        };
        let start = EntriesWriter::new(Vec::new(), &EntriesHead::nothing()).unwrap();
        let start = start.out;
        let end = frame(END, 3, &[0; 24]);
        read(&[&start[..], &end].concat()).unwrap();
        let leaf = [&[7; 32][..], &[3, 1, 1, 5]].concat();
        for (why, wrong) in [
            ("number", frame(LEAVES, 2, &leaf)),
            (
                "index 0",
                frame(LEAVES, 1, &[&[7; 32][..], &[1, 0]].concat()),
            ),
            ("cut short", frame(LEAVES, 1, &leaf[..35])),
            ("name", frame(NAMES, 1, &[2, 1, 1])),
            ("code", frame(CODES, 1, &[0, 0, 0, 9, 1])),
            (
                "kind of account",
                frame(ACCOUNTS, 1, &[&[7; 20][..], &[3]].concat()),
            ),
            (
                "leading zero",
                frame(
                    ACCOUNTS,
                    1,
                    &[&[7; 20][..], &[1, 1, 0, 0, 0, 0, 0, 0]].concat(),
                ),
            ),
            (
                "slots of nobody",
                frame(PAST, 1, &[&[7; 20][..], &[0, 0, 0, 0, 1, 0, 0]].concat()),
            ),
            (
                "two slots",
                frame(
                    ACCOUNTS,
                    1,
                    &[&[7; 20][..], &[1, 0, 0, 0, 0, 0, 2, 0, 0, 1, 1, 0]].concat(),
                ),
            ),
            ("kind", frame(9, 1, &[1])),
            ("head again", frame(HEAD, 1, &[1])),
            ("totals", frame(LEAVES, 1, &leaf)),
        ] {
            assert!(read(&[&start[..], &wrong, &end].concat()).is_err(), "{why}");
        }
        // Which leaf, and what is wrong with it.
        let zero = frame(LEAVES, 1, &[&[7; 32][..], &[1, 0]].concat());
        let error = read(&[&start[..], &zero].concat()).unwrap_err().to_string();
        let leaf = format!("0x{}: index 0", "07".repeat(32));
        assert!(error.contains(&leaf), "{error}");
        let longest = [&start[..], &[2, 0, 0, 0, 1, 255, 255, 255, 255]].concat();
        let error = read(&longest).unwrap_err();
        assert!(error.to_string().contains("4294967295"), "{error}");
    }
}
