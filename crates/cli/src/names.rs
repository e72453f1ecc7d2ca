//! Addresses, hashes and slots as words of the command line, and how they are printed.
//!
//! Everything is printed in lower case, as JSON-RPC does. Addresses and hashes are 0x and hex digits, and so are values of
//! slots, with 64 digits. Numbers of slots are 0x-hex without leading zeros in texts, and have 64 digits in JSON. Balances,
//! nonces, counts and block numbers are decimal.

use alloy_primitives::{Address, B256, U256, hex};

/// Parses an address: 40 hex digits, with 0x or without.
pub(crate) fn parse_address(text: &str) -> Result<Address, String> {
    let address = bytes(text, "an address").map(Address::new);
    address.map_err(|why| hinted(text, &why))
}

/// Parses a hash or root: 64 hex digits, with 0x or without.
pub(crate) fn parse_hash(text: &str) -> Result<B256, String> {
    bytes(text, "a hash")
        .map(B256::new)
        .map_err(|why| match is_block(text) {
            true => format!("{why}. `arbor roots` prints the roots after blocks"),
            false => why,
        })
}

/// Parses a slot's number: decimal or 0x-hex, of at most 256 bits.
pub(crate) fn parse_slot(text: &str) -> Result<U256, String> {
    let (digits, base) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let number = match digits.chars().all(|digit| digit.is_digit(base)) && !digits.is_empty() {
        true => U256::from_str_radix(digits, base.into()).ok(),
        false => None,
    };
    number.ok_or_else(|| {
        let why =
            format!("'{text}' is no slot: give a number of up to 256 bits, decimal or 0x-hex");
        hinted(text, &why)
    })
}

/// Parses the number of a block of a chain, which need not be in a database yet.
pub(crate) fn parse_chain_block(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| {
        format!(
            "'{text}' is not the number of a block of the chain, in decimal; to go on to the chain's end, leave it out"
        )
    })
}

/// Writes a slot's value, or its number in JSON.
pub(crate) fn show_word(word: U256) -> String {
    format!("{word:#066x}")
}

fn bytes<const N: usize>(text: &str, what: &str) -> Result<[u8; N], String> {
    let digits = text
        .strip_prefix("0x")
        .or(text.strip_prefix("0X"))
        .unwrap_or(text);
    let wanted = 2 * N;
    if let Some(odd) = digits.chars().find(|digit| !digit.is_ascii_hexdigit()) {
        return Err(format!(
            "'{text}' is not {what}: '{}' is no hex digit",
            odd.escape_debug()
        ));
    }
    let mut bytes = [0; N];
    match hex::decode_to_slice(digits, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(_) => Err(format!(
            "'{text}' is not {what}: it has {} hex digits, and {what} has {wanted}",
            digits.len()
        )),
    }
}

/// Adds what a word is for that stands in a place where it has no meaning.
fn hinted(text: &str, why: &str) -> String {
    match is_block(text) {
        true => format!("{why}. A block is named with --at {text}"),
        false => why.to_owned(),
    }
}

/// Whether a word names a block, and nothing else.
fn is_block(text: &str) -> bool {
    let back = text.strip_prefix('-').map(str::parse::<u64>);
    text == "latest" || back.is_some_and(|number| number.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_hex_says_what_is_odd() {
        for (text, words) in [
            ("0x12", "it has 2 hex digits, and an address has 40"),
            ("0x123", "it has 3 hex digits, and an address has 40"),
            ("", "it has 0 hex digits"),
            ("0xzz", "'z' is no hex digit"),
            ("latest", "A block is named with --at latest"),
            ("-3", "A block is named with --at -3"),
        ] {
            let error = parse_address(text).expect_err(text);
            assert!(error.contains(words), "{error}");
            assert!(error.contains("is not an address"), "{error}");
        }
        let error = parse_hash(&"ab".repeat(20)).expect_err("an address");
        assert!(
            error.contains("it has 40 hex digits, and a hash has 64"),
            "{error}"
        );
        // `verify-proof --root latest` was told to use --at, which it does not have.
        let error = parse_hash("latest").expect_err("a block");
        assert!(
            error.contains("arbor roots") && !error.contains("--at"),
            "{error}"
        );
        assert!(
            parse_slot("latest")
                .expect_err("a block")
                .contains("--at latest")
        );
    }

    #[test]
    fn what_is_printed_is_parsed() {
        let address = Address::repeat_byte(0xcd);
        assert_eq!(parse_address(&format!("{address:#x}")), Ok(address));
        assert_eq!(parse_address(&address.to_string()), Ok(address));
        let hash = B256::repeat_byte(0xef);
        assert_eq!(parse_hash(&hash.to_string()), Ok(hash));
        for slot in [U256::ZERO, U256::from(17), U256::MAX] {
            assert_eq!(parse_slot(&show_word(slot)), Ok(slot));
            assert_eq!(parse_slot(&slot.to_string()), Ok(slot));
        }
        for odd in [
            "",
            "0x",
            "x",
            "-1",
            "1 ",
            "0b1",
            &format!("0x1{}", "0".repeat(64)),
        ] {
            assert!(parse_slot(odd).is_err(), "{odd}");
        }
    }
}
