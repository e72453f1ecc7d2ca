//! What a chain's blocks mean beyond what its genesis says: what the command line switches on for all of them, which the database then remembers.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use arbor_chain::executor::{Evm384, Executor};
use arbor_chain::genesis::ChainSpec;
use arbor_evm384::GasSchedule;
use arbor_versions::read_head_file;
use clap::ValueEnum;

use crate::args::{GasChoice, RuleFlags};
use crate::remembered::write_whole;
use crate::{output, remembered};

/// Rules that no genesis has.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Rules {
    /// Gas for witnesses.
    gas: Option<GasChoice>,
    /// 384-bit arithmetic as opcodes.
    evm384: Option<Evm384>,
}

impl Rules {
    /// Those that the command line asks for.
    pub(crate) fn asked(args: &RuleFlags) -> Self {
        let schedule = args.evm384_schedule;
        Self {
            gas: args.gas,
            evm384: args.evm384.map(|interface| Evm384 {
                interface,
                schedule,
            }),
        }
    }

    /// Those that the database in a folder has been replayed by; `None` where it does not say so.
    pub(crate) fn stored(dir: &Path) -> Result<Option<Self>> {
        let wanted = "the --gas and --evm384 that the database was replayed with, or to be removed if it was replayed with none";
        remembered::stored(&file(dir), wanted, Self::parse)
    }

    /// As [`stored`](Self::stored), for a command that executes nothing; `None` if that is not known, of which the user is told.
    pub(crate) fn to_read(dir: &Path) -> Option<Self> {
        remembered::to_read(Self::stored(dir))
    }

    /// The rules to replay by: those that the blocks in the folder's database were, if there are any, which must be the ones asked for if any are. Where there is
    /// no block, those asked for count; that others were asked for before is told.
    pub(crate) fn agreed(self, dir: Option<&Path>) -> Result<Self> {
        let Some(dir) = dir else {
            return Ok(self);
        };
        let stored = match Self::stored(dir)? {
            Some(stored) if stored != self => stored,
            _ => return Ok(self),
        };
        let (before, now) = (stored.described(), self.described());
        if !has_blocks(dir) {
            output::tell(&format!(
                "replaying {now}; what was asked for before, {before}, no block was replayed by"
            ));
            return Ok(self);
        }
        if self != Self::default() {
            bail!(
                "{} has been replayed {before}, not {now}: the blocks to come would mean something else than those before",
                dir.display()
            );
        }
        output::tell(&format!("replaying {before}, as before"));
        Ok(stored)
    }

    /// Has the database in a folder remember them; but none at all, if it has blocks of which it does not know how they were replayed.
    pub(crate) fn remember(self, dir: &Path) -> Result<()> {
        let stored = Self::stored(dir)?;
        let unknown = stored.is_none() && self == Self::default() && has_blocks(dir);
        if unknown || stored == Some(self) {
            return Ok(());
        }
        let path = file(dir);
        write_whole(&path, &self.text()).with_context(|| format!("writing {}", path.display()))
    }

    /// Has a chain follow them, as far as its specification goes.
    pub(crate) fn set(self, spec: &mut ChainSpec) {
        GasChoice::set(self.gas, spec);
    }

    /// An executor that follows the rest.
    pub(crate) fn executor(self) -> Executor {
        self.evm384
            .map_or_else(Executor::new, Executor::with_evm384)
    }

    /// The words of the command line that ask for them.
    pub(crate) fn words(self) -> Vec<String> {
        let gas = self.gas.and_then(|gas| gas.to_possible_value());
        let gas = gas.map(|gas| format!("--gas {}", gas.get_name()));
        let evm384 = self.evm384.map(|evm384| {
            let (interface, schedule) = (evm384.interface.name(), name_of(evm384.schedule));
            format!("--evm384 {interface} --evm384-schedule {schedule}")
        });
        gas.into_iter().chain(evm384).collect()
    }

