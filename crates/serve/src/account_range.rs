//! `debug_accountRange`: accounts and their slots, page by page.

use std::collections::BTreeMap;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256, hex, keccak256};
use arbor_database::{BlockState, BlockStateError};
use arbor_state::{Account, StateView};
use arbor_verify::mpt::AccountProof;
use serde::{Serialize, Serializer};

use crate::block_choice::BlockChoice;
use crate::call::{Answer, Call, Method, answer, heavy};
use crate::hex::Hex;
use crate::params::invalid;
use crate::rpc_error::RpcError;

pub(crate) const METHODS: &[Method] = &[heavy("debug_accountRange", 6, account_range)];

/// The most accounts of one answer, as in go-ethereum.
const RANGE: usize = 256;

#[derive(Serialize)]
struct AccountRange {
    root: String,
    #[serde(serialize_with = "by_checksummed_address")]
    accounts: BTreeMap<Address, RangeAccount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<B256>,
}

/// Writes addresses with the checksum of EIP-55, as go-ethereum writes those that are names of fields.
fn by_checksummed_address<S: Serializer>(
    accounts: &BTreeMap<Address, RangeAccount>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let accounts = accounts.iter();
    to.collect_map(accounts.map(|(address, account)| (address.to_checksum(None), account)))
}

/// An account as in go-ethereum.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RangeAccount {
    balance: String,
    nonce: u64,
    /// The root of its storage trie, under Merkle-Patricia alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<B256>,
    code_hash: B256,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Bytes>,
    /// Values without leading zeros, by the numbers of slots.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    storage: BTreeMap<B256, String>,
    address: Address,
    key: B256,
}

/// What is listed of the accounts of a block.
struct Listing<'c, 'a> {
    call: &'c Call<'a>,
    block: &'c BlockState<'a>,
    with_code: bool,
    with_storage: bool,
    /// How many slots the answer may still have.
    slots: usize,
}

/// Lists accounts of the latest block from a key of the flat tables on. An answer ends before an
/// account whose slots would be more than it may have.
fn account_range(call: &Call<'_>) -> Answer {
    let block = BlockChoice::read(&call.params, 0)?.state(call.context, call.head)?;
    let start: Option<Hex<Bytes>> = call.params.optional(1)?;
    let most: i64 = call.params.optional(2)?.unwrap_or(0);
    let most = usize::try_from(most).ok().filter(|most| *most > 0);
    let most = most.unwrap_or(RANGE).min(RANGE);
    let without_code = call.params.optional(3)?.unwrap_or(false);
    let without_storage = call.params.optional(4)?.unwrap_or(false);
    // Names that go-ethereum may not know are all known here.
    let _incompletes: Option<bool> = call.params.optional(5)?;
    if Some(block.meta().version) != call.head.meta().map(|head| head.version) {
        return Err(invalid(0, "accounts are listed of the latest block alone"));
    }
    if call.head.tree().moves().is_some() {
        return Err(RpcError::server(
            "accounts are not listed while the state moves to another tree: their order changes with it".to_owned(),
        ));
    }
    let start = start.map_or_else(Bytes::new, |Hex(start)| start);
    if start.len() > 32 {
        return Err(invalid(1, "a key has at most 32 bytes"));
    }
    let mut key = [0; 32];
    key[..start.len()].copy_from_slice(&start);
    let mut listing = Listing {
        call,
        block: &block,
        with_code: !without_code,
        with_storage: !without_storage,
        slots: call.context.limits.slots,
    };
    answer(&listing.accounts(key, most.min(call.context.limits.slots))?)
}

