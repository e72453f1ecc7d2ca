//! From settings to a folder with a chain.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use alloy_consensus::BlockBody;
use alloy_primitives::B256;
use alloy_rlp::{Decodable, Encodable};

use super::{
    GeneratorError, GeneratorSettings, Kind,
    accounts::Accounts,
    block::{Block, Maker, Sealed},
    contracts::Places,
    file::ChainFile,
    folder::{Folder, Populated},
    genesis,
    ledger::{self, Ledger},
    workload::Workload,
};
use arbor_chain::executor::BodyFacts;
use arbor_chain::genesis::{Alloc, Genesis, GenesisAccount, Population};

/// Blocks between two points that an interrupted run can continue from.
const FLUSH_INTERVAL: u64 = 1_000;

/// What a run is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Making blocks again that are in the file, because their state is not at hand; they are compared.
    CatchingUp,
    /// Making new blocks.
    Generating,
    /// Compressing the finished chain; reported once, before it begins.
    Compressing,
}

/// Where a run stands, told after every block.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// The last block made.
    pub block: u64,
    /// The last block to make.
    pub blocks: u64,
    /// Transactions that this run has made so far.
    pub transactions: u64,
    /// Gas that they have used.
    pub gas: u64,
    /// Length of the chain so far in bytes, not compressed.
    pub bytes: u64,
}

/// What a run has made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Whether the chain has all blocks that the settings ask for; not if the run was stopped.
    pub complete: bool,
    /// The last block's number.
    pub head: u64,
    /// The last block's hash.
    pub head_hash: B256,
    /// The state root after the last block.
    pub state_root: B256,
    /// Blocks that this run has made, those made again included.
    pub made: u64,
    /// Transactions in them.
    pub transactions: u64,
    /// Transactions of each kind in them, in the order of [`Kind::ALL`].
    pub by_kind: [u64; Kind::ALL.len()],
    /// How many of the transactions failed; the workload is such that none should.
    pub failed: u64,
    /// Gas that they used.
    pub gas: u64,
    /// Length of the chain in bytes, before compression.
    pub bytes: u64,
    /// The chain.
    pub chain: PathBuf,
    /// Its genesis.
    pub genesis: PathBuf,
}

