//! Changes that only the whole state determines.

use arbor_accounts::ReadError;

#[cfg(feature = "eip8297")]
use crate::eip8297::UnreadWitness;
#[cfg(any(feature = "eip7864", feature = "eip8297", feature = "verkle"))]
use crate::stems::UnreadLeaf;

/// Returns whether an error says that changes cannot be applied to a witness, because only the whole state determines them:
/// an account loses slots that the witness does not list, or code that another account may have too.
///
/// No witness of such a block can exist. Any other error says that the witness at hand lacks something.
#[must_use]
pub fn needs_whole_state(error: &ReadError) -> bool {
    match error {
        #[cfg(any(feature = "eip7864", feature = "eip8297", feature = "verkle"))]
        ReadError::Below(cause)
            if matches!(
                cause.downcast_ref::<UnreadLeaf>(),
                Some(UnreadLeaf::LostStorage { .. })
            ) =>
        {
            true
        }
        #[cfg(feature = "eip8297")]
        ReadError::Below(cause)
            if matches!(
                cause.downcast_ref::<UnreadWitness>(),
                Some(UnreadWitness::LostCode { .. })
            ) =>
        {
            true
        }
        _ => false,
    }
}

#[cfg(all(test, feature = "eip7864", feature = "eip8297"))]
mod tests {
    use alloy_primitives::{Address, B256};

    use super::*;

    #[test]
    fn only_lost_storage_and_lost_code_need_the_whole_state() {
        let address = Address::ZERO;
        let lost_storage = ReadError::below(UnreadLeaf::LostStorage { address });
        assert!(needs_whole_state(&lost_storage));
        let lost_code = ReadError::below(UnreadWitness::LostCode {
            address,
            code_hash: B256::ZERO,
        });
        assert!(needs_whole_state(&lost_code));
        assert!(!needs_whole_state(&ReadError::new("another reason")));
        assert!(!needs_whole_state(&ReadError::MissingCode(B256::ZERO)));
    }
}
