//! Blocks as a client names them: by tag, number or hash.

use alloy_primitives::B256;
use arbor_database::{BlockState, BlockStateError};
use arbor_state::Head;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::context::Context;
use crate::hex::{self, Hex};
use crate::params::{Params, invalid};
use crate::rpc_error::RpcError;

/// A block that a client names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockChoice {
    /// `latest`. So are `safe`, `finalized` and `pending`: a database knows no block that may still
    /// go, and none to come.
    Latest,
    /// `earliest`: block 0.
    Earliest,
    /// By number.
    Number(u64),
    /// By hash. Every block here is of the chain, as EIP-1898 may ask for.
    Hash(B256),
}

/// The object of EIP-1898.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BlockObject {
    block_number: Option<String>,
    block_hash: Option<Hex<B256>>,
    #[serde(default, rename = "requireCanonical")]
    _require_canonical: bool,
}

impl BlockChoice {
    /// Reads a block, by tag or number, or by hash as text or object (EIP-1898). Without one it is
    /// the latest.
    pub(crate) fn read(params: &Params<'_>, index: usize) -> Result<Self, RpcError> {
        match params.raw(index) {
            Err(_) => Ok(Self::Latest),
            Ok(value) => Self::parse(value).map_err(|why| invalid(index, why)),
        }
    }

    /// Like [`read`](Self::read), for methods that do not go on without a block.
    pub(crate) fn required(params: &Params<'_>, index: usize) -> Result<Self, RpcError> {
        Self::parse(params.raw(index)?).map_err(|why| invalid(index, why))
    }

    fn parse(value: &RawValue) -> Result<Self, String> {
        let text = value.get();
        if !text.starts_with('{') {
            let text: String = serde_json::from_str(text).map_err(|error| error.to_string())?;
            return Self::of_text(&text);
        }
        let object: BlockObject = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match object {
            BlockObject {
                block_number: Some(_),
                block_hash: Some(_),
                ..
            } => {
                Err("cannot specify both BlockHash and BlockNumber, choose one or the other".into())
            }
            BlockObject {
                block_hash: Some(Hex(hash)),
                ..
            } => Ok(Self::Hash(hash)),
            BlockObject {
                block_number: Some(number),
                ..
            } => match Self::of_text(&number)? {
                Self::Hash(_) => Err("the blockNumber is a hash".into()),
                block => Ok(block),
            },
            _ => Err("neither blockHash nor blockNumber is given".into()),
        }
    }

    fn of_text(text: &str) -> Result<Self, String> {
        match text {
            "latest" | "safe" | "finalized" | "pending" => return Ok(Self::Latest),
            "earliest" => return Ok(Self::Earliest),
            _ => {}
        }
        if text.len() == 66 {
            return hex::parse(text).map(Self::Hash);
        }
        let number: u64 = hex::parse(text)?;
        match i64::try_from(number) {
            Ok(_) => Ok(Self::Number(number)),
            Err(_) => Err("block number larger than int64".into()),
        }
    }

    /// The number of the block; `None` if it is not in the database.
    pub(crate) fn number(self, context: &Context, head: Head<'_>) -> Result<Option<u64>, RpcError> {
        let latest = head.meta().ok_or(BlockStateError::Empty)?.block_number;
        match self {
            Self::Latest => Ok(Some(latest)),
            Self::Earliest => Ok(Some(0)),
            Self::Number(number) => Ok(Some(number).filter(|number| *number <= latest)),
            Self::Hash(hash) => context.number_of(head, hash),
        }
    }

    /// The state after the block.
    pub(crate) fn state<'a>(
        self,
        context: &'a Context,
        head: Head<'a>,
    ) -> Result<BlockState<'a>, RpcError> {
        if self == Self::Latest {
            return Ok(BlockState::latest(head, &context.chain)?);
        }
        match self.number(context, head)? {
            Some(number) => Ok(BlockState::after_block(head, &context.chain, number)?),
            None => Err(match self {
                Self::Hash(hash) => RpcError::unknown_hash(hash),
                _ => RpcError::server("header not found"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_named_by_tag_number_and_hash() {
        let parse = |text: &str| {
            let value = RawValue::from_string(text.to_owned()).expect("JSON");
            BlockChoice::parse(&value)
        };
        let hash = B256::repeat_byte(0xab);
        for tag in ["latest", "safe", "finalized", "pending"] {
            assert_eq!(parse(&format!("{tag:?}")), Ok(BlockChoice::Latest));
        }
        assert_eq!(parse("\"earliest\""), Ok(BlockChoice::Earliest));
        assert_eq!(parse("\"0x2a\""), Ok(BlockChoice::Number(42)));
        assert_eq!(parse(&format!("\"{hash}\"")), Ok(BlockChoice::Hash(hash)));
        let by_hash = format!("{{\"blockHash\": \"{hash}\", \"requireCanonical\": true}}");
        assert_eq!(parse(&by_hash), Ok(BlockChoice::Hash(hash)));
        let by_number = "{\"blockNumber\": \"0x2\"}";
        assert_eq!(parse(by_number), Ok(BlockChoice::Number(2)));
        let both = format!("{{\"blockHash\": \"{hash}\", \"blockNumber\": \"0x2\"}}");
        for wrong in [
            "2",
            "\"2\"",
            "\"\"",
            "{}",
            "[]",
            "\"0x8000000000000000\"",
            &both,
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
