//! The stored bytes of records: a snapshot, malformed ones, and any bytes at all.

use std::sync::Arc;

use arbor_tree::{Hash, Position};
use arbor_tree_mpt::{Record, RecordError, build};
use proptest::prelude::*;

fn build_nodes(leaves: Vec<(Hash, Vec<u8>)>) -> Vec<(Position, Arc<[u8]>)> {
    let mut nodes = Vec::new();
    let root = build(None, leaves, &mut |at, record| nodes.push((at, record)));
    root.expect("sorted");
    nodes
}

fn key(last: [u8; 2]) -> Hash {
    let mut key = [0x11; 32];
    key[30..].copy_from_slice(&last);
    key
}

/// Two leaves of one byte each, 62 nibbles down: both are inlined, and so is what holds two more.
#[test]
fn stored_bytes_of_a_record_with_inlined_children() {
    let leaves = vec![
        (key([0x20, 0x00]), vec![5]),
        (key([0x20, 0x01]), vec![6]),
        (key([0x30, 0x00]), vec![7]),
    ];
    let nodes = build_nodes(leaves);
    let [(position, record)] = nodes.as_slice() else {
        panic!(
            "the lower branch is inlined: one record, not {}",
            nodes.len()
        );
    };
    assert!(position.path.is_empty());
    let expected = [
        // 60 nibbles of prefix.
        "3c".to_owned() + &"11".repeat(30),
        // Children at nibbles 2 and 3; the one at 3 is a leaf; both inlined.
        "000c".into(),
        "0008".into(),
        "000c".into(),
        // The extension 00, and a branch of two leaves whose paths are empty.
        "1ad9820000d5c22005c22006808080808080808080808080808080".into(),
        // The leaf 000 with value 7.
        "05c482300007".into(),
    ]
    .concat();
    assert_eq!(hex::encode(record), expected);
    let read = Record::decode(record).expect("own record");
    assert_eq!((read.children(), read.leaves()), (0b1100, 0b1000));
    assert_eq!(read.child_hash(3), None);
}

#[test]
fn stored_bytes_of_a_record_with_hashed_children() {
    let leaves = vec![([0x12; 32], vec![1; 40]), ([0x13; 32], vec![2; 40])];
    let nodes = build_nodes(leaves);
    let record = hex::encode(&nodes[0].1);
    assert_eq!(&record[..16], "0110000c000c0000");
    assert_eq!(record.len(), 2 * (8 + 64));
}

#[test]
fn malformed_records_are_rejected() {
    let nodes = build_nodes(vec![([0x12; 32], vec![1; 40]), ([0x13; 32], vec![2; 40])]);
    let good = nodes[0].1.to_vec();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        Record::decode(&bytes).map(|_| ())
    };
    assert_eq!(with(&|_| {}), Ok(()));
    assert_eq!(with(&|b| b.truncate(71)), Err(RecordError::Truncated));
    assert_eq!(with(&|b| b.push(0)), Err(RecordError::Trailing(1)));
    assert!(matches!(
        with(&|b| b[1] = 0x11),
        Err(RecordError::Prefix(_))
    ));
    assert!(matches!(with(&|b| b[0] = 65), Err(RecordError::Prefix(_))));
    // One child only; a leaf that is no child.
    assert!(matches!(
        with(&|b| b[3] = 0x04),
        Err(RecordError::Masks { .. })
    ));
    assert!(matches!(
        with(&|b| b[5] = 0x10),
        Err(RecordError::Masks { .. })
    ));
    // Said to be inlined, but its bytes are a hash.
    assert!(matches!(
        with(&|b| b[7] = 0x04),
        Err(RecordError::Inlined(2) | RecordError::Truncated)
    ));
}

proptest! {
    #[test]
    fn what_decodes_encodes_the_same(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..300),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        own in any::<bool>(),
    ) {
        if own {
            let leaves = vec![(key([1, 0]), vec![1; 40]), (key([1, 1]), vec![2]), (key([2, 0]), vec![3])];
            bytes = build_nodes(leaves)[0].1.to_vec();
            for (at, value) in flips {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
        }
        if let Ok(record) = Record::decode(&bytes) {
            let mut again = Vec::new();
            record.encode_into(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}
