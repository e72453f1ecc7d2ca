//! One function for each decoder: takes any bytes, and must return. Fuzzing calls them, and an ordinary test of the
//! command line runs them over seeds and over whatever fuzzing has ever found.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256, keccak256};
use arbor_chain::generator::{GeneratorSettings, Mix};
use arbor_chain::genesis::Genesis;
use arbor_chain::json;
use arbor_chain::replay::HeaderCheck;
use arbor_chain::source::era1::Era1File;
use arbor_chain::source::open_sources;
use arbor_chain::witness::BlockWitness;
use arbor_ipa::{
    Committer, Fr, InnerProductProof, Multiproof, Opening, Point, Query, Transcript, Trust,
};
use arbor_metrics::Envelope;
use arbor_state::ar16mt::recovery::{EntriesReader, EntriesWriter, Recovery, RecoveryError};
use arbor_state::ar16mt::{
    AccountSlots, Ar16mt, LeafProof, RangeProof, StateMultiproof, StateProof,
};
use arbor_state::{
    Account, AccountChange, AccountProof, BlockRef, Network, SlotChange, State, StateChanges,
    StateView, Tree,
};
use arbor_store::{MemoryStore, Reader, Store, Table, Write};
use arbor_tree_ar16mt::{Blake2s, Entry, LeafUpdate, MemoryTree as Tree16, Path as Path16};
use arbor_tree_mpt::{Record, WitnessNodes};
use arbor_tree_verkle::{
    MemoryTree, NodeKey, Settings as VerkleSettings, StemUpdate, ValueChange,
    Witness as VerkleWitness,
};
use arbor_versions::{Options, Retain, Version, read_head_file};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A decoder under its name.
pub(crate) type Target = (&'static str, fn(&[u8]));

/// All of them.
pub(crate) const TARGETS: &[Target] = &[
    ("era1", era1),
    ("export", export),
    ("genesis", genesis),
    ("node_record", node_record),
    ("rlp_nodes", rlp_nodes),
    ("proof", proof),
    ("witness", witness),
    ("undo", undo),
    ("stored", stored),
    ("head_file", head_file),
    ("report", report),
    ("settings", settings),
    ("point", point),
    ("scalar", scalar),
    ("multiproof", multiproof),
    ("verkle_record", verkle_record),
    ("verkle_witness", verkle_witness),
    ("ar16mt_record", ar16mt_record),
    ("ar16mt_multiproof", ar16mt_multiproof),
    ("ar16mt_proof", ar16mt_proof),
    ("ar16mt_accounts", ar16mt_accounts),
    ("ar16mt_range", ar16mt_range),
    ("entries", entries),
];

/// An era1 file, its blocks and receipts.
fn era1(bytes: &[u8]) {
    with_file("a.era1", bytes, |path| {
        let Ok(mut file) = Era1File::open(path) else {
            return;
        };
        let _ = file.ends();
        while let Ok(Some(block)) = file.next_raw() {
            if let Ok(block) = block.decode()
                && let Some(receipts) = &block.receipts
            {
                let _ = receipts.decode();
            }
        }
    });
}

/// An export, plain or gzipped: a sequence of RLP blocks.
fn export(bytes: &[u8]) {
    with_file("chain.rlp", bytes, |path| {
        let Ok(mut input) = open_sources(&[path.to_owned()]) else {
            return;
        };
        while let Ok(Some(block)) = input.next_raw() {
            let _ = block.decode();
        }
    });
}

/// A genesis in geth's JSON form.
fn genesis(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Genesis::from_json(text, &|_| B256::ZERO);
    }
}

/// A stored node; what decodes must be in the one form that encoding gives.
fn node_record(bytes: &[u8]) {
    if let Ok(record) = Record::decode(bytes) {
        let mut again = Vec::new();
        record.encode_into(&mut again);
        assert_eq!(again, bytes, "a record has two forms");
        let _ = record.bare_branch();
    }
}

/// Nodes of a proof or witness as RLP: a length byte before each, the first one being the root.
fn rlp_nodes(bytes: &[u8]) {
    let (mut nodes, mut rest) = (Vec::new(), bytes);
    while let Some((&length, tail)) = rest.split_first() {
        let (node, tail) = tail.split_at(tail.len().min(usize::from(length)));
        nodes.push(node.to_vec());
        rest = tail;
    }
    let Some(first) = nodes.first() else { return };
    let root = keccak256(first).0;
    for key in [[0; 32], [0x11; 32], keccak256(bytes).0] {
        let _ = arbor_tree_mpt::verify(&root, &key, &nodes);
        let known = WitnessNodes::new(nodes.iter().cloned());
        let _ = known.value(None, root, &key);
    }
}

