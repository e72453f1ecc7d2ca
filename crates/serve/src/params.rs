//! Parameters of a call, read one by one.

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::hex::{FromHex, Hex};
use crate::rpc_error::RpcError;

/// The most parameters that a method here takes, and some more.
const MOST: usize = 8;

/// The parameters of a call, not yet read.
pub(crate) struct Params<'a>(Vec<&'a RawValue>);

impl<'a> Params<'a> {
    /// Takes the text of a list of parameters apart; none is an empty list.
    pub(crate) fn read(text: Option<&'a str>) -> Result<Self, RpcError> {
        let Some(text) = text.map(str::trim).filter(|text| *text != "null") else {
            return Ok(Self(Vec::new()));
        };
        if !text.starts_with('[') {
            return Err(RpcError::params("non-array args"));
        }
        let list: List<'a> =
            serde_json::from_str(text).map_err(|error| RpcError::params(error.to_string()))?;
        match list.more {
            false => Ok(Self(list.items)),
            true => Err(RpcError::params(format!(
                "too many arguments, want at most {MOST}"
            ))),
        }
    }

    /// Refuses more parameters than a method has.
    pub(crate) fn at_most(&self, most: usize) -> Result<(), RpcError> {
        match self.0.len() <= most {
            true => Ok(()),
            false => Err(RpcError::params(format!(
                "too many arguments, want at most {most}"
            ))),
        }
    }

    fn given(&self, index: usize) -> Option<&'a RawValue> {
        self.0
            .get(index)
            .copied()
            .filter(|value| value.get() != "null")
    }

    /// The text of a parameter that must be there.
    pub(crate) fn raw(&self, index: usize) -> Result<&'a RawValue, RpcError> {
        self.given(index)
            .ok_or_else(|| RpcError::params(format!("missing value for required argument {index}")))
    }

    /// Reads a parameter that must be there.
    pub(crate) fn required<T: DeserializeOwned>(&self, index: usize) -> Result<T, RpcError> {
        read(index, self.raw(index)?)
    }

    /// Reads a parameter, if it is there.
    pub(crate) fn optional<T: DeserializeOwned>(
        &self,
        index: usize,
    ) -> Result<Option<T>, RpcError> {
        self.given(index)
            .map(|value| read(index, value))
            .transpose()
    }

    /// Reads a parameter that must be there, and is written as `0x` and hexadecimal digits.
    pub(crate) fn hex<T: FromHex>(&self, index: usize) -> Result<T, RpcError> {
        let Hex(value) = self.required(index)?;
        Ok(value)
    }
}

fn read<T: DeserializeOwned>(index: usize, value: &RawValue) -> Result<T, RpcError> {
    serde_json::from_str(value.get()).map_err(|error| {
        let (why, place) = (error.to_string(), format!(" at line {}", error.line()));
        // In a single value there is nothing to point at.
        let why = match value.get().starts_with(['[', '{']) {
            true => &why[..],
            false => why.rsplit_once(&place).map_or(&why[..], |(why, _)| why),
        };
        invalid(index, why)
    })
}

/// The error of a parameter, with its place.
pub(crate) fn invalid(index: usize, why: impl fmt::Display) -> RpcError {
    RpcError::params(format!("invalid argument {index}: {why}"))
}

/// The begin of a list, so that a long one takes no memory.
struct List<'a> {
    items: Vec<&'a RawValue>,
    more: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for List<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Begin;
        impl<'de> Visitor<'de> for Begin {
            type Value = List<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of parameters")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<'de>, A::Error> {
                let mut items = Vec::new();
                while items.len() < MOST {
                    match list.next_element()? {
                        Some(item) => items.push(item),
                        None => return Ok(List { items, more: false }),
                    }
                }
                let mut more = false;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    more = true;
                }
                Ok(List { items, more })
            }
        }
        from.deserialize_seq(Begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_to_their_end_and_not_beyond_the_most() {
        let read = |text| Params::read(Some(text)).map(|params| params.0.len());
        assert_eq!(
            Params::read(None).map(|params| params.0.len()).ok(),
            Some(0)
        );
        assert_eq!(read("[]").ok(), Some(0));
        assert_eq!(read("null").ok(), Some(0));
        assert_eq!(read(r#"["0x1", {"a": [1]}, null]"#).ok(), Some(3));
        assert_eq!(read("[1,2,3,4,5,6,7,8]").ok(), Some(8));
        let many = format!("[{}1]", "1,".repeat(100_000));
        for wrong in ["{}", "7", "[1", "[1,]", &many] {
            assert!(read(wrong).is_err(), "{wrong:.20}");
        }
    }
}
