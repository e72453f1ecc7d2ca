//! How much gas a call needs (`eth_estimateGas`).

use std::time::Instant;

use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip7825::MAX_TX_GAS_LIMIT_OSAKA;
use alloy_primitives::{Bytes, KECCAK256_EMPTY, U256};
use arbor_chain::executor::{
    Call, CallEnd, CallError, CallOutcome, HaltReason, InvalidTransaction, Rules, SpecId,
};

use crate::block_state::{BlockState, BlockStateError};

/// Gas of a transfer (yellow paper, appendix G).
const TRANSFER: u64 = 21_000;
/// Gas that a call with value gives on top (yellow paper, appendix G).
const STIPEND: u64 = 2_300;
/// How far from the least gas the estimate may be, as a part of it.
const ERROR: f64 = 0.015;

/// What came of an estimate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GasEstimate {
    /// So much gas suffices.
    Gas(u64),
    /// The call reverts however much gas it has, with this output.
    Reverted(Bytes),
    /// The call fails however much gas it has.
    Halted(HaltReason),
    /// The call needs more than this, the most that it may have.
    Beyond(u64),
    /// The call breaks a rule, with however much gas; it was tried with this much.
    Rejected {
        /// The rule.
        why: Box<InvalidTransaction>,
        /// The gas.
        gas: u64,
    },
    /// The sender cannot pay for the value, or for the value and the blobs.
    Unfunded {
        /// Whether it is the blobs that are too much.
        for_blobs: bool,
    },
}

impl BlockState<'_> {
    /// Finds how much gas a call needs, within 1.5 %. It tries the steps of go-ethereum, so that
    /// both come to the same number. `gas` of the call is the most that the sender offers, if it is
    /// at least that of a transfer; `cap` is the most that is tried in any case.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub fn estimate_gas(
        &self,
        call: &Call,
        cap: u64,
        deadline: Option<Instant>,
    ) -> Result<GasEstimate, BlockStateError> {
        let (header, rules) = self.rules()?;
        let mut most = match call.gas {
            gas if gas >= TRANSFER => gas,
            _ => header.gas_limit,
        };
        if rules.has(SpecId::OSAKA) {
            most = most.min(MAX_TX_GAS_LIMIT_OSAKA);
        }
        if call.fee > 0 {
            match self.affordable(call, &rules)? {
                Ok(gas) => most = most.min(gas),
                Err(for_blobs) => return Ok(GasEstimate::Unfunded { for_blobs }),
            }
        }
        let search = Search {
            state: self,
            call,
            deadline,
        };
        search.run(most.min(cap))
    }

    /// The gas that the sender can pay for beside value and blobs; or whether it is the blobs that
    /// are too much.
    fn affordable(&self, call: &Call, rules: &Rules) -> Result<Result<u64, bool>, BlockStateError> {
        let balance = self.view()?.account(call.from)?;
        let balance = balance.map_or(U256::ZERO, |account| account.balance);
        if call.value >= balance && !call.value.is_zero() {
            return Ok(Err(false));
        }
        let mut left = balance - call.value;
        let blobs = call.blob_hashes.as_ref().map_or(0, Vec::len);
        if rules.has(SpecId::CANCUN) && blobs > 0 {
            let blobs = U256::from(blobs) * U256::from(DATA_GAS_PER_BLOB);
            let blobs = blobs.saturating_mul(U256::from(call.blob_fee.unwrap_or(0)));
            if blobs >= left {
                return Ok(Err(true));
            }
            left -= blobs;
        }
        Ok(Ok((left / U256::from(call.fee)).saturating_to()))
    }
}

/// A search for the least gas.
struct Search<'s, 'a> {
    state: &'s BlockState<'a>,
    call: &'s Call,
    deadline: Option<Instant>,
}

impl Search<'_, '_> {
    fn run(&self, most: u64) -> Result<GasEstimate, BlockStateError> {
        if self.is_transfer()? && matches!(self.suffices(TRANSFER), Ok(true)) {
            return Ok(GasEstimate::Gas(TRANSFER));
        }
        let first = match self.attempt(most) {
            Err(BlockStateError::Call(CallError::Rejected(why))) => {
                return Ok(GasEstimate::Rejected { why, gas: most });
            }
            first => first?,
        };
        let Some(first) = first else {
            return Ok(GasEstimate::Beyond(most));
        };
        match first.end {
            CallEnd::Returned(_) => {}
            CallEnd::Reverted(output) => return Ok(GasEstimate::Reverted(output)),
            CallEnd::Halted(HaltReason::OutOfGas(_)) => return Ok(GasEstimate::Beyond(most)),
            CallEnd::Halted(reason) => return Ok(GasEstimate::Halted(reason)),
        }
        // What the call paid for with all gas is not enough, and mostly what it had in use is.
        let (mut low, mut high) = (first.gas_used - 1, most);
        let likely = (u128::from(first.peak_gas) + u128::from(STIPEND)) * 64 / 63;
        if let Some(likely) = u64::try_from(likely).ok().filter(|gas| *gas < high) {
            match self.suffices(likely)? {
                true => high = likely,
                false => low = likely,
            }
        }
        while low + 1 < high {
            if ((high - low) as f64) / (high as f64) < ERROR {
                break;
            }
            // Most calls need little more than what they use.
            let middle = (low + (high - low) / 2).min(low.saturating_mul(2));
            match self.suffices(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        Ok(GasEstimate::Gas(high))
    }

    /// Whether the call moves value alone, to what has no code.
    fn is_transfer(&self) -> Result<bool, BlockStateError> {
        let Some(to) = self.call.to.to().filter(|_| self.call.input.is_empty()) else {
            return Ok(false);
        };
        let account = self.state.view()?.account(*to)?;
        Ok(account.is_none_or(|account| account.code_hash == KECCAK256_EMPTY))
    }

    fn suffices(&self, gas: u64) -> Result<bool, BlockStateError> {
        let outcome = self.attempt(gas)?;
        Ok(outcome.is_some_and(|outcome| matches!(outcome.end, CallEnd::Returned(_))))
    }

    /// Makes the call with so much gas; `None` if it does not even pay for its data.
    fn attempt(&self, gas: u64) -> Result<Option<CallOutcome>, BlockStateError> {
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() > deadline)
        {
            return Err(CallError::Late.into());
        }
        let call = Call {
            gas,
            ..self.call.clone()
        };
        match self.state.call(&call, self.deadline) {
            Ok(outcome) => Ok(Some(outcome)),
            Err(BlockStateError::Call(CallError::Rejected(why))) if is_too_little(&why) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_too_little(why: &InvalidTransaction) -> bool {
    matches!(
        why,
        InvalidTransaction::CallGasCostMoreThanGasLimit { .. }
            | InvalidTransaction::GasFloorMoreThanGasLimit { .. }
    )
}
