//! What a witness file's object is made of: the fields of one witness, or pairs of blocks and their parents by name, each of which is handed on before the next one is read.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;

use alloy_consensus::Header;
use alloy_primitives::Bytes;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{
    BlockWitness, ExecutionWitness, FoundWitness, MptWitness, ProofWitness, TakeWitness,
    WitnessProblem,
};
use crate::json::{self, JsonError, ListsApart, Names, UniqueWithin, ValueRoom, field_bytes};
use crate::witness::lists::{ListOr, Listed, ReadList};
use crate::witness::verkle::{StateDiffs, VerkleWitness, VerkleWitnessProblem};

/// Bytes that a node, code or header takes beside its own. One that was there before counts as well, so that no file is nothing but that.
const ITEM: usize = 150;

/// Who takes what is found, and what may be held meanwhile.
pub(super) struct Parts<'a> {
    /// For what is held at a time.
    pub(super) room: &'a ValueRoom,
    pub(super) diffs: &'a StateDiffs<'a>,
    /// Begins to count anew after each witness.
    pub(super) length: &'a Cell<u64>,
    pub(super) take: TakeWitness<'a>,
    /// Set when no more is wanted.
    pub(super) done: &'a Cell<bool>,
}

impl Parts<'_> {
    /// Hands on a pair, and has room for the next one.
    fn hand_on(&mut self, pair: FoundWitness, left: u64) -> ControlFlow<()> {
        let taken = (self.take)(pair);
        self.diffs.forget();
        self.room.give_back(left);
        self.length.set(0);
        taken
    }

    /// Hands on a file's pairs: what is before the first, which is none, that one, and the others.
    fn pairs<'de, A: MapAccess<'de>>(
        mut self,
        before: Vec<String>,
        (first, pair, left): (String, Value, u64),
        mut fields: A,
    ) -> Result<(), A::Error> {
        let mut names: HashSet<String> = before.iter().cloned().collect();
        names.insert(first.clone());
        let of_pair = |name, pair, diffs| FoundWitness {
            name: Some(name),
            witness: boxed(VerkleWitness::of_pair(pair, diffs)),
        };
        let first = of_pair(first, pair, self.diffs);
        let no_pair = |name| FoundWitness {
            name: Some(name),
            witness: Err(VerkleWitnessProblem::NoPair.into()),
        };
        for pair in before.into_iter().map(no_pair).chain([first]) {
            if self.hand_on(pair, left).is_break() {
                return self.no_more();
            }
        }
        while let Some(name) = fields.next_key::<String>()? {
            self.room.take(field_bytes(&name))?;
            if !names.insert(name.clone()) {
                return Err(json::twice(&name));
            }
            let left = self.room.left();
            let pair = fields.next_value_seed(UniqueWithin(self.room, self.diffs))?;
            let pair = of_pair(name, pair, self.diffs);
            if self.hand_on(pair, left).is_break() {
                return self.no_more();
            }
        }
        Ok(())
    }

    /// Whoever takes what is found wants no more.
    fn no_more<E: de::Error>(&self) -> Result<(), E> {
        self.done.set(true);
        Err(de::Error::custom("no more is wanted"))
    }
}

