//! In which fields two specifications differ.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::parameters::{Bomb, DaoFork};
use super::{ChainSpec, Fork, Limitation, RewardSchedule};

impl ChainSpec {
    /// Describes every field in which `other` differs from this specification, in the words of a genesis file's
    /// `config`: the field, its value in `other`, and its value here. Gas for witnesses is not compared, because no
    /// configuration has it.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let forks = self.forks.keys().chain(other.forks.keys()).copied();
        let forks: BTreeSet<Fork> = forks.collect();
        let starts = forks.into_iter().map(|fork| {
            let start = |spec: &Self| match spec.activation(fork) {
                Some(at) => format!("at {at}"),
                None => "never".to_owned(),
            };
            (format!("{fork:?} starts"), start(self), start(other))
        });
        let chain_ids = (self.chain_id.to_string(), other.chain_id.to_string());
        [("chainId is".to_owned(), chain_ids.0, chain_ids.1)]
            .into_iter()
            .chain(starts)
            .chain(
                self.fields()
                    .into_iter()
                    .zip(other.fields())
                    .map(|((field, wanted), (_, found))| (field.to_owned(), wanted, found)),
            )
            .filter(|(_, wanted, found)| wanted != found)
            .map(|(field, wanted, found)| format!("{field} {found} instead of {wanted}"))
            .collect()
    }

    /// All fields but chain id and forks, with their values.
    fn fields(&self) -> [(&'static str, String); 9] {
        [
            (
                "terminalTotalDifficulty is",
                shown(self.terminal_total_difficulty),
            ),
            ("daoForkBlock is", shown(self.dao.map(dao))),
            ("eip155Block is", shown(self.eip155)),
            ("eip160Block is", shown(self.eip160)),
            ("depositContractAddress is", shown(self.deposit_contract)),
            ("blobSchedule is", self.blob_parameters()),
            ("the block reward is", rewards(self.rewards)),
            ("the difficulty bomb is", bomb(self.bomb)),
            ("unsupported rules are", self.unsupported()),
        ]
    }

    fn blob_parameters(&self) -> String {
        let entries = self.blobs.iter();
        let entries = entries.map(|(time, blobs)| format!("{{from time {time}: {blobs:?}}}"));
        format!("[{}]", entries.collect::<Vec<_>>().join(", "))
    }

    fn unsupported(&self) -> String {
        let limits = self.limitations.iter().map(Limitation::to_string);
        format!("[{}]", limits.collect::<Vec<_>>().join("; "))
    }
}

fn shown(value: Option<impl Display>) -> String {
    value.map_or_else(|| "not set".to_owned(), |value| value.to_string())
}

fn dao(fork: DaoFork) -> String {
    format!("{} (daoForkSupport {})", fork.block, fork.support)
}

fn rewards(schedule: RewardSchedule) -> String {
    match schedule {
        RewardSchedule::Ethereum => "Ethereum's".to_owned(),
        RewardSchedule::Classic { from, era_blocks } => {
            format!("that of ecip1017Block {from} and ecip1017EraRounds {era_blocks}")
        }
    }
}

fn bomb(bomb: Bomb) -> String {
    match bomb {
        Bomb::Ethereum => "Ethereum's".to_owned(),
        Bomb::Classic {
            pause_from,
            pause_blocks,
            gone_from,
        } => format!(
            "that of ecip1010PauseBlock {}, ecip1010Length {pause_blocks} and disposalBlock {}",
            shown(pause_from),
            shown(gone_from)
        ),
    }
}
