//! Accounts that are sorted in memory.

use alloy_primitives::{B256, Bytes};

use crate::{
    AccountOrder, AccountSource, FullAccount, KeyedAccount, KeyedAccounts, KeyedSlot, ReadError,
};

/// Finds code by its hash.
type CodeByHash<'a> = Box<dyn Fn(B256) -> Result<Bytes, ReadError> + Sync + 'a>;

/// A state whose accounts were sorted in memory, within a bound: a source for trees of any order.
pub struct SortedAccounts<'a> {
    order: &'static AccountOrder,
    accounts: Vec<KeyedAccount>,
    code: CodeByHash<'a>,
}

impl<'a> SortedAccounts<'a> {
    /// Reads all accounts, which come in any order, and sorts them. `code` finds their codes when
    /// the source is read.
    ///
    /// # Errors
    /// Errors of the accounts; accounts and slots that take more than `max_bytes` of memory; an
    /// account or a slot that is listed twice.
    pub fn of(
        order: &'static AccountOrder,
        accounts: impl Iterator<Item = Result<FullAccount, ReadError>>,
        code: impl Fn(B256) -> Result<Bytes, ReadError> + Sync + 'a,
        max_bytes: usize,
    ) -> Result<Self, ReadError> {
        let (mut sorted, mut bytes) = (Vec::new(), 0);
        for page in order.pages(accounts) {
            let page = page?;
            bytes += page.iter().map(bytes_of).sum::<usize>();
            if bytes > max_bytes {
                return Err(ReadError::new(format!(
                    "sorting accounts in memory is limited to {max_bytes} bytes, and the first {} accounts with their \
                     slots take {bytes}: raise the limit",
                    sorted.len() + page.len()
                )));
            }
            sorted.extend(page);
        }
        sorted.sort_unstable_by_key(|account| account.key);
        check_listed_once(&sorted)?;
        Ok(Self {
            order,
            accounts: sorted,
            code: Box::new(code),
        })
    }
}

/// The memory that an account takes.
fn bytes_of(account: &KeyedAccount) -> usize {
    size_of::<KeyedAccount>() + account.slots.len() * size_of::<KeyedSlot>()
}

/// Checks that no account, and no slot of an account, is listed twice. Accounts and slots are sorted by their keys.
///
/// # Errors
/// The first that is listed twice, by name.
pub fn check_listed_once(sorted: &[KeyedAccount]) -> Result<(), ReadError> {
    if let Some([account, _]) = sorted.array_windows().find(|[a, b]| a.key == b.key) {
        let address = account.address;
        return Err(ReadError::new(format!(
            "account {address:#x} is listed twice"
        )));
    }
    for account in sorted {
        let mut pairs = account.slots.array_windows();
        if let Some([slot, _]) = pairs.find(|[a, b]| a.key == b.key) {
            return Err(ReadError::new(format!(
                "account {:#x}: slot {:#x} is listed twice",
                account.address, slot.slot
            )));
        }
    }
    Ok(())
}

