//! What it costs to read a state: accounts, slots and proofs, now and in the past, from the disk and from memory.
//!
//! Names are picked at random from the state, each once. A pass reads them all; the first pass begins with whatever the caller's
//! [`Place::forget`] leaves in memory (`cold`), the second follows at once (`hot`). Before anything is timed some of the values are held
//! against proofs of them.

use std::collections::HashSet;
use std::hash::Hash as StdHash;
use std::time::Instant;

use alloy_primitives::{Address, U256};
use arbor_hashing::keccak256;
use arbor_metrics::Table;
use arbor_state::{Head, Historical, StateError, StateSnapshot, StateView};
use arbor_verify::{ProvenAccount, Verdict};
use arbor_versions::Version;
use serde::Serialize;

/// What to read.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Accounts, and as many slots, and as many accounts that do not exist; fewer where the state has fewer.
    pub reads: usize,
    /// Proofs of an account and a slot.
    pub proofs: usize,
    /// Blocks behind the latest; zero is the latest.
    pub back: Vec<u64>,
    /// Threads that share the reads.
    pub threads: usize,
    /// Which names are picked.
    pub seed: u64,
}

/// Where the state is.
pub struct Place<'a, E> {
    /// Opens it, with nothing of it in memory of this process.
    pub open: &'a dyn Fn() -> Result<StateSnapshot, E>,
    /// Drops from memory what the operating system keeps of its files.
    pub forget: &'a dyn Fn() -> Result<(), E>,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum ReadsError<E> {
    /// The state cannot be opened, or not be forgotten.
    #[error(transparent)]
    Place(E),
    /// It cannot be read.
    #[error(transparent)]
    State(#[from] StateError),
    /// It has no such block.
    #[error(
        "{back} blocks behind the latest is not retained: the database has {retained} blocks before it"
    )]
    NotRetained {
        /// Blocks asked for.
        back: u64,
        /// Blocks there are.
        retained: u64,
    },
    /// A value that its proof does not show.
    #[error(
        "what was read of {address} at version {version} is not what its proof shows; nothing was timed"
    )]
    Wrong {
        /// Whose it is.
        address: Address,
        /// Which version.
        version: u64,
    },
}

/// One pass over many names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Blocks behind the latest.
    pub back: u64,
    /// `account`, `absent account`, `slot` or `proof` (of an account and one of its slots).
    pub what: &'static str,
    /// Whether files and caches had been forgotten before.
    pub cold: bool,
    /// Names read.
    pub reads: usize,
    /// Reads in a second, all threads together.
    pub per_second: f64,
    /// Microseconds until a read is done, in which half of them are.
    pub p50_us: f64,
    /// As above, nine in ten.
    pub p90_us: f64,
    /// As above, 99 in a hundred.
    pub p99_us: f64,
    /// As above, 999 in a thousand.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The latest block.
    pub block: u64,
    /// In the order of [`Settings::back`].
    pub rows: Vec<Row>,
    /// What the first proof of each past block had to rebuild.
    pub rebuilds: Vec<Rebuild>,
}

/// Nodes are not kept for the past: the first proof makes them of the undo records since.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rebuild {
    /// Blocks behind the latest.
    pub back: u64,
    /// Milliseconds.
    pub ms: f64,
}

/// Picks names, checks some, and reads them all.
///
/// # Errors
/// [`ReadsError`].
pub fn run<E>(settings: &Settings, place: &Place<'_, E>) -> Result<Results, ReadsError<E>> {
    let state = (place.open)().map_err(ReadsError::Place)?;
    let head = state.reader();
    let names = Names::pick(head, settings)?;
    let mut results = Results {
        block: head.meta().map_or(0, |meta| meta.block_number),
        rows: Vec::new(),
        rebuilds: Vec::new(),
    };
    for &back in &settings.back {
        let version = version_behind(head, back)?;
        check(&head.at(version)?, &names)?;
        let mut reading = Reading {
            settings,
            place,
            back,
            version,
            results: &mut results,
        };
        reading.pass("account", &names.accounts, |view, name| {
            Ok(view.account(*name).map(drop)?)
        })?;
        reading.pass("absent account", &names.absent, |view, name| {
            Ok(view.account(*name).map(drop)?)
        })?;
        reading.pass("slot", &names.slots, |view, (account, slot)| {
            Ok(view.storage(*account, *slot).map(drop)?)
        })?;
        let proven = settings.proofs.min(names.slots.len());
        if proven > 0 {
            reading.proofs(&names.slots[..proven])?;
        }
    }
    Ok(results)
}

