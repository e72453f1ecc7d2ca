//! Reading real chains, and rejecting what is not one.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use alloy_consensus::Header;
use alloy_primitives::B256;
use alloy_rlp::Encodable;
use arbor_chain::source::era1::Era1File;
use arbor_chain::source::{ChainInput, SourceBlock, SourceError, open_sources};
use arbor_testdata::{find as shared, whole};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;

/// Blocks (with block 0, which some exports leave out) and transactions of each chain, from the data's index.
const CHAINS: [(&str, u64, usize); 7] = [
    ("mainnet-0-16383", 16_384, 0),
    ("sepolia-0-40959", 40_960, 1),
    ("coregeth-foundation-condense-2", 1_200, 29_983),
    ("coregeth-classic-condense", 1_468, 17_710),
    ("hive-sync", 3_001, 546),
    ("geth-ethtest", 601, 603),
    ("execution-apis", 55, 249),
];

fn open(paths: &[&Path]) -> Result<ChainInput, SourceError> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    open_sources(&paths)
}

/// Reads everything; the first error ends it.
fn read_all(paths: &[&Path]) -> Result<Vec<SourceBlock>, SourceError> {
    open(paths)?.collect()
}

/// The bytes of an export, decompressed.
fn export_bytes(folder: &Path) -> Vec<u8> {
    let file = fs::File::open(folder.join("chain.rlp.gz")).expect("readable");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut MultiGzDecoder::new(file), &mut bytes).expect("sound gzip");
    bytes
}

/// Length of the RLP item at the front.
fn item_len(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    let head = alloy_rlp::Header::decode(&mut rest).expect("an item");
    bytes.len() - rest.len() + head.payload_length
}

/// The blocks of an export as slices.
fn split(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    while !bytes.is_empty() {
        let (block, rest) = bytes.split_at(item_len(bytes));
        blocks.push(block);
        bytes = rest;
    }
    blocks
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("writable");
    path
}

#[test]
fn every_chain_decodes_to_its_listed_size() {
    let test = "every_chain_decodes_to_its_listed_size";
    for (name, blocks, transactions) in CHAINS {
        let Some(folder) = shared(test, &format!("data/chains/{name}")) else {
            continue;
        };
        let (mut blocks_read, mut last, mut sum) = (0, 0, 0);
        let chain = open(&[&folder]).expect(name);
        let first = chain.first().number;
        for block in chain {
            let block = block.expect(name);
            assert_eq!(
                alloy_rlp::encode(&block.block).len(),
                block.rlp_len,
                "{name}"
            );
            assert_eq!(block.block.header.hash_slow(), block.hash, "{name}");
            blocks_read += 1;
            last = block.block.header.number;
            sum += block.block.body.transactions.len();
        }
        assert_eq!((last + 1, sum), (blocks, transactions), "{name}");
        assert_eq!(blocks_read, blocks - first, "{name}");
    }
}

/// The era1 files and the export of a network hold the same blocks, and a receipt for each transaction.
#[test]
fn era1_and_export_hold_the_same_blocks() {
    let test = "era1_and_export_hold_the_same_blocks";
    let Some(data) = whole(test, "data") else {
        return;
    };
    for (network, export) in [
        ("mainnet", "mainnet-0-16383"),
        ("sepolia", "sepolia-0-40959"),
    ] {
        let mut files: Vec<PathBuf> = fs::read_dir(data.join("era1"))
            .expect("readable")
            .map(|entry| entry.expect("entry").path())
            .filter(|path| path.to_string_lossy().contains(&format!("{network}-0000")))
            .collect();
        files.reverse();
        let era1 = open_sources(&files).expect("sound files, in any order");
        assert_eq!(era1.network(), Some(network));
        let export = open(&[&data.join("chains").join(export)]).expect("sound export");
        for (left, right) in era1.zip(export) {
            let (left, right) = (left.expect("era1"), right.expect("export"));
            assert_eq!(left.block, right.block);
            assert_eq!((left.hash, left.rlp_len), (right.hash, right.rlp_len));
            let receipts = left.receipts.expect("era1 has them");
            if left.block.header.number.is_multiple_of(64) {
                let count = left.block.body.transactions.len();
                assert_eq!(receipts.decode().expect("sound receipts").len(), count);
            }
        }
    }
}

