//! Reading a witness file piece by piece: what is held are the decoded parts, not the text, and as little as possible of a file that is none.
//!
//! A gzip may have a thousandth of what it unpacks to. So the text streams through; no string of it may be longer than a block's; nodes and codes
//! that are there again are not kept again; and both they and everything else have their [`Room`].

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use alloy_primitives::Bytes;
use flate2::bufread::MultiGzDecoder;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{BlockWitness, WitnessFile, WitnessProblem};
use crate::execution_witness::ExecutionWitness;
use crate::json::{self, JsonError, Names, Room, UniqueWithin};

/// Bytes of JSON in a witness. A block of 60 million gas that does nothing but load the largest codes has some 560 MB of them, twice that in hex.
const MOST_BYTES: u64 = 5 << 28;
/// Bytes of a witness in the binary form, which has one where JSON has two.
const MOST_BINARY: u64 = MOST_BYTES / 2;
/// Bytes of a string. The longest is a block: at 4 gas a byte, one of 60 million gas has 15 MB, twice that in hex.
const LONGEST_STRING: u64 = 1 << 26;
/// Bytes that nodes, codes and headers take in memory: half of the text, and what each takes beside its own bytes.
const MOST_HELD: u64 = 1 << 30;
/// Bytes that everything else takes: leaves of a Verkle tree above all, some 1,200 each. Under EIP-4762 60 million gas bring at most 300,000.
const MOST_OTHER: u64 = 1 << 30;
/// Bytes that a node, code or header takes beside its own. One that was there before counts as well, so that no file is nothing but that.
const ITEM: usize = 150;

/// Reads a file, gzipped or not.
pub(super) fn read(file: &Path) -> Result<WitnessFile, WitnessProblem> {
    let mut file = BufReader::new(File::open(file)?);
    match file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        true => parse(BufReader::new(MultiGzDecoder::new(file))),
        false => parse(file),
    }
}

/// Tells the form by the first byte, of which no two have the same.
fn parse(mut text: impl BufRead) -> Result<WitnessFile, WitnessProblem> {
    let begin = text.fill_buf()?;
    match begin.trim_ascii_start().first() {
        Some(b'[') => Err(WitnessProblem::NoObject("list")),
        Some(b'"') => Err(WitnessProblem::NoObject("string")),
        Some(b'{') => parse_object(text),
        None if !begin.is_empty() => parse_object(text),
        _ => {
            let witness = ExecutionWitness::from_bytes(&binary(text)?)?;
            Ok(WitnessFile::Verkle(vec![(None, Ok(witness))]))
        }
    }
}

/// The bytes of the binary form; of something else no more than tells it apart.
fn binary(mut from: impl BufRead) -> Result<Vec<u8>, WitnessProblem> {
    /// It begins with the offset of its first part, behind that of the second (SSZ).
    const BEGIN: [u8; 4] = 8u32.to_le_bytes();
    let mut bytes = Vec::new();
    from.by_ref()
        .take(BEGIN.len() as u64)
        .read_to_end(&mut bytes)?;
    if bytes == BEGIN {
        from.take(MOST_BINARY + 1 - BEGIN.len() as u64)
            .read_to_end(&mut bytes)?;
    }
    match bytes.len() as u64 > MOST_BINARY {
        true => Err(WitnessProblem::TooLong(MOST_BINARY)),
        false => Ok(bytes),
    }
}

fn parse_object(text: impl Read) -> Result<WitnessFile, WitnessProblem> {
    let mut text = Bounded::new(text);
    let parts = Parts {
        held: &Room::new(MOST_HELD),
        other: &Room::new(MOST_OTHER),
    };
    let read = json::from_reader(BufReader::new(&mut text), parts);
    let (mut lists, mut other) = read.map_err(|error| text.problem(error))?;
    let is_of_mpt = lists.nodes.is_some() || other.contains_key("blockRlp");
    if !is_of_mpt {
        let witnesses = ExecutionWitness::all_of(Value::Object(other));
        return Ok(WitnessFile::Verkle(witnesses));
    }
    // Those that are missing are told of with the other fields.
    for (name, list) in lists.by_name() {
        if list.is_some() {
            other.insert(name.to_owned(), Value::Array(Vec::new()));
        }
    }
    let mut witness: BlockWitness = json::from_value(Value::Object(other))?;
    witness.state_nodes = lists.nodes.unwrap_or_default();
    witness.codes = lists.codes.unwrap_or_default();
    witness.ancestor_headers_rlp = lists.headers.unwrap_or_default();
    Ok(WitnessFile::MerklePatricia(Box::new(witness)))
}

/// A text whose strings, and which itself, are no longer than they may be.
struct Bounded<R> {
    text: R,
    length: u64,
    /// Bytes of the string under way.
    string: Option<u64>,
    escaped: bool,
    refused: Option<WitnessProblem>,
}

impl<R> Bounded<R> {
    const fn new(text: R) -> Self {
        Self {
            text,
            length: 0,
            string: None,
            escaped: false,
            refused: None,
        }
    }

    /// What is wrong with the text, whatever its reader makes of it.
    fn problem(self, error: JsonError) -> WitnessProblem {
        match self.refused {
            Some(refused) => refused,
            None if error.error.is_io() => WitnessProblem::Io(error.error.into()),
            None => error.into(),
        }
    }

