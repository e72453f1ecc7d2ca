//! Reading a witness file piece by piece: what is held are the decoded parts of one witness, not the text, and as little as possible of a file that is none.
//!
//! A gzip may have a thousandth of what it unpacks to. So the text streams through; no string of it may be longer than a block's; nodes and codes
//! that are there again are not kept again; leaves of a Verkle tree are decoded stem by stem; and all of it has its [`Room`]. A file of many pairs of blocks may be of
//! any length: each is handed on before the next is read, and has text and room for itself.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::ControlFlow;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::parts::Parts;
use super::{FoundWitness, WitnessProblem};
use crate::execution_witness::{ExecutionWitness, StateDiffs};
use crate::json::{self, JsonError, Room};

/// What a witness may take.
#[derive(Clone, Copy)]
struct Most {
    /// Bytes of JSON in it.
    text: u64,
    /// Bytes in memory, and for names of others in its file.
    held: u64,
}

/// The text: a block of 60 million gas that does nothing but load the largest codes has some 560 MB of them, twice that in hex.
/// Memory: those codes and some 200 MB. Of a Verkle tree it is room for some 7 million leaves.
const MOST: Most = Most {
    text: 5 << 28,
    held: 3 << 28,
};
/// Bytes of a witness in the binary form. One has 70 for each leaf; under EIP-4762 60 million gas bring at most 300,000.
const MOST_BINARY: u64 = 1 << 28;
/// Bytes of a string. The longest is a block: at 4 gas a byte, one of 60 million gas has 15 MB, twice that in hex.
const LONGEST_STRING: u64 = 1 << 26;
/// Who is told of a witness; breaks off when no more is wanted.
pub(super) type Take<'a> = &'a mut dyn FnMut(FoundWitness) -> ControlFlow<()>;

/// Reads a file, gzipped or not.
pub(super) fn read(file: &Path, take: Take<'_>) -> Result<(), WitnessProblem> {
    let mut file = BufReader::new(File::open(file)?);
    match file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        true => parse(BufReader::new(MultiGzDecoder::new(file)), take),
        false => parse(file, take),
    }
}

