//! `arbor replay --rpc`: a node's blocks, up to its head and after it.

use std::time::Duration;

use arbor_chain::prepare::{RecoveredBlock, SignatureRules};
use arbor_chain::replay::{BlockStats, Options, Replay, ReplayError};
use arbor_remote::{Blocks, End, Node, RemoteError};

use crate::{output, stop};

/// How often a node is asked for new blocks once all are replayed.
const POLL: Duration = Duration::from_millis(500);
/// How often somebody who asks to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Follows the head of a node.
pub(super) struct Follower<'a> {
    pub(super) node: &'a Node,
    pub(super) rules: SignatureRules,
    /// The last block to replay.
    pub(super) to: u64,
}

impl Follower<'_> {
    /// Replays the node's blocks until the last one that is wanted, or until somebody asks to stop.
    /// At the node's head everything is flushed, so that others can read it. If the node has another
    /// branch, the replay returns to the last block of both and takes that branch.
    ///
    /// # Errors
    /// Blocks that do not hold; a branch that begins before the states that are kept. A node that
    /// does not answer, or does not have the next block yet, is asked again.
    pub(super) fn run(
        &self,
        replay: &mut Replay,
        options: Options<'_>,
        each: &mut dyn FnMut(&BlockStats),
    ) -> Result<(), ReplayError> {
        // So that this is reported once.
        let mut is_silent = false;
        while !stop::asked() {
            let before = replay.head();
            let mut blocks =
                Blocks::after(self.node, before, replay.gas_limit(), self.to, self.rules);
            let mut wanted = std::iter::from_fn(|| wanted(&mut blocks));
            replay.blocks(&mut wanted, options, each)?;
            let end = blocks.end();
            if replay.head() != before {
                is_silent = false;
                // Also before another branch is taken: what was replayed until now is then there.
                replay.flush()?;
            }
            match end {
                Ok(End::Target) => return Ok(()),
                Ok(End::Head | End::OtherBranch) => match self.common_block(replay) {
                    Ok(Some(number)) => take_other_branch(replay, number)?,
                    Ok(None) => wait(),
                    Err(error) => self.ask_again(replay, error, &mut is_silent)?,
                },
                Err(error) => self.ask_again(replay, error.into(), &mut is_silent)?,
            }
        }
        Ok(())
    }

    /// Waits if the node may answer later. A node that does not even give the block at the replay's
    /// head serves no blocks.
    fn ask_again(
        &self,
        replay: &Replay,
        error: FollowError,
        is_silent: &mut bool,
    ) -> Result<(), ReplayError> {
        let error = match error {
            FollowError::Node(error) => error,
            FollowError::Replay(error) => return Err(error),
        };
        let (head, _) = replay.head();
        let serves_none = match &error {
            RemoteError::Refused { .. } => {
                matches!(self.node.block_hash(head), Err(RemoteError::Refused { .. }))
            }
            _ => false,
        };
        if serves_none || !error.may_pass() {
            return Err(ReplayError::fetched(error));
        }
        if !std::mem::replace(is_silent, true) {
            tracing::warn!(
                "the node does not give the block after {head}, and is asked again: {error}"
            );
        }
        wait();
        Ok(())
    }

    /// Looks for the last block that both have, if the node has another branch; `None` if the node's
    /// chain goes on from the replay's head, or has not come so far yet.
    fn common_block(&self, replay: &Replay) -> Result<Option<u64>, FollowError> {
        let (head, _) = replay.head();
        let newest = self.node.latest()?.min(head);
        for number in (0..=newest).rev() {
            let Some(hash) = self.node.block_hash(number)? else {
                // The node went back in between.
                continue;
            };
            match replay.check_known(number, hash) {
                Ok(true) if number == newest => return Ok(None),
                Ok(true) => return Ok(Some(number)),
                Ok(false) => return Err(replay.not_retained(number).into()),
                Err(ReplayError::OtherChain { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(replay.not_retained(0).into())
    }
}

/// Why no block of the node is one of the database.
enum FollowError {
    Node(RemoteError),
    Replay(ReplayError),
}

impl From<RemoteError> for FollowError {
    fn from(error: RemoteError) -> Self {
        Self::Node(error)
    }
}

impl From<ReplayError> for FollowError {
    fn from(error: ReplayError) -> Self {
        Self::Replay(error)
    }
}

/// Returns to the last block of both branches.
fn take_other_branch(replay: &mut Replay, number: u64) -> Result<(), ReplayError> {
    let (head, _) = replay.head();
    replay.rollback(number)?;
    let blocks = output::counted(head - number, "block");
    tracing::info!("the node has another branch: went back {blocks}, to block {number}");
    Ok(())
}

/// The next block, unless somebody asks to stop.
fn wanted(blocks: &mut Blocks<'_>) -> Option<Result<RecoveredBlock, ReplayError>> {
    match stop::asked() {
        true => None,
        false => blocks.next().map(Ok),
    }
}

/// Waits for new blocks, or until somebody asks to stop.
fn wait() {
    let looks = POLL.as_millis() / LOOK.as_millis();
    for _ in 0..looks {
        if stop::asked() {
            return;
        }
        std::thread::sleep(LOOK);
    }
}
