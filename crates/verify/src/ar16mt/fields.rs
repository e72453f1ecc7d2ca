//! The values of an account's own leaves.

use alloy_primitives::{B256, KECCAK256_EMPTY, U256};
use arbor_accounts::Account;
use arbor_tree::Hash;

/// What a leaf of the kind [`LeafName::Nonce`](super::LeafName::Nonce) says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Whether the account has code.
    pub has_code: bool,
    /// Its nonce.
    pub nonce: u64,
}

impl Header {
    /// Byte 0 is 1, byte 1 says whether there is code, the nonce is in bytes 24 to 31.
    pub fn encode(self) -> Hash {
        let mut value = [0; 32];
        value[0] = 1;
        value[1] = self.has_code.into();
        value[24..].copy_from_slice(&self.nonce.to_be_bytes());
        value
    }

    /// The header of an account that exists; `None` for zeros.
    ///
    /// # Errors
    /// What is wrong with a value that no account has.
    pub fn decode(value: &Hash) -> Result<Option<Self>, &'static str> {
        let (flags, nonce) = value.split_at(24);
        let nonce = nonce.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
        match flags {
            _ if *value == [0; 32] => Ok(None),
            [1, has_code @ (0 | 1), rest @ ..] if rest.iter().all(|byte| *byte == 0) => {
                let has_code = *has_code == 1;
                Ok(Some(Self { has_code, nonce }))
            }
            _ => Err("not an account's nonce"),
        }
    }
}

/// The values of an account's own leaves.
pub fn fields(account: Option<Account>) -> [Hash; 3] {
    let Some(account) = account else {
        return [[0; 32]; 3];
    };
    let has_code = account.code_hash != KECCAK256_EMPTY;
    let header = Header {
        has_code,
        nonce: account.nonce,
    };
    let code_hash = if has_code {
        account.code_hash
    } else {
        B256::ZERO
    };
    [header.encode(), account.balance.to_be_bytes(), code_hash.0]
}

/// The account whose leaves hold nonce, balance and code hash so; the outer `None` if none can.
pub fn account_of([nonce, balance, code_hash]: [Hash; 3]) -> Option<Option<Account>> {
    let header = Header::decode(&nonce).ok()?;
    let Some(header) = header else {
        return (balance == [0; 32] && code_hash == [0; 32]).then_some(None);
    };
    if !header.has_code && code_hash != [0; 32] {
        return None;
    }
    Some(Some(Account {
        nonce: header.nonce,
        balance: U256::from_be_bytes(balance),
        code_hash: match header.has_code {
            true => code_hash.into(),
            false => KECCAK256_EMPTY,
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_and_others_do_not() {
        for has_code in [false, true] {
            let nonce = 0x0102_0304_0506_0708;
            let header = Header { has_code, nonce };
            let value = header.encode();
            assert_eq!(Header::decode(&value), Ok(Some(header)));
            for place in 0..24 {
                let mut other = value;
                other[place] ^= 2;
                assert!(Header::decode(&other).is_err(), "{place}");
            }
        }
        assert_eq!(Header::decode(&[0; 32]), Ok(None));
        let mut gone = [0; 32];
        gone[31] = 1;
        assert!(Header::decode(&gone).is_err(), "a nonce of nobody");
    }
}
