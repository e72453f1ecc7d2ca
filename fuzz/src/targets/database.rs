//! A small database of which records are replaced.

use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_chain::replay::HeaderCheck;
use arbor_state::{
    Account, AccountChange, BlockRef, Network, SlotChange, State, StateChanges, StateView, Tree,
};
use arbor_store::{MemoryStore, Reader, Store, Table, Write};
use arbor_trees::MPT;
use arbor_verify::mpt::AccountProof;
use arbor_versions::{Options, Retain, Version, read_head_file};

use super::files::{parent, with_file};

/// An undo chunk of the last version of a database.
pub(super) fn undo(bytes: &[u8]) {
    let key = [2u64.to_be_bytes().as_slice(), &[0; 4]].concat();
    DATABASE.with(|database| database.read_with(Table(0xf2), &key, bytes));
}

/// A chunk of the old nodes of the last version of a database that keeps them.
pub(super) fn old_nodes(bytes: &[u8]) {
    let key = [2u64.to_be_bytes().as_slice(), &[0; 4]].concat();
    KEEPING.with(|database| database.read_with(Table(0xee), &key, bytes));
}

/// Any record of a database: the first byte says which one is replaced.
pub(super) fn stored(bytes: &[u8]) {
    let Some((&which, bytes)) = bytes.split_first() else {
        return;
    };
    DATABASE.with(|database| {
        let record = &database.records[usize::from(which) % database.records.len()];
        database.read_with(record.table, &record.key, bytes);
    });
}

/// The HEAD file's JSON, with the right checksum before it.
pub(super) fn head_file(bytes: &[u8]) {
    with_file("HEAD", bytes, |path| {
        let _ = read_head_file(parent(path));
    });
    let line = [bytes, b"\n"].concat();
    let text = [
        format!("arboretum-head 1 {:08x}\n", crc32(&line)).as_bytes(),
        &line,
    ]
    .concat();
    with_file("HEAD", &text, |path| {
        let _ = read_head_file(parent(path));
    });
}

/// Inputs of records to begin with, from the small database that records are replaced in.
pub(crate) fn record_seeds() -> Vec<(&'static str, Vec<u8>)> {
    DATABASE.with(|database| {
        let mut seeds = Vec::new();
        for (which, record) in database.records.iter().enumerate() {
            let value = record.value.as_deref().unwrap_or_default();
            if which < 256 {
                seeds.push(("stored", [&[which as u8], value].concat()));
            }
            match record.table {
                Table(3 | 0x82) => seeds.push(("node_record", value.to_vec())),
                Table(0xf2) => seeds.push(("undo", value.to_vec())),
                _ => {}
            }
        }
        let state = Database::open(&database.store, MPT.tree()).expect("opens");
        for number in [0, 1, 99] {
            let proof = state.prove(
                Address::with_last_byte(number),
                &[U256::from(1), U256::from(77)],
            );
            let proof: AccountProof = proof.expect("proven").into().expect("under this tree");
            let mut nodes = Vec::new();
            for node in proof.account_proof.iter().filter(|node| node.len() < 256) {
                nodes.push(node.len() as u8);
                nodes.extend_from_slice(node);
            }
            seeds.push(("rlp_nodes", nodes));
            seeds.push(("proof", serde_json::to_vec(&proof).expect("JSON")));
        }
        seeds.extend(KEEPING.with(old_node_seeds));
        seeds
    })
}

fn old_node_seeds(database: &Database) -> Vec<(&'static str, Vec<u8>)> {
    let records = database.records.iter();
    let old_nodes = records.filter(|record| record.table == Table(0xee));
    let value = |record: &Write| record.value.as_deref().unwrap_or_default().to_vec();
    old_nodes
        .map(|record| ("old_nodes", value(record)))
        .collect()
}

/// A small database: contracts with slots, three versions, an index.
pub(super) struct Database {
    store: Arc<MemoryStore>,
    records: Vec<Write>,
}

thread_local! {
    static DATABASE: Database = Database::new(|_| {});
    static KEEPING: Database = Database::new(State::keep_nodes);
}

