//! Batches: how many calls one has, and how they are answered within the memory that there is.

use std::future::Future;
use std::sync::Arc;

use http::Extensions;
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::server::{BatchResponseBuilder, MethodResponse};
use jsonrpsee::types::error::reject_too_big_batch_request;
use jsonrpsee::types::{Id, Request};

use crate::memory::{Memory, Room, Use};

/// Batches of at most so many calls are answered like single calls. Those of more wait for each
/// other.
pub(crate) const FEW: usize = 16;

/// The calls of a batch, of which it counts at most one more than `most`; `None` if the body is no
/// batch. Only commas are looked at: what is between them may be anything.
///
/// The list of the calls of `[0,0,...]` would take twelve times as much memory as the request.
pub(crate) fn calls(body: &[u8], most: usize) -> Option<usize> {
    let mut rest = body.trim_ascii_start().strip_prefix(b"[")?.iter();
    let (mut count, mut depth, mut in_text) = (1, 0_usize, false);
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if in_text => {
                rest.next();
            }
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => break,
            },
            b',' if depth == 0 => count += 1,
            _ => {}
        }
        if count > most {
            break;
        }
    }
    Some(count)
}

/// The answer to a batch of too many calls.
pub(crate) fn too_many(most: usize) -> String {
    MethodResponse::error(Id::Null, reject_too_big_batch_request(most)).to_string()
}

/// Marks the answer of a batch that found no room.
#[derive(Clone, Copy)]
pub(crate) struct NoRoom;

/// Answers calls as `service` does, and takes room for the answers of batches while they grow.
/// The [`Room`] is an extension of the answer, in an [`Arc`].
#[derive(Clone)]
pub(crate) struct Counted<S> {
    pub(crate) service: S,
    pub(crate) memory: Memory,
    /// The most bytes of an answer.
    pub(crate) most: usize,
}

impl<S> RpcServiceT for Counted<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            NotificationResponse = MethodResponse,
            BatchResponse = MethodResponse,
        > + Clone
        + Send
        + Sync
        + 'static,
{
    type MethodResponse = MethodResponse;
    type NotificationResponse = MethodResponse;
    type BatchResponse = MethodResponse;

    fn call<'a>(&self, call: Request<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.service.call(call)
    }

    fn notification<'a>(
        &self,
        notification: Notification<'a>,
    ) -> impl Future<Output = MethodResponse> + Send + 'a {
        self.service.notification(notification)
    }

    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = MethodResponse> + Send + 'a {
        let Self {
            service,
            memory,
            most,
        } = self.clone();
        async move {
            let room = memory.room(Use::Batch);
            answer(service, batch, room, most).await
        }
    }
}

async fn answer<S>(service: S, batch: Batch<'_>, mut room: Room, most: usize) -> MethodResponse
where
    S: RpcServiceT<MethodResponse = MethodResponse, NotificationResponse = MethodResponse>,
{
    let mut answers = BatchResponseBuilder::new_with_limit(most);
    let (mut bytes, mut was_notified) = (0, false);
    for entry in batch {
        let answer = match entry {
            Ok(BatchEntry::Call(call)) => service.call(call).await,
            Ok(BatchEntry::Notification(notification)) => {
                service.notification(notification).await;
                was_notified = true;
                continue;
            }
            Err(error) => {
                let (error, id) = error.into_parts();
                MethodResponse::error(id, error)
            }
        };
        bytes += answer.as_json().get().len() + 1;
        // A text that grows has up to twice as much.
        if !room.grow_to(bytes.saturating_mul(2)) {
            let mut marked = Extensions::new();
            marked.insert(NoRoom);
            return MethodResponse::notification().with_extensions(marked);
        }
        if let Err(too_large) = answers.append(answer) {
            return too_large;
        }
        // A batch may have a thousand calls: others are let in between.
        tokio::task::yield_now().await;
    }
    if answers.is_empty() && was_notified {
        return MethodResponse::notification();
    }
    let answer = MethodResponse::from_batch(answers.finish());
    room.shrink_to(bytes);
    let mut kept = Extensions::new();
    kept.insert(Arc::new(room));
    answer.with_extensions(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_up_to_one_more_than_the_most() {
        for (body, count) in [
            ("{}", None),
            ("", None),
            ("7,[", None),
            ("[]", Some(1)),
            (" \n[7]", Some(1)),
            ("[{\"a\":[1,2,{\"b\":3}]},{}]", Some(2)),
            (r#"["a,\",\\",",[",2]"#, Some(3)),
            ("[1,2],3,4", Some(2)),
            // What is no JSON is told from it later.
            ("[1,2", Some(2)),
            ("[\"1,2", Some(1)),
        ] {
            assert_eq!(calls(body.as_bytes(), 10), count, "{body}");
        }
        assert_eq!(calls(b"[0,0,0,0]", 3), Some(4));
        assert_eq!(calls(b"[0,0,0,0]", 2), Some(3));
    }
}
