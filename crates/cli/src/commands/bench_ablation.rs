//! `arbor bench ablation`: replays the same blocks with all techniques of a tree, and without each of them.

use anyhow::Result;
use arbor_compare::{Ablation, Cache, Folder, Plan, Side, SideWord, Switch, terminal_heading};
use arbor_state::TreeKind;

use super::compare;
use crate::args::BenchAblation as Args;
use crate::{metrics_server, output};

pub(super) fn run(args: &Args) -> Result<()> {
    metrics_server::serve(args.metrics)?;
    compare::check_to(args.to)?;
    let tree = args.tree.name;
    let threads = compare::threads(args.threads);
    let switches = switches(args.tree, threads);
    let plan = plan(args, threads, &switches)?;
    let mut measurement = compare::measurement("bench ablation", &plan);
    measurement.setting("tree", tree);
    let folder = Folder::open(&args.out, &plan)?;
    compare::carry_out(&plan, &folder, args.json, |found| {
        found.check_same_roots()?;
        let results = &found.results;
        let ablation = Ablation::of(tree, &switches, results)?;
        let mut value = serde_json::to_value(results)?;
        value["ablation"] = serde_json::to_value(&ablation)?;
        let envelope = measurement.finish(value);
        if args.json {
            output::json(&envelope)?;
        } else {
            output::line(&format!("{}\n", terminal_heading(results)))?;
            output::table(&ablation.table())?;
        }
        Ok(envelope)
    })?;
    Ok(())
}

/// The techniques of a tree: its own, which its settings switch off, and those of every tree. One thread does everything
/// in turn, so that nothing is left to switch off there.
fn switches(tree: &TreeKind, threads: usize) -> Vec<Switch> {
    let of = |technique: &str, word: &str| Switch {
        technique: technique.to_owned(),
        word: word.to_owned(),
    };
    let own = tree.settings.iter().filter_map(|setting| setting.technique);
    let own = own.map(|technique| of(technique.name, technique.off));
    let is_on = |known: &SideWord| threads > 1 || known.word != Side::IN_TURN;
    let common = Side::WORDS.into_iter().filter(is_on);
    let common = common.map(|known| of(known.technique, known.word));
    own.chain(common).collect()
}

/// A comparison of the tree with itself without each technique. Databases are not surveyed: their proofs and tables
/// say nothing about the replay.
fn plan(args: &Args, threads: usize, switches: &[Switch]) -> Result<Plan> {
    Ok(Plan {
        program: compare::program()?,
        chain: compare::lengths(&args.chain)?,
        paths: args.chain.clone(),
        genesis: args.genesis.clone(),
        state: None,
        trees: Ablation::sides(args.tree.name, switches)?,
        repetitions: args.repeat,
        cache: Cache::Warm,
        memory_bytes: args.memory,
        write_back_bytes: None,
        retain: RETAIN.to_owned(),
        threads,
        to: args.to,
        throttle: None,
        witnesses: 0,
        verify: true,
        survey: false,
        growth: 0,
    })
}

/// The history that each run keeps, like that of a comparison without `--retain`.
const RETAIN: &str = "128";