/// A stored node of a Verkle tree, after its database key.
fn verkle_record(bytes: &[u8]) {
    let length = bytes.first().map_or(0, |&depth| 1 + usize::from(depth));
    let Some((key, record)) = bytes.split_at_checked(length) else {
        return;
    };
    if let Ok(key) = NodeKey::decode(key) {
        assert_eq!(key.encode(), &bytes[..length], "a key has two forms");
        let _ = arbor_tree_verkle::Record::decode(&key, record);
    }
}

/// A witness of a Verkle tree, as SSZ and as JSON, verified at one root; only a tree's own proof holds.
fn verkle_witness(bytes: &[u8]) {
    let read = VerkleWitness::from_bytes(bytes);
    if let Ok(witness) = &read {
        assert_eq!(witness.to_bytes(), bytes, "a witness has two forms");
    }
    let Ok(witness) = read.or_else(|_| serde_json::from_slice(bytes)) else {
        return;
    };
    let again = serde_json::to_value(&witness).and_then(serde_json::from_value::<VerkleWitness>);
    assert_eq!(again.expect("its own JSON"), witness);
    VERKLE.with(|(committer, own, root)| {
        if let Ok(Some(verified)) = witness.verify(committer, root) {
            assert!(own.proof == witness.proof, "a proof forged");
            verified
                .root_after(committer)
                .expect("all nodes are proven");
        }
    });
}

thread_local! {
    static VERKLE: (Committer, VerkleWitness, [u8; 32]) = {
        let committer = Committer::within(6_000_000);
        let (witness, root) = proven(&committer);
        (committer, witness, root)
    };
}

/// A witness of some keys, absent and present, and the root that it holds at.
fn proven(committer: &Committer) -> (VerkleWitness, [u8; 32]) {
    let changes = |suffixes: &[u8]| -> Vec<ValueChange> {
        let change = |&suffix| ValueChange {
            suffix,
            old: None,
            new: Some([suffix; 32]),
        };
        suffixes.iter().map(change).collect()
    };
    let mut near = [1; 31];
    near[5] = 2;
    let updates = [([1; 31], &[0, 200][..]), (near, &[1]), ([9; 31], &[2])];
    let updates = updates.map(|(stem, suffixes)| StemUpdate {
        stem,
        changes: changes(suffixes),
    });
    let mut tree = MemoryTree::new();
    let done = arbor_tree_verkle::apply(&tree, committer, &updates, &VerkleSettings::default())
        .expect("applies");
    tree.change_nodes(&done.nodes);
    for update in &updates {
        for change in &update.changes {
            tree.set_value(update.stem, change.suffix, change.new);
        }
    }
    let keys = [
        ([1; 31], 0),
        ([1; 31], 5),
        (near, 1),
        ([3; 31], 0),
        ([9; 31], 1),
        ([9; 31], 130),
    ];
    let mut other = near;
    other[30] = 7;
    let keys = [&keys[..], &[(other, 3)]].concat();
    let mut witness = arbor_tree_verkle::prove(&tree, committer, &keys).expect("proves");
    for diff in &mut witness.state_diff {
        diff.suffixes[0].new = Some([5; 32]);
    }
    (witness, done.root_hash())
}

/// Seeds of the Verkle tree's targets.
pub(crate) fn verkle_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let witness = VERKLE.with(|(_, witness, _)| witness.clone());
    let json = serde_json::to_vec(&witness).expect("JSON");
    let root = [&[0, 5, 1, 9][..], &[0; 65]].concat();
    let leaf = [&[1, 7, 1][..], &[3; 30], &[1, 4], &[0; 64]].concat();
    vec![
        ("verkle_witness", witness.to_bytes()),
        ("verkle_witness", json),
        ("verkle_record", root),
        ("verkle_record", leaf),
    ]
}

/// A stored node of AR16MT, after its database key.
fn ar16mt_record(bytes: &[u8]) {
    let Ok((path, record)) = Path16::decode_front(bytes) else {
        return;
    };
    if let Ok(decoded) = arbor_tree_ar16mt::Record::decode(&path, record) {
        assert_eq!(decoded.encode(&path), record, "a record has two forms");
    }
}

