//! The fields of a genesis file's objects, as geth's decoder reads them.
//!
//! Go's decoder takes a name in any case, and geth takes numbers as JSON numbers of any size, as decimal digits and as
//! hexadecimal digits behind `0x` or `0X`. A name that is there twice, in one case or in two, is refused: geth takes the
//! last one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use alloy_primitives::{Address, B256, Bytes, U256, hex};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::GenesisError;
use crate::json::twice;

/// Names that an object with fields may have. Each takes some 200 bytes in memory; geth's
/// configuration has about 40.
const MOST_NAMES: usize = 1 << 10;

/// Characters of a value that an error shows.
const SHOWN: usize = 80;

/// An object whose fields are taken one by one, so that the names left over can be reported.
#[derive(Debug, Default)]
pub(super) struct Fields<'t> {
    fields: Vec<Field<'t>>,
    /// Where in the file the object is: empty, or a path that ends with a dot.
    path: String,
}

#[derive(Debug)]
struct Field<'t> {
    name: Cow<'t, str>,
    value: &'t RawValue,
}

impl<'t> Fields<'t> {
    /// Reads an object's text. `path` is where in the file it is.
    pub(super) fn parse(text: &'t str, path: &str) -> Result<Self, GenesisError> {
        let fields: Self = serde_json::from_str(text).map_err(|error| match path {
            "" => GenesisError::Json(error),
            path => wrong(path.to_owned(), text, &error.to_string()),
        })?;
        let path = match path {
            "" => String::new(),
            path => format!("{path}."),
        };
        Ok(Self { path, ..fields })
    }

    /// Takes a field in any case; `None` also for `null`.
    pub(super) fn take(&mut self, name: &str) -> Option<Value<'t>> {
        let is_it = |field: &Field<'_>| field.name.eq_ignore_ascii_case(name);
        let at = self.fields.iter().position(is_it)?;
        let value = self.fields.remove(at).value;
        let path = format!("{}{name}", self.path);
        (value.get() != "null").then_some(Value { value, path })
    }

    /// Whether a field is there, in any case.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut names = self.fields.iter().map(|field| &field.name);
        names.any(|found| found.eq_ignore_ascii_case(name))
    }

    /// The names that were not taken, with the path of the object.
    pub(super) fn left(&self) -> impl Iterator<Item = String> + '_ {
        let fields = self.fields.iter();
        fields.map(|field| format!("{}{}", self.path, field.name))
    }
}

/// A field's value, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Value<'t> {
    value: &'t RawValue,
    path: String,
}

impl<'t> Value<'t> {
    /// The value's text.
    pub(super) fn text(&self) -> &'t str {
        self.value.get()
    }

    /// Where it is.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The object that it is.
    pub(super) fn fields(&self) -> Result<Fields<'t>, GenesisError> {
        Fields::parse(self.text(), &self.path)
    }

    /// A number below 2^256.
    pub(super) fn number(&self) -> Result<U256, GenesisError> {
        let text = self.string().unwrap_or(Cow::Borrowed(self.text()));
        number(&text).ok_or_else(|| self.wrong("a number below 2^256"))
    }

    /// A number below 2^64.
    pub(super) fn narrow(&self) -> Result<u64, GenesisError> {
        let number = self.number().ok();
        let narrow = number.and_then(|number| u64::try_from(number).ok());
        narrow.ok_or_else(|| self.wrong("a number below 2^64"))
    }

    /// Bytes in hexadecimal behind `0x`; the empty string for none.
    pub(super) fn bytes(&self) -> Result<Bytes, GenesisError> {
        let text = self
            .string()
            .filter(|text| text.is_empty() || has_prefix(text));
        let bytes = text.and_then(|text| hex::decode(without_prefix(&text)).ok());
        let bytes = bytes.ok_or_else(|| self.wrong("bytes in hexadecimal behind 0x"))?;
        Ok(bytes.into())
    }

    /// 32 bytes in hexadecimal behind `0x`.
    pub(super) fn hash(&self) -> Result<B256, GenesisError> {
        let text = self.string().filter(|text| has_prefix(text));
        let bytes = text.and_then(|text| hex::decode(without_prefix(&text)).ok());
        let hash = bytes.and_then(|bytes| B256::try_from(&bytes[..]).ok());
        hash.ok_or_else(|| self.wrong("32 bytes in hexadecimal behind 0x"))
    }

    /// 20 bytes in hexadecimal behind `0x`.
    pub(super) fn address(&self) -> Result<Address, GenesisError> {
        let text = self.string().filter(|text| has_prefix(text));
        let found = text.and_then(|text| address(&text));
        found.ok_or_else(|| self.wrong("an address behind 0x"))
    }

    /// The text of a JSON string.
    pub(super) fn string(&self) -> Option<Cow<'t, str>> {
        let text: Option<Text<'t>> = serde_json::from_str(self.text()).ok();
        text.map(|text| text.0)
    }

    /// The error that something else was expected here.
    pub(super) fn wrong(&self, wanted: &str) -> GenesisError {
        let wanted = format!("expected {wanted}");
        wrong(self.path.clone(), self.text(), &wanted)
    }
}

