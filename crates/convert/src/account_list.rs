//! All accounts of a state in memory, from a file of any form that names them.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::Path;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY};
use arbor_state::{
    AccountOrder, AccountSource, BY_KECCAK, FullAccount, ReadError, SortedAccounts, state_root,
};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::ConvertError;
use crate::dump::Dump;
use crate::dump_line::{DumpLine, Fields};
use crate::input::Input;

/// Bytes of JSON that is one object. Ten million accounts have 1 GB.
const LONGEST: u64 = 1 << 30;
/// Bytes among which the first line of a dump ends.
const HEAD: u64 = 1 << 12;

/// All accounts of a state, in no order, with their codes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountList {
    /// The accounts.
    pub accounts: Vec<FullAccount>,
    /// Codes by their Keccak-256.
    pub codes: BTreeMap<B256, Bytes>,
    /// The Merkle-Patricia root that the file has.
    root: Option<B256>,
}

impl AccountList {
    /// Reads a file, plain or compressed with gzip or zstd, or standard input if the path is `-`.
    ///
    /// The file is a dump in lines, or one JSON object: of a genesis (`alloc`), of a dump
    /// (`accounts`), of a test (`pre`), or of accounts by their addresses.
    ///
    /// # Errors
    /// An input that cannot be read, is empty or has another form; a dump of hashed keys; an
    /// account without its code, or with code of another hash; an account or a slot that is listed
    /// twice; accounts that do not have the Merkle-Patricia root in the file.
    pub fn read(path: &Path) -> Result<Self, ConvertError> {
        let mut input = Input::open(path).map_err(ConvertError::file(path))?;
        let mut begin = Vec::new();
        let read = input.by_ref().take(HEAD).read_to_end(&mut begin);
        read.map_err(ConvertError::file(path))?;
        let is_dump = is_head_of_dump(&begin);
        input.unread(begin);
        if is_dump {
            return Self::of_dump(Dump::read(path, input)?);
        }
        let mut text = Vec::new();
        let read = input.take(LONGEST + 1).read_to_end(&mut text);
        read.map_err(ConvertError::file(path))?;
        Self::from_json(&text)
    }

    /// Reads the JSON object of a genesis, of a dump or of accounts by their addresses.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does.
    pub fn from_json(text: &[u8]) -> Result<Self, ConvertError> {
        if text.trim_ascii().is_empty() {
            return Err(ConvertError::NoAccounts("it is empty".to_owned()));
        }
        if text.len() as u64 > LONGEST {
            let why = format!("it has more than {LONGEST} bytes: give a dump in lines");
            return Err(ConvertError::NoAccounts(why));
        }
        let object: Object = serde_json::from_slice(text)
            .map_err(|error| ConvertError::NoAccounts(why_no_object(&error)))?;
        let Some(lines) = object.lines else {
            let why = "it has none of the fields \"alloc\", \"accounts\" and \"pre\", and no field \
                       whose name is an address";
            return Err(ConvertError::NoAccounts(why.to_owned()));
        };
        let mut list = Self {
            root: object.root,
            ..Self::default()
        };
        lines.into_iter().for_each(|line| list.add(line));
        list.check()
    }

    /// Reads all accounts of a state.
    ///
    /// # Errors
    /// The state cannot be read.
    pub fn of(source: &dyn AccountSource) -> Result<Self, ReadError> {
        let mut list = Self::default();
        for account in source.full(None)? {
            let account = account?;
            let hash = account.account.code_hash;
            if hash != KECCAK256_EMPTY && !list.codes.contains_key(&hash) {
                list.codes.insert(hash, source.code_bytes(hash)?);
            }
            list.accounts.push(account);
        }
        Ok(list)
    }

    fn of_dump(dump: Dump) -> Result<Self, ConvertError> {
        let mut list = Self {
            root: dump.state_root(),
            ..Self::default()
        };
        let mut lines = dump.into_lines();
        while let Some(line) = lines.line()? {
            list.add(line);
        }
        list.check()
    }

    fn add(&mut self, line: DumpLine) {
        self.codes.extend(line.code);
        self.accounts.push(line.account);
    }

    /// Checks that no account and no slot is there twice, and that the accounts have the root in
    /// the file.
    fn check(self) -> Result<Self, ConvertError> {
        let sorted = self.sorted(&BY_KECCAK)?;
        if let Some(expected) = self.root {
            let actual = state_root(&sorted)?;
            if actual != expected {
                let why = "accounts or slots are missing or were changed".to_owned();
                return Err(ConvertError::Root {
                    expected,
                    actual,
                    why,
                });
            }
        }
        drop(sorted);
        Ok(self)
    }

