//! Proofs of many keys, of ranges, and the prover's form.

#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use std::collections::BTreeMap;

use arbor_tree::conformance::flat::key;
use arbor_tree_ar16mt::{
    Blake2s, DEPTH, Entry, Hash, Hasher, LeafUpdate, LogsError, MemoryTree, Multiproof,
    MultiproofError, Operation, RangeDigest, RangeError, StorageLogs, apply, apply_with_proofs,
    naive, prove,
};
use proptest::prelude::*;

fn hasher() -> Blake2s {
    Blake2s::new()
}

fn entry(index: u64) -> Entry {
    let value = [index as u8; 32];
    Entry { index, value }
}

fn tree(leaves: &BTreeMap<Hash, Entry>) -> MemoryTree {
    let update = |(key, entry): (&Hash, &Entry)| LeafUpdate {
        key: *key,
        existed: false,
        new: Some(*entry),
    };
    let updates: Vec<LeafUpdate> = leaves.iter().map(update).collect();
    let mut tree = MemoryTree::default();
    let done = apply(&tree, hasher(), &updates).unwrap();
    tree.change(&done, &updates);
    tree
}

fn numbered(keys: &[Hash]) -> BTreeMap<Hash, Entry> {
    keys.iter()
        .zip(1..)
        .map(|(key, i)| (*key, entry(i)))
        .collect()
}

fn tree_has(leaves: &[(Hash, Entry)], key: &Hash) -> bool {
    leaves.iter().any(|(other, _)| other == key)
}

/// The root that a range of entries leads to with the paths of its first and last.
fn range_root(
    tree: &MemoryTree,
    entries: &[(Hash, Entry)],
    step: usize,
) -> Result<Hash, RangeError> {
    let ends = [entries[0].0, entries[entries.len() - 1].0];
    let proofs = prove(tree, hasher(), &ends).unwrap();
    let mut digest = RangeDigest::new(hasher(), entries[0], &proofs[0].path)?;
    for some in entries[1..].chunks(step) {
        digest.extend(some)?;
    }
    digest.root(&proofs[1].path)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn many_keys_are_proven_together(
        there in prop::collection::vec(key(), 0..12),
        asked in prop::collection::vec(key(), 1..10),
        flip in any::<prop::sample::Index>(),
        bit in 0u8..8,
    ) {
        let leaves = numbered(&there);
        let root = naive::root(&leaves);
        let asked: Vec<Hash> = asked.into_iter().chain(there.iter().take(4).copied()).collect();
        let proof = Multiproof::new(&tree(&leaves), hasher(), &asked).unwrap();
        let found: BTreeMap<Hash, Option<Entry>> = proof.entries().map(|(key, entry)| (*key, entry)).collect();
        let expected: BTreeMap<_, _> = asked.iter().map(|key| (*key, leaves.get(key).copied())).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(proof.verify(hasher(), &root), Ok(true));
        prop_assert_eq!(proof.verify(hasher(), &[1; 32]), Ok(false));

        // The root after all of them are written.
        let mut after = leaves.clone();
        after.extend(asked.iter().map(|key| (*key, entry(99))));
        let written = proof.root_with(hasher(), |_, _| Some(entry(99))).unwrap();
        prop_assert_eq!(written, Some(naive::root(&after)));

        let bytes = proof.encode();
        prop_assert_eq!(&Multiproof::decode(&bytes).unwrap(), &proof);
        for cut in [0, 3, bytes.len() / 2, bytes.len() - 1] {
            prop_assert_eq!(Multiproof::decode(&bytes[..cut]), Err(MultiproofError::Short(cut)));
        }
        let longer = Multiproof::decode(&[&bytes[..], &[0]].concat());
        prop_assert_eq!(longer, Err(MultiproofError::Long(bytes.len())));
        // Whatever bit is flipped: it is no proof, or shows nothing of what it said.
        let mut flipped = bytes.clone();
        flipped[flip.index(bytes.len())] ^= 1 << bit;
        if let Ok(other) = Multiproof::decode(&flipped) {
            let shows = other.verify(hasher(), &root) == Ok(true);
            let says: BTreeMap<_, _> = other.entries().map(|(key, entry)| (*key, entry)).collect();
            // Of an absent key the next one may be absent, too, and a height may be said lower than it need be, never with other entries.
            prop_assert!(!shows || says.iter().all(|(key, entry)| leaves.get(key) == entry.as_ref()));
        }
    }

    #[test]
    fn ranges_are_whole(
        there in prop::collection::btree_set(key(), 1..16),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
        left_out in any::<prop::sample::Index>(),
        step in 1usize..5,
    ) {
        let keys: Vec<Hash> = there.into_iter().collect();
        let leaves = numbered(&keys);
        let (tree, root) = (tree(&leaves), naive::root(&leaves));
        let all: Vec<(Hash, Entry)> = leaves.into_iter().collect();
        let (from, to) = (from.index(all.len()), to.index(all.len()));
        let some = &all[from.min(to)..=from.max(to)];
        prop_assert_eq!(range_root(&tree, some, step), Ok(root));
        // From before the first to behind the last, where nothing is.
        let beside = |key: &Hash, by: i8| {
            let mut key = *key;
            key[31] = key[31].wrapping_add_signed(by);
            key
        };
        let (before, behind) = (beside(&some[0].0, -1), beside(&some[some.len() - 1].0, 1));
        if before < some[0].0 && behind > some[some.len() - 1].0 && !tree_has(&all, &before) && !tree_has(&all, &behind) {
            let ends = prove(&tree, hasher(), &[before, behind]).unwrap();
            let whole = |entries: &[(Hash, Entry)]| {
                let mut digest = RangeDigest::after(hasher(), before, &ends[0].path)?;
                digest.extend(entries)?;
                digest.root_before(behind, &ends[1].path)
            };
            prop_assert_eq!(whole(some), Ok(root));
            prop_assert_ne!(whole(&some[1..]), Ok(root), "without the first");
            prop_assert_ne!(whole(&some[..some.len() - 1]), Ok(root), "without the last");
        }
        let mut other = some.to_vec();
        let at = left_out.index(some.len());
        other[at].1.value[0] ^= 1;
        prop_assert_ne!(range_root(&tree, &other, step), Ok(root), "another value");
        if at > 0 && at + 1 < some.len() {
            other.remove(at);
            prop_assert_ne!(range_root(&tree, &other, step), Ok(root), "without an entry");
        }
    }

    #[test]
    fn bytes_that_are_no_multiproof_are_errors(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(proof) = Multiproof::decode(&bytes) {
            prop_assert_eq!(proof.encode(), bytes);
            _ = proof.verify(hasher(), &[0; 32]);
        }
    }
}