/// A multiproof of AR16MT, verified at one root; whatever holds is what the tree has.
fn ar16mt_multiproof(bytes: &[u8]) {
    let Ok(proof) = arbor_tree_ar16mt::Multiproof::decode(bytes) else {
        return;
    };
    assert_eq!(proof.encode(), bytes, "a multiproof has two forms");
    AR16MT.with(|(tree, root)| {
        if let Ok(true) = proof.verify(Blake2s::new(), root) {
            for (key, entry) in proof.entries() {
                assert_eq!(tree.leaves().get(key).copied(), entry, "a proof forged");
            }
        }
    });
}

/// A proof of an account and its slots under AR16MT.
fn ar16mt_proof(bytes: &[u8]) {
    if let Ok(proof) = serde_json::from_slice::<StateProof>(bytes) {
        let again = serde_json::to_value(&proof).and_then(serde_json::from_value::<StateProof>);
        assert_eq!(again.expect("its own JSON"), proof);
        let _ = proof.verify(B256::ZERO);
    }
}

thread_local! {
    static AR16MT: (Tree16, [u8; 32]) = {
        let mut near = [1; 32];
        near[30] = 2;
        let keys = [[1; 32], near, [2; 32], [0x99; 32]];
        let updates: Vec<_> = keys.into_iter().zip(1..).map(|(key, index)| LeafUpdate {
            key,
            existed: false,
            new: Some(Entry { index, value: [index as u8; 32] }),
        }).collect();
        let mut tree = Tree16::default();
        let done = arbor_tree_ar16mt::apply(&tree, Blake2s::new(), &updates).expect("applies");
        tree.change(&done, &updates);
        (tree, done.root)
    };
}

/// A proof of several accounts and their slots under AR16MT, verified at one root; what holds is what the state has.
fn ar16mt_accounts(bytes: &[u8]) {
    let Some(proof) = read_twice::<StateMultiproof>(bytes) else {
        return;
    };
    ACCOUNTS16.with(|state| {
        let Ok(Some(proven)) = proof.verify(state.root()) else {
            return;
        };
        assert_eq!(proven.len(), proof.accounts.len(), "accounts left out");
        for (proven, named) in proven.iter().zip(&proof.accounts) {
            assert_eq!(proven.address, named.address, "another account");
            let account = state.account(named.address).expect("read");
            assert_eq!(proven.account, account, "an account forged");
            let slots = named.slots.iter().map(|slot| {
                let value = state.storage(named.address, *slot);
                (*slot, value.expect("read"))
            });
            assert!(proven.slots.iter().copied().eq(slots), "a slot forged");
        }
    });
}

/// A proof of all leaves between two keys under AR16MT, verified at one root; what holds are the leaves that the state has there.
fn ar16mt_range(bytes: &[u8]) {
    let Some(proof) = read_twice::<RangeProof>(bytes) else {
        return;
    };
    ACCOUNTS16.with(|state| {
        if let Ok(true) = proof.verify(state.root()) {
            let then = state.at(Version(0)).expect("the only version");
            let own = then.prove_range(proof.from, proof.to).expect("a range");
            assert_eq!(proof.entries, own.entries, "a range forged");
        }
    });
}

/// Reads JSON as `arbor verify-proof` does; what is read must be written as it was read.
fn read_twice<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    bytes: &[u8],
) -> Option<T> {
    let read: T = json::from_value(json::parse(bytes).ok()?).ok()?;
    let text = serde_json::to_vec(&read).expect("JSON");
    let again: T = json::from_value(json::parse(&text).expect("its own JSON")).expect("its own");
    assert_eq!(again, read, "it is written otherwise");
    Some(read)
}

thread_local! {
    /// Accounts and slots under AR16MT.
    static ACCOUNTS16: State = {
        let mut state = Database::open(&Arc::default(), Tree::Ar16mt(Ar16mt::default())).expect("created");
        let computed = state.compute(&changes(0)).expect("computed");
        let block = BlockRef {
            number: 0,
            hash: B256::ZERO,
            header: Vec::new(),
        };
        state.commit(&block, computed).expect("committed");
        state
    };
}

