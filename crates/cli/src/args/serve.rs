//! `arbor serve`.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use arbor_serve::{Access, CallLimits, Limits};
use clap::Args;

use super::{DATABASE, DB_VARIABLE, MEMORY_VARIABLE, examples};
use crate::{bytes, metrics_server};

/// Headings of flags.
const CLIENTS: &str = "Clients";
const LIMITS: &str = "Limits";

/// `arbor serve`.
#[derive(Debug, Args)]
#[command(after_help = examples::SERVE)]
pub(crate) struct Serve {
    /// Folder of the database. Another process may write it: the last flushed version is served
    #[arg(long, value_name = "DIR", env = DB_VARIABLE, help_heading = DATABASE)]
    pub(crate) db: PathBuf,
    /// Memory for the store's cache
    #[arg(long, value_name = "BYTES", default_value = "256MiB", env = MEMORY_VARIABLE, value_parser = bytes::parse_memory, help_heading = DATABASE)]
    pub(crate) memory: u64,
    /// The files of the chain, to serve blocks and transactions too: exports, era1 files, or folders of them. Those that are gzipped are copied into the temporary folder
    #[arg(long, value_name = "CHAIN", num_args = 1..)]
    pub(crate) chain: Vec<PathBuf>,
    /// Serve at this address. A port alone means 127.0.0.1
    #[arg(long, value_name = "[HOST:]PORT", default_value = "8545", value_parser = metrics_server::parse_address)]
    pub(crate) http: SocketAddr,
    #[command(flatten)]
    pub(crate) clients: ServeFlags,
}

/// Whom a server talks to, and what they may take.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeFlags {
    /// Names by which clients call the server, beside localhost and addresses; * for any
    #[arg(long, value_name = "HOST,...", value_delimiter = ',', help_heading = CLIENTS)]
    pub(crate) hosts: Vec<String>,
    /// Origins whose pages may read answers (CORS), such as `https://example.org`; * for any. Others are refused
    #[arg(long, value_name = "ORIGIN,...", value_delimiter = ',', help_heading = CLIENTS)]
    pub(crate) origins: Vec<String>,
    /// The most bytes of a request
    #[arg(long, value_name = "BYTES", default_value = "5MiB", value_parser = parse_body, help_heading = LIMITS)]
    pub(crate) max_request: u32,
    /// The most bytes of an answer
    #[arg(long, value_name = "BYTES", default_value = "25MiB", value_parser = parse_body, help_heading = LIMITS)]
    pub(crate) max_answer: u32,
    /// The most bytes that all requests and answers above 32 KiB take together at a time, copies included
    #[arg(long, value_name = "BYTES", default_value = "128MiB", value_parser = parse_body, help_heading = LIMITS)]
    pub(crate) max_large: u32,
    /// The most calls of a batch
    #[arg(long, value_name = "N", default_value = "1000", help_heading = LIMITS)]
    pub(crate) max_batch: NonZeroU32,
    /// The most connections at a time
    #[arg(long, value_name = "N", default_value = "2048", help_heading = LIMITS)]
    pub(crate) max_connections: NonZeroUsize,
    /// The most calls at a time that execute, prove or read blocks
    #[arg(long, value_name = "N", default_value = "4", help_heading = LIMITS)]
    pub(crate) max_calls: NonZeroUsize,
    /// Threads that read requests and answer small calls
    #[arg(long, value_name = "N", default_value = "2", help_heading = LIMITS)]
    pub(crate) serve_threads: NonZeroUsize,
    /// Seconds that a call may take
    #[arg(long, value_name = "SECONDS", default_value = "5", help_heading = LIMITS)]
    pub(crate) call_time: NonZeroU32,
    /// The most gas of eth_call, eth_estimateGas and eth_createAccessList, which bounds their memory too
    #[arg(long, value_name = "GAS", default_value = "50000000", help_heading = LIMITS)]
    pub(crate) call_gas: u64,
    /// The most blocks of eth_feeHistory
    #[arg(long, value_name = "N", default_value = "1024", help_heading = LIMITS)]
    pub(crate) max_blocks: u64,
    /// The most slots of eth_getProof and eth_getStorageValues
    #[arg(long, value_name = "N", default_value = "1024", help_heading = LIMITS)]
    pub(crate) max_slots: usize,
    /// Seconds that a client may take to send a request, or to read its answer
    #[arg(long, value_name = "SECONDS", default_value = "30", help_heading = LIMITS)]
    pub(crate) patience: NonZeroU32,
}

/// Parses a size that is below 4 GiB.
fn parse_body(text: &str) -> Result<u32, String> {
    let bytes = bytes::parse(text)?;
    u32::try_from(bytes).map_err(|_| format!("'{text}' is 4 GiB or more"))
}

impl ServeFlags {
    pub(crate) fn access(&self) -> Access {
        Access {
            hosts: self.hosts.clone(),
            origins: self.origins.clone(),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        let seconds = |seconds: NonZeroU32| Duration::from_secs(seconds.get().into());
        Limits {
            calls: CallLimits {
                time: seconds(self.call_time),
                gas: self.call_gas,
                blocks: self.max_blocks,
                slots: self.max_slots,
            },
            request_bytes: self.max_request,
            answer_bytes: self.max_answer,
            large_bytes: self.max_large,
            batch: self.max_batch.get(),
            connections: self.max_connections.get(),
            heavy_calls: self.max_calls.get(),
            threads: self.serve_threads.get(),
            patience: seconds(self.patience),
        }
    }
}
