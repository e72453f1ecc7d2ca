//! A header against its parent.

use alloy_consensus::{EMPTY_OMMER_ROOT_HASH, Header};
use alloy_primitives::B256;
use revm::primitives::hardfork::SpecId;

use super::fees::{ELASTICITY, expected_base_fee, expected_excess_blob_gas};
use super::{BlockError, DaoRule, Rules};

/// Longest extra data in bytes (yellow paper, section 4.4.4).
const MAX_EXTRA_DATA: usize = 32;
/// A gas limit moves by less than one part in this (yellow paper, equation 47).
const GAS_LIMIT_DIVISOR: u64 = 1024;
/// Least gas limit (yellow paper, equation 47).
const MIN_GAS_LIMIT: u64 = 5000;
/// Greatest gas limit (EIP-1985).
const MAX_GAS_LIMIT: u64 = i64::MAX as u64;
/// The marker in the extra data of the ten blocks from the DAO fork on (EIP-779).
const DAO_EXTRA_DATA: &[u8] = b"dao-hard-fork";

/// Checks all that a header owes to its parent, before anything is executed.
///
/// The proof-of-work seal is not checked.
///
/// # Errors
/// The first rule that the header breaks.
pub fn check_header(
    rules: &Rules,
    header: &Header,
    parent: &Header,
    parent_hash: B256,
) -> Result<(), BlockError> {
    if rules.has(SpecId::AMSTERDAM) {
        return Err(BlockError::UnsupportedFork {
            fork: "Amsterdam".into(),
        });
    }
    if header.parent_hash != parent_hash {
        return Err(BlockError::ParentHash {
            expected: parent_hash,
            actual: header.parent_hash,
        });
    }
    check_dao_extra_data(rules, header)?;
    check_against_parent(rules, header, parent)
}

/// The part of the rules that ommers share.
pub(super) fn check_against_parent(
    rules: &Rules,
    header: &Header,
    parent: &Header,
) -> Result<(), BlockError> {
    let number = parent.number.saturating_add(1);
    if header.number != number {
        return Err(BlockError::Number {
            expected: number,
            actual: header.number,
        });
    }
    if header.timestamp <= parent.timestamp {
        return Err(BlockError::Timestamp {
            parent: parent.timestamp,
            actual: header.timestamp,
        });
    }
    if header.extra_data.len() > MAX_EXTRA_DATA {
        return Err(BlockError::ExtraDataLength {
            actual: header.extra_data.len(),
        });
    }
    check_gas_limit(rules, header, parent)?;
    if header.gas_used > header.gas_limit {
        return Err(BlockError::GasUsedAboveLimit {
            limit: header.gas_limit,
            actual: header.gas_used,
        });
    }
    check_seal_fields(rules, header)?;
    check_presence(rules, header)?;
    if let Some(actual) = header.base_fee_per_gas {
        let expected = expected_base_fee(parent);
        if actual != expected {
            return Err(BlockError::BaseFee { expected, actual });
        }
    }
    check_blob_gas(rules, header, parent)
}

pub(super) fn check_dao_extra_data(rules: &Rules, header: &Header) -> Result<(), BlockError> {
    let required = match rules.dao {
        DaoRule::None => return Ok(()),
        DaoRule::Opposed => false,
        DaoRule::Supported | DaoRule::Transition => true,
    };
    if (header.extra_data.as_ref() == DAO_EXTRA_DATA) == required {
        return Ok(());
    }
    Err(BlockError::DaoExtraData {
        required,
        actual: header.extra_data.clone(),
    })
}

fn check_gas_limit(rules: &Rules, header: &Header, parent: &Header) -> Result<(), BlockError> {
    let base = if rules.london_begins {
        parent.gas_limit.saturating_mul(ELASTICITY)
    } else {
        parent.gas_limit
    };
    let step = (base / GAS_LIMIT_DIVISOR).saturating_sub(1);
    let min = base.saturating_sub(step).max(MIN_GAS_LIMIT);
    let max = base.saturating_add(step).min(MAX_GAS_LIMIT);
    let actual = header.gas_limit;
    if (min..=max).contains(&actual) {
        Ok(())
    } else {
        Err(BlockError::GasLimit { min, max, actual })
    }
}

/// Difficulty, and what EIP-3675 fixes from the merge on.
fn check_seal_fields(rules: &Rules, header: &Header) -> Result<(), BlockError> {
    if header.difficulty != rules.difficulty {
        return Err(BlockError::Difficulty {
            expected: rules.difficulty,
            actual: header.difficulty,
        });
    }
    if !rules.is_merged() {
        return Ok(());
    }
    if !header.nonce.is_zero() {
        return Err(BlockError::Nonce {
            actual: u64::from_be_bytes(header.nonce.0),
        });
    }
    if header.ommers_hash != EMPTY_OMMER_ROOT_HASH {
        return Err(BlockError::OmmersHash {
            expected: EMPTY_OMMER_ROOT_HASH,
            actual: header.ommers_hash,
        });
    }
    Ok(())
}

/// Each optional field is there from its fork on, and not before.
fn check_presence(rules: &Rules, header: &Header) -> Result<(), BlockError> {
    let fields = [
        (
            "baseFeePerGas",
            SpecId::LONDON,
            header.base_fee_per_gas.is_some(),
        ),
        (
            "withdrawalsRoot",
            SpecId::SHANGHAI,
            header.withdrawals_root.is_some(),
        ),
        (
            "blobGasUsed",
            SpecId::CANCUN,
            header.blob_gas_used.is_some(),
        ),
        (
            "excessBlobGas",
            SpecId::CANCUN,
            header.excess_blob_gas.is_some(),
        ),
        (
            "parentBeaconBlockRoot",
            SpecId::CANCUN,
            header.parent_beacon_block_root.is_some(),
        ),
        (
            "requestsHash",
            SpecId::PRAGUE,
            header.requests_hash.is_some(),
        ),
        (
            "blockAccessListHash",
            SpecId::AMSTERDAM,
            header.block_access_list_hash.is_some(),
        ),
        (
            "slotNumber",
            SpecId::AMSTERDAM,
            header.slot_number.is_some(),
        ),
    ];
    for (field, since, present) in fields {
        match (rules.has(since), present) {
            (true, false) => return Err(BlockError::MissingField { field }),
            (false, true) => return Err(BlockError::UnexpectedField { field }),
            _ => {}
        }
    }
    Ok(())
}

fn check_blob_gas(rules: &Rules, header: &Header, parent: &Header) -> Result<(), BlockError> {
    let (Some(params), Some(actual), Some(used)) =
        (&rules.blobs, header.excess_blob_gas, header.blob_gas_used)
    else {
        return Ok(());
    };
    let limit = params.max_blob_gas_per_block();
    if used > limit {
        return Err(BlockError::BlobGasAboveLimit {
            limit,
            actual: used,
        });
    }
    let expected = expected_excess_blob_gas(params, parent);
    if actual != expected {
        return Err(BlockError::ExcessBlobGas { expected, actual });
    }
    Ok(())
}
