//! Leaves that have all their values in their records, as the published systems keep them.
//!
//! Nothing reads these values but what writes the next record: the flat table has them. They are there so that what such records cost can be measured.

use crate::{
    Form, LeafRecord, NodeKey, RecordError, Value, ValueChange, changes,
    record::{WHOLE, split_values},
};
use std::sync::Arc;

/// The values that a leaf's record has, ascending by suffix; none if it has not all of them.
///
/// # Errors
/// [`RecordError`] for what is no leaf's record.
pub fn whole_values<'a>(
    key: &NodeKey,
    record: &'a [u8],
) -> Result<Option<&'a [Value]>, RecordError> {
    let (form, _, rest) = Form::decode_front(key, record)?;
    let (_, suffixes, rest) = LeafRecord::decode_head(key, rest)?;
    Ok(split_values(form, &suffixes, rest)?.0)
}

/// All values of a leaf after changes, if those before are known: there was no leaf, or its record had them.
pub(crate) fn after(
    old: Option<(&NodeKey, &[u8])>,
    changes: &[ValueChange],
) -> Result<Option<Vec<Value>>, RecordError> {
    let before: Vec<(u8, Value)> = match old {
        None => Vec::new(),
        Some((key, record)) => {
            let Some(values) = whole_values(key, record)? else {
                return Ok(None);
            };
            let (_, _, rest) = Form::decode_front(key, record)?;
            let (_, suffixes, _) = LeafRecord::decode_head(key, rest)?;
            suffixes.iter().zip(values.iter().copied()).collect()
        }
    };
    let values = changes::after(&before, changes).into_iter();
    Ok(Some(values.map(|(_, value)| value).collect()))
}

/// A leaf's record with all its values put in.
pub(crate) fn with_values(
    key: &NodeKey,
    record: &[u8],
    values: &[Value],
) -> Result<Arc<[u8]>, RecordError> {
    let (_, _, rest) = Form::decode_front(key, record)?;
    let (_, _, rest) = LeafRecord::decode_head(key, rest)?;
    let (head, rest) = record.split_at(record.len() - rest.len());
    let mut whole = [head, values.as_flattened(), rest].concat();
    whole[0] |= WHOLE;
    Ok(whole.into())
}
