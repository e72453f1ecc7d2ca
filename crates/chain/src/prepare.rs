//! Blocks made ready for execution ahead of it: decoded, hashed, their senders recovered.
//!
//! Recovering a sender takes microseconds, as long as executing a transaction, and depends on nothing but the
//! transaction. [`Prefetch`] therefore reads a bounded number of blocks ahead on a thread of its own and prepares them on
//! a rayon pool, while the caller executes; without a pool it does everything on the calling thread. Either way the
//! senders of several blocks are recovered together, and blocks and errors come out in the order of the chain.

mod recovery;

pub use recovery::recover_senders;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use alloy_consensus::proofs::{calculate_ommers_root, calculate_withdrawals_root};
use alloy_consensus::{Block, Transaction as _};
use alloy_primitives::{Address, B256, U256};
use arbor_tree_mpt::ordered_root;
use rayon::prelude::*;

use recovery::Unsigned;

use crate::genesis::{Activation, ChainSpec, Fork};
use crate::source::{
    ChainInput, Era1Receipts, Position, RawBlock, SourceBlock, SourceError, Transaction,
};

/// A block ready for execution, with everything that its header claims about its body computed from the body.
#[derive(Clone, Debug)]
pub struct RecoveredBlock {
    /// Header, transactions, ommers, withdrawals.
    pub block: Block<Transaction>,
    /// The block's hash.
    pub hash: B256,
    /// Who sent each transaction, in order.
    pub senders: Vec<Address>,
    /// Root of the transactions' trie, from the body.
    pub transactions_root: B256,
    /// Hash of the ommers' list, from the body.
    pub ommers_hash: B256,
    /// Root of the withdrawals' trie, from the body; none if the body has no withdrawals field.
    pub withdrawals_root: Option<B256>,
    /// Size of the block's RLP in bytes.
    pub rlp_len: usize,
    /// Where the block lies.
    pub position: Position,
    /// Total difficulty with this block; only era1 files tell.
    pub total_difficulty: Option<U256>,
    /// The receipts beside the block; only era1 files have them.
    pub receipts: Option<Era1Receipts>,
}

impl RecoveredBlock {
    /// Accounts and slots that executing the block will surely or probably ask for, each once: senders, recipients, access lists, whom the withdrawals go to and who is
    /// paid for the block.
    pub fn names(&self) -> (Vec<Address>, Vec<(Address, U256)>) {
        let body = &self.block.body;
        let mut accounts = self.senders.clone();
        accounts.push(self.block.header.beneficiary);
        accounts.extend(body.transactions.iter().filter_map(|tx| tx.to()));
        accounts.extend(body.withdrawals.iter().flatten().map(|to| to.address));
        let mut slots = Vec::new();
        let lists = body.transactions.iter().filter_map(|tx| tx.access_list());
        for item in lists.flat_map(|list| &list.0) {
            accounts.push(item.address);
            let keys = item.storage_keys.iter();
            slots.extend(keys.map(|key| (item.address, U256::from_be_bytes(key.0))));
        }
        accounts.sort_unstable();
        accounts.dedup();
        slots.sort_unstable();
        slots.dedup();
        (accounts, slots)
    }
}

/// Why there is no next block.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The files are at fault.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A transaction's signature is.
    #[error("{at}: block {number}, transaction {index} ({hash}): {reason}")]
    Signature {
        /// Where the block lies.
        at: Position,
        /// The block's number.
        number: u64,
        /// The transaction's place in the block.
        index: usize,
        /// Its hash.
        hash: B256,
        /// What is wrong with the signature.
        reason: &'static str,
    },
}

/// From which block on signatures must have a low `s` (EIP-2, part of Homestead).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignatureRules {
    low_s_from: u64,
}

impl SignatureRules {
    /// The rules of a chain.
    pub fn new(spec: &ChainSpec) -> Self {
        let low_s_from = match spec.activation(Fork::Homestead) {
            Some(Activation::Block(block)) => block,
            _ => u64::MAX,
        };
        Self { low_s_from }
    }
}

