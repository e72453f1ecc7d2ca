//! Accounts that send, with their keys, and addresses that only receive.

use alloy_consensus::SignableTransaction;
use alloy_primitives::{Address, B256, Signature, U256, keccak256};
use rayon::prelude::*;
use secp256k1::ecdsa::RecoverableSignature;
use secp256k1::{Message, PublicKey, SecretKey};

use super::random::derive;

/// The accounts of the genesis, all of whose keys come from the seed.
#[derive(Debug)]
pub(super) struct Accounts {
    seed: u64,
    addresses: Vec<Address>,
}

impl Accounts {
    /// Derives `count` addresses on all of rayon's threads.
    pub(super) fn new(seed: u64, count: u64) -> Self {
        let addresses = (0..count)
            .into_par_iter()
            .map(|index| address_of(&secret_key(seed, index)))
            .collect();
        Self { seed, addresses }
    }

    /// The addresses by index.
    pub(super) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Signs with the key of account `index`: deterministic nonces after RFC 6979, low s.
    pub(super) fn sign<T: SignableTransaction<Signature>>(
        &self,
        index: u64,
        transaction: &T,
    ) -> Signature {
        let message = Message::from_digest(transaction.signature_hash().0);
        let key = secret_key(self.seed, index);
        let signature = RecoverableSignature::sign_ecdsa_recoverable(message, &key);
        let (recovery, bytes) = signature.serialize_compact();
        let (r, s) = bytes.split_at(32);
        let odd_y = recovery.to_u8() & 1 == 1;
        Signature::new(U256::from_be_slice(r), U256::from_be_slice(s), odd_y)
    }
}

/// An address that has no known key: the `index`-th that transfers have newly reached.
pub(super) fn recipient(seed: u64, index: u64) -> Address {
    Address::from_word(derive(seed, "recipient", index))
}

fn secret_key(seed: u64, index: u64) -> SecretKey {
    let mut bytes: B256 = derive(seed, "account", index);
    loop {
        // Practically always at once: a number is no key with probability 2^-128.
        match SecretKey::from_secret_bytes(bytes.0) {
            Ok(key) => return key,
            Err(_) => bytes = keccak256(bytes),
        }
    }
}

fn address_of(key: &SecretKey) -> Address {
    let public = PublicKey::from_secret_key(key).serialize_uncompressed();
    Address::from_raw_public_key(&public[1..])
}

#[cfg(test)]
mod tests {
    use alloy_consensus::TxLegacy;
    use secp256k1::ecdsa::RecoveryId;

    use super::*;

    #[test]
    fn a_key_of_one_has_its_well_known_address() {
        let mut one = [0; 32];
        one[31] = 1;
        let key = SecretKey::from_secret_bytes(one).expect("valid key");
        assert_eq!(
            address_of(&key).to_string(),
            "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"
        );
    }

    #[test]
    fn signatures_recover_to_the_sender() {
        let accounts = Accounts::new(5, 3);
        let transaction = TxLegacy {
            nonce: 7,
            chain_id: Some(9),
            ..TxLegacy::default()
        };
        let signature = accounts.sign(2, &transaction);
        let recovery = if signature.v() {
            RecoveryId::One
        } else {
            RecoveryId::Zero
        };
        let compact = [
            signature.r().to_be_bytes::<32>(),
            signature.s().to_be_bytes::<32>(),
        ]
        .concat();
        let recoverable =
            RecoverableSignature::from_compact(&compact, recovery).expect("well formed");
        let message = Message::from_digest(transaction.signature_hash().0);
        let public = recoverable
            .recover_ecdsa(message)
            .expect("recoverable")
            .serialize_uncompressed();
        assert_eq!(
            Address::from_raw_public_key(&public[1..]),
            accounts.addresses()[2]
        );
    }
}
