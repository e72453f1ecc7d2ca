//! Senders of real transactions, ahead of execution and inline.

use std::path::Path;
use std::sync::Arc;

use alloy_consensus::{SignableTransaction, TxLegacy};
use alloy_primitives::{Address, Signature, U256, address};
use arbor_chain::genesis::{Genesis, Network};
use arbor_chain::prepare::{
    InputError, Prefetch, PrefetchOptions, RecoveredBlock, SignatureRules, recover_senders,
};
use arbor_chain::source::{Transaction, open_sources};
use arbor_testdata::find as shared;

fn options(threads: usize, blocks: usize, bytes: usize) -> PrefetchOptions {
    let pool = (threads > 1)
        .then(|| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads")
        })
        .map(Arc::new);
    PrefetchOptions {
        pool,
        blocks,
        bytes,
    }
}

fn prefetch(folder: &Path, options: PrefetchOptions) -> Prefetch {
    let chain = open_sources(&[folder.to_path_buf()]).expect("sound");
    let genesis = chain.genesis_file().expect("beside it");
    let genesis = Genesis::from_file(genesis).expect("sound");
    Prefetch::new(chain, SignatureRules::new(&genesis.spec), options)
}

/// Roots computed ahead are those of the headers, and reading ahead gives what reading inline gives, whatever the bounds.
#[test]
fn reading_ahead_changes_nothing() {
    for name in ["execution-apis", "geth-ethtest", "hive-sync"] {
        let test = "reading_ahead_changes_nothing";
        let Some(folder) = shared(test, &format!("data/chains/{name}")) else {
            continue;
        };
        let inline: Vec<RecoveredBlock> = prefetch(&folder, options(1, 1, 1))
            .collect::<Result<_, _>>()
            .expect(name);
        for block in &inline {
            let header = &block.block.header;
            assert_eq!(
                block.transactions_root, header.transactions_root,
                "{name} {}",
                header.number
            );
            assert_eq!(
                block.ommers_hash, header.ommers_hash,
                "{name} {}",
                header.number
            );
            assert_eq!(
                block.withdrawals_root, header.withdrawals_root,
                "{name} {}",
                header.number
            );
            // One alone is recovered by libsecp256k1, several together in lanes.
            let alone = block.block.body.transactions.iter().map(|transaction| {
                recover_senders(std::slice::from_ref(transaction), false).expect("sound")[0]
            });
            assert_eq!(block.senders, alone.collect::<Vec<_>>());
        }
        for bounds in [
            options(1, 7, 3000),
            options(1, 1024, 8 << 20),
            options(2, 1, 1),
            options(2, 3, 2000),
            options(3, 1024, 8 << 20),
        ] {
            let ahead: Vec<RecoveredBlock> = prefetch(&folder, bounds)
                .collect::<Result<_, _>>()
                .expect(name);
            assert_eq!(ahead.len(), inline.len());
            for (left, right) in ahead.iter().zip(&inline) {
                assert_eq!((left.hash, &left.senders), (right.hash, &right.senders));
            }
        }
    }
}

/// Dropping the consumer in the middle ends the reading thread.
#[test]
fn a_consumer_may_stop_early() {
    let Some(folder) = shared("a_consumer_may_stop_early", "data/chains/hive-sync") else {
        return;
    };
    for bounds in [options(2, 2, 1000), options(2, 1024, 8 << 20)] {
        let mut blocks = prefetch(&folder, bounds);
        assert!(blocks.next().is_some_and(|block| block.is_ok()));
    }
}

/// An error comes after the blocks before it, and nothing after it.
#[test]
fn errors_keep_their_place() {
    let Some(folder) = shared("errors_keep_their_place", "data/chains/geth-ethtest") else {
        return;
    };
    let file = std::fs::File::open(folder.join("chain.rlp.gz")).expect("readable");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(file), &mut bytes)
        .expect("sound");
    let temp = tempfile::tempdir().expect("a folder");
    bytes.truncate(bytes.len() / 2);
    std::fs::write(temp.path().join("chain.rlp"), &bytes).expect("writable");
    std::fs::copy(
        folder.join("genesis.json"),
        temp.path().join("genesis.json"),
    )
    .expect("copied");
    let counts: Vec<usize> = [
        options(1, 1, 1),
        options(1, 1024, 8 << 20),
        options(2, 16, 4000),
        options(2, 1024, 8 << 20),
    ]
    .into_iter()
    .map(|options| {
        let mut blocks = prefetch(temp.path(), options);
        let good = blocks.by_ref().take_while(Result::is_ok).count();
        assert!(blocks.next().is_none(), "nothing after an error");
        good
    })
    .collect();
    assert!(
        counts[0] > 100 && counts.iter().all(|count| *count == counts[0]),
        "{counts:?}"
    );
}

