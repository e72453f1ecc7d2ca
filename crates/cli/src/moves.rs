//! Reports of a state that moves to another tree. `arbor status` shows how far the move is ([`StoredMove`]); a replay shows how long roots
//! took before it, during it and after it ([`MoveSummary`]).

use std::time::Duration;

use alloy_primitives::B256;
use anyhow::Result;
use arbor_chain::replay::{BlockStats, DelaySummary, RootDelays};
use arbor_state::Head;
use serde::Serialize;

use crate::output;

/// The state of a move in a database, as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredMove {
    /// The tree that the state moves to.
    pub(crate) to: &'static str,
    /// The first block that moves something.
    pub(crate) at: u64,
    /// Accounts and slots that a block moves.
    pub(crate) stride: u64,
    /// The root of the tree before; `None` before the first block that moves something.
    pub(crate) source_root: Option<B256>,
    /// The root of the other tree; `None` as for `source_root`.
    pub(crate) target_root: Option<B256>,
    /// The hash of the log of what is gone; `None` as for `source_root`.
    pub(crate) gone: Option<B256>,
    /// Accounts and slots that are moved.
    pub(crate) units: u64,
    /// The estimated part of all accounts and slots that is moved, from 0 to 1; `None` if the order of the tree before does not show it.
    pub(crate) part: Option<f64>,
    /// The estimated number of accounts and slots that are left; `None` before the first is moved, or if `part` is `None`.
    pub(crate) units_left: Option<u64>,
    /// The block that moved the last account or slot; `None` before that block.
    pub(crate) last_block: Option<u64>,
    /// The block that moved the last account or slot, or else an estimate of it; `None` if `units_left` gives none.
    pub(crate) expected_last_block: Option<u64>,
}

impl StoredMove {
    /// Returns how far a state has moved; `None` if it does not move.
    pub(crate) fn of(state: Head<'_>) -> Result<Option<Self>> {
        let Some(moves) = state.tree().moves() else {
            return Ok(None);
        };
        let moved = moves.moved(&state.view())?;
        let part = moved.as_ref().map_or(Some(0.0), |moved| moves.part(moved));
        let units = moved.as_ref().map_or(0, |moved| moved.units);
        let left = part.filter(|part| *part > 0.0);
        let left = left.map(|part| (units as f64 * (1.0 - part) / part).round() as u64);
        let last = moved.as_ref().and_then(|moved| moved.last_block);
        let block = state.meta().map_or(0, |head| head.block_number);
        let expected = left.map(|left| block + left.div_ceil(moves.stride()));
        Ok(Some(Self {
            to: moves.target().kind().name,
            at: moves.at(),
            stride: moves.stride(),
            source_root: moved.as_ref().map(|moved| moved.source_root),
            // The record keeps that of the arrival.
            target_root: match (last, state.meta()) {
                (Some(_), Some(head)) => Some(head.root.into()),
                _ => moved.as_ref().map(|moved| moved.target_root),
            },
            gone: moved.as_ref().map(|moved| moved.gone),
            units,
            part,
            units_left: left,
            last_block: last,
            expected_last_block: last.or(expected),
        }))
    }

    /// Prints the lines of `arbor status`.
    pub(crate) fn tell(&self) -> Result<()> {
        let Self { to, at, stride, .. } = self;
        output::line(&format!(
            "moves to    {to} from block {at} on, {stride} accounts and slots a block"
        ))?;
        if let (Some(source), Some(target), Some(gone)) =
            (self.source_root, self.target_root, self.gone)
        {
            output::line(&format!(
                "            roots: {source} of the tree before, {target} of {to}"
            ))?;
            if self.last_block.is_none() {
                output::line(&format!(
                    "            log of what is gone: {gone}; the state root is the Keccak-256 of the three, which no header has"
                ))?;
            }
        }
        let left = match (self.last_block, self.units_left, self.expected_last_block) {
            (Some(last), ..) => format!("all are moved since block {last}"),
            (_, Some(left), Some(last)) => {
                format!("about {left} left, the last about in block {last}")
            }
            _ if self.units == 0 => "none is moved yet".to_owned(),
            _ => "how many are left is not known".to_owned(),
        };
        output::line(&format!(
            "            accounts and slots moved: {}, {left}",
            self.units
        ))
    }
}

