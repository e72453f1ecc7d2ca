//! One request: who asks, for what, and with how many bytes.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use jsonrpsee::RpcModule;
use jsonrpsee::server::http::is_json;
use serde::Serialize;
use tokio::sync::{Semaphore, SemaphorePermit};
use tower::Service;
use tower::ServiceExt as _;
use tower_http::cors::{AllowOrigin, Cors, CorsLayer};

use crate::batch::{self, FEW};
use crate::limits::{Access, Limits};
use crate::memory::{Memory, Room, Use};
use crate::methods::Shared;
use crate::requests::{self, Reply, Requests};

/// How many times as long as a call all calls of a batch may take together.
const BATCH: u32 = 6;

/// How often a request is in memory while it is answered: as it was read, in a buffer that may have
/// twice its length, and the parameters once in a call and once more where it runs.
const COPIES: usize = 4;

/// Bytes of an answer that are handed to the connection at a time.
const PIECE: usize = 16 << 10;

/// What every request needs.
struct Inner {
    shared: Arc<Shared>,
    requests: Requests,
    request_bytes: usize,
    /// The most calls of a batch.
    most_calls: usize,
    patience: Duration,
    /// How long a request may take, of however many calls.
    time: Duration,
    memory: Memory,
    /// How many batches of more than a few calls are answered at a time.
    batches: Semaphore,
    hosts: Vec<String>,
    origins: Vec<String>,
    metrics: fn() -> String,
}

/// Answers requests.
#[derive(Clone)]
pub(crate) struct HttpService(Cors<Checked>);

impl HttpService {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        module: RpcModule<Shared>,
        limits: &Limits,
        access: &Access,
        metrics: fn() -> String,
    ) -> Self {
        let memory = Memory::new(limits.large_bytes as usize);
        let inner = Inner {
            shared: Arc::clone(shared),
            requests: Requests {
                methods: module.into(),
                memory: memory.clone(),
                most_bytes: limits.answer_bytes as usize,
            },
            request_bytes: limits.request_bytes as usize,
            most_calls: limits.batch as usize,
            patience: limits.patience,
            time: limits.calls.time.saturating_mul(BATCH),
            memory,
            batches: Semaphore::new((limits.heavy_calls / 2).max(1)),
            hosts: access
                .hosts
                .iter()
                .map(|host| host.to_lowercase())
                .collect(),
            origins: access.origins.clone(),
            metrics,
        };
        let cors = cors(&access.origins);
        Self(tower::Layer::layer(&cors, Checked(Arc::new(inner))))
    }
}

/// The answers to browsers that ask whether pages of these origins may read.
fn cors(origins: &[String]) -> CorsLayer {
    let origins = match origins.iter().any(|origin| origin == "*") {
        true => AllowOrigin::any(),
        false => {
            let values = origins
                .iter()
                .filter_map(|origin| HeaderValue::from_str(origin).ok());
            AllowOrigin::list(values.collect::<Vec<_>>())
        }
    };
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([CONTENT_TYPE])
        .max_age(Duration::from_secs(600))
}

type Answered = Pin<Box<dyn Future<Output = Result<Response<Held>, Infallible>> + Send>>;

impl Service<Request<Incoming>> for HttpService {
    type Response = Response<Held>;
    type Error = Infallible;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Answered {
        let Self(cors) = self.clone();
        let inner = cors.get_ref().0.clone();
        Box::pin(async move {
            if let Some(refused) = inner.refuse(request.headers()) {
                return Ok(refused);
            }
            cors.oneshot(request).await
        })
    }
}

/// The form of answers.
const JSON: &str = "application/json";

/// What `/health` says.
#[derive(Serialize)]
struct Health {
    status: &'static str,
    /// The latest block whose state is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    /// Why later blocks are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Answers requests of those who may ask.
#[derive(Clone)]
struct Checked(Arc<Inner>);

impl Service<Request<Incoming>> for Checked {
    type Response = Response<Held>;
    type Error = Infallible;
    type Future = Answered;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Answered {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { Ok(inner.answer(request).await) })
    }
}

impl Inner {
    /// Refuses clients that call the server by a name that is not its own, and pages of other
    /// sites.
    fn refuse(&self, headers: &HeaderMap) -> Option<Response<Held>> {
        if !self.is_own_host(headers.get(HOST)) {
            return Some(plain(
                StatusCode::FORBIDDEN,
                "the Host is not one that this server is called by: see --hosts\n",
            ));
        }
        let origin = headers.get(ORIGIN)?;
        let allowed = self.origins.iter();
        let mut allowed = allowed.filter(|allowed| *allowed == "*" || origin == allowed.as_str());
        match allowed.next() {
            Some(_) => None,
            None => Some(plain(
                StatusCode::FORBIDDEN,
                "pages of this Origin may not read answers: see --origins\n",
            )),
        }
    }