impl<'de> DeserializeSeed<'de> for Parts<'_> {
    type Value = Option<Fields>;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Self::Value, D::Error> {
        source.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Parts<'_> {
    /// The fields of one witness; `None` where there were pairs.
    type Value = Option<Fields>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut read, mut names) = (Fields::default(), Names::default());
        while let Some(name) = fields.next_key::<String>()? {
            self.room.take(field_bytes(&name))?;
            names.add(&name)?;
            let left = self.room.left();
            if name == "result" {
                // The witness is in the answer of a node.
                let within = Parts {
                    take: &mut *self.take,
                    ..self
                };
                let Some(result) = fields.next_value_seed(within)? else {
                    return Ok(None);
                };
                read.result = Some(Box::new(result));
                continue;
            }
            let value = match read.lists.by_name(&name) {
                Some((list, once)) => {
                    let items = Items {
                        name: &name,
                        room: self.room,
                        once,
                        decode: match name == "headers" {
                            true => header,
                            false => json::from_value,
                        },
                    };
                    if read.has_nodes {
                        *list = Some(Ok(fields.next_value_seed(items)?));
                        continue;
                    }
                    // Only a witness with nodes has to have a list there.
                    let or = UniqueWithin(self.room, self.diffs);
                    match fields.next_value_seed(ListOr(items, or))? {
                        Listed::List(found) => {
                            read.has_nodes |= name == "stateNodes";
                            *list = Some(found);
                            continue;
                        }
                        Listed::Other(value) => value,
                    }
                }
                // The fields in it are those of a proof, whatever they are called.
                None if name == STATE_PROOF => {
                    fields.next_value_seed(UniqueWithin(self.room, ()))?
                }
                None => match self.diffs.read_field(&name, &mut fields)? {
                    Some(place) => place,
                    None => fields.next_value_seed(UniqueWithin(self.room, self.diffs))?,
                },
            };
            if VerkleWitness::is_pair(&value) {
                let before = read.names();
                drop(read);
                self.pairs(before, (name, value, left), fields)?;
                return Ok(None);
            }
            read.add(name, value);
        }
        Ok(Some(match read.result.take() {
            Some(result) => *result,
            None => read,
        }))
    }
}

/// The fields of one witness.
#[derive(Default)]
pub(super) struct Fields {
    /// The fields of the witness in a node's answer. The other fields of the answer are ignored.
    result: Option<Box<Fields>>,
    /// Whether it has a field that only a witness with nodes has, whose long lists must be lists.
    has_nodes: bool,
    lists: Lists,
    other: Map<String, Value>,
}

/// The long lists of a witness with nodes. What is wrong with one of another kind is nobody's concern.
#[derive(Default)]
struct Lists {
    nodes: Option<List>,
    codes: Option<List>,
    headers: Option<List>,
    /// Nodes and headers of a witness without a block.
    state: Option<List>,
    rlp_headers: Option<List>,
}

type List = Result<Vec<Bytes>, JsonError>;

impl Lists {
    /// One of them, and whether nothing may be twice in it. Nodes and codes are sets; each header is the parent of the one before.
    fn by_name(&mut self, name: &str) -> Option<(&mut Option<List>, bool)> {
        match name {
            "stateNodes" => Some((&mut self.nodes, false)),
            "codes" => Some((&mut self.codes, false)),
            "ancestorHeadersRlp" => Some((&mut self.headers, true)),
            "state" => Some((&mut self.state, false)),
            "headers" => Some((&mut self.rlp_headers, false)),
            _ => None,
        }
    }

    /// Those that are there, by their names.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("stateNodes", &self.nodes),
            ("codes", &self.codes),
            ("ancestorHeadersRlp", &self.headers),
            ("state", &self.state),
            ("headers", &self.rlp_headers),
        ];
        let there = all.into_iter().filter(|(_, list)| list.is_some());
        there.map(|(name, _)| name)
    }
}

impl Fields {
    fn names(&self) -> Vec<String> {
        let lists = self.lists.names().map(str::to_owned);
        lists.chain(self.other.keys().cloned()).collect()
    }

    fn add(&mut self, name: String, value: Value) {
        match self.lists.by_name(&name) {
            Some((list, _)) => {
                let wrong =
                    json::from_value::<Vec<Bytes>>(value).map_err(|error| error.within(&name));
                self.has_nodes |= name == "stateNodes";
                *list = Some(wrong);
            }
            None => {
                self.has_nodes |= name == "blockRlp";
                self.other.insert(name, value);
            }
        }
    }

    /// The witness that they are together, of the one form that has such fields.
    pub(super) fn witness(self, diffs: &StateDiffs<'_>) -> Result<FoundWitness, WitnessProblem> {
        let names = self.names();
        let has = |mark: &&str| names.iter().any(|name| name == mark);
        let forms = FORMS.iter().filter(|form| form.marks.iter().any(has));
        match forms.collect::<Vec<_>>()[..] {
            [form] => (form.read)(self, diffs),
            [] => Ok(FoundWitness {
                name: None,
                witness: Err(VerkleWitnessProblem::Other.into()),
            }),
            ref forms => Err(WitnessProblem::SeveralForms {
                forms: forms.iter().map(|form| form.name).collect(),
            }),
        }
    }