/// Follows a move through the blocks of a replay.
#[derive(Debug)]
pub(crate) struct MoveWatch {
    found: StoredMove,
    /// How long roots took in blocks before the move, amid it and after it.
    delays: [RootDelays; 3],
    /// Blocks of which it is not known yet whether they come after the last move.
    waiting: Vec<(u64, Duration, u64)>,
}

/// A move in the report of a replay, with the times of roots in its three phases.
#[derive(Debug, Serialize)]
pub(crate) struct MoveSummary {
    /// The tree that the state moves to.
    to: &'static str,
    /// The first block that moves something.
    at: u64,
    /// Accounts and slots that a block moves.
    stride: u64,
    /// Accounts and slots that are moved after the replay.
    units: u64,
    /// The block that moved the last account or slot; `None` before that block.
    last_block: Option<u64>,
    /// How long roots took in the blocks before `at`; `None` if the replay had no such blocks.
    before: Option<DelaySummary>,
    /// The same for the blocks that moved something.
    amid: Option<DelaySummary>,
    /// The same for the blocks after `last_block`.
    after: Option<DelaySummary>,
}

impl MoveWatch {
    /// Begins with a state before its blocks; `None` if it does not move.
    pub(crate) fn new(state: Head<'_>) -> Result<Option<Self>> {
        let found = StoredMove::of(state)?;
        Ok(found.map(|found| Self {
            found,
            delays: Default::default(),
            waiting: Vec::new(),
        }))
    }

    /// Takes a block that is committed.
    pub(crate) fn passed(&mut self, block: &BlockStats) {
        match block.number < self.found.at {
            true => self.delays[0].add(block.root_delay, block.root_group),
            false => self
                .waiting
                .push((block.number, block.root_delay, block.root_group)),
        }
    }

    /// Reads from the state how far the move is after the blocks that have passed.
    pub(crate) fn look(&mut self, state: Head<'_>) -> Result<()> {
        if let Some(found) = StoredMove::of(state)? {
            self.found = found;
        }
        let last = self.found.last_block.unwrap_or(u64::MAX);
        for (number, delay, group) in self.waiting.drain(..) {
            self.delays[1 + usize::from(number > last)].add(delay, group);
        }
        Ok(())
    }

    pub(crate) fn summary(&self) -> MoveSummary {
        let StoredMove {
            to,
            at,
            stride,
            units,
            last_block,
            ..
        } = self.found;
        let [before, amid, after] = self.delays.each_ref().map(RootDelays::summary);
        MoveSummary {
            to,
            at,
            stride,
            units,
            last_block,
            before,
            amid,
            after,
        }
    }
}

impl MoveSummary {
    /// Prints the lines below the summary of a replay.
    pub(crate) fn tell(&self) -> Result<()> {
        let Self { to, at, units, .. } = self;
        let last = match self.last_block {
            Some(last) => format!("the last in block {last}"),
            None => "not all".to_owned(),
        };
        output::line(&format!(
            "move to {to} from block {at} on: {units} accounts and slots moved, {last}"
        ))?;
        for (name, delays) in [
            ("before", &self.before),
            ("amid", &self.amid),
            ("after", &self.after),
        ] {
            if let Some(delays) = delays {
                let [p50, p99] = [delays.p50_s, delays.p99_s].map(|seconds| seconds * 1e3);
                output::line(&format!(
                    "  {name:<7}root known after {p50:.2} ms (median), {p99:.2} ms (p99)"
                ))?;
            }
        }
        Ok(())
    }
}
