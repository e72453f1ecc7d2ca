//! From a genesis file or a preset to block 0.

use std::path::Path;

use alloy_consensus::constants::EMPTY_WITHDRAWALS;
use alloy_consensus::proofs::state_root_unhashed;
use alloy_consensus::{EMPTY_OMMER_ROOT_HASH, EMPTY_ROOT_HASH, Header};
use alloy_eips::eip1559::INITIAL_BASE_FEE;
use alloy_eips::eip7685::EMPTY_REQUESTS_HASH;
use alloy_primitives::{B64, B256, keccak256};
use serde_json::Value;

use super::fields::Fields;
use super::file::GenesisFile;
use super::spec::ChainSpec;
use super::{Alloc, Fork, GenesisError, Network};
use crate::bounded_input::{Bound, BoundedInput};
use crate::source::ChainInput;

/// Block 0 and the rules of a chain.
#[derive(Clone, Debug)]
pub struct Genesis {
    /// Header of block 0.
    pub header: Header,
    /// Its hash.
    pub hash: B256,
    /// The accounts that exist from the start.
    pub alloc: Alloc,
    /// The rules.
    pub spec: ChainSpec,
    /// What the file says and has no effect, and where it differs from what is known of its network.
    pub warnings: Vec<String>,
}

impl Genesis {
    /// Loads what a user names: a file, or else a network. A folder with a network's name does not hide the network.
    ///
    /// # Errors
    /// [`GenesisError`] if it is neither, or as [`Self::from_json`].
    pub fn load(file_or_preset: &str) -> Result<Self, GenesisError> {
        Self::from_json(&Self::text_of(file_or_preset)?)
    }

    /// The text of what a user names: a file's, or else that of a network's genesis.
    ///
    /// # Errors
    /// [`GenesisError`] if it is neither, or the file cannot be read.
    pub fn text_of(file_or_preset: &str) -> Result<String, GenesisError> {
        let path = Path::new(file_or_preset);
        let is_folder = path.is_dir();
        if path.exists() && !is_folder {
            return Self::read_text(path);
        }
        match Network::from_name(file_or_preset) {
            Some(network) => Ok(network.genesis_text()),
            None if is_folder => Err(GenesisError::Folder(path.to_path_buf())),
            None => Err(GenesisError::UnknownPreset(file_or_preset.to_owned())),
        }
    }

    /// A public network's genesis.
    ///
    /// # Errors
    /// None for the networks there are: their accounts and rules are built in.
    pub fn preset(network: Network) -> Result<Self, GenesisError> {
        Self::from_json(&network.genesis_text())
    }

    /// Reads a genesis file.
    ///
    /// # Errors
    /// As [`Self::from_json`], and [`GenesisError::Input`].
    pub fn from_file(path: &Path) -> Result<Self, GenesisError> {
        Self::from_json(&Self::read_text(path)?)
    }

    /// The text of a genesis file, which may be a pipe.
    ///
    /// # Errors
    /// [`GenesisError::Input`], also for a text that is longer than [`Bound::GENESIS`].
    pub fn read_text(path: &Path) -> Result<String, GenesisError> {
        Ok(BoundedInput::open(path, Bound::GENESIS)?.text()?)
    }

    /// The configuration in the text of a genesis file; `null` if it has none. A total difficulty
    /// that no JSON number has exactly becomes a string of digits.
    ///
    /// # Errors
    /// [`GenesisError`] if the text is not JSON.
    pub fn config_of(text: &str) -> Result<Value, GenesisError> {
        const TOTAL: &str = "terminalTotalDifficulty";
        let Some(config) = Fields::parse(text, "")?.take("config") else {
            return Ok(Value::Null);
        };
        let total = config.fields()?.take(TOTAL);
        let mut config: Value = serde_json::from_str(config.text())?;
        if let (Some(total), Some(fields)) = (total, config.as_object_mut()) {
            let mut fields = fields.iter_mut();
            let stated = fields.find(|(name, _)| name.eq_ignore_ascii_case(TOTAL));
            if let Some((_, stated)) = stated.filter(|(_, stated)| stated.is_f64()) {
                *stated = total.number()?.to_string().into();
            }
        }
        Ok(config)
    }

    /// Reads the text of a genesis file. Without a `config` it must be a public network's, whose rules are built in.
    ///
    /// # Errors
    /// [`GenesisError`] if the text is not in geth's form, forks contradict each other, or the state root that it may
    /// state is not that of its accounts.
    pub fn from_json(text: &str) -> Result<Self, GenesisError> {
        let (mut file, mut warnings) = GenesisFile::parse(text)?;
        let alloc = std::mem::take(&mut file.alloc);
        let root = match alloc.population() {
            // It takes long to compute: a program that loads the state finds out whether the file states the right one.
            Some(_) => file.state_root.ok_or(GenesisError::NoStateRoot)?,
            None => alloc.state_root(),
        };
        if let Some(stated) = file.state_root.filter(|stated| *stated != root) {
            return Err(GenesisError::StateRoot {
                stated,
                computed: root,
            });
        }
        let config = file
            .config
            .take()
            .map(super::raw_config::RawConfig::read)
            .transpose()?;
        let (header, hash, spec) = match config {
            Some((config, more)) => {
                warnings.extend(more);
                let spec = ChainSpec::new(config)?;
                let header = block_zero(&file, &spec, root)?;
                let hash = header.hash_slow();
                (header, hash, spec)
            }
            None => public_block_zero(&file, root)?,
        };
        let genesis = Self {
            header,
            hash,
            alloc,
            spec,
            warnings,
        };
        Ok(genesis.compared_with_presets())
    }

