//! A witness of a block that no database has yet, checked without any database.
//!
//! A builder of blocks holds the parent of a block in a session. It applies the block and sends away the witness: the nodes of the parent's
//! tree that the block touches. Whoever trusts the parent's root executes the block over these nodes and gets the root after it. That side
//! uses `arbor-verify` alone: see `check`.

use std::collections::BTreeMap;
use std::error::Error;

use arbor_database::primitives::{Address, B256, Bytes, U256};
use arbor_database::{
    Account, BlockRef, OpenOptions, Reads, Session, StateChanges, StateView, StateWitness, Touched,
};
use arbor_verify::mpt::WitnessState;
use arbor_verify::{IntermediateRoots as _, WitnessParts, standard};

const ALICE: Address = Address::repeat_byte(0xa1);
const BOB: Address = Address::repeat_byte(0xb0);
/// Holds the fee of a payment in slot 0.
const FEES: Address = Address::repeat_byte(0xfe);

/// A block: Alice pays Bob.
#[derive(Clone, Copy)]
struct Payment(u64);

impl Payment {
    /// Executes the block on the state before it. Both sides do this, each on what it has of that state.
    fn execute(self, before: &dyn StateView) -> Result<StateChanges, Box<dyn Error>> {
        let mut changes = StateChanges::default();
        let (amount, fee) = (U256::from(self.0), before.storage(FEES, U256::ZERO)?);
        for (address, paid) in [(ALICE, amount + fee), (BOB, U256::ZERO)] {
            let mut account = before.account(address)?.unwrap_or_default();
            account.balance = account
                .balance
                .checked_sub(paid)
                .ok_or("too little money")?;
            if address == BOB {
                account.balance += amount;
            }
            changes.set_account(before, address, Some(account))?;
        }
        Ok(changes)
    }
}

/// What is sent away: a block, the roots before and after it, and the nodes that it touches.
#[derive(Clone)]
struct Sent {
    tree: &'static str,
    hash: &'static str,
    before: B256,
    after: B256,
    block: Payment,
    nodes: Vec<Bytes>,
}

/// Executes the block on top of a session, and makes its witness.
fn build(parent: &Session, block: Payment) -> Result<(Sent, Session), Box<dyn Error>> {
    let changes = block.execute(parent)?;
    let reads = Reads::from([(FEES, [U256::ZERO].into())]);
    let witness = parent.witness(Touched {
        reads: &reads,
        chunks: &BTreeMap::new(),
        changes: &changes,
        transactions: &[],
        guarded: false,
    })?;
    let Some(StateWitness::Nodes { nodes, .. }) = witness else {
        return Err("a tree whose witnesses are not lists of nodes".into());
    };
    let number = parent.meta().map_or(0, |meta| meta.block_number + 1);
    let child = parent.apply(&BlockRef::new(number, B256::repeat_byte(2)), &changes)?;
    let sent = Sent {
        tree: parent.reader().tree().kind().name,
        hash: parent.reader().tree().hash(),
        before: parent.root(),
        after: child.root(),
        block,
        nodes,
    };
    Ok((sent, child))
}

/// Checks that a block leads from one root to the other. `before` is trusted, and nothing else.
fn check(sent: &Sent) -> Result<(), Box<dyn Error>> {
    let kind = standard().find(sent.tree).ok_or("no such tree")?;
    let after = match kind.partial_state {
        // Merkle-Patricia: each node is found by its hash, from the root on.
        None => {
            let state = WitnessState::new(sent.before, sent.nodes.clone(), []);
            let changes = sent.block.execute(&state)?;
            state.pending_roots().root_after(&changes)?
        }
        Some(partial_state) => {
            let state = partial_state(WitnessParts {
                hash: sent.hash,
                root: sent.before,
                nodes: &sent.nodes,
                codes: &[],
            });
            let state = state.ok_or("no such hash function")?;
            state.check()?;
            let changes = sent.block.execute(&*state)?;
            state.pending_roots().root_after(&changes)?
        }
    };
    match after == sent.after {
        true => Ok(()),
        false => Err(format!("the block leads to root {after}").into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for tree in ["mpt", "eip8297"] {
        let mut state = OpenOptions::new().tree(tree).in_memory()?;
        let mut genesis = StateChanges::default();
        for number in 0..100 {
            let account = Account::with_balance(U256::from(1_000));
            let address = Address::with_last_byte(number);
            genesis.set_account(&state, address, Some(account))?;
        }
        for address in [ALICE, FEES] {
            let account = Account::with_balance(U256::from(1_000));
            genesis.set_account(&state, address, Some(account))?;
        }
        genesis.set_slot(&state, FEES, U256::ZERO, U256::from(3))?;
        let parent = state
            .session()?
            .apply(&BlockRef::new(0, B256::repeat_byte(1)), &genesis)?;

        let (sent, child) = build(&parent, Payment(40))?;
        check(&sent)?;
        let bytes: usize = sent.nodes.iter().map(|node| node.len()).sum();
        println!(
            "{tree}: block 1 leads to root {}, checked with {bytes} bytes of witness",
            sent.after
        );
        // Another block, another root and a witness with a part missing do not pass.
        let mut other = [sent.clone(), sent.clone(), sent.clone()];
        other[0].block = Payment(41);
        other[1].after = sent.before;
        other[2].nodes.pop();
        for false_claim in &other {
            let refused = check(false_claim).err().ok_or("a false claim passed")?;
            println!("{tree}: refused: {refused}");
        }
        assert_eq!(state.head(), None);
        state.commit_session(child)?;
        assert_eq!(state.root(), sent.after);
    }
    Ok(())
}
