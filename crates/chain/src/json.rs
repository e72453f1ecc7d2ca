//! JSON of witnesses and proofs: no object has a field twice, in one spelling or in two, and an error says where it is.
//!
//! The testnets have written names both as `stateDiff` and as `state_diff`. A value of [`serde_json`] keeps the last of fields of one name, so that
//! two readers could take a file for two things.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::io::{BufReader, Read};

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment, Track};

use crate::bounded_input::BoundedInput;

/// What is wrong with JSON, and where. Shown are the first some hundred characters of each: both may have a whole name or string of the text.
#[derive(Debug, thiserror::Error)]
pub struct JsonError {
    /// The field, such as `stateDiff[3].suffixDiffs[1].newValue`; empty for the whole.
    pub field: String,
    /// What is wrong with it; where a text was read, with line and column.
    pub error: serde_json::Error,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", Shown(&self.field))?;
        }
        let (line, column) = (self.error.line(), self.error.column());
        match Shown(&self.error).put(f)? {
            Whole::Cut if line > 0 => write!(f, " at line {line} column {column}"),
            _ => Ok(()),
        }
    }
}

/// What a file says, for a line of its own on a terminal: cut where it is long, and nothing in it that a terminal would obey.
pub struct Shown<T>(pub T);

/// Whether all of a text was shown.
enum Whole {
    All,
    Cut,
}

impl<T: fmt::Display> Shown<T> {
    /// Characters.
    const MOST: usize = 300;

    fn put(&self, f: &mut fmt::Formatter<'_>) -> Result<Whole, fmt::Error> {
        let left = Self::MOST;
        let mut to = Shortened { to: f, left };
        match write!(to, "{}", self.0) {
            Err(_) if to.left == 0 => {
                f.write_char('…')?;
                Ok(Whole::Cut)
            }
            put => put.map(|()| Whole::All),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.put(f).map(|_| ())
    }
}

/// Ends with an error where there would be too many characters.
struct Shortened<'a, 'f> {
    to: &'a mut fmt::Formatter<'f>,
    left: usize,
}

impl Write for Shortened<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            self.left = self.left.checked_sub(1).ok_or(fmt::Error)?;
            match letter {
                '"' | '\'' | '\\' => self.to.write_char(letter)?,
                letter => write!(self.to, "{}", letter.escape_debug())?,
            }
        }
        Ok(())
    }
}

impl JsonError {
    /// What is wrong with a field.
    pub(crate) fn of(field: &str, error: serde_json::Error) -> Self {
        let field = field.to_owned();
        Self { field, error }
    }

    /// Says of which field its field is a part.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        let dot = match self.field.as_bytes().first() {
            None | Some(b'[') => "",
            Some(_) => ".",
        };
        self.field = format!("{outer}{dot}{}", self.field);
        self
    }

    fn new(path: &Path, error: serde_json::Error) -> Self {
        let mut field = match path.iter().next() {
            None => String::new(),
            Some(_) => path.to_string(),
        };
        // A name that could not be read is a question mark.
        if let Some(Segment::Unknown) = path.iter().next_back() {
            field.pop();
            field.truncate(field.trim_end_matches('.').len());
        }
        Self { field, error }
    }
}

impl From<serde_path_to_error::Error<serde_json::Error>> for JsonError {
    fn from(error: serde_path_to_error::Error<serde_json::Error>) -> Self {
        Self::new(&error.path().clone(), error.into_inner())
    }
}

/// Reads a text into a value.
///
/// # Errors
/// What is not JSON, or has a field twice.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    Ok(from_slice::<Unique>(text)?.0)
}

/// Reads an input into a value that takes no more than so many bytes of memory. The text is not
/// kept.
///
/// # Errors
/// As [`parse`]; a value that takes more memory; what keeps the input from being read.
pub fn read_within(input: BoundedInput<'_>, bytes: u64) -> Result<Value, JsonError> {
    let text = BufReader::new(input);
    from_reader(text, UniqueWithin(&ValueRoom::new(bytes), ()))
}

/// Reads a text. That fields of one name are refused is for the type to say; those of a struct are.
///
/// # Errors
/// What is not JSON, or of another form.
pub fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    let mut source = serde_json::Deserializer::from_slice(text);
    let read = serde_path_to_error::deserialize(&mut source).map_err(JsonError::from)?;
    let whole = source.end().map_err(|error| JsonError {
        field: String::new(),
        error,
    });
    whole.map(|()| read)
}

/// Reads a text piece by piece, so that no more of it is held than `seed` keeps.
///
/// # Errors
/// What is not JSON, or of another form; what keeps it from being read.
pub(crate) fn from_reader<T>(
    text: impl Read,
    seed: impl for<'de> DeserializeSeed<'de, Value = T>,
) -> Result<T, JsonError> {
    let mut source = serde_json::Deserializer::from_reader(text);
    let mut track = Track::new();
    let read = seed.deserialize(serde_path_to_error::Deserializer::new(
        &mut source,
        &mut track,
    ));
    let read = read.map_err(|error| JsonError::new(&track.path(), error))?;
    let whole = source.end().map_err(|error| JsonError {
        field: String::new(),
        error,
    });
    whole.map(|()| read)
}

