//! What a store on a disk counts. Alone in its process, whose counts they are.

use std::sync::Arc;

use arbor_metrics::{STORE_READ_BYTES, STORE_READS, STORE_WRITES, STORE_WRITTEN_BYTES};
use arbor_store::disk::{Disk, PIECE};
use arbor_store::{MemoryStore, Reader, Store, Table, Write};

const TABLE: Table = Table(1);

fn reads() -> [u64; 2] {
    [STORE_READS.get(), STORE_READ_BYTES.get()]
}

fn writes() -> [u64; 2] {
    [STORE_WRITES.get(), STORE_WRITTEN_BYTES.get()]
}

#[test]
fn requests_are_counted() {
    let disk = Disk::new(Arc::new(MemoryStore::default()), None);
    let large = vec![7; PIECE as usize];
    let put = [Write::put(TABLE, b"a", &large), Write::delete(TABLE, b"bc")];
    disk.write(&put, true).expect("written");
    assert_eq!((reads(), writes()), ([0, 0], [2, PIECE + 3]));
    disk.delete_prefix(TABLE, b"a").expect("deleted");
    let mut small = (0..100u8).map(|key| Write::put(TABLE, &[key], &[0; 99]));
    disk.ingest(&mut small).expect("ingested");
    assert_eq!((reads(), writes()), ([0, 0], [4, PIECE + 3 + 10_000]));

    // Three that are there and one that is not; another one from a snapshot.
    let keys: [&[u8]; 3] = [&[1], &[2], b"absent"];
    let found = disk.multi_get(TABLE, &keys).expect("read");
    assert!(found[1].is_some() && found[2].is_none());
    assert!(disk.get(TABLE, &[3]).expect("read").is_some());
    let snapshot = disk.snapshot().expect("frozen");
    assert!(snapshot.get(TABLE, &[4]).expect("read").is_some());
    assert_eq!(reads(), [4, 400]);

    // 10,000 bytes in blocks of 4,096.
    assert_eq!(disk.scan(TABLE, &[], &[]).expect("scanned").count(), 100);
    assert_eq!(reads(), [4 + 3, 400 + 10_000]);
}
