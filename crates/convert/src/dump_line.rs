//! A line of a dump: an account as geth and reth write it.
//!
//! | writer | names | numbers |
//! |---|---|---|
//! | `geth dump --iterative`, `arbor dump` | `address`, slot numbers | balance decimal, values hexadecimal without 0x |
//! | `geth snapshot dump` | `key`, hashes of slot numbers | balance decimal, values as RLP |
//! | `reth` (`init-state`) | `address`, slot numbers | all hexadecimal with 0x |

use std::fmt;

use crate::naming::HashedAccount;
use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, FullAccount};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What a line has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DumpLine {
    pub(crate) account: FullAccount,
    /// The code and its hash; `None` for an account without code.
    pub(crate) code: Option<(B256, Bytes)>,
    /// The root of the account's storage, if the line has it.
    pub(crate) storage_root: Option<B256>,
}

/// The fields of a line that a conversion reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fields<'a> {
    #[serde(borrow, default)]
    address: Option<&'a str>,
    #[serde(borrow, default)]
    key: Option<&'a str>,
    #[serde(borrow)]
    balance: Word<'a>,
    #[serde(borrow, default)]
    nonce: Option<Word<'a>>,
    #[serde(borrow, default)]
    code_hash: Option<&'a str>,
    #[serde(borrow, default)]
    code: Option<&'a str>,
    #[serde(borrow, default)]
    root: Option<&'a str>,
    #[serde(borrow, default)]
    storage: Option<Slots<'a>>,
}

/// A number, or a text that has one.
enum Word<'a> {
    Number(u64),
    Text(&'a str),
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfWord;
        impl<'de> Visitor<'de> for OfWord {
            type Value = Word<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number below 2^64, or a text with one below 2^256")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Word::Number(number))
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Word::Text(text))
            }
        }
        deserializer.deserialize_any(OfWord)
    }
}

/// Slots in the order of the line, with those that are listed twice.
struct Slots<'a>(Vec<(&'a str, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Slots<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Slots<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of slots")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut slots = Vec::new();
                while let Some(slot) = map.next_entry()? {
                    slots.push(slot);
                }
                Ok(Slots(slots))
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Slots(Vec::new()))
            }
        }
        deserializer.deserialize_map(OfMap)
    }
}

/// Says why a line, or another text in JSON that is one line, cannot be read.
pub(crate) fn why_no_json(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return CUT.to_owned();
    }
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    format!("at byte {} of the line: {text}", error.column())
}

/// Said of a line that ends before its JSON does.
const CUT: &str = "it ends in the middle: the dump was cut there, or is not written to its end. Write or copy it again";

impl DumpLine {
    /// Reads a line.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        let fields: Fields<'_> =
            serde_json::from_slice(line).map_err(|error| why_no_json(&error))?;
        let Some(address) = fields.address else {
            return Err(match fields.key {
                Some(key) => format!(
                    "the account with the hashed address {key:.70} has no address: the dump lacks its preimage"
                ),
                None => "the account has no address".to_owned(),
            });
        };
        let address: Address =
            (address.parse()).map_err(|_| format!("{address:.70?} is not an address"))?;
        Self::of_account(address, fields)
    }

    /// Reads the fields of the account with this address.
    pub(crate) fn of_account(address: Address, fields: Fields<'_>) -> Result<Self, String> {
        let named = |why: String| format!("account {address:#x}: {why}");
        let balance = fields
            .balance
            .number()
            .map_err(|why| named(format!("balance {why}")))?;
        let nonce = fields.nonce.as_ref().map_or(Ok(U256::ZERO), Word::number);
        let nonce = nonce.map_err(|why| named(format!("nonce {why}")))?;
        let nonce =
            u64::try_from(nonce).map_err(|_| named(format!("nonce {nonce} is too large")))?;
        let code = fields.code().map_err(named)?;
        let storage_root = fields.storage_root();
        let slots = fields.storage.map_or_else(Vec::new, |slots| slots.0);
        let slots = slots.into_iter().map(|(slot, value)| {
            let number = parse_hex(slot).ok_or_else(|| format!("slot {slot:.70?} is not a number"));
            let value = parse_hex(value)
                .ok_or_else(|| format!("value {value:.70?} of slot {slot:.70} is not a number"));
            Ok((number?, value?))
        });
        let slots: Result<Vec<(U256, U256)>, String> = slots.collect();
        let mut slots = slots.map_err(named)?;
        slots.retain(|(_, value)| !value.is_zero());
        Ok(Self {
            account: FullAccount {
                address,
                account: Account {
                    nonce,
                    balance,
                    code_hash: code.as_ref().map_or(KECCAK256_EMPTY, |(hash, _)| *hash),
                },
                slots,
            },
            code,
            storage_root,
        })
    }
}