impl Database {
    /// Makes it; something is done to it before its first version.
    fn new(prepare: fn(&mut State)) -> Self {
        let store = Arc::new(MemoryStore::default());
        let mut state = Self::open(&store, MPT.tree()).expect("created");
        prepare(&mut state);
        for version in 0..3u64 {
            let changes = changes(version);
            let computed = state.compute(&changes).expect("computed");
            let block = BlockRef {
                number: version,
                hash: B256::with_last_byte(version as u8),
                record: Vec::new(),
            };
            state.commit(&block, computed).expect("committed");
        }
        state.flush().expect("flushed");
        let mut records = Vec::new();
        for table in (0..=u8::MAX).map(Table) {
            for entry in store.scan(table, &[], &[]).expect("scanned") {
                let (key, value) = entry.expect("scanned");
                records.push(Write {
                    table,
                    key,
                    value: Some(value),
                });
            }
        }
        Self { store, records }
    }

    pub(super) fn open(
        store: &Arc<MemoryStore>,
        tree: Tree,
    ) -> Result<State, arbor_state::StateError> {
        let network = Network {
            chain_id: 1,
            genesis_hash: B256::ZERO,
        };
        let options = Options {
            retain: Retain::All,
            epoch: 2,
            background: false,
            ..Options::default()
        };
        State::open(
            store.clone() as Arc<dyn Store>,
            None,
            tree,
            network,
            options,
        )
    }

    /// Reads and checks everything with one record replaced.
    fn read_with(&self, table: Table, key: &[u8], value: &[u8]) {
        self.store
            .write(&[Write::put(table, key, value)], true)
            .expect("written");
        if let Ok(mut state) = Self::open(&self.store, MPT.tree()) {
            let mut headers = HeaderCheck::new(state.tree());
            let _ = state
                .snapshot()
                .and_then(|state| state.verify(&|_| {}, &mut |meta| headers.check(meta)));
            for number in 0..6 {
                let _ = state.account(Address::with_last_byte(number));
                let _ = state.storage(Address::with_last_byte(number), U256::from(1));
            }
            let _ = state.code(keccak256([0x60, 1]));
            let _ = state.prove(Address::with_last_byte(1), &[U256::from(1)]);
            for version in 0..2 {
                if let Ok(then) = state.at(Version(version)) {
                    let _ = then.prove(Address::with_last_byte(1), &[U256::from(1)]);
                }
                let view = state.versions().view();
                let _ = view.get_at(Version(version), Table(0x80), &keccak256([0; 20])[..]);
                let _ = view.version_of_block(version);
            }
            let _ = state.rollback(Version(1));
        }
        self.restore();
    }

    fn restore(&self) {
        for table in (0..=u8::MAX).map(Table) {
            self.store.delete_prefix(table, &[]).expect("deleted");
        }
        self.store.write(&self.records, true).expect("written");
    }
}

pub(super) fn changes(version: u64) -> StateChanges {
    let mut changes = StateChanges::default();
    let code = vec![0x60, 1];
    if version == 0 {
        changes.codes.insert(keccak256(&code), code.clone().into());
    }
    for number in 0..6u8 {
        let contract = number % 2 == 1;
        let slots = (0..if contract { 5u64 } else { 0 }).map(|slot| {
            let old = if version == 0 { 0 } else { slot + version };
            let values = SlotChange {
                old: U256::from(old),
                new: U256::from(slot + version + 1),
            };
            (U256::from(slot), values)
        });
        let account = |version: u64| Account {
            nonce: version,
            balance: U256::from(1_000 * version + u64::from(number)),
            code_hash: if contract {
                keccak256(&code)
            } else {
                KECCAK256_EMPTY
            },
        };
        let change = AccountChange {
            old: version.checked_sub(1).map(account),
            new: Some(account(version)),
            slots: slots.collect(),
            ..Default::default()
        };
        changes
            .accounts
            .insert(Address::with_last_byte(number), change);
    }
    changes
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}
