//! core-geth's form of the configuration: one field per improvement proposal instead of per fork.
//!
//! revm runs forks as wholes, so a fork is taken to start when the last of its proposals does. Proposals that start
//! before that are honoured where they have a switch of their own (EIP-155, EIP-160) and listed as limitations where
//! they have not.

use super::parameters::{Bomb, Config, Limitation};
use super::raw_config::RawConfig;
use super::rewards::RewardSchedule;
use super::{Activation, Fork, GenesisError};

/// The proposals that make a fork for the state transition. (The difficulty bomb's are apart.)
const FORKS: [(Fork, &[&str]); 6] = [
    (Fork::Homestead, &["eip2FBlock", "eip7FBlock"]),
    (Fork::SpuriousDragon, &["eip161FBlock", "eip170FBlock"]),
    (
        Fork::Byzantium,
        &[
            "eip100FBlock",
            "eip140FBlock",
            "eip198FBlock",
            "eip211FBlock",
            "eip212FBlock",
            "eip213FBlock",
            "eip214FBlock",
            "eip658FBlock",
        ],
    ),
    (
        Fork::Petersburg,
        &["eip145FBlock", "eip1014FBlock", "eip1052FBlock"],
    ),
    (
        Fork::Istanbul,
        &[
            "eip152FBlock",
            "eip1108FBlock",
            "eip1344FBlock",
            "eip1884FBlock",
            "eip2028FBlock",
            "eip2200FBlock",
        ],
    ),
    (
        Fork::Berlin,
        &[
            "eip2565FBlock",
            "eip2718FBlock",
            "eip2929FBlock",
            "eip2930FBlock",
        ],
    ),
];

/// Proposals of Classic's later forks, which take parts of London and Shanghai without their fee market.
const PARTS_OF_LATER_FORKS: [(&str, &str); 5] = [
    ("eip3529FBlock", "EIP-3529 without EIP-1559 (Mystique)"),
    ("eip3541FBlock", "EIP-3541 without EIP-1559 (Mystique)"),
    ("eip3651FBlock", "EIP-3651 without EIP-1559 (Spiral)"),
    ("eip3855FBlock", "EIP-3855 without EIP-1559 (Spiral)"),
    ("eip3860FBlock", "EIP-3860 without EIP-1559 (Spiral)"),
];

/// Takes core-geth's fields, if there are any.
pub(super) fn read(raw: &mut RawConfig<'_>, config: &mut Config) -> Result<(), GenesisError> {
    for (fork, proposals) in FORKS {
        read_fork(raw, config, fork, proposals)?;
    }
    config.eip160 = raw.number("eip160Block")?.or(raw.number("eip160FBlock")?);
    for (field, what) in PARTS_OF_LATER_FORKS {
        if let Some(from) = raw.number(field)? {
            let reason =
                format!("{what} is not supported: revm has it only in a fork with EIP-1559");
            config.limitations.push(Limitation {
                from,
                until: None,
                reason,
            });
        }
    }
    read_rewards(raw, config)?;
    read_bomb(raw, config)
}

fn read_fork(
    raw: &mut RawConfig<'_>,
    config: &mut Config,
    fork: Fork,
    proposals: &[&str],
) -> Result<(), GenesisError> {
    let mut starts = Vec::new();
    for field in proposals {
        starts.push((*field, raw.number(field)?));
    }
    let set: Vec<u64> = starts.iter().filter_map(|(_, block)| *block).collect();
    let Some((&from, &last)) = set.iter().min().zip(set.iter().max()) else {
        return Ok(());
    };
    let missing: Vec<&str> = starts
        .iter()
        .filter(|(_, block)| block.is_none())
        .map(|(field, _)| *field)
        .collect();
    if missing.is_empty() {
        config.forks.retain(|(other, _)| *other != fork);
        config.forks.push((fork, Activation::Block(last)));
    }
    let until = missing.is_empty().then_some(last);
    if until.is_none_or(|until| from < until) {
        let early: Vec<String> = starts
            .iter()
            .filter_map(|(field, block)| {
                block
                    .filter(|block| until.is_none_or(|u| *block < u))
                    .map(|b| format!("{field} {b}"))
            })
            .collect();
        let absent = if missing.is_empty() {
            String::new()
        } else {
            format!(", {} not set", missing.join(", "))
        };
        let reason = format!(
            "{fork:?} in parts ({}{absent}) is not supported: revm has it only as a whole",
            early.join(", ")
        );
        config.limitations.push(Limitation {
            from,
            until,
            reason,
        });
    }
    Ok(())
}

fn read_rewards(raw: &mut RawConfig<'_>, config: &mut Config) -> Result<(), GenesisError> {
    let from = raw
        .number("ecip1017FBlock")?
        .or(raw.number("ecip1017Block")?);
    let era = raw.number("ecip1017EraRounds")?;
    if from.is_some() || era.is_some() {
        // The era counts from block 1 whatever `from` is (ECIP-1017).
        let era_blocks = era.filter(|era| *era > 0).unwrap_or(5_000_000);
        config.rewards = RewardSchedule::Classic {
            from: from.unwrap_or(era_blocks),
            era_blocks,
        };
    }
    Ok(())
}

fn read_bomb(raw: &mut RawConfig<'_>, config: &mut Config) -> Result<(), GenesisError> {
    let pause_from = raw.number("ecip1010PauseBlock")?;
    let length = raw.number("ecip1010Length")?;
    let gone_from = raw.number("disposalBlock")?;
    if pause_from.is_some() || gone_from.is_some() {
        config.bomb = Bomb::Classic {
            pause_from,
            pause_blocks: length.unwrap_or(2_000_000),
            gone_from,
        };
    }
    Ok(())
}
