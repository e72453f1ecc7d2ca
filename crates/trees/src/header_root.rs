//! The Merkle-Patricia root, which headers carry, of a state whose flat tables are in another order than that of hashed
//! addresses.
//!
//! Accounts are put into the trie's order by the first byte of their hashed addresses: as many first bytes as memory has
//! room for. The accounts are listed again for further first bytes. Of each first byte the subtree is built, and all
//! subtrees are joined.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};
use arbor_state_tree::{
    Account, AccountTrie, Check, CheckedPart, FullAccount, StateError, WithSlots, corrupt,
};
use arbor_tree::Hash;
use arbor_tree_mpt::{EMPTY_ROOT, Part, build_part, join};
use arbor_verify::mpt::{AccountRecord, BY_KECCAK, records};
use rayon::prelude::*;

use crate::mpt::failed;

/// Accounts that are hashed together, unless they have many slots.
const ACCOUNTS_HASHED_TOGETHER: usize = 1 << 12;
/// Slots from which on accounts are hashed without waiting for more.
const MANY_SLOTS: usize = 1 << 16;
/// The least memory by which the accounts of a first byte grow.
const GROWTH: usize = 1 << 12;

/// Selects accounts: says of each address whether its account is wanted.
pub(crate) type Select<'a> = &'a (dyn Fn(&[Address]) -> Vec<bool> + Sync);
/// Takes an account.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(WithSlots) -> Result<(), StateError>;
/// Lists the accounts whose addresses begin with a byte. Accounts that are not selected may be left out, which saves reading
/// them.
pub(crate) type List<'a> = &'a (dyn Fn(u8, Select<'_>, Visit<'_>) -> Result<(), StateError> + Sync);

/// Computes the root on the threads of the caller's pool. In memory are `bytes` of accounts, and at least those of one first
/// byte, and the slots of the largest account.
///
/// # Errors
/// Those of the list.
pub(crate) fn header_root(list: List<'_>, bytes: usize) -> Result<B256, StateError> {
    let firsts: Vec<u8> = (0..=u8::MAX).collect();
    join_subtrees(subtrees(list, &firsts, bytes)?)
}

/// Builds the subtrees of the accounts whose hashed addresses begin with some bytes, for a part of a check. If the records
/// of the part cannot all be read, there are none.
pub(crate) fn checked_trie(
    are_readable: bool,
    list: List<'_>,
    (firsts, bytes): (&[u8], usize),
) -> Result<AccountTrie, StateError> {
    if !are_readable {
        return Ok(AccountTrie::Unreadable);
    }
    match subtrees(list, firsts, bytes) {
        // A record of another part that cannot be read, or a slot of nobody.
        Err(error @ StateError::Corrupt { .. }) => Ok(AccountTrie::Fault(error.to_string())),
        Err(error) => Err(error),
        Ok(parts) => {
            let bytes = parts.iter().map(|part| part.encode().into());
            Ok(AccountTrie::Subtrees(bytes.collect()))
        }
    }
}

/// Returns the root of the accounts of all parts of a check; zero if records cannot be read.
pub(crate) fn checked_root(check: &Check<'_>, parts: &[CheckedPart]) -> Result<B256, StateError> {
    let tries = || parts.iter().map(|part| &part.account_trie);
    if tries().any(|trie| *trie == AccountTrie::Unreadable) {
        return Ok(B256::ZERO);
    }
    let mut subtrees = Vec::with_capacity(256);
    for trie in tries() {
        match trie {
            AccountTrie::Unreadable => {}
            AccountTrie::Fault(fault) => {
                check.tell_fault(fault.clone());
                return Ok(B256::ZERO);
            }
            AccountTrie::Subtrees(parts) => {
                for bytes in parts {
                    subtrees.push(subtree(bytes)?);
                }
            }
        }
    }
    join_subtrees(subtrees)
}

/// Reads the subtree of a first byte.
pub(crate) fn subtree(bytes: &Bytes) -> Result<Part, StateError> {
    Part::decode(bytes).ok_or_else(|| corrupt("parts", bytes, "not a part of the account trie"))
}