/// Makes a chain in folder `out`, or continues the one that is there with the same settings (but for a larger
/// number of blocks, or compression).
///
/// `progress` is called after every block. When it breaks, what was made is written to disk, and a
/// later call continues there. So it does after a crash, which costs at most the work since the last
/// flush. The chain's bytes are the same in any case.
///
/// # Errors
/// Settings out of range; a folder with another chain, or with files that are not as they were written;
/// whatever the operating system reports.
pub fn generate(
    settings: &GeneratorSettings,
    out: &Path,
    progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary, GeneratorError> {
    generate_over(settings, out, None, progress)
}

/// The same, for which the root of the genesis may be known.
pub(super) fn generate_over(
    settings: &GeneratorSettings,
    out: &Path,
    root: Option<B256>,
    progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary, GeneratorError> {
    settings.validate()?;
    let folder = Folder::new(out);
    let mut chain = folder.open(settings)?;
    let accounts = Accounts::new(settings.seed, settings.accounts);
    let places = Places::new();
    let genesis = genesis::genesis(settings, accounts.addresses(), &places);
    let genesis = folder.write_genesis(&genesis, populated(&genesis, settings, root)?)?;
    let genesis = Genesis::from_json(&genesis)?;
    let block_0 = Sealed {
        header: genesis.header.clone(),
        hash: genesis.hash,
    };
    if chain.blocks() == 0 {
        chain.append(&genesis_rlp(&block_0))?;
    }
    let (ledger, parent) = match resume(&folder, &chain, &block_0, &genesis)? {
        Some(found) => found,
        None => {
            Ledger::delete(&folder.state())?;
            (Ledger::open(&folder.state(), &genesis)?, block_0)
        }
    };
    let maker = Maker::new(
        Workload {
            settings,
            accounts: &accounts,
            places: &places,
        },
        &genesis.spec,
    );
    let mut run = Run {
        settings,
        chain,
        ledger,
        maker,
        parent,
        totals: Totals::default(),
        progress,
    };
    run.all_blocks()?;
    run.flush()?;
    let Run {
        chain,
        parent,
        totals,
        mut progress,
        ..
    } = run;
    let mut path = chain.path().to_owned();
    let complete = parent.header.number == settings.blocks;
    if settings.gzip && complete {
        // The answer does not matter: compressing is the last step, and starts anew if it is interrupted.
        let _ = progress(totals.progress(Phase::Compressing, settings, &parent, &chain));
        path = folder.compress()?;
    }
    Ok(Summary {
        complete,
        head: parent.header.number,
        head_hash: parent.hash,
        state_root: parent.header.state_root,
        made: totals.blocks,
        transactions: totals.by_kind.iter().sum(),
        by_kind: totals.by_kind,
        failed: totals.failed,
        gas: totals.gas,
        bytes: chain.len(),
        chain: path,
        genesis: folder.genesis(),
    })
}

/// Sums over a run.
#[derive(Default)]
struct Totals {
    blocks: u64,
    by_kind: [u64; Kind::ALL.len()],
    failed: u64,
    gas: u64,
}

impl Totals {
    fn progress(
        &self,
        phase: Phase,
        settings: &GeneratorSettings,
        last: &Sealed,
        chain: &ChainFile,
    ) -> Progress {
        Progress {
            phase,
            block: last.header.number,
            blocks: settings.blocks,
            transactions: self.by_kind.iter().sum(),
            gas: self.gas,
            bytes: chain.len(),
        }
    }
}

/// Opens the state and finds the block that it is the state of. A state ahead of the file is taken back;
/// `None` if that cannot be done, or if the state is of another chain's block.
fn resume(
    folder: &Folder,
    chain: &ChainFile,
    block_0: &Sealed,
    genesis: &Genesis,
) -> Result<Option<(Ledger, Sealed)>, GeneratorError> {
    let first = chain.blocks_from(0)?.next().transpose()?;
    if first.is_none_or(|first| first != genesis_rlp(block_0)) {
        return Err(GeneratorError::damaged(
            chain.path(),
            "block 0 is not the one that these settings make",
        ));
    }
    let mut ledger = Ledger::open(&folder.state(), genesis)?;
    let last = chain.blocks() - 1;
    if ledger.head() > last && ledger.take_back(last).is_err() {
        return Ok(None);
    }
    let number = ledger.head();
    let mut parent: Option<Sealed> = None;
    for rlp in chain.blocks_from(0)?.zip(0..=number).map(|(rlp, _)| rlp) {
        parent = Some(check_written(chain.path(), &rlp?, parent.as_ref())?);
    }
    Ok(parent
        .filter(|parent| parent.hash == ledger.head_hash() && parent.header.number == number)
        .map(|parent| (ledger, parent)))
}

/// Checks a block that lies in the file and will not be made again: it follows its parent, and its body is its header's.
fn check_written(
    path: &Path,
    rlp: &[u8],
    parent: Option<&Sealed>,
) -> Result<Sealed, GeneratorError> {
    let number = parent.map_or(0, |parent| parent.header.number + 1);
    let damaged =
        |reason: String| GeneratorError::damaged(path, format!("block {number}: {reason}"));
    let block = Block::decode(&mut &rlp[..]).map_err(|error| damaged(error.to_string()))?;
    let (facts, header) = (BodyFacts::of(&block), &block.header);
    let body = [
        (
            "transactions",
            facts.transactions_root == header.transactions_root,
        ),
        ("ommers", facts.ommers_hash == header.ommers_hash),
        (
            "withdrawals",
            facts.withdrawals_root == header.withdrawals_root,
        ),
    ];
    if let Some((part, _)) = body.into_iter().find(|(_, right)| !right) {
        return Err(damaged(format!("its {part} are not those of its header")));
    }
    let sealed = Sealed::new(block.header);
    match parent {
        Some(parent) if sealed.header.parent_hash != parent.hash => Err(damaged(format!(
            "it does not follow block {}; one of the two is damaged",
            parent.header.number
        ))),
        _ => Ok(sealed),
    }
}

/// A run under way. File and state are each at some block; the state never stays ahead.
struct Run<'a, P> {
    settings: &'a GeneratorSettings,
    chain: ChainFile,
    ledger: Ledger,
    maker: Maker<'a>,
    /// The block whose state the ledger has.
    parent: Sealed,
    totals: Totals,
    progress: P,
}

impl<P: FnMut(Progress) -> ControlFlow<()>> Run<'_, P> {
    /// Makes blocks until there are enough, or the caller has.
    fn all_blocks(&mut self) -> Result<(), GeneratorError> {
        for written in self.chain.blocks_from(self.parent.header.number + 1)? {
            if self.next_block(Some(&written?))?.is_break() {
                return Ok(());
            }
        }
        while self.parent.header.number < self.settings.blocks {
            if self.next_block(None)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes the next block, and compares it with the one in the file or appends it there.
    fn next_block(&mut self, written: Option<&[u8]>) -> Result<ControlFlow<()>, GeneratorError> {
        let mut made = self.maker.make(&self.parent, self.ledger.view())?;
        let computed = self.ledger.compute(&made.changes)?;
        made.block.header.state_root = computed.root();
        let rlp = encode(&made.block);
        let number = made.block.header.number;
        let phase = match written {
            Some(written) if written == rlp => Phase::CatchingUp,
            Some(_) => {
                let reason = format!("block {number} is not the one that these settings make");
                return Err(GeneratorError::damaged(self.chain.path(), reason));
            }
            None => {
                self.chain.append(&rlp)?;
                Phase::Generating
            }
        };
        if number.is_multiple_of(ledger::UNDO) {
            // The state may reach the disk by itself from now on. After a loss of power it must not be
            // further ahead of the file than it can be taken back.
            self.chain.sync()?;
        }
        self.parent = Sealed::new(made.block.header);
        self.ledger.commit(&self.parent, computed)?;
        if number.is_multiple_of(FLUSH_INTERVAL) {
            self.flush()?;
        }
        self.totals.blocks += 1;
        self.totals.gas += self.parent.header.gas_used;
        for (kind, succeeded) in made.outcomes {
            self.totals.by_kind[kind as usize] += 1;
            self.totals.failed += u64::from(!succeeded);
        }
        Ok((self.progress)(self.totals.progress(
            phase,
            self.settings,
            &self.parent,
            &self.chain,
        )))
    }

    /// Makes file and state durable, in this order: the state must not be ahead of the file.
    fn flush(&mut self) -> Result<(), GeneratorError> {
        self.chain.sync()?;
        self.ledger.flush()
    }
}

/// What a genesis with a population has besides geth's fields: that, and the state root, which takes long to compute.
fn populated(
    genesis: &alloy_genesis::Genesis,
    settings: &GeneratorSettings,
    root: Option<B256>,
) -> Result<Option<Populated>, GeneratorError> {
    if settings.population == 0 {
        return Ok(None);
    }
    let accounts = settings.population as u32;
    let population = Population {
        accounts,
        contract: settings.contract,
    };
    if let Some(state_root) = root {
        return Ok(Some(Populated {
            population,
            state_root,
        }));
    }
    let listed = genesis.alloc.iter();
    let listed = listed.map(|(address, account)| GenesisAccount::new(*address, account.clone()));
    let state_root = Alloc::new(listed)?
        .with_population(population)?
        .state_root();
    Ok(Some(Populated {
        population,
        state_root,
    }))
}

fn genesis_rlp(block_0: &Sealed) -> Vec<u8> {
    let body = BlockBody {
        withdrawals: Some(Default::default()),
        ..BlockBody::default()
    };
    encode(&Block {
        header: block_0.header.clone(),
        body,
    })
}

fn encode(block: &Block) -> Vec<u8> {
    let mut rlp = Vec::with_capacity(block.length());
    block.encode(&mut rlp);
    rlp
}
