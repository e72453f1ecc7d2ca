//! The server: connections, their limits, and what is no call of a method.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arbor_database::ChainContext;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

use crate::block_files::BlockFiles;
use crate::context::Context;
use crate::figures::Figures;
use crate::http_service::HttpService;
use crate::limits::{Access, Limits};
use crate::methods::{Shared, module, table};
use crate::paced::Paced;
use crate::snapshots::Snapshots;

/// What is served, and how.
pub struct ServerSettings {
    /// Where to listen.
    pub address: SocketAddr,
    /// Where states come from.
    pub snapshots: Box<dyn Snapshots>,
    /// The chain that they are of.
    pub chain: ChainContext,
    /// The blocks of the chain, if they are to be served.
    pub blocks: Option<BlockFiles>,
    /// Limits.
    pub limits: Limits,
    /// Hosts and origins.
    pub access: Access,
    /// The name and version of the program.
    pub client: String,
    /// Figures of the program for `/metrics`, in Prometheus' text format, beside those of the
    /// server.
    pub metrics: fn() -> String,
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Its threads cannot be started.
    #[error("starting the server's threads: {0}")]
    Threads(std::io::Error),
}

/// A server that runs on threads of its own until it is [stopped](Self::stop) or dropped.
pub struct Server {
    runtime: Option<Runtime>,
    address: SocketAddr,
    stopping: watch::Sender<bool>,
    open: Arc<Semaphore>,
    connections: u32,
}

impl Server {
    /// Begins to serve.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn start(settings: ServerSettings) -> Result<Self, ServeError> {
        let ServerSettings {
            address,
            snapshots,
            chain,
            blocks,
            limits,
            access,
            client,
            metrics,
        } = settings;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(limits.threads.max(1))
            .max_blocking_threads(limits.heavy_calls.max(1))
            .thread_name("serve")
            .enable_io()
            .enable_time()
            .build()
            .map_err(ServeError::Threads)?;
        let listen = async {
            let listener = TcpListener::bind(address).await?;
            let bound = listener.local_addr()?;
            Ok((listener, bound))
        };
        let (listener, bound) = runtime
            .block_on(listen)
            .map_err(|source| ServeError::Listen { address, source })?;
        let shared = Arc::new(Shared {
            context: Context {
                snapshots,
                chain,
                blocks,
                hashes: Default::default(),
                limits: limits.calls,
                client,
            },
            figures: Figures::new(table()),
            heavy: Arc::new(Semaphore::new(limits.heavy_calls.max(1))),
            long: Arc::new(Semaphore::new(limits.heavy_calls.saturating_sub(1).max(1))),
        });
        let connections = u32::try_from(limits.connections).unwrap_or(u32::MAX).max(1);
        let open = Arc::new(Semaphore::new(connections as usize));
        let (stopping, stopped) = watch::channel(false);
        let accepting = Accepting {
            listener,
            service: HttpService::new(
                &shared,
                module(Arc::clone(&shared)),
                &limits,
                &access,
                metrics,
            ),
            shared,
            open: Arc::clone(&open),
            patience: limits.patience,
            stopped,
        };
        runtime.spawn(accepting.run());
        Ok(Self {
            runtime: Some(runtime),
            address: bound,
            stopping,
            open,
            connections,
        })
    }

    /// Where it listens: the port that the system chose, if none was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets calls under way end, and returns; after `patience` without
    /// those that have not ended.
    pub fn stop(mut self, patience: Duration) {
        self.stopping.send_replace(true);
        let Some(runtime) = self.runtime.take() else {
            return;
        };
        let (open, all) = (Arc::clone(&self.open), self.connections);
        let ended = async {
            let ended = open.acquire_many(all);
            tokio::time::timeout(patience, ended).await.is_ok()
        };
        if !runtime.block_on(ended) {
            tracing::warn!(
                "calls that did not end in {} s are given up",
                patience.as_secs()
            );
        }
        runtime.shutdown_background();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.send_replace(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// How long no connection is taken after the system refused one, for example because there are no
/// more files.
const REST: Duration = Duration::from_millis(50);

struct Accepting {
    listener: TcpListener,
    service: HttpService,
    shared: Arc<Shared>,
    open: Arc<Semaphore>,
    patience: Duration,
    stopped: watch::Receiver<bool>,
}

impl Accepting {
    async fn run(mut self) {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                _ = self.stopped.changed() => return,
            };
            match accepted {
                Ok((stream, _)) => self.accept(stream),
                Err(error) => {
                    tracing::warn!(%error, "a connection was not taken");
                    tokio::time::sleep(REST).await;
                }
            }
        }
    }

    fn accept(&self, stream: TcpStream) {
        let figures = &self.shared.figures;
        let Ok(room) = Arc::clone(&self.open).try_acquire_owned() else {
            figures.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        // An answer is one write: nothing is to be gathered.
        let _ = stream.set_nodelay(true);
        let (service, patience) = (self.service.clone(), self.patience);
        let (shared, mut stopped) = (Arc::clone(&self.shared), self.stopped.clone());
        tokio::spawn(async move {
            let _room = room;
            let _counted = Counted::new(&shared.figures.connections);
            let io = TokioIo::new(Paced::new(stream, patience));
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder
                .timer(TokioTimer::new())
                .header_read_timeout(patience)
                .max_buf_size(BUFFER);
            let connection = builder.serve_connection(io, TowerToHyperService::new(service));
            tokio::pin!(connection);
            let asked_to_stop = async { stopped.wait_for(|stopped| *stopped).await.is_ok() };
            let ended = tokio::select! {
                ended = &mut connection => Some(ended),
                _ = asked_to_stop => None,
            };
            let ended = match ended {
                Some(ended) => ended,
                None => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
}

/// Bytes of a connection's buffer for what is read, which is the most that the header of a request
/// has, and of the one for what is written.
const BUFFER: usize = 16 << 10;

/// Counts something as long as it is there.
struct Counted<'a>(&'a AtomicU64);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