/// What a line of a dump of hashed keys has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HashedLine {
    pub(crate) account: HashedAccount,
    /// The code and its hash; `None` for an account without code.
    pub(crate) code: Option<(B256, Bytes)>,
    /// The root of the account's storage, if the line has it.
    pub(crate) storage_root: Option<B256>,
}

/// Reads a line of hashed keys, as `geth snapshot dump` writes it: values are RLP.
pub(crate) fn parse_hashed(line: &[u8]) -> Result<HashedLine, String> {
    let fields: Fields<'_> = serde_json::from_slice(line).map_err(|error| why_no_json(&error))?;
    if let Some(address) = fields.address {
        return Err(format!(
            "the account {address:.70} has its address: --preimages is for dumps of hashed keys (geth snapshot dump)"
        ));
    }
    let key = fields.key.ok_or("the account has no hashed address")?;
    let key: B256 = (key.parse()).map_err(|_| format!("{key:.70?} is not a hash"))?;
    let named = |why: String| format!("account with hashed address {key}: {why}");
    let balance = fields.balance.number();
    let balance = balance.map_err(|why| named(format!("balance {why}")))?;
    let nonce = fields.nonce.as_ref().map_or(Ok(U256::ZERO), Word::number);
    let nonce = nonce.map_err(|why| named(format!("nonce {why}")))?;
    let nonce = u64::try_from(nonce).map_err(|_| named(format!("nonce {nonce} is too large")))?;
    let code = fields.code().map_err(named)?;
    let storage_root = fields.storage_root();
    let slots = fields.storage.map_or_else(Vec::new, |slots| slots.0);
    let slots = slots.into_iter().map(|(slot, value)| {
        let hash: Result<B256, _> = slot.parse();
        let hash = hash.map_err(|_| format!("slot {slot:.70?} is not a hash"))?;
        let value = parse_rlp(value).ok_or_else(|| {
            format!("value {value:.70?} of slot {slot} is not the RLP of a number")
        })?;
        Ok((hash, value))
    });
    let slots: Result<Vec<(B256, U256)>, String> = slots.collect();
    let account = HashedAccount {
        key,
        account: Account {
            nonce,
            balance,
            code_hash: code.as_ref().map_or(KECCAK256_EMPTY, |(hash, _)| *hash),
        },
        slots: slots.map_err(named)?,
    };
    Ok(HashedLine {
        account,
        code,
        storage_root,
    })
}

/// Parses the RLP of a number that is not zero, in hexadecimal digits.
fn parse_rlp(text: &str) -> Option<U256> {
    let bytes = alloy_primitives::hex::decode(text).ok()?;
    let number = match bytes.split_first()? {
        (byte @ 1..=0x7f, []) => return Some(U256::from(*byte)),
        (head @ 0x81..=0xa0, number) if number.len() == usize::from(head - 0x80) => number,
        _ => return None,
    };
    let is_short = number[0] == 0 || number.len() == 1 && number[0] < 0x80;
    (!is_short).then(|| U256::from_be_slice(number))
}

impl Fields<'_> {
    /// The root of the account's storage. geth writes 32 bytes, in hexadecimal or as base64 in old versions.
    fn storage_root(&self) -> Option<B256> {
        self.root.and_then(|root| root.parse().ok())
    }

    /// The code, which has the hash that the line names.
    fn code(&self) -> Result<Option<(B256, Bytes)>, String> {
        let code: Bytes = match self.code {
            None => Bytes::new(),
            Some(code) => code
                .parse()
                .map_err(|_| "its code is not hexadecimal".to_owned())?,
        };
        let hash = match code.is_empty() {
            true => KECCAK256_EMPTY,
            false => keccak256(&code),
        };
        if let Some(wanted) = self.code_hash {
            let wanted: B256 =
                (wanted.parse()).map_err(|_| format!("code hash {wanted:.70?} is not a hash"))?;
            if wanted != hash && wanted != B256::ZERO {
                return Err(match code.is_empty() {
                    true => format!(
                        "its code, with the hash {wanted}, is missing: dump without --nocode"
                    ),
                    false => format!("its code has the hash {hash}, and the line names {wanted}"),
                });
            }
        }
        Ok((!code.is_empty()).then_some((hash, code)))
    }
}

impl Word<'_> {
    fn number(&self) -> Result<U256, String> {
        match self {
            Self::Number(number) => Ok(U256::from(*number)),
            Self::Text(text) => {
                let number = match text.strip_prefix("0x") {
                    Some(_) => parse_hex(text),
                    None => U256::from_str_radix(text, 10)
                        .ok()
                        .filter(|_| !text.is_empty()),
                };
                number.ok_or_else(|| format!("{text:.90?} is not a number below 2^256"))
            }
        }
    }
}