#[test]
fn an_era1_file_without_earlier_ones_decodes() {
    let test = "an_era1_file_without_earlier_ones_decodes";
    let Some(file) = shared(test, "data/era1/sepolia-00021-b8814b14.era1") else {
        return;
    };
    let mut transactions = 0;
    for block in open(&[&file]).expect("sound") {
        let block = block.expect("sound block");
        let receipts = block.receipts.expect("era1 has them");
        let receipts = receipts.decode().expect("sound receipts");
        assert_eq!(receipts.len(), block.block.body.transactions.len());
        transactions += receipts.len();
    }
    assert_eq!(transactions, 93);
}

#[test]
fn skipping_goes_on_at_the_block_wanted() {
    let test = "skipping_goes_on_at_the_block_wanted";
    let Some(data) = whole(test, "data") else {
        return;
    };
    let era1 = [
        data.join("era1/mainnet-00000-5ec1ffb8.era1"),
        data.join("era1/mainnet-00001-a5364e9a.era1"),
    ];
    let export = [data.join("chains/mainnet-0-16383")];
    let hash_of = |paths: &[PathBuf], number: u64| {
        let block = open_sources(paths)
            .expect("sound")
            .nth(usize::try_from(number).expect("small"));
        block.expect("there").expect("sound").hash
    };
    for wanted in [0, 1, 700, 8191, 8192, 9000, 16_383] {
        for paths in [&era1[..], &export[..]] {
            let mut chain = open_sources(paths).expect("sound");
            let passed = chain.skip_to(wanted).expect("in range");
            assert_eq!(passed.map(|link| link.number), wanted.checked_sub(1));
            let block = chain.next().expect("there").expect("sound");
            assert_eq!(block.block.header.number, wanted);
            if wanted < 1000 {
                assert_eq!(block.hash, hash_of(paths, wanted));
            }
        }
    }
    for paths in [&era1[..], &export[..]] {
        let mut chain = open_sources(paths).expect("sound");
        assert_eq!(
            chain
                .skip_to(20_000)
                .expect("past the end")
                .map(|link| link.number),
            Some(16_383)
        );
        assert!(chain.next().is_none());
        let mut rest = open_sources(&paths[paths.len() - 1..]).expect("sound");
        let first = rest.first().number;
        if first > 0 {
            assert!(matches!(
                rest.skip_to(first - 1),
                Err(SourceError::OutOfRange { .. })
            ));
        }
    }
}

#[test]
fn gzip_of_several_members_and_plain_are_read_alike() {
    let test = "gzip_of_several_members_and_plain_are_read_alike";
    let Some(folder) = shared(test, "data/chains/execution-apis") else {
        return;
    };
    let bytes = export_bytes(&folder);
    let temp = tempfile::tempdir().expect("a folder");
    let mut gzip = Vec::new();
    for part in bytes.chunks(7001) {
        let mut encoder = GzEncoder::new(&mut gzip, Compression::fast());
        encoder.write_all(part).expect("in memory");
        encoder.finish().expect("in memory");
    }
    let plain = read_all(&[&write(temp.path(), "a.rlp", &bytes)]).expect("sound");
    let members = read_all(&[&write(temp.path(), "b.rlp.gz", &gzip)]).expect("sound");
    assert_eq!(plain.len(), 54);
    for (left, right) in plain.iter().zip(&members) {
        assert_eq!(left.block, right.block);
        assert_eq!(left.position.offset, right.position.offset);
    }
    gzip.truncate(gzip.len() - 9);
    let error = read_all(&[&write(temp.path(), "c.rlp.gz", &gzip)]).expect_err("cut short");
    assert!(matches!(error, SourceError::Truncated { .. }), "{error}");
}