/// Makes a decoded block ready. In a rayon pool large blocks are spread over its threads.
///
/// # Errors
/// [`InputError::Signature`] for the first transaction without a valid one.
pub fn recover_block(
    source: SourceBlock,
    rules: SignatureRules,
) -> Result<RecoveredBlock, InputError> {
    let mut recovered = recover_blocks(vec![Ok(source)], rules);
    recovered.pop().expect("invariant: a result for each block")
}

/// Makes decoded blocks ready, the senders of all of them together, and passes errors on. In a rayon
/// pool the work is spread over its threads.
fn recover_blocks(
    sources: Vec<Result<SourceBlock, InputError>>,
    rules: SignatureRules,
) -> Vec<Prepared> {
    let mut unsigned = Vec::new();
    for source in sources.iter().flatten() {
        let low_s = source.block.header.number >= rules.low_s_from;
        let transactions = source.block.body.transactions.iter();
        unsigned.extend(transactions.map(|transaction| Unsigned { transaction, low_s }));
    }
    let mut senders = recovery::senders(&unsigned).into_iter();
    let sources = sources.into_iter().map(|source| {
        let source = source?;
        let count = source.block.body.transactions.len();
        Ok((source, senders.by_ref().take(count).collect()))
    });
    let sources: Vec<Result<(SourceBlock, Vec<_>), InputError>> = sources.collect();
    let completed =
        |source: Result<_, _>| source.and_then(|(source, senders)| complete(source, senders));
    if sources.len() == 1 || rayon::current_thread_index().is_none() {
        sources.into_iter().map(completed).collect()
    } else {
        sources.into_par_iter().map(completed).collect()
    }
}

/// Puts a block and its senders together, with everything else that is computed from the body.
fn complete(
    source: SourceBlock,
    senders: Vec<Result<Address, &'static str>>,
) -> Result<RecoveredBlock, InputError> {
    let SourceBlock {
        block,
        hash,
        rlp_len,
        position,
        transaction_bytes,
        total_difficulty,
        receipts,
    } = source;
    let checked = senders.into_iter().enumerate().map(|(index, sender)| {
        sender.map_err(|reason| InputError::Signature {
            at: position.clone(),
            number: block.header.number,
            index,
            hash: *block.body.transactions[index].tx_hash(),
            reason,
        })
    });
    let senders = checked.collect::<Result<_, _>>()?;
    Ok(RecoveredBlock {
        transactions_root: ordered_root(&transaction_bytes).into(),
        ommers_hash: calculate_ommers_root(&block.body.ommers),
        withdrawals_root: block
            .body
            .withdrawals
            .as_ref()
            .map(|list| calculate_withdrawals_root(list)),
        block,
        hash,
        senders,
        rlp_len,
        position,
        total_difficulty,
        receipts,
    })
}

/// Decodes a block and makes it ready.
///
/// # Errors
/// Those of [`RawBlock::decode`] and [`recover_block`].
pub fn prepare(raw: RawBlock, rules: SignatureRules) -> Result<RecoveredBlock, InputError> {
    recover_block(raw.decode()?, rules)
}

/// [`prepare`] for many blocks, the senders of all of them together.
fn prepare_all(raw: Vec<RawBlock>, rules: SignatureRules) -> Vec<Prepared> {
    let decoded = |raw: RawBlock| raw.decode().map_err(InputError::from);
    let sources = if rayon::current_thread_index().is_none() {
        raw.into_iter().map(decoded).collect()
    } else {
        raw.into_par_iter().map(decoded).collect()
    };
    recover_blocks(sources, rules)
}

