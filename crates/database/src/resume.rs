//! Going on with a database by all that its folder remembers.

use arbor_chain::genesis::Genesis;
use arbor_chain::replay::{Replay, ReplayError};
use arbor_chain::rules::ChainRules;
use arbor_state::State;

use crate::folder::Folder;
use crate::{Budget, DatabaseError};

/// A database of a chain, open for writing, with all that its folder remembers.
pub struct Resumed {
    /// The state.
    pub state: State,
    /// The genesis. Its specification has the rules' part of a chain's specification.
    pub genesis: Genesis,
    /// The rules that the genesis does not have.
    pub rules: ChainRules,
    /// Memory and history.
    pub budget: Budget,
}

impl Folder<'_> {
    /// Opens an existing database to go on with it, by the genesis, rules, tree settings and history that its folder remembers.
    /// The tree is made with `memory` bytes for everything together.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); a database without a chain; a file in the folder that is damaged.
    pub fn resume(self, memory: u64) -> Result<Resumed, DatabaseError> {
        let mut genesis = self.genesis()?;
        let rules = self.rules()?.unwrap_or_default();
        rules.set(&mut genesis.spec);
        let budget = Budget {
            retain: self.retention()?,
            ..Budget::new(memory)
        };
        Ok(Resumed {
            state: self.open_known(budget, |tree| budget.for_tree(tree))?,
            genesis,
            rules,
            budget,
        })
    }
}

impl Resumed {
    /// Makes a replay that goes on at the head, by the rules that the database was made with.
    ///
    /// # Errors
    /// Those of [`Replay::new`].
    pub fn into_replay(self) -> Result<Replay, ReplayError> {
        let replay = Replay::new(self.state, &self.genesis, self.budget.names())?;
        Ok(replay.with_executor(self.rules.executor()))
    }
}