#[test]
fn missing_repeated_and_foreign_blocks_are_named() {
    let test = "missing_repeated_and_foreign_blocks_are_named";
    let Some(folder) = shared(test, "data/chains/execution-apis") else {
        return;
    };
    let Some(hive) = shared(test, "data/chains/hive-sync") else {
        return;
    };
    let bytes = export_bytes(&folder);
    let blocks = split(&bytes);
    let foreign = export_bytes(&hive);
    let foreign = split(&foreign);
    let temp = tempfile::tempdir().expect("a folder");
    let first = open(&[&folder]).expect("sound").first().number;
    let index = |number: u64| usize::try_from(number - first).expect("small");
    let file = |name: &str, blocks: &[&[u8]]| write(temp.path(), name, &blocks.concat());
    let low = file("low.rlp", &blocks[..index(20)]);
    let high = file("high.rlp", &blocks[index(20)..]);
    assert_eq!(read_all(&[&high, &low]).expect("in any order").len(), 54);

    let gap = file("gap.rlp", &blocks[index(23)..]);
    let error = read_all(&[&low, &gap]).expect_err("a gap");
    let SourceError::Gap {
        first_missing,
        last_missing,
        before,
        after,
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(
        (first_missing, last_missing, &*before.file, &*after.file),
        (20, 22, &*low, &*gap)
    );

    let again = file("again.rlp", &blocks[index(15)..]);
    let error = read_all(&[&low, &again]).expect_err("an overlap");
    let SourceError::Overlap {
        number,
        before,
        after,
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((number, &*before.file, &*after.file), (15, &*low, &*again));

    let at_20 = foreign
        .iter()
        .position(|block| open_one(temp.path(), block).first().number == 20)
        .expect("there");
    let other = file("other.rlp", &foreign[at_20..]);
    let error = read_all(&[&low, &other]).expect_err("another chain");
    let SourceError::ParentMismatch(broken) = error else {
        panic!("{error}")
    };
    assert_eq!((broken.number, broken.previous.clone()), (20, low.clone()));
    assert!(broken.to_string().contains("other.rlp"), "{broken}");

    let inside = file("inside.rlp", &[blocks[0], blocks[1], blocks[3]]);
    assert!(
        matches!(read_all(&[&inside]), Err(SourceError::Gap { first_missing, .. }) if first_missing == first_of(&folder) + 2)
    );

    // Both of these named one file twice, and a single block as "blocks 50 to 50".
    let number = first_of(&folder);
    let message = |blocks: &[&[u8]]| {
        let file = file("one.rlp", blocks);
        let error = read_all(&[&file]).expect_err("out of order").to_string();
        let (name, rest) = error.split_once(": ").expect("a file first");
        assert_eq!(Path::new(name), file);
        rest.to_owned()
    };
    let ends = [blocks[0].len(), blocks[0].len() + blocks[1].len()];
    let (one, two, three) = (number + 1, number + 2, number + 3);
    assert_eq!(
        message(&[blocks[0], blocks[1], blocks[3]]),
        format!(
            "block {two} is missing between block {one} at offset {} and block {three} at offset {}",
            ends[0], ends[1]
        )
    );
    assert_eq!(
        message(&[blocks[0], blocks[1], blocks[1]]),
        format!(
            "block {one} is there twice, at offset {} and at offset {}",
            ends[0], ends[1]
        )
    );
    assert_eq!(
        message(&[blocks[0], blocks[1], blocks[0]]),
        format!(
            "block {number} at offset {} comes after block {one} at offset {}",
            ends[1], ends[0]
        )
    );
}

fn first_of(folder: &Path) -> u64 {
    open(&[folder]).expect("sound").first().number
}

fn open_one(folder: &Path, block: &[u8]) -> ChainInput {
    open(&[&write(folder, "one.rlp", block)]).expect("sound")
}

#[test]
fn networks_are_not_mixed() {
    let Some(data) = whole("networks_are_not_mixed", "data") else {
        return;
    };
    let error = open(&[&data.join("era1")]).expect_err("two networks in one folder");
    assert!(matches!(error, SourceError::NetworkMixup { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains("mainnet blocks") && message.contains("sepolia blocks"),
        "{message}"
    );

    let chains = data.join("chains");
    let error = open(&[
        &chains.join("mainnet-0-16383"),
        &chains.join("sepolia-0-40959"),
    ])
    .expect_err("mixed");
    assert!(matches!(error, SourceError::NetworkMixup { .. }), "{error}");

    let era1 = data.join("era1");
    let ends = [
        era1.join("sepolia-00004-e93b3f11.era1"),
        era1.join("sepolia-00021-b8814b14.era1"),
    ];
    let error = open_sources(&ends).expect_err("a gap");
    assert!(
        matches!(
            error,
            SourceError::Gap {
                first_missing: 40_960,
                last_missing: 172_031,
                ..
            }
        ),
        "{error}"
    );

    let temp = tempfile::tempdir().expect("a folder");
    let renamed = temp.path().join("sepolia-00000-5ec1ffb8.era1");
    fs::copy(era1.join("mainnet-00000-5ec1ffb8.era1"), &renamed).expect("copied");
    let error = open(&[&renamed]).expect_err("misnamed");
    assert!(
        error
            .to_string()
            .contains("named sepolia, but it holds mainnet blocks"),
        "{error}"
    );
}

#[test]
fn folders_and_files_that_are_no_chain_say_so() {
    let temp = tempfile::tempdir().expect("a folder");
    let message = |path: &Path| open(&[path]).expect_err("no chain").to_string();
    assert!(message(temp.path()).contains("neither chain.rlp, chain.rlp.gz nor *.era1"));
    assert!(message(&write(temp.path(), "empty.rlp", b"")).contains("empty"));
    assert!(message(&write(temp.path(), "x.json", b"{}")).contains("neither an RLP export"));
    assert!(message(&temp.path().join("absent")).contains("absent"));
    write(temp.path(), "chain.rlp", b"");
    write(temp.path(), "chain.rlp.gz", b"");
    assert!(message(temp.path()).contains("more than one chain"));
    assert!(matches!(
        open_sources(&[]),
        Err(SourceError::NotAChain { .. })
    ));
}

/// A short era1 file made of the first blocks of a real one: version, blocks, accumulator, index.
fn short_era1(file: &Path, blocks: usize) -> (Vec<u8>, Vec<usize>) {
    let bytes = fs::read(file).expect("readable");
    let mut borders = vec![0];
    let mut at = 0;
    while borders.len() < 2 + 4 * blocks {
        let len = u32::from_le_bytes(bytes[at + 2..at + 6].try_into().expect("four bytes"));
        at += 8 + len as usize;
        borders.push(at);
    }
    let mut short = bytes[..at].to_vec();
    let mut era1 = Era1File::open(file).expect("sound");
    let mut leaves: Vec<[u8; 32]> = Vec::new();
    for _ in 0..blocks {
        let block = era1
            .next_raw()
            .expect("sound")
            .expect("there")
            .decode()
            .expect("sound");
        let total = block
            .total_difficulty
            .expect("era1 has it")
            .to_le_bytes::<32>();
        leaves.push(sha256(&block.hash.0, &total));
    }
    leaves.resize(8192, [0; 32]);
    while leaves.len() > 1 {
        leaves = leaves
            .chunks(2)
            .map(|pair| sha256(&pair[0], &pair[1]))
            .collect();
    }
    let mut count = [0; 32];
    count[..8].copy_from_slice(&(blocks as u64).to_le_bytes());
    entry(&mut short, 0x07, &sha256(&leaves[0], &count));
    borders.push(short.len());
    let index_at = short.len();
    let mut index = 0u64.to_le_bytes().to_vec();
    for block in 0..blocks {
        let offset = borders[1 + 4 * block] as i64 - index_at as i64;
        index.extend(offset.to_le_bytes());
    }
    index.extend((blocks as u64).to_le_bytes());
    entry(&mut short, 0x3266, &index);
    (short, borders)
}

fn entry(out: &mut Vec<u8>, kind: u16, data: &[u8]) {
    out.extend(kind.to_le_bytes());
    out.extend(u32::try_from(data.len()).expect("small").to_le_bytes());
    out.extend([0, 0]);
    out.extend(data);
}

fn sha256(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::new()
        .chain_update(left)
        .chain_update(right)
        .finalize()
        .into()
}

#[test]
fn era1_files_cut_or_changed_anywhere_are_rejected() {
    let test = "era1_files_cut_or_changed_anywhere_are_rejected";
    let Some(file) = shared(test, "data/era1/mainnet-00000-5ec1ffb8.era1") else {
        return;
    };
    let (bytes, borders) = short_era1(&file, 3);
    let temp = tempfile::tempdir().expect("a folder");
    let path = temp.path().join("short.era1");
    let read = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("writable");
        let blocks = read_all(&[&path])?;
        Ok::<Vec<B256>, SourceError>(blocks.iter().map(|block| block.hash).collect())
    };
    let sound = read(&bytes).expect("sound");
    assert_eq!(sound.len(), 3);
    for len in borders
        .iter()
        .copied()
        .chain([1, 7, 9, 100, bytes.len() - 1, bytes.len() - 8])
    {
        assert!(read(&bytes[..len]).is_err(), "cut at {len}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        // Snappy has more than one encoding of the same data, so a flip may leave the blocks as they were.
        if let Ok(hashes) = read(&changed) {
            assert_eq!(hashes, sound, "byte {at} changed unnoticed");
        }
    }
    let mut longer = bytes.clone();
    longer.extend([0; 8]);
    assert!(read(&longer).is_err(), "bytes behind the index");
}

/// Entries of unknown types may stand between the others (e2store), as long as the index is right.
#[test]
fn unknown_entries_are_skipped() {
    let Some(file) = shared(
        "unknown_entries_are_skipped",
        "data/era1/mainnet-00000-5ec1ffb8.era1",
    ) else {
        return;
    };
    let (bytes, borders) = short_era1(&file, 3);
    let temp = tempfile::tempdir().expect("a folder");
    let end_of_blocks = borders[borders.len() - 2];
    let mut unknown = Vec::new();
    entry(&mut unknown, 0x7777, b"something new");
    let mut longer = [&bytes[..end_of_blocks], &unknown, &bytes[end_of_blocks..]].concat();
    // The index's offsets are relative to its own place, which has moved.
    let index = borders[borders.len() - 1] + unknown.len() + 16;
    for block in 0..3 {
        let field = &mut longer[index + 8 * block..index + 8 * block + 8];
        let moved =
            i64::from_le_bytes(field.try_into().expect("eight bytes")) - unknown.len() as i64;
        field.copy_from_slice(&moved.to_le_bytes());
    }
    assert_eq!(
        read_all(&[&write(temp.path(), "longer.era1", &longer)])
            .expect("sound")
            .len(),
        3
    );
}

#[test]
fn exports_cut_anywhere_are_rejected_or_shorter() {
    let test = "exports_cut_anywhere_are_rejected_or_shorter";
    let Some(folder) = shared(test, "data/chains/execution-apis") else {
        return;
    };
    let bytes = export_bytes(&folder);
    let blocks = split(&bytes);
    let bytes = blocks[..4].concat();
    let borders: Vec<usize> = blocks[..4]
        .iter()
        .scan(0, |sum, block| {
            *sum += block.len();
            Some(*sum)
        })
        .collect();
    let temp = tempfile::tempdir().expect("a folder");
    // Every cut in the first block, then about the borders and now and then.
    let near_border = |len: usize| borders.iter().any(|border| border.abs_diff(len) < 12);
    for len in (1..bytes.len()).filter(|len| *len < 700 || near_border(*len) || len % 97 == 0) {
        let result = read_all(&[&write(temp.path(), "cut.rlp", &bytes[..len])]);
        match borders.iter().position(|border| *border == len) {
            Some(whole) => assert_eq!(result.expect("whole blocks").len(), whole + 1),
            None => assert!(result.is_err(), "cut at {len}"),
        }
    }
}

/// What a changed byte does to an export: an error, or another block hash, or another body under the same hash, which
/// the roots of the header then reveal.
#[test]
fn exports_with_a_changed_byte_never_read_as_before() {
    let test = "exports_with_a_changed_byte_never_read_as_before";
    let Some(folder) = shared(test, "data/chains/execution-apis") else {
        return;
    };
    let bytes = export_bytes(&folder);
    let blocks = split(&bytes);
    let heaviest = blocks
        .iter()
        .filter(|block| block.len() < 6000)
        .max_by_key(|block| block.len())
        .expect("some");
    let temp = tempfile::tempdir().expect("a folder");
    let sound = read_all(&[&write(temp.path(), "a.rlp", heaviest)]).expect("sound");
    for at in 0..heaviest.len() {
        let mut changed = heaviest.to_vec();
        changed[at] ^= 1 << (at % 8);
        if let Ok(read) = read_all(&[&write(temp.path(), "b.rlp", &changed)]) {
            assert!(
                read.len() == 1 && read[0].block != sound[0].block,
                "byte {at} changed unnoticed"
            );
        }
    }
}

#[test]
fn a_block_with_one_field_too_many_is_malformed() {
    let test = "a_block_with_one_field_too_many_is_malformed";
    let Some(folder) = shared(test, "data/chains/execution-apis") else {
        return;
    };
    let bytes = export_bytes(&folder);
    let last = *split(&bytes).last().expect("some");
    let mut payload = alloy_rlp::Header::decode_bytes(&mut &*last, true)
        .expect("a list")
        .to_vec();
    payload.push(0xc0);
    let mut longer = Vec::new();
    alloy_rlp::Header {
        list: true,
        payload_length: payload.len(),
    }
    .encode(&mut longer);
    longer.extend(payload);
    let temp = tempfile::tempdir().expect("a folder");
    let error = read_all(&[&write(temp.path(), "a.rlp", &longer)]).expect_err("one field too many");
    let message = error.to_string();
    assert!(
        message.contains("offset 0 (0 blocks before it)")
            && message.contains("follow the last field"),
        "{message}"
    );
}

#[test]
fn a_length_beyond_any_block_is_not_believed() {
    let temp = tempfile::tempdir().expect("a folder");
    let mut bytes = vec![0xff];
    bytes.extend(u64::MAX.to_be_bytes());
    let error = open(&[&write(temp.path(), "a.rlp", &bytes)]).expect_err("too long");
    assert!(matches!(error, SourceError::Malformed { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600), form in 0..4) {
        let temp = tempfile::tempdir().expect("a folder");
        let mut file = match form {
            0 => Vec::new(),
            1 => vec![0xf9, 0x02, 0x00],
            2 => vec![0x65, 0x32, 0, 0, 0, 0, 0, 0],
            _ => vec![0x1f, 0x8b, 8, 0],
        };
        file.extend(bytes);
        let _ = read_all(&[&write(temp.path(), "any", &file)]);
    }
}

/// An export of one block whose body has so many transactions, none of which decodes.
fn crowded(parent: B256, number: u64, gas_limit: u64, transactions: usize) -> (B256, Vec<u8>) {
    let header = Header {
        parent_hash: parent,
        number,
        gas_limit,
        ..Header::default()
    };
    let mut items = Vec::new();
    header.encode(&mut items);
    let list = |payload_length: usize| alloy_rlp::Header {
        list: true,
        payload_length,
    };
    list(transactions).encode(&mut items);
    items.extend(vec![0x80; transactions]);
    list(0).encode(&mut items);
    let mut block = Vec::new();
    list(items.len()).encode(&mut block);
    block.extend(items);
    (header.hash_slow(), block)
}

/// A block of 128 MiB of minimal transactions took gigabytes and minutes, their senders and all, before anybody looked at its gas limit.
#[test]
fn more_transactions_than_gas_has_room_for_are_not_decoded() {
    let temp = tempfile::tempdir().expect("a folder");
    let told = |blocks: &[&[u8]], parent: Option<u64>| {
        let file = write(temp.path(), "chain.rlp", &blocks.concat());
        let mut input = open(&[&file]).expect("headers are sound");
        if let Some(parent) = parent {
            input.after_gas_limit(parent);
        }
        let blocks: Result<Vec<_>, _> = input.collect();
        blocks.expect_err("refused").to_string()
    };
    let limit = 30_000_000;
    let (_, crowd) = crowded(B256::ZERO, 7, limit, 2_858);
    let error = told(&[&crowd], None);
    let reason = "(number 7): 2858 transactions, but a gas limit of 30000000 has room for 2857";
    assert!(error.ends_with(reason), "{error}");
    // As many as there is room for are looked at, and so are few ones whatever the header says: the first rule broken is told of them.
    let (_, full) = crowded(B256::ZERO, 7, limit, 2_857);
    let (_, few) = crowded(B256::ZERO, 7, 0, 1_024);
    // Calls that clear a slot took 13,020 each before London.
    let (_, refunded) = crowded(B256::ZERO, 7, 15_000_000, 15_000_000 / 13_020);
    for block in [full, few, refunded] {
        let error = told(&[&block], None);
        assert!(error.contains("transaction 0: "), "{error}");
    }
    // A header that claims a greater limit does not make room, where that of the block before it is known: from the files or from whoever reads them.
    let (hash, before) = crowded(B256::ZERO, 6, limit, 0);
    let (_, crowd) = crowded(hash, 7, u64::MAX, 6_000);
    let room = "60058593, the greatest gas limit after the parent's, has room for 5719";
    for error in [told(&[&before, &crowd], None), told(&[&crowd], Some(limit))] {
        assert!(error.contains(room), "{error}");
    }
    assert!(told(&[&crowd], None).contains("transaction 0: "));
    // Nor does it make room for the block behind it.
    let (hash, liar) = crowded(hash, 7, u64::MAX, 0);
    let (_, crowd) = crowded(hash, 8, u64::MAX, 30_000);
    let error = told(&[&before, &liar, &crowd], None);
    assert!(error.contains("120234487, the greatest"), "{error}");
}