fn wrong(field: String, text: &str, why: &str) -> GenesisError {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let shown = shown.replace(char::is_control, " ");
    GenesisError::Field {
        field,
        reason: format!("{shown}: {why}"),
    }
}

/// An address with or without `0x`.
pub(super) fn address(text: &str) -> Option<Address> {
    let bytes = hex::decode(without_prefix(text)).ok()?;
    Address::try_from(&bytes[..]).ok()
}

/// A slot's number or value: up to 32 bytes in hexadecimal, an even number of digits, with or without `0x`.
pub(super) fn word(text: &str) -> Option<B256> {
    let bytes = hex::decode(without_prefix(text)).ok()?;
    (bytes.len() <= 32).then(|| B256::left_padding_from(&bytes))
}

fn number(text: &str) -> Option<U256> {
    if text.is_empty() {
        return Some(U256::ZERO);
    }
    let (digits, base) = match has_prefix(text) {
        true => (without_prefix(text), 16),
        false => (text, 10),
    };
    // Signs and underscores would be read too.
    let is_number = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base));
    let number = is_number.then(|| U256::from_str_radix(digits, base.into()));
    number?.ok()
}

fn has_prefix(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

fn without_prefix(text: &str) -> &str {
    if has_prefix(text) { &text[2..] } else { text }
}

/// A string that is only copied if it has escapes.
struct Text<'t>(Cow<'t, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        source.deserialize_str(Borrowed)
    }
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut fields, mut names) = (Vec::new(), HashMap::new());
                while let Some(Text(name)) = map.next_key()? {
                    match names.insert(name.to_ascii_lowercase(), name.clone()) {
                        None => {}
                        Some(other) if other == name => return Err(twice(&name)),
                        Some(other) => {
                            return Err(A::Error::custom(format!(
                                "field `{name}` is there twice, also as `{other}`"
                            )));
                        }
                    }
                    if fields.len() == MOST_NAMES {
                        return Err(A::Error::custom(format!(
                            "it has more than {MOST_NAMES} fields"
                        )));
                    }
                    let value = map.next_value()?;
                    fields.push(Field { name, value });
                }
                let path = String::new();
                Ok(Fields { fields, path })
            }
        }
        source.deserialize_map(Object)
    }
}

/// Goes through an object's entries, whose names are not those of fields. No list of them is made.
pub(super) fn each_entry<'t>(
    object: &Value<'t>,
    entry: &mut dyn FnMut(&str, Value<'t>) -> Result<(), GenesisError>,
) -> Result<(), GenesisError> {
    let mut failed = None;
    let entries = Entries {
        path: &object.path,
        entry,
        failed: &mut failed,
    };
    let mut source = serde_json::Deserializer::from_str(object.text());
    let read = source.deserialize_map(entries);
    match (failed, read) {
        (Some(failed), _) => Err(failed),
        (None, Err(error)) => Err(wrong(
            object.path.clone(),
            object.text(),
            &error.to_string(),
        )),
        (None, Ok(())) => Ok(()),
    }
}

/// An object's entries in their order.
struct Entries<'a, 't> {
    path: &'a str,
    entry: &'a mut dyn FnMut(&str, Value<'t>) -> Result<(), GenesisError>,
    /// The error of an entry, which serde's errors have no room for.
    failed: &'a mut Option<GenesisError>,
}

impl<'de> Visitor<'de> for Entries<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(name)) = map.next_key()? {
            let path = format!("{}.{name}", self.path);
            let value = map.next_value()?;
            if let Err(error) = (self.entry)(&name, Value { value, path }) {
                *self.failed = Some(error);
                return Err(A::Error::custom("an entry that is not sound"));
            }
        }
        Ok(())
    }
}
