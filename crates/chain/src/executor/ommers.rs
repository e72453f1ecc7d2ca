//! Ommers: kinship and headers.

use alloy_consensus::Header;
use alloy_primitives::B256;

use super::ancestors::GENERATIONS;
use super::header::{check_against_parent, check_dao_extra_data};
use super::{Ancestor, Ancestors, BlockError, Rules};
use crate::genesis::ChainSpec;

/// How far a block's ommers were checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OmmerCheck {
    /// Every rule.
    Full,
    /// Some of the seven ancestors were not known; what needs them was left out.
    Partial,
}

/// Most ommers of a block (yellow paper, section 11.1).
const MAX_OMMERS: usize = 2;

/// Checks a block's ommers: at most two, none included before, none an ancestor, each a child of the second
/// to seventh ancestor, with a header that is valid under the rules of its own number.
pub(super) fn check_ommers(
    chain_spec: &ChainSpec,
    block: (&Header, B256),
    ommers: &[Header],
    chain: &dyn Ancestors,
) -> Result<OmmerCheck, BlockError> {
    if ommers.is_empty() {
        return Ok(OmmerCheck::Full);
    }
    if ommers.len() > MAX_OMMERS {
        return Err(BlockError::TooManyOmmers {
            actual: ommers.len(),
        });
    }
    let (header, block_hash) = block;
    let family = Family::gather(header, chain);
    let mut seen = vec![block_hash];
    for (index, ommer) in ommers.iter().enumerate() {
        let hash = ommer.hash_slow();
        if seen.contains(&hash) || family.includes(hash) {
            return Err(BlockError::OmmerRepeated { index, hash });
        }
        seen.push(hash);
        family.check(chain_spec, header, (index, ommer, hash))?;
    }
    Ok(if family.complete {
        OmmerCheck::Full
    } else {
        OmmerCheck::Partial
    })
}

/// The up to seven known ancestors of a block, parent first.
struct Family<'a> {
    ancestors: Vec<&'a Ancestor>,
    /// Whether none is missing.
    complete: bool,
}

impl<'a> Family<'a> {
    fn gather(header: &Header, chain: &'a dyn Ancestors) -> Self {
        let wanted = GENERATIONS.min(header.number);
        let ancestors: Vec<_> = (1..=wanted)
            .map_while(|age| chain.ancestor(header.number - age))
            .collect();
        let complete = ancestors.len() as u64 == wanted;
        Self {
            ancestors,
            complete,
        }
    }

    fn includes(&self, ommer: B256) -> bool {
        self.ancestors
            .iter()
            .any(|ancestor| ancestor.ommers.contains(&ommer))
    }

    fn check(
        &self,
        chain_spec: &ChainSpec,
        header: &Header,
        (index, ommer, hash): (usize, &Header, B256),
    ) -> Result<(), BlockError> {
        if header.parent_hash == hash || self.ancestors.iter().any(|a| a.hash == hash) {
            return Err(BlockError::OmmerIsAncestor { index, hash });
        }
        // A child of the parent is a sibling of the block.
        let elders = || {
            self.ancestors
                .iter()
                .filter(|a| a.hash != header.parent_hash)
        };
        let parent = elders().find(|a| a.hash == ommer.parent_hash);
        // As far as the ommer's number tells.
        let recent = ommer.parent_hash != header.parent_hash
            && ommer.number < header.number
            && ommer.number.saturating_add(GENERATIONS) > header.number;
        match parent {
            Some(Ancestor { header: parent, .. }) => {
                let rules = Rules::at(chain_spec, ommer, parent, None);
                check_dao_extra_data(&rules, ommer)
                    .and_then(|()| check_against_parent(&rules, ommer, parent))
                    .map_err(|error| BlockError::OmmerHeader {
                        index,
                        error: Box::new(error),
                    })
            }
            None if recent && !self.complete => Ok(()),
            _ => Err(BlockError::OmmerUnrelated { index, hash }),
        }
    }
}