/// The version of the block so many before the latest.
fn version_behind<E>(head: Head<'_>, back: u64) -> Result<Version, ReadsError<E>> {
    let latest = head.meta().map_or(0, |meta| meta.version.0);
    let oldest = head.view().oldest().map_or(0, |oldest| oldest.0);
    match latest.checked_sub(back) {
        Some(version) if version >= oldest => Ok(Version(version)),
        _ => Err(ReadsError::NotRetained {
            back,
            retained: latest - oldest,
        }),
    }
}

/// Names that are checked before anything is timed.
const CHECKED: usize = 16;

/// Holds what is read of some names against proofs.
fn check<E>(then: &Historical<'_>, names: &Names) -> Result<(), ReadsError<E>> {
    let absent = names.absent.iter().map(|&address| (address, U256::ZERO));
    let some = names.slots.iter().copied().take(CHECKED);
    for (address, slot) in some.chain(absent.take(CHECKED)) {
        let holds = is_proven(then, address, slot)?;
        if !holds {
            let version = then.meta().version.0;
            return Err(ReadsError::Wrong { address, version });
        }
    }
    Ok(())
}

/// Whether an account and a slot are what their proof shows.
fn is_proven(then: &Historical<'_>, address: Address, slot: U256) -> Result<bool, StateError> {
    let read = ProvenAccount {
        address,
        account: then.account(address)?,
        slots: vec![(slot, Some(then.storage(address, slot)?))],
    };
    let proof = then.prove(address, &[slot])?;
    Ok(match proof.verify(then.meta().root.into()) {
        Ok(Verdict::True(mut claims)) => {
            let slots = claims.accounts.iter_mut().flat_map(|of| &mut of.slots);
            // What was never written is zero.
            slots.for_each(|(_, value)| *value = Some(value.unwrap_or_default()));
            claims.doubtful.is_empty() && claims.accounts == [read]
        }
        _ => false,
    })
}

/// Names to read, in random order.
struct Names {
    accounts: Vec<Address>,
    absent: Vec<Address>,
    slots: Vec<(Address, U256)>,
}

impl Names {
    fn pick(head: Head<'_>, settings: &Settings) -> Result<Self, StateError> {
        let key = |what: &str, number: usize| {
            keccak256(format!("{what} {number} of seed {}", settings.seed).as_bytes())
        };
        let accounts = distinct(settings.reads, |number| {
            head.account_from(&key("account", number))
        })?;
        let slots = distinct(settings.reads, |number| {
            head.slot_from(&key("owner", number), &key("slot", number))
        })?;
        let absent =
            (0..settings.reads).map(|number| Address::from_slice(&key("absent", number)[12..]));
        Ok(Self {
            accounts,
            absent: absent.collect(),
            slots,
        })
    }
}

/// Up to `count` different names, of at most four times as many that are picked: a small state has no more.
fn distinct<T: Copy + Eq + StdHash>(
    count: usize,
    pick: impl Fn(usize) -> Result<Option<T>, StateError>,
) -> Result<Vec<T>, StateError> {
    let (mut seen, mut names) = (HashSet::new(), Vec::new());
    for number in 0..4 * count {
        if names.len() == count {
            break;
        }
        names.extend(pick(number)?.filter(|name| seen.insert(*name)));
    }
    Ok(names)
}

/// The reads of one block's state.
struct Reading<'a, E> {
    settings: &'a Settings,
    place: &'a Place<'a, E>,
    back: u64,
    version: Version,
    results: &'a mut Results,
}

