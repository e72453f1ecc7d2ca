//! Dropping what interrupted runs of a conversion have left in its files.
//!
//! A run that ends before a part is done leaves the part's frames, which no later run reads. Runs that end on a full disk would fill it
//! with them. They go when a run ends with an error, and before the next run begins: a killed run has no end.

use std::path::Path;

use rayon::prelude::*;

use crate::ConvertError;
use crate::done::Done;
use crate::frames::drop_dead;

/// The files of a step that have frames.
struct StepFiles {
    /// The list that says which frames count.
    done: &'static str,
    /// Names of files.
    single: &'static [&'static str],
    /// Names of 256 files each, by the first byte of a key.
    by_first_byte: &'static [&'static str],
}

/// All files of a conversion that have frames.
const STEPS: [StepFiles; 6] = [
    StepFiles {
        done: "parts",
        single: &["codes", "texts"],
        by_first_byte: &["accounts"],
    },
    StepFiles {
        done: "naming-done",
        single: &["naming"],
        by_first_byte: &["names", "hashed", "hashed-slots", "named-slots"],
    },
    StepFiles {
        done: "ranges-done",
        single: &["ranges", "records"],
        by_first_byte: &["leaves"],
    },
    StepFiles {
        done: "part-codes-done",
        single: &["part-codes"],
        by_first_byte: &[],
    },
    StepFiles {
        done: "node-parts-done",
        single: &["node-parts"],
        by_first_byte: &[],
    },
    StepFiles {
        done: "verified-done",
        single: &["verified"],
        by_first_byte: &[],
    },
];

/// Does the work of a run on the files in a folder. The frames of parts that are not done are dropped before it, and after it if it fails.
pub(crate) fn without_dead_frames<T>(
    folder: &Path,
    work: impl FnOnce() -> Result<T, ConvertError>,
) -> Result<T, ConvertError> {
    drop_all(folder)?;
    let done = work();
    if done.is_err() {
        // The first error is the one to tell. The next run tries again.
        let _ = drop_all(folder);
    }
    done
}

fn drop_all(folder: &Path) -> Result<(), ConvertError> {
    for step in STEPS {
        let done = Done::read(&folder.join(step.done))?;
        let many = step.by_first_byte.iter().flat_map(|name| {
            let firsts = 0..=u8::MAX;
            firsts.map(move |first| format!("{name}-{first:02x}"))
        });
        let single = step.single.iter().map(|name| (*name).to_owned());
        let names: Vec<String> = single.chain(many).collect();
        names
            .par_iter()
            .try_for_each(|name| drop_dead(&folder.join(name), |origin| done.counts(origin)))?;
    }
    Ok(())
}
