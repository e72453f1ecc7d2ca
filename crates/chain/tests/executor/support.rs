//! Chains from files, executed over a state in memory, with state roots by a naive trie.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use alloy_consensus::proofs::{state_root_unhashed, storage_root_unhashed};
use alloy_consensus::{Header, TrieAccount};
use alloy_primitives::{Address, B256};
use arbor_chain::executor::{
    Ancestor, Ancestors, BlockInput, BlockOutput, ExecutionError, Executor, FlatState, RecentBlocks,
};
use arbor_chain::genesis::{Genesis, naive_state_root};
use arbor_chain::senders::{Prefetch, PrefetchOptions, RecoveredBlock, SignatureRules};
use arbor_chain::source::open_sources;
use arbor_state::{IntermediateRoots, StateChanges, StateError, StateView};

/// Returns a folder of test data; `None`, after saying so, if it is not there.
pub(crate) fn data(test: &str, path: &str) -> Option<PathBuf> {
    let root = std::env::var("ARBOR_TESTDATA").map_or_else(
        |_| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = root.join("data").join(path);
    if folder.exists() {
        return Some(folder);
    }
    assert!(
        std::env::var("ARBOR_REQUIRE_DATA").as_deref() != Ok("1"),
        "{} is missing",
        folder.display()
    );
    println!("SKIPPED (no test data): {test}");
    None
}

/// A flat state that also knows its root.
#[derive(Clone)]
pub(crate) struct RootedState {
    pub(crate) flat: FlatState,
    accounts: BTreeMap<Address, TrieAccount>,
    /// Accounts whose leaf is out of date.
    stale: BTreeSet<Address>,
}

impl RootedState {
    pub(crate) fn new(genesis: &Genesis) -> Self {
        Self {
            flat: FlatState::from_genesis(&genesis.alloc),
            accounts: BTreeMap::new(),
            stale: genesis
                .alloc
                .iter()
                .map(|account| account.address)
                .collect(),
        }
    }

    /// Recomputes an account's leaf.
    fn refresh(&mut self, address: Address) {
        let Some(account) = self.flat.account(address).expect("flat state") else {
            self.accounts.remove(&address);
            return;
        };
        let slots = self.flat.slots(address);
        let leaf = TrieAccount {
            nonce: account.nonce,
            balance: account.balance,
            storage_root: storage_root_unhashed(slots.map(|(k, v)| (B256::from(k), v))),
            code_hash: account.code_hash,
        };
        self.accounts.insert(address, leaf);
    }

    pub(crate) fn apply(&mut self, changes: &StateChanges) {
        check_exact(&self.flat, changes);
        self.flat.apply(changes);
        self.stale.extend(changes.accounts.keys());
    }

    pub(crate) fn root(&mut self) -> B256 {
        for address in std::mem::take(&mut self.stale) {
            self.refresh(address);
        }
        state_root_unhashed(
            self.accounts
                .iter()
                .map(|(address, leaf)| (*address, *leaf)),
        )
    }
}

impl IntermediateRoots for RootedState {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, StateError> {
        self.apply(changes);
        Ok(self.root())
    }
}

/// Asserts that changes start from `state` and that none is without effect.
pub(crate) fn check_exact(state: &FlatState, changes: &StateChanges) {
    for (address, change) in &changes.accounts {
        let old = state.account(*address).expect("flat state");
        assert_eq!(change.old, old, "{address}: old account");
        let has_effect = change.old != change.new || change.storage_cleared;
        assert!(
            has_effect || !change.slots.is_empty(),
            "{address}: no change"
        );
        assert!(
            !change.storage_cleared || old.is_some(),
            "{address}: nothing to clear"
        );
        assert!(
            change.new.is_some() || change.slots.is_empty(),
            "{address}: slots of nothing"
        );
        for (slot, value) in &change.slots {
            assert_ne!(value.old, value.new, "{address} {slot}: no change");
            let old = if change.storage_cleared {
                Default::default()
            } else {
                state.storage(*address, *slot).expect("flat state")
            };
            assert_eq!(value.old, old, "{address} {slot}: old value");
        }
    }
    let deployed = |hash| {
        changes
            .accounts
            .values()
            .any(|c| c.new.is_some_and(|n| n.code_hash == hash))
    };
    assert!(
        changes.codes.keys().all(|hash| deployed(*hash)),
        "code of no account"
    );
}

/// A chain on its way.
pub(crate) struct Replay {
    pub(crate) genesis: Genesis,
    pub(crate) chain: RecentBlocks,
    pub(crate) executor: Executor,
    blocks: Prefetch,
}

impl Replay {
    pub(crate) fn open(folder: PathBuf) -> Self {
        let genesis =
            Genesis::from_file(&folder.join("genesis.json"), &naive_state_root).expect("genesis");
        let input = open_sources(&[folder]).expect("blocks");
        let signatures = SignatureRules::new(&genesis.spec);
        let mut chain = RecentBlocks::default();
        chain.push(Ancestor {
            hash: genesis.hash,
            header: genesis.header.clone(),
            ommers: Vec::new(),
        });
        let blocks = Prefetch::new(input, signatures, PrefetchOptions::default());
        Self {
            genesis,
            chain,
            executor: Executor::new(),
            blocks,
        }
    }

    /// Returns the next block but genesis.
    pub(crate) fn next_block(&mut self) -> Option<RecoveredBlock> {
        loop {
            let block = self.blocks.next()?.expect("readable block");
            if block.block.header.number > 0 {
                return Some(block);
            }
        }
    }

    pub(crate) fn parent(&self) -> (Header, B256) {
        let parent = self.chain.latest().expect("at least genesis");
        (parent.header.clone(), parent.hash)
    }

    /// Returns the header of one of the seven latest blocks.
    pub(crate) fn chain_header(&self, number: u64) -> Header {
        self.chain.ancestor(number).expect("recent").header.clone()
    }

    pub(crate) fn execute(
        &mut self,
        block: &RecoveredBlock,
        state: &FlatState,
        roots: Option<&mut dyn IntermediateRoots>,
    ) -> Result<BlockOutput, ExecutionError> {
        let (parent, hash) = self.parent();
        let input = BlockInput::new(block, &parent, hash, &self.genesis.spec);
        self.executor.execute(&input, state, &self.chain, roots)
    }

    pub(crate) fn push(&mut self, block: &RecoveredBlock) {
        self.chain.push(Ancestor {
            hash: block.hash,
            header: block.block.header.clone(),
            ommers: block
                .block
                .body
                .ommers
                .iter()
                .map(Header::hash_slow)
                .collect(),
        });
    }

    /// Executes blocks up to `number` without looking at state roots.
    pub(crate) fn run_to(&mut self, number: u64, state: &mut FlatState) {
        while self.parent().0.number < number {
            let block = self.next_block().expect("a block");
            let output = self.execute(&block, state, None).expect("valid block");
            state.apply(&output.changes);
            self.push(&block);
        }
    }
}
