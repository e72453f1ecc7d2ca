//! `arbor serve`: answers JSON-RPC from a database.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use arbor_chain::genesis::Genesis;
use arbor_database::ChainContext;
use arbor_serve::{Access, BlockFiles, Fixed, Limits, Server, ServerSettings, Snapshots};
use arbor_state::StateSnapshot;
use arbor_versions::FlushedVersion;

use crate::args::Serve;
use crate::version;
use crate::{database, metrics_server, output, stop};

/// How often another process's flushes are looked for, and whether somebody asks to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How many looks lie between two looks at the head record.
const LOOKS: u32 = 5;
/// How long calls under way may take to their end when the server stops.
pub(super) const FAREWELL: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &Serve) -> Result<()> {
    let folder = database::folder(&args.db);
    let chain = folder.chain_context()?;
    let mut seen = Seen::of(&args.db)?;
    let state = folder.open_to_read(args.memory)?;
    let latest = database::head(state.reader())?.clone();
    let blocks = match &args.chain[..] {
        [] => None,
        files => Some(block_files(files, chain.genesis(), &state)?),
    };
    stop::listen_saying("stopping after the calls under way; once more stops at once");
    let snapshots = Arc::new(Fixed::new(state));
    let clients = (args.clients.limits(), args.clients.access());
    let of = Box::new(Arc::clone(&snapshots));
    let server = start(of, (chain, blocks), args.http, clients)?;
    let (oldest, newest) = (
        database::oldest_block(current(&snapshots)?.reader())?,
        latest.block_number,
    );
    output::tell(&format!(
        "serving blocks {oldest} to {newest} at http://{}",
        server.address()
    ));
    let mut looks = 0;
    let mut failures = Failures::default();
    while !stop::asked() {
        std::thread::sleep(LOOK);
        snapshots.give_back();
        looks += 1;
        if looks % LOOKS == 0 {
            let followed = follow(&args.db, args.memory, &mut seen, &snapshots);
            failures.note(followed, &snapshots);
        }
    }
    server.stop(FAREWELL);
    Ok(())
}

fn current(snapshots: &Arc<Fixed>) -> Result<StateSnapshot> {
    snapshots.at_hand().context("a state is served")
}

/// What HEAD was when the database was opened. It is written anew also where the version stays: when history is pruned, old nodes are made or dropped, or files
/// are merged.
#[derive(PartialEq)]
struct Seen {
    head: Option<FlushedVersion>,
    written: Option<SystemTime>,
}

impl Seen {
    fn of(dir: &Path) -> Result<Self> {
        let path = dir.join("HEAD");
        let file = std::fs::metadata(&path).with_context(|| path.display().to_string())?;
        Ok(Self {
            written: file.modified().ok(),
            head: database::folder(dir).head_file()?.head,
        })
    }
}

/// Looks at the database that failed, one after another.
#[derive(Default)]
struct Failures(u32);

/// How many looks fail before it is a fault. A single one may fail because the writer is just
/// replacing a file.
const FAILURES: u32 = 3;

impl Failures {
    /// Counts a look. A fault is reported once, and so is its end.
    fn note(&mut self, followed: Result<()>, snapshots: &Fixed) {
        match followed {
            Ok(()) => {
                if std::mem::take(&mut self.0) >= FAILURES {
                    snapshots.set_fault(None);
                    tracing::info!("the database can be read again");
                }
            }
            Err(error) => {
                self.0 = self.0.saturating_add(1);
                if self.0 == FAILURES {
                    let error = format!("{error:#}");
                    tracing::warn!(
                        "the database cannot be read, and the state that was read before is served: {error}"
                    );
                    snapshots.set_fault(Some(error));
                }
            }
        }
    }
}

/// Serves the version that another process has flushed, if it has, and opens the database again if
/// only its history changed.
///
/// # Errors
/// A database that is gone, is being replaced, or cannot be read. The version before stays.
fn follow(dir: &Path, memory: u64, seen: &mut Seen, snapshots: &Fixed) -> Result<()> {
    let folder = database::folder(dir);
    let now = Seen::of(dir)?;
    if now == *seen {
        return Ok(());
    }
    let state = folder.open_to_read(memory)?;
    let block = state.reader().meta().map(|meta| meta.block_number);
    snapshots.replace(state);
    *seen = now;
    tracing::info!(block, "the database was changed, and is read again");
    Ok(())
}

/// Reads the files of a database's chain.
fn block_files(files: &[PathBuf], genesis: &Genesis, state: &StateSnapshot) -> Result<BlockFiles> {
    let blocks = BlockFiles::read(files, genesis).context("--chain")?;
    let latest = database::head(state.reader())?;
    let (_, last) = blocks.range();
    let view = state.reader().view();
    // The last block that both have.
    let number = last.min(latest.block_number);
    let version = view.version_of_block(number)?;
    if let Some(meta) = version
        .map(|version| view.meta(version))
        .transpose()?
        .flatten()
    {
        blocks
            .check(number, meta.block_hash.into())
            .context("--chain")?;
    }
    if last < latest.block_number {
        tracing::warn!(
            "the files of the chain end at block {last}, the database at block {}",
            latest.block_number
        );
    }
    Ok(blocks)
}

/// Starts a server.
pub(super) fn start(
    snapshots: Box<dyn Snapshots>,
    (chain, blocks): (ChainContext, Option<BlockFiles>),
    address: SocketAddr,
    (limits, access): (Limits, Access),
) -> Result<Server> {
    allow_files(limits.connections);
    if !address.ip().is_loopback() {
        tracing::warn!(
            "{address} can be reached from other machines, and whoever reaches it may ask"
        );
    }
    let build = version::build();
    let settings = ServerSettings {
        address,
        snapshots,
        chain,
        blocks,
        limits,
        access,
        client: format!(
            "arbor/v{}-{}/{}-{}",
            build.version,
            build.commit,
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
        metrics: metrics_server::text,
    };
    Ok(Server::start(settings)?)
}

/// Lets the process have as many open files as it may, since each connection is one.
#[cfg(unix)]
fn allow_files(connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    /// Files of the store, and some more.
    const OTHERS: u64 = 1_024;
    let wanted = connections as u64 + OTHERS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let most = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let limit = Rlimit {
        current: Some(most),
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!("the limit of open files stays: {error}");
    } else if most < wanted {
        tracing::warn!(
            "the system allows {most} open files: fewer connections than --max-connections"
        );
    }
}

#[cfg(not(unix))]
fn allow_files(_: usize) {}
