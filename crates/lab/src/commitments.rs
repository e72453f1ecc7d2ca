//! The study of Keccak against Pedersen commitments, with the proofs beside it.

mod basics;
mod leaves;
mod limit;
mod plots;
mod proofs;
mod table;

use crate::measure::{Budget, Case, Failed, Row};
use arbor_ipa::{Committer, Fr, Point, Term, points};
use serde::Serialize;
use std::{fmt, str::FromStr, time::Instant};

pub use plots::plots;
pub use table::{LEGEND, heading, table};

/// Rows that are measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Keccak-256 of messages of many lengths.
    Keccak,
    /// Commitments to vectors of full scalars.
    Vectors,
    /// Leaves from their values.
    Leaves,
    /// Changes of leaves.
    Updates,
    /// Tree keys.
    Keys,
    /// Images and encodings of points.
    Points,
    /// Multiproofs.
    Proofs,
}

impl Group {
    /// All, in the study's order.
    pub const ALL: [Self; 7] = [
        Self::Keccak,
        Self::Vectors,
        Self::Leaves,
        Self::Updates,
        Self::Keys,
        Self::Points,
        Self::Proofs,
    ];

    /// The word for it on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Keccak => "keccak",
            Self::Vectors => "vectors",
            Self::Leaves => "leaves",
            Self::Updates => "updates",
            Self::Keys => "keys",
            Self::Points => "points",
            Self::Proofs => "proofs",
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is none of: keccak, vectors, leaves, updates, keys, points, proofs")]
pub struct UnknownGroup(String);

impl FromStr for Group {
    type Err = UnknownGroup;

    fn from_str(name: &str) -> Result<Self, UnknownGroup> {
        let found = Self::ALL.into_iter().find(|group| group.name() == name);
        found.ok_or_else(|| UnknownGroup(name.to_owned()))
    }
}

/// What to measure, and how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The groups.
    pub groups: Vec<Group>,
    /// For each figure.
    pub budget: Budget,
    /// Bytes that the committer's tables may take.
    pub table_bytes: usize,
    /// Numbers of openings of the multiproofs.
    pub openings: Vec<usize>,
}

impl Settings {
    /// Bytes of tables where nothing else is asked for.
    pub const TABLE_BYTES: usize = 150_000_000;
    /// Openings where nothing else is asked for.
    pub const OPENINGS: [usize; 4] = [1, 100, 1000, 10_000];
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// Keccak-256 of 32 bytes, one message at a time: what everything is compared with.
    pub keccak_ns: f64,
    /// One product of two field elements in lanes.
    pub lane_product_ns: f64,
    /// Seconds to make the tables.
    pub setup_s: f64,
    /// Bytes of the tables.
    pub tables_bytes: usize,
    /// In the order of the groups.
    pub rows: Vec<Row>,
}

/// Makes the tables and measures, on the threads of the current rayon pool; `progress` hears the name of each row before it is measured.
///
/// # Errors
///
/// [`Failed`] if a result is wrong.
pub fn run(settings: &Settings, progress: &mut dyn FnMut(&str)) -> Result<Results, Failed> {
    progress("tables");
    // The points themselves are computed once for a process, and are no part of it.
    let _ = points();
    let begin = Instant::now();
    let committer = Committer::within(settings.table_bytes);
    let setup_s = begin.elapsed().as_secs_f64();
    let mut study = Study {
        committer: &committer,
        budget: settings.budget,
        rows: Vec::new(),
        progress,
    };
    let keccak = study.keccak(32)?;
    for group in &settings.groups {
        match group {
            Group::Keccak => study.keccaks()?,
            Group::Vectors => study.vectors()?,
            Group::Leaves => study.leaves()?,
            Group::Updates => study.updates()?,
            Group::Keys => study.keys()?,
            Group::Points => study.points()?,
            Group::Proofs => study.proofs(&settings.openings)?,
        }
    }
    Ok(Results {
        keccak_ns: keccak.single.ns,
        lane_product_ns: limit::lane_product_ns(settings.budget),
        setup_s,
        tables_bytes: committer.bytes(),
        rows: study.rows,
    })
}

/// A run under way.
struct Study<'a> {
    committer: &'a Committer,
    budget: Budget,
    rows: Vec<Row>,
    progress: &'a mut dyn FnMut(&str),
}

/// A sum by the definition of a commitment.
fn naive_sum(terms: &[Term]) -> Point {
    terms.iter().map(|&(i, scalar)| points()[i] * scalar).sum()
}

impl Study<'_> {
    fn add<I, R: PartialEq>(&mut self, case: Case<'_, I, R>) -> Result<(), Failed> {
        let row = self.measure(case)?;
        self.rows.push(row);
        Ok(())
    }

    fn measure<I, R: PartialEq>(&mut self, case: Case<'_, I, R>) -> Result<Row, Failed> {
        (self.progress)(&case.name);
        case.measure(self.budget)
    }
}

fn scalar_bytes(scalar: &Fr) -> Vec<u8> {
    scalar.to_le_bytes().to_vec()
}
