//! Values as clients write them: text that begins with `0x`, as go-ethereum reads it.
//!
//! The types of alloy also read numbers of JSON, and digits without `0x`.

use std::fmt;
use std::marker::PhantomData;

use alloy_primitives::{Address, Bytes, FixedBytes, U256, hex};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// A value that is written as `0x` and hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Hex<T>(pub(crate) T);

/// What is written as `0x` and hexadecimal digits.
pub(crate) trait FromHex: Sized {
    /// What it is, for errors.
    const WHAT: &'static str;

    /// Reads the digits after `0x`.
    fn from_digits(digits: &str) -> Result<Self, String>;
}

/// Reads a value, and says what is wrong with it in go-ethereum's words.
pub(crate) fn parse<T: FromHex>(text: &str) -> Result<T, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    match digits {
        Some(digits) => T::from_digits(digits),
        None if text.is_empty() => Err("empty hex string".to_owned()),
        None => Err("hex string without 0x prefix".to_owned()),
    }
}

/// Refuses numbers without digits, with leading zeros, and of other digits.
fn check_number(digits: &str) -> Result<(), String> {
    match digits.as_bytes() {
        [] => Err("hex string \"0x\"".to_owned()),
        [b'0', _, ..] => Err("hex number with leading zero digits".to_owned()),
        digits if !digits.iter().all(u8::is_ascii_hexdigit) => Err("invalid hex string".to_owned()),
        _ => Ok(()),
    }
}

impl FromHex for u64 {
    const WHAT: &'static str = "a number";

    fn from_digits(digits: &str) -> Result<Self, String> {
        check_number(digits)?;
        Self::from_str_radix(digits, 16).map_err(|_| "hex number > 64 bits".to_owned())
    }
}

impl FromHex for u128 {
    const WHAT: &'static str = "a number";

    fn from_digits(digits: &str) -> Result<Self, String> {
        check_number(digits)?;
        Self::from_str_radix(digits, 16).map_err(|_| "hex number > 128 bits".to_owned())
    }
}

impl FromHex for U256 {
    const WHAT: &'static str = "a number";

    fn from_digits(digits: &str) -> Result<Self, String> {
        check_number(digits)?;
        Self::from_str_radix(digits, 16).map_err(|_| "hex number > 256 bits".to_owned())
    }
}

impl FromHex for Bytes {
    const WHAT: &'static str = "bytes";

    fn from_digits(digits: &str) -> Result<Self, String> {
        if digits.len() % 2 == 1 {
            return Err("hex string of odd length".to_owned());
        }
        let bytes = hex::decode(digits).map_err(|_| "invalid hex string".to_owned())?;
        Ok(bytes.into())
    }
}

impl<const N: usize> FromHex for FixedBytes<N> {
    const WHAT: &'static str = "bytes of a fixed length";

    fn from_digits(digits: &str) -> Result<Self, String> {
        let bytes = Bytes::from_digits(digits)?;
        Self::try_from(&bytes[..]).map_err(|_| {
            let (length, wanted) = (digits.len(), 2 * N);
            format!("hex string has length {length}, want {wanted}")
        })
    }
}

impl FromHex for Address {
    const WHAT: &'static str = "an address";

    fn from_digits(digits: &str) -> Result<Self, String> {
        FixedBytes::from_digits(digits).map(Self)
    }
}

impl<'de, T: FromHex> Deserialize<'de> for Hex<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text<T>(PhantomData<T>);
        impl<T: FromHex> Visitor<'_> for Text<T> {
            type Value = Hex<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} as text that begins with 0x", T::WHAT)
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Hex<T>, E> {
                parse(text).map(Hex).map_err(E::custom)
            }
        }
        from.deserialize_str(Text(PhantomData))
    }
}

/// Reads a value that may be absent, and takes it out of [`Hex`].
pub(crate) fn optional<'de, T: FromHex, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let value = Option::<Hex<T>>::deserialize(from)?;
    Ok(value.map(|Hex(value)| value))
}

#[cfg(test)]
mod tests {
    use alloy_primitives::B256;

    use super::*;

    fn read<T: FromHex>(json: &str) -> Option<T> {
        let value: Result<Hex<T>, _> = serde_json::from_str(json);
        value.ok().map(|Hex(value)| value)
    }

    #[test]
    fn numbers_are_hexadecimal_text_without_leading_zeros() {
        assert_eq!(read::<u64>("\"0x0\""), Some(0));
        assert_eq!(read::<u64>("\"0xffffffffffffffff\""), Some(u64::MAX));
        assert_eq!(read::<U256>("\"0X2a\""), Some(U256::from(42)));
        let whole = format!("\"0x{}\"", "f".repeat(64));
        assert_eq!(read::<U256>(&whole), Some(U256::MAX));
        for wrong in [
            "",
            "2",
            "0x",
            "0x01",
            "0xg",
            "0x-1",
            "0x_1",
            "0x10000000000000000",
            "latest",
        ] {
            assert_eq!(read::<u64>(&format!("{wrong:?}")), None, "{wrong}");
        }
        for wrong in ["2", "-2", "2.0", "true", "null", "[]", "{}"] {
            assert_eq!(read::<u64>(wrong), None, "{wrong}");
            assert_eq!(read::<U256>(wrong), None, "{wrong}");
        }
        assert_eq!(read::<U256>(&format!("\"0x1{}\"", "0".repeat(64))), None);
    }

    #[test]
    fn bytes_have_0x_and_their_length() {
        assert_eq!(read::<Bytes>("\"0x\""), Some(Bytes::new()));
        assert_eq!(
            read::<Bytes>("\"0x01Ab\""),
            Some(Bytes::from_static(&[1, 0xab]))
        );
        let address = Address::repeat_byte(0xab);
        assert_eq!(read::<Address>(&format!("\"{address}\"")), Some(address));
        let hash = B256::repeat_byte(7);
        assert_eq!(read::<B256>(&format!("\"{hash}\"")), Some(hash));
        let digits = "ab".repeat(20);
        for wrong in [
            &digits[..],
            "0x",
            "0x0",
            "0xzz",
            &format!("0x{digits}00"),
            &format!("0x0x{}", &digits[2..]),
        ] {
            assert_eq!(read::<Address>(&format!("{wrong:?}")), None, "{wrong}");
        }
        assert_eq!(read::<Bytes>("[1, 2]"), None);
        assert_eq!(read::<Address>(&format!("{:?}", [0xab; 20])), None);
    }
}
