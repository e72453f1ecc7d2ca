//! The workload's contracts: bytecode, places, slots and calls.
//!
//! Their sources lie in `contracts/`; slot numbers and selectors here are those of that folder.

use alloy_primitives::{Address, B256, Bytes, U256, hex, keccak256};

use super::random::derive;

/// Number of tokens, and of pairs: pair i trades token i for token i + 1 (the last for token 0).
pub(super) const TOKENS: u64 = 4;

/// Runtime code of `Token`.
pub(super) fn token_code() -> Bytes {
    decode(include_str!("../contracts/Token.hex"))
}

/// Runtime code of `Pair`.
pub(super) fn pair_code() -> Bytes {
    decode(include_str!("../contracts/Pair.hex"))
}

/// Runtime code of `Wide`.
pub(super) fn wide_code() -> Bytes {
    decode(include_str!("../contracts/Wide.hex"))
}

/// Runtime code of `Factory`.
pub(super) fn factory_code() -> Bytes {
    decode(include_str!("../contracts/Factory.hex"))
}

/// Runtime code of `Deleter`.
pub(super) fn deleter_code() -> Bytes {
    decode(include_str!("../contracts/Deleter.hex"))
}

/// Creation code of a `Token` whose deployer gets this supply.
pub(super) fn token_creation(supply: U256) -> Bytes {
    let mut code = decode(include_str!("../contracts/Token.init.hex")).to_vec();
    code.extend(supply.to_be_bytes::<32>());
    code.into()
}

/// Creation code that deploys `0x00 || data`: a contract that stops at once.
///
/// `PUSH2 len, DUP1, PUSH1 10, PUSH0, CODECOPY, PUSH0, RETURN`, then what is deployed.
pub(super) fn data_creation(data: &[u8]) -> Bytes {
    let len = (data.len() + 1) as u16;
    let mut code = vec![0x61];
    code.extend(len.to_be_bytes());
    code.extend([0x80, 0x60, 0x0a, 0x5f, 0x39, 0x5f, 0xf3]);
    code.push(0x00);
    code.extend(data);
    code.into()
}

fn decode(text: &str) -> Bytes {
    hex::decode(text.trim())
        .expect("invariant: the committed bytecode is hexadecimal")
        .into()
}

/// Where the contracts of the genesis stand. The same in every generated chain.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) tokens: Vec<Address>,
    pub(super) pairs: Vec<Address>,
    pub(super) wide: Address,
    pub(super) factory: Address,
    pub(super) deleter: Address,
    cell_code_hash: B256,
}

impl Places {
    pub(super) fn new() -> Self {
        let place = |name: &str, index| Address::from_word(derive(0, name, index));
        Self {
            tokens: (0..TOKENS).map(|index| place("token", index)).collect(),
            pairs: (0..TOKENS).map(|index| place("pair", index)).collect(),
            wide: place("wide", 0),
            factory: place("factory", 0),
            deleter: place("deleter", 0),
            cell_code_hash: keccak256(decode(include_str!("../contracts/Cell.init.hex"))),
        }
    }

    /// The tokens that a pair trades: `token0` and `token1`.
    pub(super) fn traded(&self, pair: usize) -> [Address; 2] {
        [
            self.tokens[pair],
            self.tokens[(pair + 1) % self.tokens.len()],
        ]
    }

    /// Address of the factory's `index`-th cell.
    pub(super) fn cell(&self, index: u64) -> Address {
        self.factory
            .create2(B256::from(U256::from(index)), self.cell_code_hash)
    }
}

/// Slots that the generator writes into the genesis or reads to choose transactions.
pub(super) mod slots {
    use super::{Address, B256, U256, keccak256};

    /// `Token.totalSupply`.
    pub(in super::super) const TOKEN_SUPPLY: U256 = U256::from_limbs([2, 0, 0, 0]);
    /// `Pair.token0`.
    pub(in super::super) const PAIR_TOKEN_0: U256 = U256::ZERO;
    /// `Pair.token1`.
    pub(in super::super) const PAIR_TOKEN_1: U256 = U256::from_limbs([1, 0, 0, 0]);
    /// `Pair.reserve0` in the low 128 bits, `reserve1` in the high.
    pub(in super::super) const PAIR_RESERVES: U256 = U256::from_limbs([2, 0, 0, 0]);
    /// `Wide.length`.
    pub(in super::super) const WIDE_LENGTH: U256 = U256::ZERO;
    /// `Factory.cells`.
    pub(in super::super) const FACTORY_CELLS: U256 = U256::ZERO;

