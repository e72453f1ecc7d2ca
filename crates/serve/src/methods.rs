//! All methods, and how each call of one is run.

use std::sync::Arc;
use std::time::Instant;

use jsonrpsee::RpcModule;
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::RawValue;
use tokio::sync::{AcquireError, Semaphore};

use arbor_database::kept_blocks;
use arbor_state::{Head, StateSnapshot};

use crate::call::{Answer, Call, Method, Weight};
use crate::context::Context;
use crate::figures::Figures;
use crate::params::Params;
use crate::rpc_error::{Gone, RpcError};
use crate::{
    account_range, block_methods, call_methods, chain_methods, fee_history, gas_price,
    state_methods, witness_methods,
};

/// All methods.
pub(crate) fn table() -> impl Iterator<Item = &'static Method> {
    [
        chain_methods::METHODS,
        state_methods::METHODS,
        account_range::METHODS,
        call_methods::METHODS,
        block_methods::METHODS,
        fee_history::METHODS,
        gas_price::METHODS,
        witness_methods::METHODS,
    ]
    .into_iter()
    .flatten()
}

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) context: Context,
    pub(crate) figures: Figures,
    /// Room for the calls that run on threads of their own.
    pub(crate) heavy: Arc<Semaphore>,
    /// Room for those of them that are long: one less.
    pub(crate) long: Arc<Semaphore>,
}

/// Makes jsonrpsee's table of the methods.
pub(crate) fn module(shared: Arc<Shared>) -> RpcModule<Shared> {
    let mut module = RpcModule::from_arc(shared);
    for (place, method) in table().enumerate() {
        let entered = module.register_async_method(method.name, move |params, shared, _| {
            let text = params.as_str().map(str::to_owned);
            run(shared, place, method, text)
        });
        entered.expect("invariant: each method is in the table once");
    }
    module
}

async fn run(
    shared: Arc<Shared>,
    place: usize,
    method: &'static Method,
    params: Option<String>,
) -> Result<Box<RawValue>, ErrorObjectOwned> {
    let begun = Instant::now();
    let answer = answer(&shared, method, params, begun).await;
    let took = begun.elapsed();
    shared.figures.answered(place, took, answer.is_err());
    let error = answer.as_ref().err().map(RpcError::code);
    tracing::debug!(
        method = method.name,
        microseconds = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        error,
        "answered"
    );
    answer.map_err(RpcError::into_object)
}

async fn answer(
    shared: &Arc<Shared>,
    method: &'static Method,
    params: Option<String>,
    begun: Instant,
) -> Answer {
    let context = &shared.context;
    let deadline = begun + context.limits.time;
    let at_hand = context.snapshots.at_hand();
    if let (Weight::Light, Some(snapshot)) = (method.weight, &at_hand) {
        return on_latest(context, method, params.as_deref(), snapshot, deadline);
    }
    let room = async {
        let long = match method.weight {
            Weight::Long => Some(Arc::clone(&shared.long).acquire_owned().await?),
            Weight::Light | Weight::Heavy => None,
        };
        Ok::<_, AcquireError>((long, Arc::clone(&shared.heavy).acquire_owned().await?))
    };
    let room = tokio::time::timeout_at(deadline.into(), room).await;
    let Ok(Ok(room)) = room else {
        return Err(RpcError::busy("the server is busy: try again"));
    };
    let shared = Arc::clone(shared);
    let work = move || {
        let context = &shared.context;
        let snapshot = match at_hand {
            Some(snapshot) => snapshot,
            None => context
                .snapshots
                .wait(deadline)
                .map_err(|error| RpcError::server(error.to_string()))?,
        };
        on_latest(context, method, params.as_deref(), &snapshot, deadline)
    };
    // Also if the client goes meanwhile, the thread is taken until the call ends. Else its room is
    // free only when the answer is fetched, so that answers do not pile up.
    let work = move || (work(), room);
    match tokio::task::spawn_blocking(work).await {
        Ok((answer, _room)) => answer,
        Err(error) => {
            tracing::error!(method = method.name, %error, "a call ended with a panic");
            Err(RpcError::server("internal error"))
        }
    }
}

/// Answers a call from the latest state; or from one that was the latest a moment ago, if that has
/// the block and the latest one has it no longer.
fn on_latest(
    context: &Context,
    method: &Method,
    params: Option<&str>,
    snapshot: &StateSnapshot,
    deadline: Instant,
) -> Answer {
    let answer = on(context, method, params, snapshot, deadline);
    let Some(gone) = answer.as_ref().err().and_then(RpcError::gone) else {
        return answer;
    };
    let has_block = |head: Head<'_>| match gone {
        Gone::NotKept(number) => {
            kept_blocks(head).is_ok_and(|(oldest, newest)| (oldest..=newest).contains(&number))
        }
        // Not each unknown hash is worth a search among all blocks again.
        Gone::Unknown(hash) => head.meta().is_some_and(|meta| meta.block_hash == hash),
    };
    match context.snapshots.earlier(&has_block) {
        Some(earlier) => on(context, method, params, &earlier, deadline).or(answer),
        None => answer,
    }
}

fn on(
    context: &Context,
    method: &Method,
    params: Option<&str>,
    snapshot: &StateSnapshot,
    deadline: Instant,
) -> Answer {
    let params = Params::read(params)?;
    params.at_most(method.params)?;
    let head = match method.weight {
        Weight::Light => snapshot.reader(),
        // Nothing reads on for longer than the call may take.
        Weight::Heavy | Weight::Long => snapshot.reader().until(deadline),
    };
    let answer = (method.answer)(&Call {
        context,
        head,
        params,
        deadline,
    });
    match answer {
        // Whatever the error says: reading has ended.
        Err(_) if method.weight != Weight::Light && Instant::now() > deadline => {
            Err(RpcError::timed_out("the call did not end in time"))
        }
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_method_is_there_once_and_none_writes() {
        let names: Vec<_> = table().map(|method| method.name).collect();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        let writing = [
            "send", "sign", "submit", "set", "admin", "personal", "miner",
        ];
        for name in names {
            let lower = name.to_lowercase();
            assert!(!writing.iter().any(|word| lower.contains(word)), "{name}");
        }
    }
}
