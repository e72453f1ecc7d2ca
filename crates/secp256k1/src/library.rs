//! libsecp256k1, one signature at a time.

use crate::{Key, Signed, Unrecoverable};
use secp256k1::{
    Message, PublicKey, ecdsa,
    ecdsa::{RecoverableSignature, RecoveryId},
};

fn compact(signed: &Signed) -> [u8; 64] {
    let mut compact = [0; 64];
    compact[..32].copy_from_slice(&signed.r);
    compact[32..].copy_from_slice(&signed.s);
    compact
}

pub(crate) fn recover(signed: &Signed) -> Result<Key, Unrecoverable> {
    let id = match (signed.x_is_large, signed.y_is_odd) {
        (false, false) => RecoveryId::Zero,
        (false, true) => RecoveryId::One,
        (true, false) => RecoveryId::Two,
        (true, true) => RecoveryId::Three,
    };
    let signature = RecoverableSignature::from_compact(&compact(signed), id)
        .map_err(|_| Unrecoverable::OutOfRange)?;
    let key = signature
        .recover_ecdsa(Message::from_digest(signed.digest))
        .map_err(|_| Unrecoverable::NoKey)?;
    let [_, coordinates @ ..] = key.serialize_uncompressed();
    Ok(coordinates)
}

pub(crate) fn verify((signed, key): (&Signed, &Key)) -> bool {
    let mut encoded = [4; 65];
    encoded[1..].copy_from_slice(key);
    let (Ok(key), Ok(signature)) = (
        PublicKey::from_slice(&encoded),
        ecdsa::Signature::from_compact(&compact(signed)),
    ) else {
        return false;
    };
    ecdsa::verify(&signature, Message::from_digest(signed.digest), &key).is_ok()
}
