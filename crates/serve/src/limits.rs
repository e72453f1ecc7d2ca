//! What clients may take of a server, and who they may be.

use std::time::Duration;

use crate::context::CallLimits;

/// What clients may take of the server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Limits of each call.
    pub calls: CallLimits,
    /// The most bytes of a request.
    pub request_bytes: u32,
    /// The most bytes of an answer, of a batch too.
    pub answer_bytes: u32,
    /// Bytes that all requests and answers above 32 KiB together take at a time. A request takes
    /// four times its length, because it is copied; a batch's answer twice its length until it is
    /// whole. Batches have at most half of these bytes for their answers.
    pub large_bytes: u32,
    /// The most calls of a batch.
    pub batch: u32,
    /// The most connections at a time. Each takes up to 128 KiB: buffers, a request and an answer.
    pub connections: usize,
    /// The most calls at a time that take a thread of their own. One is left to calls that do not
    /// execute. Half as many batches of more than
    /// 16 calls are answered at a time.
    pub heavy_calls: usize,
    /// Threads that read requests and answer light calls.
    pub threads: usize,
    /// How long a client may take for the header of its request, the body, or its answer.
    pub patience: Duration,
}

impl Default for Limits {
    /// 5 MiB a request, 25 MiB an answer, 128 MiB of large ones, 1,000 calls a batch, 2,048
    /// connections, four heavy calls and two threads, 30 seconds.
    fn default() -> Self {
        Self {
            calls: CallLimits::default(),
            request_bytes: 5 << 20,
            answer_bytes: 25 << 20,
            large_bytes: 128 << 20,
            batch: 1_000,
            connections: 2_048,
            heavy_calls: 4,
            threads: 2,
            patience: Duration::from_secs(30),
        }
    }
}

/// Whom the server talks to.
#[derive(Clone, Default, Debug)]
pub struct Access {
    /// Names by which clients may call the server, beside `localhost` and addresses: `*` is any.
    /// Without this check a page of another site could read what is served on the loopback (DNS
    /// rebinding).
    pub hosts: Vec<String>,
    /// Origins whose pages may read answers (CORS): `*` is any. A request with another origin is
    /// refused.
    pub origins: Vec<String>,
}
