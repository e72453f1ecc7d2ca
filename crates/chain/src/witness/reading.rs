//! Reading a witness file piece by piece: what is held are the decoded parts of one witness, not the text, and as little as possible of a file that is none.
//!
//! A gzip may have a thousandth of what it unpacks to. So the text streams through; no string of it may be longer than a block's; nodes and codes
//! that are there again are not kept again; leaves of a Verkle tree are decoded stem by stem; and all of it has its [`ValueRoom`]. A file of many pairs of blocks may be of
//! any length: each is handed on before the next is read, and has text and room for itself.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::de::Error as _;
use serde_json::Value;

use super::parts::Parts;
use super::{FoundWitness, TakeWitness, WitnessProblem};
use crate::bounded_input::{Bound, BoundedInput, InputFault};
use crate::json::{self, JsonError, ValueRoom};
use crate::witness::verkle::{StateDiffs, VerkleWitness};

/// What a witness may take.
#[derive(Clone, Copy)]
struct Most {
    /// Bytes of JSON in it.
    text: u64,
    /// Bytes in memory, and for names of others in its file.
    held: u64,
}

/// The text: a block of 60 million gas that does nothing but load the largest codes has some 560 MB of them, twice that in hex.
/// Memory: those codes and some 200 MB. Of a Verkle tree it is room to read ten million leaves, of which a million may be [checked](VerkleWitness::verdict).
const MOST: Most = Most {
    text: 5 << 28,
    held: 3 << 28,
};
/// Bytes of a string. The longest is a block: at 4 gas a byte, one of 60 million gas has 15 MB, twice that in hex.
const LONGEST_STRING: u64 = 1 << 26;

/// Bytes of a field's name, of which several copies are made. The longest is that of another's witness, as long as a file's name.
const LONGEST_NAME: u64 = 1 << 12;

/// Reads a file, or standard input for `-`, gzipped or not.
pub(super) fn read(file: &Path, take: TakeWitness<'_>) -> Result<(), WitnessProblem> {
    if file.as_os_str() == "-" {
        return unpack(BufReader::new(io::stdin()), take);
    }
    unpack(BufReader::new(File::open(file)?), take)
}

/// What comes through a pipe may come byte by byte.
fn unpack(mut from: impl BufRead + Send, take: TakeWitness<'_>) -> Result<(), WitnessProblem> {
    let begin = peeked(&mut from, 2)?;
    let gzipped = begin == [0x1f, 0x8b];
    let whole = Cursor::new(begin).chain(from);
    if !gzipped {
        return parse(whole, take);
    }
    let unpacked = BufReader::new(MultiGzDecoder::new(whole));
    parse(unpacked, take).map_err(|problem| match problem {
        WitnessProblem::Io(error) => WitnessProblem::Gzip(error),
        problem => problem,
    })
}

