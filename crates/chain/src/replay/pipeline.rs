//! Blocks one after the other, the roots of the last ones computed beside the execution of the next.
//!
//! ```text
//! this thread     execute N+1 .......... execute N+2 ..........
//! roots' thread   root of N, commit N .. root of N+1, commit N+1 ..
//! ```
//!
//! Execution reads the database through a [`RecentState`], which holds what the blocks changed that are not committed
//! yet. Some blocks may wait for their root, so that a block with much to execute and one with much to hash even out. If
//! a root does not hold, the blocks after it are dropped; they have left no trace but in memory.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;
use std::time::Instant;

use alloy_consensus::{Header, ReceiptEnvelope};
use alloy_primitives::{B256, U256};
use arbor_state::{IntermediateRoots, RecentState, RootPlace, StateChanges, StateView};
use rayon::ThreadPool;

use super::options::{Options, Roots, Verify};
use super::prewarm::Prewarm;
use super::record::BlockRecord;
use super::settle::{BLOCKS_TOGETHER, Executed, SIZE_TOGETHER, Settler, SharedState};
use super::{BlockStats, ReplayError, Times};
use crate::executor::{Ancestor, BlockInput, Executor, RecentBlocks, Rules, SpecId};
use crate::genesis::ChainSpec;
use crate::prepare::RecoveredBlock;

/// Blocks that may wait for their root beside those that are gathered to be settled together.
const WAITING: usize = 4;

/// How many times what is settled together may wait for its roots: what is settled, what is executed meanwhile, and as much again, lest a processor be idle when either takes longer for a
/// while (docs/measurements/verkle.md).
const GATHERED: usize = 4;

/// What is asked of the settler.
enum Order {
    Take(Box<Executed>),
    /// Settle all that was taken, whatever was gathered.
    Settle,
}

type Settled = Result<BlockStats, ReplayError>;

/// Where blocks are settled.
enum Place<'a, 'b> {
    /// On this thread, as soon as they are ordered.
    Here(Settler<'a, 'b>, VecDeque<Settled>),
    Beside(Sender<Order>, Receiver<Settled>),
}

impl<'a, 'b: 'a> Place<'a, 'b> {
    fn beside<'scope>(
        scope: &'scope Scope<'scope, 'a>,
        mut settler: Settler<'a, 'b>,
        pool: Option<&'a ThreadPool>,
    ) -> Self
    where
        'b: 'scope,
    {
        let (orders, ordered) = channel();
        let (settled, results) = channel();
        let work = move || {
            for order in ordered {
                // Whether somebody still listens does not matter: what is settled is committed.
                let mut tell = |stats| drop(settled.send(Ok(stats)));
                if let Err(error) = follow(&mut settler, order, &mut tell) {
                    drop(settled.send(Err(error)));
                    return;
                }
            }
        };
        scope.spawn(move || match pool {
            Some(pool) => pool.install(work),
            None => work(),
        });
        Self::Beside(orders, results)
    }

    fn order(&mut self, order: Order) {
        match self {
            // A settler that has ended has told why.
            Self::Beside(orders, _) => drop(orders.send(order)),
            Self::Here(settler, results) => {
                let done = follow(settler, order, &mut |stats| results.push_back(Ok(stats)));
                results.extend(done.err().map(Err));
            }
        }
    }

    /// The next block settled; `None` if there is none, or none yet and `wait` is not set.
    fn next(&mut self, wait: bool) -> Option<Settled> {
        match self {
            Self::Here(_, results) => results.pop_front(),
            Self::Beside(_, results) if wait => results.recv().ok(),
            Self::Beside(_, results) => results.try_recv().ok(),
        }
    }
}

fn follow(
    settler: &mut Settler<'_, '_>,
    order: Order,
    settled: &mut dyn FnMut(BlockStats),
) -> Result<(), ReplayError> {
    match order {
        Order::Take(block) => settler.take(*block, settled),
        Order::Settle => settler.settle(settled),
    }
}

/// What was executed and is not settled.
struct Waiting {
    /// The blocks' sizes, in their order.
    sizes: VecDeque<u64>,
    /// With how many blocks execution waits.
    most_blocks: usize,
    /// With what sizes of more than a few.
    most_size: u64,
}

