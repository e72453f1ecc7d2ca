//! Open a database, commit two blocks, prove an account in the past, roll back.
use arbor_database::primitives::{Address, B256, U256};
use arbor_database::{Account, BlockRef, OpenOptions, StateChanges, StateView, Verdict, Version};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (dir, alice) = (tempfile::tempdir()?, Address::repeat_byte(0x11));
    let mut state = OpenOptions::new().tree("mpt").open(dir.path())?;
    for number in 0..2 {
        let account = Account::with_balance(U256::from(1_000 - 600 * number));
        let mut changes = StateChanges::default();
        changes.set_account(&state, alice, Some(account))?;
        let computed = state.compute(&changes)?;
        println!("block {number}: state root {}", computed.root());
        state.commit(&BlockRef::new(number, B256::repeat_byte(1)), computed)?;
    }
    state.flush()?;
    let then = state.at(Version(0))?;
    let proof = then.prove(alice, &[U256::from(8)])?;
    if let Verdict::True(claims) = proof.verify(then.meta().root.into())? {
        println!("proven of block 0: {:?}", claims.accounts[0].account);
    }
    state.rollback(Version(0))?;
    println!("rolled back: {:?}", state.account(alice)?);
    Ok(())
}