fn join_subtrees(subtrees: Vec<Part>) -> Result<B256, StateError> {
    let root = join(None, subtrees, &mut |_, _| ()).map_err(failed)?;
    Ok(root.into())
}

/// Builds the subtrees below some first bytes, which ascend.
fn subtrees(list: List<'_>, firsts: &[u8], bytes: usize) -> Result<Vec<Part>, StateError> {
    let mut parts = Vec::with_capacity(firsts.len());
    let mut together = firsts.len();
    while parts.len() < firsts.len() {
        let rest = &firsts[parts.len()..];
        let wanted = Wanted::new(&rest[..together.min(rest.len())], bytes);
        (0..=u8::MAX).into_par_iter().try_for_each(|first| {
            let select = |addresses: &[Address]| wanted.select(addresses);
            wanted.take(&|visit| list(first, &select, visit))
        })?;
        let built = wanted.into_subtrees()?;
        together = built.len();
        parts.extend(built);
    }
    Ok(parts)
}

/// The accounts whose hashed addresses begin with one of some bytes, as far as they fit into memory.
struct Wanted<'a> {
    firsts: &'a [u8],
    /// The place of each byte among them.
    places: [Option<usize>; 256],
    /// How many of them have room. At least one has, and those behind are forgotten.
    kept: AtomicUsize,
    accounts: Vec<Mutex<Vec<u8>>>,
    /// Memory that all accounts take, and may take.
    bytes: AtomicUsize,
    max_bytes: usize,
}

impl<'a> Wanted<'a> {
    fn new(firsts: &'a [u8], max_bytes: usize) -> Self {
        let mut places = [None; 256];
        for (place, first) in firsts.iter().enumerate() {
            places[usize::from(*first)] = Some(place);
        }
        Self {
            firsts,
            places,
            kept: firsts.len().into(),
            accounts: firsts.iter().map(|_| Mutex::default()).collect(),
            bytes: AtomicUsize::new(0),
            max_bytes,
        }
    }

    fn place(&self, key: &Hash) -> Option<usize> {
        let kept = self.kept.load(Ordering::Relaxed);
        self.places[usize::from(key[0])].filter(|place| *place < kept)
    }

    fn accounts(&self, place: usize) -> MutexGuard<'_, Vec<u8>> {
        let accounts = self.accounts[place].lock();
        accounts.unwrap_or_else(PoisonError::into_inner)
    }

    fn select(&self, addresses: &[Address]) -> Vec<bool> {
        let mut keys = vec![Hash::default(); addresses.len()];
        (BY_KECCAK.account_keys)(addresses, &mut keys);
        keys.iter().map(|key| self.place(key).is_some()).collect()
    }

    /// Takes the wanted ones of a list of accounts.
    fn take(&self, list: &dyn Fn(Visit<'_>) -> Result<(), StateError>) -> Result<(), StateError> {
        let (mut listed, mut wanted) = (Batch::default(), Batch::default());
        let mut pass_on = |listed: &mut Batch, is_last: bool| {
            let accounts = listed.take();
            let addresses: Vec<Address> = accounts.iter().map(|of| of.address).collect();
            let selected = self.select(&addresses).into_iter().zip(accounts);
            for (_, account) in selected.filter(|(is_wanted, _)| *is_wanted) {
                wanted.push(account);
            }
            match is_last || wanted.is_full() {
                true => self.keep(wanted.take()),
                false => Ok(()),
            }
        };
        list(&mut |account| {
            listed.push(account.into());
            match listed.is_full() {
                true => pass_on(&mut listed, false),
                false => Ok(()),
            }
        })?;
        pass_on(&mut listed, true)
    }

    /// Hashes accounts with their slots, and keeps them.
    fn keep(&self, accounts: Vec<FullAccount>) -> Result<(), StateError> {
        let accounts = BY_KECCAK.with_keys(accounts);
        let records = records(&accounts, &mut |_, _| ())?;
        for (account, record) in accounts.iter().zip(&records) {
            let Some(place) = self.place(&account.key) else {
                continue;
            };
            {
                let mut of_first = self.accounts(place);
                // The byte may have lost its room meanwhile.
                if place >= self.kept.load(Ordering::Relaxed) {
                    continue;
                }
                let before = of_first.capacity();
                Kept::write(&account.key, record, &mut of_first);
                let grown = of_first.capacity() - before;
                self.bytes.fetch_add(grown, Ordering::Relaxed);
            }
            self.make_room();
        }
        Ok(())
    }

    /// Forgets the accounts of the last first bytes if memory has no room for them.
    fn make_room(&self) {
        while self.bytes.load(Ordering::Relaxed) > self.max_bytes {
            let kept = self.kept.load(Ordering::Relaxed);
            let (Some(last), relaxed) = (
                kept.checked_sub(1).filter(|last| *last > 0),
                Ordering::Relaxed,
            ) else {
                return;
            };
            if self
                .kept
                .compare_exchange(kept, last, relaxed, relaxed)
                .is_ok()
            {
                let forgotten = std::mem::take(&mut *self.accounts(last));
                self.bytes.fetch_sub(forgotten.capacity(), relaxed);
            }
        }
    }

    /// Builds the subtrees of those first bytes that had room.
    fn into_subtrees(self) -> Result<Vec<Part>, StateError> {
        let kept = &self.firsts[..self.kept.load(Ordering::Relaxed)];
        let places = (0..kept.len()).into_par_iter();
        let subtrees = places.map(|place| {
            let accounts = std::mem::take(&mut *self.accounts(place));
            let leaves = Kept::ascending(&accounts);
            build_part(None, leaves, &mut |_, _| ()).map_err(failed)
        });
        subtrees.collect()
    }
}

