//! Long lists in witness files, read in a way of their own so that no [`Value`] is made of their items.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::json::{ListsApart, UniqueWithin};

/// Lists that are read in a way of their own.
pub(super) trait ReadList {
    /// What comes of one.
    type List;

    /// Reads one.
    ///
    /// # Errors
    /// What is not JSON, or takes too much memory.
    fn read_list<'de, A: SeqAccess<'de>>(self, list: A) -> Result<Self::List, A::Error>;
}

/// A list, or whatever else stands in its place.
pub(super) enum Listed<T> {
    List(T),
    Other(Value),
}

/// Reads a list in a way of its own, and anything else as [`UniqueWithin`].
pub(super) struct ListOr<'a, R, P = ()>(pub(super) R, pub(super) UniqueWithin<'a, P>);

impl<'de, R: ReadList, P: ListsApart> DeserializeSeed<'de> for ListOr<'_, R, P> {
    type Value = Listed<R::List>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de, R: ReadList, P: ListsApart> Visitor<'de> for ListOr<'_, R, P> {
    type Value = Listed<R::List>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.expecting(f)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
        self.1.visit_bool(value).map(Listed::Other)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        self.1.visit_i64(value).map(Listed::Other)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
        self.1.visit_u64(value).map(Listed::Other)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        self.1.visit_f64(value).map(Listed::Other)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        self.1.visit_str(value).map(Listed::Other)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        self.1.visit_unit().map(Listed::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        self.0.read_list(list).map(Listed::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        self.1.visit_map(fields).map(Listed::Other)
    }
}
