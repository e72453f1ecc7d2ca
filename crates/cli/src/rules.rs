//! The rules of a chain beyond its genesis, as words of the command line.

use std::path::Path;

use anyhow::{Result, bail};
use arbor_chain::executor::Evm384;
use arbor_chain::rules::ChainRules;
use arbor_database::{AgreedRules, DatabaseError, RulesNotice};

use crate::args::RuleFlags;
use crate::{database, output};

/// The rules that the command line asks for.
pub(crate) fn asked(args: &RuleFlags) -> ChainRules {
    let schedule = args.evm384_schedule;
    ChainRules {
        witness_gas: args.gas,
        evm384: args.evm384.map(|interface| Evm384 {
            interface,
            schedule,
        }),
    }
}

/// The rules to replay by: those of the blocks in the folder's database, if there are any, which must be the ones asked for if any are. The user is told if they
/// differ from what was asked for now or before.
pub(crate) fn agreed(asked: ChainRules, dir: Option<&Path>) -> Result<ChainRules> {
    let Some(dir) = dir else {
        return Ok(asked);
    };
    let AgreedRules { rules, notice } = match database::folder(dir).agree_on_rules(asked) {
        Err(DatabaseError::OtherRules { dir, before, asked }) => bail!(
            "{} has been replayed {}, not {}: the blocks to come would mean something else than those before",
            dir.display(),
            described(*before),
            described(*asked)
        ),
        agreed => agreed?,
    };
    match notice {
        Some(RulesNotice::AsBefore) => {
            output::tell(&format!("replaying {}, as before", described(rules)));
        }
        Some(RulesNotice::InPlaceOf(before)) => output::tell(&format!(
            "replaying {}; what was asked for before, {}, no block was replayed by",
            described(rules),
            described(before)
        )),
        None => {}
    }
    Ok(rules)
}

/// The words of the command line that ask for rules.
pub(crate) fn words(rules: ChainRules) -> Vec<String> {
    let gas = rules.witness_gas.map(|gas| format!("--gas {}", gas.name()));
    let evm384 = rules.evm384.map(|evm384| {
        let interface = evm384.interface.name();
        match evm384.schedule.name() {
            Some(schedule) => format!("--evm384 {interface} --evm384-schedule {schedule}"),
            None => format!("--evm384 {interface} with a schedule of its own"),
        }
    });
    gas.into_iter().chain(evm384).collect()
}

/// What each flag is set to, by its name in reports.
pub(crate) fn settings(rules: ChainRules) -> [(&'static str, Option<&'static str>); 3] {
    let evm384 = rules.evm384;
    [
        ("gas", rules.witness_gas.map(|gas| gas.name())),
        ("evm384", evm384.map(|evm384| evm384.interface.name())),
        (
            "evm384_schedule",
            evm384.map(|evm384| evm384.schedule.name().unwrap_or("of its own")),
        ),
    ]
}

/// Checks that the command line asks for the rules that a file notes: a file does not choose its rules.
///
/// # Errors
/// Other rules; the message names both.
pub(crate) fn must_be_asked_for(noted: ChainRules, asked: ChainRules, file: &str) -> Result<()> {
    if noted == asked {
        return Ok(());
    }
    let wanted = match &words(noted)[..] {
        [] => "leave out --gas and --evm384".to_owned(),
        words => format!("give {}", words.join(" ")),
    };
    bail!(
        "{file} notes that blocks are executed {}, and the command line asks for blocks {}. Rules are taken from the command line alone: \
         if the chain has the rules of {file}, {wanted}",
        described(noted),
        described(asked)
    )
}

fn described(rules: ChainRules) -> String {
    match &words(rules)[..] {
        [] => "without --gas and --evm384".to_owned(),
        words => format!("with {}", words.join(" ")),
    }
}