    /// The accounts in an order, as a tree is loaded with them.
    ///
    /// # Errors
    /// An account or a slot that is listed twice.
    pub fn sorted(&self, order: &'static AccountOrder) -> Result<SortedAccounts<'_>, ReadError> {
        let code = |hash| {
            let code = self.codes.get(&hash).cloned();
            code.ok_or(ReadError::MissingCode(hash))
        };
        let accounts = self.accounts.iter().cloned().map(Ok);
        SortedAccounts::of(order, accounts, code, usize::MAX)
    }
}

/// Says why a JSON object cannot be read.
fn why_no_object(error: &serde_json::Error) -> String {
    match error.is_eof() {
        true => format!(
            "it ends in the middle, at line {}: it was cut, or is not written to its end. Write or copy it again",
            error.line()
        ),
        false => error.to_string(),
    }
}

/// Whether the first line is that of a dump, which has a root and no accounts.
fn is_head_of_dump(begin: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "root")]
        _root: IgnoredAny,
        accounts: Option<IgnoredAny>,
    }
    let line = begin.split(|byte| *byte == b'\n').next();
    let head = line.and_then(|line| serde_json::from_slice::<Head>(line).ok());
    head.is_some_and(|head| head.accounts.is_none())
}

/// The accounts of a JSON object, and the root beside them.
struct Object {
    lines: Option<Vec<DumpLine>>,
    /// The Merkle-Patricia root of a dump.
    root: Option<B256>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OfObject;
        impl<'de> Visitor<'de> for OfObject {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the accounts of a state")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Object, A::Error> {
                let (mut named, mut bare, mut root): (Option<Accounts>, _, _) =
                    (None, Vec::new(), None);
                while let Some(name) = fields.next_key::<&str>()? {
                    match name {
                        "alloc" | "accounts" | "pre" => {
                            let accounts = fields.next_value()?;
                            if named.replace(accounts).is_some() {
                                let why = format!("{name:?} is a second list of accounts");
                                return Err(A::Error::custom(why));
                            }
                        }
                        // The root of a dump is that of Merkle-Patricia.
                        "root" => root = fields.next_value::<Option<&str>>()?,
                        "population" => {
                            let why = "it counts a \"population\" of accounts, which it does not \
                                       list: replay the chain with --to 0, and give the database";
                            return Err(A::Error::custom(why));
                        }
                        name if is_account(name) => bare.push(account(name, &mut fields)?),
                        _ => drop(fields.next_value::<IgnoredAny>()?),
                    }
                }
                let root = root.and_then(|root| root.parse().ok());
                let lines = match named {
                    Some(Accounts(lines)) => Some(lines),
                    None => (!bare.is_empty()).then_some(bare),
                };
                Ok(Object { lines, root })
            }
        }
        from.deserialize_map(OfObject)
    }
}

/// Whether a name can be that of an account: an address, or a hash of one.
fn is_account(name: &str) -> bool {
    let digits = name.strip_prefix("0x").unwrap_or(name);
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    name.starts_with(NO_PREIMAGE) || matches!(digits.len(), 40 | 64) && is_hexadecimal
}

/// geth writes this, a hash and a bracket instead of an address whose preimage it does not have.
const NO_PREIMAGE: &str = "pre(";

/// Reads the account with this name.
fn account<'de, A: MapAccess<'de>>(name: &str, map: &mut A) -> Result<DumpLine, A::Error> {
    let Ok(address) = name.parse::<Address>() else {
        return Err(A::Error::custom(match is_account(name) {
            true => format!(
                "the account {name:.80} has a hash instead of an address: the keys of this dump \
                 are hashed. Give one with addresses (geth dump with preimages, arbor dump)"
            ),
            false => format!("{name:.70?} is not an address"),
        }));
    };
    let fields: Fields<'de> = map.next_value()?;
    DumpLine::of_account(address, fields).map_err(A::Error::custom)
}

/// Accounts by their addresses.
struct Accounts(Vec<DumpLine>);

impl<'de> Deserialize<'de> for Accounts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OfMap;
        impl<'de> Visitor<'de> for OfMap {
            type Value = Accounts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of accounts by their addresses")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Accounts, A::Error> {
                let mut accounts = Vec::new();
                while let Some(name) = map.next_key::<&str>()? {
                    accounts.push(account(name, &mut map)?);
                }
                Ok(Accounts(accounts))
            }
        }
        from.deserialize_map(OfMap)
    }
}
