//! Headers of the ancestors of a block, fetched as far back as they are asked for.

use std::cell::RefCell;

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, U64};
use alloy_rpc_types_eth as rpc;
use arbor_chain::executor::{Ancestor, Ancestors};
use arbor_state::ReadError;
use serde_json::{Value, json};

use crate::client::Node;
use crate::error::RemoteError;

/// A block without its transactions.
type Named = rpc::Block<B256, rpc::Header>;

/// Generations among which ommers are looked for.
const GENERATIONS: u64 = 7;

impl Node {
    /// Fetches headers by number, with the hashes of the ommers that their blocks include. Each
    /// header is compared with its hash; whether they are a chain is left to the caller.
    pub(crate) fn headers(
        &self,
        numbers: impl Iterator<Item = u64>,
    ) -> Result<Vec<Ancestor>, RemoteError> {
        const METHOD: &str = "eth_getBlockByNumber";
        let numbers: Vec<u64> = numbers.collect();
        let params: Vec<Value> = numbers
            .iter()
            .map(|number| json!([U64::from(*number), false]))
            .collect();
        let found: Vec<Option<Named>> = self.call_each(METHOD, &params)?;
        let headers = numbers.iter().zip(found);
        headers
            .map(|(number, found)| ancestor(found, &number.to_string()))
            .collect()
    }

    /// Fetches a header by the hash of its block.
    pub(crate) fn header(&self, hash: B256) -> Result<Ancestor, RemoteError> {
        let found: Option<Named> = self.call("eth_getBlockByHash", &json!([hash, false]))?;
        let found = ancestor(found, &hash.to_string())?;
        same("the header of", &hash, &found.hash)?;
        Ok(found)
    }
}

/// Takes the header of a block, and computes its hash.
fn ancestor(found: Option<Named>, name: &str) -> Result<Ancestor, RemoteError> {
    let found = found.ok_or_else(|| RemoteError::NoBlock(name.to_owned()))?;
    let (header, given) = (found.header.inner, found.header.hash);
    let hash = header.hash_slow();
    // A header with fields that this program does not know has another hash.
    same("a header whose fields have the hash", &given, &hash)?;
    Ok(Ancestor {
        hash,
        header,
        ommers: found.uncles,
    })
}

/// Compares what came with what was asked for.
pub(crate) fn same(what: &'static str, expected: &B256, actual: &B256) -> Result<(), RemoteError> {
    match expected == actual {
        true => Ok(()),
        false => Err(RemoteError::Other {
            what,
            expected: expected.to_string(),
            actual: actual.to_string(),
        }),
    }
}

/// The ancestors of a block, the parent first. Each is the parent of the one before.
pub(crate) struct Ancestry<'a> {
    node: &'a Node,
    /// As far back as they were fetched for `BLOCKHASH`.
    headers: RefCell<Vec<(B256, Header)>>,
    /// Those that ommers are looked for in; none if the block has no ommers.
    near: Vec<Ancestor>,
}

impl<'a> Ancestry<'a> {
    /// Fetches the parent, and more if the block has ommers.
    pub(crate) fn fetch(
        node: &'a Node,
        parent: B256,
        has_ommers: bool,
    ) -> Result<Self, RemoteError> {
        let parent = node.header(parent)?;
        let number = parent.header.number;
        let mut ancestry = Self {
            node,
            headers: RefCell::new(vec![(parent.hash, parent.header.clone())]),
            near: Vec::new(),
        };
        if has_ommers {
            let first = (number + 1).saturating_sub(GENERATIONS);
            ancestry.reach(first)?;
            let near = node.headers(first..number)?;
            for (found, (hash, _)) in near.iter().rev().zip(&ancestry.headers.borrow()[1..]) {
                same("the header of", hash, &found.hash)?;
            }
            ancestry.near = near;
            ancestry.near.push(parent);
        }
        Ok(ancestry)
    }

    /// The parent's hash and header.
    pub(crate) fn parent(&self) -> (B256, Header) {
        self.headers.borrow()[0].clone()
    }

    /// Fetches the headers down to a block.
    fn reach(&self, number: u64) -> Result<(), RemoteError> {
        let mut headers = self.headers.borrow_mut();
        let oldest = headers[headers.len() - 1].1.number;
        if number >= oldest {
            return Ok(());
        }
        let older = self.node.headers(number..oldest)?;
        for found in older.into_iter().rev() {
            let child = &headers[headers.len() - 1].1;
            same("the header of", &child.parent_hash, &found.hash)?;
            headers.push((found.hash, found.header));
        }
        Ok(())
    }

    /// RLP of the headers from the parent down to a block.
    pub(crate) fn rlp_down_to(&self, number: u64) -> Vec<Bytes> {
        let headers = self.headers.borrow();
        let wanted = headers
            .iter()
            .take_while(|(_, header)| header.number >= number);
        wanted
            .map(|(_, header)| alloy_rlp::encode(header).into())
            .collect()
    }

    /// The headers that were fetched, the parent first.
    pub(crate) fn fetched(&self) -> Vec<(B256, Header)> {
        self.headers.borrow().clone()
    }
}

impl Ancestors for Ancestry<'_> {
    fn block_hash(&self, number: u64) -> Result<B256, ReadError> {
        self.reach(number).map_err(ReadError::below)?;
        let headers = self.headers.borrow();
        let found = headers.iter().find(|(_, header)| header.number == number);
        match found {
            Some((hash, _)) => Ok(*hash),
            None => Err(ReadError::new(format!(
                "block {number} is no ancestor of the block"
            ))),
        }
    }

    fn ancestor(&self, number: u64) -> Option<&Ancestor> {
        self.near.iter().find(|block| block.header.number == number)
    }
}
