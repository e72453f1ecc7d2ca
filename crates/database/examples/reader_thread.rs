//! Threads that read and prove the latest state while another one writes blocks.

use std::error::Error;
use std::thread;

use arbor_database::primitives::{Address, B256, U256};
use arbor_database::{
    Account, BlockRef, OpenOptions, StateChanges, StateReader, StateView, Verdict,
};

const ALICE: Address = Address::repeat_byte(0x11);
const BLOCKS: u64 = 200;

/// Proves the balance of each state that it sees, until it has seen the last one.
fn watch(reader: &StateReader) -> Result<u64, String> {
    let mut proven = 0;
    loop {
        let latest = reader.latest();
        let head = latest.reader();
        let number = head.meta().map_or(0, |meta| meta.block_number);
        let account = head.account(ALICE).map_err(|error| error.to_string())?;
        let proof = head.latest().and_then(|head| head.prove(ALICE, &[]));
        let verdict = proof
            .map_err(|error| error.to_string())?
            .verify(head.root());
        match verdict.map_err(|error| error.to_string())? {
            Verdict::True(claims) if claims.accounts[0].account == account => proven += 1,
            other => return Err(format!("block {number}: {other:?}")),
        }
        if number == BLOCKS {
            return Ok(proven);
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut state = OpenOptions::new().open(dir.path())?;
    let mut readers = Vec::new();
    for number in 0..=BLOCKS {
        let mut changes = StateChanges::default();
        let account = Account::with_balance(U256::from(number));
        changes.set_account(&state, ALICE, Some(account))?;
        let computed = state.compute(&changes)?;
        let block = BlockRef::new(number, B256::from(U256::from(number)));
        state.commit(&block, computed)?;
        if number == 0 {
            // From here on every commit is seen by the readers, without a lock that the writer would wait for.
            let reader = state.shared_reader()?;
            readers.extend([(); 2].map(|()| {
                let reader = reader.clone();
                thread::spawn(move || watch(&reader))
            }));
        }
    }
    state.flush()?;
    for reader in readers {
        let proven = reader.join().map_err(|_| "a reader panicked")??;
        println!("proved {proven} states up to block {BLOCKS}");
    }
    Ok(())
}
