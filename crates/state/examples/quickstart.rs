//! Open a store, apply a batch, commit, prove, verify, roll back.

use std::sync::Arc;

use alloy_primitives::{Address, B256, KECCAK256_EMPTY, U256};
use arbor_state::{
    Account, AccountChange, BlockRef, MptState, Network, SlotChange, StateChanges, StateView,
};
use arbor_store_fjall::FjallStore;
use arbor_versions::{DirLock, Version};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A database is a store in a folder, bound to one chain.
    let dir = tempfile::tempdir()?;
    let lock = DirLock::acquire(dir.path())?;
    let store = Arc::new(FjallStore::open(
        &dir.path().join("fjall"),
        &Default::default(),
    )?);
    let network = Network {
        chain_id: 1337,
        genesis_hash: B256::repeat_byte(0xaa),
    };
    let mut state = MptState::open(store, Some(lock), network, Default::default())?;

    // Changes are given by plain names, with the values before and after.
    let alice = Address::repeat_byte(0x11);
    let account = |balance: u64| Account {
        nonce: 0,
        balance: U256::from(balance),
        code_hash: KECCAK256_EMPTY,
    };
    let mut genesis = StateChanges::default();
    let slots = [(
        U256::from(7),
        SlotChange {
            old: U256::ZERO,
            new: U256::from(49),
        },
    )];
    let born = AccountChange {
        new: Some(account(1_000)),
        slots: slots.into(),
        ..Default::default()
    };
    genesis.accounts.insert(alice, born);

    let computed = state.compute(&genesis)?;
    println!("root after block 0: {}", computed.root());
    state.commit(
        &BlockRef {
            number: 0,
            hash: B256::repeat_byte(0xaa),
            header: Vec::new(),
        },
        computed,
    )?;

    let mut block = StateChanges::default();
    let paid = AccountChange {
        old: Some(account(1_000)),
        new: Some(account(400)),
        ..Default::default()
    };
    block.accounts.insert(alice, paid);
    let computed = state.compute(&block)?;
    println!("root after block 1: {}", computed.root());
    state.commit(
        &BlockRef {
            number: 1,
            hash: B256::repeat_byte(0xbb),
            header: Vec::new(),
        },
        computed,
    )?;
    state.flush()?;

    // Any retained version can be read and proven, present or absent.
    for version in [Version(0), Version(1)] {
        let then = state.at(version)?;
        let root = B256::from(then.meta().root);
        let proof = then.prove(alice, &[U256::from(7), U256::from(8)])?;
        proof.verify(root)??;
        println!(
            "version {}: balance {} proven under {root}",
            version.0, proof.balance
        );
    }

    state.rollback(Version(0))?;
    println!(
        "rolled back: balance {}",
        state
            .account(alice)?
            .map_or(U256::ZERO, |account| account.balance)
    );
    Ok(())
}
