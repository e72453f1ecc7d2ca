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
    while !stop::asked() {
        std::thread::sleep(LOOK);
        looks += 1;
        if looks % LOOKS == 0 {
            follow(&args.db, args.memory, &mut seen, &snapshots);
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
        let written = std::fs::metadata(dir.join("HEAD")).and_then(|head| head.modified());
        Ok(Self {
            written: written.ok(),
            head: database::folder(dir).head_file()?.head,
        })
    }
}

/// Serves the version that another process has flushed, if it has, and opens the database again where only its history changed. One that cannot be read leaves
/// the one before.
fn follow(dir: &Path, memory: u64, seen: &mut Seen, snapshots: &Fixed) {
    let folder = database::folder(dir);
    let Ok(now) = Seen::of(dir) else {
        // It is being replaced, or cannot be read: the next look tells.
        return;
    };
    if now == *seen {
        return;
    }
    match folder.open_to_read(memory) {
        Ok(state) => {
            let block = state.reader().meta().map(|meta| meta.block_number);
            snapshots.replace(state);
            *seen = now;
            tracing::info!(block, "the database was changed, and is read again");
        }
        Err(error) => tracing::warn!("the version that was flushed cannot be read yet: {error}"),
    }
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
