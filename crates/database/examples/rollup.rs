//! A rollup's node: batches on top of batches that are not committed, and a reorganisation of three.
//!
//! The sequencer's batches are applied to sessions, each with its root, before the layer below has confirmed any of them. When that layer
//! reorganises, three committed batches make room for three others, whose roots and proofs were known before the database changed.

use std::error::Error;

use arbor_database::primitives::{Address, B256, U256};
use arbor_database::{
    Account, BlockRef, OpenOptions, Session, StateChanges, StateView, Verdict, Version,
};

const BRIDGE: Address = Address::repeat_byte(0xb1);

/// A batch: deposits from the bridge to one account.
fn deposit(
    parent: &Session,
    to: Address,
    amount: u64,
    fork: u8,
) -> Result<Session, Box<dyn Error>> {
    let mut changes = StateChanges::default();
    let amount = U256::from(amount);
    for (address, is_sender) in [(BRIDGE, true), (to, false)] {
        let mut account = parent.account(address)?.unwrap_or_default();
        match is_sender {
            true => {
                (account.nonce, account.balance) = (account.nonce + 1, account.balance - amount);
            }
            false => account.balance += amount,
        }
        changes.set_account(parent, address, Some(account))?;
    }
    // The bridge counts what it has paid.
    let paid = parent.storage(BRIDGE, U256::ZERO)? + amount;
    changes.set_slot(parent, BRIDGE, U256::ZERO, paid)?;
    let number = parent.meta().map_or(0, |meta| meta.block_number + 1);
    let hash = B256::from(U256::from((u64::from(fork) << 32) | number));
    Ok(parent.apply(&BlockRef::new(number, hash), &changes)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let mut state = OpenOptions::new().tree("mpt").open(dir.path())?;
    let mut genesis = StateChanges::default();
    let funded = Account::with_balance(U256::from(1_000_000));
    genesis.set_account(&state, BRIDGE, Some(funded))?;
    let session = state.session()?;
    let mut tip = session.apply(&BlockRef::new(0, B256::ZERO), &genesis)?;
    for number in 1..=5 {
        tip = deposit(&tip, Address::with_last_byte(number), 100, 0)?;
    }
    state.commit_session(tip.clone())?;
    state.flush()?;
    println!("committed batch 5: {}", state.root());

    // Two candidates for batch 6; one of them is dropped.
    let candidates = [7, 8].map(|to| deposit(&tip, Address::with_last_byte(to), 50, 0));
    let [dropped, kept] = candidates;
    println!("dropped candidate: {}", dropped?.root());
    state.commit_session(kept?)?;

    // Batches 4 to 6 make room for others. The database still has the old ones while the new roots are computed and proven.
    let mut fork = state.snapshot()?.session_at(Version(3))?;
    for to in 40..43 {
        fork = deposit(&fork, Address::with_last_byte(to), 10, 1)?;
    }
    let paid = U256::from(3 * 100 + 3 * 10);
    let proof = fork.prove(BRIDGE, &[U256::ZERO])?;
    match proof.verify(fork.root())? {
        Verdict::True(claims) => assert_eq!(claims.accounts[0].slots[0].1, Some(paid)),
        Verdict::False(reason) => return Err(format!("a false proof: {reason}").into()),
    }
    assert_eq!(state.head().map(|head| head.block_number), Some(6));
    state.rollback(Version(3))?;
    state.commit_session(fork.clone())?;
    state.flush()?;
    assert_eq!(state.root(), fork.root());
    assert_eq!(state.storage(BRIDGE, U256::ZERO)?, paid);
    assert_eq!(state.account(Address::with_last_byte(8))?, None);
    let report = state.verify()?;
    assert!(report.is_ok(), "{:?}", report.faults);
    println!("reorganised to batch 6: {}", state.root());
    Ok(())
}