    /// What each flag is set to, by its name in reports.
    pub(crate) fn settings(self) -> [(&'static str, Option<String>); 3] {
        let gas = self.gas.and_then(|gas| gas.to_possible_value());
        let schedule = self.evm384.map(|evm384| name_of(evm384.schedule));
        [
            ("gas", gas.map(|gas| gas.get_name().to_owned())),
            (
                "evm384",
                self.evm384.map(|evm384| evm384.interface.name().to_owned()),
            ),
            ("evm384_schedule", schedule.map(str::to_owned)),
        ]
    }

    /// Checks that the command line asks for these rules, which a file notes: a file does not choose its rules.
    ///
    /// # Errors
    /// Other rules; the message names both.
    pub(crate) fn must_be_asked_for(self, asked: Self, file: &str) -> Result<()> {
        if self == asked {
            return Ok(());
        }
        let wanted = match &self.words()[..] {
            [] => "leave out --gas and --evm384".to_owned(),
            words => format!("give {}", words.join(" ")),
        };
        bail!(
            "{file} notes that blocks are executed {}, and the command line asks for blocks {}. Rules are taken from the command line alone: \
             if the chain has the rules of {file}, {wanted}",
            self.described(),
            asked.described()
        )
    }

    fn described(self) -> String {
        match &self.words()[..] {
            [] => "without --gas and --evm384".to_owned(),
            words => format!("with {}", words.join(" ")),
        }
    }

    /// As they are kept.
    pub(crate) fn text(self) -> String {
        format!("{}\n", self.words().join(" "))
    }

    /// The reverse of [`text`](Self::text).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut rules = Self::default();
        let mut words = text.strip_suffix('\n')?.split_ascii_whitespace();
        while let Some(flag) = words.next() {
            let value = words.next()?;
            match flag {
                "--gas" => rules.gas = Some(GasChoice::from_str(value, false).ok()?),
                "--evm384" => {
                    rules.evm384 = Some(Evm384 {
                        interface: value.parse().ok()?,
                        schedule: GasSchedule::DRAFT,
                    });
                }
                "--evm384-schedule" => {
                    let mut named = GasSchedule::NAMED.into_iter();
                    let (_, schedule) = named.find(|(name, _)| *name == value)?;
                    rules.evm384.as_mut()?.schedule = schedule;
                }
                _ => return None,
            }
        }
        Some(rules)
    }
}

/// Whether a database has more than its genesis.
fn has_blocks(dir: &Path) -> bool {
    let head = read_head_file(dir).ok().and_then(|file| file.head);
    head.is_some_and(|head| head.block_number > 0)
}

fn file(dir: &Path) -> PathBuf {
    dir.join("rules")
}

fn name_of(schedule: GasSchedule) -> &'static str {
    let mut named = GasSchedule::NAMED.into_iter();
    let found = named.find(|(_, known)| *known == schedule);
    found.map_or("", |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use arbor_evm384::Interface;

    use super::*;

    #[test]
    fn rules_are_read_as_they_were_written() {
        let gas = [None, Some(GasChoice::Eip4762), Some(GasChoice::Kaustinen6)];
        let schedules = GasSchedule::NAMED.into_iter().flat_map(|(_, schedule)| {
            Interface::ALL.map(|interface| Evm384 {
                interface,
                schedule,
            })
        });
        let evm384: Vec<_> = schedules.map(Some).chain([None]).collect();
        for gas in gas {
            for evm384 in evm384.iter().copied() {
                let rules = Rules { gas, evm384 };
                assert_eq!(Rules::parse(&rules.text()), Some(rules), "{rules:?}");
            }
        }
        for damaged in [
            "",
            "x\n",
            "--gas\n",
            "--gas x\n",
            "--evm384-schedule a\n",
            "--evm384 v7",
        ] {
            assert_eq!(Rules::parse(damaged), None, "{damaged:?}");
        }
    }
}