/// Proofs that hold of accounts and ranges, present and absent.
fn ar16mt_state_seeds() -> Vec<(&'static str, Vec<u8>)> {
    ACCOUNTS16.with(|state| {
        let then = state.at(Version(0)).expect("the only version");
        let named = |number, slots: &[u64]| AccountSlots {
            address: Address::with_last_byte(number),
            slots: slots.iter().copied().map(U256::from).collect(),
        };
        let accounts = [
            vec![named(1, &[0, 4, 77]), named(2, &[]), named(99, &[1])],
            vec![named(0, &[])],
            Vec::new(),
        ];
        let whole = then.prove_range(B256::ZERO, B256::repeat_byte(0xff));
        let leaves = whole.expect("proven").entries;
        let (second, last) = (leaves[1].key, leaves[leaves.len() - 1].key);
        let ranges = [
            (second, leaves[3].key),
            (B256::ZERO, second),
            (last, B256::repeat_byte(0xff)),
            (second, second),
            (B256::with_last_byte(1), B256::with_last_byte(2)),
        ];
        let accounts = accounts.map(|accounts| {
            let proof = then.prove_many(&accounts).expect("proven");
            let holds = matches!(proof.verify(state.root()), Ok(Some(_)));
            // One of nothing shows nothing.
            assert_eq!(holds, !accounts.is_empty());
            ("ar16mt_accounts", serde_json::to_vec(&proof).expect("JSON"))
        });
        let ranges = ranges.map(|(from, to)| {
            let proof = then.prove_range(from, to).expect("proven");
            assert_eq!(proof.verify(state.root()), Ok(true));
            ("ar16mt_range", serde_json::to_vec(&proof).expect("JSON"))
        });
        accounts.into_iter().chain(ranges).collect()
    })
}

/// Well-formed inputs.
pub(crate) fn ar16mt_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = AR16MT.with(|(tree, _)| {
        let keys = [[1; 32], [3; 32], [0x99; 32]];
        let proof = arbor_tree_ar16mt::Multiproof::new(tree, Blake2s::new(), &keys);
        let mut seeds = vec![("ar16mt_multiproof", proof.expect("proven").encode())];
        for (path, record) in tree.nodes() {
            let mut bytes = Vec::new();
            path.encode_into(&mut bytes);
            bytes.extend_from_slice(record);
            seeds.push(("ar16mt_record", bytes));
        }
        seeds
    });
    let leaf = || LeafProof {
        index: Some(1),
        path: vec![B256::ZERO; 3],
    };
    let proof = StateProof {
        address: Address::ZERO,
        exists: true,
        nonce: 1,
        balance: U256::from(2),
        code_hash: KECCAK256_EMPTY,
        nonce_leaf: leaf(),
        balance_leaf: leaf(),
        code_hash_leaf: LeafProof {
            index: None,
            path: Vec::new(),
        },
        slots: Vec::new(),
    };
    seeds.push(("ar16mt_proof", serde_json::to_vec(&proof).expect("JSON")));
    seeds.extend(ar16mt_state_seeds());
    seeds
}

/// A list of a state's entries, as it is and with right checks.
fn entries(bytes: &[u8]) {
    read_entries(bytes);
    read_entries(&with_right_checks(bytes));
}

/// Reads a list and writes it again as it was; then a database is made of it, and checked.
fn read_entries(bytes: &[u8]) {
    let Ok(mut reader) = EntriesReader::new(bytes) else {
        return;
    };
    let mut writer = EntriesWriter::new(Vec::new(), reader.head()).expect("written");
    while let Ok(Some(chunk)) = reader.next_chunk() {
        writer.chunk(&chunk).expect("written");
    }
    let (list, _) = writer.finish().expect("written");
    let mut again = EntriesReader::new(&list[..]).expect("its own file");
    while again.next_chunk().expect("its own file").is_some() {}
    assert_eq!(again.totals(), reader.totals());
    assert_eq!(with_right_checks(&list), list, "its own file's checks");
    if let Ok(tree) = reader.head().tree() {
        let (store, network) = (Arc::new(MemoryStore::default()), reader.head().network());
        let mut state =
            State::open(store, None, tree, network, Options::default()).expect("a new one");
        let (recovered, checked) = (recover(&mut state, &list), state.verify());
        if recovered.is_ok() {
            checked.expect("a recovered database can be read");
        }
    }
}

fn recover(state: &mut State, list: &[u8]) -> Result<(), RecoveryError> {
    let mut reader = EntriesReader::new(list)?;
    let mut recovery = Recovery::new(state, reader.head().clone())?;
    while let Some(chunk) = reader.next_chunk()? {
        recovery.add(chunk, reader.place())?;
    }
    recovery.finish(reader.place())
}