/// Parses hexadecimal digits, with 0x or without; no digits are zero.
fn parse_hex(text: &str) -> Option<U256> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    match digits.is_empty() {
        true => Some(U256::ZERO),
        false if digits.len() <= 64 && !digits.contains('_') => {
            U256::from_str_radix(digits, 16).ok()
        }
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0xae2d8f8f4a49a9a9ff8ecff4b3d5d5f5e9ca2e0f2d2f2f1b3e1a3b5b9d8c7f60";

    fn parsed(line: &str) -> Result<DumpLine, String> {
        DumpLine::parse(line.as_bytes())
    }

    #[test]
    fn every_writer_is_understood() {
        let code = "0x6001";
        let hash = keccak256([0x60, 0x01]);
        let address = format!("0x{}", "12".repeat(20));
        let slot = format!("0x{:064x}", 5);
        let geth = format!(
            r#"{{"balance":"1000","nonce":3,"root":"{HASH}","codeHash":"{hash}","code":"{code}","storage":{{"{slot}":"0102"}},"address":"{address}","key":"{HASH}"}}"#
        );
        let value = format!("0x{:064x}", 0x102);
        let reth = format!(
            r#"{{"balance":"0x3e8","nonce":"0x3","code":"{code}","storage":{{"{slot}":"{value}"}},"address":"{address}"}}"#
        );
        let expected = DumpLine {
            account: FullAccount {
                address: Address::repeat_byte(0x12),
                account: Account {
                    nonce: 3,
                    balance: U256::from(1_000),
                    code_hash: hash,
                },
                slots: vec![(U256::from(5), U256::from(0x102))],
            },
            code: Some((hash, Bytes::from_static(&[0x60, 0x01]))),
            storage_root: None,
        };
        let with_root = DumpLine {
            storage_root: HASH.parse().ok(),
            ..expected.clone()
        };
        assert_eq!(parsed(&geth), Ok(with_root));
        assert_eq!(parsed(&reth), Ok(expected));
        let plain =
            format!(r#"{{"balance":"0","address":"{address}","storage":null,"code":"0x"}}"#);
        let plain = parsed(&plain).map(|line| (line.account.account, line.code));
        let empty = Account {
            nonce: 0,
            balance: U256::ZERO,
            code_hash: KECCAK256_EMPTY,
        };
        assert_eq!(plain, Ok((empty, None)));
    }

    #[test]
    fn hashed_keys_have_values_in_rlp() {
        let line = |value: &str| {
            let line = format!(
                r#"{{"balance":"5","nonce":1,"key":"{HASH}","storage":{{"{HASH}":"{value}"}}}}"#
            );
            parse_hashed(line.as_bytes()).map(|line| line.account.slots[0].1)
        };
        let max = format!("a0{}", "ff".repeat(32));
        for (text, value) in [
            ("05", U256::from(5)),
            ("8180", U256::from(0x80)),
            ("820102", U256::from(0x102)),
            (&max, U256::MAX),
        ] {
            assert_eq!(line(text), Ok(value));
        }
        for text in ["", "00", "80", "8105", "820001", "8201", "0102", "a1", "zz"] {
            assert!(
                line(text).expect_err(text).contains("not the RLP"),
                "{text}"
            );
        }
        let named = r#"{"balance":"5","address":"0x12"}"#;
        assert!(parse_hashed(named.as_bytes()).is_err());
    }

    #[test]
    fn what_is_missing_is_named() {
        let address = format!("0x{}", "12".repeat(20));
        for (line, why) in [
            (
                format!(r#"{{"balance":"1","key":"{HASH}"}}"#),
                "lacks its preimage",
            ),
            (r#"{"balance":"1"}"#.to_owned(), "no address"),
            (
                format!(r#"{{"balance":"1","address":"{address}","codeHash":"{HASH}"}}"#),
                "without --nocode",
            ),
            (
                format!(
                    r#"{{"balance":"1","address":"{address}","codeHash":"{HASH}","code":"0x01"}}"#
                ),
                "the line names",
            ),
            (
                format!(r#"{{"balance":"-1","address":"{address}"}}"#),
                "balance \"-1\"",
            ),
            (
                format!(r#"{{"balance":"1","nonce":"0x10000000000000000","address":"{address}"}}"#),
                "too large",
            ),
            (
                format!(r#"{{"balance":"1","address":"{address}","storage":{{"0x1":"zz"}}}}"#),
                "value \"zz\"",
            ),
            (
                format!(r#"{{"balance":"1","address":"{address}","storage":{{"x":"1"}}}}"#),
                "slot \"x\"",
            ),
        ] {
            let error = parsed(&line).expect_err(&line);
            assert!(error.contains(why), "{error}");
        }
    }
}
