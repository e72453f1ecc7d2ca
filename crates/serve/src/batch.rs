//! Batches, before their calls are read.

use serde_json::value::RawValue;

/// Batches of at most so many calls are answered like single calls. Those of more wait for each
/// other.
pub(crate) const FEW: usize = 16;

/// The calls of a batch, of which it counts at most one more than `most`; `None` if the body is no
/// batch. Only commas are looked at: what is between them may be anything.
///
/// The list of the calls of `[0,0,...]` would take twelve times as much memory as the request.
pub(crate) fn calls(body: &[u8], most: usize) -> Option<usize> {
    let mut rest = body.trim_ascii_start().strip_prefix(b"[")?.iter();
    let (mut count, mut depth, mut in_text) = (1, 0_usize, false);
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if in_text => {
                rest.next();
            }
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => break,
            },
            b',' if depth == 0 => count += 1,
            _ => {}
        }
        if count > most {
            break;
        }
    }
    Some(count)
}

/// The first item of a batch; `None` if there is none, or no JSON.
pub(crate) fn first(body: &[u8]) -> Option<&RawValue> {
    let items = body.trim_ascii_start().strip_prefix(b"[")?;
    let items = serde_json::Deserializer::from_slice(items);
    items.into_iter::<&RawValue>().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_up_to_one_more_than_the_most() {
        for (body, count) in [
            ("{}", None),
            ("", None),
            ("7,[", None),
            ("[]", Some(1)),
            (" \n[7]", Some(1)),
            ("[{\"a\":[1,2,{\"b\":3}]},{}]", Some(2)),
            (r#"["a,\",\\",",[",2]"#, Some(3)),
            ("[1,2],3,4", Some(2)),
            // What is no JSON is told from it later.
            ("[1,2", Some(2)),
            ("[\"1,2", Some(1)),
        ] {
            assert_eq!(calls(body.as_bytes(), 10), count, "{body}");
        }
        assert_eq!(calls(b"[0,0,0,0]", 3), Some(4));
        assert_eq!(calls(b"[0,0,0,0]", 2), Some(3));
    }

    #[test]
    fn the_first_item_is_read_alone() {
        let first = |body: &'static str| first(body.as_bytes()).map(RawValue::get);
        assert_eq!(first(" [ {\"id\": 1} , {"), Some("{\"id\": 1}"));
        assert_eq!(first("[[1],2"), Some("[1]"));
        for none in ["", "{}", "[", "[]", "[{\"a\""] {
            assert_eq!(first(none), None, "{none}");
        }
    }
}
