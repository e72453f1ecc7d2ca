//! The decoders of a conversion's inputs and files as functions of any bytes, which fuzzing calls.

use std::io::Cursor;
use std::path::Path;

use crate::dump::Dump;
use crate::frames::Frames;
use crate::input::Input;
use crate::preimage_file::{PreimageFile, PreimageForm};
use crate::{leaf_records, record};

/// The name in errors.
const NOWHERE: &str = "bytes";

fn input(bytes: &[u8]) -> Option<Input> {
    let length = bytes.len() as u64;
    Input::of(Box::new(Cursor::new(bytes.to_vec())), Some(length)).ok()
}

/// Reads a dump up to its first fault, with addresses and with hashed keys.
pub fn dump(bytes: &[u8]) {
    let lines = || {
        Some(
            Dump::read(Path::new(NOWHERE), input(bytes)?)
                .ok()?
                .into_lines(),
        )
    };
    let (Some(mut named), Some(mut hashed)) = (lines(), lines()) else {
        return;
    };
    while let Ok(Some(line)) = named.line() {
        // What a sorting writes of the account is read again.
        let mut written = Vec::new();
        record::encode(&line.account, &mut written);
        let mut rest = &written[..];
        assert_eq!(record::decode(&mut rest).as_ref(), Some(&line.account));
        assert!(rest.is_empty());
    }
    while let Ok(Some(_)) = hashed.hashed() {}
}

/// Reads a file of preimages up to its first fault. A plain file of records is what its preimages are written as.
pub fn preimages(bytes: &[u8]) {
    let file = input(bytes).and_then(|input| PreimageFile::read(Path::new(NOWHERE), input).ok());
    let Some(mut file) = file else { return };
    let is_records = file.form() == PreimageForm::Records;
    let mut length = 0;
    loop {
        match file.read_next() {
            Ok(Some(preimage)) => {
                let bytes = preimage.bytes().len();
                length += bytes + if bytes == 20 { 4 } else { 0 };
            }
            Ok(None) => break,
            Err(_) => return,
        }
    }
    let is_packed =
        bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    assert!(!is_records || is_packed || length == bytes.len());
}

/// Reads frames up to the first that is damaged, and their payloads as accounts and as leaves.
pub fn frames(bytes: &[u8]) {
    let mut frames = Frames::of(Path::new(NOWHERE), Cursor::new(bytes), bytes.len() as u64);
    while let Ok(Some(frame)) = frames.next() {
        let Ok(payload) = frames.payload(&frame) else {
            return;
        };
        let mut rest = &payload[..];
        while !rest.is_empty() && record::decode(&mut rest).is_some() {}
        let _ = leaf_records::read(&payload, u64::from(frame.origin.part), &mut Vec::new());
    }
    assert!(frames.end() <= bytes.len() as u64);
}

/// The check sum of a frame's payload.
pub fn check_sum(payload: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(payload)
}