impl AccountSource for SortedAccounts<'_> {
    fn order(&self) -> &'static AccountOrder {
        self.order
    }

    fn stream(&self, first: Option<u8>) -> Result<KeyedAccounts<'_>, ReadError> {
        let accounts = match first {
            None => &self.accounts[..],
            Some(first) => {
                let begin = self.accounts.partition_point(|of| of.key[0] < first);
                let end = self.accounts.partition_point(|of| of.key[0] <= first);
                &self.accounts[begin..end]
            }
        };
        Ok(Box::new(accounts.iter().cloned().map(Ok)))
    }

    fn code_bytes(&self, code_hash: B256) -> Result<Bytes, ReadError> {
        (self.code)(code_hash)
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use alloy_primitives::{Address, KECCAK256_EMPTY, U256};

    use super::*;
    use crate::{Account, BY_NAME, SortKey};

    /// The reverse of the order of names.
    static REVERSED: AccountOrder = AccountOrder {
        name: "reversed",
        account_keys: |addresses, keys| {
            (BY_NAME.account_keys)(addresses, keys);
            keys.iter_mut().flatten().for_each(|byte| *byte = !*byte);
        },
        slot_keys: |slots, keys| {
            (BY_NAME.slot_keys)(slots, keys);
            keys.iter_mut().flatten().for_each(|byte| *byte = !*byte);
        },
    };

    fn account(number: u16, slots: &[u64]) -> FullAccount {
        let slots = slots.iter().map(|slot| (U256::from(*slot), U256::ONE));
        let mut address = Address::ZERO;
        address[..2].copy_from_slice(&number.to_be_bytes());
        FullAccount {
            address,
            account: Account {
                nonce: number.into(),
                balance: U256::ZERO,
                code_hash: KECCAK256_EMPTY,
            },
            slots: slots.collect(),
        }
    }

    fn sorted(
        order: &'static AccountOrder,
        accounts: Vec<Result<FullAccount, ReadError>>,
        max_bytes: usize,
    ) -> Result<SortedAccounts<'static>, ReadError> {
        let no_code = |hash| Err(ReadError::MissingCode(hash));
        SortedAccounts::of(order, accounts.into_iter(), no_code, max_bytes)
    }

    #[test]
    fn accounts_and_slots_ascend_by_key_in_every_order() {
        // More than two pages, in an order of neither kind.
        let number = |at: u32| (at * 7_919 % 4_099) as u16;
        for order in [&BY_NAME, &REVERSED] {
            let accounts = (0..4_099).map(|at| Ok(account(number(at), &[5, 1, 9])));
            let source = sorted(order, accounts.collect(), usize::MAX).unwrap();
            let read = |first| -> Vec<KeyedAccount> {
                let accounts = source.stream(first).unwrap();
                accounts.map(Result::unwrap).collect()
            };
            let all = read(None);
            assert_eq!(all.len(), 4_099);
            assert!(all.is_sorted_by(|a, b| a.key < b.key));
            for of in &all {
                assert!(of.slots.is_sorted_by(|a, b| a.key < b.key));
                let (mut keys, mut key) = ([SortKey::default(); 3], [SortKey::default()]);
                (order.account_keys)(&[of.address], &mut key);
                let slots: Vec<U256> = of.slots.iter().map(|slot| slot.slot).collect();
                (order.slot_keys)(&slots, &mut keys);
                assert_eq!([of.key], key);
                assert!(of.slots.iter().map(|slot| slot.key).eq(keys));
            }
            let ranges = (0..=u8::MAX).flat_map(|first| {
                let range = read(Some(first));
                assert!(range.iter().all(|of| of.key[0] == first));
                range
            });
            assert!(ranges.eq(all.iter().cloned()));
        }
    }

    #[test]
    fn what_cannot_be_sorted_is_refused_by_name() {
        let refused = |accounts: Vec<Result<FullAccount, ReadError>>, bytes, why: &str| {
            let error = sorted(&BY_NAME, accounts, bytes).map(drop).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        };
        let twice = || {
            vec![
                Ok(account(1, &[])),
                Ok(account(2, &[])),
                Ok(account(1, &[7])),
            ]
        };
        let slot_twice = vec![Ok(account(1, &[3, 2, 3]))];
        refused(slot_twice, usize::MAX, "slot 0x3 is listed twice");
        let named = format!("account {:#x} is listed twice", account(1, &[]).address);
        refused(twice(), usize::MAX, &named);
        refused(twice(), 64, "limited to 64 bytes");
        let fails = vec![Ok(account(1, &[])), Err(ReadError::new("it broke off"))];
        refused(fails, usize::MAX, "it broke off");
    }

    #[test]
    fn the_bound_is_what_the_accounts_take() {
        let accounts = || vec![Ok(account(1, &[1, 2])), Ok(account(2, &[]))];
        let bytes = 2 * size_of::<KeyedAccount>() + 2 * size_of::<KeyedSlot>();
        assert!(sorted(&BY_NAME, accounts(), bytes).is_ok());
        assert!(sorted(&BY_NAME, accounts(), bytes - 1).is_err());
    }
}
