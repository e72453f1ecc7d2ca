//! Byte sizes as people write them.

/// Parses `4096`, `64MB`, `64MiB`, `2GiB`, `1TiB`: decimal and binary units, all that [`show`] prints.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .trim_end();
    let unit = text[digits.len()..].trim().to_ascii_lowercase();
    let factor: u64 = match unit.as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => {
            return Err(format!(
                "unknown unit '{unit}': use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB"
            ));
        }
    };
    let number: f64 = digits
        .replace('_', "")
        .parse()
        .map_err(|_| format!("'{digits}' is not a number"))?;
    let bytes = number * factor as f64;
    if !(0.0..=(1u64 << 60) as f64).contains(&bytes) {
        return Err(format!("{text} is out of range"));
    }
    Ok(bytes as u64)
}

/// The least memory in which caches, write-back and tables have room to be of use.
const LEAST_MEMORY: u64 = 16 << 20;

/// Parses a memory budget.
pub(crate) fn parse_memory(text: &str) -> Result<u64, String> {
    match parse(text)? {
        bytes if bytes < LEAST_MEMORY => Err(format!("at least {} are needed", show(LEAST_MEMORY))),
        bytes => Ok(bytes),
    }
}

/// Writes a size with the binary unit that keeps it below 1,024.
pub(crate) fn show(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            let digits = if unit == "B" { 0 } else { 1 };
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse() {
        for (text, bytes) in [
            ("0", 0),
            ("64MB", 64_000_000),
            ("64 MiB", 64 << 20),
            ("1.5g", 3 << 29),
            ("2GiB", 2 << 30),
            ("1TiB", 1 << 40),
            ("3.0 TiB", 3 << 40),
            ("1TB", 1_000_000_000_000),
            ("7b", 7),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for bad in ["", "MB", "1QB", "-1", "1e30GB"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn memory_has_a_minimum() {
        assert_eq!(parse_memory("16MiB"), Ok(16 << 20));
        assert_eq!(
            parse_memory("1").err().as_deref(),
            Some("at least 16.0 MiB are needed")
        );
    }

    #[test]
    fn sizes_show() {
        assert_eq!(show(1023), "1023 B");
        assert_eq!(show(64 << 20), "64.0 MiB");
        assert_eq!(show(3 << 40), "3.0 TiB");
    }
}
