//! A contract that checks pairings with EVM384, deployed on a generated chain and called in a
//! block.
//!
//! EVM384 (opcodes for arithmetic modulo numbers of up to 384 bits) is a rule of the chain: a
//! database remembers it, and every block is executed by it. The example makes a chain and adds two
//! blocks to it. The first one pays a new account. In the second one the account deploys the
//! pairing contract and a safe, and opens the safe with a pairing check that holds. Then the whole
//! chain is replayed into a database, which verifies every signature, header and root.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

use alloy_consensus::{
    Block, BlockBody, EMPTY_OMMER_ROOT_HASH, Header, SignableTransaction as _, TxEip1559, proofs,
};
use alloy_eips::eip1559::BaseFeeParams;
use alloy_eips::eip4895::{Withdrawal, Withdrawals};
use alloy_rlp::Encodable as _;
use arbor_chain::executor::{Evm384, Executor, GasSchedule, Interface, RecentBlocks, Rules};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{RecoveredBlock, SignatureRules, prepare};
use arbor_chain::replay::Replay;
use arbor_chain::rules::ChainRules;
use arbor_chain::source::{Transaction, open_sources};
use arbor_database::primitives::{Address, B256, Bytes, Signature, TxKind, U256};
use arbor_database::{
    BlockRef, Budget, Folder, OpenOptions, Remembered, State, StateView, Verdict, in_memory,
    network, trees,
};
use arbor_evm384::build::Goal;
use arbor_evm384_programs::BuiltIn;
use arbor_generator::{GeneratorSettings, Preset, generate};
use secp256k1::ecdsa::RecoverableSignature;
use secp256k1::{Message, PublicKey, SecretKey};

const MEMORY: u64 = 64 << 20;

/// EVM384 with operands in one word of the stack.
const RULES: ChainRules = ChainRules {
    witness_gas: None,
    evm384: Some(Evm384 {
        interface: Interface::V7,
        schedule: GasSchedule::MODEL_A,
    }),
};

/// Init code that deploys a code.
fn init(code: &[u8]) -> Bytes {
    let [high, low] = (code.len() as u16).to_be_bytes();
    // PUSH2 length, DUP1, PUSH1 10, PUSH0, CODECOPY, PUSH0, RETURN
    let head = [0x61, high, low, 0x80, 0x60, 10, 0x5f, 0x39, 0x5f, 0xf3];
    [&head, code].concat().into()
}

/// The code of a safe: hands its calldata to the pairing contract, and stores in slot 0 whether the
/// check holds.
fn safe(pairing: Address) -> Vec<u8> {
    // CALLDATASIZE, PUSH0, PUSH0, CALLDATACOPY; PUSH1 32, PUSH0, CALLDATASIZE, PUSH0, PUSH20
    // address
    let copy = [0x36, 0x5f, 0x5f, 0x37, 0x60, 0x20, 0x5f, 0x36, 0x5f, 0x73];
    // GAS, STATICCALL; PUSH0, MLOAD, MUL; PUSH0, SSTORE, STOP
    let call = [0x5a, 0xfa, 0x5f, 0x51, 0x02, 0x5f, 0x55, 0x00];
    [&copy[..], pairing.as_slice(), &call].concat()
}

/// An account with its key.
struct Signer {
    key: SecretKey,
    address: Address,
    chain_id: u64,
}

impl Signer {
    fn new(chain_id: u64) -> Result<Self, secp256k1::Error> {
        let key = SecretKey::from_secret_bytes([0x42; 32])?;
        let public = PublicKey::from_secret_key(&key).serialize_uncompressed();
        let address = Address::from_raw_public_key(&public[1..]);
        Ok(Self {
            key,
            address,
            chain_id,
        })
    }

    fn sign(&self, nonce: u64, to: TxKind, input: Bytes) -> Transaction {
        let transaction = TxEip1559 {
            chain_id: self.chain_id,
            nonce,
            gas_limit: 8_000_000,
            max_fee_per_gas: 10_000_000_000,
            to,
            input,
            ..TxEip1559::default()
        };
        let message = Message::from_digest(transaction.signature_hash().0);
        let signed = RecoverableSignature::sign_ecdsa_recoverable(message, &self.key);
        let (recovery, bytes) = signed.serialize_compact();
        let [r, s] = [&bytes[..32], &bytes[32..]].map(U256::from_be_slice);
        let signature = Signature::new(r, s, recovery.to_u8() & 1 == 1);
        transaction.into_signed(signature).into()
    }
}

/// Makes blocks on top of a chain, whose state it keeps in memory.
struct Maker {
    genesis: Genesis,
    state: State,
    executor: Executor,
    parent: Header,
}

impl Maker {
    /// Begins with the blocks of a chain.
    fn new(genesis: &Genesis, blocks: Vec<RecoveredBlock>) -> Result<Self, Box<dyn Error>> {
        let tree = trees::MPT.tree();
        let mut state = in_memory(tree, network(genesis), Budget::new(MEMORY))?;
        genesis.commit(&mut state, &|_, _| ())?;
        let mut maker = Self {
            genesis: genesis.clone(),
            state,
            executor: RULES.executor(),
            parent: genesis.header.clone(),
        };
        for RecoveredBlock { block, senders, .. } in blocks {
            let made = maker.execute(block.clone(), &senders)?;
            assert_eq!(made, block, "EVM384 changes no block that does not use it");
        }
        Ok(maker)
    }

