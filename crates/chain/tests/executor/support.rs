//! Chains from files, executed over a state in memory, with state roots.

use std::collections::BTreeMap;
use std::path::PathBuf;

use alloy_consensus::{Header, TrieAccount};
use alloy_primitives::{Address, B256, U256, keccak256};
use arbor_chain::executor::{
    Ancestor, Ancestors, BlockInput, BlockOutput, ExecutionError, Executor, MemoryState,
    RecentBlocks, Rules,
};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{Prefetch, PrefetchOptions, RecoveredBlock, SignatureRules};
use arbor_chain::source::open_sources;
use arbor_state::{
    Account, AccountChange, IntermediateRoots, ReadError, SlotChange, StateChanges, StateView,
};
use arbor_tree::{Hash, MemoryNodes};
use arbor_tree_mpt::{EMPTY_ROOT, InnerUpdate, LeafTemplate, OuterUpdate, apply};

/// Returns a file or folder below `data` of the test data; none, after recording that the test is skipped, if it is not there.
pub(crate) fn data(test: &str, path: &str) -> Option<PathBuf> {
    arbor_testdata::find(test, &format!("data/{path}"))
}

/// A flat state with its Merkle-Patricia trie.
#[derive(Clone)]
pub(crate) struct RootedState {
    pub(crate) flat: MemoryState,
    nodes: MemoryNodes,
    root: Hash,
    /// Roots of the storage tries that are not empty, by hashed address.
    storage_roots: BTreeMap<Hash, Hash>,
}

impl RootedState {
    pub(crate) fn new(genesis: &Genesis) -> Self {
        let flat = MemoryState::from_genesis(&genesis.alloc);
        let mut state = Self {
            flat: MemoryState::default(),
            nodes: MemoryNodes::new(),
            root: EMPTY_ROOT,
            storage_roots: BTreeMap::new(),
        };
        let change = |(address, account)| {
            let slot = |(slot, new)| {
                (
                    slot,
                    SlotChange {
                        old: U256::ZERO,
                        new,
                    },
                )
            };
            let slots = flat.slots(address).map(slot).collect();
            let new = Some(account);
            (
                address,
                AccountChange {
                    new,
                    slots,
                    ..AccountChange::default()
                },
            )
        };
        let accounts = flat.accounts().map(change).collect();
        state.apply(&StateChanges {
            accounts,
            codes: BTreeMap::new(),
        });
        state.flat = flat;
        state
    }

    pub(crate) fn apply(&mut self, changes: &StateChanges) {
        check_exact(&self.flat, changes);
        self.flat.apply(changes);
        let mut updates: Vec<_> = changes
            .accounts
            .iter()
            .map(|(address, change)| self.update(*address, change))
            .collect();
        updates.sort_by_key(|update| update.key);
        let result = apply(&self.nodes, self.root, &updates).expect("complete tries");
        self.nodes.change_nodes(&result.nodes);
        self.root = result.root;
        for (update, root) in updates.iter().zip(result.inner_roots) {
            if root == EMPTY_ROOT {
                self.storage_roots.remove(&update.key);
            } else {
                self.storage_roots.insert(update.key, root);
            }
            for inner in &update.inner {
                self.nodes.set_leaf(
                    Some(update.key),
                    inner.key,
                    inner.value.as_ref().map(|value| value.to_vec()),
                );
            }
            let leaf = update.leaf.as_ref().map(|leaf| {
                let mut bytes = leaf.bytes.clone();
                bytes[leaf.hole..leaf.hole + 32].copy_from_slice(&root);
                bytes
            });
            self.nodes.set_leaf(None, update.key, leaf);
        }
    }

    /// Puts one account's change in the tree's words; clears its storage if that is part of it.
    fn update(&mut self, address: Address, change: &AccountChange) -> OuterUpdate {
        let key = keccak256(address).0;
        if change.storage_cleared {
            self.nodes.clear_trie(&key);
            self.storage_roots.remove(&key);
        }
        let slot = |(slot, value): (&U256, &SlotChange)| InnerUpdate {
            key: keccak256(B256::from(*slot)).0,
            existed: !value.old.is_zero(),
            value: (!value.new.is_zero()).then(|| alloy_rlp::encode(value.new).into()),
        };
        let mut inner: Vec<_> = change.slots.iter().map(slot).collect();
        inner.sort_by_key(|update| update.key);
        OuterUpdate {
            key,
            existed: change.old.is_some(),
            inner_root: self.storage_roots.get(&key).copied().unwrap_or(EMPTY_ROOT),
            leaf: change.new.map(leaf_template),
            inner,
        }
    }

    pub(crate) fn root(&self) -> B256 {
        self.root.into()
    }
}

fn leaf_template(account: Account) -> LeafTemplate {
    let leaf = TrieAccount {
        nonce: account.nonce,
        balance: account.balance,
        storage_root: B256::ZERO,
        code_hash: account.code_hash,
    };
    let bytes = alloy_rlp::encode(leaf);
    // The last two items are hashes, with a byte of length each.
    let hole = bytes.len() - 65;
    LeafTemplate { bytes, hole }
}

impl IntermediateRoots for RootedState {
    fn root_after(&mut self, changes: &StateChanges) -> Result<B256, ReadError> {
        self.apply(changes);
        Ok(self.root())
    }
}

/// Asserts that changes start from `state` and that none is without effect.
pub(crate) fn check_exact(state: &MemoryState, changes: &StateChanges) {
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
        let geth = folder.join("genesis.json");
        let file = if geth.exists() {
            geth
        } else {
            folder.join("genesis.coregeth.json")
        };
        let genesis = Genesis::from_file(&file).expect("genesis");
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

    /// Returns the rules of the next block.
    pub(crate) fn rules(&self, header: &Header) -> Rules {
        Rules::at(&self.genesis.spec, header, &self.parent().0, None)
    }

    pub(crate) fn execute(
        &mut self,
        block: &RecoveredBlock,
        state: &MemoryState,
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
    pub(crate) fn run_to(&mut self, number: u64, state: &mut MemoryState) {
        while self.parent().0.number < number {
            let block = self.next_block().expect("a block");
            let output = self.execute(&block, state, None).expect("valid block");
            state.apply(&output.changes);
            self.push(&block);
        }
    }
}
