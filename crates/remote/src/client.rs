//! A client of JSON-RPC.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::RemoteError;

/// The most bytes of one answer. The witness of a block of 60 million gas that loads the largest
/// codes has twice that in hex; no chain has such blocks.
const MOST_ANSWER: u64 = 512 << 20;
/// How long a request may take: `debug_executionWitness` executes a block.
const PATIENCE: Duration = Duration::from_secs(120);
/// The most calls of one batch: nodes limit them to 1,000 or fewer.
const BATCH: usize = 100;

/// A node that answers JSON-RPC over HTTP.
#[derive(Clone, Debug)]
pub struct Node {
    agent: ureq::Agent,
    url: String,
}

/// The answer to one call.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i64,
    #[serde(default)]
    message: String,
}

impl Node {
    /// Takes the address of a node. Nothing is asked yet.
    ///
    /// # Errors
    /// [`RemoteError::Address`] if it does not begin with `http://`.
    pub fn new(url: &str) -> Result<Self, RemoteError> {
        if !url.starts_with("http://") {
            return Err(RemoteError::Address(url.to_owned()));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false)
            // A proxy of the environment cannot reach the loopback.
            .proxy(None)
            .build();
        Ok(Self {
            agent: config.into(),
            url: url.to_owned(),
        })
    }

    /// The address of the node.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Calls a method and returns its result.
    ///
    /// # Errors
    /// [`RemoteError::Http`], [`Answer`](RemoteError::Answer), [`Refused`](RemoteError::Refused).
    pub fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<T, RemoteError> {
        let result = self.call_raw(method, params)?;
        self.read(method, &result)
    }

    /// Like [`call`](Self::call), for a result that is read elsewhere: its JSON.
    pub(crate) fn call_raw(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Box<RawValue>, RemoteError> {
        let body = self.post(method, &request(method, params, 0))?;
        let answer: Answer<'_> = self.parse(method, &body)?;
        self.result(method, answer)
    }

    /// Calls a method several times; the results have the order of the parameters.
    ///
    /// # Errors
    /// Those of [`call`](Self::call), of the first call that fails.
    pub fn call_each<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &[Value],
    ) -> Result<Vec<T>, RemoteError> {
        let mut results = Vec::with_capacity(params.len());
        for params in params.chunks(BATCH) {
            self.batch(method, params, &mut results)?;
        }
        Ok(results)
    }

