//! The accounts of a genesis: those that it lists, packed, and a population that it counts.
//!
//! An account with ether alone takes about 40 bytes here, a tenth of a [`GenesisAccount`]'s.
//! Accounts are unpacked one at a time.

use std::fmt;

use alloy_primitives::{Address, Bytes, U256};

use super::{GenesisAccount, GenesisError, Population};

/// The accounts of a genesis: those that it lists, in ascending order of addresses, and the [`Population`] that it counts. The methods
/// that tell of one account tell of the listed ones.
///
/// An account is its address (20 bytes), nonce and balance (numbers), the lengths of its code and
/// of its list of slots (numbers), the code, and of each slot its index and its value (numbers). A
/// number is its length and its bytes without leading zeros.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Alloc {
    packed: Bytes,
    /// Where each account begins.
    begins: Vec<u64>,
    population: Option<Population>,
}

impl fmt::Debug for Alloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Alloc {
    /// Packs accounts that come in any order.
    ///
    /// # Errors
    /// [`GenesisError::DuplicateAccount`].
    pub fn new(accounts: impl IntoIterator<Item = GenesisAccount>) -> Result<Self, GenesisError> {
        let mut packing = Packing::default();
        for account in accounts {
            packing.push(&account);
        }
        packing.finish()
    }

    /// Adds a population.
    ///
    /// # Errors
    /// [`GenesisError::DuplicateAccount`] if an account of the population is listed.
    pub fn with_population(self, population: Population) -> Result<Self, GenesisError> {
        let mut listed = (0..self.len()).map(|index| self.address(index));
        match listed.find(|address| population.contains(*address)) {
            Some(address) => Err(GenesisError::DuplicateAccount(address)),
            None => Ok(Self {
                population: Some(population),
                ..self
            }),
        }
    }

    /// The accounts that are counted instead of listed.
    pub fn population(&self) -> Option<Population> {
        self.population
    }

    /// The number of accounts.
    pub fn len(&self) -> usize {
        self.begins.len()
    }

    /// Whether no account is listed.
    pub fn is_empty(&self) -> bool {
        self.begins.is_empty()
    }

    /// Bytes of all accounts as they are packed.
    pub fn packed_bytes(&self) -> usize {
        self.packed.len()
    }

    /// Unpacks the accounts one after another, ascending by address.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = GenesisAccount> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Unpacks the account at a position in the order of addresses.
    ///
    /// # Panics
    /// If there are not so many accounts.
    pub fn get(&self, index: usize) -> GenesisAccount {
        let mut from = self.fields(index);
        let (address, nonce, balance) = (from.address(), from.number(), from.number());
        let (code, slots) = (from.length(), from.length());
        let code = from.slice(code);
        let storage = (0..slots).map(|_| (from.number().into(), from.number()));
        let storage = storage.collect();
        GenesisAccount {
            address,
            balance,
            nonce: nonce.to(),
            code,
            storage,
        }
    }

    /// The address at a position in that order.
    ///
    /// # Panics
    /// If there are not so many accounts.
    pub fn address(&self, index: usize) -> Address {
        self.fields(index).address()
    }

    /// The codes of all accounts, without empty ones; they share this buffer.
    pub fn codes(&self) -> impl Iterator<Item = Bytes> + '_ {
        let codes = (0..self.len()).map(|index| {
            let mut from = self.fields(index);
            from.address();
            from.number();
            from.number();
            let (code, _) = (from.length(), from.length());
            from.slice(code)
        });
        codes.filter(|code| !code.is_empty())
    }

    fn fields(&self, index: usize) -> PackedFields<'_> {
        PackedFields {
            packed: &self.packed,
            at: self.begins[index] as usize,
        }
    }
}

/// Accounts being packed.
#[derive(Default)]
pub(super) struct Packing {
    packed: Vec<u8>,
    begins: Vec<u64>,
}

impl Packing {
    /// Adds an account.
    pub(super) fn push(&mut self, account: &GenesisAccount) {
        self.begins.push(self.packed.len() as u64);
        self.packed.extend_from_slice(account.address.as_slice());
        self.number(U256::from(account.nonce));
        self.number(account.balance);
        self.number(U256::from(account.code.len()));
        self.number(U256::from(account.storage.len()));
        self.packed.extend_from_slice(&account.code);
        for (slot, value) in &account.storage {
            self.number(U256::from_be_bytes(slot.0));
            self.number(*value);
        }
    }

