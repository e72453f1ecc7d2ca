//! Inputs of a conversion, and the files that it makes on the way.

use arbor_convert::fuzzing;

/// A dump in JSON lines, plain, gzip or zstd.
pub(super) fn dump(bytes: &[u8]) {
    fuzzing::dump(bytes);
}

/// A file of preimages of any form.
pub(super) fn preimages(bytes: &[u8]) {
    fuzzing::preimages(bytes);
}

/// A file of frames, with accounts or leaves.
pub(super) fn frames(bytes: &[u8]) {
    fuzzing::frames(bytes);
}

/// Two accounts with slots and a code, a line of hashed keys, preimages of each form, and a frame with an account.
pub(crate) fn convert_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let address = "12".repeat(20);
    let hash = "e3".repeat(32);
    let root = format!("{{\"root\":\"0x{hash}\"}}\n");
    let geth = format!(
        "{{\"balance\":\"1000\",\"nonce\":3,\"root\":\"0x{hash}\",\"storage\":{{\"0x{:064x}\":\"0102\"}},\"address\":\"0x{address}\",\"key\":\"0x{hash}\"}}\n",
        5
    );
    let reth = format!(
        "{{\"balance\":\"0x3e8\",\"nonce\":\"0x3\",\"code\":\"0x6001\",\"address\":\"0x{address}\"}}\n"
    );
    let hashed = format!(
        "{{\"balance\":\"5\",\"nonce\":1,\"key\":\"0x{hash}\",\"storage\":{{\"0x{hash}\":\"8180\"}}}}\n"
    );
    let named = [&root[..], &geth, &reth].concat().into_bytes();
    let hashed = [&root[..], &hashed].concat().into_bytes();
    let record = [&[0x12; 20][..], &[0, 0, 0, 1], &[7; 32]].concat();
    let strings = [&[0x94][..], &[0x12; 20], &[0xa0], &[7; 32]].concat();
    let export = [
        &[0xcd, 0x8a][..],
        b"gethdbdump",
        &[0x01, 0x80],
        &[0x00, 0x82, 1, 2, 0x94],
        &[0x12; 20],
    ]
    .concat();
    // Of part 1 and run 1: 20 bytes of address, and an account without nonce, balance and slots. The check sum is XXH3's.
    let account = [&[0xaa; 20][..], &[0, 0, 0]].concat();
    let frame = [
        &[0, 0, 0, 1, 0, 0, 0, 1][..],
        &(account.len() as u64).to_be_bytes(),
        &fuzzing::check_sum(&account).to_be_bytes(),
        &account,
    ]
    .concat();
    vec![
        ("dump", named),
        ("dump", hashed),
        ("preimages", record),
        ("preimages", strings),
        ("preimages", export),
        ("frames", frame),
    ]
}
