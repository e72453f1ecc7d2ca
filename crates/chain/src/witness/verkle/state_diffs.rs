//! State diffs of a JSON text, decoded stem by stem while it is read: a leaf has 67 bytes then, and some 1,200 as a JSON value.

use std::cell::RefCell;

use arbor_verify::verkle::{StemDiff, SuffixDiff};
use serde::de::{MapAccess, SeqAccess};
use serde_json::Value;

use crate::json::{self, JsonError, ListsApart, UniqueWithin, ValueRoom};
use crate::witness::lists::{ListOr, Listed, ReadList};

/// Bytes that a stem takes as a JSON value: 256 suffixes of 1,200 bytes, and a comment.
const MOST_OF_STEM: u64 = 1 << 22;
/// Bytes that a list of stems takes beside them.
const LIST: usize = 300;

/// A list of stems, or what is wrong with the first one that is malformed.
type StateDiff = Result<Vec<StemDiff>, JsonError>;

/// The state diffs of what was read; in the values, their numbers stand in their places.
pub(crate) struct StateDiffs<'a> {
    room: &'a ValueRoom,
    found: RefCell<Vec<Option<StateDiff>>>,
}

impl<'a> StateDiffs<'a> {
    /// None yet; those that come are to have room.
    pub(crate) const fn new(room: &'a ValueRoom) -> Self {
        let found = RefCell::new(Vec::new());
        Self { room, found }
    }

    /// Takes the one of this name in whose place a value is, once.
    pub(super) fn take(&self, name: &str, place: Value) -> StateDiff {
        if place.is_object() {
            return malformed(name, place);
        }
        let number = place
            .as_u64()
            .and_then(|number| usize::try_from(number).ok());
        let mut found = self.found.borrow_mut();
        let found = number.and_then(|number| found.get_mut(number)?.take());
        found.expect("invariant: a state diff that is no object has a number in its place")
    }

    /// Forgets those that nobody took: the values in which they were are gone.
    pub(crate) fn forget(&self) {
        self.found.borrow_mut().clear();
    }
}

impl ListsApart for &StateDiffs<'_> {
    fn read_field<'de, A: MapAccess<'de>>(
        self,
        name: &str,
        fields: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        if !matches!(name, "stateDiff" | "state_diff") {
            return Ok(None);
        }
        self.room.take(LIST)?;
        let stems = Stems {
            name,
            room: self.room,
        };
        let read = fields.next_value_seed(ListOr(stems, UniqueWithin(self.room, self)))?;
        let diff = match read {
            Listed::List(stems) => stems,
            // In a file of many witnesses it may be one, by that name.
            Listed::Other(value @ Value::Object(_)) => return Ok(Some(value)),
            Listed::Other(value) => malformed(name, value),
        };
        let mut found = self.found.borrow_mut();
        found.push(Some(diff));
        Ok(Some((found.len() - 1).into()))
    }
}

/// What is wrong with something else than a list.
fn malformed(name: &str, value: Value) -> StateDiff {
    json::from_value(value).map_err(|error| error.within(name))
}

/// Reads one of them.
struct Stems<'a> {
    name: &'a str,
    room: &'a ValueRoom,
}

impl ReadList for Stems<'_> {
    type List = StateDiff;

    /// Whatever follows a stem that is malformed must still be JSON without fields that are there twice.
    fn read_list<'de, A: SeqAccess<'de>>(self, mut list: A) -> Result<StateDiff, A::Error> {
        let mut read = Ok(Vec::new());
        let mut index = 0;
        while let Some(value) =
            list.next_element_seed(UniqueWithin(&ValueRoom::new(MOST_OF_STEM), ()))?
        {
            let Ok(stems) = &mut read else { continue };
            match json::from_value::<StemDiff>(value) {
                Ok(stem) => {
                    self.room.take(bytes_of(&stem))?;
                    stems.push(stem);
                    index += 1;
                }
                Err(error) => read = Err(error.within(&format!("{}[{index}]", self.name))),
            }
        }
        Ok(read)
    }
}