impl Listing<'_, '_> {
    fn accounts(&mut self, from: [u8; 32], most: usize) -> Result<AccountRange, RpcError> {
        let order = self.call.head.tree().order();
        let mut range = AccountRange {
            root: hex::encode(self.block.meta().root),
            accounts: BTreeMap::new(),
            next: None,
        };
        let mut next = Some(U256::from_be_bytes(from));
        while let Some(from) = next.take() {
            let found = self.call.head.account_from(&from.to_be_bytes());
            let Some(address) = found.map_err(BlockStateError::from)? else {
                break;
            };
            let mut key = [[0; 32]];
            (order.account_keys)(&[address], &mut key);
            let [key] = key;
            if range.accounts.contains_key(&address) {
                // Keys are addresses, of which the first 20 bytes count.
                let last = U256::from_be_bytes(key) | U256::from(u128::MAX >> 32);
                next = last.checked_add(U256::ONE);
                continue;
            }
            let listed = match range.accounts.len() == most {
                true => None,
                false => self.account(address, &key, range.accounts.is_empty())?,
            };
            let Some(account) = listed else {
                range.next = Some(key.into());
                break;
            };
            range.accounts.insert(address, account);
            next = U256::from_be_bytes(key).checked_add(U256::ONE);
        }
        Ok(range)
    }

    /// Lists an account; `None` if the answer would have too many slots with it. If it is the first
    /// one, no other answer can have it either, and that is an error.
    fn account(
        &mut self,
        address: Address,
        key: &[u8; 32],
        is_first: bool,
    ) -> Result<Option<RangeAccount>, RpcError> {
        let view = self.block.view()?;
        let account = view.account(address).map_err(BlockStateError::from)?;
        // The tables have just listed it.
        let account = account.unwrap_or_default();
        let storage = match self.with_storage {
            true => self.storage(address, key)?,
            false => Some(BTreeMap::new()),
        };
        let Some(storage) = storage else {
            return match is_first {
                true => Err(self.too_many_slots(address)),
                false => Ok(None),
            };
        };
        self.slots -= storage.len();
        Ok(Some(RangeAccount {
            balance: account.balance.to_string(),
            nonce: account.nonce,
            root: self.storage_root(address)?,
            code_hash: account.code_hash,
            code: self.code(view, &account)?,
            storage,
            address,
            key: keccak256(address),
        }))
    }

    fn too_many_slots(&self, address: Address) -> RpcError {
        let most = self.call.context.limits.slots;
        RpcError::limit(format!(
            "account {address:#x} has more than {most} slots, which is the limit of an answer: set nostorage, or ask for slots by number"
        ))
    }

    fn code(&self, view: &dyn StateView, account: &Account) -> Result<Option<Bytes>, RpcError> {
        if !self.with_code || account.code_hash == KECCAK256_EMPTY {
            return Ok(None);
        }
        let code = view.code(account.code_hash);
        Ok(Some(code.map_err(BlockStateError::from)?))
    }

    fn storage_root(&self, address: Address) -> Result<Option<B256>, RpcError> {
        let proof = match self.call.head.tree().kind().name {
            "mpt" => self.block.prove(address, &[])?,
            _ => return Ok(None),
        };
        let proof = proof.downcast::<AccountProof>();
        Ok(proof.map(|proof| proof.storage_hash))
    }

    /// Lists the slots of an account; `None` if there are more than the answer may still have.
    fn storage(
        &self,
        address: Address,
        account: &[u8; 32],
    ) -> Result<Option<BTreeMap<B256, String>>, RpcError> {
        let head = self.call.head;
        let order = head.tree().order();
        let mut slots = BTreeMap::new();
        let has_storage = head.has_storage(address);
        let mut next = match has_storage.map_err(BlockStateError::from)? {
            true => Some(U256::ZERO),
            false => None,
        };
        while let Some(from) = next {
            let found = head.slot_from(account, &from.to_be_bytes());
            let found = found.map_err(BlockStateError::from)?;
            let Some((_, slot)) = found.filter(|(owner, _)| *owner == address) else {
                break;
            };
            let mut key = [[0; 32]];
            (order.slot_keys)(&[slot], &mut key);
            let key = U256::from_be_bytes(key[0]);
            if key < from {
                // After the last slot comes the first one again.
                break;
            }
            if slots.len() == self.slots {
                return Ok(None);
            }
            let value = head.storage(address, slot).map_err(BlockStateError::from)?;
            slots.insert(slot.into(), hex::encode(value.to_be_bytes_trimmed_vec()));
            next = key.checked_add(U256::ONE);
        }
        Ok(Some(slots))
    }
}