#[test]
fn what_is_no_range_is_an_error() {
    let leaf = ([2; 32], entry(1));
    let zero = Entry {
        index: 0,
        value: [0; 32],
    };
    let new = |leaf, path: &[Hash]| RangeDigest::new(hasher(), leaf, path).map(|_| ());
    let too_long = Err(RangeError::Path {
        key: [2; 32],
        hashes: 257,
    });
    assert_eq!(new(leaf, &[[0; 32]; 257]), too_long);
    assert_eq!(new(([2; 32], zero), &[]), Err(RangeError::Index([2; 32])));
    let mut digest = RangeDigest::new(hasher(), leaf, &[]).unwrap();
    assert_eq!(digest.extend(&[leaf]), Err(RangeError::Order([2; 32])));
    assert_eq!(
        digest.extend(&[([3; 32], zero)]),
        Err(RangeError::Index([3; 32]))
    );
    assert_eq!(digest.root(&[[0; 32]; 257]).map(|_| ()), too_long);
}

#[test]
fn a_multiproof_has_the_hashes_that_it_needs() {
    let none = Multiproof::new(&MemoryTree::default(), hasher(), &[]).unwrap();
    assert_eq!(none.verify(hasher(), &[0; 32]), Ok(false));
    let one = Multiproof::new(&MemoryTree::default(), hasher(), &[[1; 32]]).unwrap();
    let mut bytes = one.encode();
    // One hash more than it needs.
    *bytes.last_mut().unwrap() = 1;
    bytes.extend([7; 32]);
    let more = Multiproof::decode(&bytes).unwrap();
    assert_eq!(
        more.verify(hasher(), &[0; 32]),
        Err(MultiproofError::Hashes(1))
    );
    // Empty up to one level lower than it says.
    let at = bytes.len() - 32 - 4 - 1;
    (bytes[at - 1], bytes[at]) = (0, 254);
    let fewer = Multiproof::decode(&bytes).unwrap();
    assert_eq!(
        fewer.verify(hasher(), &[0; 32]),
        Err(MultiproofError::Hashes(1))
    );
    (bytes[at - 1], bytes[at]) = (1, 1);
    assert_eq!(
        Multiproof::decode(&bytes),
        Err(MultiproofError::Field {
            what: "height",
            key: [1; 32],
            offset: at + 1,
        })
    );
}

