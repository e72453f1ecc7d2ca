//! Comparisons of trees: the same chain is replayed under each of them, and figures are put next to
//! each other.
//!
//! A [`Plan`] names the chain, the [`Side`]s (a tree with its settings) and the budget that all of
//! them share. [`Comparison::run`] carries it out: each run is a child process of the same program,
//! begins from nothing, and takes its turn with the runs of the other sides. A run that is done has a
//! file of its own in the [`Folder`], so that an interrupted comparison goes on where it was.
//! [`Results`] are made of these files: [`figures`](figure) by name, their medians and their spread.
//! They are written as JSON, as comma-separated values, as Parquet, as a page for a browser, and as a
//! table for a terminal.
//!
//! An [`Ablation`] is a comparison of one tree with itself: each side but the first is without one technique.
//!
//! [`inspection_page`] makes the same sort of page of one database.
//!
//! No tree is named here. The sides come from the command line, which reads the registry.
#![forbid(unsafe_code)]

mod ablation;
mod baseline;
mod cache;
mod comparison;
mod error;
pub mod figure;
mod folder;
mod page;
mod parquet_rows;
mod plan;
mod results;
mod rows;
mod run;
mod runner;
mod statistics;
mod table;
mod thin;

pub use ablation::{Ablation, Costs, Switch, Without};
pub use baseline::{Change, Drift, check as check_baseline, check_sides};
pub use cache::Cache;
pub use comparison::{Comparison, Found, Outcome};
pub use error::CompareError;
pub use folder::Folder;
pub use page::inspection_page;
pub use plan::{Plan, Program, Side, SideError, SideWord};
pub use results::{Chain, FigureRow, Results};
pub use run::Run;
pub use runner::{CopyDatabase, PARENT_VARIABLE, apart};
pub use statistics::{Summary, median};
pub use table::{terminal_heading, terminal_table};
