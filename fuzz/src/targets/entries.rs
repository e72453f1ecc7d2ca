//! Lists of a state's entries.

use std::sync::Arc;

use alloy_primitives::keccak256;
use arbor_state::State;
use arbor_state::recovery::{EntriesReader, EntriesWriter, Recovery, RecoveryError};
use arbor_store::MemoryStore;
use arbor_versions::Options;

/// A list of a state's entries, as it is and with right checks.
pub(super) fn entries(bytes: &[u8]) {
    read_entries(bytes);
    read_entries(&with_right_checks(bytes));
}

/// Reads a list and writes it again as it was; then a database is made of it, and checked.
fn read_entries(bytes: &[u8]) {
    let Ok(mut reader) = EntriesReader::new(bytes, bytes.len() as u64) else {
        return;
    };
    let mut writer = EntriesWriter::new(Vec::new(), reader.head()).expect("written");
    while let Ok(Some(chunk)) = reader.next_chunk() {
        writer.chunk(&chunk).expect("written");
    }
    let (list, _) = writer.finish().expect("written");
    let mut again = EntriesReader::new(&list[..], list.len() as u64).expect("its own file");
    loop {
        match again.next_chunk() {
            Ok(Some(_)) => (),
            Ok(None) => break,
            // Some of the leaves, of which one has an index beyond these.
            Err(RecoveryError::IndexBeyond { .. }) => return,
            Err(error) => panic!("its own file: {error}"),
        }
    }
    assert_eq!(again.totals(), reader.totals());
    assert_eq!(with_right_checks(&list), list, "its own file's checks");
    if let Ok(tree) = reader.head().tree(&arbor_trees::standard()) {
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
    let mut reader = EntriesReader::new(list, list.len() as u64)?;
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
