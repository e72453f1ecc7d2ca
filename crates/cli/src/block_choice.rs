//! How a user names a block of a database: by number, by hash, or counted back from the latest.

use std::fmt;

use alloy_primitives::B256;

use crate::names::parse_hash;

/// A block of a database, as a user names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockChoice {
    /// The latest block of the database.
    Latest,
    /// The block that is this many before the latest one.
    Back(u64),
    /// The block with this number.
    Number(u64),
    /// The block with this hash.
    Hash(B256),
}

/// The forms that [`parse`](BlockChoice::parse) accepts.
const FORMS: &str =
    "a number (120), a hash (0x and 64 hex digits), 'latest', or -N for N blocks before the latest";

impl BlockChoice {
    /// Parses `latest`, `-N`, a decimal number, or a hash.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let unknown = || format!("'{text}' is not a block: give {FORMS}");
        match text {
            "latest" => return Ok(Self::Latest),
            "pending" | "safe" | "finalized" | "earliest" => {
                return Err(format!(
                    "'{text}' is a word of JSON-RPC that a database does not know: give {FORMS}"
                ));
            }
            _ => {}
        }
        if text.starts_with("0x") {
            return parse_hash(text).map(Self::Hash).map_err(|_| {
                format!(
                    "'{text}' is not a block: 0x begins a hash, which has 64 hex digits, and block numbers are decimal. Give {FORMS}"
                )
            });
        }
        let (digits, is_back) = match text.strip_prefix('-') {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(unknown());
        }
        let number = digits.parse().map_err(|_| unknown())?;
        Ok(match is_back {
            true => Self::Back(number),
            false => Self::Number(number),
        })
    }
}

impl fmt::Display for BlockChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest"),
            Self::Back(blocks) => write!(f, "-{blocks}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Hash(hash) => write!(f, "{hash}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_parsed() {
        let hash = B256::repeat_byte(0xab);
        for (text, choice) in [
            ("latest", BlockChoice::Latest),
            ("-0", BlockChoice::Back(0)),
            ("-10", BlockChoice::Back(10)),
            ("0", BlockChoice::Number(0)),
            ("18446744073709551615", BlockChoice::Number(u64::MAX)),
            (&hash.to_string(), BlockChoice::Hash(hash)),
        ] {
            assert_eq!(BlockChoice::parse(text), Ok(choice), "{text}");
            if text != "-0" {
                assert_eq!(choice.to_string(), text);
            }
        }
    }

    #[test]
    fn other_words_are_refused_with_the_forms() {
        let cut = format!("0x{}", "ab".repeat(31));
        for text in [
            "",
            "-",
            "--1",
            "+1",
            "1e3",
            "1_000",
            "head",
            "safe",
            "0x10",
            &cut,
            "-0x1",
            "18446744073709551616",
        ] {
            let error = BlockChoice::parse(text).expect_err(text);
            assert!(error.contains(text), "{error}");
        }
        let error = BlockChoice::parse("0x10").expect_err("no hash");
        assert!(error.contains("block numbers are decimal"), "{error}");
        let error = BlockChoice::parse("finalized").expect_err("a word of JSON-RPC");
        assert!(error.contains("'latest'"), "{error}");
    }
}