/// Takes a value apart.
///
/// # Errors
/// One of another form.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, JsonError> {
    serde_path_to_error::deserialize(value).map_err(JsonError::from)
}

/// Reads a field that has any value, but none with a field twice.
pub(crate) fn unique<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Value>, D::Error> {
    let value = Option::<Unique>::deserialize(source)?;
    Ok(value.map(|value| value.0))
}

/// Bytes of memory that what is read may take.
pub(crate) struct ValueRoom {
    all: u64,
    left: Cell<u64>,
}

impl ValueRoom {
    pub(crate) const fn new(all: u64) -> Self {
        let left = Cell::new(all);
        Self { all, left }
    }

    /// How much is left, to give back what is taken from here on ([`give_back`](Self::give_back)).
    pub(crate) const fn left(&self) -> u64 {
        self.left.get()
    }

    /// Gives back all that was taken since so much was left, or but for what was given back since.
    pub(crate) fn give_back(&self, left: u64) {
        self.left.set(left);
    }

    /// Takes some of it.
    ///
    /// # Errors
    /// There is not so much left.
    pub(crate) fn take<E: de::Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(bytes as u64);
        let all = self.all;
        self.left.set(left.ok_or_else(|| {
            E::custom(format!(
                "what is read up to here takes more than {all} bytes of memory"
            ))
        })?);
        Ok(())
    }
}

/// Fields whose lists are read in a way of their own, wherever they are.
pub(crate) trait ListsApart: Copy {
    /// Reads the next value of an object if the field's name is one of theirs, and returns what is to be in its place. Else nothing is read.
    ///
    /// # Errors
    /// What is not JSON, or takes too much memory.
    fn read_field<'de, A: MapAccess<'de>>(
        self,
        name: &str,
        fields: &mut A,
    ) -> Result<Option<Value>, A::Error>;
}

/// No such fields.
impl ListsApart for () {
    fn read_field<'de, A: MapAccess<'de>>(
        self,
        _: &str,
        _: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        Ok(None)
    }
}

/// A value whose objects have each field once.
pub(crate) struct Unique(pub(crate) Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        UniqueWithin(&ValueRoom::new(u64::MAX), ())
            .deserialize(source)
            .map(Self)
    }
}

/// Reads such a value as far as there is room for it, but for some lists.
#[derive(Clone, Copy)]
pub(crate) struct UniqueWithin<'a, P = ()>(pub(crate) &'a ValueRoom, pub(crate) P);

/// Bytes that a value takes in a list that grows.
const VALUE: usize = 2 * size_of::<Value>();
/// Bytes that a list with values takes beside them.
const LIST: usize = 4 * size_of::<Value>();
/// Bytes that an object with fields takes, and each of them beside its name.
const OBJECT: usize = 400;
const FIELD: usize = 150;

/// Bytes that a field with this name takes beside its value.
pub(crate) const fn field_bytes(name: &str) -> usize {
    FIELD + 3 * name.len()
}

impl<'de, P: ListsApart> DeserializeSeed<'de> for UniqueWithin<'_, P> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        self.0.take(VALUE)?;
        source.deserialize_any(self)
    }
}

impl<'de, P: ListsApart> Visitor<'de> for UniqueWithin<'_, P> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        self.0.take(value.len())?;
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        self.0.take(value.len())?;
        Ok(value.into())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element_seed(self)? {
            if values.is_empty() {
                self.0.take(LIST)?;
            }
            values.push(value);
        }
        Ok(values.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        let mut names = Names::default();
        while let Some(name) = fields.next_key::<String>()? {
            if values.is_empty() {
                self.0.take(OBJECT)?;
            }
            self.0.take(field_bytes(&name))?;
            names.add(&name)?;
            let value = match self.1.read_field(&name, &mut fields)? {
                Some(value) => value,
                None => fields.next_value_seed(self)?,
            };
            values.insert(name, value);
        }
        Ok(values.into())
    }
}

/// The names of an object's fields: by the newer spelling, the one that is there.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// Adds a field.
    ///
    /// # Errors
    /// It is there already, in this spelling or another.
    pub(crate) fn add<E: de::Error>(&mut self, name: &str) -> Result<(), E> {
        match self.0.insert(camel_case(name), name.to_owned()) {
            None => Ok(()),
            Some(other) if other == name => Err(twice(name)),
            Some(other) => Err(E::custom(format!(
                "field `{name}` is there twice, also as `{other}`"
            ))),
        }
    }
}

/// The error that a field is there already.
pub(crate) fn twice<E: de::Error>(name: &str) -> E {
    E::custom(format!("field `{name}` is there twice"))
}

