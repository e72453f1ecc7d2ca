//! A signed transaction as revm takes it.

use alloy_consensus::{Transaction as _, TxType, Typed2718};
use alloy_eips::eip7702::constants::SECP256K1N_HALF;
use alloy_eips::eip7702::{RecoveredAuthority, RecoveredAuthorization, SignedAuthorization};
use alloy_primitives::Address;
use revm::context::TxEnv;
use revm::context::either::Either;
use revm::precompile::crypto;
use revm::primitives::hardfork::SpecId;

use super::{Rules, TransactionError};
use crate::source::Transaction;

/// Checks what revm does not: signature rules, and the gas that the block has left.
pub(super) fn check_transaction(
    rules: &Rules,
    tx: &Transaction,
    available: u64,
) -> Result<(), TransactionError> {
    if tx.tx_type() == TxType::Legacy && tx.chain_id().is_some() && !rules.eip155 {
        return Err(TransactionError::ReplayProtectionTooEarly);
    }
    if rules.has(SpecId::HOMESTEAD) && tx.signature().s() > SECP256K1N_HALF {
        return Err(TransactionError::HighS);
    }
    if tx.gas_limit() > available {
        return Err(TransactionError::GasAllowance {
            limit: tx.gas_limit(),
            available,
        });
    }
    Ok(())
}

/// Fills revm's form of a transaction.
pub(super) fn tx_env(tx: &Transaction, caller: Address) -> TxEnv {
    TxEnv {
        tx_type: tx.ty(),
        caller,
        gas_limit: tx.gas_limit(),
        gas_price: tx.max_fee_per_gas(),
        kind: tx.kind(),
        value: tx.value(),
        data: tx.input().clone(),
        nonce: tx.nonce(),
        chain_id: tx.chain_id(),
        access_list: tx.access_list().cloned().unwrap_or_default(),
        gas_priority_fee: tx.max_priority_fee_per_gas(),
        blob_hashes: tx.blob_versioned_hashes().unwrap_or_default().to_vec(),
        max_fee_per_blob_gas: tx.max_fee_per_blob_gas().unwrap_or_default(),
        authorization_list: tx
            .authorization_list()
            .unwrap_or_default()
            .iter()
            .map(|signed| Either::Right(recover_authority(signed)))
            .collect(),
    }
}

/// Recovers who signed an authorisation; one with a malformed signature is without effect (EIP-7702).
pub(super) fn recover_authority(signed: &SignedAuthorization) -> RecoveredAuthorization {
    let authority =
        authority(signed).map_or(RecoveredAuthority::Invalid, RecoveredAuthority::Valid);
    RecoveredAuthorization::new_unchecked(signed.inner().clone(), authority)
}

/// Returns who signed an authorisation; `None` for a malformed signature.
pub(crate) fn authority(signed: &SignedAuthorization) -> Option<Address> {
    if signed.y_parity() > 1 || signed.s() > SECP256K1N_HALF {
        return None;
    }
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&signed.r().to_be_bytes::<32>());
    signature[32..].copy_from_slice(&signed.s().to_be_bytes::<32>());
    let digest = signed.inner().signature_hash();
    let word = crypto()
        .secp256k1_ecrecover(&signature, signed.y_parity(), &digest.0)
        .ok()?;
    Some(Address::from_slice(&word[12..]))
}
