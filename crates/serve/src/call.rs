//! One call of a client, and the table of methods.

use std::time::Instant;

use arbor_state::Head;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::context::Context;
use crate::params::Params;
use crate::rpc_error::RpcError;

/// One call: what it is answered from, and until when. All of it is of one version.
pub(crate) struct Call<'a> {
    pub(crate) context: &'a Context,
    pub(crate) head: Head<'a>,
    pub(crate) params: Params<'a>,
    pub(crate) deadline: Instant,
}

/// The JSON of a result, or an error.
pub(crate) type Answer = Result<Box<RawValue>, RpcError>;

/// Writes a result.
pub(crate) fn answer(result: &(impl Serialize + ?Sized)) -> Answer {
    to_raw_value(result).map_err(|error| RpcError::server(error.to_string()))
}

/// Where a method runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Weight {
    /// On the thread that read the request: a few reads.
    Light,
    /// On a thread of its own, some at a time.
    Heavy,
    /// Like a heavy one. It executes code, and may take all the time that a call has: one thread is
    /// left to heavy calls.
    Long,
}

/// A method.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) weight: Weight,
    /// The most parameters that it takes.
    pub(crate) params: usize,
    pub(crate) answer: fn(&Call<'_>) -> Answer,
}

/// Enters a method that reads little.
pub(crate) const fn light(
    name: &'static str,
    params: usize,
    answer: fn(&Call<'_>) -> Answer,
) -> Method {
    Method {
        name,
        weight: Weight::Light,
        params,
        answer,
    }
}

/// Enters a method that executes code.
pub(crate) const fn long(
    name: &'static str,
    params: usize,
    answer: fn(&Call<'_>) -> Answer,
) -> Method {
    Method {
        name,
        weight: Weight::Long,
        params,
        answer,
    }
}

/// Enters a method that takes its time.
pub(crate) const fn heavy(
    name: &'static str,
    params: usize,
    answer: fn(&Call<'_>) -> Answer,
) -> Method {
    Method {
        name,
        weight: Weight::Heavy,
        params,
        answer,
    }
}