impl Waiting {
    fn new(verify: Verify, together: bool) -> Self {
        let (blocks, size) = match (together, verify) {
            (true, Verify::Every) => (GATHERED * BLOCKS_TOGETHER, GATHERED as u64 * SIZE_TOGETHER),
            _ => (verify.most(), u64::MAX),
        };
        Self {
            sizes: VecDeque::new(),
            most_blocks: WAITING + blocks,
            most_size: size,
        }
    }

    fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Whether so much waits that execution has to. Then more is there than is gathered to be settled together, so that some of it is being settled.
    fn is_enough(&self) -> bool {
        let blocks = self.sizes.len();
        blocks >= self.most_blocks
            || blocks > WAITING && self.sizes.iter().sum::<u64>() >= self.most_size
    }
}

/// How large a block is that waits: see [`Executed::size`].
fn size(changes: &StateChanges, receipts: &[ReceiptEnvelope], stats: &BlockStats) -> u64 {
    let code = changes.codes.values().map(|code| code.len().div_ceil(31));
    let logs = || receipts.iter().flat_map(|receipt| receipt.logs());
    let data = logs().map(|log| log.data.data.len() / 64);
    let kept = code.chain(data).sum::<usize>() + logs().count() / 16;
    stats.accounts + stats.slots + kept as u64
}

/// A replay under way: the executing side.
pub(super) struct Pipeline<'a, 'b, 'e> {
    pub(super) database: &'a SharedState<'b>,
    pub(super) spec: &'a ChainSpec,
    pub(super) executor: &'a mut Executor,
    pub(super) chain: &'a mut RecentBlocks,
    /// The difficulties of all blocks up to the latest one executed together, as long as they are kept.
    pub(super) total_difficulty: &'a mut Option<U256>,
    pub(super) names: &'a mut RecentState,
    pub(super) prewarm: &'a mut Prewarm,
    pub(super) options: Options<'a>,
    pub(super) each: &'e mut dyn FnMut(&BlockStats),
}

impl<'a, 'b: 'a> Pipeline<'a, 'b, '_> {
    /// Replays blocks until they end or one does not hold; all that were executed before are then settled.
    pub(super) fn run(
        mut self,
        blocks: &mut dyn Iterator<Item = Result<RecoveredBlock, ReplayError>>,
    ) -> Result<(), ReplayError> {
        let settler = Settler::new(self.database, self.options);
        std::thread::scope(|scope| {
            let mut place = match self.options.roots {
                Roots::Here => Place::Here(settler, VecDeque::new()),
                Roots::Beside => Place::beside(scope, settler, None),
                Roots::Spread(pool) => Place::beside(scope, settler, Some(pool)),
            };
            let mut waiting = Waiting::new(
                self.options.verify,
                self.database.read().computes_together(),
            );
            let executed = self.execute_all(blocks, &mut place, &mut waiting);
            // Of two blocks that do not hold the earlier one counts: the later may follow from it.
            self.settle_all(&mut place, &mut waiting)?;
            executed
        })
    }

    fn execute_all(
        &mut self,
        blocks: &mut dyn Iterator<Item = Result<RecoveredBlock, ReplayError>>,
        place: &mut Place<'a, 'b>,
        waiting: &mut Waiting,
    ) -> Result<(), ReplayError> {
        loop {
            let start = Instant::now();
            let Some(block) = blocks.next() else {
                return Ok(());
            };
            let block = block?;
            let received = Instant::now();
            if self.needs_roots(&block) {
                self.settle_all(place, waiting)?;
            }
            while let Some(settled) = place.next(waiting.is_enough()) {
                self.settled(settled, waiting)?;
            }
            if waiting.is_enough() {
                // The other thread has ended with a panic, which goes on when it is joined.
                return Ok(());
            }
            let waited = received.elapsed();
            let mut executed = self.execute(block)?;
            executed.stats.times.source = received - start;
            executed.stats.times.backlog = waited;
            self.names.apply(executed.number(), &executed.changes);
            self.chain.push(executed.record.block.clone());
            *self.total_difficulty = executed.record.total_difficulty;
            waiting.sizes.push_back(executed.size);
            place.order(Order::Take(Box::new(executed)));
        }
    }

