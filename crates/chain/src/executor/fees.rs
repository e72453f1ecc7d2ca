//! Base fee and blob gas, computed so that no header can make them overflow.

use alloy_consensus::Header;
use alloy_eips::eip4844::DATA_GAS_PER_BLOB;
use alloy_eips::eip7840::BlobParams;
use alloy_primitives::U256;

/// Base fee of the first London block in wei (EIP-1559).
const INITIAL_BASE_FEE: u64 = 1_000_000_000;
/// Gas limit over gas target (EIP-1559).
pub(super) const ELASTICITY: u64 = 2;
/// Greatest change of the base fee between blocks is one part in this (EIP-1559).
const BASE_FEE_DENOMINATOR: u128 = 8;

/// Returns the base fee of the child of `parent` in wei (EIP-1559).
pub(super) fn expected_base_fee(parent: &Header) -> u64 {
    let Some(base_fee) = parent.base_fee_per_gas else {
        return INITIAL_BASE_FEE;
    };
    let base_fee = u128::from(base_fee);
    let target = u128::from((parent.gas_limit / ELASTICITY).max(1));
    let used = u128::from(parent.gas_used);
    let next = if used > target {
        base_fee + (base_fee * (used - target) / target / BASE_FEE_DENOMINATOR).max(1)
    } else {
        base_fee - base_fee * (target - used) / target / BASE_FEE_DENOMINATOR
    };
    u64::try_from(next).unwrap_or(u64::MAX)
}

/// Returns the excess blob gas of the child of `parent` under the child's parameters (EIP-4844; where
/// `blob_base_cost` is not zero also EIP-7918). A parent without blob fields counts as zero.
pub(super) fn expected_excess_blob_gas(params: &BlobParams, parent: &Header) -> u64 {
    let excess = parent.excess_blob_gas.unwrap_or(0);
    let used = parent.blob_gas_used.unwrap_or(0);
    let next = excess.saturating_add(used);
    let target = params.target_blob_gas_per_block();
    if next < target {
        return 0;
    }
    let reserve =
        U256::from(params.blob_base_cost) * U256::from(parent.base_fee_per_gas.unwrap_or(0));
    let price = U256::from(DATA_GAS_PER_BLOB) * U256::from(blob_base_fee(params, excess));
    if params.max_blob_count > 0 && reserve > price {
        let room = params
            .max_blob_count
            .saturating_sub(params.target_blob_count);
        let scaled = u128::from(used) * u128::from(room) / u128::from(params.max_blob_count);
        excess.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
    } else {
        next - target
    }
}

/// Returns the price of one unit of blob gas in wei: `min_blob_fee * e^(excess / update_fraction)`, by the
/// series that EIP-4844 fixes, or the greatest value that fits.
pub(super) fn blob_base_fee(params: &BlobParams, excess: u64) -> u128 {
    let denominator = U256::from(params.update_fraction.max(1));
    let numerator = U256::from(excess);
    let mut output = U256::ZERO;
    let mut term = U256::from(params.min_blob_fee) * denominator;
    let mut i = U256::ONE;
    while !term.is_zero() {
        output = output.saturating_add(term);
        let Some(product) = term.checked_mul(numerator) else {
            return u128::MAX;
        };
        term = product / (denominator * i);
        i += U256::ONE;
    }
    u128::try_from(output / denominator).unwrap_or(u128::MAX)
}

#[cfg(test)]
mod tests {
    use alloy_eips::eip1559::BaseFeeParams;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn base_fee_agrees_with_alloy(
            used in 0u64..60_000_000,
            limit in 5000u64..60_000_000,
            base_fee in 0u64..1_000_000_000_000,
        ) {
            let parent = Header {
                gas_used: used,
                gas_limit: limit,
                base_fee_per_gas: Some(base_fee),
                ..Header::default()
            };
            let expected = BaseFeeParams::ethereum().next_block_base_fee(used, limit, base_fee);
            prop_assert_eq!(expected_base_fee(&parent), expected);
        }

        #[test]
        fn excess_blob_gas_agrees_with_alloy(
            excess in 0u64..200_000_000,
            blobs in 0u64..22,
            base_fee in 0u64..1_000_000_000_000,
            which in 0usize..5,
        ) {
            let params = [
                BlobParams::cancun(),
                BlobParams::prague(),
                BlobParams::osaka(),
                BlobParams::bpo1(),
                BlobParams::bpo2(),
            ][which];
            let parent = Header {
                excess_blob_gas: Some(excess),
                blob_gas_used: Some(blobs * DATA_GAS_PER_BLOB),
                base_fee_per_gas: Some(base_fee),
                ..Header::default()
            };
            let expected = params.next_block_excess_blob_gas_osaka(
                excess,
                blobs * DATA_GAS_PER_BLOB,
                base_fee,
            );
            prop_assert_eq!(expected_excess_blob_gas(&params, &parent), expected);
            prop_assert_eq!(blob_base_fee(&params, excess), params.calc_blob_fee(excess));
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let parent = Header {
            gas_limit: 0,
            gas_used: u64::MAX,
            base_fee_per_gas: Some(u64::MAX),
            excess_blob_gas: Some(u64::MAX),
            blob_gas_used: Some(u64::MAX),
            ..Header::default()
        };
        assert_eq!(expected_base_fee(&parent), u64::MAX);
        assert_eq!(blob_base_fee(&BlobParams::osaka(), u64::MAX), u128::MAX);
        expected_excess_blob_gas(&BlobParams::osaka(), &parent);
    }
}
