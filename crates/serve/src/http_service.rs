//! One request: who asks, for what, and with how many bytes.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use jsonrpsee::RpcModule;
use jsonrpsee::core::middleware::RpcServiceBuilder;
use jsonrpsee::server::http::call_with_service_builder;
use jsonrpsee::server::{
    BatchRequestConfig, ConnectionState, HttpBody, Methods, ServerConfig, ServerHandle, StopHandle,
    stop_channel,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;
use tower::ServiceExt as _;
use tower_http::cors::{AllowOrigin, Cors, CorsLayer};

use crate::limits::{Access, Limits};
use crate::methods::Shared;

/// Bytes of a request or an answer that are not counted: a connection's worth.
const SMALL: usize = 64 << 10;

/// What every request needs.
struct Inner {
    shared: Arc<Shared>,
    methods: Methods,
    config: ServerConfig,
    request_bytes: usize,
    patience: Duration,
    /// KiB for large requests and answers.
    large: Arc<Semaphore>,
    /// jsonrpsee wants a permit for each request; connections are counted elsewhere.
    permits: Arc<Semaphore>,
    stop: StopHandle,
    /// Nothing is stopped by it, but it must be there.
    _stop: ServerHandle,
    requests: AtomicU32,
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
        let (stop, handle) = stop_channel();
        let config = ServerConfig::builder()
            .http_only()
            .max_request_body_size(limits.request_bytes)
            .max_response_body_size(limits.answer_bytes)
            .set_batch_request_config(BatchRequestConfig::Limit(limits.batch))
            .build();
        let inner = Inner {
            shared: Arc::clone(shared),
            methods: module.into(),
            config,
            request_bytes: limits.request_bytes as usize,
            patience: limits.patience,
            large: Arc::new(Semaphore::new((limits.large_bytes >> 10) as usize)),
            permits: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            stop,
            _stop: handle,
            requests: AtomicU32::new(0),
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
                let text = (self.metrics)() + &figures.text();
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

    /// Whether states can be read.
    fn health(&self) -> Response<Held> {
        match self.shared.context.snapshots.at_hand() {
            Some(state) => match state.reader().meta() {
                Some(meta) => plain(
                    StatusCode::OK,
                    format!("{{\"status\":\"ok\",\"block\":{}}}\n", meta.block_number),
                ),
                None => plain(StatusCode::SERVICE_UNAVAILABLE, "{\"status\":\"empty\"}\n"),
            },
            // A writer at work gives one after its next commit.
            None => plain(StatusCode::OK, "{\"status\":\"ok\"}\n"),
        }
    }

    async fn call(&self, request: Request<Incoming>) -> Response<Held> {
        let (parts, body) = request.into_parts();
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
        let request = Request::from_parts(parts, Full::new(bytes));
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return self.busy();
        };
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let state = ConnectionState::new(self.stop.clone(), number, permit);
        let answered = call_with_service_builder(
            request,
            self.config.clone(),
            state,
            self.methods.clone(),
            RpcServiceBuilder::new(),
        );
        let response = answered.await;
        drop(room);
        self.hold(response)
    }

    /// Reads a body. What is more than small takes room from all others that are large.
    async fn read(
        &self,
        mut body: Incoming,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Unread> {
        let mut bytes = BytesMut::new();
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unread::Broken)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let length = bytes.len() + data.len();
            if length > self.request_bytes {
                return Err(Unread::TooLarge);
            }
            let held = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            // A buffer that grows has up to twice as much.
            let wanted = (2 * length.saturating_sub(SMALL)).div_ceil(1 << 10);
            if wanted > held {
                let more = self.take(wanted - held).ok_or(Unread::Busy)?;
                match &mut room {
                    Some(room) => room.merge(more),
                    None => room = Some(more),
                }
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes.freeze(), room))
    }

    fn take(&self, kibibytes: usize) -> Option<OwnedSemaphorePermit> {
        let kibibytes = u32::try_from(kibibytes).ok()?;
        Arc::clone(&self.large)
            .try_acquire_many_owned(kibibytes)
            .ok()
    }

    /// Keeps the room of a large answer until the client has it.
    fn hold(&self, response: Response<HttpBody>) -> Response<Held> {
        let length = response.body().size_hint().upper().unwrap_or(0);
        let large = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .saturating_sub(SMALL);
        let room = match large.div_ceil(1 << 10) {
            0 => None,
            kibibytes => match self.take(kibibytes) {
                Some(room) => Some(room),
                None => return self.busy(),
            },
        };
        response.map(|body| Held { body, _room: room })
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

fn plain(status: StatusCode, text: impl Into<String>) -> Response<Held> {
    let mut response = Response::new(Held {
        body: HttpBody::from(text.into()),
        _room: None,
    });
    *response.status_mut() = status;
    let form = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, form);
    response
}

/// A body, with the room that it takes.
pub(crate) struct Held {
    body: HttpBody,
    _room: Option<OwnedSemaphorePermit>,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            body: HttpBody::empty(),
            _room: None,
        }
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = <HttpBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
