//! A tree of one's own: one folder, one row, and everything else of the engine works over it.
//!
//! The folder is `tests/toy/`: SHA-256 over the sorted records of all accounts and slots. Its row [`TOY`](toy::TOY) joins the
//! trees of a program, and commits, proofs, history, rollbacks and the check of a whole database are there.

#[path = "../tests/toy/mod.rs"]
mod toy;

use std::error::Error;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use arbor_state::{Account, BlockRef, Network, State, StateChanges, StateView};
use arbor_store::MemoryStore;
use arbor_trees::standard;
use arbor_verify::Verdict;
use arbor_versions::Version;

fn main() -> Result<(), Box<dyn Error>> {
    let trees = standard().with(&toy::TOY);
    let tree = trees.find("toy").ok_or("the row is in the registry")?;
    let network = Network {
        chain_id: 1,
        genesis_hash: B256::ZERO,
    };
    let store = Arc::new(MemoryStore::default());
    let mut state = State::open(store, None, tree.tree(), network, Default::default())?;
    let (alice, slot) = (Address::repeat_byte(0x11), U256::from(8));
    for number in 0..3 {
        let mut changes = StateChanges::default();
        let account = Account::with_balance(U256::from(100 * number));
        changes.set_account(&state, alice, Some(account))?;
        changes.set_slot(&state, alice, slot, U256::from(number + 1))?;
        let computed = state.compute(&changes)?;
        println!("block {number}: {}", computed.root());
        state.commit(&BlockRef::new(number, B256::ZERO), computed)?;
    }
    for version in 0..3 {
        let then = state.at(Version(version))?;
        let proof = then.prove(alice, &[slot])?;
        match proof.verify(then.meta().root.into())? {
            Verdict::True(claims) => {
                assert_eq!(claims.accounts[0].slots[0].1, Some(U256::from(version + 1)));
            }
            Verdict::False(reason) => return Err(format!("a false proof: {reason}").into()),
        }
    }
    state.rollback(Version(1))?;
    assert_eq!(state.storage(alice, slot)?, U256::from(2));
    let report = state.verify()?;
    assert!(report.is_ok(), "{:?}", report.faults);
    println!("rolled back to block 1 and verified: {}", state.root());
    Ok(())
}
