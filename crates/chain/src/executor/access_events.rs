//! What a transaction has touched of a Verkle tree, and what touching more costs (EIP-4762, "Witness gas costs").

use std::collections::{BTreeSet, HashMap};

use alloy_primitives::Address;
use arbor_verify::verkle::StemName;

use crate::genesis::WitnessGas;

/// WITNESS_BRANCH_COST: the first leaf of a stem.
const STEM: u64 = 1900;
/// WITNESS_CHUNK_COST: a leaf.
const LEAF: u64 = 200;
/// SUBTREE_EDIT_COST: the first leaf of a stem that changes.
const STEM_CHANGED: u64 = 3000;
/// CHUNK_EDIT_COST: a leaf that changes.
const LEAF_CHANGED: u64 = 500;
/// CHUNK_FILL_COST: a leaf that comes to be.
const LEAF_FILLED: u64 = 6200;

/// A leaf by what it is named after: its stem's name, and its suffix.
pub type LeafName = (StemName, u8);

/// What happens to a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Access,
    Write { absent: bool },
}

/// How far a stem or a leaf has been paid for in this transaction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Paid {
    Access,
    Write,
}

/// What has been touched. None of it is forgotten when what touched it is reverted.
pub(super) struct AccessEvents {
    pub(super) text: WitnessGas,
    stems: HashMap<StemName, Paid>,
    leaves: HashMap<LeafName, Paid>,
    /// All leaves of the block's transactions so far.
    touched: BTreeSet<LeafName>,
}

impl AccessEvents {
    pub(super) fn new(text: WitnessGas) -> Self {
        Self {
            text,
            stems: HashMap::new(),
            leaves: HashMap::new(),
            touched: BTreeSet::new(),
        }
    }

    pub(super) fn into_touched(self) -> BTreeSet<LeafName> {
        self.touched
    }

    /// Begins a transaction: sender and recipient are touched without being paid for, as 21,000 gas is.
    pub(super) fn begin(&mut self, sender: Address, recipient: Option<Address>, has_value: bool) {
        self.stems.clear();
        self.leaves.clear();
        let fields = Fields::of(self.text);
        for account in [Some(sender), recipient].into_iter().flatten() {
            for suffix in fields.all {
                self.note(header(account, *suffix), Event::Access);
            }
        }
        let write = Event::Write { absent: false };
        for suffix in fields.sender_changes {
            self.note(header(sender, *suffix), write);
        }
        if let (Some(recipient), true) = (recipient, has_value) {
            self.note(header(recipient, fields.balance), write);
        }
    }

    /// What an event costs now.
    pub(super) fn price(&self, leaf: LeafName, event: Event) -> u64 {
        let (stem, leaf) = (self.stems.get(&leaf.0), self.leaves.get(&leaf));
        let mut price = 0;
        price += if stem.is_none() { STEM } else { 0 };
        price += if leaf.is_none() { LEAF } else { 0 };
        if let Event::Write { absent } = event {
            let fills = absent && self.text == WitnessGas::Eip4762;
            price += if stem < Some(&Paid::Write) {
                STEM_CHANGED
            } else {
                0
            };
            price += match leaf < Some(&Paid::Write) {
                true if fills => LEAF_CHANGED + LEAF_FILLED,
                true => LEAF_CHANGED,
                false => 0,
            };
        }
        price
    }

    /// Takes an event for paid.
    pub(super) fn note(&mut self, leaf: LeafName, event: Event) {
        let paid = match event {
            Event::Access => Paid::Access,
            Event::Write { .. } => Paid::Write,
        };
        for known in [
            self.stems.entry(leaf.0).or_insert(paid),
            self.leaves.entry(leaf).or_insert(paid),
        ] {
            *known = paid.max(*known);
        }
        self.touched.insert(leaf);
    }
}

/// A leaf of an account's own fields.
pub(super) fn header(address: Address, suffix: u8) -> LeafName {
    (StemName::header(address), suffix)
}

/// Which of an account's leaves are touched when.
pub(super) struct Fields {
    pub(super) all: &'static [u8],
    /// What a transaction changes of its sender.
    sender_changes: &'static [u8],
    pub(super) balance: u8,
    /// What a call reads of whom it calls.
    pub(super) called: &'static [u8],
    pub(super) code_size: u8,
    /// `EXTCODEHASH`.
    pub(super) code_hash: Option<u8>,
    /// What else is written where value goes to no account.
    pub(super) new_account: &'static [u8],
    /// What is written before init code runs, and after it.
    pub(super) creation_begins: &'static [u8],
    pub(super) creation_ends: &'static [u8],
}

impl Fields {
    pub(super) const fn of(text: WitnessGas) -> Self {
        let all = text.layout().suffixes();
        match text {
            WitnessGas::Eip4762 => Self {
                all,
                sender_changes: &[0],
                balance: 0,
                called: &[0],
                code_size: 0,
                code_hash: Some(1),
                new_account: &[1],
                creation_begins: all,
                creation_ends: &[],
            },
            WitnessGas::Kaustinen6 => Self {
                all,
                sender_changes: &[1, 2],
                balance: 1,
                called: &[0, 4],
                code_size: 4,
                code_hash: None,
                new_account: &[],
                creation_begins: &[0, 2, 3],
                creation_ends: all,
            },
        }
    }
}
