//! What proofs and updates cost over a database, by their size.
//!
//! Proofs and updates take accounts and slots that are picked at random from the state. A proof is checked before its
//! size counts; an update is computed on the latest version and not committed.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use alloy_primitives::{Address, U256};
use arbor_hashing::keccak256;
use arbor_metrics::{Table, snapshot};
use arbor_state::{
    AccountChange, AccountSlots, Head, SlotChange, StateChanges, StateError, StateView,
};
use arbor_verify::{Proof, Verdict};
use serde::Serialize;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Slots in a proof, ascending; sizes beyond the state's slots are left out.
    pub proofs: Vec<usize>,
    /// Slots in an update, likewise.
    pub updates: Vec<usize>,
    /// How often each proof is made, of which the median counts, and each update at least, of which the fastest counts.
    pub repetitions: usize,
    /// Which accounts and slots are picked.
    pub seed: u64,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The state cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// A proof that does not hold.
    #[error("the proof of {slots} slots does not hold: {why}")]
    Proof {
        /// Its slots.
        slots: usize,
        /// What is wrong.
        why: String,
    },
}

/// One proof of several slots, with their accounts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProofRow {
    /// Slots proven.
    pub slots: usize,
    /// Accounts proven with them.
    pub accounts: usize,
    /// Bytes of the proof: of all byte strings in its JSON form, keys and values included.
    pub bytes: u64,
    /// Seconds to make it.
    pub prove_s: f64,
    /// Seconds to check it.
    pub verify_s: f64,
}

/// One update of several slots.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UpdateRow {
    /// Slots changed.
    pub slots: usize,
    /// Accounts to which they belong.
    pub accounts: usize,
    /// Seconds to compute the root, the least of all repetitions: what else the machine does only adds to it.
    pub seconds: f64,
    /// The median of all repetitions.
    pub median_s: f64,
    /// Repetitions.
    pub repetitions: usize,
    /// Nodes written or deleted.
    pub nodes: u64,
    /// What was counted meanwhile, such as hash permutations.
    pub counters: BTreeMap<&'static str, u64>,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The latest block.
    pub block: u64,
    /// Proofs, by ascending size.
    pub proofs: Vec<ProofRow>,
    /// Updates, by ascending size.
    pub updates: Vec<UpdateRow>,
}

/// Makes proofs and computes updates.
///
/// # Errors
/// [`SurveyError`].
pub fn run(settings: &Settings, head: Head<'_>) -> Result<Results, SurveyError> {
    let sizes = settings.proofs.iter().chain(&settings.updates);
    let names = pick(
        head,
        settings.seed,
        sizes.copied().max().unwrap_or_default(),
    )?;
    Ok(Results {
        block: head.meta().map_or(0, |meta| meta.block_number),
        proofs: proofs(settings, head, &names)?,
        updates: updates(settings, head, &names)?,
    })
}

/// Up to `count` slots that differ, of at most four times as many that are picked.
fn pick(head: Head<'_>, seed: u64, count: usize) -> Result<Vec<(Address, U256)>, StateError> {
    let key = |what: &str, number: usize| {
        keccak256(format!("{what} {number} of survey {seed}").as_bytes())
    };
    let (mut seen, mut names) = (HashSet::new(), Vec::new());
    for number in 0..4 * count {
        if names.len() == count {
            break;
        }
        let found = head.slot_from(&key("account", number), &key("slot", number))?;
        names.extend(found.filter(|name| seen.insert(*name)));
    }
    Ok(names)
}

/// The slots by account.
fn by_account(names: &[(Address, U256)]) -> BTreeMap<Address, Vec<U256>> {
    let mut accounts: BTreeMap<Address, Vec<U256>> = BTreeMap::new();
    for (address, slot) in names {
        accounts.entry(*address).or_default().push(*slot);
    }
    accounts
}