/// Bytes that a stem takes in a list that grows.
fn bytes_of(stem: &StemDiff) -> usize {
    2 * size_of::<StemDiff>() + stem.suffixes.capacity() * size_of::<SuffixDiff>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stem(number: u8, suffixes: usize) -> String {
        let stem = format!("{number:02x}").repeat(31);
        let value = "11".repeat(32);
        let suffix = |suffix: usize| {
            format!("{{\"suffix\":{suffix},\"currentValue\":\"0x{value}\",\"newValue\":null}}")
        };
        let suffixes: Vec<String> = (0..suffixes).map(suffix).collect();
        let suffixes = suffixes.join(",");
        format!("{{\"stem\":\"0x{stem}\",\"suffixDiffs\":[{suffixes}]}}")
    }

    fn read(text: &str, room: u64) -> Result<(Value, Vec<StateDiff>), JsonError> {
        let room = ValueRoom::new(room);
        let diffs = StateDiffs::new(&room);
        let value = json::from_reader(text.as_bytes(), UniqueWithin(&room, &diffs))?;
        let found = diffs.found.take();
        Ok((value, found.into_iter().flatten().collect()))
    }

    #[test]
    fn state_diffs_are_those_of_the_value() {
        let stems = [stem(1, 3), stem(2, 0), stem(3, 256)].join(",");
        let text = format!(
            "{{\"a\":[{{\"stateDiff\":[{stems}],\"b\":[[1]]}},{{\"state_diff\":[]}}],\"c\":{{\"stateDiff\":[{stems}]}}}}"
        );
        let (value, found) = read(&text, 1 << 20).expect("read");
        let outer = serde_json::json!({
            "a": [{ "stateDiff": 0, "b": [[1]] }, { "state_diff": 1 }], "c": { "stateDiff": 2 }
        });
        assert_eq!(value, outer);
        let whole = json::parse(text.as_bytes()).expect("JSON");
        let places = ["/a/0/stateDiff", "/a/1/state_diff", "/c/stateDiff"];
        let found = found.into_iter().map(|diff| diff.expect("well formed"));
        for (place, found) in places.into_iter().zip(found) {
            let wanted = whole.pointer(place).expect("there").clone();
            let wanted: Vec<StemDiff> = json::from_value(wanted).expect("well formed");
            assert_eq!(found, wanted, "{place}");
        }
    }

    /// What is wrong with one must not keep others from being read, but what is no JSON does.
    #[test]
    fn the_first_malformed_stem_is_named() {
        let wrong = |stems: &str| {
            let read = read(&format!("{{\"state_diff\":{stems}}}"), 1 << 20);
            let (_, mut found) = read.expect("JSON");
            found.remove(0).expect_err("malformed").to_string()
        };
        let (good, bad) = (
            stem(1, 2),
            stem(2, 2).replacen("\"suffix\":1", "\"suffix\":256", 1),
        );
        let error = wrong(&format!("[{good},{bad},{good},7]"));
        assert!(
            error.starts_with("state_diff[1].suffixDiffs[1].suffix: "),
            "{error}"
        );
        assert!(wrong("[7]").starts_with("state_diff[0]: invalid type"));
        assert!(wrong("7").starts_with("state_diff: invalid type"));
        let twice = read("{\"stateDiff\":[7,{\"a\":1,\"a\":1}]}", 1 << 20);
        let twice = twice.expect_err("twice").to_string();
        assert!(
            twice.starts_with("stateDiff[1]: field `a` is there twice at line 1"),
            "{twice}"
        );
    }

    /// A leaf took 1,200 bytes, so that a block of 900,000 was refused.
    #[test]
    fn a_leaf_takes_no_more_than_itself() {
        let stems = vec![stem(1, 256); 20].join(",");
        let text = format!("{{\"stateDiff\":[{stems}]}}");
        let leaves = 20 * 256;
        assert!(read(&text, 100 * leaves).is_ok());
        let error = read(&text, 60 * leaves).expect_err("no room").to_string();
        assert!(error.contains("bytes of memory"), "{error}");
        // One stem has no more than that; what looks like one and is larger is not held whole.
        let error = read(&format!("{{\"stateDiff\":[{}]}}", stem(1, 10_000)), 1 << 30);
        let error = error.expect_err("no stem").to_string();
        assert!(error.starts_with("stateDiff[0].suffixDiffs["), "{error}");
    }
}