/// The next bytes, up to so many.
fn peeked(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Tells the form by how it begins.
pub(super) fn parse(
    mut from: impl BufRead + Send,
    take: TakeWitness<'_>,
) -> Result<(), WitnessProblem> {
    /// Bytes of JSON that is no object, to be named.
    const NAMED: u64 = 100;
    /// The offset of its first part, behind that of the second (SSZ).
    const BINARY: [u8; 4] = 8u32.to_le_bytes();
    let begin = peeked(&mut from, BINARY.len() as u64)?;
    let whole = Cursor::new(begin.clone()).chain(from);
    if begin == BINARY {
        let input = BoundedInput::new("the witness", whole, Bound::BINARY_WITNESS);
        let bytes = input.bytes().map_err(|error| match error.fault {
            InputFault::Io(error) => WitnessProblem::Io(error),
            fault => WitnessProblem::Input(fault),
        })?;
        let witness = VerkleWitness::from_bytes(&bytes)?;
        let _no_more = take(FoundWitness::alone(witness));
        return Ok(());
    }
    match begin.trim_ascii_start().first() {
        Some(b'[') => Err(WitnessProblem::NoObject("list")),
        Some(b'"') => Err(WitnessProblem::NoObject("string")),
        Some(b'{') => parse_object(whole, MOST, take),
        // Only spaces so far.
        None if !begin.is_empty() => parse_object(whole, MOST, take),
        None => Err(WitnessProblem::NoForm("it is empty")),
        Some(_) if begin.starts_with(&[0xef, 0xbb, 0xbf]) => {
            Err(WitnessProblem::NoForm("it begins with a byte order mark"))
        }
        Some(_) if begin.starts_with(&[0x1f, 0x8b]) => {
            Err(WitnessProblem::NoForm("it is a gzip within a gzip"))
        }
        Some(_) => {
            let begin = peeked(whole, NAMED)?;
            Err(match serde_json::from_slice::<Value>(&begin) {
                Ok(Value::Null) => WitnessProblem::NoObject("null"),
                Ok(Value::Bool(_)) => WitnessProblem::NoObject("truth value"),
                Ok(Value::Number(_)) => WitnessProblem::NoObject("number"),
                _ => WitnessProblem::NoForm("it begins as neither JSON nor the binary form does"),
            })
        }
    }
}

fn parse_object(text: impl Read, most: Most, take: TakeWitness<'_>) -> Result<(), WitnessProblem> {
    let (room, length, done) = (ValueRoom::new(most.held), Cell::new(0), Cell::new(false));
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

/// A text whose strings and names, and of which what is read for one witness, are no longer than they may be.
struct Bounded<'a, R> {
    text: R,
    most: u64,
    /// Bytes of it so far; whoever reads begins to count anew.
    length: &'a Cell<u64>,
    /// Bytes of the string under way.
    string: Option<u64>,
    escaped: bool,
    /// Whether that string is a field's name, or the next one is.
    is_name: bool,
    /// Of what is open around it, the innermost last: whether it is an object.
    objects: Vec<bool>,
    /// Why it is read no further.
    refused: Option<String>,
}

impl<'a, R> Bounded<'a, R> {
    const fn new(text: R, most: u64, length: &'a Cell<u64>) -> Self {
        Self {
            text,
            most,
            length,
            string: None,
            escaped: false,
            is_name: false,
            objects: Vec::new(),
            refused: None,
        }
    }

    /// What is wrong with the text, whatever its reader makes of it.
    fn problem(self, error: JsonError) -> WitnessProblem {
        match self.refused {
            Some(refused) => JsonError::of(&error.field, serde_json::Error::custom(refused)).into(),
            None if error.error.is_io() => WitnessProblem::Io(error.error.into()),
            None => error.into(),
        }
    }

    fn look_at(&mut self, byte: u8) {
        self.length.set(self.length.get() + 1);
        if self.length.get() > self.most {
            self.refused = Some(WitnessProblem::TooLong(self.most).to_string());
        }
        if self.string.is_none() {
            self.look_between(byte);
        }
        self.string = match (self.string, byte) {
            (None, b'"') => Some(0),
            (Some(_), b'"') if !self.escaped => None,
            (string, _) => string.map(|length| length + 1),
        };
        self.escaped = self.string.is_some() && byte == b'\\' && !self.escaped;
        if self.is_name && self.string.is_some_and(|length| length > LONGEST_NAME) {
            self.refused = Some(format!(
                "a name of more than {LONGEST_NAME} bytes, which nothing in a witness has"
            ));
        }
        if self.string.is_some_and(|length| length > LONGEST_STRING) {
            self.refused = Some(format!(
                "a string of more than {LONGEST_STRING} bytes, which no block's witness has"
            ));
        }
    }
}

impl<R> Bounded<'_, R> {
    /// Tells names from other strings.
    fn look_between(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => {
                self.is_name = byte == b'{';
                self.objects.push(self.is_name);
            }
            b'}' | b']' => drop(self.objects.pop()),
            b',' => self.is_name = self.objects.last() == Some(&true),
            b':' => self.is_name = false,
            _ => {}
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
    use std::ops::ControlFlow;

    use alloy_primitives::Bytes;
    use flate2::Compression;
    use flate2::read::GzEncoder;

    use super::*;
    use crate::witness::{BlockWitness, MptWitness};

    fn problem(text: impl Read + Send) -> String {
        let read = unpack(BufReader::new(text), &mut |_| ControlFlow::Continue(()));
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
        let binary = after("\u{8}\0\0\0", 0);
        assert!(problem(binary).contains("more than 134217728 bytes"));
        let string = "a string of more than 67108864 bytes";
        let name = "a name of more than 4096 bytes";
        for (begin, place, what) in [
            // One of 60 MB took 500.
            ("{\"", "", name),
            ("{\"a\": {}, \"", "", name),
            ("{\"a\": [{\"b\": {\"c\": [[], 1], \"", "a[0].b", name),
            ("{\"a\": [{\"b\": [1, \"\\\"", "a[0].b[1]: ", string),
            ("{\"a\": [{\"b\": [{}, \"", "a[0].b[1]: ", string),
            ("{\"a\": {\"b\": \"", "a.b: ", string),
        ] {
            let problem = problem(after(begin, b'0'));
            let wanted = format!("not a witness: {place}");
            let fits = problem.starts_with(&wanted) && problem.contains(what);
            assert!(fits, "{problem}");
        }
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

    /// All that was said of them is that they are "neither JSON nor" the binary form, of which there were too few bytes.
    #[test]
    fn what_is_no_witness_is_called_what_it_is() {
        let gzip = |bytes: &[u8]| {
            let mut packed = Vec::new();
            let mut from = GzEncoder::new(bytes, Compression::fast());
            from.read_to_end(&mut packed).expect("packed");
            packed
        };
        let (empty, object) = (gzip(b""), gzip(b"{}"));
        let twice = gzip(&object);
        let followed = [&object[..], b"x"].concat();
        for (file, wanted) in [
            (&b""[..], "not a witness: it is empty"),
            (&empty, "not a witness: it is empty"),
            (&twice, "a gzip within a gzip"),
            (&followed, "its gzip, or what is behind its end: "),
            (
                &object[..object.len() - 1],
                "its gzip, or what is behind its end: ",
            ),
            (b"\xef\xbb\xbf{}", "it begins with a byte order mark"),
            (b"null", "a JSON null, where one object"),
            (b" 7\n", "a JSON number, where one object"),
            (b"true", "a JSON truth value, where one object"),
            (b"nothing", "neither JSON nor the binary form"),
            (b"\x08\0\0", "neither JSON nor the binary form"),
            (
                b"\x08\0\0\0",
                "neither JSON nor a witness in the binary form",
            ),
        ] {
            let problem = problem(file);
            assert!(problem.contains(wanted), "{problem}");
        }
    }

    /// Reads a byte at a time, as a pipe may.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = into.len().min(1);
            self.0.read(&mut into[..count])
        }
    }

    #[test]
    fn what_comes_byte_by_byte_is_the_same() {
        let text = format!("\n {}", pair(&leaves(2)));
        let mut packed = Vec::new();
        let mut from = GzEncoder::new(text.as_bytes(), Compression::fast());
        from.read_to_end(&mut packed).expect("packed");
        for bytes in [text.as_bytes(), &packed] {
            let mut keys = None;
            let read = unpack(BufReader::new(Slow(bytes)), &mut |found| {
                keys = Some(keys_of(found.witness));
                assert_eq!(found.name, None);
                ControlFlow::Continue(())
            });
            assert!(read.is_ok());
            assert_eq!(keys, Some(2));
        }
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
        let found = one(text).expect("JSON");
        assert_eq!(found.name, None);
        match found.witness {
            Ok(witness) => {
                assert!(witness.into::<VerkleWitness>().is_some());
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// How many keys a well formed witness of a Verkle tree has.
    fn keys_of(witness: Result<Box<dyn BlockWitness>, WitnessProblem>) -> usize {
        let witness = witness.expect("well formed").into::<VerkleWitness>();
        witness.expect("of leaves").witness.keys().count()
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
            "stateDiff",
        ] {
            for next in [
                "executionWitness",
                "ancestorHeadersRlp",
                "state_Diff",
                "block_Rlp",
                "execute",
            ] {
                let text = format!("{{\"{name}\":{pair},\"{next}\":{pair}}}");
                let (all, problem) = found(&text, MOST);
                assert_eq!((all.len(), problem), (2, None), "{name}, {next}");
                for witness in all {
                    assert!(witness.name.is_some());
                    assert_eq!(keys_of(witness.witness), 1);
                }
            }
        }
    }

    /// With something else before them none was looked at; and two names that are one field's were taken for one.
    #[test]
    fn pairs_may_come_behind_something_else() {
        let pair = pair(&leaves(1));
        for before in [
            "\"a\":1",
            "\"stateDiff\":[1]",
            "\"codes\":[\"0x01\"]",
            "\"_info\":{\"b\":[{}]}",
        ] {
            let text = format!("{{{before},\"t_1_2\":{pair},\"t_12\":{pair}}}");
            let (all, problem) = found(&text, MOST);
            assert_eq!(problem, None);
            let named: Vec<_> = all
                .iter()
                .map(|found| {
                    let name = found.name.as_deref().expect("a name");
                    (name, found.witness.is_ok())
                })
                .collect();
            let first = before.split('"').nth(1).expect("a name");
            assert_eq!(named, [(first, false), ("t_1_2", true), ("t_12", true)]);
            let again = text.replacen("t_12", "t_1_2", 1);
            let problem = found(&again, MOST).1.expect("twice");
            assert!(
                problem.contains("field `t_1_2` is there twice"),
                "{problem}"
            );
            let again = text.replacen("t_12", first, 1);
            assert!(
                found(&again, MOST)
                    .1
                    .expect("twice")
                    .contains("there twice")
            );
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
            assert_eq!(witness.name, Some(number.to_string()));
            assert_eq!(keys_of(witness.witness), 256);
        }
        // One of them alone is within them, or is not.
        let refused = |wide: &str, most| {
            let (all, problem) = found(&format!("{{{},\"w\":{wide}}}", named[0]), most);
            assert_eq!(all.len(), 1, "what is before it was handed on");
            problem.expect("refused")
        };
        let spaces = pair.replacen(':', &format!(":{}", " ".repeat(1 << 15)), 1);
        let problem = refused(&spaces, most);
        assert!(
            problem.starts_with("not a witness: w.") && problem.contains("it has more than"),
            "{problem}"
        );
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
            let name = |found: &FoundWitness| {
                let name = found.name.clone().expect("a name");
                (name, found.witness.is_ok())
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
            let found = one(&nodes(&lists.join(","))).expect("well formed");
            let witness = found.witness.expect("well formed");
            let witness = witness.into::<MptWitness>().expect("of nodes");
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
