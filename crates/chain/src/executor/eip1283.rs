//! Net gas metering of SSTORE as Constantinople had it (EIP-1283), before Petersburg took it back. Chains that began the two
//! together, mainnet among them, never ran it.

use revm::context::CfgEnv;
use revm::context_interface::cfg::gas_params::GasId;
use revm::context_interface::context::{SStoreResult, StateLoad};
use revm::interpreter::instructions::host::sstore_with_gas_accounting;
use revm::interpreter::{
    Host, InstructionContext, InstructionExecResult, InstructionResult, InterpreterTypes,
};

/// A store that changes nothing, or changes a slot again (EIP-1283).
const AGAIN: u64 = 200;
/// A first store to an empty slot (EIP-1283).
const SET: u64 = 20_000;
/// A first store to another slot (EIP-1283).
const RESET: u64 = 5_000;

/// Sets what the three kinds of store cost. The refund for clearing a slot is Petersburg's.
pub(super) fn set_prices(cfg: &mut CfgEnv) {
    cfg.gas_params.override_gas([
        (GasId::sstore_static(), AGAIN),
        (GasId::sstore_set_without_load_cost(), SET - AGAIN),
        (GasId::sstore_reset_without_cold_load_cost(), RESET - AGAIN),
        (GasId::sstore_set_refund(), SET - AGAIN),
        (GasId::sstore_reset_refund(), RESET - AGAIN),
    ]);
}

/// SSTORE by the prices of [`set_prices`]. EIP-2200 has the same rules, and a minimum of gas left that EIP-1283 lacks;
/// hence revm's Istanbul rules under an earlier fork, where the minimum is not asked for.
pub(super) fn sstore<I: InterpreterTypes, H: Host + ?Sized>(
    context: InstructionContext<'_, H, I>,
) -> InstructionExecResult {
    sstore_with_gas_accounting(context, |context, _, slot: &StateLoad<SStoreResult>| {
        let prices = context.host.gas_params();
        let cost = prices.sstore_dynamic_gas(true, &slot.data, false);
        let refund = prices.sstore_refund(true, &slot.data);
        let gas = &mut context.interpreter.gas;
        if !gas.record_regular_cost(cost) {
            return Err(InstructionResult::OutOfGas);
        }
        gas.record_refund(refund);
        Ok(())
    })
}
