//! States in memory, from files of every form.
#![allow(
    clippy::unwrap_used,
    reason = "a failed test may say no more than where it failed"
)]

use alloy_primitives::{B256, U256, hex, keccak256};
use arbor_convert::AccountList;
use arbor_state::{BY_KECCAK, state_root};

fn read(text: &str) -> Result<AccountList, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    std::fs::write(&path, text).unwrap();
    AccountList::read(&path).map_err(|error| error.to_string())
}

/// An account with code and a slot, as a line without its address.
fn fields() -> String {
    let hash = keccak256([0x60, 1]);
    format!(
        r#""balance":"7","nonce":"0x1","code":"0x6001","codeHash":"{hash}","storage":{{"0x05":"0x06"}}"#
    )
}

#[test]
fn every_form_has_the_same_accounts() {
    let (address, fields) = ("12".repeat(20), fields());
    let account = format!(r#"{{"0x{address}":{{{fields}}}}}"#);
    let list = read(&account).unwrap();
    assert_eq!(
        list.accounts[0].slots,
        [(U256::from(5_u8), U256::from(6_u8))]
    );
    let (hash, code) = list.codes.first_key_value().unwrap();
    assert_eq!(*hash, list.accounts[0].account.code_hash);
    assert_eq!(hex::encode(code), "6001");
    let root = state_root(&list.sorted(&BY_KECCAK).unwrap()).unwrap();
    for text in [
        format!(r#"{{"config":{{}},"alloc":{account}}}"#),
        format!(r#"{{"env":{{}},"pre":{account}}}"#),
        format!(r#"{{"{address}":{{{fields}}}}}"#),
        format!(r#"{{"root":"{root}","accounts":{account}}}"#),
        format!("{{\n  \"root\": \"{root:x}\",\n  \"accounts\": {account}\n}}"),
        format!("{{\"root\":\"{root}\"}}\n{{{fields},\"address\":\"0x{address}\"}}\n"),
    ] {
        let found = read(&text).unwrap();
        assert_eq!(
            (found.accounts, found.codes),
            (list.accounts.clone(), list.codes.clone())
        );
    }
}

#[test]
fn faults_are_named() {
    let (address, fields, zeros) = ("12".repeat(20), fields(), B256::ZERO);
    let account = format!(r#""0x{address}":{{{fields}}}"#);
    let head = format!("{{\"root\":\"{zeros}\"}}\n");
    let lines = |fields: &str| format!("{head}{{{fields}}}\n");
    let no_code = fields.replace(r#""code":"0x6001","#, "");
    let other_code = fields.replace("6001", "6002");
    for (text, wanted) in [
        (String::new(), "it is empty"),
        (" \n".to_owned(), "it is empty"),
        ("[]".to_owned(), "an object with the accounts of a state"),
        (
            r#"{"config":{}}"#.to_owned(),
            "none of the fields \"alloc\"",
        ),
        (
            r#"{"alloc":{"x":{}}}"#.to_owned(),
            "\"x\" is not an address",
        ),
        (format!("{{{account},{account}}}"), "is listed twice"),
        (
            format!(r#"{{"pre":{{{account}}},"alloc":{{}}}}"#),
            "a second list of accounts",
        ),
        (
            r#"{"alloc":{},"population":{}}"#.to_owned(),
            "replay the chain with --to 0",
        ),
        (format!(r#"{{"0x{address}":{{{no_code}}}}}"#), "is missing"),
        (
            format!(r#"{{"0x{address}":{{{other_code}}}}}"#),
            "the line names",
        ),
        (
            format!(r#"{{"alloc":{{"pre({zeros})":{{{fields}}}}}}}"#),
            "are hashed",
        ),
        (format!(r#"{{"{zeros}":{{{fields}}}}}"#), "are hashed"),
        (
            lines(&format!(r#"{fields},"key":"{zeros}""#)),
            "lacks its preimage",
        ),
        (
            lines(&format!(r#"{no_code},"address":"0x{address}""#)),
            "is missing",
        ),
        (
            lines(&format!(r#"{fields},"address":"0x{address}""#)),
            "the state root 0x0000",
        ),
        (head.clone(), "the state root 0x0000"),
        (
            format!(r#"{{"0x{address}":{{"balance":"1","storage":{{"0x5":"1","0x05":"1"}}}}}}"#),
            "slot 0x5 is listed twice",
        ),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(wanted), "{text}: {error}");
    }
}
