//! Random histories of a small state, and a model of it in plain maps.

use std::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_state::{Account, AccountChange, SlotChange, StateChanges};
use proptest::prelude::*;

pub(crate) type Slots = BTreeMap<U256, U256>;
pub(crate) type Contents = BTreeMap<Address, (Account, Slots)>;

/// Accounts that histories touch.
pub(crate) const ACCOUNTS: u8 = 10;

/// A step of a random history over few accounts and slots, so that they meet often.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Block(Vec<Edit>),
    Flush,
    Reopen,
    Rollback(u64),
    Prune(u64),
    /// Keeps the nodes of all retained versions, and of those to come.
    KeepNodes,
    ForgetNodes,
}

#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Set {
        account: u8,
        balance: u8,
        code: usize,
        slots: Vec<(usize, u8)>,
    },
    Clear {
        account: u8,
        slots: Vec<(usize, u8)>,
    },
    Remove {
        account: u8,
    },
}

pub(crate) fn edit() -> impl Strategy<Value = Edit> {
    let slots = || prop::collection::vec((0..slots().len(), 0u8..4), 0..6);
    let code = prop_oneof![5 => Just(0usize), 1 => 0..codes().len()];
    prop_oneof![
        6 => (0..ACCOUNTS, 0u8..4, code, slots())
            .prop_map(|(account, balance, code, slots)| Edit::Set { account, balance, code, slots }),
        1 => (0..ACCOUNTS, slots()).prop_map(|(account, slots)| Edit::Clear { account, slots }),
        1 => (0..ACCOUNTS).prop_map(|account| Edit::Remove { account }),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop::collection::vec(edit(), 0..6).prop_map(Step::Block),
        1 => Just(Step::Flush),
        1 => Just(Step::Reopen),
        1 => (0u64..8).prop_map(Step::Rollback),
        1 => (1u64..8).prop_map(Step::Prune),
        1 => prop::bool::weighted(0.8).prop_map(|keep| match keep {
            true => Step::KeepNodes,
            false => Step::ForgetNodes,
        }),
    ]
}

/// Slots on both sides of every border that an embedding draws.
pub(crate) fn slots() -> [U256; 12] {
    let power = |bits: usize| U256::ONE << bits;
    [
        U256::ZERO,
        U256::ONE,
        U256::from(63),
        U256::from(64),
        U256::from(65),
        U256::from(255),
        U256::from(256),
        U256::from(1000),
        power(64),
        power(248),
        U256::MAX - U256::from(256),
        U256::MAX,
    ]
}

/// No code, code of one chunk, of some, of more than fit beside an account's fields, and of more than 256 chunks with a chunk of zeros among them; a delegation. The
/// first is none.
pub(crate) fn codes() -> [Bytes; 7] {
    let mut long = vec![0x61; 31 * 257 + 5];
    long[310..372].fill(0);
    let delegation = [&[0xef, 0x01, 0x00][..], &[7; 20]].concat();
    let [none, one, short, some, many] =
        [0, 1, 23, 100, 31 * 128 + 5].map(|length| vec![0x61; length]);
    [none, one, short, some, many, long, delegation].map(Bytes::from)
}

pub(crate) fn address(number: u8) -> Address {
    Address::with_last_byte(number)
}

/// Applies an edit to the model and records the change.
pub(crate) fn edit_model(
    contents: &mut Contents,
    changes: &mut StateChanges,
    before: &Contents,
    edit: &Edit,
) {
    let (Edit::Set { account, .. } | Edit::Clear { account, .. } | Edit::Remove { account }) = edit;
    let address = address(*account);
    let entry = changes
        .accounts
        .entry(address)
        .or_insert_with(|| AccountChange {
            old: before.get(&address).map(|(account, _)| *account),
            new: before.get(&address).map(|(account, _)| *account),
            ..Default::default()
        });
    let all = codes();
    let (clear, balance, code, edited): (bool, u8, &Bytes, &[(usize, u8)]) = match edit {
        Edit::Set {
            balance,
            code,
            slots,
            ..
        } => (false, *balance, &all[*code], slots),
        Edit::Clear { slots, .. } => (true, 1, &all[0], slots),
        Edit::Remove { .. } => {
            contents.remove(&address);
            *entry = AccountChange {
                old: entry.old,
                storage_cleared: true,
                ..Default::default()
            };
            return;
        }
    };
    let new = Account {
        nonce: 1,
        balance: U256::from(balance),
        code_hash: match code.is_empty() {
            true => KECCAK256_EMPTY,
            false => keccak256(code),
        },
    };
    if !code.is_empty() {
        changes.codes.insert(new.code_hash, code.clone());
    }
    entry.new = Some(new);
    let (model, model_slots) = contents
        .entry(address)
        .or_insert_with(|| (new, Slots::new()));
    *model = new;
    if clear {
        entry.storage_cleared = true;
        entry.slots.clear();
        model_slots.clear();
    }
    for (slot, value) in edited {
        let (slot, value) = (slots()[*slot], U256::from(*value));
        let old = match entry.storage_cleared {
            true => U256::ZERO,
            false => before
                .get(&address)
                .and_then(|(_, slots)| slots.get(&slot))
                .copied()
                .unwrap_or_default(),
        };
        entry.slots.insert(slot, SlotChange { old, new: value });
        match value.is_zero() {
            true => model_slots.remove(&slot),
            false => model_slots.insert(slot, value),
        };
    }
}