/// Accounts that wait to be hashed.
#[derive(Default)]
struct Batch {
    accounts: Vec<FullAccount>,
    slots: usize,
}

impl Batch {
    fn push(&mut self, account: FullAccount) {
        self.slots += account.slots.len();
        self.accounts.push(account);
    }

    fn is_full(&self) -> bool {
        self.accounts.len() >= ACCOUNTS_HASHED_TOGETHER || self.slots >= MANY_SLOTS
    }

    fn take(&mut self) -> Vec<FullAccount> {
        std::mem::take(self).accounts
    }
}

/// An account in memory: its hashed address (32 bytes), a byte that is 1 if its storage root and its code hash follow (32
/// bytes each) and 0 if both are those of nothing, then its nonce and its balance, each behind a byte with its length.
struct Kept<'a>(&'a [u8]);

impl<'a> Kept<'a> {
    fn write(key: &Hash, record: &AccountRecord, out: &mut Vec<u8>) {
        let account = &record.account;
        let has_hashes = record.storage_root != EMPTY_ROOT || account.code_hash != KECCAK256_EMPTY;
        let most = 32 + 1 + 64 + 9 + 33;
        if out.capacity() - out.len() < most {
            // Growing by half, or to twice the room, would leave much of it empty.
            out.reserve_exact(GROWTH.max(out.len() / 8));
        }
        out.extend_from_slice(key);
        out.push(has_hashes.into());
        if has_hashes {
            out.extend_from_slice(record.storage_root.as_slice());
            out.extend_from_slice(account.code_hash.as_slice());
        }
        for number in [U256::from(account.nonce), account.balance] {
            let bytes = number.to_be_bytes_trimmed_vec();
            out.push(bytes.len() as u8);
            out.extend(bytes);
        }
    }