/// A file of the original's tests; none, after recording that the test is skipped, if it is not there.
fn snapshot(test: &str, name: &str) -> Option<String> {
    let name = format!("vectors/zksync_merkle_tree/integration__domain__{name}.snap");
    let path = arbor_testdata::find(test, &name)?;
    Some(std::fs::read_to_string(path).expect("readable"))
}

/// The fields of a log, of lists all lines.
fn fields(log: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut fields: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in log.lines().map(str::trim) {
        if let Some(hash) = line.strip_prefix("- ") {
            fields.get_mut(name).unwrap().push(hash);
        } else if let Some((key, value)) = line.split_once(':') {
            name = key;
            fields.insert(key, vec![value.trim()]);
        }
    }
    fields
}

fn word(text: &str) -> Hash {
    hex::decode(text.trim_matches('"'))
        .unwrap()
        .try_into()
        .unwrap()
}

/// The 100 leaves of the original's `gen_storage_logs`: slots 0 to 19 of each of five contracts, with running numbers, sorted by contract and slot.
fn storage_logs() -> Vec<Operation> {
    let contracts = [
        "4b3af74f66ab1f0da3f2e4ec7a3cb99baf1af7b2",
        "ef4bb7b21c5fe7432a7d63876cc59ecc23b46636",
        "89b8988a018f5348f52eeac77155a793adf03ecc",
        "782806db027c08d36b2bed376b4271d1237626b3",
        "b2b57b76717ee02ae1327cc3cf1f40e76f692311",
    ];
    let leaves = contracts.iter().flat_map(|contract| {
        (0..20u8).map(move |slot| {
            let mut message = [0; 64];
            hex::decode_to_slice(contract, &mut message[12..32]).unwrap();
            message[63] = slot;
            let mut key = arbor_hashing::blake2s::Blake2s::new().hash(&message);
            key.reverse();
            key
        })
    });
    let leaf = |(key, number): (Hash, u8)| {
        let mut value = [0; 32];
        value[31] = number;
        let index = u64::from(number) + 1;
        let new = Some(Entry { index, value });
        Operation { key, new }
    };
    leaves.zip(0..).map(leaf).collect()
}

/// The whole path of the last of fifty inserts, which leave other roots and indices than all hundred.
#[test]
fn the_prover_gets_the_whole_path_of_the_original() {
    let test = "the_prover_gets_the_whole_path_of_the_original";
    let Some(text) = snapshot(test, "log-metadata-full") else {
        return;
    };
    let body = text.splitn(3, "---").nth(2).unwrap();
    let log = fields(body);
    let operations = &storage_logs()[..50];
    let (_, proofs) = apply_with_proofs(&MemoryTree::default(), hasher(), operations).unwrap();
    let made = StorageLogs::new(hasher(), 0, operations, &proofs);
    let last = made.logs.last().unwrap();
    assert_eq!(last.root_hash, word(log["root_hash"][0]));
    assert_eq!(hex::encode(last.root_hash)[..8], *"9dfbdaad");
    assert_eq!(last.leaf_hashed_key, word(log["leaf_hashed_key"][0]));
    assert_eq!((last.is_write, last.first_write), (true, true));
    assert_eq!(
        last.leaf_enumeration_index.to_string(),
        log["leaf_enumeration_index"][0]
    );
    assert_eq!(last.value_written, word(log["value_written"][0]));
    assert_eq!(last.value_read, word(log["value_read"][0]));
    let expected: Vec<Hash> = log["merkle_paths"][1..]
        .iter()
        .map(|hash| word(hash))
        .collect();
    assert_eq!(expected.len(), 256);
    assert_eq!(made.path(49), expected);
}

/// All hundred leaves (specs/AR16MT.md, section 6: `gen_storage_logs`).
#[test]
fn slots_of_five_contracts_have_the_published_root() {
    let operations = storage_logs();
    let (update, proofs) =
        apply_with_proofs(&MemoryTree::default(), hasher(), &operations).unwrap();
    let expected = "7d196babb69b20468a6cee968ccdc1275a5c7ae976eef8c9a0373acef4d8bc0a";
    assert_eq!(hex::encode(update.root), expected);
    assert_eq!(hex::encode(proofs.roots()[99]), expected);
}

