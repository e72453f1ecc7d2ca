//! Blocks that a database does not remember, from the chain that is given.

use std::collections::BTreeMap;
use std::path::PathBuf;

use alloy_consensus::Header;
use alloy_primitives::B256;
use arbor_state::Head;
use arbor_versions::Version;

use super::ReplayError;
use super::record::recent_blocks;
use crate::executor::{Ancestors, RecentBlocks};
use crate::genesis::Genesis;
use crate::source::open_sources;

/// Headers of blocks before those that a database remembers. Databases of earlier builds lack some of the 256 to which `BLOCKHASH` reaches
/// back from an older version.
#[derive(Clone, Debug, Default)]
pub struct EarlierBlocks(BTreeMap<u64, (B256, Header)>);

impl EarlierBlocks {
    /// Reads the blocks that a database lacks of the 256 up to a version. Nothing is read of the chain if none is missing, and what the chain
    /// does not have stays missing.
    ///
    /// # Errors
    /// [`ReplayError::OtherChain`] if the chain does not lead to the oldest block that the database remembers; errors of the chain's files.
    pub fn read(state: Head<'_>, version: Version, chain: &[PathBuf]) -> Result<Self, ReplayError> {
        let known = recent_blocks(state, version)?;
        let missing = known.missing();
        let mut earlier = BTreeMap::new();
        if missing.is_empty() {
            return Ok(Self(earlier));
        }
        let mut input = open_sources(chain)?;
        let first = missing.start.max(input.first().number);
        if first >= missing.end {
            return Ok(Self(earlier));
        }
        input.skip_to(first)?;
        while let Some(block) = input.next_raw()? {
            let number = block.header.number;
            if number < missing.end {
                earlier.insert(number, (block.hash, block.header));
                continue;
            }
            // The input has checked that each block names the one before, so that this hash vouches for all of them.
            let stored = known.block_hash(number);
            let stored = stored.map_err(|error| ReplayError::State {
                number,
                error: error.into(),
            })?;
            if stored != block.hash {
                let given = block.hash;
                return Err(ReplayError::OtherChain {
                    number,
                    given,
                    stored,
                });
            }
            return Ok(Self(earlier));
        }
        // The chain ends before the database's blocks begin: nothing ties the two together.
        Ok(Self::default())
    }

    /// Adds the hashes that recent blocks lack.
    pub(crate) fn complete(&self, recent: &mut RecentBlocks) {
        for number in recent.missing().rev() {
            match self.0.get(&number) {
                Some((hash, _)) => recent.push_oldest(*hash),
                None => return,
            }
        }
    }

    /// The header of a block.
    pub(crate) fn header(&self, number: u64) -> Option<&Header> {
        self.0.get(&number).map(|(_, header)| header)
    }
}

/// The chain of a database: its beginning, and the blocks that the database does not remember.
#[derive(Clone, Copy)]
pub struct Chain<'a> {
    /// Block 0, and the rules.
    pub genesis: &'a Genesis,
    /// Headers of earlier blocks.
    pub earlier: &'a EarlierBlocks,
}

impl<'a> Chain<'a> {
    /// The chain of a database that remembers every block that is asked for.
    pub fn of(genesis: &'a Genesis) -> Self {
        static NONE: EarlierBlocks = EarlierBlocks(BTreeMap::new());
        Self {
            genesis,
            earlier: &NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::Path;
    use std::sync::Arc;

    use arbor_state::{Network, State};
    use arbor_store::{MemoryStore, Store, Table, Write};
    use arbor_trees::MPT;
    use arbor_versions::{Options, Retain};

    use super::*;
    use crate::prepare::{SignatureRules, prepare};
    use crate::replay::Replay;
    use arbor_generator::{GeneratorSettings, Preset, generate};

    const BLOCKS: u64 = 12;

    fn folder(seed: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("temporary directory");
        let settings = GeneratorSettings {
            blocks: BLOCKS,
            seed,
            ..Preset::Tiny.settings()
        };
        generate(&settings, folder.path(), |_| ControlFlow::Continue(())).expect("generated");
        folder
    }

    fn state(store: &Arc<MemoryStore>, genesis: &Genesis) -> State {
        let network = Network {
            chain_id: genesis.spec.chain_id(),
            genesis_hash: genesis.hash,
        };
        let options = Options {
            retain: Retain::All,
            ..Options::default()
        };
        let store = Arc::clone(store);
        State::open(store, None, MPT.tree(), network, options).expect("opens")
    }

    /// A database as an earlier build left it after a rollback: it remembers nothing of the blocks before number 8.
    fn forgetful(folder: &Path) -> (State, Genesis) {
        let genesis = Genesis::from_file(&folder.join("genesis.json"));
        let genesis = genesis.expect("sound genesis");
        let store = Arc::new(MemoryStore::default());
        let mut replay = Replay::new(state(&store, &genesis), &genesis, 10_000).expect("genesis");
        let mut input = open_sources(&[folder.to_owned()]).expect("sound chain");
        input.skip_to(1).expect("blocks");
        let rules = SignatureRules::new(&genesis.spec);
        while let Some(raw) = input.next_raw().expect("sound chain") {
            let block = prepare(raw, rules).expect("valid signatures");
            replay.block(block).expect("holds");
        }
        let mut written = replay.into_state();
        written.flush().expect("flushes");
        drop(written);
        let forget = |version: u64| Write {
            table: Table(0xf0),
            key: version.to_be_bytes().into(),
            value: None,
        };
        let forgotten: Vec<Write> = (0..8).map(forget).collect();
        store.write(&forgotten, true).expect("writes");
        (state(&store, &genesis), genesis)
    }

    #[test]
    fn the_chain_that_is_given_has_what_the_database_lacks() {
        let chain = folder(1);
        let (state, genesis) = forgetful(chain.path());
        let (head, paths) = (Version(BLOCKS), [chain.path().to_owned()]);
        let mut recent = recent_blocks(state.reader(), head).expect("reads");
        assert_eq!(recent.missing(), 0..8);
        assert!(recent.block_hash(7).is_err());
        let earlier = EarlierBlocks::read(state.reader(), head, &paths).expect("one chain");
        earlier.complete(&mut recent);
        assert!(recent.missing().is_empty());
        assert_eq!(recent.block_hash(0).expect("known"), genesis.hash);
        for number in 0..8 {
            let header = earlier.header(number).expect("read");
            let hash = recent.block_hash(number).expect("known");
            assert_eq!((header.number, header.hash_slow()), (number, hash));
        }
        assert!(earlier.header(8).is_none(), "the database has it");
    }

    #[test]
    fn another_chain_is_refused() {
        let (chain, other) = (folder(1), folder(2));
        let (state, _) = forgetful(chain.path());
        let paths = [other.path().to_owned()];
        let error = EarlierBlocks::read(state.reader(), Version(BLOCKS), &paths);
        assert!(
            matches!(error, Err(ReplayError::OtherChain { number: 8, .. })),
            "{error:?}"
        );
    }
}
