//! What a proof is, and what it shows.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io::Write;

use alloy_primitives::{Address, B256, U256};
use arbor_accounts::{Account, AccountSlots};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::two_trees::TwoPlaces;

/// Something that shows what accounts, slots or leaves hold under a root, present or absent.
pub trait Proof: Any + fmt::Debug + Send + Sync {
    /// The form in which it is written.
    fn form(&self) -> &'static ProofForm;

    /// The accounts and slots that it names; none where it has keys alone.
    fn names(&self) -> Vec<AccountSlots>;

    /// Holds the proof against a root.
    ///
    /// # Errors
    /// What is no proof at all: parts that do not fit together.
    fn verify(&self, root: B256) -> Result<Verdict, Malformed>;

    /// Writes the proof as JSON that names its form, in lines for a reader if `pretty`.
    ///
    /// # Errors
    /// Those of the writer.
    fn write_json(&self, out: &mut dyn Write, pretty: bool) -> serde_json::Result<()>;

    /// The proof in its binary form (SSZ); `None` if it has none.
    fn to_bytes(&self) -> Option<Vec<u8>> {
        None
    }
}

impl dyn Proof {
    /// Returns this proof as one of a given type; `None` if it is another.
    pub fn downcast<T: Proof>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// Turns this proof into one of a given type; `None` if it is another.
    pub fn into<T: Proof>(self: Box<Self>) -> Option<T> {
        let proof: Box<dyn Any> = self;
        Some(*proof.downcast().ok()?)
    }
}

/// Whether a well-formed proof holds under a root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does, and shows this.
    True(Claims),
    /// It does not, for this reason.
    False(String),
}

impl Verdict {
    /// The verdict on a proof that shows accounts and nothing else, or does not hold.
    pub(crate) fn of_accounts(shown: Result<Vec<ProvenAccount>, impl ToString>) -> Self {
        Self::of(shown.map(|accounts| Claims {
            accounts,
            ..Claims::default()
        }))
    }

    /// The verdict on a proof that shows leaves and nothing else, or does not hold.
    pub(crate) fn of_leaves(shown: Result<Vec<ProvenLeaf>, impl ToString>) -> Self {
        Self::of(shown.map(|leaves| Claims {
            leaves,
            ..Claims::default()
        }))
    }

    fn of(shown: Result<Claims, impl ToString>) -> Self {
        match shown {
            Ok(claims) => Self::True(claims),
            Err(why) => Self::False(why.to_string()),
        }
    }
}

/// What a proof that holds shows.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Claims {
    /// Accounts and slots by name. Where keys alone are proven these are read as the form of the proof says, which no root
    /// shows: see [`VerifyKind::account_of`](crate::VerifyKind::account_of).
    pub accounts: Vec<ProvenAccount>,
    /// Leaves by key, where the proof has no names.
    pub leaves: Vec<ProvenLeaf>,
    /// The keys between which the leaves are all that there are.
    pub range: Option<Range>,
    /// Parts of keys whose absence is shown only if the proof was made honestly, in hexadecimal. Who does not trust the prover takes a proof with any for false.
    pub doubtful: Vec<String>,
    /// Values beside the proof of which it says nothing.
    pub unproven: usize,
    /// Which tree has each account and slot, if the state is on its way from one tree to another.
    pub places: Option<TwoPlaces>,
}

impl Claims {
    /// What is shown of an account; `None` if that is nothing. A proof that holds may be of other accounts than the one that was asked for.
    pub fn account(&self, address: Address) -> Option<&ProvenAccount> {
        self.accounts
            .iter()
            .find(|account| account.address == address)
    }

    /// What is shown of a key; `None` if that is nothing.
    pub fn leaf(&self, key: B256) -> Option<&ProvenLeaf> {
        self.leaves.iter().find(|leaf| leaf.key == key)
    }
}

/// An account that is proven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProvenAccount {
    /// Whose it is.
    pub address: Address,
    /// Its fields; `None` if it does not exist.
    pub account: Option<Account>,
    /// Slots and values; `None` for a slot that was never written, where the tree tells that from zero.
    pub slots: Vec<(U256, Option<U256>)>,
}

impl ProvenAccount {
    /// The value of a slot, zero if it was never written; `None` if nothing is shown of it.
    pub fn slot(&self, slot: U256) -> Option<U256> {
        let shown = self.slots.iter().find(|(shown, _)| *shown == slot);
        shown.map(|(_, value)| value.unwrap_or_default())
    }
}

/// A leaf that is proven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProvenLeaf {
    /// Its key, most significant byte first.
    pub key: B256,
    /// Its index, where the tree gives leaves one.
    pub index: Option<u64>,
    /// Its value; `None` if there is no such leaf.
    pub value: Option<B256>,
}

/// Keys from a first to a last one, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first key.
    pub from: B256,
    /// The last key.
    pub to: B256,
}

/// Why something is no proof at all.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Malformed(Box<dyn Error + Send + Sync>);

impl Malformed {
    /// An error of the tree whose proof it should be.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// Writes what a proof has beside the name of its form.
pub(crate) fn write_with_form(
    form: &ProofForm,
    proof: &impl Serialize,
    out: &mut dyn Write,
    pretty: bool,
) -> serde_json::Result<()> {
    #[derive(Serialize)]
    struct WithForm<'a, T> {
        form: &'a str,
        #[serde(flatten)]
        proof: &'a T,
    }
    let form = form.name;
    let proof = WithForm { form, proof };
    match pretty {
        true => serde_json::to_writer_pretty(out, &proof),
        false => serde_json::to_writer(out, &proof),
    }
}

/// One way to write proofs.
#[derive(Debug)]
pub struct ProofForm {
    /// The tree and the version of the form, as a file names it.
    pub name: &'static str,
    /// Fields by which files that name no form are known to have this one; none if all files name it.
    pub marks: &'static [&'static str],
    /// Marks of other forms that files of this form have too.
    pub shared: &'static [&'static str],
    /// Reads JSON, from which the name of the form was taken.
    pub decode: fn(Value) -> Result<Box<dyn Proof>, WrongField>,
    /// Reads the binary form, if there is one.
    pub from_bytes: Option<FromBytes>,
}

impl ProofForm {
    /// The form of a type that is read from JSON whose name is in every file.
    pub(crate) const fn named<T: Proof + DeserializeOwned>(name: &'static str) -> Self {
        Self {
            name,
            marks: &[],
            shared: &[],
            decode: |file| Ok(Box::new(fields::<T>(file)?)),
            from_bytes: None,
        }
    }
}

/// Reads a proof from bytes.
pub type FromBytes = fn(&[u8]) -> Result<Box<dyn Proof>, Malformed>;

/// A field that is not what its form promises.
pub type WrongField = serde_path_to_error::Error<serde_json::Error>;

/// Takes a value apart, and tells the place of what is wrong.
pub(crate) fn fields<T: DeserializeOwned>(value: Value) -> Result<T, WrongField> {
    serde_path_to_error::deserialize(value)
}
