//! Reading by plain names, for whatever has a reader.

/// Implements [`StateView`](crate::StateView) for types by what their `reader` reads.
macro_rules! view_of_reader {
    ($($type:ty),+) => {$(
        impl $crate::StateView for $type {
            fn account(
                &self,
                address: alloy_primitives::Address,
            ) -> Result<Option<$crate::Account>, $crate::ReadError> {
                self.reader().account(address)
            }

            fn accounts(
                &self,
                addresses: &[alloy_primitives::Address],
            ) -> Result<Vec<Option<$crate::Account>>, $crate::ReadError> {
                self.reader().accounts(addresses)
            }

            fn storage(
                &self,
                address: alloy_primitives::Address,
                slot: alloy_primitives::U256,
            ) -> Result<alloy_primitives::U256, $crate::ReadError> {
                self.reader().storage(address, slot)
            }

            fn has_storage(
                &self,
                address: alloy_primitives::Address,
            ) -> Result<bool, $crate::ReadError> {
                self.reader().has_storage(address)
            }

            fn expect(
                &self,
                accounts: &[alloy_primitives::Address],
                slots: &[(alloy_primitives::Address, alloy_primitives::U256)],
            ) {
                self.reader().expect(accounts, slots);
            }

            fn code(
                &self,
                code_hash: alloy_primitives::B256,
            ) -> Result<alloy_primitives::Bytes, $crate::ReadError> {
                self.reader().code(code_hash)
            }
        }
    )+};
}

view_of_reader!(
    crate::PastState,
    crate::Session,
    crate::State,
    crate::StateSnapshot
);