fn proofs(
    settings: &Settings,
    head: Head<'_>,
    names: &[(Address, U256)],
) -> Result<Vec<ProofRow>, SurveyError> {
    let Some(meta) = head.meta() else {
        return Ok(Vec::new());
    };
    let then = head.at(meta.version)?;
    let mut rows = Vec::new();
    for &slots in settings
        .proofs
        .iter()
        .filter(|slots| **slots <= names.len())
    {
        let accounts = by_account(&names[..slots]).into_iter();
        let accounts = accounts.map(|(address, slots)| AccountSlots { address, slots });
        let accounts: Vec<AccountSlots> = accounts.collect();
        let (mut proving, mut checking, mut bytes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..settings.repetitions {
            let begin = Instant::now();
            let made = then.prove_together(&accounts);
            // A tree whose proofs are of one account gives as many proofs as there are accounts.
            let made: Vec<Box<dyn Proof>> = match made {
                Ok(proof) => vec![proof],
                Err(_) => {
                    let each = accounts.iter();
                    let each = each.map(|account| then.prove(account.address, &account.slots));
                    each.collect::<Result<_, _>>()?
                }
            };
            proving.push(begin.elapsed().as_secs_f64());
            let begin = Instant::now();
            for proof in &made {
                check(proof.as_ref(), meta.root.into(), slots)?;
            }
            checking.push(begin.elapsed().as_secs_f64());
            bytes = made.iter().map(|proof| byte_strings(proof.as_ref())).sum();
        }
        rows.push(ProofRow {
            slots,
            accounts: accounts.len(),
            bytes,
            prove_s: median(proving),
            verify_s: median(checking),
        });
    }
    Ok(rows)
}

fn check(proof: &dyn Proof, root: alloy_primitives::B256, slots: usize) -> Result<(), SurveyError> {
    let why = match proof.verify(root) {
        Ok(Verdict::True(_)) => return Ok(()),
        Ok(verdict) => format!("{verdict:?}"),
        Err(malformed) => malformed.to_string(),
    };
    Err(SurveyError::Proof { slots, why })
}

/// Bytes of all byte strings in a proof's JSON form: half of the hexadecimal digits after each 0x.
fn byte_strings(proof: &dyn Proof) -> u64 {
    let mut counter = ByteStrings::default();
    // Nothing is written anywhere that could fail.
    let _ = proof.write_json(&mut counter, false);
    counter.digits / 2
}

/// Counts hexadecimal digits of strings that begin with 0x.
#[derive(Default)]
struct ByteStrings {
    digits: u64,
    state: Letter,
}

/// What the last letter was.
#[derive(Clone, Copy, Default)]
enum Letter {
    #[default]
    Other,
    Quote,
    Zero,
    Digit,
}

impl io::Write for ByteStrings {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        for letter in text {
            self.state = match (self.state, letter) {
                (Letter::Quote, b'0') => Letter::Zero,
                (Letter::Zero, b'x') => Letter::Digit,
                (Letter::Digit, letter) if letter.is_ascii_hexdigit() => {
                    self.digits += 1;
                    Letter::Digit
                }
                // The quote that ends a byte string begins none.
                (Letter::Digit, _) => Letter::Other,
                (_, b'"') => Letter::Quote,
                _ => Letter::Other,
            };
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time that is spent on updates of one size, unless the repetitions that are asked for take longer.
const UPDATE_BUDGET: Duration = Duration::from_millis(150);
/// The most repetitions of an update.
const MOST_UPDATES: usize = 100;

fn updates(
    settings: &Settings,
    head: Head<'_>,
    names: &[(Address, U256)],
) -> Result<Vec<UpdateRow>, SurveyError> {
    let mut rows = Vec::new();
    for &slots in settings
        .updates
        .iter()
        .filter(|slots| **slots <= names.len())
    {
        let changes = changes(head, &names[..slots])?;
        let compute = || head.tree().compute(head.view(), &[&changes]);
        // The first one reads what is not in the caches yet. It is counted, not timed.
        let before = snapshot();
        let computed = compute()?;
        let nodes = computed.iter();
        let nodes = nodes.map(|computed| computed.nodes().len() as u64).sum();
        let moved = before.iter().zip(snapshot());
        let moved = moved.map(|((name, before), (_, after))| (*name, after - before));
        let counters = moved.filter(|(_, count)| *count > 0).collect();
        let (mut times, began) = (Vec::new(), Instant::now());
        while times.len() < settings.repetitions
            || times.len() < MOST_UPDATES && began.elapsed() < UPDATE_BUDGET
        {
            let begin = Instant::now();
            let computed = compute()?;
            times.push(begin.elapsed().as_secs_f64());
            drop(computed);
        }
        rows.push(UpdateRow {
            slots,
            accounts: changes.accounts.len(),
            seconds: times.iter().copied().fold(f64::INFINITY, f64::min),
            repetitions: times.len(),
            median_s: median(times),
            nodes,
            counters,
        });
    }
    Ok(rows)
}

/// Changes that add one to each slot, or set it to one where it would return to zero.
fn changes(head: Head<'_>, names: &[(Address, U256)]) -> Result<StateChanges, SurveyError> {
    let mut changes = StateChanges::default();
    for (address, slots) in by_account(names) {
        let account = head.account(address).map_err(state_error)?;
        let mut change = AccountChange {
            old: account,
            new: account,
            ..AccountChange::default()
        };
        for slot in slots {
            let old = head.storage(address, slot).map_err(state_error)?;
            let new = old.wrapping_add(U256::ONE).max(U256::ONE);
            change.slots.insert(slot, SlotChange { old, new });
        }
        changes.accounts.insert(address, change);
    }
    Ok(changes)
}

fn state_error(error: arbor_state::ReadError) -> SurveyError {
    SurveyError::State(error.into())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns the figures as tables: of proofs, and of updates.
#[must_use]
pub fn tables(results: &Results) -> [Table; 2] {
    let mut proofs = Table::new([
        "proof of slots",
        "accounts",
        "bytes",
        "made in ms",
        "checked in ms",
    ]);
    for row in &results.proofs {
        proofs.row([
            row.slots.to_string(),
            row.accounts.to_string(),
            row.bytes.to_string(),
            format!("{:.3}", 1e3 * row.prove_s),
            format!("{:.3}", 1e3 * row.verify_s),
        ]);
    }
    let mut updates = Table::new([
        "update of slots",
        "accounts",
        "nodes",
        "least ms",
        "median ms",
        "least us a slot",
    ]);
    for row in &results.updates {
        updates.row([
            row.slots.to_string(),
            row.accounts.to_string(),
            row.nodes.to_string(),
            format!("{:.3}", 1e3 * row.seconds),
            format!("{:.3}", 1e3 * row.median_s),
            format!("{:.2}", 1e6 * row.seconds / row.slots as f64),
        ]);
    }
    [proofs, updates]
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn byte_strings_of_json_are_counted() {
        let mut counter = ByteStrings::default();
        for part in [
            r#"{"a":"0x12"#,
            r#"34","0xab":"0","b":["0x","#,
            r#""beef"],"c":0}"#,
        ] {
            counter.write_all(part.as_bytes()).expect("counted");
        }
        assert_eq!(counter.digits, 4 + 2);
    }
}