fn signed(r: U256, s: U256) -> Transaction {
    let transaction = TxLegacy {
        gas_price: 1,
        gas_limit: 21_000,
        ..TxLegacy::default()
    };
    transaction.into_signed(Signature::new(r, s, false)).into()
}

fn recover_sender(transaction: Transaction, low_s: bool) -> Result<Address, &'static str> {
    match recover_senders(&[transaction], low_s) {
        Ok(senders) => Ok(senders[0]),
        Err((index, reason)) => {
            assert_eq!(index, 0);
            Err(reason)
        }
    }
}

#[test]
fn signatures_out_of_range_and_high_ones_are_rejected() {
    let order: U256 = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
        .parse()
        .expect("a number");
    let one = U256::ONE;
    for (r, s) in [
        (U256::ZERO, one),
        (one, U256::ZERO),
        (order, one),
        (one, order),
        (U256::MAX, U256::MAX),
    ] {
        assert!(recover_sender(signed(r, s), false).is_err(), "r {r}, s {s}");
    }
    // r = 5 is no x coordinate of a point of the curve.
    assert!(recover_sender(signed(U256::from(5), one), true).is_err());
    // EIP-2: before Homestead (mainnet's block 1,150,000) a high s is valid, then not.
    let high = signed(one, order - one);
    assert!(recover_sender(high.clone(), false).is_ok());
    assert_eq!(
        recover_sender(high.clone(), true),
        Err("its signature has a high s (EIP-2)")
    );
    let half = order >> 1;
    assert!(recover_sender(signed(one, half), true).is_ok());
    assert!(recover_sender(signed(one, half + one), true).is_err());
    assert_eq!(
        SignatureRules::new(&Network::Sepolia.spec()),
        SignatureRules::new(&Network::Hoodi.spec())
    );
}

/// Of many transactions together, the first one without a valid signature is named, whatever the others have.
#[test]
fn the_first_broken_one_of_many_is_named() {
    let (one, five) = (U256::ONE, U256::from(5));
    let good = |n: usize| signed(one, U256::from(n + 1));
    for broken in [0, 7, 8, 15, 16, 63, 64, 99] {
        let mut transactions: Vec<_> = (0..100).map(good).collect();
        let alone = |transaction: &Transaction| recover_sender(transaction.clone(), true);
        let expected: Vec<_> = transactions.iter().map(alone).collect();
        let together = recover_senders(&transactions, true).expect("sound");
        assert!(together.iter().map(|sender| Ok(*sender)).eq(expected));
        transactions[broken] = signed(five, one);
        transactions[99] = signed(U256::ZERO, one);
        let (index, reason) = recover_senders(&transactions, true).expect_err("broken");
        assert_eq!(index, broken);
        assert_eq!(reason, "its signature is no one's");
    }
}

/// The example of EIP-155: nonce 9, to 0x3535..., one ether, chain 1, signed with the key 0x4646...
#[test]
fn the_example_of_eip_155_has_its_sender() {
    use alloy_eips::eip2718::Decodable2718;
    let bytes = "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a0\
                 28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b\
                 3800ccf555c9f3dc64214b297fb1966a3b6d83";
    let transaction =
        Transaction::decode_2718_exact(&hex::decode(bytes).expect("hex")).expect("a transaction");
    let sender = recover_sender(transaction, true).expect("sound");
    assert_eq!(sender, address!("9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f"));
}

/// A transaction whose signature is broken is named with block, place and hash.
#[test]
fn a_broken_signature_is_named() {
    let Some(folder) = shared("a_broken_signature_is_named", "data/chains/execution-apis") else {
        return;
    };
    let mut chain = open_sources(&[folder]).expect("sound");
    let spec = Network::Sepolia.spec();
    let block = chain.find(|block| {
        block
            .as_ref()
            .is_ok_and(|b| b.block.body.transactions.len() > 2)
    });
    let mut block = block.expect("there").expect("sound");
    block.block.body.transactions[1] = signed(U256::from(5), U256::ONE);
    let number = block.block.header.number;
    let hash = *block.block.body.transactions[1].tx_hash();
    let error =
        arbor_chain::prepare::recover_block(block, SignatureRules::new(&spec)).expect_err("broken");
    let InputError::Signature {
        number: named,
        index,
        hash: of,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((named, index, of), (number, 1, hash));
}