    fn look_at(&mut self, byte: u8) {
        self.length += 1;
        if self.length > MOST_BYTES {
            self.refused = Some(WitnessProblem::TooLong(MOST_BYTES));
        }
        self.string = match (self.string, byte) {
            (None, b'"') => Some(0),
            (Some(_), b'"') if !self.escaped => None,
            (string, _) => string.map(|length| length + 1),
        };
        self.escaped = self.string.is_some() && byte == b'\\' && !self.escaped;
        if self.string.is_some_and(|length| length > LONGEST_STRING) {
            self.refused = Some(WitnessProblem::LongString(LONGEST_STRING));
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.text.read(into)?;
        into[..length].iter().for_each(|byte| self.look_at(*byte));
        match self.refused {
            Some(_) => Err(io::Error::other("it is too long")),
            None => Ok(length),
        }
    }
}

/// The long lists of a witness with nodes.
#[derive(Default)]
struct Lists {
    nodes: Option<Vec<Bytes>>,
    codes: Option<Vec<Bytes>>,
    headers: Option<Vec<Bytes>>,
}

impl Lists {
    fn by_name(&mut self) -> [(&'static str, &mut Option<Vec<Bytes>>); 3] {
        [
            ("stateNodes", &mut self.nodes),
            ("codes", &mut self.codes),
            ("ancestorHeadersRlp", &mut self.headers),
        ]
    }
}

/// Takes an object apart into those lists and all else.
struct Parts<'a> {
    held: &'a Room,
    other: &'a Room,
}

impl<'de> DeserializeSeed<'de> for Parts<'_> {
    type Value = (Lists, Map<String, Value>);

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Parts<'_> {
    type Value = (Lists, Map<String, Value>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut lists, mut other) = (Lists::default(), Map::new());
        let mut names = Names::default();
        while let Some(name) = fields.next_key::<String>()? {
            self.other.take(UniqueWithin::FIELD + 3 * name.len())?;
            names.add(&name)?;
            match lists.by_name().into_iter().find(|(list, _)| *list == name) {
                Some((_, list)) => *list = Some(fields.next_value_seed(Items(self.held))?),
                None => {
                    let value = fields.next_value_seed(UniqueWithin(self.other))?;
                    other.insert(name, value);
                }
            }
        }
        Ok((lists, other))
    }
}

/// Byte strings, each once, as far as there is room for them.
struct Items<'a>(&'a Room);

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = Vec<Bytes>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Vec<Bytes>, D::Error> {
        source.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = Vec<Bytes>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of byte strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Bytes>, A::Error> {
        let (mut items, mut known) = (Vec::new(), HashSet::new());
        while let Some(item) = list.next_element::<Bytes>()? {
            self.0.take(ITEM)?;
            if !known.contains(&item) {
                self.0.take(item.len())?;
                known.insert(item.clone());
                items.push(item);
            }
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn problem(text: impl Read) -> String {
        let read = parse(BufReader::new(text));
        read.expect_err("no witness").to_string()
    }

    /// All this, which has a thousandth in a gzip, was unpacked into memory before anything was said about it.
    #[test]
    fn what_is_no_witness_is_refused_before_it_takes_memory() {
        let endless = |byte: u8| io::repeat(byte).take(MOST_BYTES + 10);
        let after = |text: &'static str, byte: u8| Cursor::new(text).chain(endless(byte));
        assert!(problem(after("[", b'[')).contains("a JSON list"));
        assert!(problem(after("\"", b'a')).contains("a JSON string"));
        assert!(problem(endless(0)).contains("binary form"));
        let string = "it has a string of more than 67108864 bytes";
        assert!(problem(after("{\"", b'a')).starts_with(string));
        assert!(problem(after("{\"blockRlp\": \"\\\"", b'0')).starts_with(string));
        assert!(problem(after("{\"a\":", b'[')).contains("recursion limit"));
    }

    /// Text without end of which nothing is kept: it is as long as the longest witness, and ends there.
    #[test]
    fn a_text_may_be_as_long_as_a_witness_and_no_longer() {
        let mut text = Bounded::new(io::empty());
        text.length = MOST_BYTES - 1;
        text.look_at(b' ');
        assert!(text.refused.is_none());
        text.look_at(b' ');
        let refused = text.refused.expect("too long").to_string();
        assert!(
            refused.starts_with("it has more than 1342177280 bytes"),
            "{refused}"
        );
        let mut text = Bounded::new(io::empty());
        for byte in *br#"{"a\"": "\\", "b" "# {
            text.look_at(byte);
        }
        assert_eq!((text.string, text.escaped), (None, false));
    }

    #[test]
    fn items_are_kept_once_and_only_as_long_as_there_is_room() {
        let read = |text: &str, room| json::from_reader(text.as_bytes(), Items(&Room::new(room)));
        let again = format!("[{}\"0x0203\"]", "\"0x01\",".repeat(9));
        let items = read(&again, 10 * 150 + 3).expect("two items");
        assert_eq!(
            items,
            [Bytes::from_static(&[1]), Bytes::from_static(&[2, 3])]
        );
        let many: Vec<String> = (0..10).map(|i| format!("\"0x0{i}\"")).collect();
        let many = format!("[{}]", many.join(","));
        assert_eq!(read(&many, 10 * 151).expect("fits").len(), 10);
        let error = read(&many, 10 * 151 - 1).expect_err("no room").to_string();
        assert!(
            error.contains("takes more than 1509 bytes of memory"),
            "{error}"
        );
    }
}