    /// The public network that this is block 0 of.
    pub fn network(&self) -> Option<Network> {
        Network::from_genesis_hash(self.hash)
    }

    /// Checks that `chain`'s blocks can belong to this genesis, as far as they show it: by their first block if it is
    /// number 0 or 1, or by the network that their files are named after.
    ///
    /// # Errors
    /// [`GenesisError::WrongNetwork`] with both networks.
    pub fn check_chain(&self, chain: &ChainInput) -> Result<(), GenesisError> {
        let first = chain.first();
        let chain_genesis = match first.number {
            0 => Some(first.hash),
            1 => Some(first.parent),
            _ => None,
        };
        let own = self.network().map(Network::name);
        let other_name = match (own, chain.network()) {
            (Some(own), Some(chain)) => own != chain,
            _ => false,
        };
        if !other_name && chain_genesis.is_none_or(|hash| hash == self.hash) {
            return Ok(());
        }
        Err(GenesisError::WrongNetwork {
            genesis_network: own.unwrap_or("another network").to_owned(),
            genesis_hash: self.hash,
            chain_network: chain.network().unwrap_or("another network's").to_owned(),
            chain_genesis,
        })
    }

    /// Warns where a public network's file has other rules than those built in.
    fn compared_with_presets(mut self) -> Self {
        let Some(network) = self.network() else {
            return self;
        };
        let known = network.spec();
        if known.terminal_total_difficulty() == self.spec.terminal_total_difficulty() {
            self.spec.merge_block = known.merge_block();
        }
        let differences = known.differences(&self.spec).into_iter();
        self.warnings
            .extend(differences.map(|what| format!("{what} as on {}", network.name())));
        self
    }
}

/// Block 0 by the rules of the public network whose block 0 it is.
fn public_block_zero(
    file: &GenesisFile<'_>,
    root: B256,
) -> Result<(Header, B256, ChainSpec), GenesisError> {
    let mut hash = B256::ZERO;
    for network in Network::ALL {
        let spec = network.spec();
        let header = block_zero(file, &spec, root)?;
        hash = header.hash_slow();
        if hash == network.genesis_hash() {
            return Ok((header, hash, spec));
        }
    }
    Err(GenesisError::NoConfig(hash))
}

/// Makes the header of block 0 as geth does: a field of a later fork is there if the fork is active by number and time,
/// merged or not.
fn block_zero(
    file: &GenesisFile<'_>,
    spec: &ChainSpec,
    state_root: B256,
) -> Result<Header, GenesisError> {
    let (number, timestamp) = (file.number, file.timestamp);
    if number != 0 {
        return Err(GenesisError::Number(number));
    }
    let fork = spec.fork_at(number, timestamp, true);
    let london = spec.fork_at(number, timestamp, false) >= Fork::London;
    let base_fee = file.base_fee_per_gas.unwrap_or(INITIAL_BASE_FEE);
    let blob_gas_used = file.blob_gas_used.unwrap_or(0);
    let excess_blob_gas = file.excess_blob_gas.unwrap_or(0);
    let slot = file.slot_number.unwrap_or(0);
    let from = |first: Fork| london && fork >= first;
    Ok(Header {
        parent_hash: file.parent_hash,
        ommers_hash: EMPTY_OMMER_ROOT_HASH,
        beneficiary: file.coinbase,
        state_root,
        transactions_root: EMPTY_ROOT_HASH,
        receipts_root: EMPTY_ROOT_HASH,
        logs_bloom: Default::default(),
        difficulty: file.difficulty,
        number,
        gas_limit: file.gas_limit,
        gas_used: file.gas_used,
        timestamp,
        extra_data: file.extra_data.clone(),
        mix_hash: file.mix_hash,
        nonce: B64::from(file.nonce),
        base_fee_per_gas: london.then_some(base_fee),
        withdrawals_root: from(Fork::Shanghai).then_some(EMPTY_WITHDRAWALS),
        blob_gas_used: from(Fork::Cancun).then_some(blob_gas_used),
        excess_blob_gas: from(Fork::Cancun).then_some(excess_blob_gas),
        parent_beacon_block_root: from(Fork::Cancun).then_some(B256::ZERO),
        requests_hash: from(Fork::Prague).then_some(EMPTY_REQUESTS_HASH),
        block_access_list_hash: from(Fork::Amsterdam)
            .then(|| keccak256([alloy_rlp::EMPTY_LIST_CODE])),
        slot_number: from(Fork::Amsterdam).then_some(slot),
    })
}

/// The state root by alloy's trie: simple and slow. Tests compare [`Alloc::state_root`] with it.
pub fn naive_state_root(accounts: &Alloc) -> B256 {
    state_root_unhashed(accounts.iter().map(|account| {
        let storage = account
            .storage
            .into_iter()
            .map(|(slot, value)| (slot, B256::from(value)))
            .collect();
        let plain = alloy_genesis::GenesisAccount {
            nonce: Some(account.nonce),
            balance: account.balance,
            code: Some(account.code),
            storage: Some(storage),
            private_key: None,
        };
        (account.address, plain.into_trie_account())
    }))
}