/// Gives each frame of a list the check of what it has, however the list was changed, as far as there are frames.
fn with_right_checks(list: &[u8]) -> Vec<u8> {
    const MAGIC: usize = 9;
    const FRAME: usize = 9;
    const CHECK: usize = 8;
    let mut list = list.to_vec();
    let mut start = MAGIC;
    while let Some((_, length)) = list
        .get(start..start + FRAME)
        .and_then(|frame| frame.split_last_chunk::<4>())
    {
        let end = (start + FRAME).saturating_add(u32::from_be_bytes(*length) as usize);
        if end.saturating_add(CHECK) > list.len() {
            break;
        }
        let check = keccak256(&list[start..end]);
        list[end..end + CHECK].copy_from_slice(&check[..CHECK]);
        start = end + CHECK;
    }
    list
}

/// A proof as `eth_getProof` gives it.
fn proof(bytes: &[u8]) {
    if let Ok(proof) = serde_json::from_slice::<AccountProof>(bytes) {
        let root = proof.account_proof.first().map_or(B256::ZERO, keccak256);
        let _ = proof.verify(root);
    }
}

/// A block with its witness.
fn witness(bytes: &[u8]) {
    with_file("w.json", bytes, |path| {
        if let Ok(witness) = BlockWitness::from_file(path) {
            let _ = witness.decode();
            let _ = witness.check();
            let _ = witness.spec();
        }
    });
}

/// An undo chunk of the last version of a database.
fn undo(bytes: &[u8]) {
    let key = [2u64.to_be_bytes().as_slice(), &[0; 4]].concat();
    DATABASE.with(|database| database.read_with(Table(0xf2), &key, bytes));
}

/// Any record of a database: the first byte says which one is replaced.
fn stored(bytes: &[u8]) {
    let Some((&which, bytes)) = bytes.split_first() else {
        return;
    };
    DATABASE.with(|database| {
        let record = &database.records[usize::from(which) % database.records.len()];
        database.read_with(record.table, &record.key, bytes);
    });
}

