//! The functions that fuzzing calls, over seeds and over what fuzzing has found: `fuzz/src/targets`, `fuzz/regressions`.
//!
//! `ARBOR_WRITE_SEEDS=DIR` writes the seeds there, a folder for each target.

#[path = "../../../fuzz/src/targets/mod.rs"]
mod targets;

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::support::{Folder, an_account};
use targets::TARGETS;

const REGRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/regressions");

/// Small inputs that are well formed, made by our own generator and commands.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let folder = Folder::new();
    let words = [
        "generate",
        "--preset",
        "tiny",
        "--accounts",
        "2",
        "--blocks",
        "3",
        "--txs",
        "2",
        "--out",
        "chain",
    ];
    folder.run(&words).ok();
    folder
        .run(&["replay", "--db", "db", "--report", "report.json", "chain"])
        .ok();
    let file = |name: &str| fs::read(folder.path(name)).expect("a file");
    let witness = folder.run(&["witness", "--db", "db", "--block", "2", "chain"]);
    witness.ok();
    let words = ["--convert-to", "eip8297", "--at", "2", "--stride", "2"];
    folder
        .run(&[&["replay", "--db", "moving"], &words[..], &["chain"]].concat())
        .ok();
    let words = ["witness", "--db", "moving", "--block", "3", "chain"];
    let amid = folder.run(&words);
    amid.ok();
    let words = ["replay", "--tree", "ar16mt", "--db", "leaves", "chain"];
    folder.run(&words).ok();
    let words = ["snapshot", "--db", "leaves", "--out", "entries"];
    folder.run(&words).ok();
    let words = ["snapshot", "--db", "db", "--out", "accounts"];
    folder.run(&words).ok();
    let (address, slot) = an_account(&folder);
    let prove = |words: &[&str]| {
        let words = [&["prove", "--db", "leaves"], words].concat();
        folder.run(&words).ok().0.stdout.clone()
    };
    let head = String::from_utf8(file("db/HEAD")).expect("text");
    let (_, head) = head.split_once('\n').expect("two lines");
    let settings =
        serde_json::from_slice::<serde_json::Value>(&file("chain/generator.json")).expect("JSON");
    // The genesis block is small; the whole file is for the export.
    let chain = file("chain/chain.rlp");
    let genesis = br#"{"config":{"chainId":7,"homesteadBlock":0,"londonBlock":3,"terminalTotalDifficulty":0,"shanghaiTime":9},
        "nonce":"0x1","timestamp":"0x5","extraData":"0x11","gasLimit":"0x4c4b40","difficulty":"0x1",
        "mixHash":"0x00","coinbase":"0x0000000000000000000000000000000000000000",
        "alloc":{"00000000000000000000000000000000000000aa":{"balance":"0x10","code":"0x6001","storage":{"0x01":"0x02"}}}}"#;
    let mut seeds = targets::record_seeds();
    seeds.extend(targets::commitment_seeds());
    seeds.extend(targets::verkle_seeds());
    seeds.extend(targets::mpt_seeds());
    seeds.extend(targets::ar16mt_seeds());
    seeds.extend(targets::eip7864_seeds());
    seeds.extend(targets::eip8297_seeds());
    seeds.extend(targets::sender_seeds());
    seeds.extend(targets::convert_seeds());
    seeds.extend(targets::proof_form_seeds());
    seeds.extend([
        ("export", chain[..chain.len().min(1_500)].to_vec()),
        ("export", chain.clone()),
        ("era1", era1(&chain)),
        ("genesis", genesis.to_vec()),
        ("genesis", br#"{"config":{"chainId":1},"gasLimit":"0x1388","difficulty":"0x400000000","alloc":{}}"#.to_vec()),
        ("witness", witness.0.stdout.clone()),
        ("witness", amid.0.stdout.clone()),
        ("head_file", head.as_bytes().to_vec()),
        ("report", file("report.json")),
        ("settings", settings["settings"].to_string().into_bytes()),
        ("entries", file("entries")),
        ("entries", file("accounts")),
        ("ar16mt_proof", prove(&[&address, &slot])),
        ("ar16mt_accounts", prove(&[&address, &slot, "--together"])),
        ("ar16mt_range", prove(&["--range", "0x20..0x2f"])),
        ("settings", b"transfer=3,swap=1".to_vec()),
    ]);
    seeds
}