    /// One of leaves.
    fn of_leaves(self, diffs: &StateDiffs<'_>) -> Result<FoundWitness, WitnessProblem> {
        let mut fields = self.other;
        for name in self.lists.names() {
            fields.insert(name.to_owned(), Value::Array(Vec::new()));
        }
        Ok(FoundWitness {
            name: None,
            witness: boxed(VerkleWitness::of_file(Value::Object(fields), diffs)),
        })
    }

    /// One of nodes.
    fn of_nodes(self, _: &StateDiffs<'_>) -> Result<FoundWitness, WitnessProblem> {
        let Self {
            lists, mut other, ..
        } = self;
        // Those that are missing, or that there are none of, are told of with the other fields.
        for name in lists.names() {
            other.insert(name.to_owned(), Value::Array(Vec::new()));
        }
        let Lists {
            nodes,
            codes,
            headers,
            ..
        } = lists;
        let mut witness: MptWitness = json::from_value(Value::Object(other))?;
        witness.state_nodes = nodes.transpose()?.unwrap_or_default();
        witness.codes = codes.transpose()?.unwrap_or_default();
        witness.ancestor_headers_rlp = headers.transpose()?.unwrap_or_default();
        Ok(FoundWitness::alone(witness))
    }

    /// One of a proof.
    fn of_proof(self, _: &StateDiffs<'_>) -> Result<FoundWitness, WitnessProblem> {
        let Self {
            lists, mut other, ..
        } = self;
        for name in lists.names() {
            other.insert(name.to_owned(), Value::Array(Vec::new()));
        }
        let mut witness: ProofWitness = json::from_value(Value::Object(other))?;
        witness.codes = lists.codes.transpose()?.unwrap_or_default();
        Ok(FoundWitness::alone(witness))
    }

    /// One of nodes without its block.
    fn of_execution(self, _: &StateDiffs<'_>) -> Result<FoundWitness, WitnessProblem> {
        let Lists {
            codes,
            state,
            rlp_headers,
            ..
        } = self.lists;
        let list = |list: Option<List>| list.transpose().map(Option::unwrap_or_default);
        Ok(FoundWitness::alone(ExecutionWitness {
            state: list(state)?,
            codes: list(codes)?,
            headers: list(rlp_headers)?,
        }))
    }
}

/// Reads a header: RLP in hexadecimal, or go-ethereum's object.
fn header(value: Value) -> Result<Bytes, JsonError> {
    if !value.is_object() {
        return json::from_value(value);
    }
    let header: Header = json::from_value(value)?;
    Ok(alloy_rlp::encode(header).into())
}

/// A form of witness files in JSON.
struct Form {
    /// What it is called in errors.
    name: &'static str,
    /// Fields that only files of this form have.
    marks: &'static [&'static str],
    read: fn(Fields, &StateDiffs<'_>) -> Result<FoundWitness, WitnessProblem>,
}

/// Exactly one form recognises a file.
static FORMS: [Form; 4] = [
    Form {
        name: "a block with its nodes (stateNodes)",
        marks: &["stateNodes", "blockRlp"],
        read: Fields::of_nodes,
    },
    Form {
        name: "nodes, codes and headers without a block (state, as nodes answer debug_executionWitness)",
        marks: &["state", "headers"],
        read: Fields::of_execution,
    },
    Form {
        name: "a block amid the move to another tree, with a proof (stateProof)",
        marks: &[STATE_PROOF],
        read: Fields::of_proof,
    },
    Form {
        name: "a block with leaves of a Verkle tree (executionWitness), or these alone (stateDiff and verkleProof)",
        marks: &[
            // A block beside its parent.
            "execute",
            "parent",
            "executionWitness",
            "execution_witness",
            "stateDiff",
            "state_diff",
            "verkleProof",
            "verkle_proof",
        ],
        read: Fields::of_leaves,
    },
];

/// The proof in the witness of a block amid a move.
const STATE_PROOF: &str = "stateProof";

fn boxed(
    witness: Result<VerkleWitness, VerkleWitnessProblem>,
) -> Result<Box<dyn BlockWitness>, WitnessProblem> {
    Ok(Box::new(witness?))
}