/// The HEAD file's JSON, with the right checksum before it.
fn head_file(bytes: &[u8]) {
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

/// A report of a command.
fn report(bytes: &[u8]) {
    with_file("r.json", bytes, |path| {
        let _ = Envelope::read_from(path);
    });
}

/// Settings of a generated chain, and the mix of its transactions.
fn settings(bytes: &[u8]) {
    if let Ok(settings) = serde_json::from_slice::<GeneratorSettings>(bytes) {
        let _ = settings.validate();
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(mix) = text.parse::<Mix>()
    {
        assert_eq!(
            mix.to_string().parse(),
            Ok(mix),
            "a mix is not read as it is written"
        );
    }
}

/// An element of the Verkle tree's group, compressed or not; what decodes must be in the one form that encoding gives.
fn point(bytes: &[u8]) {
    let compressed = Point::from_bytes(bytes);
    if let Ok(point) = &compressed {
        assert_eq!(point.to_bytes(), bytes, "a point has two encodings");
    }
    if let Ok(array) = bytes.try_into() {
        let batch = Point::from_bytes_batch(&[array; 9], Trust::Untrusted);
        assert!(
            batch.iter().all(|point| *point == compressed),
            "a batch decodes otherwise"
        );
        let _ = Point::from_bytes_batch(&[array], Trust::Trusted);
    }
    let _ = Point::from_uncompressed(bytes, Trust::Trusted);
    if let Ok(point) = Point::from_uncompressed(bytes, Trust::Untrusted) {
        let again = Point::to_uncompressed_batch(&[point])[0];
        assert_eq!(again, bytes, "a point has two encodings");
        assert_eq!(
            Point::from_bytes(&point.to_bytes()),
            Ok(point),
            "another point in the other form"
        );
    }
}

/// A scalar: taken in its one form, or reduced.
fn scalar(bytes: &[u8]) {
    let Ok(bytes) = bytes.try_into() else {
        return;
    };
    let reduced = Fr::from_le_bytes_reduced(bytes);
    match Fr::from_le_bytes(bytes) {
        Ok(scalar) => {
            assert_eq!(scalar.to_le_bytes(), *bytes, "a scalar has two encodings");
            assert_eq!(scalar, reduced);
        }
        Err(_) => assert_eq!(Fr::from_le_bytes(&reduced.to_le_bytes()), Ok(reduced)),
    }
}

/// A multiproof, and the inner product proof in it, which is then verified; only the seed's own bytes are a proof of the seed's query.
fn multiproof(bytes: &[u8]) {
    OPENED.with(|opened| {
        if let Ok(proof) = InnerProductProof::from_bytes(bytes) {
            assert_eq!(proof.to_bytes(), bytes, "a proof has two encodings");
        }
        if let Ok(proof) = Multiproof::from_bytes(bytes) {
            assert_eq!(proof.to_bytes(), bytes, "a proof has two encodings");
            let verified = proof.verify(
                &opened.committer,
                &mut Transcript::new(b"vt"),
                &[opened.query],
            );
            assert_eq!(verified, bytes == opened.proof, "a forged proof");
        }
    });
}

/// A polynomial opened at one point, with small tables.
struct Opened {
    committer: Committer,
    query: Query,
    proof: Vec<u8>,
}

thread_local! {
    static OPENED: Opened = Opened::new();
}

impl Opened {
    fn new() -> Self {
        let committer = Committer::within(6_000_000);
        let polynomial = std::array::from_fn(|i| Fr::from(i as u64 + 7));
        let (commitment, point) = (committer.commit(&polynomial), 13);
        let opening = Opening {
            commitment,
            polynomial: &polynomial,
            point,
        };
        let proof = Multiproof::prove(&committer, &mut Transcript::new(b"vt"), &[opening]);
        let query = Query {
            commitment,
            point,
            value: polynomial[usize::from(point)],
        };
        Self {
            committer,
            query,
            proof: proof.to_bytes(),
        }
    }
}

/// Inputs of the commitments' decoders to begin with.
pub(crate) fn commitment_seeds() -> Vec<(&'static str, Vec<u8>)> {
    OPENED.with(|opened| {
        let point = opened.query.commitment;
        vec![
            ("point", point.to_bytes().to_vec()),
            ("point", Point::to_uncompressed_batch(&[point])[0].to_vec()),
            ("point", vec![0; 32]),
            ("scalar", opened.query.value.to_le_bytes().to_vec()),
            ("scalar", (-Fr::ONE).to_le_bytes().to_vec()),
            ("scalar", vec![0xff; 32]),
            ("multiproof", opened.proof.clone()),
            ("multiproof", opened.proof[32..].to_vec()),
        ]
    })
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
        let state = Database::open(&database.store, Tree::MerklePatricia).expect("opens");
        for number in [0, 1, 99] {
            let proof = state.prove(
                Address::with_last_byte(number),
                &[U256::from(1), U256::from(77)],
            );
            let proof = proof.expect("proven");
            let mut nodes = Vec::new();
            for node in proof.account_proof.iter().filter(|node| node.len() < 256) {
                nodes.push(node.len() as u8);
                nodes.extend_from_slice(node);
            }
            seeds.push(("rlp_nodes", nodes));
            seeds.push(("proof", serde_json::to_vec(&proof).expect("JSON")));
        }
        seeds
    })
}

/// A small database: contracts with slots, three versions, an index.
struct Database {
    store: Arc<MemoryStore>,
    records: Vec<Write>,
}

thread_local! {
    static DATABASE: Database = Database::new();
    static FOLDER: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

impl Database {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::default());
        let mut state = Self::open(&store, Tree::MerklePatricia).expect("created");
        for version in 0..3u64 {
            let changes = changes(version);
            let computed = state.compute(&changes).expect("computed");
            let block = BlockRef {
                number: version,
                hash: B256::with_last_byte(version as u8),
                header: Vec::new(),
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

    fn open(store: &Arc<MemoryStore>, tree: Tree) -> Result<State, arbor_state::StateError> {
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
        if let Ok(mut state) = Self::open(&self.store, Tree::MerklePatricia) {
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

fn changes(version: u64) -> StateChanges {
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

/// Runs `read` on a file with these bytes, in memory where the system has such a place.
fn with_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path)) {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| {
            let shared = Path::new("/dev/shm");
            let root = if shared.is_dir() {
                shared.to_owned()
            } else {
                std::env::temp_dir()
            };
            let thread = format!("{:?}", std::thread::current().id());
            let folder = root.join(format!("arbor-decoders-{}-{thread}", std::process::id()));
            std::fs::create_dir_all(&folder).expect("a folder");
            folder
        });
        let path = folder.join(name);
        std::fs::write(&path, bytes).expect("written");
        read(&path);
        std::fs::remove_file(&path).expect("removed");
    });
}

fn parent(path: &Path) -> &Path {
    path.parent().expect("it lies in a folder")
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}