    /// Executes a block, and completes its header.
    fn execute(
        &mut self,
        mut block: Block<Transaction>,
        senders: &[Address],
    ) -> Result<Block<Transaction>, Box<dyn Error>> {
        let rules = Rules::at(&self.genesis.spec, &block.header, &self.parent, None);
        let earlier = RecentBlocks::default();
        let executor = &mut self.executor;
        let output = executor.run(&rules, &block, senders, &self.state, &earlier, None)?;
        let computed = self.state.compute(&output.changes)?;
        let header = &mut block.header;
        header.gas_used = output.gas_used;
        header.logs_bloom = output.logs_bloom;
        header.requests_hash = output.requests_hash();
        header.receipts_root = output.receipts_root.ok_or("receipts before Byzantium")?;
        header.state_root = computed.root();
        let made = BlockRef::new(header.number, header.hash_slow());
        self.state.commit(&made, computed)?;
        self.parent = header.clone();
        Ok(block)
    }

    /// Makes the next block.
    fn block(
        &mut self,
        signer: &Signer,
        transactions: Vec<Transaction>,
        withdrawals: Vec<Withdrawal>,
    ) -> Result<Block<Transaction>, Box<dyn Error>> {
        let senders = vec![signer.address; transactions.len()];
        let parent = &self.parent;
        let header = Header {
            parent_hash: parent.hash_slow(),
            ommers_hash: EMPTY_OMMER_ROOT_HASH,
            transactions_root: proofs::calculate_transaction_root(&transactions),
            number: parent.number + 1,
            gas_limit: parent.gas_limit,
            timestamp: parent.timestamp + 12,
            base_fee_per_gas: parent.next_block_base_fee(BaseFeeParams::ethereum()),
            withdrawals_root: Some(proofs::calculate_withdrawals_root(&withdrawals)),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::ZERO),
            ..Header::default()
        };
        let body = BlockBody {
            transactions,
            ommers: Vec::new(),
            withdrawals: Some(Withdrawals::new(withdrawals)),
        };
        self.execute(Block { header, body }, &senders)
    }
}

/// The blocks of a folder or a file from a number on.
fn read(path: &Path, genesis: &Genesis, from: u64) -> Result<Vec<RecoveredBlock>, Box<dyn Error>> {
    let mut source = open_sources(&[path.to_owned()])?;
    source.skip_to(from)?;
    let mut blocks = Vec::new();
    while let Some(raw) = source.next_raw()? {
        blocks.push(prepare(raw, SignatureRules::new(&genesis.spec))?);
    }
    Ok(blocks)
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let (chain, more, db) = (
        dir.path().join("chain"),
        dir.path().join("more.rlp"),
        dir.path().join("db"),
    );
    let settings = GeneratorSettings {
        blocks: 4,
        gas_limit: 30_000_000,
        ..Preset::Tiny.settings()
    };
    generate(&settings, &chain, |_| ControlFlow::Continue(()))?;
    let text = std::fs::read_to_string(chain.join("genesis.json"))?;
    let genesis = Genesis::from_json(&text)?;
    let generated = read(&chain, &genesis, 1)?;

    let mut maker = Maker::new(&genesis, generated.clone())?;
    let signer = Signer::new(settings.chain_id)?;
    let payment = Withdrawal {
        index: 1_000,
        validator_index: 1,
        address: signer.address,
        // One ether, in units of 10^9 wei.
        amount: 1_000_000_000,
    };
    let paid = maker.block(&signer, Vec::new(), vec![payment])?;
    let check = BuiltIn::named("pairing-check").ok_or("no such program")?;
    let code = check.program(Interface::V7, Goal::Gas).code;
    let [pairing_at, safe_at] = [0, 1].map(|nonce| signer.address.create(nonce));
    let transactions = vec![
        signer.sign(0, TxKind::Create, init(&code)),
        signer.sign(1, TxKind::Create, init(&safe(pairing_at))),
        // The sample is a product of pairings that is one.
        signer.sign(2, TxKind::Call(safe_at), check.sample().into()),
    ];
    let called = maker.block(&signer, transactions, Vec::new())?;
    let mut export = Vec::new();
    for block in [&paid, &called] {
        block.encode(&mut export);
    }
    std::fs::write(&more, export)?;

    // The database remembers the rule, and every block is verified.
    let known = trees::standard();
    let folder = Folder::new(&db, &known);
    let state = OpenOptions::new().network(network(&genesis)).open(&db)?;
    let what = Remembered {
        genesis: Some(&text),
        rules: Some(RULES),
        ..Remembered::default()
    };
    folder.remember(state.tree().kind(), what)?;
    let mut replay = Replay::new(state, &genesis, 1 << 16)?.with_executor(RULES.executor());
    for block in generated {
        replay.block(block)?;
    }
    replay.into_state().flush()?;
    let mut replay = folder.resume(MEMORY)?.into_replay()?;
    let first = paid.header.number;
    for block in read(&more, &genesis, first)? {
        replay.block(block)?;
    }
    let mut state = replay.into_state();
    state.flush()?;

    let deployed = state.account(pairing_at)?.ok_or("it is not deployed")?;
    assert_eq!(state.code(deployed.code_hash)?, code);
    assert_eq!(state.storage(safe_at, U256::ZERO)?, U256::from(1));
    let proof = state.prove(safe_at, &[U256::ZERO])?;
    let Verdict::True(claims) = proof.verify(called.header.state_root)? else {
        return Err("the proof does not hold".into());
    };
    assert_eq!(claims.accounts[0].slots[0].1, Some(U256::from(1)));
    println!(
        "block {}: deployed {} bytes at {pairing_at}, and opened the safe; {} gas in all",
        called.header.number,
        code.len(),
        called.header.gas_used
    );
    Ok(())
}