/// Tells the form by the first byte, of which no two have the same.
fn parse(mut text: impl BufRead, take: Take<'_>) -> Result<(), WitnessProblem> {
    let begin = text.fill_buf()?;
    match begin.trim_ascii_start().first() {
        Some(b'[') => Err(WitnessProblem::NoObject("list")),
        Some(b'"') => Err(WitnessProblem::NoObject("string")),
        Some(b'{') => parse_object(text, MOST, take),
        None if !begin.is_empty() => parse_object(text, MOST, take),
        _ => {
            let witness = ExecutionWitness::from_bytes(&binary(text)?)?;
            let _no_more = take(FoundWitness::Verkle((None, Ok(Box::new(witness)))));
            Ok(())
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

fn parse_object(text: impl Read, most: Most, take: Take<'_>) -> Result<(), WitnessProblem> {
    let (room, length, done) = (Room::new(most.held), Cell::new(0), Cell::new(false));
    let diffs = StateDiffs::new(&room);
    let mut text = Bounded::new(text, most.text, &length);
    let parts = Parts {
        room: &room,
        diffs: &diffs,
        length: &length,
        take: &mut *take,
        done: &done,
    };
    let fields = match json::from_reader(BufReader::new(&mut text), parts) {
        Err(_) if done.get() => return Ok(()),
        Err(error) => return Err(text.problem(error)),
        Ok(fields) => fields,
    };
    if let Some(fields) = fields {
        let _no_more = take(fields.witness(&diffs)?);
    }
    Ok(())
}

/// A text whose strings, and of which what is read for one witness, are no longer than they may be.
struct Bounded<'a, R> {
    text: R,
    most: u64,
    /// Bytes of it so far; whoever reads begins to count anew.
    length: &'a Cell<u64>,
    /// Bytes of the string under way.
    string: Option<u64>,
    escaped: bool,
    refused: Option<WitnessProblem>,
}

impl<'a, R> Bounded<'a, R> {
    const fn new(text: R, most: u64, length: &'a Cell<u64>) -> Self {
        Self {
            text,
            most,
            length,
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
        self.length.set(self.length.get() + 1);
        if self.length.get() > self.most {
            self.refused = Some(WitnessProblem::TooLong(self.most));
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

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.text.read(into)?;
        into[..length].iter().for_each(|byte| self.look_at(*byte));
        match self.refused {
            Some(_) => Err(io::Error::other("it is too long")),
            None => Ok(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use alloy_primitives::Bytes;

    use super::*;

    fn problem(text: impl Read) -> String {
        let read = parse(BufReader::new(text), &mut |_| ControlFlow::Continue(()));
        read.expect_err("no witness").to_string()
    }

    /// All this, which has a thousandth in a gzip, was unpacked into memory before anything was said about it.
    #[test]
    fn what_is_no_witness_is_refused_before_it_takes_memory() {
        let endless = |byte: u8| io::repeat(byte).take(MOST.text + 10);
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
        let length = Cell::new(MOST.text - 1);
        let mut text = Bounded::new(io::empty(), MOST.text, &length);
        text.look_at(b' ');
        assert!(text.refused.is_none());
        text.look_at(b' ');
        let refused = text.refused.expect("too long").to_string();
        assert!(
            refused.starts_with("it has more than 1342177280 bytes"),
            "{refused}"
        );
        let mut text = Bounded::new(io::empty(), MOST.text, &length);
        for byte in *br#"{"a\"": "\\", "b" "# {
            text.look_at(byte);
        }
        assert_eq!((text.string, text.escaped), (None, false));
    }

    /// What is found in a text, with these bounds, and what is wrong with the whole.
    fn found(text: &str, most: Most) -> (Vec<FoundWitness>, Option<String>) {
        let mut found = Vec::new();
        let read = parse_object(text.as_bytes(), most, &mut |witness| {
            found.push(witness);
            ControlFlow::Continue(())
        });
        (found, read.err().map(|problem| problem.to_string()))
    }

    /// The only one in a text of one.
    fn one(text: &str) -> Result<FoundWitness, String> {
        let (mut found, problem) = found(text, MOST);
        problem.map_or_else(|| Ok(found.remove(0)), Err)
    }

    /// What is wrong with the only one of a Verkle tree.
    fn verkle(text: &str) -> Option<String> {
        match one(text).expect("JSON") {
            FoundWitness::Verkle((None, witness)) => witness.err().map(|error| error.to_string()),
            other => panic!("{other:?}"),
        }
    }

    /// A witness of a Verkle tree with so many leaves of one stem, as JSON.
    fn leaves(leaves: usize) -> String {
        let hex = |byte: &str, count| format!("\"0x{}\"", byte.repeat(count));
        let suffix = |suffix| {
            let value = hex("11", 32);
            format!("{{\"suffix\":{suffix},\"currentValue\":{value},\"newValue\":null}}")
        };
        let suffixes: Vec<String> = (0..leaves).map(suffix).collect();
        let (stem, point) = (hex("22", 31), hex("33", 32));
        let points = [&point[..]; 8].join(",");
        format!(
            "{{\"stateDiff\":[{{\"stem\":{stem},\"suffixDiffs\":[{}]}}],\"verkleProof\":{{\"otherStems\":[],\"depthExtensionPresent\":\"0x0a\",\
             \"commitmentsByPath\":[{point}],\"d\":{point},\"ipaProof\":{{\"cl\":[{points}],\"cr\":[{points}],\"finalEvaluation\":{point}}}}}}}",
            suffixes.join(",")
        )
    }

    fn pair(witness: &str) -> String {
        format!("{{\"parent\":{{}},\"execute\":{{\"executionWitness\":{witness}}}}}")
    }

    /// A name is no reason to read a pair in another way.
    #[test]
    fn pairs_may_have_any_names() {
        let pair = pair(&leaves(1));
        for name in [
            "config",
            "codes",
            "stateNodes",
            "blockRlp",
            "parent",
            "header",
        ] {
            for next in [
                "executionWitness",
                "ancestorHeadersRlp",
                "stateDiff",
                "execute",
            ] {
                let text = format!("{{\"{name}\":{pair},\"{next}\":{pair}}}");
                let (all, problem) = found(&text, MOST);
                assert_eq!((all.len(), problem), (2, None), "{name}, {next}");
                for witness in all {
                    let FoundWitness::Verkle((Some(_), witness)) = witness else {
                        panic!("{witness:?}");
                    };
                    assert_eq!(witness.expect("well formed").witness.keys().count(), 1);
                }
            }
        }
    }

    /// The bounds were those of a file, so that one of some hundred pairs was refused.
    #[test]
    fn a_file_may_have_any_number_of_pairs() {
        let pair = pair(&leaves(256));
        let most = Most {
            text: pair.len() as u64 + (1 << 14),
            held: 1 << 16,
        };
        let named: Vec<String> = (0..200).map(|name| format!("\"{name}\":{pair}")).collect();
        let text = format!("{{{}}}", named.join(","));
        assert!(text.len() as u64 > 100 * most.text);
        let (all, problem) = found(&text, most);
        assert_eq!(problem, None);
        assert_eq!(all.len(), 200);
        for (number, witness) in all.into_iter().enumerate() {
            let FoundWitness::Verkle((Some(name), Ok(witness))) = witness else {
                panic!("{witness:?}");
            };
            assert_eq!(name, number.to_string());
            assert_eq!(witness.witness.keys().count(), 256);
        }
        // One of them alone is within them, or is not.
        let refused = |wide: &str, most| {
            let (all, problem) = found(&format!("{{{},\"w\":{wide}}}", named[0]), most);
            assert_eq!(all.len(), 1, "what is before it was handed on");
            problem.expect("refused")
        };
        let spaces = pair.replacen(':', &format!(":{}", " ".repeat(1 << 15)), 1);
        let problem = refused(&spaces, most);
        assert!(problem.starts_with("it has more than"), "{problem}");
        let values = pair.replacen("{}", &format!("[{}0]", "0,".repeat(2_000)), 1);
        let problem = refused(&values, most);
        assert!(
            problem.contains("w.parent[") && problem.contains("bytes of memory"),
            "{problem}"
        );
    }

    /// A malformed pair does not keep the others from being read, nor what is none; what is there twice does, and whatever is no JSON.
    #[test]
    fn pairs_are_handed_on_one_after_the_other() {
        let good = pair(&leaves(1));
        let bad = pair("7");
        let text =
            format!("{{\"a\":{good},\"b\":{bad},\"c\":1,\"stateNodes\":{good},\"codes\":{good}");
        let names = |all: &[FoundWitness]| -> Vec<(String, bool)> {
            let name = |witness: &FoundWitness| match witness {
                FoundWitness::Verkle((Some(name), witness)) => (name.clone(), witness.is_ok()),
                other => panic!("{other:?}"),
            };
            all.iter().map(name).collect()
        };
        let wanted = [
            ("a", true),
            ("b", false),
            ("c", false),
            ("stateNodes", true),
            ("codes", true),
        ]
        .map(|(name, good)| (name.to_owned(), good));
        let (all, problem) = found(&format!("{text}}}"), MOST);
        assert_eq!((names(&all), problem), (wanted.to_vec(), None));
        for (end, why) in [
            ("", "EOF while parsing an object"),
            (",\"a\":1}", "field `a` is there twice"),
            ("} 1", "trailing characters"),
        ] {
            let (all, problem) = found(&format!("{text}{end}"), MOST);
            assert_eq!(names(&all), wanted);
            let problem = problem.expect(why);
            assert!(
                problem.contains(why) && problem.contains("at line 1"),
                "{problem}"
            );
        }
        // Nothing is read for somebody who wants no more.
        let mut count = 0;
        let read = parse_object(text.as_bytes(), MOST, &mut |_| {
            count += 1;
            ControlFlow::Break(())
        });
        assert!(read.is_ok());
        assert_eq!(count, 1);
    }

    fn nodes(fields: &str) -> String {
        let hash = format!("\"0x{}\"", "00".repeat(32));
        format!(
            "{{{fields},\"chainId\":1,\"number\":1,\"hash\":{hash},\"preStateRoot\":{hash},\"postStateRoot\":{hash},\"receiptsRoot\":{hash}}}"
        )
    }

    /// Their lists may stand anywhere in it.
    #[test]
    fn the_order_of_fields_says_nothing() {
        let lists = [
            "\"codes\":[\"0x01\",\"0x02\",\"0x01\"]",
            "\"ancestorHeadersRlp\":[\"0x03\"]",
            "\"stateNodes\":[\"0x04\"]",
            "\"blockRlp\":\"0x05\"",
        ];
        for turn in 0..4 {
            let mut lists = lists;
            lists.rotate_left(turn);
            let witness = match one(&nodes(&lists.join(","))) {
                Ok(FoundWitness::MerklePatricia(witness)) => witness,
                other => panic!("{other:?}"),
            };
            assert_eq!(witness.codes, [[1], [2]].map(Bytes::from));
            assert_eq!(witness.ancestor_headers_rlp, [[3]].map(Bytes::from));
            assert_eq!(witness.state_nodes, [[4]].map(Bytes::from));
            for missing in 0..4 {
                let there: Vec<&str> = (0..4)
                    .filter(|list| *list != missing)
                    .map(|list| lists[list])
                    .collect();
                let problem = one(&nodes(&there.join(","))).expect_err("incomplete");
                assert!(problem.contains("missing field `"), "{problem}");
            }
        }
    }

    /// The second of two headers was left aside without a word.
    #[test]
    fn what_is_wrong_with_a_list_is_named() {
        let block = "\"blockRlp\":\"0x05\"";
        let all = "\"codes\":[],\"stateNodes\":[]";
        for (list, why) in [
            (
                "\"ancestorHeadersRlp\":[\"0x01\",\"0x02\",\"0x01\"]",
                "ancestorHeadersRlp: entry 2 is there already, as entry 0",
            ),
            (
                "\"ancestorHeadersRlp\":[\"0x01\",\"0x1\"]",
                "ancestorHeadersRlp[1]: ",
            ),
            (
                "\"ancestorHeadersRlp\":[\"0x01\",7]",
                "ancestorHeadersRlp[1]: ",
            ),
            (
                "\"ancestorHeadersRlp\":7",
                "ancestorHeadersRlp: invalid type",
            ),
            (
                "\"ancestorHeadersRlp\":{\"a\":7}",
                "ancestorHeadersRlp: invalid type",
            ),
        ] {
            for fields in [[list, block, all], [block, list, all]] {
                let problem = one(&nodes(&fields.join(","))).expect_err(list);
                assert!(problem.contains(why), "{problem}");
            }
        }
    }

    /// They were taken from there, too: a list of something else was refused, and one that nobody knows left aside.
    #[test]
    fn other_witnesses_have_no_such_lists() {
        let witness = leaves(1);
        assert_eq!(verkle(&witness), None);
        for list in [
            "[]",
            "[\"0x01\",\"0x01\"]",
            "[1,{\"a\":[]}]",
            "7",
            "{\"stateDiff\":[7]}",
        ] {
            for name in ["codes", "ancestorHeadersRlp"] {
                let field = format!("\"{name}\":{list}");
                let block = format!("\"executionWitness\":{witness}");
                assert_eq!(verkle(&format!("{{{field},{block}}}")), None, "{field}");
                assert_eq!(verkle(&format!("{{{block},{field}}}")), None, "{field}");
                let alone = witness.replacen('{', &format!("{{{field},"), 1);
                let problem = verkle(&alone).expect("it has an unknown field");
                assert!(
                    problem.contains(&format!("unknown field `{name}`")),
                    "{problem}"
                );
            }
        }
    }
}
