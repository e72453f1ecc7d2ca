//! Open a store, apply a batch, commit, prove, verify, roll back.

use std::{error::Error, sync::Arc};

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_state::{Account, AccountChange, BlockRef, Network, State, StateChanges, StateView};
use arbor_store_fjall::FjallStore;
use arbor_trees::standard;
use arbor_verify::Verdict;
use arbor_versions::{DirLock, Version};

const ALICE: Address = Address::repeat_byte(0x11);

fn rich(balance: u64) -> Account {
    let (nonce, balance, code_hash) = (0, U256::from(balance), KECCAK256_EMPTY);
    #[rustfmt::skip]
    return Account { nonce, balance, code_hash };
}

fn main() -> Result<(), Box<dyn Error>> {
    // A database is a store in a folder, bound to one chain.
    let dir = tempfile::tempdir()?;
    let lock = DirLock::acquire(dir.path())?;
    let path = dir.path().join("fjall");
    let store = Arc::new(FjallStore::open(&path, &Default::default())?);
    let (chain_id, genesis_hash) = (1337, B256::ZERO);
    #[rustfmt::skip]
    let network = Network { chain_id, genesis_hash };
    let tree = standard()
        .find("mpt")
        .ok_or("there is no such tree")?
        .tree();
    let mut state = State::open(store, Some(lock), tree, network, Default::default())?;

    // Each block gives what it changes by plain names, with the values before and after.
    for (number, old, new) in [(0, None, rich(1_000)), (1, Some(rich(1_000)), rich(400))] {
        let mut changes = StateChanges::default();
        let change: &mut AccountChange = changes.accounts.entry(ALICE).or_default();
        (change.old, change.new) = (old, Some(new));
        let computed = state.compute(&changes)?;
        println!("block {number}: state root {}", computed.root());
        let (hash, record) = (B256::from(U256::from(number)), Vec::new());
        #[rustfmt::skip]
        state.commit(&BlockRef { number, hash, record }, computed)?;
    }
    state.flush()?;

    // Any retained version can be read and proven, what is there and what is not.
    for version in [Version(0), Version(1)] {
        let then = state.at(version)?;
        let proof = then.prove(ALICE, &[U256::from(8)])?;
        let Verdict::True(claims) = proof.verify(then.meta().root.into())? else {
            return Err("a proof that was just made is false".into());
        };
        let balance = claims.accounts[0].account.map(|account| account.balance);
        println!("version {}: balance {balance:?} is proven", version.0);
    }

    state.rollback(Version(0))?;
    println!("rolled back: {:?}", state.account(ALICE)?);
    Ok(())
}
