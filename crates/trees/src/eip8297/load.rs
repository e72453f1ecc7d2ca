//! Building a whole state at once: flat tables in the order of names, then the tree in the order of
//! its keys, bottom-up.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::failed;
use crate::named_records::slot_key;
use alloy_primitives::B256;
use arbor_state_tree::{
    ACCOUNTS, AccountSource, Computed, KeyedAccount, LoadedCodes, SLOTS, StateError,
};
use arbor_store::Write;
use arbor_tree::Hash;
use arbor_tree_eip8297::{Builder, LeafUpdate, Path, join};
use arbor_verify::eip8297::Code;
use arbor_versions::{Changes, Versions};

use super::ordered::{OrderedLeaves, code_leaves_in_order, first_bytes};
use super::records::{AccountRecord, encode_slot, encode_users};
use super::{CODE_USERS, Eip8297};
use crate::binary::{depth_of_key, node_write};
use crate::node_load::NodeLoad;

/// Bits that the keys of a zone share.
const ZONE_BITS: usize = 8;

/// Fills an empty database with a whole state.
///
/// The source is read twice, in the order of addresses. Then every name is hashed, for a very large
/// state several times. In memory are [`leaf_bytes`](Eip8297::leaf_bytes) of leaves, and the number
/// of accounts of each code.
pub(super) fn load(
    tree: Eip8297,
    versions: &mut Versions,
    source: &dyn AccountSource,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Computed, StateError> {
    /// The two readings of the source, the codes, and each first byte of accounts' hashes.
    const PARTS: u64 = 3 + 256;
    load_flat(versions, source, &|done| progress(done, PARTS))?;
    let root = load_nodes(tree, versions, &|done| progress(3 + done, PARTS))?;
    Ok(Computed::of_load(root.into(), Changes::default()))
}

fn load_flat(
    versions: &mut Versions,
    source: &dyn AccountSource,
    done: &dyn Fn(u64),
) -> Result<(), StateError> {
    let codes = LoadedCodes::of(source);
    let mut users: BTreeMap<B256, u64> = BTreeMap::new();
    load_each(versions, source, &mut |account| {
        let record = account_record(&account, &codes)?;
        if let Some(code) = record.code_with_leaves() {
            *users.entry(code).or_default() += 1;
        }
        Ok(vec![Write {
            table: ACCOUNTS,
            key: account.address.as_slice().into(),
            value: Some(record.encode()),
        }])
    })?;
    let users = users.into_iter().map(|(code, users)| Write {
        table: CODE_USERS,
        key: code.as_slice().into(),
        value: encode_users(users),
    });
    versions.load(&mut users.into_iter())?;
    codes.store(versions)?;
    done(1);
    load_each(versions, source, &mut |account| {
        let slots = account.slots.iter();
        let writes = slots.filter_map(|slot| {
            Some(Write {
                table: SLOTS,
                key: slot_key(account.address, slot.slot).into(),
                value: Some(encode_slot(slot.value)?),
            })
        });
        Ok(writes.collect())
    })?;
    done(2);
    Ok(())
}

/// Loads what is made of each account, ascending by address.
fn load_each(
    versions: &mut Versions,
    source: &dyn AccountSource,
    make: &mut dyn FnMut(KeyedAccount) -> Result<Vec<Write>, StateError>,
) -> Result<(), StateError> {
    let mut failed = None;
    let made = source.stream(None)?;
    let made = made.map_while(|account| {
        let writes = account.map_err(StateError::from).and_then(&mut *make);
        writes.map_err(|error| failed = Some(error)).ok()
    });
    let loaded = versions.load(&mut made.flatten());
    match failed {
        Some(error) => Err(error),
        None => Ok(loaded?),
    }
}

pub(super) fn account_record(
    of: &KeyedAccount,
    codes: &LoadedCodes<'_>,
) -> Result<AccountRecord, StateError> {
    let (address, account) = (of.address, of.account);
    let no_room = |cause| StateError::no_room(address, cause);
    // Only code of this size can be a delegation.
    let code = match codes.size(address, &account)? {
        0 => Code::None,
        23 => Code::of(&codes.bytes(account.code_hash)?).map_err(no_room)?,
        size => Code::Bytes(u32::try_from(size).map_err(|_| too_long(size))?),
    };
    let record = AccountRecord { account, code };
    record.fields(address)?;
    Ok(record)
}

fn too_long(size: usize) -> StateError {
    StateError::Read(format!("code of {size} bytes is too long for EIP-8297"))
}

/// Makes nodes of a zone from its leaves.
struct Zone {
    builder: Builder,
    nodes: Vec<Write>,
    load: NodeLoad,
}

impl Zone {
    fn new(tree: Eip8297) -> Self {
        Self {
            builder: Builder::part(tree.hasher, tree.packing, ZONE_BITS),
            nodes: Vec::new(),
            load: NodeLoad::by(depth_of_key),
        }
    }

    fn add(&mut self, leaf: LeafUpdate) -> Result<(), StateError> {
        let nodes = &mut self.nodes;
        let mut sink = |path: Path, record: Arc<[u8]>| nodes.push(node_write(&path, Some(record)));
        self.builder
            .add(leaf.key, leaf.value, &mut sink)
            .map_err(failed)
    }

    fn load_some(&mut self, versions: &mut Versions) -> Result<(), StateError> {
        self.load.add(versions, self.nodes.drain(..))
    }

    fn finish(self, versions: &mut Versions) -> Result<arbor_tree_eip8297::Part, StateError> {
        let (mut nodes, mut load) = (self.nodes, self.load);
        let mut sink = |path: Path, record: Arc<[u8]>| nodes.push(node_write(&path, Some(record)));
        let part = self.builder.finish_part(&mut sink).map_err(failed)?;
        load.add(versions, nodes)?;
        load.finish(versions)?;
        Ok(part)
    }
}

/// Builds all nodes from the flat tables, and returns the root.
fn load_nodes(
    tree: Eip8297,
    versions: &mut Versions,
    done: &(dyn Fn(u64) + Sync),
) -> Result<Hash, StateError> {
    let embedding = tree.embedding();
    let (mut header, mut storage) = (Zone::new(tree), Zone::new(tree));
    let mut parts = 0;
    for firsts in first_bytes(
        versions.view(),
        &Vec::from_iter(0..=u8::MAX),
        tree.leaf_bytes,
    )? {
        let leaves = OrderedLeaves::read(versions.view(), embedding, &firsts, &Err)?;
        for first in firsts {
            let both = rayon::join(
                || {
                    leaves
                        .take_header(first)
                        .into_iter()
                        .try_for_each(|leaf| header.add(leaf))
                },
                || {
                    leaves
                        .take_storage(first)
                        .into_iter()
                        .try_for_each(|leaf| storage.add(leaf))
                },
            );
            both.0.and(both.1)?;
            header.load_some(versions)?;
            storage.load_some(versions)?;
            parts += 1;
            done(parts);
        }
    }
    let header = header.finish(versions)?;
    let mut code = Zone::new(tree);
    {
        let mut add = |leaf| code.add(leaf);
        let firsts = Vec::from_iter(0..=u8::MAX);
        code_leaves_in_order(versions.view(), embedding, &firsts, &Err, &mut add)?;
    }
    let code = code.finish(versions)?;
    let storage = storage.finish(versions)?;
    let mut nodes = Vec::new();
    let mut sink = |path: Path, record: Arc<[u8]>| nodes.push(node_write(&path, Some(record)));
    let parts = [header, code, storage];
    let root = join(tree.hasher, tree.packing, &parts, &mut sink).map_err(failed)?;
    nodes.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    versions.load(&mut nodes.into_iter())?;
    Ok(root)
}
