//! Numbers in JSON, as nodes write them.

use std::borrow::Cow;

use alloy_primitives::{U64, Uint};
use serde::de::{Deserialize, Deserializer, Error};

/// Reads a number as `0x` and at least one hex digit. Some clients pad numbers, none leaves the digits out.
///
/// # Errors
/// Text of another form; a number that the type has no room for.
pub(crate) fn quantity<'de, D: Deserializer<'de>, const BITS: usize, const LIMBS: usize>(
    from: D,
) -> Result<Uint<BITS, LIMBS>, D::Error> {
    let text = Cow::<'de, str>::deserialize(from)?;
    let digits = text.strip_prefix("0x").filter(|digits| !digits.is_empty());
    let number = digits.and_then(|digits| Uint::from_str_radix(digits, 16).ok());
    number.ok_or_else(|| {
        D::Error::custom(format!(
            "'{text}' is not a number of {BITS} bits as 0x and hex digits"
        ))
    })
}

/// Reads an account's nonce, as [`quantity`] does.
///
/// # Errors
/// The errors of `quantity`, for 64 bits.
pub(crate) fn nonce<'de, D: Deserializer<'de>>(from: D) -> Result<U64, D::Error> {
    let nonce: Uint<64, 1> = quantity(from)?;
    Ok(nonce.to())
}