    fn number(&mut self, number: U256) {
        let length = number.byte_len();
        self.packed.push(length as u8);
        let bytes = number.to_be_bytes::<32>();
        self.packed.extend_from_slice(&bytes[32 - length..]);
    }

    /// Sorts the accounts.
    ///
    /// # Errors
    /// [`GenesisError::DuplicateAccount`].
    pub(super) fn finish(mut self) -> Result<Alloc, GenesisError> {
        let address = |begin: &u64| Address::from_slice(&self.packed[*begin as usize..][..20]);
        self.begins.sort_unstable_by_key(address);
        let mut pairs = self.begins.windows(2).map(|pair| (&pair[0], &pair[1]));
        let twice = pairs.find(|(one, next)| address(one) == address(next));
        if let Some((one, _)) = twice {
            return Err(GenesisError::DuplicateAccount(address(one)));
        }
        self.packed.shrink_to_fit();
        self.begins.shrink_to_fit();
        Ok(Alloc {
            packed: self.packed.into(),
            begins: self.begins,
            population: None,
        })
    }
}

/// Reads what [`Packing`] wrote.
struct PackedFields<'a> {
    packed: &'a Bytes,
    at: usize,
}

impl PackedFields<'_> {
    fn take(&mut self, length: usize) -> &[u8] {
        let taken = &self.packed[self.at..][..length];
        self.at += length;
        taken
    }

    fn address(&mut self) -> Address {
        Address::from_slice(self.take(20))
    }

    fn number(&mut self) -> U256 {
        let length = self.take(1)[0].into();
        U256::from_be_slice(self.take(length))
    }

    fn length(&mut self) -> usize {
        self.number().to()
    }

    fn slice(&mut self, length: usize) -> Bytes {
        let slice = self.packed.slice(self.at..self.at + length);
        self.at += length;
        slice
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accounts() -> impl Strategy<Value = Vec<GenesisAccount>> {
        let number = || {
            let bits = (any::<[u64; 4]>(), 0..256usize);
            bits.prop_map(|(limbs, shift)| U256::from_limbs(limbs) >> shift)
        };
        let slots = prop::collection::btree_map(number(), number(), 0..4);
        let code = prop::collection::vec(any::<u8>(), 0..300);
        let account = (any::<[u8; 20]>(), number(), any::<u64>(), code, slots);
        let account = account.prop_map(|(address, balance, nonce, code, slots)| GenesisAccount {
            address: address.into(),
            balance,
            nonce,
            code: code.into(),
            storage: slots.into_iter().map(|(k, v)| (k.into(), v)).collect(),
        });
        prop::collection::vec(account, 0..20)
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(accounts in accounts()) {
            let alloc = Alloc::new(accounts.clone()).expect("no address twice");
            let mut sorted = accounts;
            sorted.sort_by_key(|account| account.address);
            prop_assert_eq!(alloc.iter().collect::<Vec<_>>(), sorted.clone());
            prop_assert_eq!(alloc.len(), sorted.len());
            for (index, account) in sorted.iter().enumerate() {
                prop_assert_eq!(alloc.address(index), account.address);
            }
            let codes = sorted.into_iter().map(|account| account.code);
            let codes: Vec<_> = codes.filter(|code| !code.is_empty()).collect();
            prop_assert_eq!(alloc.codes().collect::<Vec<_>>(), codes);
        }
    }

    #[test]
    fn an_account_with_ether_takes_40_bytes() {
        let account = |last| GenesisAccount {
            address: Address::with_last_byte(last),
            balance: U256::from(10).pow(U256::from(21)),
            nonce: 0,
            code: Bytes::new(),
            storage: Vec::new(),
        };
        let alloc = Alloc::new((0..100).rev().map(account)).expect("no address twice");
        assert!(alloc.packed_bytes() / 100 + 8 <= 42);
        assert_eq!(alloc.get(7).address, Address::with_last_byte(7));
        assert!(Alloc::new([account(1), account(1)]).is_err());
    }
}