    /// `Token.balanceOf[owner]`.
    pub(in super::super) fn balance(owner: Address) -> U256 {
        entry(owner.into_word(), U256::ZERO)
    }

    /// `Token.allowance[owner][spender]`.
    pub(in super::super) fn allowance(owner: Address, spender: Address) -> U256 {
        entry(spender.into_word(), entry(owner.into_word(), U256::from(1)))
    }

    /// Slot of a mapping's entry: Keccak-256 of key and the mapping's slot, as Solidity lays it out.
    fn entry(key: B256, mapping: U256) -> U256 {
        keccak256([key.0, mapping.to_be_bytes()].concat()).into()
    }
}

/// Call data: a selector and 32-byte arguments.
pub(super) mod calls {
    use super::{Address, Bytes, U256};

    pub(in super::super) fn transfer(to: Address, value: U256) -> Bytes {
        call(0xa9059cbb, &[to.into_word().into(), value])
    }

    pub(in super::super) fn approve(spender: Address, value: U256) -> Bytes {
        call(0x095ea7b3, &[spender.into_word().into(), value])
    }

    pub(in super::super) fn swap(zero_for_one: bool, amount_in: U256) -> Bytes {
        call(
            0x08c84c21,
            &[U256::from(zero_for_one), amount_in, U256::ZERO],
        )
    }

    pub(in super::super) fn append(count: u64, value: U256) -> Bytes {
        call(0x1e901d91, &[U256::from(count), value])
    }

    pub(in super::super) fn update(first: u64, count: u64, value: U256) -> Bytes {
        call(0x6a054250, &[U256::from(first), U256::from(count), value])
    }

    pub(in super::super) fn clear(first: u64, count: u64) -> Bytes {
        call(0x41ee903e, &[U256::from(first), U256::from(count)])
    }

    pub(in super::super) fn spawn(count: u64) -> Bytes {
        call(0x7ec0c82d, &[U256::from(count)])
    }

    pub(in super::super) fn touch(first: u64, stride: u64, count: u64, value: U256) -> Bytes {
        call(
            0x7e0c1308,
            &[
                U256::from(first),
                U256::from(stride),
                U256::from(count),
                value,
            ],
        )
    }

    pub(in super::super) fn set(value: U256) -> Bytes {
        call(0x60fe47b1, &[value])
    }

    pub(in super::super) fn run(slots: u64) -> Bytes {
        call(0xa444f5e9, &[U256::from(slots)])
    }

    fn call(selector: u32, arguments: &[U256]) -> Bytes {
        let mut data = selector.to_be_bytes().to_vec();
        for argument in arguments {
            data.extend(argument.to_be_bytes::<32>());
        }
        data.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_hashes_of_signatures() {
        let zero = U256::ZERO;
        let cases = [
            (
                calls::transfer(Address::ZERO, zero),
                "transfer(address,uint256)",
            ),
            (
                calls::approve(Address::ZERO, zero),
                "approve(address,uint256)",
            ),
            (calls::swap(true, zero), "swap(bool,uint256,uint256)"),
            (calls::append(0, zero), "append(uint256,uint256)"),
            (calls::update(0, 0, zero), "update(uint256,uint256,uint256)"),
            (calls::clear(0, 0), "clear(uint256,uint256)"),
            (calls::spawn(0), "spawn(uint256)"),
            (
                calls::touch(0, 0, 0, zero),
                "touch(uint256,uint256,uint256,uint256)",
            ),
            (calls::set(zero), "set(uint256)"),
            (calls::run(0), "run(uint256)"),
        ];
        for (data, signature) in cases {
            assert_eq!(data[..4], keccak256(signature)[..4], "{signature}");
            assert_eq!(
                data.len(),
                4 + 32 * (signature.matches(',').count() + 1),
                "{signature}"
            );
        }
    }
}