/// How far to read ahead, and on which threads.
#[derive(Clone, Debug)]
pub struct PrefetchOptions {
    /// Threads that prepare blocks. Without them the caller's thread prepares a few blocks whenever it asks for one
    /// and none is ready.
    pub pool: Option<Arc<rayon::ThreadPool>>,
    /// Most blocks read ahead.
    pub blocks: usize,
    /// Most bytes of block RLP read ahead; a single larger block is read all the same. Decoded blocks take a small
    /// multiple of this in memory.
    pub bytes: usize,
}

impl Default for PrefetchOptions {
    /// On the calling thread; ahead at most 256 blocks and 2 MiB when a pool is added: some tenths of a second of full blocks.
    fn default() -> Self {
        Self {
            pool: None,
            blocks: 256,
            bytes: 2 << 20,
        }
    }
}

/// The blocks of a [`ChainInput`], ready for execution, in order. Ends after the first error.
#[derive(Debug)]
pub struct Prefetch {
    mode: Mode,
    ended: bool,
}

#[derive(Debug)]
enum Mode {
    Inline(Inline),
    Ahead(Ahead),
}

impl Prefetch {
    /// Starts reading (with a pool: at once, on a thread of its own, which ends when this is dropped).
    pub fn new(input: ChainInput, rules: SignatureRules, options: PrefetchOptions) -> Self {
        let mode = match options.pool {
            None => Mode::Inline(Inline {
                input: Box::new(input),
                rules,
                blocks: options.blocks.min(BATCH_BLOCKS),
                bytes: options.bytes.min(BATCH_BYTES),
                ready: Vec::new().into_iter(),
            }),
            Some(pool) => Mode::Ahead(Ahead::start(
                input,
                rules,
                pool,
                options.blocks,
                options.bytes,
            )),
        };
        Self { mode, ended: false }
    }
}

impl Iterator for Prefetch {
    type Item = Result<RecoveredBlock, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let block = match &mut self.mode {
            Mode::Inline(inline) => inline.next(),
            Mode::Ahead(ahead) => ahead.next(),
        };
        self.ended = !matches!(block, Some(Ok(_)));
        block
    }
}

type Prepared = Result<RecoveredBlock, InputError>;

/// Blocks handed to the pool together, so that a chain of empty blocks is not one task per block.
const BATCH_BLOCKS: usize = 32;
/// Bytes of RLP after which a batch is handed over whatever its number of blocks: about 100 transactions, enough to
/// fill lanes on two threads.
const BATCH_BYTES: usize = 16 << 10;

/// Blocks prepared on the caller's thread, a batch at a time, so that lanes are full.
#[derive(Debug)]
struct Inline {
    input: Box<ChainInput>,
    rules: SignatureRules,
    /// Most blocks of a batch; at least one is read.
    blocks: usize,
    /// Bytes of RLP after which a batch is full.
    bytes: usize,
    ready: std::vec::IntoIter<Prepared>,
}