/// `state_diff` as `stateDiff`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut spelled = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        spelled.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        spelled.push_str(letters.as_str());
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last of fields of one name was taken, and of both spellings the newer one, whatever else was said.
    #[test]
    fn a_field_is_there_once() {
        let error = |text: &str| parse(text.as_bytes()).expect_err(text).to_string();
        let twice = error(r#"{"a": [1, {"b": 2, "c": {}, "b": 2}]}"#);
        assert!(
            twice.starts_with("a[1]: field `b` is there twice at line 1 column"),
            "{twice}"
        );
        let spelled = error("{\"state_diff\": 1,\n\"stateDiff\": 1}");
        let wanted = "field `stateDiff` is there twice, also as `state_diff` at line 2";
        assert!(spelled.starts_with(wanted), "{spelled}");
        assert!(error("{\"a\": 1} x").contains("trailing characters"));
        assert!(error("{\"a\": [1, }").starts_with("a[1]: "));
        let deep = "[".repeat(200);
        assert!(error(&deep).contains("recursion limit"));
    }

    #[test]
    fn values_are_those_of_serde_json() {
        let text = r#"{"a": [null, true, -1, 1, 1.5, "x", {"b_c": {}, "b": [], "_": 1e400}]}"#;
        let text = text.replace("1e400", "18446744073709551616");
        let plain: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(parse(text.as_bytes()).expect("JSON"), plain);
    }

    /// Each of these takes many times its text: 80 bytes for one of `[{},{},...]`, 700 for one of `{"a":0}`.
    #[test]
    fn what_takes_too_much_memory_is_refused_where_it_does() {
        let small = [r#"{"a":0}"#, "{}", "7", r#""text""#, "[7]"];
        for value in small {
            let list = |count| format!("[{}]", vec![value; count].join(","));
            let read = |text: &str| {
                let room = ValueRoom::new(100_000);
                from_reader(text.as_bytes(), UniqueWithin(&room, ()))
            };
            let text = list(100);
            assert_eq!(
                read(&text).expect("fits"),
                parse(text.as_bytes()).expect("JSON")
            );
            let error = read(&list(2_000)).expect_err(value).to_string();
            assert!(
                error.contains("takes more than 100000 bytes of memory"),
                "{error}"
            );
            assert!(error.starts_with('['), "{error}");
        }
        let names: Vec<String> = (0..1_000).map(|i| format!("\"{i}\":0")).collect();
        let room = ValueRoom::new(100_000);
        let text = format!("{{{}}}", names.join(","));
        assert!(from_reader(text.as_bytes(), UniqueWithin(&room, ())).is_err());
    }

    /// Each list of one had half of the bytes that it takes.
    #[test]
    fn lists_within_lists_take_what_they_do() {
        let deep = format!("{}0{}", "[".repeat(100), "]".repeat(100));
        let read = |room| from_reader(deep.as_bytes(), UniqueWithin(&ValueRoom::new(room), ()));
        let values = 100 * (size_of::<Value>() * 4) as u64;
        assert!(read(values).is_err());
        assert!(read(2 * values).is_ok());
    }

    /// A name of 60 MB was held, and printed.
    #[test]
    fn an_error_is_no_longer_than_can_be_read() {
        let name = "n".repeat(100_000);
        let text = format!("{{\"{name}\": {{\"a\": [1,\n{{\"{name}\": 1, \"{name}\": 2}}]}}}}");
        let error = parse(text.as_bytes()).expect_err("twice").to_string();
        assert!(error.len() < 700, "{error}");
        assert!(error.starts_with("nnn"), "{error}");
        assert!(error.contains("…: field `nnn"), "{error}");
        assert!(error.ends_with("n… at line 2 column 200010"), "{error}");
        let error = JsonError::of("a\n\u{1b}[1mb", de::Error::custom("\"c\" \u{202e}"));
        assert_eq!(error.to_string(), "a\\n\\u{1b}[1mb: \"c\" \\u{202e}");
        let whole = "é".repeat(300);
        assert_eq!(Shown(&whole).to_string(), whole);
        assert_eq!(Shown(format!("{whole}a")).to_string(), format!("{whole}…"));
    }

    #[test]
    fn room_is_given_back() {
        let room = ValueRoom::new(10);
        let take = |bytes| room.take::<serde_json::Error>(bytes);
        take(4).expect("there is room");
        let left = room.left();
        take(6).expect("there is room");
        assert!(take(1).is_err());
        room.give_back(left);
        take(6).expect("there is room again");
    }

    #[test]
    fn an_error_in_a_value_says_where() {
        let value = serde_json::json!([[1, 2], [3, "4"]]);
        let error = from_value::<Vec<Vec<u64>>>(value).expect_err("a string");
        assert_eq!(error.field, "[1][1]");
        let error = error.within("a").within("b[0]");
        assert_eq!(error.field, "b[0].a[1][1]");
        let error = from_slice::<Vec<u64>>(b"7").expect_err("a number");
        assert!(error.field.is_empty() && error.to_string().contains("line 1 column 1"));
    }
}