    /// The leaves of accounts that were written one after another, ascending by key.
    fn ascending(accounts: &'a [u8]) -> impl Iterator<Item = (Hash, Vec<u8>)> + 'a {
        let mut rest = Kept(accounts);
        let each = std::iter::from_fn(move || {
            let begin = accounts.len() - rest.0.len();
            rest.read().map(|(key, _)| (key, begin))
        });
        let mut order: Vec<(Hash, usize)> = each.collect();
        order.sort_unstable();
        let leaves = order.into_iter();
        leaves.filter_map(|(_, begin)| {
            let (key, record) = Kept(&accounts[begin..]).read()?;
            Some((key, record.filled_leaf()))
        })
    }

    /// Reads the next account; its address is not known.
    fn read(&mut self) -> Option<(Hash, AccountRecord)> {
        let (key, rest) = self.0.split_first_chunk::<32>()?;
        let (has_hashes, rest) = rest.split_first()?;
        self.0 = rest;
        let mut hashes = [B256::from(EMPTY_ROOT), KECCAK256_EMPTY];
        if *has_hashes == 1 {
            for hash in &mut hashes {
                let (bytes, rest) = self.0.split_first_chunk::<32>()?;
                (*hash, self.0) = (bytes.into(), rest);
            }
        }
        let mut number = || {
            let (length, rest) = self.0.split_first()?;
            let (bytes, rest) = rest.split_at_checked(usize::from(*length))?;
            self.0 = rest;
            U256::try_from_be_slice(bytes)
        };
        let (nonce, balance) = (number()?, number()?);
        let [storage_root, code_hash] = hashes;
        let record = AccountRecord {
            address: Address::ZERO,
            account: Account {
                nonce: nonce.try_into().ok()?,
                balance,
                code_hash,
            },
            storage_root,
        };
        Some((*key, record))
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]
mod tests {
    use arbor_state_tree::{ReadError, SortedAccounts};
    use arbor_verify::mpt::state_root;

    use super::*;

    fn accounts() -> Vec<WithSlots> {
        let account = |number: u64| WithSlots {
            address: Address::left_padding_from(&number.to_be_bytes()),
            account: Account {
                nonce: number % 3 * (u64::MAX / 2),
                balance: U256::from(number).pow(U256::from(number % 29)),
                code_hash: match number % 4 {
                    0 => B256::with_last_byte(number as u8),
                    _ => KECCAK256_EMPTY,
                },
            },
            slots: (0..number % 5)
                .map(|slot| (U256::from(slot), U256::from(number)))
                .collect(),
            storage_root: None,
        };
        (0..3_000).map(account).collect()
    }

    /// Whatever room there is, none at all among it, and whether the lists leave accounts out or not.
    #[test]
    fn the_root_does_not_depend_on_memory() {
        let full = accounts().into_iter().map(|account| Ok(account.into()));
        let no_code = |hash| Err(ReadError::MissingCode(hash));
        let sorted = SortedAccounts::of(&BY_KECCAK, full, no_code, usize::MAX).unwrap();
        let root = state_root(&sorted).unwrap();
        let (count, listed) = (accounts().len(), AtomicUsize::new(0));
        for (bytes, leaves_out) in [
            (usize::MAX, false),
            (400_000, true),
            (400_000, false),
            (0, true),
        ] {
            listed.store(0, Ordering::Relaxed);
            let list = |first: u8, select: Select<'_>, visit: Visit<'_>| {
                // All addresses begin with zeros.
                if first != 0 {
                    return Ok(());
                }
                let mut of_first = accounts();
                if leaves_out {
                    let addresses: Vec<Address> = of_first.iter().map(|of| of.address).collect();
                    let mut selected = select(&addresses).into_iter();
                    of_first.retain(|_| selected.next().unwrap());
                }
                listed.fetch_add(of_first.len(), Ordering::Relaxed);
                of_first.into_iter().try_for_each(visit)
            };
            assert_eq!(header_root(&list, bytes).unwrap(), root, "{bytes}");
            let listed = listed.load(Ordering::Relaxed);
            match (bytes, leaves_out) {
                (usize::MAX, _) => assert_eq!(listed, count),
                (0, _) => assert!(listed < 3 * count, "{listed}"),
                _ => assert!(listed > count, "{listed}"),
            }
        }
    }

    #[test]
    fn accounts_in_memory_come_back_in_order() {
        let accounts: Vec<FullAccount> = accounts().into_iter().map(Into::into).collect();
        let keyed = BY_KECCAK.with_keys(accounts);
        let records = records(&keyed, &mut |_, _| ()).unwrap();
        let (mut written, mut leaves) = (Vec::new(), Vec::new());
        for (account, record) in keyed.iter().zip(&records) {
            Kept::write(&account.key, record, &mut written);
            leaves.push((account.key, record.filled_leaf()));
        }
        leaves.sort_unstable();
        assert!(Kept::ascending(&written).eq(leaves));
    }
}