/// Reads byte strings as far as there is room for them: a set, in which one is kept once, or a sequence that has none twice.
struct Items<'a> {
    name: &'a str,
    room: &'a ValueRoom,
    once: bool,
    /// Reads one, if there may be a list of anything.
    decode: fn(Value) -> Result<Bytes, JsonError>,
}

/// Those of a list that are kept.
#[derive(Default)]
struct Kept {
    items: Vec<Bytes>,
    known: HashSet<Bytes>,
    /// How many there were.
    count: usize,
}

impl Items<'_> {
    /// Adds one; says what is wrong with it, if it is there and may not be twice.
    ///
    /// # Errors
    /// There is no room for it.
    fn add<E: de::Error>(&self, kept: &mut Kept, item: Bytes) -> Result<Option<String>, E> {
        self.room.take(ITEM)?;
        let count = kept.count;
        kept.count += 1;
        if !kept.known.contains(&item) {
            self.room.take(item.len())?;
            kept.known.insert(item.clone());
            kept.items.push(item);
            return Ok(None);
        }
        if !self.once {
            return Ok(None);
        }
        let before = kept.items.iter().position(|known| *known == item);
        Ok(before.map(|before| format!("entry {count} is there already, as entry {before}")))
    }
}

/// Where there must be a list of them.
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
        let mut kept = Kept::default();
        while let Some(item) = list.next_element::<Bytes>()? {
            if let Some(wrong) = self.add(&mut kept, item)? {
                return Err(de::Error::custom(wrong));
            }
        }
        Ok(kept.items)
    }
}

/// Where there may be a list of anything: what is wrong with it is told if it turns out to be one of these.
impl ReadList for Items<'_> {
    type List = List;

    fn read_list<'de, A: SeqAccess<'de>>(self, mut list: A) -> Result<List, A::Error> {
        let begin = self.room.left();
        let mut read = Ok(Kept::default());
        loop {
            let left = self.room.left();
            let Some(value) = list.next_element_seed(UniqueWithin(self.room, ()))? else {
                return Ok(read.map(|kept: Kept| kept.items));
            };
            self.room.give_back(left);
            let Ok(kept) = &mut read else { continue };
            let added = match (self.decode)(value) {
                Err(error) => Err(error.within(&format!("{}[{}]", self.name, kept.count))),
                Ok(item) => match self.add(kept, item)? {
                    Some(wrong) => Err(JsonError::of(self.name, de::Error::custom(wrong))),
                    None => Ok(()),
                },
            };
            if let Err(error) = added {
                read = Err(error);
                self.room.give_back(begin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads what must be a list of them; where there may be a list of something else it comes to the same, given a little more room.
    fn items(text: &str, room: u64) -> Result<Vec<Bytes>, JsonError> {
        let (room, more) = (ValueRoom::new(room), ValueRoom::new(room + 100));
        let items = |room| Items {
            name: "codes",
            room,
            once: false,
            decode: json::from_value,
        };
        let read = json::from_reader(text.as_bytes(), items(&room));
        let or = ListOr(items(&more), UniqueWithin(&more, ()));
        let lenient = match json::from_reader(text.as_bytes(), or) {
            Ok(Listed::List(list)) => list.ok(),
            _ => None,
        };
        assert_eq!(lenient.as_ref(), read.as_ref().ok());
        read
    }

    #[test]
    fn items_are_kept_once_and_only_as_long_as_there_is_room() {
        let again = format!("[{}\"0x0203\"]", "\"0x01\",".repeat(9));
        let kept = items(&again, 10 * 150 + 3).expect("two items");
        assert_eq!(
            kept,
            [Bytes::from_static(&[1]), Bytes::from_static(&[2, 3])]
        );
        let many: Vec<String> = (0..10).map(|i| format!("\"0x0{i}\"")).collect();
        let many = format!("[{}]", many.join(","));
        assert_eq!(items(&many, 10 * 151).expect("fits").len(), 10);
        let error = items(&many, 10 * 151 - 120)
            .expect_err("no room")
            .to_string();
        assert!(
            error.contains("takes more than 1390 bytes of memory"),
            "{error}"
        );
        assert!(items("[\"0x01\",\"0x1\"]", 1_000).is_err());
        assert!(items("{}", 1_000).is_err());
    }
}