/// The last hashes of the paths of fifty inserts, as the original's tests keep them.
#[test]
fn the_prover_gets_what_the_original_gives_it() {
    let test = "the_prover_gets_what_the_original_gives_it";
    let Some(text) = snapshot(test, "log-metadata-list-short") else {
        return;
    };
    let logs: Vec<BTreeMap<&str, Vec<&str>>> = text.split("\n- ").skip(1).map(fields).collect();
    assert_eq!(logs.len(), 50);
    let operations: Vec<Operation> = logs
        .iter()
        .map(|log| Operation {
            key: word(log["leaf_hashed_key"][0]),
            new: Some(Entry {
                index: log["leaf_enumeration_index"][0].parse().unwrap(),
                value: word(log["value_written"][0]),
            }),
        })
        .collect();
    let (_, proofs) = apply_with_proofs(&MemoryTree::default(), hasher(), &operations).unwrap();
    let made = StorageLogs::new(hasher(), 0, &operations, &proofs);
    assert_eq!((made.next_enumeration_index, made.logs.len()), (1, 50));
    for (at, (log, made_log)) in logs.iter().zip(&made.logs).enumerate() {
        assert_eq!(
            word(log["root_hash"][0]),
            made_log.root_hash,
            "root after log {at}"
        );
        assert_eq!((made_log.is_write, made_log.first_write), (true, true));
        assert_eq!(made_log.value_read, [0; 32]);
        let path = made.path(at);
        assert_eq!(path.len(), 256);
        let last: Vec<Hash> = log["merkle_paths"][1..]
            .iter()
            .map(|hash| word(hash))
            .collect();
        assert_eq!(path[256 - last.len()..], last[..], "path of log {at}");
        // Only the first stands whole.
        assert_eq!(made_log.merkle_paths.len() == 256, at == 0);
    }
}

/// Reads, rewrites of what is there, updates and missing keys.
#[test]
fn logs_say_what_was_there() {
    let there = numbered(&[[1; 32], [2; 32]]);
    let operation = |key: u8, new: Option<Entry>| Operation {
        key: [key; 32],
        new,
    };
    let operations = [
        operation(1, None),
        operation(2, Some(entry(2))),
        operation(3, None),
        operation(3, Some(entry(3))),
        operation(
            2,
            Some(Entry {
                index: 2,
                value: [9; 32],
            }),
        ),
    ];
    let (_, proofs) = apply_with_proofs(&tree(&there), hasher(), &operations).unwrap();
    let logs = StorageLogs::new(hasher(), 2, &operations, &proofs).logs;
    let short: Vec<_> = logs
        .iter()
        .map(|log| {
            let kind = (log.is_write, log.first_write);
            (
                log.leaf_hashed_key[0],
                kind,
                log.leaf_enumeration_index,
                log.value_written[0],
                log.value_read[0],
            )
        })
        .collect();
    let expected = [
        (1, (false, false), 1, 0, 1),
        (3, (false, false), 0, 0, 0),
        (3, (true, true), 3, 3, 0),
        (2, (true, false), 2, 9, 2),
    ];
    assert_eq!(short, expected);
    assert_eq!(logs[0].root_hash, naive::root(&there));
    assert_eq!(hasher().empty()[0], logs[0].merkle_paths[0]);
}

/// Two leaves, and a batch that inserts, updates and reads them and a missing one.
fn some_logs() -> (Hash, StorageLogs, Hash) {
    let there = numbered(&[[1; 32], [2; 32]]);
    let operation = |key: u8, new: Option<Entry>| Operation {
        key: [key; 32],
        new,
    };
    let value = [9; 32];
    let operations = [
        operation(3, None),
        operation(3, Some(entry(3))),
        operation(1, Some(Entry { index: 1, value })),
        operation(2, None),
        operation(4, Some(entry(4))),
    ];
    let tree = tree(&there);
    let before = arbor_tree_ar16mt::root(&tree, hasher()).unwrap();
    let (update, proofs) = apply_with_proofs(&tree, hasher(), &operations).unwrap();
    let logs = StorageLogs::new(hasher(), 2, &operations, &proofs);
    (before, logs, update.root)
}

