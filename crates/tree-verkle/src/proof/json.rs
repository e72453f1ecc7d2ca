//! The testnets' JSON: hexadecimal strings; the last scalar most significant byte first. Older testnets wrote names with underscores, which
//! are read, too. Every field must be there and no other may be, lest a misspelt value pass for none; but for the comments of published vectors.

use super::witness::{Proof, StemDiff, SuffixDiff, Witness};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, IgnoredAny, Visitor},
    forward_to_deserialize_any,
};

/// An object by its fields' names. What serde derives would be read from a list of their values as well.
#[derive(Serialize)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(NoList(deserializer)).map(Self)
    }
}

struct NoList<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for NoList<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Bytes as a hexadecimal string.
struct Hex<const N: usize>([u8; N]);

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("0x{}", const_hex::encode(self.0)))
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Bytes::deserialize(deserializer)?.0;
        let found = bytes.len();
        let bytes = bytes
            .try_into()
            .map_err(|_| D::Error::custom(format_args!("{N} bytes are due, not {found}")));
        bytes.map(Self)
    }
}

/// Any number of bytes as a hexadecimal string.
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("0x{}", const_hex::encode(&self.0)))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text
            .strip_prefix("0x")
            .ok_or(D::Error::custom("hexadecimal digits begin with 0x"))?;
        // `decode` would pass over another `0x` before the digits.
        match digits.starts_with("0x") {
            true => Err(D::Error::custom("hexadecimal digits begin with one 0x")),
            false => const_hex::decode(digits)
                .map(Self)
                .map_err(D::Error::custom),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object with stateDiff and verkleProof"
)]
struct JsonWitness {
    #[serde(alias = "state_diff")]
    state_diff: Vec<Object<JsonStemDiff>>,
    #[serde(alias = "verkle_proof")]
    verkle_proof: Object<JsonProof>,
}

#[derive(Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object with stem and suffixDiffs"
)]
struct JsonStemDiff {
    stem: Hex<31>,
    #[serde(alias = "suffix_diffs")]
    suffix_diffs: Vec<Object<JsonSuffixDiff>>,
    #[serde(rename = "comment", default, skip_serializing)]
    _comment: IgnoredAny,
}

#[derive(Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object with suffix, currentValue and newValue"
)]
struct JsonSuffixDiff {
    #[serde(deserialize_with = "suffix")]
    suffix: u8,
    #[serde(alias = "current_value", deserialize_with = "Option::deserialize")]
    current_value: Option<Hex<32>>,
    #[serde(alias = "new_value", deserialize_with = "Option::deserialize")]
    new_value: Option<Hex<32>>,
}

/// A number; the oldest testnets wrote it as a string.
fn suffix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Suffix {
        Number(u8),
        Text(String),
    }
    match Suffix::deserialize(deserializer) {
        Ok(Suffix::Number(suffix)) => Ok(suffix),
        // What Rust parses may begin with a plus.
        Ok(Suffix::Text(text)) if !text.starts_with('+') => text.parse().map_err(D::Error::custom),
        _ => Err(D::Error::custom("a suffix is a number from 0 to 255")),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object, the proof"
)]
struct JsonProof {
    #[serde(alias = "other_stems")]
    other_stems: Vec<Hex<31>>,
    #[serde(alias = "depth_extension_present")]
    depth_extension_present: Bytes,
    #[serde(alias = "commitments_by_path")]
    commitments_by_path: Vec<Hex<32>>,
    d: Hex<32>,
    #[serde(alias = "ipa_proof")]
    ipa_proof: Object<JsonIpaProof>,
}

#[derive(Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    deny_unknown_fields,
    expecting = "an object with cl, cr and finalEvaluation"
)]
struct JsonIpaProof {
    cl: [Hex<32>; 8],
    cr: [Hex<32>; 8],
    #[serde(alias = "final_evaluation")]
    final_evaluation: Hex<32>,
}

impl From<JsonStemDiff> for StemDiff {
    fn from(sent: JsonStemDiff) -> Self {
        let value = |value: Option<Hex<32>>| value.map(|value| value.0);
        let suffix_diff = |Object(diff): Object<JsonSuffixDiff>| SuffixDiff {
            suffix: diff.suffix,
            current: value(diff.current_value),
            new: value(diff.new_value),
        };
        Self {
            stem: sent.stem.0,
            suffixes: sent.suffix_diffs.into_iter().map(suffix_diff).collect(),
        }
    }
}

impl<'de> Deserialize<'de> for StemDiff {
    /// An entry of the testnets' `stateDiff`, as a [`Witness`] in JSON has many: one that is long is read entry by entry.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(sent) = Object::<JsonStemDiff>::deserialize(deserializer)?;
        Ok(sent.into())
    }
}

impl Serialize for Witness {
    /// The testnets' JSON.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Proof {
            other_stems,
            depth_extension_present,
            commitments_by_path,
            multiproof,
        } = &self.proof;
        let (parts, _) = multiproof.as_chunks::<32>();
        let mut last = parts[17];
        last.reverse();
        let suffix_diff = |diff: &SuffixDiff| {
            Object(JsonSuffixDiff {
                suffix: diff.suffix,
                current_value: diff.current.map(Hex),
                new_value: diff.new.map(Hex),
            })
        };
        let stem_diff = |diff: &StemDiff| {
            Object(JsonStemDiff {
                stem: Hex(diff.stem),
                suffix_diffs: diff.suffixes.iter().map(suffix_diff).collect(),
                _comment: IgnoredAny,
            })
        };
        let json = JsonWitness {
            state_diff: self.state_diff.iter().map(stem_diff).collect(),
            verkle_proof: Object(JsonProof {
                other_stems: other_stems.iter().copied().map(Hex).collect(),
                depth_extension_present: Bytes(depth_extension_present.clone()),
                commitments_by_path: commitments_by_path.iter().copied().map(Hex).collect(),
                d: Hex(parts[0]),
                ipa_proof: Object(JsonIpaProof {
                    cl: std::array::from_fn(|i| Hex(parts[1 + i])),
                    cr: std::array::from_fn(|i| Hex(parts[9 + i])),
                    final_evaluation: Hex(last),
                }),
            }),
        };
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Witness {
    /// The testnets' JSON. Only its shape is checked; that parts fit together, and points are points, is for [`Witness::verify`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Object(JsonWitness {
            state_diff,
            verkle_proof: Object(sent),
        }) = Object::deserialize(deserializer)?;
        let Object(ipa) = sent.ipa_proof;
        let mut last = ipa.final_evaluation;
        last.0.reverse();
        let points = [sent.d].into_iter().chain(ipa.cl).chain(ipa.cr);
        let mut multiproof = [0; 576];
        for (to, part) in multiproof.chunks_mut(32).zip(points.chain([last])) {
            to.copy_from_slice(&part.0);
        }
        Ok(Self {
            state_diff: state_diff
                .into_iter()
                .map(|Object(diff)| diff.into())
                .collect(),
            proof: Proof {
                other_stems: sent.other_stems.into_iter().map(|stem| stem.0).collect(),
                depth_extension_present: sent.depth_extension_present.0,
                commitments_by_path: sent
                    .commitments_by_path
                    .into_iter()
                    .map(|point| point.0)
                    .collect(),
                multiproof,
            },
        })
    }
}
