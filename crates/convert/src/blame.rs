//! What is wrong if a target has not the source's state root, and its comparison with the sorted files shows nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use alloy_primitives::{B256, U256};
use arbor_state::{
    AccountSource, BY_KECCAK, FullAccount, Historical, KeyedAccount, KeyedSlot, ReadError,
    StateView, storage_root,
};
use rayon::prelude::*;

use crate::ConvertError;
use crate::compare::{Comparison, Difference};
use crate::counts::Counts;
use crate::dump::{Dump, Lines};
use crate::progress::Watch;

/// The target has what the source has, and not the root that the source has.
pub(crate) const SOURCE_IS_DAMAGED: &str = "the target has all accounts and slots of the source and no others, so the source is damaged. `arbor verify` says where";

/// Looks up every account and slot of a source in the target by its name. The order of either does not matter, and no file of the
/// conversion is read. What the target alone has is named if the comparison with the `sorted` files has named it, and else counted.
pub(crate) fn compare_by_name(
    source: &dyn AccountSource,
    target: &Historical<'_>,
    sorted: &Comparison,
    watch: &Watch<'_>,
) -> Result<Comparison, ConvertError> {
    let all = Mutex::new((Comparison::default(), Counts::default(), Counts::default()));
    let surplus = sorted.differences.iter().filter_map(|difference| {
        let name = match difference {
            Difference::AccountSurplus(address) => (*address, None),
            Difference::Slot {
                address,
                slot,
                source,
                ..
            } if source.is_zero() => (*address, Some(*slot)),
            _ => return None,
        };
        Some((name, difference.clone()))
    });
    let surplus: BTreeMap<_, _> = surplus.collect();
    let looks_for_surplus = !surplus.is_empty();
    let surplus = Mutex::new(surplus);
    (0..=u8::MAX).into_par_iter().try_for_each(|first| {
        watch.check()?;
        let (mut found, mut counts) = (Comparison::default(), Counts::default());
        for account in source.full(Some(first))? {
            let account = account?;
            counts.accounts += 1;
            counts.slots += account.slots.len() as u64;
            look_up(&account, target, &mut found)?;
            if !looks_for_surplus {
                continue;
            }
            let mut surplus = surplus.lock().unwrap_or_else(PoisonError::into_inner);
            surplus.retain(|(address, slot), _| {
                *address != account.address
                    || slot
                        .is_some_and(|slot| account.slots.iter().all(|(there, _)| *there != slot))
            });
        }
        let mut of_target = Counts::default();
        for account in target.full(Some(first))? {
            of_target.accounts += 1;
            of_target.slots += account?.slots.len() as u64;
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.merge(found);
        all.1.add(counts);
        all.2.add(of_target);
        Ok::<(), ConvertError>(())
    })?;
    let (mut found, source, target) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let surplus = surplus.into_inner().unwrap_or_else(PoisonError::into_inner);
    surplus
        .into_values()
        .for_each(|difference| found.add(difference));
    let more = Counts {
        accounts: target.accounts.saturating_sub(source.accounts),
        slots: target.slots.saturating_sub(source.slots),
    };
    if found.is_same() && more != Counts::default() {
        found.add(Difference::More(more));
    }
    found.counts = target;
    Ok(found)
}

fn look_up(
    account: &FullAccount,
    target: &Historical<'_>,
    found: &mut Comparison,
) -> Result<(), ReadError> {
    let address = account.address;
    match target.account(address)? {
        None => {
            found.add(Difference::AccountMissing(address));
            return Ok(());
        }
        Some(there) if there != account.account => found.add(Difference::Account {
            address,
            source: account.account,
            target: there,
        }),
        Some(_) => {}
    }
    for (slot, source) in &account.slots {
        let there: U256 = target.storage(address, *slot)?;
        if there != *source {
            found.add(Difference::Slot {
                address,
                slot: *slot,
                source: *source,
                target: there,
            });
        }
    }
    Ok(())
}

/// Reads a dump again, if it is a file, and looks for an account whose slots do not have the storage root in its line.
pub(crate) fn why_dump_is_wrong(path: &Path, is_hashed: bool) -> Result<String, ConvertError> {
    const AGAIN: &str = "delete the target's folder, and convert a whole dump";
    if !path.is_file() {
        return Ok(format!(
            "the dump lacks accounts or slots, or has others. {AGAIN}. A dump that is a file is searched for the account"
        ));
    }
    let mut lines = Dump::open(path)?.into_lines();
    while let Some((name, account, expected)) = next_account(&mut lines, is_hashed)? {
        let Some(expected) = expected else { continue };
        let actual = storage_root(&account)?;
        if actual != expected {
            return Ok(format!(
                "line {}, {name}: its {} slots have the storage root {actual}, and the line has {expected}. {AGAIN}",
                lines.number(),
                account.slots.len()
            ));
        }
    }
    Ok(format!(
        "the slots of each account have the storage root in its line, if there is one, so the dump lacks accounts or has others, or a balance, nonce or code is wrong. {AGAIN}"
    ))
}

/// The next account of a dump with slots by their hashed numbers, its name, and the storage root in its line.
fn next_account(
    lines: &mut Lines,
    is_hashed: bool,
) -> Result<Option<(String, KeyedAccount, Option<B256>)>, ConvertError> {
    if !is_hashed {
        let Some(line) = lines.line()? else {
            return Ok(None);
        };
        let name = format!("account {:#x}", line.account.address);
        let mut keyed = BY_KECCAK.with_keys(vec![line.account]);
        let account = keyed.pop();
        return Ok(account.map(|account| (name, account, line.storage_root)));
    }
    let Some(line) = lines.hashed()? else {
        return Ok(None);
    };
    let account = line.account;
    let slots = account.slots.into_iter().map(|(key, value)| KeyedSlot {
        key: key.0,
        // The root depends on the hashed number alone.
        slot: U256::ZERO,
        value,
    });
    let mut slots: Vec<KeyedSlot> = slots.collect();
    slots.sort_unstable_by_key(|slot| slot.key);
    let keyed = KeyedAccount {
        key: account.key.0,
        address: Default::default(),
        account: account.account,
        slots,
    };
    let name = format!("account with hashed address {}", account.key);
    Ok(Some((name, keyed, line.storage_root)))
}