#[test]
fn logs_come_back_from_their_bytes_and_hold() {
    let (before, logs, after) = some_logs();
    let decoded = StorageLogs::decode(&logs.encode()).unwrap();
    assert_eq!(decoded, logs);
    assert_eq!(decoded.verify(hasher(), before), Ok(after));
    assert_eq!(logs.verify(hasher(), after), Err(LogsError::Before(0)));
    let none = StorageLogs {
        next_enumeration_index: 7,
        logs: Vec::new(),
    };
    assert_eq!(StorageLogs::decode(&none.encode()), Ok(none.clone()));
    assert_eq!(none.verify(hasher(), before), Ok(before));
}

/// More logs than are hashed side by side: all hundred leaves twice, with other values.
#[test]
fn many_logs_hold() {
    let mut operations = storage_logs();
    let again = operations.clone().into_iter().map(|mut operation| {
        operation.new.as_mut().unwrap().value[0] = 1;
        operation
    });
    operations.extend(again);
    let (update, proofs) =
        apply_with_proofs(&MemoryTree::default(), hasher(), &operations).unwrap();
    let mut logs = StorageLogs::new(hasher(), 0, &operations, &proofs);
    let empty = hasher().empty()[DEPTH];
    assert_eq!(logs.verify(hasher(), empty), Ok(update.root));
    logs.logs[170].root_hash[0] ^= 1;
    assert_eq!(logs.verify(hasher(), empty), Err(LogsError::After(170)));
    logs.logs[90].value_written[0] ^= 1;
    assert_eq!(logs.verify(hasher(), empty), Err(LogsError::After(90)));
}

/// No bit of the bytes is free, but for those of a missing key, beside which others are missing; and there is no end but the last.
#[test]
fn logs_with_any_bit_flipped_do_not_hold() {
    let (before, logs, _) = some_logs();
    let bytes = logs.encode();
    let holds =
        |bytes: &[u8]| StorageLogs::decode(bytes).and_then(|logs| logs.verify(hasher(), before));
    for end in 0..bytes.len() {
        let error = holds(&bytes[..end]).unwrap_err();
        assert!(
            matches!(error, LogsError::Head | LogsError::End(_)),
            "{end}: {error}"
        );
    }
    let missing = 12 + 33..12 + 65;
    // The first path alone has 256 hashes, most of them of empty subtrees: every seventh byte of it.
    let path = 12 + 139..12 + 139 + 32 * DEPTH;
    let flipped =
        |at: &usize| !missing.contains(at) && (!path.contains(at) || at.is_multiple_of(7));
    for at in (0..bytes.len()).filter(flipped) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(holds(&bytes).is_err(), "byte {at}");
    }
    let mut longer = bytes;
    longer.push(0);
    assert_eq!(StorageLogs::decode(&longer), Err(LogsError::Behind(1)));
}

#[test]
fn logs_that_no_batch_has_are_told() {
    let (before, logs, _) = some_logs();
    let told = |change: &dyn Fn(&mut StorageLogs)| {
        let mut logs = logs.clone();
        change(&mut logs);
        let error = logs.verify(hasher(), before).unwrap_err();
        assert_eq!(StorageLogs::decode(&logs.encode()), Err(error));
        error.to_string()
    };
    let other_next = told(&|logs| logs.next_enumeration_index = 4);
    assert_eq!(
        other_next,
        "log 1: a first write whose index is not the next one"
    );
    let late = told(&|logs| logs.logs[2].leaf_enumeration_index = 4);
    assert_eq!(late, "log 2: an index that no leaf has yet");
    let zero = told(&|logs| logs.logs[2].leaf_enumeration_index = 0);
    assert_eq!(zero, "log 2: a write with index 0");
    let read = told(&|logs| logs.logs[0].value_read[5] = 1);
    assert_eq!(read, "log 0: a value read where nothing was");
    let writes = told(&|logs| logs.logs[3].value_written[5] = 1);
    assert_eq!(writes, "log 3: a read that writes a value");
    let again = told(&|logs| logs.logs[2].value_written = logs.logs[2].value_read);
    assert_eq!(again, "log 2: a write of what is there already");
    let short = told(&|logs| logs.logs[0].merkle_paths.truncate(255));
    assert_eq!(short, "log 0: the first one's path has no 256 hashes");
    let long = told(&|logs| logs.logs[1].merkle_paths = vec![[0; 32]; 257]);
    assert_eq!(long, "log 1: a path of more than 256 hashes");
}
