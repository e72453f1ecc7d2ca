//! Requests of JSON-RPC: one call, or a batch of calls, and the text of their answers.
//!
//! jsonrpsee takes a call whose id is negative, a fraction, a list or an object for a notification,
//! which gets no answer. Therefore requests are read here, by the rules of go-ethereum: an id is
//! repeated as it was written, and a list or an object is no id.

use jsonrpsee::core::server::{ConnectionId, Extensions, MethodCallback, Methods};
use jsonrpsee::types::error::OVERSIZED_RESPONSE_CODE;
use jsonrpsee::types::{Id, Params};
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::batch;
use crate::memory::{Memory, Room, Use};
use crate::rpc_error::RpcError;

/// The longest name of a method.
const NAME: usize = 2_048;
/// How jsonrpsee begins the answer to a call without an id.
const BEGIN: &str = r#"{"jsonrpc":"2.0","id":null,"#;
/// Bytes of an answer beside the id and the result, at most.
const AROUND: usize = 64;

/// The answer to a request.
pub(crate) enum Reply {
    /// JSON, and the room that it takes; a single answer has taken none yet.
    Json(String, Option<Room>),
    /// Only notifications came, which are not answered.
    Nothing,
    /// Other answers take the memory.
    NoRoom,
}

/// A message of JSON-RPC, of which the fields are not read yet.
#[derive(Deserialize, Default)]
struct Message<'a> {
    #[serde(borrow, default, deserialize_with = "given")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "given")]
    params: Option<&'a RawValue>,
}

/// Reads a field that is there, `null` included.
fn given<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl<'a> Message<'a> {
    /// Reads an item of a batch. Anything but an object is a message without fields.
    fn of_item(item: &'a RawValue) -> Self {
        let text = item.get();
        match text.starts_with('{') {
            true => serde_json::from_str(text).unwrap_or_default(),
            false => Self::default(),
        }
    }

    fn method(&self) -> Option<String> {
        let name: String = serde_json::from_str(self.method?.get()).ok()?;
        Some(name).filter(|name| !name.is_empty())
    }

    fn has_version(&self) -> bool {
        self.jsonrpc
            .is_some_and(|version| version.get() == "\"2.0\"")
    }

    /// The id as it is repeated in the answer; `null` if there is none, or if it is a list or an
    /// object.
    fn id(&self) -> &'a str {
        let id = self.id.map(RawValue::get);
        id.filter(|id| !id.starts_with(['[', '{']))
            .unwrap_or("null")
    }

    /// Whether the id is a list or an object.
    fn has_wrong_id(&self) -> bool {
        self.id.is_some_and(|id| id.get().starts_with(['[', '{']))
    }
}

/// Writes the answer to a call that has no result.
fn failed(id: &str, error: RpcError) -> String {
    let error = to_raw_value(&error.into_object());
    let error = error.map_or_else(|_| "null".to_owned(), |error| error.get().to_owned());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// Answers requests with the methods of a table.
pub(crate) struct Requests {
    pub(crate) methods: Methods,
    pub(crate) memory: Memory,
    /// The most bytes of an answer.
    pub(crate) most_bytes: usize,
}

impl Requests {
    /// Answers a request.
    pub(crate) async fn answer(&self, body: &[u8]) -> Reply {
        if body.trim_ascii_start().first() == Some(&b'[') {
            return self.batch(body).await;
        }
        let message = match serde_json::from_slice::<Message<'_>>(body) {
            Ok(message) => message,
            Err(error) if error.is_data() => Message::default(),
            Err(_) => return Reply::Json(failed("null", RpcError::unreadable()), None),
        };
        match self.message(&message).await {
            Some(answer) => Reply::Json(answer, None),
            None => Reply::Nothing,
        }
    }

    /// Answers the calls of a batch one after another, and takes room for the answers while they
    /// grow.
    async fn batch(&self, body: &[u8]) -> Reply {
        let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(body) else {
            return Reply::Json(failed("null", RpcError::unreadable()), None);
        };
        if items.is_empty() {
            let empty = RpcError::request("empty batch");
            return Reply::Json(failed("null", empty), None);
        }
        let mut room = self.memory.room(Use::Batch);
        let mut answers = String::new();
        let mut is_full = false;
        for item in items {
            let message = Message::of_item(item);
            let answer = match is_full {
                true => message.is_answered().then(|| too_large(&message)),
                false => self.message(&message).await,
            };
            let Some(mut answer) = answer else {
                continue;
            };
            if !is_full && answers.len() + answer.len() + 2 > self.most_bytes {
                is_full = true;
                answer = too_large(&message);
            }
            // A text that grows has up to twice as much.
            if !room.grow_to((answers.len() + answer.len() + 2).saturating_mul(2)) {
                return Reply::NoRoom;
            }
            answers.push(if answers.is_empty() { '[' } else { ',' });
            answers.push_str(&answer);
            // A batch may have a thousand calls: others are let in between.
            tokio::task::yield_now().await;
        }
        if answers.is_empty() {
            return Reply::Nothing;
        }
        answers.push(']');
        answers.shrink_to_fit();
        room.shrink_to(answers.len());
        Reply::Json(answers, Some(room))
    }

    /// Answers a message; `None` if it is a notification.
    async fn message(&self, message: &Message<'_>) -> Option<String> {
        let id = message.id();
        let name = message.method().filter(|_| message.has_version());
        let Some(name) = name.filter(|_| !message.has_wrong_id()) else {
            return Some(failed(id, RpcError::request("invalid request")));
        };
        message.id?;
        if name.len() > NAME {
            let why = format!("method name too long: {} > {NAME}", name.len());
            return Some(failed(id, RpcError::request(why)));
        }
        let Some(MethodCallback::Async(method)) = self.methods.method(&name) else {
            return Some(failed(id, RpcError::unknown_method(&name)));
        };
        let params = Params::new(message.params.map(RawValue::get)).into_owned();
        let most = self.most_bytes.saturating_sub(AROUND + id.len());
        let connection = ConnectionId::default();
        let answer = method(Id::Null, params, connection, most, Extensions::new()).await;
        if answer.as_error_code() == Some(OVERSIZED_RESPONSE_CODE) {
            return Some(failed(id, RpcError::too_large()));
        }
        Some(match answer.as_json().get().strip_prefix(BEGIN) {
            Some(rest) => format!(r#"{{"jsonrpc":"2.0","id":{id},{rest}"#),
            None => failed(id, RpcError::server("internal error")),
        })
    }
}

impl Message<'_> {
    /// Whether it gets an answer, be it an error.
    fn is_answered(&self) -> bool {
        self.id.is_some() || !self.has_version() || self.method().is_none()
    }
}

fn too_large(message: &Message<'_>) -> String {
    failed(message.id(), RpcError::too_large())
}

/// The answer to a batch of more calls than a batch may have. It has the id of the first call.
pub(crate) fn too_many(body: &[u8], most: usize) -> String {
    let first = batch::first(body).map(Message::of_item).unwrap_or_default();
    let error = RpcError::request(format!("batch too large: it may have {most} calls"));
    format!("[{}]", failed(first.id(), error))
}
