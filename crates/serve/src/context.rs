//! What calls are answered from.

use std::time::Duration;

use alloy_consensus::Header;
use alloy_primitives::B256;
use arbor_chain::replay::kept_header;
use arbor_database::ChainContext;
use arbor_state::{Head, StateError};

use crate::block_files::BlockFiles;
use crate::block_hashes::BlockHashes;
use crate::rpc_error::RpcError;
use crate::snapshots::Snapshots;

/// What a call may take.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// How long a call waits and runs, as far as it can be stopped. The calls of a batch have six
    /// times as long together.
    pub time: Duration,
    /// The most gas of `eth_call`, `eth_estimateGas` and `eth_createAccessList`. It bounds their
    /// memory too: 50 million buy some 5 MiB.
    pub gas: u64,
    /// The most blocks of `eth_feeHistory`.
    pub blocks: u64,
    /// The most slots of one `eth_getProof` or `eth_getStorageValues`, and slots and accounts of one
    /// `debug_accountRange`.
    pub slots: usize,
}

impl Default for CallLimits {
    /// Those of go-ethereum: 5 seconds, 50 million gas, 1,024 blocks, 1,024 slots.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(5),
            gas: 50_000_000,
            blocks: 1_024,
            slots: 1_024,
        }
    }
}

/// What calls are answered from.
pub(crate) struct Context {
    pub(crate) snapshots: Box<dyn Snapshots>,
    pub(crate) chain: ChainContext,
    /// The blocks, if the files of the chain were given.
    pub(crate) blocks: Option<BlockFiles>,
    pub(crate) hashes: BlockHashes,
    pub(crate) limits: CallLimits,
    /// The name of this program, for `web3_clientVersion`.
    pub(crate) client: String,
}

impl Context {
    /// The blocks.
    ///
    /// # Errors
    /// No files of the chain.
    pub(crate) fn blocks(&self) -> Result<&BlockFiles, RpcError> {
        self.blocks.as_ref().ok_or_else(|| {
            RpcError::server(
                "blocks are not served: a database keeps states, and the files of its chain were not given (arbor serve --chain)",
            )
        })
    }

    /// The number of the block with this hash; `None` if there is none up to the latest one.
    pub(crate) fn number_of(&self, head: Head<'_>, hash: B256) -> Result<Option<u64>, RpcError> {
        let found = self.hashes.find(head, hash).map_err(StateError::from);
        if let Some(meta) = found.map_err(|error| RpcError::server(error.to_string()))? {
            return Ok(Some(meta.block_number));
        }
        let latest = head.meta().map_or(0, |meta| meta.block_number);
        let of_files = self
            .blocks
            .as_ref()
            .and_then(|blocks| blocks.number_of(hash));
        let of_genesis = (hash == self.chain.genesis().hash).then_some(0);
        let found = of_files.or(of_genesis).filter(|number| *number <= latest);
        match found {
            Some(number) if self.is_of_database(head, number, hash)? => Ok(found),
            _ => Ok(None),
        }
    }

    /// Whether the database has this block, as far as it knows: the files of the chain may be of another branch since it went back. It goes back no
    /// further than it keeps states, so blocks before those are the same.
    pub(crate) fn is_of_database(
        &self,
        head: Head<'_>,
        number: u64,
        hash: B256,
    ) -> Result<bool, RpcError> {
        let view = head.view();
        let meta = || match view.version_of_block(number)? {
            Some(version) => view.meta(version),
            None => Ok(None),
        };
        let meta = meta().map_err(|error| RpcError::server(error.to_string()))?;
        Ok(meta.is_none_or(|meta| meta.block_hash == hash))
    }

    /// The header of a block up to the latest one, of the database or of the files; `None` if
    /// neither has it.
    pub(crate) fn header(&self, head: Head<'_>, number: u64) -> Result<Option<Header>, RpcError> {
        if number == 0 {
            return Ok(Some(self.chain.genesis().header.clone()));
        }
        let view = head.view();
        let meta = || match view.version_of_block(number)? {
            Some(version) => view.meta(version),
            None => Ok(None),
        };
        let meta = meta().map_err(|error| RpcError::server(error.to_string()))?;
        if let Some(Ok(header)) = meta.map(|meta| kept_header(&meta)) {
            return Ok(Some(header));
        }
        let Some(blocks) = &self.blocks else {
            return Ok(None);
        };
        Ok(blocks.block(number)?.map(|block| block.block.header))
    }
}
