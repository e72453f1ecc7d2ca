//! A light client: it trusts the state roots of headers, and checks what anybody answers against them.
//!
//! It depends on `arbor-verify` alone: no store, no files, no threads. `proof.json` is what a node answered to `eth_getProof`.

use std::error::Error;

use alloy_primitives::{Address, B256, b256};
use arbor_verify::{Kinds, Verdict, standard};
use serde_json::Value;

/// The state root of a header that the client trusts.
const ROOT: B256 = b256!("36a6eadaddd566f9d2caaf46a75f26784e235ddf165f3169191c0d9435a8f7ba");

/// Checks an answer to a question for an account against a root, and says what it proves. Another account's proof may hold, too, and answers another
/// question.
fn check(
    kinds: &Kinds,
    (address, answer): (Address, &Value),
    root: B256,
) -> Result<String, Box<dyn Error>> {
    match kinds.read(answer.clone())?.verify(root)? {
        Verdict::True(claims) => {
            let proven = claims.account(address);
            let proven = proven.ok_or("it is a proof of another account")?;
            let nonce = proven.account.map(|account| account.nonce);
            let slots = &proven.slots;
            Ok(format!(
                "{:#x} has nonce {nonce:?} and slots {slots:?}",
                proven.address
            ))
        }
        Verdict::False(reason) => Err(format!("the answer is false: {reason}").into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // A root is one of a tree: the client knows which.
    let kinds = standard().only("mpt").ok_or("the tree is not built in")?;
    let answer: Value = serde_json::from_str(include_str!("proof.json"))?;
    let asked: Address = answer["address"].as_str().ok_or("no address")?.parse()?;
    println!("proven: {}", check(&kinds, (asked, &answer), ROOT)?);

    // Nothing else passes: another nonce, another value of a slot, another root, the answer to another question.
    let mut nonce = answer.clone();
    nonce["nonce"] = "0x2".into();
    let mut slot = answer.clone();
    slot["storageProof"][0]["value"] = "0x1".into();
    let other = B256::repeat_byte(1);
    for (asked, answer, root) in [
        (asked, &nonce, ROOT),
        (asked, &slot, ROOT),
        (asked, &answer, other),
        (Address::repeat_byte(1), &answer, ROOT),
    ] {
        match check(&kinds, (asked, answer), root) {
            Ok(said) => return Err(format!("it was not refused: {said}").into()),
            Err(refused) => println!("refused: {refused}"),
        }
    }
    Ok(())
}