impl<E> Reading<'_, E> {
    fn open_cold(&self) -> Result<StateSnapshot, ReadsError<E>> {
        (self.place.forget)().map_err(ReadsError::Place)?;
        (self.place.open)().map_err(ReadsError::Place)
    }

    /// Reads all names twice.
    fn pass<T: Sync>(
        &mut self,
        what: &'static str,
        names: &[T],
        read: impl Fn(&dyn StateView, &T) -> Result<(), StateError> + Sync,
    ) -> Result<(), ReadsError<E>> {
        let state = self.open_cold()?;
        let (back, version) = (self.back, self.version);
        for cold in [true, false] {
            let share = names.len().div_ceil(self.settings.threads).max(1);
            let begin = Instant::now();
            let times = std::thread::scope(|scope| {
                let parts = names.chunks(share).map(|names| {
                    let (head, read) = (state.reader(), &read);
                    scope.spawn(move || {
                        if back == 0 {
                            return time_each(names, |name| read(&head, name));
                        }
                        let then = head.at(version)?;
                        time_each(names, |name| read(&then, name))
                    })
                });
                let parts: Vec<_> = parts.collect();
                let parts = parts.into_iter().map(|part| match part.join() {
                    Ok(times) => times,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                parts.collect::<Result<Vec<Vec<f64>>, StateError>>()
            })?;
            self.add(what, cold, times.concat(), begin);
        }
        Ok(())
    }

    /// Proves slots with their accounts twice, on one thread; what the first proof rebuilds is told apart.
    fn proofs(&mut self, names: &[(Address, U256)]) -> Result<(), ReadsError<E>> {
        let state = self.open_cold()?;
        let then = state.reader().at(self.version)?;
        if self.back > 0 {
            let begin = Instant::now();
            then.prove(Address::ZERO, &[])?;
            self.results.rebuilds.push(Rebuild {
                back: self.back,
                ms: begin.elapsed().as_secs_f64() * 1e3,
            });
        }
        for cold in [true, false] {
            let begin = Instant::now();
            let times = time_each(names, |(account, slot)| {
                then.prove(*account, &[*slot]).map(drop)
            })?;
            self.add("proof", cold, times, begin);
        }
        Ok(())
    }

    fn add(&mut self, what: &'static str, cold: bool, mut times_us: Vec<f64>, begin: Instant) {
        let seconds = begin.elapsed().as_secs_f64();
        times_us.sort_by(f64::total_cmp);
        let reads = times_us.len();
        let within = |share: f64| {
            let place = (share * reads as f64).ceil() as usize;
            times_us.get(place.max(1) - 1).copied().unwrap_or_default()
        };
        self.results.rows.push(Row {
            back: self.back,
            what,
            cold,
            reads,
            per_second: reads as f64 / seconds,
            p50_us: within(0.5),
            p90_us: within(0.9),
            p99_us: within(0.99),
            p999_us: within(0.999),
            max_us: within(1.0),
        });
    }
}

/// Microseconds of each.
fn time_each<T>(
    names: &[T],
    mut read: impl FnMut(&T) -> Result<(), StateError>,
) -> Result<Vec<f64>, StateError> {
    let times = names.iter().map(|name| {
        let begin = Instant::now();
        read(name)?;
        Ok(begin.elapsed().as_secs_f64() * 1e6)
    });
    times.collect()
}

/// Returns the figures of all passes as a table.
#[must_use]
pub fn table(results: &Results) -> Table {
    let mut table = Table::new([
        "blocks back, what",
        "reads",
        "a second",
        "p50 us",
        "p90",
        "p99",
        "p99.9",
        "slowest",
    ]);
    for row in &results.rows {
        let cache = if row.cold { "cold" } else { "hot" };
        let mut cells = vec![
            format!("{}, {}, {cache}", row.back, row.what),
            row.reads.to_string(),
            format!("{:.0}", row.per_second),
        ];
        let times = [row.p50_us, row.p90_us, row.p99_us, row.p999_us, row.max_us];
        cells.extend(times.map(|time| format!("{time:.1}")));
        table.row(cells);
    }
    table
}
