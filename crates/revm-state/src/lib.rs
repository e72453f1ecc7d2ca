//! Any view of Ethereum state as revm's database, and revm's changes as changes of the state.
//!
//! [`ViewDatabase`] lets revm read a [`StateView`](arbor_accounts::StateView): the head of a database, a session, an older version, a witness.
//! [`changes_of_bundle`] turns what revm's `State` has gathered over a block into the [`StateChanges`](arbor_accounts::StateChanges) that a
//! tree computes a root from.
//!
//! ```
//! use alloy_primitives::{Address, B256, Bytes, TxKind, U256};
//! use arbor_accounts::{Account, ReadError, StateView};
//! use arbor_revm_state::{ViewDatabase, changes_of_bundle};
//! use revm::context::TxEnv;
//! use revm::database::State;
//! use revm::database::states::bundle_state::BundleRetention;
//! use revm::{Context, ExecuteCommitEvm, MainBuilder, MainContext};
//!
//! /// One rich account.
//! struct Rich;
//! const RICH: Address = Address::repeat_byte(1);
//!
//! impl StateView for Rich {
//!     fn account(&self, address: Address) -> Result<Option<Account>, ReadError> {
//!         Ok((address == RICH).then(|| Account::with_balance(U256::from(1_000_000_000))))
//!     }
//!     fn storage(&self, _: Address, _: U256) -> Result<U256, ReadError> {
//!         Ok(U256::ZERO)
//!     }
//!     fn code(&self, code_hash: B256) -> Result<Bytes, ReadError> {
//!         Err(ReadError::MissingCode(code_hash))
//!     }
//! }
//!
//! let mut state = State::builder().with_database_ref(ViewDatabase::new(&Rich)).with_bundle_update().build();
//! let mut evm = Context::mainnet().with_db(&mut state).build_mainnet();
//! let (to, value) = (Address::repeat_byte(2), U256::from(7));
//! let transfer = TxEnv::builder().caller(RICH).kind(TxKind::Call(to)).value(value).gas_limit(21_000).build();
//! assert!(evm.transact_commit(transfer.expect("a transfer"))?.is_success());
//!
//! state.merge_transitions(BundleRetention::PlainState);
//! let changes = changes_of_bundle(&state.take_bundle());
//! assert_eq!(changes.accounts[&to].new, Some(Account::with_balance(value)));
//! assert_eq!(changes.accounts[&RICH].new.map(|account| account.nonce), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod account;
mod changes;
mod view_database;

pub use account::{account_of, info_of};
pub use changes::changes_of_bundle;
pub use view_database::{ViewDatabase, ViewError};
