//! One fixture from block 0 to the end.

use std::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256, keccak256};
use arbor_chain::genesis::{Alloc, Genesis};
use arbor_chain::replay::HeaderCheck;
use arbor_state::{DumpAccount, State, StateError};

use super::fixture::{Account, Fixture, Outcome};
use super::forks::{Forks, Rejection};
use super::mode::Mode;
use super::reason::{agrees, reason};
use super::{network, unsupported};

/// How a fixture went.
pub(crate) enum Verdict {
    Passed,
    /// Why it cannot be run.
    Unsupported(&'static str),
    /// What was expected and what came.
    Failed(String),
}

pub(crate) fn run(path: &str, fixture: &Fixture, mode: Mode) -> Verdict {
    if let Some(why) = unsupported::fixture(path, fixture) {
        return Verdict::Unsupported(why);
    }
    match run_blocks(fixture, mode) {
        Ok(None) => Verdict::Passed,
        Ok(Some(why)) => Verdict::Unsupported(why),
        Err(error) => Verdict::Failed(error),
    }
}

/// Imports the blocks and looks at what came of them. `Some`: a block shows that the fixture is not for us.
fn run_blocks(fixture: &Fixture, mode: Mode) -> Result<Option<&'static str>, String> {
    let (header, hash) = fixture.genesis();
    let made = header.hash_slow();
    if made != hash {
        return Err(format!("block 0 is {made}, the fixture says {hash}"));
    }
    let genesis = Genesis {
        header,
        hash,
        alloc: Alloc::new(fixture.alloc()).map_err(|error| error.to_string())?,
        spec: network::rules(fixture)?,
        warnings: Vec::new(),
    };
    let mut chain = Forks::new(genesis, mode).map_err(|error| format!("block 0: {error}"))?;
    for (index, block) in fixture.blocks.iter().enumerate() {
        let fault = match (block.outcome(&fixture.network), chain.import(&block.rlp)) {
            (Outcome::Valid, Ok(())) | (Outcome::Invalid(None), Err(_)) => continue,
            (Outcome::Valid, Err(error)) => format!("rejected: {error}"),
            (Outcome::Invalid(None), Ok(())) => "accepted".to_owned(),
            (Outcome::Invalid(Some(named)), result) => {
                if let Some(why) = unsupported::exception(named) {
                    return Ok(Some(why));
                }
                match result {
                    Ok(()) => format!("accepted, to be rejected for {named}"),
                    Err(error) if is_for(named, &error) => continue,
                    Err(error) if second_fault(&mut chain, &block.rlp, named, &error) => continue,
                    Err(error) => {
                        let reason = reason(&error);
                        format!("rejected for {reason}, not for {named}: {error}")
                    }
                }
            }
        };
        return Err(format!("blocks[{index}]: {fault}"));
    }
    let reorganisations = chain.reorganisations();
    let (head, mut state) = chain.finish().map_err(|error| error.to_string())?;
    if head != fixture.last_block_hash {
        return Err(format!(
            "the head is {head}, expected {}",
            fixture.last_block_hash
        ));
    }
    compare(fixture, &mut state, reorganisations > 0).map(|()| None)
}

fn is_for(named: &str, rejection: &Rejection) -> bool {
    agrees(named, &reason(rejection))
}

/// The tool that made most fixtures left invalid transactions out of the header's root: such a block has two faults, and the
/// root is the one that we find. This tells whether the fault that the fixture names is found behind it.
fn second_fault(chain: &mut Forks, rlp: &Bytes, named: &str, first: &Rejection) -> bool {
    reason(first) == "TransactionsRoot"
        && chain
            .import_whatever_transactions(rlp)
            .is_err_and(|second| is_for(named, &second))
}

/// Compares the state with the one that the fixture ends with.
fn compare(fixture: &Fixture, state: &mut State, reorganised: bool) -> Result<(), String> {
    if let Some(expected) = fixture.post_state_hash.filter(|root| *root != state.root()) {
        return Err(format!(
            "the state's root is {}, expected {expected}",
            state.root()
        ));
    }
    let Some(expected) = &fixture.post_state else {
        return Ok(());
    };
    let mut accounts: BTreeMap<Address, DumpAccount> = BTreeMap::new();
    let head = state.head().map(|head| head.version);
    let head = head.ok_or("no head")?;
    let whole = state.at(head).and_then(|head| {
        head.dump(|account| {
            accounts.insert(account.address, account);
            Ok::<_, StateError>(())
        })
    });
    whole.map_err(|error| error.to_string())?;
    for (address, expected) in expected {
        let Some(account) = accounts.remove(address) else {
            return Err(format!("{address} is missing"));
        };
        same(&account, expected).map_err(|what| format!("{address}: {what}"))?;
    }
    if let Some(address) = accounts.keys().next() {
        return Err(format!("{address} is not expected"));
    }
    if reorganised {
        let mut headers = HeaderCheck::new(state.tree());
        let report = state
            .snapshot()
            .and_then(|state| state.verify(&|_| {}, &mut |meta| headers.check(meta)))
            .map_err(|error| error.to_string())?;
        if !report.is_ok() {
            return Err(format!("after a reorganisation: {report:?}"));
        }
    }
    Ok(())
}

fn same(account: &DumpAccount, expected: &Account) -> Result<(), String> {
    let code_hash = match expected.code.is_empty() {
        true => KECCAK256_EMPTY,
        false => keccak256(&expected.code),
    };
    let slots: Result<Vec<(U256, U256)>, _> = account
        .storage
        .iter()
        .map(|(slot, value)| Ok(((*slot).into(), U256::from_str_radix(value, 16)?)))
        .collect();
    let slots = slots.map_err(|error: alloy_primitives::ruint::ParseError| error.to_string())?;
    if U256::from(account.nonce) != expected.nonce {
        Err(format!(
            "nonce {}, expected {}",
            account.nonce, expected.nonce
        ))
    } else if account.balance != expected.balance.to_string() {
        Err(format!(
            "balance {}, expected {}",
            account.balance, expected.balance
        ))
    } else if account.code_hash != code_hash {
        Err(format!("code {}, expected {code_hash}", account.code_hash))
    } else if !slots.iter().copied().eq(expected.storage()) {
        Err(format!(
            "storage {slots:?}, expected {:?}",
            expected.storage().collect::<Vec<_>>()
        ))
    } else {
        Ok(())
    }
}