impl Inline {
    fn next(&mut self) -> Option<Prepared> {
        if let Some(block) = self.ready.next() {
            return Some(block);
        }
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let error = loop {
            match self.input.next_raw() {
                Ok(Some(block)) => {
                    bytes += block.rlp_len();
                    batch.push(block);
                    if batch.len() >= self.blocks || bytes >= self.bytes {
                        break None;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let mut prepared = prepare_all(batch, self.rules);
        prepared.extend(error.map(|error| Err(error.into())));
        self.ready = prepared.into_iter();
        self.ready.next()
    }
}

/// The consumer's end of the pipeline.
#[derive(Debug)]
struct Ahead {
    /// One receiver per batch, in order; a batch arrives when the pool has prepared it.
    batches: Option<Receiver<Receiver<Vec<Prepared>>>>,
    current: std::vec::IntoIter<Prepared>,
    budget: Arc<Budget>,
    reader: Option<JoinHandle<()>>,
}

impl Ahead {
    fn start(
        input: ChainInput,
        rules: SignatureRules,
        pool: Arc<rayon::ThreadPool>,
        blocks: usize,
        bytes: usize,
    ) -> Self {
        let (sender, batches) = channel();
        let budget = Arc::new(Budget::new(blocks, bytes));
        let feeder = Feeder {
            rules,
            pool,
            budget: budget.clone(),
            batches: sender,
            batch: Vec::new(),
            bytes: 0,
        };
        let reader = std::thread::spawn(move || feeder.run(input));
        Self {
            batches: Some(batches),
            current: Vec::new().into_iter(),
            budget,
            reader: Some(reader),
        }
    }

    fn next(&mut self) -> Option<Prepared> {
        loop {
            if let Some(block) = self.current.next() {
                if let Ok(block) = &block {
                    self.budget.give_back(block.rlp_len);
                }
                return Some(block);
            }
            let batch = self.batches.as_ref()?.recv().ok()?;
            self.current = batch
                .recv()
                .expect("invariant: each batch is sent once prepared")
                .into_iter();
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.budget.close();
        self.batches = None;
        if let Some(reader) = self.reader.take() {
            // A panic of the reading thread has been reported by the panic hook; there is nothing to add.
            let _ = reader.join();
        }
    }
}

/// The reading thread.
struct Feeder {
    rules: SignatureRules,
    pool: Arc<rayon::ThreadPool>,
    budget: Arc<Budget>,
    batches: Sender<Receiver<Vec<Prepared>>>,
    batch: Vec<RawBlock>,
    bytes: usize,
}

impl Feeder {
    fn run(mut self, mut input: ChainInput) {
        let error = loop {
            match input.next_raw() {
                Ok(Some(block)) => {
                    if !self.add(block) {
                        return;
                    }
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        if self.hand_over()
            && let Some(error) = error
        {
            self.send(vec![Err(error.into())]);
        }
    }

    /// Adds a block to the batch; false if the consumer is gone.
    fn add(&mut self, block: RawBlock) -> bool {
        let len = block.rlp_len();
        if !self.budget.try_take(len) {
            // The consumer may be waiting for what is in the batch.
            if !self.hand_over() || !self.budget.take(len) {
                return false;
            }
        }
        self.bytes += len;
        self.batch.push(block);
        if self.batch.len() < BATCH_BLOCKS && self.bytes < BATCH_BYTES {
            return true;
        }
        self.hand_over()
    }

    /// Gives the batch to the pool; false if the consumer is gone.
    fn hand_over(&mut self) -> bool {
        let batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        if batch.is_empty() {
            return true;
        }
        let rules = self.rules;
        let (sender, receiver) = channel();
        self.pool.spawn(move || {
            // The consumer may have gone meanwhile.
            let _ = sender.send(prepare_all(batch, rules));
        });
        self.batches.send(receiver).is_ok()
    }

    fn send(&self, blocks: Vec<Prepared>) {
        let (sender, receiver) = channel();
        // Whether the consumer is still there does not matter: this is the last message.
        let _ = sender.send(blocks);
        let _ = self.batches.send(receiver);
    }
}

/// Once a budget is used up, reading goes on in pieces of it: block by block the reader and the pool's threads would wake for each, which for small ones takes
/// longer than preparing them. Large pieces would keep whoever computes roots from a processor.
const PIECES: usize = 32;

/// Bounds what has been read and not yet consumed.
#[derive(Debug)]
struct Budget {
    blocks: usize,
    bytes: usize,
    used: Mutex<Used>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Used {
    blocks: usize,
    bytes: usize,
    closed: bool,
}

impl Budget {
    fn new(blocks: usize, bytes: usize) -> Self {
        Self {
            blocks,
            bytes,
            used: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `bytes` and one block if they fit; anything fits when nothing is taken.
    fn try_take(&self, bytes: usize) -> bool {
        let mut used = self.lock();
        self.fits(&used, bytes) && Self::add(&mut used, bytes)
    }

    /// Waits until `bytes` and one block fit, and a [32nd](PIECES) of all is free; false if the budget was closed.
    fn take(&self, bytes: usize) -> bool {
        let used = self.lock();
        let goes_on = |used: &Used| self.is_roomy(used) && self.fits(used, bytes);
        let waited = self
            .freed
            .wait_while(used, |used| !used.closed && !goes_on(used));
        let mut used = waited.unwrap_or_else(PoisonError::into_inner);
        !used.closed && Self::add(&mut used, bytes)
    }

    /// Whether there is room for a piece.
    fn is_roomy(&self, used: &Used) -> bool {
        let most = |all: usize| all - all / PIECES;
        used.blocks <= most(self.blocks) && used.bytes <= most(self.bytes)
    }

    fn fits(&self, used: &Used, bytes: usize) -> bool {
        used.blocks == 0
            || (used.blocks < self.blocks && used.bytes.saturating_add(bytes) <= self.bytes)
    }

    const fn add(used: &mut Used, bytes: usize) -> bool {
        used.blocks += 1;
        used.bytes += bytes;
        true
    }

    fn give_back(&self, bytes: usize) {
        let mut used = self.lock();
        used.blocks -= 1;
        used.bytes -= bytes;
        let is_roomy = self.is_roomy(&used);
        drop(used);
        if is_roomy {
            self.freed.notify_one();
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use alloy_consensus::{BlockBody, Header, SignableTransaction, TxEip1559};
    use alloy_eips::eip2930::{AccessList, AccessListItem};
    use alloy_eips::eip4895::Withdrawal;
    use alloy_primitives::{Signature, TxKind};

    use super::*;

    #[test]
    fn a_full_budget_is_used_in_pieces() {
        let budget = Budget::new(64, 1000);
        let after = |blocks: usize, bytes: usize| {
            let closed = false;
            budget.is_roomy(&Used {
                blocks,
                bytes,
                closed,
            })
        };
        assert!(after(62, 969) && !after(63, 969) && !after(62, 970));
        // With fewer blocks than pieces each is one.
        let small = Budget::new(2, 10);
        assert!(small.try_take(20) && !small.try_take(1));
        small.give_back(20);
        assert!(small.take(5) && small.take(5) && !small.try_take(0));
    }

    fn transaction(to: TxKind, access_list: AccessList) -> Transaction {
        let tx = TxEip1559 {
            to,
            access_list,
            ..Default::default()
        };
        let signature = Signature::new(U256::ONE, U256::ONE, false);
        Transaction::Eip1559(tx.into_signed(signature))
    }

    #[test]
    fn all_that_a_block_names_once() {
        let name = Address::with_last_byte;
        let listed = AccessListItem {
            address: name(6),
            storage_keys: vec![B256::with_last_byte(9), B256::with_last_byte(8)],
        };
        let twice = AccessList(vec![listed.clone(), listed]);
        let block = RecoveredBlock {
            block: Block {
                header: Header {
                    beneficiary: name(1),
                    ..Default::default()
                },
                body: BlockBody {
                    transactions: vec![
                        transaction(TxKind::Create, AccessList::default()),
                        transaction(TxKind::Call(name(4)), twice),
                    ],
                    ommers: Vec::new(),
                    withdrawals: Some(
                        vec![Withdrawal {
                            address: name(5),
                            ..Default::default()
                        }]
                        .into(),
                    ),
                },
            },
            hash: B256::ZERO,
            senders: vec![name(3), name(3)],
            transactions_root: B256::ZERO,
            ommers_hash: B256::ZERO,
            withdrawals_root: None,
            rlp_len: 0,
            position: Position {
                file: Arc::from(Path::new("chain.rlp")),
                offset: 0,
                ordinal: 0,
            },
            total_difficulty: None,
            receipts: None,
        };
        let (accounts, slots) = block.names();
        assert_eq!(accounts, [1, 3, 4, 5, 6].map(name));
        assert_eq!(slots, [8, 9].map(|slot| (name(6), U256::from(slot))));
    }
}
