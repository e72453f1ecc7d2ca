//! The chain of a database, for whoever reads its states: block 0, the rules, and executors for
//! calls.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use arbor_chain::executor::Executor;
use arbor_chain::genesis::{Alloc, Genesis};
use arbor_chain::rules::ChainRules;

use crate::DatabaseError;
use crate::folder::Folder;

/// The chain of a database: block 0, the rules of its blocks, and executors that have analysed code
/// before.
pub struct ChainContext {
    genesis: Genesis,
    rules: ChainRules,
    /// Those that no call uses at the moment.
    idle: Mutex<Vec<Executor>>,
}

impl ChainContext {
    /// Takes over a genesis, whose accounts are dropped, and the rules that it does not have.
    #[must_use]
    pub fn new(mut genesis: Genesis, rules: ChainRules) -> Self {
        rules.set(&mut genesis.spec);
        genesis.alloc = Alloc::default();
        Self {
            genesis,
            rules,
            idle: Mutex::default(),
        }
    }

    /// Block 0. Its specification has the rules' part of a chain's specification.
    #[must_use]
    pub const fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// The rules that the genesis does not have.
    #[must_use]
    pub const fn rules(&self) -> ChainRules {
        self.rules
    }

    /// Runs something with an executor that follows the rules.
    pub(crate) fn with_executor<T>(&self, run: impl FnOnce(&mut Executor) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut executor = taken.unwrap_or_else(|| self.rules.executor());
        let result = run(&mut executor);
        idle().push(executor);
        result
    }
}

impl fmt::Debug for ChainContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainContext")
            .field("genesis", &self.genesis.hash)
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

impl Folder<'_> {
    /// Reads the chain that the folder remembers.
    ///
    /// # Errors
    /// A database without a chain; a genesis or rules that are missing or damaged.
    pub fn chain_context(self) -> Result<ChainContext, DatabaseError> {
        let rules = self.rules()?.unwrap_or_default();
        Ok(ChainContext::new(self.genesis()?, rules))
    }
}