    /// Waits until every block executed is settled.
    fn settle_all(
        &mut self,
        place: &mut Place<'a, 'b>,
        waiting: &mut Waiting,
    ) -> Result<(), ReplayError> {
        if !waiting.is_empty() {
            place.order(Order::Settle);
        }
        while !waiting.is_empty()
            && let Some(settled) = place.next(true)
        {
            self.settled(settled, waiting)?;
        }
        Ok(())
    }

    fn settled(&mut self, settled: Settled, waiting: &mut Waiting) -> Result<(), ReplayError> {
        if settled.is_err() {
            // Nothing more will come.
            waiting.sizes.clear();
        }
        let stats = settled?;
        waiting.sizes.pop_front();
        self.names.settle(stats.number);
        (self.each)(&stats);
        Ok(())
    }

    /// Whether executing a block needs the roots of the state before it: its receipts carry roots, as they did before
    /// Byzantium. A tree that is not in headers has no such roots, and those receipts then go unverified.
    fn needs_roots(&self, block: &RecoveredBlock) -> bool {
        let header = &block.block.header;
        let parent = self.chain.latest().map(|parent| &parent.header);
        let before = |parent| !Rules::at(self.spec, header, parent, None).has(SpecId::BYZANTIUM);
        !block.block.body.transactions.is_empty()
            && parent.is_some_and(before)
            && self.database.read().tree().kind().roots == RootPlace::InHeaders
    }

    fn execute(&mut self, block: RecoveredBlock) -> Result<Executed, ReplayError> {
        let start = Instant::now();
        let number = block.block.header.number;
        let parent = self.chain.latest();
        let parent = parent.ok_or(ReplayError::NoParent(number))?;
        let input = BlockInput {
            parent_total_difficulty: *self.total_difficulty,
            ..BlockInput::new(&block, &parent.header, parent.hash, self.spec)
        };
        let view = self.names.over(self.database);
        let (waited_before, held_up) = (self.names.waited(), self.database.held_up());
        let (accounts, slots) = block.names();
        view.expect(&accounts, &slots);
        let state = (&*self.names, &view);
        self.prewarm
            .read_ahead(self.executor, &input, state, self.chain);
        let needs_roots = self.needs_roots(&block);
        // Nobody waits to write, since all blocks before are settled: reading on under this guard cannot lock up.
        let head = needs_roots.then(|| self.database.read());
        let mut roots = head.as_ref().and_then(|head| head.intermediate_roots());
        let roots = roots
            .as_mut()
            .map(|roots| roots as &mut dyn IntermediateRoots);
        let (begun, waited) = (Instant::now(), self.names.waited());
        let output = self.executor.execute(&input, &view, &*self.chain, roots)?;
        let waited_after = self.names.waited();
        let executing = begun.elapsed().saturating_sub(waited_after - waited);
        let held_up = self.database.held_up() - held_up;
        let reading = (waited_after - waited_before).saturating_sub(held_up);
        self.prewarm.learn(executing, reading);
        let changes = output.changes;
        let accounts = changes.accounts.values();
        let stats = BlockStats {
            number,
            hash: block.hash,
            transactions: block.block.body.transactions.len() as u64,
            gas: output.gas_used,
            accounts: changes.accounts.len() as u64,
            slots: accounts.map(|account| account.slots.len() as u64).sum(),
            times: Times {
                execution: start.elapsed(),
                ..Times::default()
            },
            timestamp: block.block.header.timestamp,
            base_fee: block.block.header.base_fee_per_gas,
            ..BlockStats::default()
        };
        let executed_at = Instant::now();
        let header = block.block.header;
        // After the merge nobody asks for it any more.
        let total = self
            .total_difficulty
            .filter(|_| !self.spec.is_proof_of_stake(&header));
        let ommers: Vec<B256> = block
            .block
            .body
            .ommers
            .iter()
            .map(Header::hash_slow)
            .collect();
        Ok(Executed {
            record: BlockRecord {
                total_difficulty: total.map(|total| total.saturating_add(header.difficulty)),
                block: Ancestor {
                    hash: block.hash,
                    header,
                    ommers,
                },
            },
            size: size(&changes, &output.receipts, &stats),
            changes,
            receipts: output.receipts,
            stats,
            executed_at,
        })
    }
}
