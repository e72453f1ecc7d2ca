//! Executes a chain over a state in memory, with everything verified but state roots, and says where the time
//! went: the floor of what replaying it costs.
//!
//! `cargo run --release -p arbor-chain --example execute -- FOLDER [--plain]`, with genesis.json in the folder.
//! `--plain` also runs a plain revm loop over revm's own cache, for chains that begin with Cancun: the same
//! blocks, no receipts, no checks but gas, no changes collected.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alloy_consensus::{Transaction as _, Typed2718};
use alloy_eips::eip4788::BEACON_ROOTS_ADDRESS;
use alloy_primitives::U256;
use arbor_chain::executor::{Ancestor, BlockInput, Executor, MemoryState, RecentBlocks, Timings};
use arbor_chain::genesis::Genesis;
use arbor_chain::prepare::{Prefetch, PrefetchOptions, RecoveredBlock, SignatureRules};
use arbor_chain::source::open_sources;
use revm::bytecode::Bytecode;
use revm::context::{BlockEnv, TxEnv};
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::hardfork::SpecId;
use revm::state::AccountInfo;
use revm::{Context, Database, ExecuteCommitEvm, MainBuilder, MainContext, SystemCallCommitEvm};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(
        std::env::args()
            .nth(1)
            .ok_or("usage: execute FOLDER [--plain]")?,
    );
    let plain = std::env::args().nth(2).is_some_and(|arg| arg == "--plain");
    // State roots are not looked at, genesis' own included.
    let genesis = Genesis::from_file(&folder.join("genesis.json"))?;
    let input = open_sources(&[folder])?;
    let rules = SignatureRules::new(&genesis.spec);
    let mut state = MemoryState::from_genesis(&genesis.alloc);
    let mut executor = Executor::new();
    let mut chain = RecentBlocks::default();
    let (mut blocks, mut transactions, mut gas) = (0u64, 0usize, 0u64);
    let mut total = Timings::default();
    let (mut reading, mut applying) = (Duration::ZERO, Duration::ZERO);
    let mut plain = plain.then(|| Plain::new(&genesis));
    let mut source = Prefetch::new(input, rules, PrefetchOptions::default());
    loop {
        let start = Instant::now();
        let Some(block) = source.next().transpose()? else {
            break;
        };
        reading += start.elapsed();
        let header = &block.block.header;
        let next = Ancestor {
            hash: block.hash,
            header: header.clone(),
            ommers: block
                .block
                .body
                .ommers
                .iter()
                .map(|ommer| ommer.hash_slow())
                .collect(),
        };
        if header.number == 0 {
            chain.push(next);
            continue;
        }
        if chain.latest().is_none() {
            chain.push(Ancestor {
                // As the first block says: genesis' state root was not computed.
                hash: header.parent_hash,
                header: genesis.header.clone(),
                ommers: Vec::new(),
            });
        }
        let parent = chain.latest().ok_or("no parent")?;
        let input = BlockInput::new(&block, &parent.header, parent.hash, &genesis.spec);
        let output = executor.execute(&input, &state, &chain, None)?;
        let start = Instant::now();
        state.apply(&output.changes);
        chain.push(next);
        applying += start.elapsed();
        if let Some(plain) = &mut plain {
            plain.execute(&block)?;
        }
        blocks += 1;
        transactions += output.receipts.len();
        gas += output.gas_used;
        total.checks += output.timings.checks;
        total.execution += output.timings.execution;
        total.receipts += output.timings.receipts;
        total.changes += output.timings.changes;
    }
    let supply: U256 = state.accounts().map(|(_, account)| account.balance).sum();
    println!("blocks {blocks}, transactions {transactions}, gas {gas}, supply {supply} wei");
    println!("read, decode, recover {reading:?}; apply to memory {applying:?}");
    println!("{total:#?}");
    let execution = (total.execution + total.changes).as_secs_f64();
    println!(
        "execution and changes: {:.2} Ggas/s",
        gas as f64 / execution / 1e9
    );
    if let Some(plain) = plain {
        let seconds = plain.time.as_secs_f64();
        println!(
            "plain revm loop: {seconds:.3} s, {:.2} Ggas/s",
            gas as f64 / seconds / 1e9
        );
        println!("execution and changes / plain: {:.3}", execution / seconds);
    }
    Ok(())
}

/// revm as its own documentation uses it: a cache in memory, one EVM for all blocks, a commit per transaction.
struct Plain {
    db: CacheDB<EmptyDB>,
    time: Duration,
}

impl Plain {
    fn new(genesis: &Genesis) -> Self {
        let mut db = CacheDB::new(EmptyDB::new());
        for account in genesis.alloc.iter() {
            let code = Bytecode::new_raw(account.code.clone());
            let info = AccountInfo {
                nonce: account.nonce,
                balance: account.balance,
                code_hash: code.hash_slow(),
                code: Some(code),
                account_id: None,
            };
            db.insert_account_info(account.address, info);
            for (slot, value) in &account.storage {
                let slot = U256::from_be_bytes(slot.0);
                db.insert_account_storage(account.address, slot, *value)
                    .expect("in memory");
            }
        }
        Self {
            db,
            time: Duration::ZERO,
        }
    }

    fn execute(&mut self, block: &RecoveredBlock) -> Result<(), Box<dyn Error>> {
        let header = &block.block.header;
        let mut env = BlockEnv {
            number: U256::from(header.number),
            beneficiary: header.beneficiary,
            timestamp: U256::from(header.timestamp),
            gas_limit: header.gas_limit,
            basefee: header.base_fee_per_gas.unwrap_or_default(),
            prevrandao: Some(header.mix_hash),
            ..BlockEnv::default()
        };
        env.set_blob_excess_gas_and_price(header.excess_blob_gas.unwrap_or_default(), 3_338_477);
        let start = Instant::now();
        let mut evm = Context::mainnet()
            .with_db(&mut self.db)
            .with_block(env)
            .modify_cfg_chained(|cfg| cfg.set_spec_and_mainnet_gas_params(SpecId::CANCUN))
            .build_mainnet();
        let mut gas_used = 0;
        if let Some(root) = header.parent_beacon_block_root {
            evm.system_call_commit(BEACON_ROOTS_ADDRESS, root.0.into())?;
        }
        for (tx, sender) in block.block.body.transactions.iter().zip(&block.senders) {
            let env = TxEnv {
                tx_type: tx.ty(),
                caller: *sender,
                gas_limit: tx.gas_limit(),
                gas_price: tx.max_fee_per_gas(),
                kind: tx.kind(),
                value: tx.value(),
                data: tx.input().clone(),
                nonce: tx.nonce(),
                chain_id: tx.chain_id(),
                access_list: tx.access_list().cloned().unwrap_or_default(),
                gas_priority_fee: tx.max_priority_fee_per_gas(),
                ..TxEnv::default()
            };
            gas_used += evm.transact_commit(env)?.tx_gas_used();
        }
        drop(evm);
        for withdrawal in block.block.body.withdrawals.iter().flatten() {
            let mut info = self.db.basic(withdrawal.address)?.unwrap_or_default();
            info.balance += U256::from(withdrawal.amount) * U256::from(1_000_000_000);
            self.db.insert_account_info(withdrawal.address, info);
        }
        self.time += start.elapsed();
        assert_eq!(gas_used, header.gas_used, "gas of block {}", header.number);
        Ok(())
    }
}