    fn is_own_host(&self, host: Option<&HeaderValue>) -> bool {
        let Some(Ok(host)) = host.map(HeaderValue::to_str) else {
            // Without a name there is nothing to bind anew. HTTP/1.0 has none.
            return host.is_none();
        };
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_lowercase();
        name.parse::<IpAddr>().is_ok()
            || name == "localhost"
            || self.hosts.iter().any(|host| *host == "*" || *host == name)
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Held> {
        let figures = &self.shared.figures;
        figures.requests.fetch_add(1, Ordering::Relaxed);
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/health") => self.health(),
            (&Method::GET, "/metrics") => {
                let text = (self.metrics)() + &figures.text(self.memory.used());
                let mut response = plain(StatusCode::OK, text);
                let form = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert(CONTENT_TYPE, form);
                response
            }
            (&Method::POST, _) => self.call(request).await,
            _ => plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "POST JSON-RPC here, or GET /health or /metrics\n",
            ),
        }
    }

    /// Whether states can be read, the writer's latest included.
    fn health(&self) -> Response<Held> {
        let snapshots = &self.shared.context.snapshots;
        // A writer at work gives a state after its next commit.
        let state = snapshots.at_hand();
        let meta = state.as_ref().map(|state| state.reader().meta());
        let error = snapshots.fault();
        let health = Health {
            status: match (meta, &error) {
                (Some(None), _) => "empty",
                (_, Some(_)) => "stale",
                (_, None) => "ok",
            },
            block: meta.flatten().map(|meta| meta.block_number),
            error,
        };
        let code = match health.status {
            "ok" => StatusCode::OK,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let body = serde_json::to_string(&health).unwrap_or_default();
        let mut response = plain(code, body + "\n");
        let form = HeaderValue::from_static(JSON);
        response.headers_mut().insert(CONTENT_TYPE, form);
        response
    }

    async fn call(&self, request: Request<Incoming>) -> Response<Held> {
        let (parts, body) = request.into_parts();
        if !is_json(parts.headers.get(CONTENT_TYPE)) {
            return plain(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the Content-Type of a request is application/json\n",
            );
        }
        let claimed = parts.headers.get(CONTENT_LENGTH);
        let claimed = claimed.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if claimed.is_some_and(|claimed| claimed > self.request_bytes as u64) {
            return self.too_large();
        }
        let read = tokio::time::timeout(self.patience, self.read(body));
        let (bytes, room) = match read.await {
            Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "the request took too long\n"),
            Ok(Err(Unread::TooLarge)) => return self.too_large(),
            Ok(Err(Unread::Busy)) => return self.busy(),
            Ok(Err(Unread::Broken)) => {
                return plain(StatusCode::BAD_REQUEST, "the request cannot be read\n");
            }
            Ok(Ok(read)) => read,
        };
        let most = self.most_calls;
        let calls = batch::calls(&bytes, most).unwrap_or(1);
        if calls > most {
            return self.hold(requests::too_many(&bytes, most), None);
        }
        // The calls of a batch take memory as soon as they are read: before that it waits.
        let _turn = match calls > FEW {
            true => match self.turn().await {
                Some(turn) => Some(turn),
                None => return self.busy(),
            },
            false => None,
        };
        let answered = tokio::time::timeout(self.time, self.requests.answer(&bytes)).await;
        drop((bytes, room));
        match answered {
            Ok(Reply::Json(text, room)) => self.hold(text, room),
            Ok(Reply::Nothing) => json_response(Held::default()),
            Ok(Reply::NoRoom) => self.busy(),
            Err(_) => plain(
                StatusCode::GATEWAY_TIMEOUT,
                "the calls of this batch take too long together: send fewer\n",
            ),
        }
    }

    /// Waits until a batch may be answered, for as long as a call may take.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        let turn = tokio::time::timeout(self.shared.context.limits.time, self.batches.acquire());
        turn.await.ok()?.ok()
    }

    /// Reads a body, and takes room for it as it grows.
    async fn read(&self, mut body: Incoming) -> Result<(Bytes, Room), Unread> {
        let mut bytes = BytesMut::new();
        let mut room = self.memory.room(Use::Call);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unread::Broken)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let length = bytes.len() + data.len();
            if length > self.request_bytes {
                return Err(Unread::TooLarge);
            }
            if !room.grow_to(COPIES * length) {
                return Err(Unread::Busy);
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.freeze(), room))
    }

    /// Keeps the room of an answer until the client has it.
    fn hold(&self, text: String, room: Option<Room>) -> Response<Held> {
        let room = match room {
            Some(room) => room,
            None => {
                let mut room = self.memory.room(Use::Call);
                if !room.grow_to(text.len()) {
                    return self.busy();
                }
                room
            }
        };
        json_response(Held {
            bytes: text.into(),
            until: Some(Instant::now() + self.patience),
            _room: Some(room),
        })
    }

    fn too_large(&self) -> Response<Held> {
        let most = self.request_bytes;
        let text = format!("a request has at most {most} bytes here\n");
        plain(StatusCode::PAYLOAD_TOO_LARGE, text)
    }

    fn busy(&self) -> Response<Held> {
        self.shared.figures.busy.fetch_add(1, Ordering::Relaxed);
        plain(
            StatusCode::SERVICE_UNAVAILABLE,
            "other large requests take the memory at the moment: try again\n",
        )
    }
}

/// Why a body was not read.
enum Unread {
    TooLarge,
    Busy,
    Broken,
}

fn json_response(held: Held) -> Response<Held> {
    let mut response = Response::new(held);
    let form = HeaderValue::from_static(JSON);
    response.headers_mut().insert(CONTENT_TYPE, form);
    response
}

fn plain(status: StatusCode, text: impl Into<String>) -> Response<Held> {
    let text: String = text.into();
    let mut response = Response::new(Held {
        bytes: text.into(),
        ..Held::default()
    });
    *response.status_mut() = status;
    let form = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, form);
    response
}

/// An answer, with the room that it takes.
///
/// The connection copies what it is handed, and drops a body whose last piece it was handed. A body
/// that is one piece would give its room back before the client has read anything.
#[derive(Default)]
pub(crate) struct Held {
    bytes: Bytes,
    /// When the client must have read all but the last piece.
    until: Option<Instant>,
    _room: Option<Room>,
}

impl Body for Held {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        if self.until.is_some_and(|until| until < Instant::now()) {
            let late = "the client did not read its answer in time";
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, late))));
        }
        let length = self.bytes.len().min(PIECE);
        let piece = self.bytes.split_to(length);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