/// The first block of an export in the shape of an era1 file; its accumulator is not the right one.
fn era1(chain: &[u8]) -> Vec<u8> {
    let payload = |bytes: &[u8]| -> (usize, usize) {
        match bytes[0] {
            0xf8.. => {
                let count = usize::from(bytes[0] - 0xf7);
                let length = bytes[1..=count]
                    .iter()
                    .fold(0, |length, byte| length << 8 | usize::from(*byte));
                (1 + count, length)
            }
            short => (1, usize::from(short - 0xc0)),
        }
    };
    let framed = |bytes: &[u8]| {
        let mut framed = snap::write::FrameEncoder::new(Vec::new());
        framed.write_all(bytes).expect("compressed");
        framed.into_inner().expect("compressed")
    };
    let (start, _) = payload(chain);
    let (header_start, header_length) = payload(&chain[start..]);
    let header = &chain[start..start + header_start + header_length];
    let entry = |kind: u16, data: &[u8]| {
        [
            &kind.to_le_bytes()[..],
            &(data.len() as u32).to_le_bytes(),
            &[0, 0],
            data,
        ]
        .concat()
    };
    let blocks = [
        entry(0x03, &framed(header)),
        entry(0x04, &framed(&[0xc2, 0xc0, 0xc0])),
        entry(0x05, &framed(&[0xc0])),
        entry(0x06, &[0; 32]),
    ]
    .concat();
    let before = [entry(0x3265, &[]), blocks, entry(0x07, &[7; 32])].concat();
    let offset = 8 - before.len() as i64;
    let index = [0u64.to_le_bytes(), offset.to_le_bytes(), 1u64.to_le_bytes()].concat();
    [before, entry(0x3266, &index)].concat()
}

#[test]
fn seeds_and_their_neighbours_are_decoded_or_refused() {
    let seeds = seeds();
    for (name, target) in TARGETS {
        let own: Vec<&[u8]> = seeds
            .iter()
            .filter(|(of, _)| of == name)
            .map(|(_, seed)| &seed[..])
            .collect();
        assert!(!own.is_empty(), "{name} has no seed");
        target(&[]);
        for seed in &own {
            target(seed);
            // Each at some places: cut there, and with a byte changed there.
            for turn in 0..12 {
                let place = seed.len() * turn / 12;
                target(&seed[..place]);
                let mut changed = seed.to_vec();
                if let Some(byte) = changed.get_mut(place + turn % 5) {
                    *byte ^= 1 << (turn % 8);
                    target(&changed);
                }
            }
        }
    }
    if let Ok(folder) = std::env::var("ARBOR_WRITE_SEEDS") {
        for (index, (name, seed)) in seeds.iter().enumerate() {
            let folder = Path::new(&folder).join(name);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(format!("seed-{index}")), seed).expect("written");
        }
    }
}

/// The page has the targets a second time, with what each demands.
#[test]
fn the_page_has_a_row_for_each_target() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fuzzing.md");
    let page = fs::read_to_string(page).expect("the page");
    let mut lines = page.lines();
    let head = "| target | bytes | what is demanded beyond a return |";
    assert!(lines.any(|line| line == head), "no table of targets");
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    let listed: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    let targets: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, targets);
}

#[test]
fn what_fuzzing_found_stays_fixed() {
    let Ok(folders) = fs::read_dir(REGRESSIONS) else {
        return;
    };
    for folder in folders {
        let folder = folder.expect("listed").path();
        let name = folder
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let found = TARGETS.iter().find(|(target, _)| *target == name);
        let (_, target) = found.unwrap_or_else(|| panic!("{} names no target", folder.display()));
        for input in fs::read_dir(&folder).expect("listed") {
            let input = input.expect("listed").path();
            println!("{}", input.display());
            target(&fs::read(&input).expect("read"));
        }
    }
}