    fn batch<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &[Value],
        results: &mut Vec<T>,
    ) -> Result<(), RemoteError> {
        let calls = params.iter().enumerate();
        let calls: Value = calls
            .map(|(id, params)| request(method, params, id))
            .collect();
        let body = self.post(method, &calls)?;
        // A batch that is refused as a whole has one answer.
        if body.trim_ascii_start().first() == Some(&b'{') {
            let answer = self.parse(method, &body)?;
            let _refused = self.result(method, answer)?;
            return Err(self.unread(method, "one answer for a batch of calls"));
        }
        let answers: Vec<Answer<'_>> = self.parse(method, &body)?;
        let mut ordered: Vec<Option<Answer<'_>>> = Vec::new();
        ordered.resize_with(params.len(), || None);
        for answer in answers {
            let id = answer.id.as_u64().and_then(|id| usize::try_from(id).ok());
            let place = id.and_then(|id| ordered.get_mut(id));
            *place.ok_or_else(|| self.unread(method, "an answer to no call"))? = Some(answer);
        }
        for answer in ordered {
            let answer =
                answer.ok_or_else(|| self.unread(method, "a call of a batch has no answer"))?;
            let result = self.result(method, answer)?;
            results.push(self.read(method, &result)?);
        }
        Ok(())
    }

    fn post(&self, method: &str, body: &Value) -> Result<Vec<u8>, RemoteError> {
        let failed = |source| RemoteError::Http {
            url: self.url.clone(),
            method: method.to_owned(),
            source: Box::new(source),
        };
        let request = self.agent.post(&self.url);
        let request = request.header("content-type", "application/json");
        let mut response = request.send(body.to_string()).map_err(failed)?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(MOST_ANSWER);
        let body = body.read_to_vec().map_err(failed)?;
        // Some nodes send errors of JSON-RPC with another status.
        let is_json = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
        match status.is_success() || is_json {
            true => Ok(body),
            // Too many requests.
            false if status.is_server_error() || status.as_u16() == 429 => Err(RemoteError::Busy {
                url: self.url.clone(),
                method: method.to_owned(),
                status: status.as_u16(),
            }),
            false => Err(self.unread(method, &format!("the status {status}"))),
        }
    }

    fn parse<'a, T: Deserialize<'a>>(
        &self,
        method: &str,
        body: &'a [u8],
    ) -> Result<T, RemoteError> {
        serde_json::from_slice(body).map_err(|error| self.unread(method, &error.to_string()))
    }

    fn result(&self, method: &str, answer: Answer<'_>) -> Result<Box<RawValue>, RemoteError> {
        match (answer.result, answer.error) {
            (_, Some(ErrorObject { code, message })) => Err(RemoteError::Refused {
                url: self.url.clone(),
                method: method.to_owned(),
                code,
                message,
            }),
            (Some(result), None) => Ok(result.to_owned()),
            (None, None) => Ok(RawValue::NULL.to_owned()),
        }
    }

    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        method: &str,
        result: &RawValue,
    ) -> Result<T, RemoteError> {
        let read = serde_json::from_str(result.get());
        read.map_err(|error| self.unread(method, &error.to_string()))
    }

    pub(crate) fn unread(&self, method: &str, why: &str) -> RemoteError {
        RemoteError::Answer {
            url: self.url.clone(),
            method: method.to_owned(),
            why: why.to_owned(),
        }
    }
}

fn request(method: &str, params: &Value, id: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use alloy_primitives::U64;

    use super::*;

    /// A server that gives these answers, one after another.
    fn answering(answers: &'static [&'static str]) -> Node {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().expect("a client");
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let length = answer.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{answer}"
                );
                stream.write_all(head.as_bytes()).expect("sent");
            }
        });
        Node::new(&format!("http://{address}")).expect("an address")
    }

    #[test]
    fn answers_are_told_from_errors() {
        let node = answering(&[
            r#"{"jsonrpc":"2.0","id":0,"result":"0x2a"}"#,
            r#"{"jsonrpc":"2.0","id":0,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no such method"}}"#,
            "<html>",
        ]);
        let ask = || node.call::<Option<U64>>("eth_blockNumber", &json!([]));
        assert_eq!(ask().expect("answered"), Some(U64::from(42)));
        assert_eq!(ask().expect("answered"), None);
        let refused = ask().expect_err("refused");
        assert!(refused.is_unknown_method(), "{refused}");
        assert!(refused.to_string().contains("no such method (code -32601)"));
        let html = ask().expect_err("no JSON").to_string();
        assert!(html.contains("eth_blockNumber: not an answer"), "{html}");
    }

    #[test]
    fn answers_of_a_batch_are_put_in_order() {
        let node = answering(&[
            r#"[{"id":1,"result":"0x2"},{"id":0,"result":"0x1"}]"#,
            r#"[{"id":1,"result":"0x2"}]"#,
            r#"[{"id":7,"result":"0x2"}]"#,
            r#"{"id":null,"error":{"code":-32600,"message":"batch too large"}}"#,
        ]);
        let two = [json!([0]), json!([1])];
        let ask = || node.call_each::<U64>("eth_one", &two);
        assert_eq!(ask().expect("answered"), [U64::from(1), U64::from(2)]);
        for wanted in ["has no answer", "an answer to no call", "batch too large"] {
            let error = ask().expect_err(wanted).to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn addresses_of_other_protocols_are_refused() {
        for url in ["https://example.org", "127.0.0.1:8545", "ws://127.0.0.1"] {
            let error = Node::new(url).expect_err(url).to_string();
            assert!(error.contains("not an address of HTTP"), "{error}");
        }
    }
}
